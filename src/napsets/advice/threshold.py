"""What a threshold follows from: whose scores it is a quantile of, how much each weighs, and what was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray, check_hops, check_node
from napsets.graph import Graph, check_graph
from napsets.kernels.layout import FEW_HOPS
from napsets.localisers import Everyone, HopsLocal, PathLengthsLocal, Reference, WeighedLocal
from napsets.methods import Calibrated
from napsets.quantile import required_mass

__all__ = ["HopSummary", "ThresholdInspection", "hop_rings", "inspect_threshold"]


@dataclass(frozen=True)
class HopSummary:
    """What stands at one distance from a node.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class ThresholdInspection:
    """Everything that one node's threshold follows from.

    `threshold`, `support` and `effective_size` are what `predict` gives for the node, to the last bit.

    Attributes
    ----------
    node : int
        The node.
    alpha : float
        Error rate.
    threshold : float
        τ; +∞ where the mass falls short and nothing else was asked for.
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
        Of the neighbours, and of those pooled with them: Σw, (1−α)(1+Σw) or what an exact level asks for, and the
        weight of all scores that are at most the threshold.
    neighbourhood_support : int
        How many of the neighbours have positive weight.
    neighbourhood_effective_size : float
        (Σw)²/Σw² over the neighbours.
    level : float or None
        With an exact level, the share of 1 + Σw that the labels kept apart ask for.
    is_quantile : bool
        Whether the threshold is a quantile of scores at all; where it is not, there are no neighbours and no masses.
    fell_back : bool
        Whether the neighbourhood's mass falls short, so that the threshold is +∞ or, with ``fallback="global"``, that
        of all calibration nodes.
    neighbour_distances : numpy.ndarray or None
        Where neighbours count by the length of paths, how far they are; there are no hops then.
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

    def nearest(self, count: int) -> IntArray:
        """Return which `neighbours` have the scores nearest to the threshold, ascending; the largest, where it is ∞."""
        scores = self.neighbour_scores
        distance = np.abs(scores - self.threshold) if np.isfinite(self.threshold) else -scores
        return np.sort(distance.argsort(kind="stable")[:count])

    def threshold_reason(self) -> str:
        """Say where the threshold comes from."""
        if not self.is_quantile:
            return (
                f"The threshold {self.threshold:.4f} is the method's own for this node: no quantile of others' scores."
            )
        if self.level is not None and np.isfinite(self.threshold):
            return (
                f"The labels kept apart ask for {self.level:.4g} of 1+Σw, that is {self.needed_mass:.4g}; up to the "
                f"threshold {self.threshold:.4f} the calibration nodes that count weigh {self.reached_mass:.4g} of "
                f"{self.total_mass:.4g}."
            )
        if self.level is not None and np.isinf(self.level):
            told = f"Too few labels were kept apart to set a level at alpha = {self.alpha:g}"
            return f"{told}: the threshold is ∞ and {self.everything}."
        if self.neighbourhood_support == 0:
            start = "No calibration node is in reach, so there is nothing to calibrate on"
        elif self.fell_back:
            asked = "(1−α)(1+Σw)" if self.level is None else f"{self.level:.4g} of 1+Σw"
            start = (
                f"The {self.neighbourhood_support} calibration nodes in reach weigh {self.total_mass:.4g} together; a "
                f"threshold needs {asked} = {self.needed_mass:.4g}, which they cannot reach"
            )
        else:
            return (
                f"The threshold {self.threshold:.4f} is the smallest score at which the calibration nodes in reach "
                f"gather {self.needed_mass:.4g} = (1−α)(1+Σw) of their weight {self.total_mass:.4g}; up to it they "
                f"weigh {self.reached_mass:.4g}."
            )
        if np.isinf(self.threshold):
            return f"{start}: the threshold is ∞ and {self.everything}."
        return f"{start}: the threshold {self.threshold:.4f} of all calibration nodes stands in."


def hop_rings(graph: Graph, node: int, hops: int) -> list[IntArray]:
    """Return the nodes at distance exactly 1, 2, …, `hops` from `node`, each ring ascending.

    Of more than 64 hops, empty rings at the end may be left out.

    Examples
    --------
    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], num_nodes=4)
    >>> [ring.tolist() for ring in hop_rings(path, 1, 3)]
    [[0, 2], [3], []]
    """
    start, hops = check_node("node", node, check_graph(graph).num_nodes), check_hops("hops", hops)
    seen = np.zeros(graph.num_nodes, dtype=bool)
    seen[start] = True
    ring = np.array([start])
    rings = []
    for hop in range(hops):
        if hop >= FEW_HOPS and not ring.size:  # nor will anything be further away
            break
        rows = [graph.indices[graph.indptr[u] : graph.indptr[u + 1]] for u in ring]
        reached = np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)
        ring = reached[~seen[reached]].astype(np.int64)
        seen[ring] = True
        rings.append(ring)
    return rings


def inspect_threshold(calibrated: Calibrated, node: int, alpha: float, threshold: float) -> dict[str, Any]:
    """Return what the threshold of a node follows from, by the names of `ThresholdInspection`."""
    # Where nodes are judged by their groups, the node's own group explains its threshold.
    judge: Calibrated = calibrated if calibrated.grouped is None else calibrated.grouped.judge(node, alpha)
    near = judge.local.thresholds(np.array([node]), judge.level.cuts([alpha]), threads=1)
    seen = _around(judge, node, threshold)
    level, total = judge.level.level(alpha), seen["total_mass"]
    return seen | {
        "node": node,
        "alpha": alpha,
        "threshold": threshold,
        "calibrates": bool(np.isin(node, calibrated.scored.calibration)),
        "needed_mass": level * (1.0 + total) if calibrated.is_exact else required_mass(total, alpha),
        "neighbourhood_support": int(near.support[0]),
        "neighbourhood_effective_size": float(near.effective_size[0]),
        "fell_back": bool(np.isinf(near.values[0, 0])),
        "level": level if calibrated.is_exact else None,
    }


def _around(calibrated: Calibrated, node: int, threshold: float) -> dict[str, Any]:
    """Return whose scores the threshold is a quantile of, with their weights; nobody where it is no quantile."""
    reference, local = calibrated.scored.reference, calibrated.local
    if isinstance(local, HopsLocal):
        found = _neighbours(local.reference, node, local.weighting(np.array([node])).hops, threshold)
        total = float(sum(row.mass for row in found["hops"]))
        reached = float(sum(row.weight * row.within for row in found["hops"]))
        return found | _with_pools(local, node, threshold, total, reached)
    if isinstance(local, PathLengthsLocal):
        found = _within_radius(local, node)
        weights = found["neighbour_weights"]
        reached = float(weights[found["neighbour_scores"] <= threshold].sum())
        return found | _with_pools(local, node, threshold, float(weights.sum()), reached)
    if isinstance(local, WeighedLocal):
        weighed = local.weights(node)
        return {
            "hops": (),
            "neighbours": weighed.nodes,
            "neighbour_hops": np.zeros(weighed.nodes.size, dtype=np.int64),
            "neighbour_weights": weighed.weights,
            "neighbour_scores": weighed.scores,
            "total_mass": float(weighed.weights.sum()),
            "reached_mass": float(weighed.weights[weighed.scores <= threshold].sum()),
            "is_quantile": True,
        }
    everyone = isinstance(calibrated.method.localiser, Everyone)
    others = np.flatnonzero((reference.nodes != node) & everyone)
    others = others[np.lexsort((reference.nodes[others], reference.scores[others]))]
    scores = reference.scores[others]
    return {
        "hops": (),
        "neighbours": reference.nodes[others],
        "neighbour_hops": np.zeros(others.size, dtype=np.int64),
        "neighbour_weights": np.ones(others.size),
        "neighbour_scores": scores,
        "total_mass": float(others.size),
        "reached_mass": float((scores <= threshold).sum()),
        "is_quantile": everyone,
    }


def _with_pools(
    local: HopsLocal | PathLengthsLocal, node: int, threshold: float, total: float, reached: float
) -> dict[str, Any]:
    """Add what all reference nodes weigh, and those alike, to the mass near by in all and up to the threshold."""
    setting, reference = local.localiser, local.reference
    pools = [(setting.pool, np.ones(reference.nodes.size, dtype=bool))]
    if setting.alike and reference.predicted is not None:
        pools.append((setting.alike, reference.predicted[reference.nodes] == reference.predicted[node]))
    parts = [_pooled(reference, node, weight, mine, threshold) for weight, mine in pools]
    total, reached = total + sum(part[0] for part in parts), reached + sum(part[1] for part in parts)
    return {"total_mass": total, "reached_mass": reached, "is_quantile": True}


def _within_radius(local: PathLengthsLocal, node: int) -> dict[str, Any]:
    """Return the parts of an inspection that come from the shortest paths around the node."""
    nodes, distances = local.near(node)
    scores = local.reference.index.sorted_scores[local.reference.index.numbers[nodes]]
    order = np.lexsort((nodes, scores))
    return {
        "hops": (),
        "neighbours": nodes[order],
        "neighbour_hops": np.zeros(nodes.size, dtype=np.int64),
        "neighbour_distances": distances[order],
        "neighbour_weights": local.weights(distances[order]),
        "neighbour_scores": scores[order],
    }


def _pooled(reference: Reference, node: int, weight: float, mine: BoolArray, threshold: float) -> tuple[float, float]:
    """Return what a group of reference nodes weighs that weighs `weight` together, in all and up to the threshold."""
    if not weight or not mine.any():
        return 0.0, 0.0
    others = mine & (reference.nodes != node)
    each = weight / int(mine.sum())
    return each * int(others.sum()), each * int((reference.scores[others] <= threshold).sum())


def _neighbours(reference: Reference, node: int, weights: FloatArray, threshold: float) -> dict[str, Any]:
    """Return the parts of an inspection that come from walking around the node."""
    index = reference.index
    rows, found, at = [], [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for hop, ring in enumerate(hop_rings(index.graph, node, weights.size), start=1):
        numbers = index.numbers[ring]
        calibrating = ring[numbers < index.sorted_scores.size]
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
        found.append(calibrating)
        at.append(np.full(calibrating.size, hop))
    nodes, hops = np.concatenate(found), np.concatenate(at)
    order = np.lexsort((nodes, index.sorted_scores[index.numbers[nodes]]))
    nodes, hops = nodes[order], hops[order]
    return {
        "hops": tuple(rows),
        "neighbours": nodes,
        "neighbour_hops": hops,
        "neighbour_weights": weights[hops - 1] if hops.size else np.empty(0),
        "neighbour_scores": index.sorted_scores[index.numbers[nodes]],
    }
