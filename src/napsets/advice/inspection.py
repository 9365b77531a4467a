"""Why is this node's set what it is: its neighbourhood by hop, the weights, the scores, the threshold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.advice.evidence import NodeEvidence, Witnesses
from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, check_alpha, check_hops, check_node
from napsets.errors import InvalidInputError, NapsetsWarning, NotCalibratedError
from napsets.graph import Graph, check_graph
from napsets.kernels.layout import FEW_HOPS
from napsets.localisers import Everyone, HopsLocal, PathLengthsLocal, Reference, WeighedLocal
from napsets.methods import NAPS, Auto, Calibrated, RandomisedNAPS, SplitConformal
from napsets.quantile import required_mass
from napsets.scores.informed import evidence_of
from napsets.sets import PredictionSets

__all__ = ["HopSummary", "NodeInspection", "hop_rings", "inspect_node"]


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


@dataclass(frozen=True, eq=False)
class NodeInspection:
    """Everything that one node's set follows from.

    `member`, `threshold`, `support` and `effective_size` are what `predict` gives for the node, to the last bit.

    Attributes
    ----------
    node : int
        The node.
    alpha : float
        Error rate.
    u : float
        The node's uniform number.
    probabilities, scores : numpy.ndarray
        Of each label.
    member : numpy.ndarray
        Which labels are in the set: those with a score of at most the threshold, and the best one where the set would
        be empty and the predictor does not allow that.
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
    evidence : NodeEvidence or None
        What `probabilities` are made of, where the score takes the labels around a node as evidence.
    label_thresholds : numpy.ndarray or None
        The threshold of each label, where each has its own; `threshold` is then the smallest.
    neighbour_distances : numpy.ndarray or None
        Where neighbours count by the length of paths, how far they are; there are no hops then.
    """

    node: int
    alpha: float
    u: float
    probabilities: FloatArray
    scores: FloatArray
    member: BoolArray
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
    evidence: NodeEvidence | None = None
    label_thresholds: FloatArray | None = None
    neighbour_distances: FloatArray | None = None

    def nearest(self, count: int) -> IntArray:
        """Return which `neighbours` have the scores nearest to the threshold, ascending; the largest, where it is ∞."""
        scores = self.neighbour_scores
        distance = np.abs(scores - self.threshold) if np.isfinite(self.threshold) else -scores
        return np.sort(distance.argsort(kind="stable")[:count])

    def reason(self) -> str:
        """Say where the threshold comes from, and where a label is in the set for another reason."""
        each = self.threshold if self.label_thresholds is None else self.label_thresholds
        if not self.member.any() or (self.scores <= each).any():
            return self._threshold_reason()
        return f"{self._threshold_reason()} No label's score is that low: the best label stands in for the empty set."

    def _threshold_reason(self) -> str:
        if self.label_thresholds is not None:
            return (
                f"Each label is judged by labelled nodes of its own group of labels: thresholds go from "
                f"{self.label_thresholds.min():.4f} to {self.label_thresholds.max():.4f}."
            )
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
        if self.neighbourhood_support == 0:
            start = "No calibration node is in reach, so there is nothing to calibrate on"
        elif self.fell_back:
            start = (
                f"The {self.neighbourhood_support} calibration nodes in reach weigh {self.total_mass:.4g} together; a "
                f"threshold needs (1−α)(1+Σw) = {self.needed_mass:.4g}, which they cannot reach"
            )
        else:
            return (
                f"The threshold {self.threshold:.4f} is the smallest score at which the calibration nodes in reach "
                f"gather {self.needed_mass:.4g} = (1−α)(1+Σw) of their weight {self.total_mass:.4g}; up to it they "
                f"weigh {self.reached_mass:.4g}."
            )
        if np.isinf(self.threshold):
            return f"{start}: the threshold is ∞ and the set has every label."
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


def inspect_node(
    predictor: NAPS | SplitConformal | Auto | RandomisedNAPS | Calibrated, node: ArrayLike, alpha: float = 0.1
) -> NodeInspection:
    """Take apart the prediction of one node.

    Parameters
    ----------
    predictor : NAPS, SplitConformal, Auto, RandomisedNAPS or Calibrated
        A calibrated predictor, or what `Method.calibrate` gave.
    node : int
        The node.
    alpha : float
        Error rate.

    Examples
    --------
    >>> import napsets as ns
    >>> star = ns.Graph.from_edge_index([[0, 0, 0], [1, 2, 3]], num_nodes=4)
    >>> naps = ns.NAPS(hops=1, score=ns.THR()).calibrate(star, [[0.8, 0.2]] * 4, [0, 0, 0, 1], calibration=[1, 2, 3])
    >>> seen = inspect_node(naps, 0, alpha=0.5)
    >>> seen.support, round(seen.threshold, 2), seen.hops[0].within
    (3, 0.2, 2)
    """
    if not isinstance(predictor, NAPS | SplitConformal | Auto | RandomisedNAPS | Calibrated):
        raise InvalidInputError(
            f"`predictor` must be a NAPS or another calibrated method; got {type(predictor).__name__}"
        )
    if not isinstance(predictor, Calibrated) and predictor.calibrated_ is None:
        raise NotCalibratedError("inspect_node needs a predictor whose calibrate(...) was called")
    alpha = check_alpha(alpha)
    calibrated = predictor if isinstance(predictor, Calibrated) else predictor.calibrated()
    if calibrated.is_regression:
        raise InvalidInputError("`predictor` must be one of labels; intervals of numbers cannot be taken apart yet")
    chosen = np.array([check_node("node", node, calibrated.num_nodes)])
    sets = _predicted(calibrated, chosen, alpha)
    # Where nodes are judged by their groups, the node's own group explains its threshold.
    judge: Calibrated = calibrated if calibrated.grouped is None else calibrated.grouped.judge(int(chosen[0]), alpha)
    around = judge.local.thresholds(chosen, judge.level.cuts([alpha]), threads=1)
    threshold = float(sets.thresholds[0])
    seen = _around(judge, int(chosen[0]), threshold)
    if sets.label_thresholds is not None:
        seen["is_quantile"] = False
    level = judge.level.level(alpha)
    total = seen["total_mass"]
    return NodeInspection(
        node=int(chosen[0]),
        alpha=alpha,
        u=float(calibrated.scored.u[chosen[0]]),
        probabilities=calibrated.score.probabilities[chosen[0]].astype(np.float64),
        scores=calibrated.score.matrix(chosen)[0],
        member=sets.member[0],
        threshold=threshold,
        support=int(sets.support[0]),
        effective_size=float(sets.effective_size[0]),
        calibrates=bool(np.isin(chosen, calibrated.scored.calibration)[0]),
        needed_mass=level * (1.0 + total) if calibrated.is_exact else required_mass(total, alpha),
        neighbourhood_support=int(around.support[0]),
        neighbourhood_effective_size=float(around.effective_size[0]),
        fell_back=bool(np.isinf(around.values[0, 0])),
        level=level if calibrated.is_exact else None,
        evidence=_evidence(calibrated, int(chosen[0])),
        label_thresholds=None if sets.label_thresholds is None else sets.label_thresholds[0],
        **seen,
    )


def _evidence(calibrated: Calibrated, node: int) -> NodeEvidence | None:
    """Return what the node's probabilities are made of, if more than the model spoke."""
    informed = evidence_of(calibrated.score)
    if informed is None or calibrated.graph is None:
        return None
    return Witnesses(informed, calibrated.graph).of(node)


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


def _predicted(calibrated: Calibrated, node: IntArray, alpha: float) -> PredictionSets:
    """Return the very set that is explained, whatever the method's settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)  # `calibrates` says that the node is a calibration node
        return calibrated.predict(node, alpha, threads=1)


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
