"""Why is this node's set, or interval, what it is: its neighbourhood by hop, the weights, the scores, the threshold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.advice.evidence import NodeEvidence, Witnesses
from napsets.advice.interval_evidence import IntervalEvidence, ResidualWitnesses
from napsets.advice.threshold import HopSummary, ThresholdInspection, hop_rings, inspect_threshold
from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, check_alpha, check_node
from napsets.errors import InvalidInputError, NapsetsWarning, NotCalibratedError
from napsets.methods import NAPS, Auto, Calibrated, RandomisedNAPS, SplitConformal
from napsets.scores.informed import evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals

__all__ = ["HopSummary", "IntervalInspection", "NodeInspection", "ThresholdInspection", "hop_rings", "inspect_node"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeInspection(ThresholdInspection):
    """Everything that one node's set follows from; what its threshold does is in `ThresholdInspection`.

    `member`, `threshold`, `support` and `effective_size` are what `predict` gives for the node, to the last bit.

    Attributes
    ----------
    u : float
        The node's uniform number.
    probabilities, scores : numpy.ndarray
        Of each label.
    member : numpy.ndarray
        Which labels are in the set: those with a score of at most the threshold, and the best one where the set would
        be empty and the predictor does not allow that.
    evidence : NodeEvidence or None
        What `probabilities` are made of, where the score takes the labels around a node as evidence.
    label_thresholds : numpy.ndarray or None
        The threshold of each label, where each has its own; `threshold` is then the smallest.
    """

    everything: ClassVar[str] = "the set has every label"

    u: float
    probabilities: FloatArray
    scores: FloatArray
    member: BoolArray
    evidence: NodeEvidence | None = None
    label_thresholds: FloatArray | None = None

    def reason(self) -> str:
        """Say where the threshold comes from, and where a label is in the set for another reason."""
        each = self.threshold if self.label_thresholds is None else self.label_thresholds
        if not self.member.any() or (self.scores <= each).any():
            return self.threshold_reason()
        return f"{self.threshold_reason()} No label's score is that low: the best label stands in for the empty set."

    def threshold_reason(self) -> str:
        """Say where the threshold comes from, or the thresholds of the labels."""
        if self.label_thresholds is None:
            return super().threshold_reason()
        return (
            f"Each label is judged by labelled nodes of its own group of labels: thresholds go from "
            f"{self.label_thresholds.min():.4f} to {self.label_thresholds.max():.4f}."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalInspection(ThresholdInspection):
    """Everything that one node's interval follows from; what its threshold does is in `ThresholdInspection`.

    `lower`, `upper`, `centre`, `threshold`, `support` and `effective_size` are what `predict` gives for the node, to
    the last bit.

    Attributes
    ----------
    lower, upper : float
        The ends of the interval.
    centre : float
        The best guess.
    columns : tuple of str
        What the model's outputs are: lower and upper, or prediction and maybe spread.
    model, outputs : numpy.ndarray
        What the model said, and what the interval is made of: the same, unless targets of neighbours have shifted it.
    rule : str
        How outputs and threshold make an interval.
    smallest_score : float
        The score of the target that fits best.
    neighbour_targets : numpy.ndarray or None
        The targets of the neighbours; None where they are not known any more, as in a predictor from a file.
    evidence : IntervalEvidence or None
        What `outputs` are made of, where the targets around a node have shifted them.
    """

    everything: ClassVar[str] = "the interval is the whole line"

    lower: float
    upper: float
    centre: float
    columns: tuple[str, ...]
    model: FloatArray
    outputs: FloatArray
    rule: str
    smallest_score: float
    neighbour_targets: FloatArray | None = None
    evidence: IntervalEvidence | None = None

    @property
    def width(self) -> float:
        """How far the ends are apart."""
        return self.upper - self.lower

    def reason(self) -> str:
        """Say where the threshold comes from, and where no target's score is that low."""
        if self.threshold >= self.smallest_score:
            return self.threshold_reason()
        return f"{self.threshold_reason()} No target's score is that low: the interval is the best guess alone."


