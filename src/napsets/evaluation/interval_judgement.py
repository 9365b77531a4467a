"""What intervals are worth: coverage, width and evenness, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, check_kind
from napsets.evaluation.gaps import coverage_gap
from napsets.evaluation.judgement import Judged, check_groups, judge_coverage
from napsets.evaluation.metrics import mean_width
from napsets.groups import by_quantiles
from napsets.intervals import PredictionIntervals
from napsets.sets import Per

__all__ = ["IntervalJudgement", "judge_intervals", "mean_and_error"]

#: Groups of intervals by their width.
_FIFTHS = 5
#: Widths that differ by a smaller share are rounded in another way, and no wider.
_DIGITS = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalJudgement(Judged):
    """What intervals are worth: what a `Judged` has, and what only intervals have.

    Attributes
    ----------
    mean_width, mean_width_se : float
        The mean width, infinite where one interval is, and its standard error, as if nodes were independent; NaN for a
        single node, or where the mean is infinite.
    median_width : float
        Half of the intervals are at most so wide; infinite where most are the whole line.
    finite_width : float
        The mean width of the finite intervals; NaN where there is none.
    infinite_rate : float
        The share of intervals that are the whole line.
    point_rate : float
        The share that are a single point, because even the smallest score is above the threshold.
    """

    metrics: ClassVar[tuple[str, ...]] = (
        "nodes", "coverage", "coverage_se", "mean_width", "mean_width_se", "median_width", "finite_width",
        "infinite_rate", "point_rate", "pccv", "pccv_chance", "infinite",
    )  # fmt: skip

    mean_width: float
    mean_width_se: float
    median_width: float
    finite_width: float
    infinite_rate: float
    point_rate: float


def judge_intervals(
    intervals: PredictionIntervals,
    targets: ArrayLike,
    *,
    partition: Sequence[ArrayLike] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    per: Per = "node",
) -> IntervalJudgement:
    """Judge intervals by targets that did not help to make them.

    Gaps stand over `groups`, and over "width": fifths of the intervals by their own width, the widest last.

    Parameters
    ----------
    intervals, targets, per
        As in `coverage`.
    partition : sequence of arrays, optional
        As in `pccv`.
    groups : mapping, optional
        Groupings by name, each as in `coverage_gap`.
    """
    check_kind("intervals", intervals, PredictionIntervals, way="NAPS(score='cqr').predict gives one.")
    widths, own = intervals.widths, check_groups(groups)
    found = judge_coverage(intervals, targets, partition=partition, groups=own, per=per)
    if "width" not in own:
        y = intervals.own_labels(targets, per=per)
        fifths = by_quantiles(widths.astype(np.float32), _FIFTHS)  # the last digits make no group
        found["gaps"]["width"] = coverage_gap(intervals, y, fifths, per="set")
    finite = np.isfinite(widths)
    mean, error = mean_and_error(widths)
    return IntervalJudgement(
        **found,
        mean_width=mean_width(intervals),
        mean_width_se=error if math.isfinite(mean) else math.nan,
        median_width=float(np.median(widths)) if widths.size else math.nan,
        finite_width=mean_and_error(widths[finite])[0],
        infinite_rate=float((~finite).mean()) if widths.size else math.nan,
        point_rate=float((widths == 0.0).mean()) if widths.size else math.nan,
    )


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean and its standard error, as if values were independent; NaN where there are too few.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    if not values.size:
        return math.nan, math.nan
    mean = float(values.mean())
    if values.size < 2 or not math.isfinite(mean):
        return mean, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean, error if error > _DIGITS * abs(mean) else 0.0
