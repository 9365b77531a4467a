"""The labelled nodes around some nodes: counts and histograms of their scores by hop, and a drawing of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from napsets.advice.threshold import rings_around
from napsets.checks.arguments import FloatArray, IntArray
from napsets.graph import Graph
from napsets.methods import Scored

__all__ = ["BINS", "DRAWN_NODES", "CalibrationScores", "walk_around"]

#: Neighbours drawn around a node, over all hops.
DRAWN_NODES = 96
#: Bins of a histogram of scores.
BINS = 40


@dataclass(frozen=True, eq=False)
class CalibrationScores:
    """The scores of calibration nodes: by node, in order, and in order among those of each first choice.

    Attributes
    ----------
    by_node : numpy.ndarray
        The score at the truth of each node, NaN where it does not calibrate.
    ordered : numpy.ndarray
        The scores of all calibration nodes.
    edges : numpy.ndarray
        Edges of the bins of histograms.
    choice : numpy.ndarray
        The first choice for each of the nodes looked at, −1 where there is none.
    by_choice : dict
        The scores of the calibration nodes with each first choice.
    """

    by_node: FloatArray
    ordered: FloatArray
    edges: FloatArray
    choice: IntArray
    by_choice: dict[int, FloatArray]

    @classmethod
    def of(cls, scored: Scored, nodes: IntArray) -> CalibrationScores:
        """Return those of scored nodes, as some nodes see them."""
        reference, predicted = scored.reference, scored.reference.predicted
        by_node = np.full(reference.num_nodes, np.nan)
        by_node[reference.nodes] = reference.scores
        low, high = float(reference.scores.min()), float(reference.scores.max())
        if predicted is not None:  # scores of labels lie between 0 and 1, at the least
            low, high = min(0.0, low), max(1.0, high)
        elif low == high:
            low, high = low - 0.5, high + 0.5
        choice = np.full(reference.num_nodes, -1) if predicted is None else predicted
        own = choice[reference.nodes]
        by_choice = {int(y): np.sort(reference.scores[own == y]) for y in np.unique(own)}
        return cls(by_node, np.sort(reference.scores), np.linspace(low, high, BINS + 1), choice[nodes], by_choice)

    @property
    def alike_counts(self) -> IntArray:
        """How many calibration nodes have the first choice of each node."""
        return np.array([self.by_choice.get(int(y), np.empty(0)).size for y in self.choice], dtype=np.int64)

    def below(self, thresholds: FloatArray) -> IntArray:
        """Count the scores of at most each node's threshold."""
        return np.searchsorted(self.ordered, thresholds, side="right")

    def alike_below(self, thresholds: FloatArray) -> IntArray:
        """Count the scores of at most each node's threshold, among calibration nodes with the same first choice."""
        counts = np.zeros(thresholds.size, dtype=np.int64)
        for y, scores in self.by_choice.items():
            here = self.choice == y
            counts[here] = np.searchsorted(scores, thresholds[here], side="right")
        return counts


def walk_around(
    graph: Graph,
    nodes: IntArray,
    hops: int,
    scores: Sequence[CalibrationScores],
    scored: IntArray,
    thresholds: FloatArray,
    seed: int,
) -> dict[str, IntArray]:
    """Walk around each node: return the arrays `hop_nodes` to `drawn_parent` of an `Explorer`.

    Parameters
    ----------
    graph, nodes, hops
        Where to walk, from which nodes, and how far.
    scores : sequence of CalibrationScores
        Each once.
    scored, thresholds
        Which of them each method has, and the method's threshold for each node.
    seed : int
        Seed of the drawings.
    """
    shape = (nodes.size, hops)
    arrays = {
        "hop_nodes": np.zeros(shape, dtype=np.int64),
        "hop_counts": np.zeros((len(scores), *shape), dtype=np.int64),
        "hop_below": np.zeros((thresholds.shape[0], *shape), dtype=np.int64),
        "histogram": np.zeros((len(scores), *shape, BINS), dtype=np.int64),
        "drawn": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
        "drawn_hop": np.zeros((nodes.size, DRAWN_NODES), dtype=np.int64),
        "drawn_parent": np.full((nodes.size, DRAWN_NODES), -1, dtype=np.int64),
    }
    column = np.empty(graph.num_nodes, dtype=np.int64)
    for i, node in enumerate(nodes):
        rings = rings_around(graph, int(node), hops)
        for k, ring in enumerate(rings):
            arrays["hop_nodes"][i, k] = ring.size
            for s, own in enumerate(scores):
                known = own.by_node[ring]
                known = known[~np.isnan(known)]
                methods = np.flatnonzero(scored == s)
                arrays["hop_counts"][s, i, k] = known.size
                arrays["hop_below"][methods, i, k] = (known <= thresholds[methods, i, None]).sum(axis=1)
                arrays["histogram"][s, i, k] = np.histogram(known, bins=own.edges)[0]
        rng = np.random.default_rng([seed, int(node)])
        for name, values in _drawing(graph, int(node), rings, column, rng).items():
            arrays[name][i, : values.size] = values
    return arrays


def _drawing(
    graph: Graph, node: int, rings: list[IntArray], column: IntArray, rng: np.random.Generator
) -> dict[str, IntArray]:
    """Choose what to draw of each ring, at random, and join each to a drawn neighbour one hop nearer if it has one."""
    drawn, hop, parent = (np.empty(0, dtype=np.int64) for _ in range(3))
    room = max(1, DRAWN_NODES // max(1, len(rings)))
    inner, first = np.array([node]), -1
    for k, ring in enumerate(rings, start=1):
        taken = np.sort(rng.permutation(ring)[: min(room, DRAWN_NODES - drawn.size)])
        column[taken] = -2
        for position, near in enumerate(inner):
            reached = graph.indices[graph.indptr[near] : graph.indptr[near + 1]]
            joined = taken[np.isin(taken, reached, assume_unique=True) & (column[taken] == -2)]
            column[joined] = first + position
        parent = np.append(parent, column[taken])
        hop = np.append(hop, np.full(taken.size, k))
        inner, first = taken, drawn.size
        drawn = np.append(drawn, taken)
    return {"drawn": drawn, "drawn_hop": hop, "drawn_parent": parent}
