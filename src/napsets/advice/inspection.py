"""Why is this node's set, or interval, what it is: its neighbourhood by hop, the weights, the scores, the threshold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.advice.evidence import NodeEvidence, explainer_of
from napsets.advice.threshold import NodeInspection, inspect_threshold
from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, check_node
from napsets.checks.frames import find_nodes
from napsets.checks.values import Record, check_alpha, check_kind
from napsets.errors import InvalidInputError, NapsetsWarning, NotCalibratedError
from napsets.methods import Calibratable, Calibrated
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import BoundIntervals
from napsets.scores.base import of_labels


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SetInspection(NodeInspection):
    """Everything that determines one node's set; the threshold is explained in `NodeInspection`.

    Attributes
    ----------
    u : float
        The node's uniform number.
    probabilities, scores : numpy.ndarray
        Of each label.
    member : numpy.ndarray
        Which labels are in the set: those with a score of at most the threshold, and the best one where the set would
        be empty and the predictor does not allow that.
    label_thresholds : numpy.ndarray or None
        The threshold of each label, where each has its own; `threshold` is then the smallest.
    shifted : bool
        Whether labelled nodes are weighted by how much more common their class is among the nodes to predict.
    """

    everything: ClassVar[str] = "the set has every label"

    u: float
    probabilities: FloatArray
    scores: FloatArray
    member: BoolArray
    evidence: NodeEvidence | None = None
    label_thresholds: FloatArray | None = None
    shifted: bool = False

    @classmethod
    def own_parts(cls, calibrated: Calibrated, row: Any, neighbours: IntArray, evidence: Any) -> Record:
        """Return the labels' probabilities, scores and thresholds, and which of them are in the set."""
        node, bound = int(row.nodes[0]), of_labels(calibrated.score)
        parts: Record = {
            "u": float(calibrated.scored.u[node]),
            "probabilities": bound.probabilities[node].astype(np.float64),
            "scores": bound.matrix(row.nodes)[0],
            "member": row.member[0],
        }
        if row.label_thresholds is not None:
            parts |= {"label_thresholds": row.label_thresholds[0], "is_quantile": False}
        parts["shifted"] = getattr(calibrated.method.localiser, "by_label", False)
        return parts

    def _exception(self) -> str:
        """Return a note where a label is in the set for another reason than its score."""
        thresholds = self.threshold if self.label_thresholds is None else self.label_thresholds
        low = not self.member.any() or (self.scores <= thresholds).any()
        return "" if low else "No label's score is that low: the set contains the best label instead of being empty."

    def threshold_reason(self) -> str:
        """Explain the threshold, or the thresholds of the labels."""
        if self.label_thresholds is None:
            return super().threshold_reason()
        how = (
            "Labelled nodes are weighted by the ratio of their class, and a candidate by the ratio of its own"
            if self.shifted
            else "Each label is compared with the labelled nodes of its own group of labels"
        )
        return f"{how}: thresholds range from {self.label_thresholds.min():.4f} to {self.label_thresholds.max():.4f}."


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class IntervalInspection(NodeInspection):
    """Everything that determines one node's interval; the threshold is explained in `NodeInspection`.

    Attributes
    ----------
    lower, upper : float
        The ends of the interval.
    centre : float
        The best guess.
    columns : tuple of str
        What the model's outputs are: lower and upper, or prediction and maybe spread.
    model, outputs : numpy.ndarray
        The model's outputs and the terms of the interval: the same, unless targets of neighbours have shifted it.
    rule : str
        How outputs and threshold make an interval.
    smallest_score : float
        The score of the target that fits best.
    neighbour_targets : numpy.ndarray or None
        The targets of the neighbours; None if they are not known, as in a predictor read from a file.
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
    evidence: NodeEvidence | None = None

    @classmethod
    def own_parts(cls, calibrated: Calibrated, row: Any, neighbours: IntArray, evidence: Any) -> Record:
        """Return the ends, the model's outputs, and what the interval is computed from."""
        bound, node = calibrated.score, int(row.nodes[0])
        assert isinstance(bound, BoundIntervals)
        return {
            "lower": float(row.lower[0]),
            "upper": float(row.upper[0]),
            "centre": float(row.centre[0]),
            "columns": bound.score.columns,
            "model": bound.outputs[node] if evidence is None else evidence.model,
            "outputs": bound.outputs[node],
            "rule": bound.score.rule,
            "smallest_score": float(bound.at(row.nodes, row.centre)[0]),
            "neighbour_targets": _targets(calibrated, neighbours),
        }

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.upper - self.lower

    def _exception(self) -> str:
        """Return a note where no target's score is that low."""
        low = self.threshold >= self.smallest_score
        return "" if low else "No target's score is that low: the interval is the best guess alone."


#: How each kind of prediction is taken apart.
_INSPECTIONS: Mapping[type[Prediction], type[NodeInspection]] = {
    PredictionSets: SetInspection,
    PredictionIntervals: IntervalInspection,
}


def inspect_node(
    calibrated: Calibrated,
    node: ArrayLike | None = None,
    alpha: float | None = None,
    *,
    position: int | None = None,
) -> NodeInspection:
    """Explain the prediction of one node: its set of labels, or its interval of numbers.

    Parameters
    ----------
    calibrated : Calibrated
        What `calibrate` of a method returned.
    node : int or str
        The node, by the id that `calibrate` was given; without ids, its position.
    alpha : float, optional
        Error rate; by default the method's own.
    position : int, optional
        The node by its position 0..n−1, whatever its id.

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
    if isinstance(calibrated, Calibratable):
        raise NotCalibratedError("inspect_node needs a calibrated method: what its calibrate(...) returns")
    check_kind("calibrated", calibrated, Calibrated, hint="Pass what calibrate(...) of a method returns.")
    if (node is None) == (position is None):
        raise InvalidInputError("`node` must be given, or else its `position`; not both")
    if position is None:
        place = find_nodes("node", node, calibrated.scored.ids, hint="position=")
        place = check_node("node", place, calibrated.num_nodes)
    else:
        place = check_node("position", position, calibrated.num_nodes)
    rate = None if alpha is None else check_alpha(alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NapsetsWarning)  # `calibrates` says that the node is a calibration node
        prediction = calibrated.predict(positions=[place], alpha=rate, threads=1)
    explainer = explainer_of(calibrated)
    return inspect_row(calibrated, prediction, 0, None if explainer is None else explainer.of(place))


def inspect_row(
    calibrated: Calibrated, prediction: Prediction, row: int, evidence: NodeEvidence | None = None
) -> NodeInspection:
    """Explain one row of an existing prediction, without predicting again; nothing is checked."""
    this = prediction[row : row + 1]
    inspection = _INSPECTIONS[type(prediction)]
    parts = inspect_threshold(calibrated, int(this.nodes[0]), prediction.alpha, float(this.thresholds[0]))
    parts |= {"support": int(this.support[0]), "effective_size": float(this.effective_size[0]), "evidence": evidence}
    parts["ids"] = calibrated.scored.ids
    return inspection(**parts | inspection.own_parts(calibrated, this, parts["neighbours"], evidence))


def _targets(calibrated: Calibrated, nodes: IntArray) -> FloatArray:
    """Return the targets of some reference nodes."""
    of_node = np.full(calibrated.num_nodes, np.nan)
    of_node[calibrated.scored.reference.nodes] = calibrated.scored.labels
    return of_node[nodes]
