"""PredictionIntervals: an interval for the number of each of some nodes, with the numbers that explain it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, overload

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    check_row_count,
    sealed,
)
from napsets.checks.values import check_size
from napsets.errors import InvalidInputError, imported
from napsets.predictions.prediction import Prediction
from napsets.predictions.summary import IntervalsSummary

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, eq=False, repr=False)
class PredictionIntervals(Prediction):
    """An interval for the number of each of some nodes. Writable arrays are copied.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, in the order in which they were passed.
    lower, upper : numpy.ndarray
        The ends, which belong to the interval; −∞ and +∞ where the threshold is +∞.
    thresholds, support, effective_size, alpha, num_nodes, level, ids
        As in `PredictionSets`.
    centre : numpy.ndarray, optional
        The best guess for each node.

    Examples
    --------
    >>> intervals = PredictionIntervals([4, 2], [0.0, 1.0], [2.0, np.inf], [1.0, np.inf], [30, 3], [30.0, 3.0], 0.1)
    >>> intervals[0], intervals.infinite, intervals.contains([1.5, 0.5], per="set").tolist()
    ((0.0, 2.0), 1, [True, False])
    """

    task: ClassVar[Literal["classification", "regression"]] = "regression"
    noun: ClassVar[str] = "interval"
    size_name: ClassVar[str] = "width"
    truth_name: ClassVar[str] = "targets"
    outputs_name: ClassVar[str] = "outputs"
    truth_column: ClassVar[str] = "target"
    unknown: ClassVar[float] = math.nan
    endless: ClassVar[str] = "whole line"
    shown: ClassVar[tuple[str, ...]] = ("node", "lower", "upper", "threshold", "support")

    nodes: IntArray
    lower: FloatArray
    upper: FloatArray
    thresholds: FloatArray
    support: IntArray
    effective_size: FloatArray
    alpha: float
    num_nodes: int | None = None
    level: float | None = None
    ids: AnyArray | None = None
    centre: FloatArray | None = None

    def __post_init__(self) -> None:
        self.check_rows()
        for name in ("lower", "upper", "thresholds", "support", "effective_size"):
            self.check_column(name)
        if self.centre is not None:
            self.check_column("centre")
        if (self.lower > self.upper).any():
            row = int((self.lower > self.upper).argmax())
            raise InvalidInputError(
                f"`lower` must be at most `upper`; row {row} goes from {self.lower[row]:g} to {self.upper[row]:g}"
            )

    @classmethod
    def check_outputs(cls, outputs: ArrayLike, *, num_nodes: int | None = None) -> AnyArray:
        """Check numbers, one row per node; the score checks their columns."""
        rows = as_array("outputs", outputs)
        if rows.ndim not in (1, 2) or rows.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"`outputs` must be numbers, one row per node; got {rows.dtype} of shape {rows.shape}"
            )
        if num_nodes is not None:
            check_row_count("outputs", rows, num_nodes)
        return rows

    @classmethod
    def check_truth(cls, truth: ArrayLike, outputs: AnyArray) -> FloatArray:
        """Check numbers, NaN where unknown."""
        y = as_array("targets", truth)
        if y.shape != (outputs.shape[0],) or y.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"`targets` must be numbers, one per node, {outputs.shape[0]}; got {y.dtype} of shape {y.shape}"
            )
        check_size("targets", y)
        return y.astype(np.float64)

    @classmethod
    def known(cls, truth: AnyArray) -> BoolArray:
        """Mark the targets that are known: finite numbers."""
        known: BoolArray = np.isfinite(truth)
        return known

    @classmethod
    def size_text(cls, size: float) -> str:
        """Return a width as it is written: three digits, or all before the point.

        Examples
        --------
        >>> [PredictionIntervals.size_text(width) for width in (4.7812, 0.00123, 12345.6, 1e300, math.inf)]
        ['4.78', '0.00123', '12,346', '1e+300', '∞']
        """
        if math.isnan(size):
            return "–"
        if math.isinf(size):
            return "∞"
        return f"{size:,.0f}" if 1000 <= abs(size) < 1e9 else f"{size:.3g}"

    @classmethod
    def of_size(cls, size: float) -> str:
        """Return the average width in words; NaN where no interval is finite."""
        return "no interval is finite" if math.isnan(size) else super().of_size(size)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, which: int | np.integer | str) -> tuple[float, float]: ...

        @overload
        def __getitem__(self, which: slice | Sequence[int] | AnyArray) -> PredictionIntervals: ...

        def __getitem__(self, which: object) -> object: ...

    def one(self, row: int) -> tuple[float, float]:
        """Return the ends of one interval."""
        return float(self.lower[row]), float(self.upper[row])

    @cached_property
    def widths(self) -> FloatArray:
        """Width of each interval."""
        with np.errstate(over="ignore"):  # wider than the largest number
            return sealed(self.upper - self.lower)

    @property
    def sizes(self) -> FloatArray:
        """Width of each interval."""
        return self.widths

    def summary(self) -> IntervalsSummary:
        """Return the intervals in numbers: their widths, and how many lack support."""
        finite = self.widths[np.isfinite(self.widths)]
        return IntervalsSummary(
            len(self), finite.size, float(finite.sum()), len(self) - finite.size, int((self.support == 0).sum())
        )

    def contains_own(self, truth: AnyArray) -> BoolArray:
        """Whether each interval contains its node's target, one entry per interval; nothing is checked."""
        inside: BoolArray = (self.lower <= truth) & (truth <= self.upper)
        return inside

    def same_as(self, other: object) -> bool:
        """Whether other intervals have identical ends."""
        return (
            isinstance(other, PredictionIntervals)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def _as_truth(self, truth: ArrayLike) -> AnyArray:
        y = as_array("targets", truth)
        if y.dtype.kind not in "fiu" or y.ndim != 1:
            raise InvalidInputError(f"`targets` must be numbers, one per node; got {y.dtype} of shape {y.shape}")
        return y

    def _check_own(self, truth: AnyArray) -> FloatArray:
        if np.isnan(truth).any():
            row = int(np.isnan(truth).argmax())
            raise InvalidInputError(
                f"`targets` must be known where there is an interval; node {self.nodes[row]} has NaN"
            )
        return truth.astype(np.float64, copy=False)

    # -- tables ------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pyarrow.Table:
        """Return a PyArrow table: node, lower, upper, width, threshold, support, effective_size, alpha."""
        pa = imported("pyarrow", "cli")
        columns = {
            "node": self.node_column(),
            "lower": pa.array(self.lower, pa.float64()),
            "upper": pa.array(self.upper, pa.float64()),
            "width": pa.array(self.widths, pa.float64()),
            "threshold": pa.array(self.thresholds, pa.float64()),
            "support": pa.array(self.support, pa.int64()),
            "effective_size": pa.array(self.effective_size, pa.float64()),
            "alpha": pa.array(np.full(len(self), self.alpha)),
        }
        if self.centre is not None:
            columns["prediction"] = pa.array(self.centre, pa.float64())
        return pa.table(columns)

    # -- for people --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not len(self):
            return f"PredictionIntervals(no nodes, alpha={self.alpha:g})"
        finite = self.widths[np.isfinite(self.widths)]
        width = f"mean width {finite.mean():.4g}" if finite.size else "none of finite width"
        return (
            f"PredictionIntervals({len(self):,} nodes, alpha={self.alpha:g}: {width}, {self.infinite:,} with too "
            f"little support)"
        )

    def html_cells(self, row: int) -> tuple[str, ...]:
        """Return ends, threshold and support of one row, for notebooks."""
        numbers = (self.lower[row], self.upper[row], self.thresholds[row])
        return (*(f"{value:.4g}".replace("inf", "∞") for value in numbers), f"{self.support[row]:,}")
