"""Scores of numbers, by a target's distance from the model's output, and the intervals of their thresholds.

For node regression. Localisers, levels and groups use only scores, so that all of them work as for labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    as_array,
    check_scores,
)
from napsets.checks.values import check_size
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.predictions import NodeThresholds, Prediction, PredictionIntervals
from napsets.scores.base import SCORES, Labelled

if TYPE_CHECKING:
    from napsets.scores.informed_intervals import InformedIntervals


class IntervalScore(ABC):
    """A score of numbers that uses only a node's own row of outputs.

    What users call checks its arguments here; three methods on rows that were checked make a score.
    """

    prediction: ClassVar[type[Prediction]] = PredictionIntervals
    #: What the columns of the model's outputs are.
    columns: ClassVar[tuple[str, ...]]
    #: Which columns are estimates of quantiles of the target, and of which: what evidence may shift.
    quantiles: ClassVar[dict[int, float]]
    #: The interval in words, with τ for the threshold.
    rule: ClassVar[str] = "the targets whose scores are at most τ"

    def at(self, outputs: ArrayLike, targets: ArrayLike) -> FloatArray:
        """Scores of the given targets, shape (nodes,)."""
        rows = self.check(outputs)
        return self._at(rows, _beside("targets", targets, rows))

    def interval(self, outputs: ArrayLike, thresholds: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval of targets with scores of at most the thresholds.

        An interval that would be empty is the one point whose score is smallest.
        """
        rows = self.check(outputs)
        return self._interval(rows, _beside("thresholds", thresholds, rows))

    def centre(self, outputs: ArrayLike) -> FloatArray:
        """Return the model's best guess."""
        return self._centre(self.check(outputs))

    @abstractmethod
    def _at(self, outputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Scores of the given targets."""

    @abstractmethod
    def _interval(self, outputs: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals."""

    @abstractmethod
    def _centre(self, outputs: FloatArray) -> FloatArray:
        """Return the best guesses."""

    def bind(
        self,
        outputs: AnyArray,
        u: FloatArray | None = None,
        graph: Graph | None = None,
        reference: Labelled | None = None,
    ) -> BoundIntervals:
        """Bind the score to the nodes; graph and reference labels are ignored."""
        return BoundIntervals(self, self.check(outputs))

    def informed(self, alpha: float) -> InformedIntervals:
        """Return the score whose intervals are shifted by the targets of labelled neighbours, for an error rate."""
        from napsets.scores.informed_intervals import InformedIntervals

        return InformedIntervals(self, low=min(alpha / 2.0, 0.499))

    def check(self, outputs: ArrayLike) -> FloatArray:
        """Check the outputs: numbers, with one column for each of `columns`."""
        array = as_array("outputs", outputs)
        if array.ndim == 1:
            array = array[:, None]
        named = " and ".join(self.columns)
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            raise InvalidInputError(
                f"`outputs` must have a column for each of {named} with {type(self).__name__}; got shape {array.shape}"
            )
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise InvalidInputError(f"`outputs` must hold finite numbers ({named}); got dtype {array.dtype}")
        check_size("outputs", array)
        return array.astype(np.float64, copy=False)


@SCORES.add("cqr")
@dataclass(frozen=True)
class CQR(IntervalScore):
    """Conformalised quantile regression (Romano, Patterson and Candès, NeurIPS 2019): S = max(q_lo − y, y − q_hi).

    The model gives two quantiles, one column each; if they cross, they are swapped. The interval is
    [q_lo − τ, q_hi + τ]: the model's own interval, made wider or narrower by τ on either side.
    """

    columns: ClassVar[tuple[str, ...]] = ("lower", "upper")
    quantiles: ClassVar[dict[int, float]] = {0: 0.05, 1: 0.95}
    rule: ClassVar[str] = "[lower − τ, upper + τ]"

    def _at(self, outputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Scores of the given targets: below 0 inside the quantiles."""
        low, high = outputs.min(axis=1), outputs.max(axis=1)
        scores: FloatArray = np.maximum(low - targets, targets - high)
        return scores

    def _interval(self, outputs: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return [q_lo − τ, q_hi + τ], or the middle of the quantiles if that is empty."""
        low, high = outputs.min(axis=1), outputs.max(axis=1)
        start, end = _outward(low, thresholds, high)
        empty, middle = start > end, self._centre(outputs)
        return np.where(empty, middle, start), np.where(empty, middle, end)

    def _centre(self, outputs: FloatArray) -> FloatArray:
        """Return the middle of the two quantiles."""
        middle: FloatArray = outputs.mean(axis=1)
        return middle


class Residual(IntervalScore):
    """S = |y − ŷ| / spread, with ŷ in the first column."""

    quantiles: ClassVar[dict[int, float]] = {0: 0.5}

    def spread(self, outputs: FloatArray) -> FloatArray:
        """Return the scale by which residuals are divided."""
        return np.ones(outputs.shape[0])

    def _at(self, outputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Scores of the given targets."""
        with np.errstate(over="ignore"):  # beside the smallest spreads, a residual is infinite
            return np.abs(targets - outputs[:, 0]) / self.spread(outputs)

    def _interval(self, outputs: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ŷ ± τ · spread."""
        with np.errstate(over="ignore"):
            reach = np.maximum(thresholds, 0.0) * self.spread(outputs)
        return _outward(outputs[:, 0], reach, outputs[:, 0])

    def _centre(self, outputs: FloatArray) -> FloatArray:
        """Return the prediction."""
        return outputs[:, 0]


@SCORES.add("absolute")
@dataclass(frozen=True)
class AbsoluteResidual(Residual):
    """S = |y − ŷ| (Papadopoulos et al., 2002; Lei et al., 2018): intervals ŷ ± τ, equally wide for equal τ."""

    columns: ClassVar[tuple[str, ...]] = ("prediction",)
    rule: ClassVar[str] = "prediction ± τ"


@SCORES.add("normalised")
@dataclass(frozen=True)
class NormalisedResidual(Residual):
    """S = |y − ŷ| / σ̂ (Papadopoulos et al., 2008): intervals ŷ ± τσ̂, wider where the model is less certain."""

    columns: ClassVar[tuple[str, ...]] = ("prediction", "spread")
    rule: ClassVar[str] = "prediction ± τ · spread"

    def spread(self, outputs: FloatArray) -> FloatArray:
        """Return the second column."""
        return outputs[:, 1]

    def check(self, outputs: ArrayLike) -> FloatArray:
        """Check the outputs, whose spreads must be above 0."""
        array = super().check(outputs)
        if array.size and not (array[:, 1] > 0).all():
            row = int((array[:, 1] <= 0).argmax())
            raise InvalidInputError(f"`outputs` must have spreads above 0; row {row} has {array[row, 1]:g}")
        return array


def _beside(name: str, value: object, outputs: FloatArray) -> FloatArray:
    """Return a number for each row of the outputs."""
    return check_scores(name, value, size=len(outputs), each="row of `outputs`")


def _outward(low: FloatArray, reach: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return low − reach and high + reach, rounded outward by a few units in the last place.

    A target whose score is the threshold belongs to the interval. The ends are rounded in another way than its
    score was, and whether it lies between them must not depend on rounding.
    """
    with np.errstate(invalid="ignore"):  # an infinite reach has no last digit
        below, above = (4 * np.spacing(np.abs(end) + np.abs(reach)) for end in (low, high))
    start, end = low - reach, high + reach
    return np.where(np.isfinite(start), start - below, start), np.where(np.isfinite(end), end + above, end)


@dataclass(frozen=True, eq=False)
class BoundIntervals(Sealed):
    """Rows of outputs, and the score of numbers that uses them."""

    score: IntervalScore
    outputs: FloatArray
    #: There are no classes, and so no probabilities of them.
    probabilities: ClassVar[None] = None
    num_labels: ClassVar[int] = 0

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(self.outputs.shape[0])

    def at(self, nodes: IntArray, truth: AnyArray) -> FloatArray:
        """Scores of the nodes at their targets."""
        scores: FloatArray = self.score._at(self.outputs[nodes], truth)
        return scores

    def predict(self, nodes: IntArray, thresholds: Sequence[NodeThresholds]) -> list[Prediction]:
        """Return the intervals for each of several thresholds."""
        return [self._intervals(nodes, node_thresholds) for node_thresholds in thresholds]

    def _intervals(self, nodes: IntArray, thresholds: NodeThresholds) -> PredictionIntervals:
        lower, upper = self.interval(nodes, thresholds.values)
        return PredictionIntervals.unchecked(
            nodes=nodes,
            lower=lower,
            upper=upper,
            thresholds=thresholds.values,
            support=thresholds.support,
            effective_size=thresholds.effective_size,
            alpha=thresholds.alpha,
            level=thresholds.level,
            centre=self.centre(nodes),
        )

    def size_at(self, nodes: IntArray) -> Callable[[float], float]:
        """Return the mean width of the nodes' intervals as a function of the threshold."""

        def mean_width(threshold: float) -> float:
            lower, upper = self.interval(nodes, np.full(nodes.size, threshold))
            return float((upper - lower).mean()) if nodes.size else 0.0

        return mean_width

    def interval(self, nodes: IntArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of the nodes' intervals."""
        ends: tuple[FloatArray, FloatArray] = self.score._interval(self.outputs[nodes], thresholds)
        return ends

    def centre(self, nodes: IntArray) -> FloatArray:
        """Return the best guess for each node."""
        guesses: FloatArray = self.score._centre(self.outputs[nodes])
        return guesses
