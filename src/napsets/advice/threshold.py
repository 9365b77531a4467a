"""The basis of a threshold: the scores it is a quantile of, their weights, and the mass that is needed.

`NodeInspection` holds all of it for one node; `napsets.advice.inspection` adds what a set or an interval is made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.advice.evidence import NodeEvidence
from napsets.checks.arguments import AnyArray, FloatArray, IntArray, check_node
from napsets.checks.values import Record, check_count, check_hops, in_digits, plain
from napsets.graph import Graph, check_graph
from napsets.localisers import Everyone, HopsLocal, PathLengthsLocal, Reference
from napsets.localisers.base import graph_of
from napsets.localisers.shifts import ImportanceLocal
from napsets.localisers.weights import WeightsLocal
from napsets.methods import Calibrated
from napsets.quantile import pooled_mass, required_mass


@dataclass(frozen=True)
class HopSummary:
    """The nodes at one distance from a node.

    Attributes
    ----------
    hop : int
        The distance.
    nodes, calibration : int
        How many nodes are there, and how many of them have a label that counts.
    weight : float
        Weight of each of those.
    mass : float
        Their weights together.
    within : int
        How many of their scores are at most the threshold.
    median_score : float
        The median of their scores; NaN where there are none.
    """

    hop: int
    nodes: int
    calibration: int
    weight: float
    mass: float
    within: int
    median_score: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NodeInspection(ABC):
    """Everything that one node's prediction follows from: a `SetInspection` or an `IntervalInspection`.

    All that is predicted, and `threshold`, `support` and `effective_size`, is what `predict` gives for the node, to the
    last bit.

    Attributes
    ----------
    node : int
        The position of the node.
    alpha : float
        Error rate.
    threshold : float
        τ; +∞ if the mass is too small and there is no fallback.
    support : int
        How many calibration nodes the threshold rests on: those in reach with positive weight, or all of them where the
        threshold of all stands in.
    effective_size : float
        (Σw)²/Σw² over them.
    calibrates : bool
        Whether the node itself is a calibration node. Its own score is left out here.
    hops : tuple of HopSummary
        The neighbourhood by distance.
    neighbours : numpy.ndarray
        The calibration nodes in reach, by score and then by number.
    neighbour_hops, neighbour_weights, neighbour_scores : numpy.ndarray
        Their distances (0 where distance does not count, as in split conformal prediction), weights and scores.
    total_mass, needed_mass, reached_mass : float
        Of the neighbours, and of those pooled with them: Σw, (1−α)(1+Σw) or what an exact level needs, and the
        weight of all scores that are at most the threshold.
    neighbourhood_support : int
        How many of the neighbours have positive weight.
    neighbourhood_effective_size : float
        (Σw)²/Σw² over the neighbours.
    level : float or None
        With an exact level, the share of 1 + Σw that the held-out labels give.
    is_quantile : bool
        Whether the threshold is a quantile of scores at all; where it is not, there are no neighbours and no masses.
    fell_back : bool
        Whether the neighbourhood's mass falls short, so that the threshold is +∞ or, with ``fallback="global"``, that
        of all calibration nodes.
    neighbour_distances : numpy.ndarray or None
        Where neighbours count by the length of paths, how far they are; there are no hops then.
    evidence : NodeEvidence, IntervalEvidence or None
        What the score was made of, where it takes the labels, or targets, around a node as evidence.
    ids : numpy.ndarray or None
        What all nodes are called, where they have ids; `node` and `neighbours` are positions.
    """

    #: What a threshold of +∞ gives.
    everything: ClassVar[str]

    node: int
    alpha: float
    threshold: float
    support: int
    effective_size: float
    calibrates: bool
    hops: tuple[HopSummary, ...]
    neighbours: IntArray
    neighbour_hops: IntArray
    neighbour_weights: FloatArray
    neighbour_scores: FloatArray
    total_mass: float
    needed_mass: float
    reached_mass: float
    neighbourhood_support: int
    neighbourhood_effective_size: float
    fell_back: bool
    level: float | None = None
    is_quantile: bool = True
    neighbour_distances: FloatArray | None = None
    evidence: NodeEvidence | None = None
    ids: AnyArray | None = None

    @classmethod
    @abstractmethod
    def own_parts(cls, calibrated: Calibrated, row: Any, neighbours: IntArray, evidence: Any) -> Record:
        """Return the attributes that only this kind of inspection has, from a prediction of one row."""

    @abstractmethod
    def _exception(self) -> str:
        """Return a note where the prediction differs from what the threshold gives; empty elsewhere."""

    def reason(self) -> str:
        """Explain the threshold, and the prediction where it has another reason."""
        return f"{self.threshold_reason()} {self._exception()}".rstrip()

    @property
    def id(self) -> Any:
        """The id of the node; its position, where nodes have no ids."""
        return self.node if self.ids is None else plain(self.ids[self.node])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(node {self.id!r}, alpha={self.alpha:g}: threshold {in_digits(self.threshold)}, "
            f"support {self.support:,})\n{self.reason()}"
        )

    def nearest(self, count: int) -> IntArray:
        """Return the places of the `neighbours` with scores nearest to the threshold, ascending; the largest for ∞."""
        scores = self.neighbour_scores
        distance = np.abs(scores - self.threshold) if np.isfinite(self.threshold) else -scores
        return np.sort(distance.argsort(kind="stable")[: check_count("count", count)])

    def threshold_reason(self) -> str:
        """Explain the threshold."""
        threshold = in_digits(self.threshold)
        if not self.is_quantile:
            return (
                f"The threshold {threshold} was computed by the method for this node; it is not a quantile of other "
                "nodes' scores."
            )
        if self.level is not None and np.isfinite(self.threshold):
            return (
                f"The held-out labels set the level to {self.level:.4g} of 1+Σw, that is {self.needed_mass:.4g}; up to "
                f"the threshold {threshold}, the calibration nodes in reach weigh {self.reached_mass:.4g} of "
                f"{self.total_mass:.4g}."
            )
        if self.level is not None and np.isinf(self.level):
            start = f"Too few labels were held out to set a level at alpha = {self.alpha:g}"
            return f"{start}: the threshold is ∞ and {self.everything}."
        if self.neighbourhood_support == 0:
            start = "No calibration node is in reach, so there is nothing to calibrate on"
        elif self.fell_back:
            share = "(1−α)(1+Σw)" if self.level is None else f"{self.level:.4g} of 1+Σw"
            start = (
                f"The {self.neighbourhood_support} calibration nodes in reach weigh {self.total_mass:.4g} together; a "
                f"threshold needs {share} = {self.needed_mass:.4g}, which they cannot reach"
            )
        else:
            return (
                f"The threshold {threshold} is the smallest score up to which the calibration nodes in reach weigh at "
                f"least {self.needed_mass:.4g} = (1−α)(1+Σw): they weigh {self.reached_mass:.4g} of "
                f"{self.total_mass:.4g}."
            )
        if np.isinf(self.threshold):
            return f"{start}: the threshold is ∞ and {self.everything}."
        return f"{start}: the threshold {threshold} of all calibration nodes is used instead."


def hop_rings(graph: Graph, node: int, hops: int) -> list[IntArray]:
    """Return the nodes at distance exactly 1, 2, …, `hops` from `node`, each ring ascending.

    Examples
    --------
    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], num_nodes=4)
    >>> [ring.tolist() for ring in hop_rings(path, 1, 3)]
    [[0, 2], [3], []]
    """
    return rings_around(graph, check_node("node", node, check_graph(graph).num_nodes), check_hops("hops", hops))


def rings_around(graph: Graph, start: int, hops: int) -> list[IntArray]:
    """Return the rings of `hop_rings`; nothing is checked."""
    seen = np.zeros(graph.num_nodes, dtype=bool)
    seen[start] = True
    ring = np.array([start])
    rings = []
    for _ in range(hops):
        rows = [graph.indices[graph.indptr[u] : graph.indptr[u + 1]] for u in ring]
        reached = np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)
        ring = reached[~seen[reached]].astype(np.int64)
        seen[ring] = True
        rings.append(ring)
    return rings


def inspect_threshold(calibrated: Calibrated, node: int, alpha: float, threshold: float) -> Record:
    """Return the attributes of `NodeInspection` that explain the threshold of a node."""
    # Where nodes are judged by their groups, the node's own group explains its threshold.
    group: Calibrated = calibrated if calibrated.grouped is None else calibrated.grouped.judge(node, alpha)
    known = {
        "node": node,
        "alpha": alpha,
        "threshold": threshold,
        "calibrates": bool(np.isin(node, calibrated.scored.calibration)),
    }
    near = group.local.thresholds(np.array([node]), group.level.cuts([alpha]), threads=1)
    parts = _reference_weights(group, node, threshold)
    level, total = group.level.level(alpha), parts["total_mass"]
    return (
        parts
        | known
        | {
            "needed_mass": level * (1.0 + total) if calibrated.is_exact else required_mass(total, alpha),
            "neighbourhood_support": int(near.support[0]),
            "neighbourhood_effective_size": float(near.effective_size[0]),
            "fell_back": bool(np.isinf(near.values[0, 0])),
            "level": level if calibrated.is_exact else None,
        }
    )


def _reference_weights(calibrated: Calibrated, node: int, threshold: float) -> Record:
    """Return the nodes whose scores the threshold is a quantile of, with their weights; none if it is not one."""
    reference, local = calibrated.scored.reference, calibrated.local
    if isinstance(local, HopsLocal):
        parts = _by_hop(local.reference, node, local.weighting.hops, threshold)
        total = float(sum(row.mass for row in parts["hops"]))
        reached = float(sum(row.weight * row.within for row in parts["hops"]))
        return parts | _with_pools(local, node, threshold, total, reached)
    if isinstance(local, PathLengthsLocal):
        nodes, distances = local.near(node)
        scores = local.reference.index.sorted_scores[local.reference.index.numbers[nodes]]
        order = np.lexsort((nodes, scores))
        parts = _without_hops(nodes[order], local.weights(distances[order]), scores[order], threshold)
        parts["neighbour_distances"] = distances[order]
        return parts | _with_pools(local, node, threshold, parts["total_mass"], parts["reached_mass"])
    if isinstance(local, ImportanceLocal | WeightsLocal):
        weighed = local.weights(node)
        return _without_hops(weighed.nodes, weighed.weights, weighed.scores, threshold)
    everyone = isinstance(calibrated.method.localiser, Everyone)
    others = np.flatnonzero((reference.nodes != node) & everyone)
    others = others[np.lexsort((reference.nodes[others], reference.scores[others]))]
    parts = _without_hops(reference.nodes[others], np.ones(others.size), reference.scores[others], threshold)
    return parts | {"is_quantile": everyone}


def _without_hops(nodes: IntArray, weights: FloatArray, scores: FloatArray, threshold: float) -> Record:
    """Return the parts of an inspection where neighbours count by something else than hops."""
    return {
        "hops": (),
        "neighbours": nodes,
        "neighbour_hops": np.zeros(nodes.size, dtype=np.int64),
        "neighbour_weights": weights,
        "neighbour_scores": scores,
        "total_mass": float(weights.sum()),
        "reached_mass": float(weights[scores <= threshold].sum()),
    }


def _with_pools(
    local: HopsLocal | PathLengthsLocal, node: int, threshold: float, total: float, reached: float
) -> Record:
    """Add the pools of all reference nodes and of those alike to the nearby mass, in total and up to the threshold."""
    setting, reference = local.localiser, local.reference
    pools = [(setting.pool, np.ones(reference.nodes.size, dtype=bool))]
    if setting.alike and reference.predicted is not None:
        pools.append((setting.alike, reference.predicted[reference.nodes] == reference.predicted[node]))
    masses = np.array([total, reached])
    for weight, members in pools:
        scores = reference.scores[members & (reference.nodes != node)]
        counts = np.array([scores.size, np.count_nonzero(scores <= threshold)])
        masses = pooled_mass(masses, weight, counts, np.full(2, np.count_nonzero(members)))
    return {"total_mass": float(masses[0]), "reached_mass": float(masses[1])}


def _by_hop(reference: Reference, node: int, weights: FloatArray, threshold: float) -> Record:
    """Return the parts of an inspection that come from walking around the node."""
    index = reference.index
    rows, rings = [], [np.empty(0, dtype=np.int64)]
    for hop, ring in enumerate(rings_around(graph_of(reference), node, weights.size), start=1):
        calibrating = ring[index.numbers[ring] < index.sorted_scores.size]
        scores = index.sorted_scores[index.numbers[calibrating]]
        weight = float(weights[hop - 1])
        rows.append(
            HopSummary(
                hop,
                int(ring.size),
                int(calibrating.size),
                weight,
                weight * calibrating.size,
                int((scores <= threshold).sum()),
                float(np.median(scores)) if scores.size else float("nan"),
            )
        )
        rings.append(calibrating)
    nodes, hops = np.concatenate(rings), np.repeat(np.arange(len(rings)), [ring.size for ring in rings])
    scores = index.sorted_scores[index.numbers[nodes]]
    order = np.lexsort((nodes, scores))
    nodes, hops = nodes[order], hops[order]
    return {
        "hops": tuple(rows),
        "neighbours": nodes,
        "neighbour_hops": hops,
        "neighbour_weights": weights[hops - 1] if hops.size else np.empty(0),
        "neighbour_scores": scores[order],
    }
