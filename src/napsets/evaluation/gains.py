"""What a method gains over the first one on the same nodes: smaller sets, narrower intervals, more even coverage.

The change of size is a ratio of means; its variance is that of the nodes, by linearisation, and that of the labels:
another draw of them would move coverage as the Beta law says, and sizes along each method's curve of size against
coverage. Intervals that are the whole line have no width: widths are compared where both methods' are finite, and how
many are not is compared by itself. Evenness is the mean distance of coverage from 1 − alpha over neighbourhoods (or,
where there are not two, fifths by degree), paired by group, with Student's law; what chance alone gives is the same for
all methods and cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.evaluation.gaps import CoverageGap
from napsets.evaluation.promises import level_labels
from napsets.levels import rank_place

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison, MethodResult

#: How often an interval misses.
MISS = 0.05


@dataclass(frozen=True)
class Interval:
    """A value with the ends of its 95 % interval; NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def below(self) -> bool:
        """Whether it is less than 0, by more than chance."""
        return self.high < 0.0

    @property
    def above(self) -> bool:
        """Whether it is more than 0, by more than chance."""
        return self.low > 0.0


def size_change(
    comparison: Comparison, result: MethodResult, miss: float = MISS, *, against: MethodResult | None = None
) -> Interval:
    """Return by which share a method's sets are larger (intervals wider) than the baseline's on the same nodes."""
    from scipy.special import ndtri

    plain = comparison.baseline if against is None else against
    if result.same_as(plain):
        return Interval(0.0, 0.0, 0.0)
    sizes, others = paired_sizes(result, plain)
    mean = float(others.mean()) if others.size else 0.0
    ratio = float(sizes.mean()) / mean if mean > 0 else math.nan
    if sizes.size < 2 or math.isnan(ratio):
        return Interval(ratio - 1.0)
    rest = (sizes - ratio * others) / mean
    variance = float(rest.var(ddof=1)) / rest.size
    # Another draw of labels moves both; as if by themselves, which is on the safe side where they share labels.
    variance += _of_labels(comparison, result) / mean**2
    variance += _of_labels(comparison, plain) * (ratio / mean) ** 2
    half = -float(ndtri(miss / 2)) * math.sqrt(variance)
    return Interval(ratio - 1.0, ratio - 1.0 - half, ratio - 1.0 + half)


def paired_sizes(result: MethodResult, other: MethodResult) -> tuple[FloatArray, FloatArray]:
    """Return the sizes of two methods' sets or intervals on the nodes where both are finite."""
    finite = np.isfinite(result.sizes) & np.isfinite(other.sizes)
    return result.sizes[finite].astype(np.float64), other.sizes[finite].astype(np.float64)


def endless_change(
    comparison: Comparison, result: MethodResult, miss: float = MISS, *, against: MethodResult | None = None
) -> Interval:
    """Return how much more often a method's interval is the whole line than the baseline's; never, where sets are."""
    from scipy.special import ndtri

    plain = comparison.baseline if against is None else against
    differences = np.isinf(result.sizes).astype(np.float64) - np.isinf(plain.sizes)
    return _mean_difference(differences, -float(ndtri(miss / 2)))


def _of_labels(comparison: Comparison, result: MethodResult) -> float:
    """Return the variance of a mean size over draws of labels: that of coverage, times the slope of size squared."""
    rates = np.array(comparison.alphas)
    if rates.size < 2:
        return 0.0
    near = np.sort(np.argsort(np.abs(rates - comparison.alpha), kind="stable")[:3])
    near = near[np.isfinite(result.curve_size[near])]  # at a small rate all intervals may be the whole line
    coverage, size = result.curve_coverage[near], result.curve_size[near]
    spread = coverage - coverage.mean() if near.size else np.zeros(0)
    if not (spread**2).sum():
        return 0.0
    slope = float((spread * size).sum() / (spread**2).sum())
    count = level_labels(result.calibrated)
    place = min(rank_place(count, comparison.alpha), count)
    mean = place / (count + 1)
    return slope**2 * mean * (1 - mean) / (count + 2)


def evenness(gap: CoverageGap, other: CoverageGap, miss: float = MISS) -> Interval:
    """Return by how much coverage in a group is further from 1 − alpha than another's, paired by group."""
    from scipy.special import stdtrit

    target = 1.0 - gap.alpha
    differences = np.abs(gap.coverage - target) - np.abs(other.coverage - target)
    if not differences.size:
        return Interval(math.nan)
    return _mean_difference(differences, -float(stdtrit(max(1, differences.size - 1), miss / 2)))


def _mean_difference(differences: FloatArray, quantile: float) -> Interval:
    """Return the mean of differences, with an interval where there are at least two."""
    mean = float(differences.mean())
    if differences.size < 2:
        return Interval(mean)
    half = quantile * float(differences.std(ddof=1)) / math.sqrt(differences.size)
    return Interval(mean, mean - half, mean + half)


def gaps_of(comparison: Comparison) -> tuple[str, list[CoverageGap]]:
    """Return over which groups evenness is looked at, and each method's coverage in them.

    They are the comparison's neighbourhoods, or fifths by degree where there are not two neighbourhoods to compare.
    """
    over = "neighbourhood" if len(comparison.partition) > 1 else "degree"
    return over, [result.gaps[over] for result in comparison]
