"""The gain of one method over another on the same nodes, with intervals, and the rule that picks a method.

The change of size is a ratio of means; its variance is that of the nodes, by linearisation, and that of the labels:
another draw of them would move coverage as the Beta law says, and sizes along each method's curve of size against
coverage. Intervals that are the whole line have no width: widths are compared where both methods' are finite, and how
many are not is compared by itself. Evenness is by how much coverage falls short of 1 − alpha, averaged over
neighbourhoods (or, where there are not two, fifths by degree), paired by group, with Student's law; what chance alone
gives is the same for all methods and cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.evaluation.findings import SHORT
from napsets.evaluation.gaps import CoverageGap
from napsets.evaluation.results import Comparison, MethodResult
from napsets.levels import falls_short, rank_place

#: Neighbourhoods from which on evenness is measured over them.
_ENOUGH = 5
#: How often an interval misses.
MISS = 0.05
#: A method may leave groups this share of alpha shorter of the target than the baseline, where its sets are smaller.
_TOLERATED = 0.1


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


@dataclass(frozen=True)
class Alternative:
    """Another method beside the one to use."""

    #: Its name in the table of methods, and what tables call it.
    method: str
    title: str
    size: float  #: The average size of its sets, or width of its intervals.
    change: Interval = field(default_factory=Interval)  #: By which share they are larger than those of the method.
    under: float = math.nan  #: How far its coverage falls short of 1 − alpha in a group, on average.
    evenness: Interval = field(default_factory=Interval)  #: `under` less that of the method to use.


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
    """Return the rate of whole lines of a method less that of the baseline; 0 for sets."""
    from scipy.special import ndtri

    plain = comparison.baseline if against is None else against
    differences = np.isinf(result.sizes).astype(np.float64) - np.isinf(plain.sizes)
    return _mean_difference(differences, -float(ndtri(miss / 2)))


def _of_labels(comparison: Comparison, result: MethodResult) -> float:
    """Return the variance of a mean size over draws of labels: that of coverage, times the slope of size squared."""
    count = result.calibrated.level_size
    place = min(rank_place(count, comparison.alpha), count)
    mean = place / (count + 1)
    return result.slope**2 * mean * (1 - mean) / (count + 2)


def evenness(gap: CoverageGap, other: CoverageGap, miss: float = MISS) -> Interval:
    """Return the mean shortfall of coverage in a group less that of another method, paired by group.

    Coverage beyond 1 − alpha is not unevenness: it costs size, and size is compared by itself.
    """
    from scipy.special import stdtrit

    target = 1.0 - gap.alpha
    differences = np.maximum(target - gap.coverage, 0.0) - np.maximum(target - other.coverage, 0.0)
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
    """Return the kind of groups over which evenness is measured, and each method's coverage in them.

    They are the comparison's neighbourhoods, or fifths by degree where there are too few neighbourhoods to compare.
    """
    over = "neighbourhood" if len(comparison.partition) >= _ENOUGH else "degree"
    return over, [result.gaps[over] for result in comparison]


def rates_around(alpha: float) -> tuple[float, float, float]:
    """Return the error rates at which the slope of size against coverage is measured."""
    return round(0.75 * alpha, 12), alpha, round(min(1.5 * alpha, 0.5 * (1.0 + alpha)), 12)


def slope_of(curves: Mapping[str, FloatArray], rows: list[int]) -> float:
    """Return the growth of the average size per unit of coverage, by least squares; 0 where nothing is known."""
    coverage, size = curves["coverage"][rows], curves["size"][rows]
    finite = np.isfinite(size)  # at a small rate all intervals may be the whole line
    spread = coverage[finite] - coverage[finite].mean() if finite.any() else np.zeros(0)
    squares = float((spread**2).sum())
    return float((spread * size[finite]).sum()) / squares if squares else 0.0


# -- which method is better -------------------------------------------------------------------------------------------


def baseline_of(comparison: Comparison, m: int) -> int:
    """Return the place of the method without the graph that a method is compared with.

    It is the first one; for a method that prefers small sets it is split THR, whose sets are small too.
    """
    if getattr(comparison.results[m].calibrated.choice, "prefer", "") != "small":
        return 0
    names = [result.name for result in comparison]
    return names.index("thr") if "thr" in names else 0


def pick(comparison: Comparison, gaps: Sequence[CoverageGap], covers: Sequence[int]) -> tuple[int, int]:
    """Pick a method: the number of rivals among which judged labels picked (0 where they did not), and its place."""
    results, rivals = comparison.results, len(comparison) - 1
    for m in covers:
        if results[m].calibrated.choice is not None and (m == 0 or _is_better(comparison, gaps, m)):
            return 0, m
    if covers and 0 not in covers:
        return rivals, min(covers, key=lambda m: results[m].size)
    better = {m: _is_better(comparison, gaps, m, MISS / max(rivals, 1)) for m in covers if m > 0}
    smaller = [m for m, how in better.items() if how == "smaller"]
    if smaller:
        return rivals, min(smaller, key=lambda m: results[m].size)
    evener = [m for m, how in better.items() if how == "more even"]
    return rivals, min(evener, key=lambda m: gaps[m].under, default=0)


def _is_better(comparison: Comparison, gaps: Sequence[CoverageGap], m: int, miss: float = MISS) -> str:
    """Return the respect in which a method is clearly better than its baseline, and not clearly worse in the other."""
    against = baseline_of(comparison, m)
    result, baseline = comparison.results[m], comparison.results[against]
    even = evenness(gaps[m], gaps[against], miss)
    change = size_change(comparison, result, miss, against=baseline)
    endless = endless_change(comparison, result, miss, against=baseline)
    less_even = even.low > _TOLERATED * comparison.alpha
    if change.below and not (endless.above or less_even):
        return "smaller"
    return "more even" if even.below and not (change.above or endless.above) else ""


def is_short(result: MethodResult, alpha: float) -> bool:
    """Whether a method covers less than chance would explain."""
    return falls_short(result.hits, result.nodes, result.calibrated.level_size, alpha) < SHORT


def plain_alternative(
    comparison: Comparison, gaps: Sequence[CoverageGap], best: int, against: int
) -> Alternative | None:
    """Return the second method without the graph, if one was compared: split THR in addition to split APS."""
    for m, result in enumerate(comparison):
        if result.name in ("split", "thr") and m not in (best, against):
            return Alternative(result.name, result.title, result.size, under=gaps[m].under)
    return None


def smallest_alternative(
    comparison: Comparison, gaps: Sequence[CoverageGap], covers: Sequence[int], best: int
) -> Alternative | None:
    """Return the method of the smallest sets, if they are clearly smaller than those of the method to use."""
    miss = MISS / max(len(comparison) - 1, 1)
    against = comparison.results[best]
    m = min(covers, key=lambda m: comparison.results[m].size, default=best)
    result = comparison.results[m]
    change = size_change(comparison, result, miss, against=against)
    if m == best or not change.below or endless_change(comparison, result, miss, against=against).above:
        return None
    even = evenness(gaps[m], gaps[best], miss)
    return Alternative(result.name, result.title, result.size, change, gaps[m].under, even)
