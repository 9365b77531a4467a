"""Neighbourhoods: their map (balls of nodes, the edges between them), and the labelled nodes around some nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.advice.threshold import rings_around
from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.evaluation.groups import groups_of_partition
from napsets.evaluation.metrics import finite_mean, neighbourhood_partition
from napsets.evaluation.results import Comparison
from napsets.graph import Graph
from napsets.methods import Scored
from napsets.report.chart_data import Row

#: Neighbourhoods with fewer nodes are not drawn; PCCV judges only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: The map holds this many neighbourhoods at most, the largest ones.
DRAWN_BALLS = 120
#: Strongest links of each ball that are drawn; all of them would hide the balls.
LINKS_PER_BALL = 3
#: Edges looked at at a time.
_CHUNK_EDGES = 1 << 24
#: Steps of a layout.
_STEPS = 400


@dataclass(frozen=True, eq=False)
class NeighbourhoodMap:
    """The neighbourhoods that a page draws.

    Attributes
    ----------
    ball : numpy.ndarray
        The neighbourhood of each node, −1 for none.
    position : numpy.ndarray
        Where each is drawn.
    links : list of dict
        Which are joined.
    left_out : int
        Judged nodes in none.
    """

    ball: IntArray
    position: FloatArray
    links: list[Row]
    left_out: int

    def rows(
        self,
        comparison: Comparison,
        titles: Sequence[str],
        covered: Sequence[BoolArray],
        *,
        describe: Callable[[BoolArray], Row],
        size: str,
    ) -> list[Row]:
        """Return one row per neighbourhood: each method's coverage and, behind the word `size`, its mean size.

        `describe` says more about the judged nodes in it.
        """
        rows = []
        for b, (x, y) in enumerate(self.position.tolist()):
            inside = self.ball[comparison.nodes] == b
            row: Row = {"ball": b, "x": x, "y": y, "nodes": int(inside.sum())}
            row |= {"judged": bool(inside.sum() >= JUDGED_SIZE)} | describe(inside)
            for title, result, hits in zip(titles, comparison, covered, strict=True):
                row[title] = float(hits[inside].mean())
                row[f"{title} {size}"] = finite_mean(result.sizes[inside])
            rows.append(row)
        return rows


def neighbourhood_map(comparison: Comparison) -> NeighbourhoodMap:
    """Cut the judged nodes into neighbourhoods and lay them out."""
    graph, seed = comparison.graph, comparison.settings.seed
    parts = neighbourhood_partition(graph, comparison.nodes, min_size=DRAWN_SIZE, seed=seed)[:DRAWN_BALLS]
    ball = groups_of_partition(parts, graph.num_nodes)
    links, position = quotient(graph, parts, seed)
    return NeighbourhoodMap(ball, position, links, int((ball[comparison.nodes] < 0).sum()))


def quotient(graph: Graph, balls: list[IntArray], seed: int = 0) -> tuple[list[Row], FloatArray]:
    """Return the graph whose nodes are balls: the strongest links of each, and where it is drawn within [0, 1]²."""
    count = len(balls)
    joined = _edges_between(graph, groups_of_partition(balls, graph.num_nodes), count)
    source, target = np.nonzero(np.triu(joined, 1))
    edges = joined[source, target]
    # Large balls have many edges to all others; the layout should show which balls are closer than their sizes explain.
    sizes = np.array([members.size for members in balls], dtype=np.float64)
    strength = edges / np.sqrt(sizes[source] * sizes[target])
    kept = _strongest(source, target, strength, count)
    source, target, edges, strength = source[kept], target[kept], edges[kept], strength[kept]
    position = force_layout(count, source, target, strength, radius=np.sqrt(sizes), seed=seed)
    ends = zip(source.tolist(), target.tolist(), edges.tolist(), strict=True)
    return [{"source": a, "target": b, "edges": count} for a, b, count in ends], position


def force_layout(
    count: int, source: IntArray, target: IntArray, strength: FloatArray, *, radius: FloatArray, seed: int = 0
) -> FloatArray:
    """Lay a small graph out: links pull, nodes push, large nodes claim their room; the same seed, the same picture.

    Parameters
    ----------
    count : int
        Nodes; the work is quadratic in it.
    source, target, strength
        The links.
    radius : array of shape (count,)
        How much room each node needs, in any unit.
    seed : int
        Seed of the first positions.

    Returns
    -------
    numpy.ndarray
        Shape (count, 2), within [0, 1] on both axes.
    """
    if count == 0:
        return np.empty((0, 2))
    rng = np.random.default_rng(seed)
    angle = np.arange(count) * np.pi * (3 - np.sqrt(5))
    spiral = np.sqrt((np.arange(count) + 0.5) / count)[:, None]
    position = spiral * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=1e-2, size=(count, 2))
    pull = np.zeros((count, count))
    pull[source, target] = strength / max(float(strength.max(initial=0.0)), 1e-12)
    pull += pull.T
    room = 0.5 * radius / np.sqrt(np.sum(radius**2))
    reach = room[:, None] + room[None, :]
    ideal = 1.2 / np.sqrt(count)
    for step in range(_STEPS):  # each moves less than the one before
        gap = position[:, None, :] - position[None, :, :]
        distance = np.sqrt(np.sum(gap**2, axis=2)) + 1e-9
        push = ideal**2 / distance**2 + 8.0 * np.maximum(0.0, reach - distance) / distance
        force = np.sum(gap * (push - pull * distance / ideal)[:, :, None], axis=1) - 0.6 * position
        length = np.sqrt(np.sum(force**2, axis=1, keepdims=True)) + 1e-9
        position += force / length * np.minimum(length, 0.12 * (1.0 - step / _STEPS))
    low, high = position.min(axis=0), position.max(axis=0)
    return np.asarray((position - low) / np.where(high > low, high - low, 1.0))


def _edges_between(graph: Graph, ball: IntArray, count: int) -> IntArray:
    """Count stored edges between every two balls, both directions together."""
    joined = np.zeros(count * count, dtype=np.int64)
    degrees = graph.degrees
    first = 0
    while first < graph.num_nodes:
        last = int(np.searchsorted(graph.indptr, graph.indptr[first] + _CHUNK_EDGES, side="right")) - 1
        last = min(max(last, first + 1), graph.num_nodes)
        ends: Any = graph.indices[graph.indptr[first] : graph.indptr[last]]
        a, b = np.repeat(ball[first:last], degrees[first:last]), ball[ends]
        inside = (a >= 0) & (b >= 0)
        joined += np.bincount(a[inside] * count + b[inside], minlength=count * count)
        first = last
    square = joined.reshape(count, count)
    # An undirected edge is stored twice, once from each side.
    return square + square.T if graph.directed else square


def _strongest(source: IntArray, target: IntArray, strength: FloatArray, count: int) -> IntArray:
    kept = np.zeros(source.size, dtype=bool)
    for b in range(count):
        links = np.flatnonzero((source == b) | (target == b))
        kept[links[np.argsort(-strength[links], kind="stable")[:LINKS_PER_BALL]]] = True
    return np.flatnonzero(kept)


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