def inspect_node(
    predictor: NAPS | SplitConformal | Auto | RandomisedNAPS | Calibrated, node: ArrayLike, alpha: float = 0.1
) -> NodeInspection | IntervalInspection:
    """Take apart the prediction of one node: its set of labels, or its interval of numbers.

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
    >>> naps = ns.NAPS(hops=1, score="absolute").calibrate(star, [5.0] * 4, [0, 4, 5, 7], calibration=[1, 2, 3])
    >>> seen = inspect_node(naps, 0, alpha=0.5)
    >>> round(seen.lower, 2), round(seen.upper, 2), seen.neighbour_targets.tolist()
    (4.0, 6.0, [5.0, 4.0, 7.0])
    """
    if not isinstance(predictor, NAPS | SplitConformal | Auto | RandomisedNAPS | Calibrated):
        raise InvalidInputError(
            f"`predictor` must be a NAPS or another calibrated method; got {type(predictor).__name__}"
        )
    if not isinstance(predictor, Calibrated) and predictor.calibrated_ is None:
        raise NotCalibratedError("inspect_node needs a predictor whose calibrate(...) was called")
    alpha = check_alpha(alpha)
    calibrated = predictor if isinstance(predictor, Calibrated) else predictor.calibrated()
    place = check_node("node", node, calibrated.num_nodes)
    return (_inspect_interval if calibrated.is_regression else _inspect_set)(calibrated, place, alpha)


def _inspect_set(calibrated: Calibrated, node: int, alpha: float) -> NodeInspection:
    sets = _predicted(calibrated, node, alpha)
    seen = inspect_threshold(calibrated, node, alpha, float(sets.thresholds[0]))
    if sets.label_thresholds is not None:
        seen["is_quantile"] = False
    return NodeInspection(
        u=float(calibrated.scored.u[node]),
        probabilities=calibrated.score.probabilities[node].astype(np.float64),
        scores=calibrated.score.matrix(np.array([node]))[0],
        member=sets.member[0],
        support=int(sets.support[0]),
        effective_size=float(sets.effective_size[0]),
        evidence=_evidence(calibrated, node),
        label_thresholds=None if sets.label_thresholds is None else sets.label_thresholds[0],
        **seen,
    )


def _inspect_interval(calibrated: Calibrated, node: int, alpha: float) -> IntervalInspection:
    found = _predicted(calibrated, node, alpha)
    seen = inspect_threshold(calibrated, node, alpha, float(found.thresholds[0]))
    bound: Any = calibrated.score
    evidence = None
    if isinstance(bound, BoundInformedIntervals) and calibrated.graph is not None:
        evidence = ResidualWitnesses(bound, calibrated.graph).of(node)
    return IntervalInspection(
        lower=float(found.lower[0]),
        upper=float(found.upper[0]),
        centre=float(found.centre[0]),
        columns=bound.score.columns,
        model=bound.outputs[node] if evidence is None else evidence.model,
        outputs=bound.outputs[node],
        rule=bound.score.rule,
        smallest_score=float(bound.at(np.array([node]), found.centre)[0]),
        support=int(found.support[0]),
        effective_size=float(found.effective_size[0]),
        neighbour_targets=_targets(calibrated, seen["neighbours"]),
        evidence=evidence,
        **seen,
    )


def _evidence(calibrated: Calibrated, node: int) -> NodeEvidence | None:
    """Return what the node's probabilities are made of, if more than the model spoke."""
    informed = evidence_of(calibrated.score)
    if informed is None or calibrated.graph is None:
        return None
    return Witnesses(informed, calibrated.graph).of(node)


def _targets(calibrated: Calibrated, nodes: IntArray) -> FloatArray | None:
    """Return the targets of some reference nodes, as far as they were kept."""
    scored, bound = calibrated.scored, calibrated.score
    known, targets = scored.reference.nodes, scored.labels
    if isinstance(bound, BoundInformedIntervals):  # which a file has, too
        known, targets = bound.reference.nodes, bound.reference.labels
    if targets.size != known.size:
        return None
    found = np.full(calibrated.num_nodes, np.nan)
    found[known] = targets
    return found[nodes]


def _predicted(calibrated: Calibrated, node: int, alpha: float) -> Any:
    """Return the very set, or interval, that is explained, whatever the method's settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)  # `calibrates` says that the node is a calibration node
        return calibrated.predict([node], alpha, threads=1)
