"""Judgement: all metrics of predictions with standard errors, and what one method gains over the first.

The change of size is a ratio of means; its variance is that of the nodes, by linearisation, and that of the labels:
another draw of them would move coverage as the Beta law says, and sizes along each method's curve of size against
coverage. Intervals that are the whole line have no width: widths are compared where both methods' are finite, and how
many are not is compared by itself. Evenness is by how much coverage falls short of 1 − alpha, averaged over
neighbourhoods (or, where there are not two, fifths by degree), paired by group, with Student's law; what chance alone
gives is the same for all methods and cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, check_integers
from napsets.checks.values import Record, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import CoverageGap, gap_within
from napsets.evaluation.kinds import SETS, Strata, kind_of
from napsets.evaluation.metrics import mean
from napsets.evaluation.promise import level_labels
from napsets.levels import rank_place
from napsets.predictions import Prediction

if TYPE_CHECKING:
    from napsets.evaluation.results import Comparison, MethodResult


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


#: Names of the metrics of sets that are one number, in the order of a row.
METRICS = SETS.metrics


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """The metrics of predictions.

    Attributes
    ----------
    metrics : tuple of str
        Names of what is one number, in the order of a row.
    nodes : int
        How many sets, or intervals, were judged.
    coverage, pccv : float
        The metrics of the same names; PCCV is NaN where there was no partition.
    coverage_se : float
        Binomial standard error of the coverage, as if nodes were independent.
    pccv_chance : float
        What PCCV would be on average if every row covered with probability 1 − alpha: of many small neighbourhoods one
        is always far off.
    infinite : int
        Nodes whose threshold is +∞, because their neighbourhood has too little mass.
    measures : mapping
        The metrics that only this kind of prediction has; each can also be read as an attribute.

        Of sets: `mean_size`, `size_given_coverage`, `sscv`, `singleton_rate`, `empty_rate` and `full_rate` are the
        metrics of the same names, and `mean_size_se` is the standard error of the mean size, as if nodes were
        independent; NaN for a single node.

        Of intervals: `mean_width` is the mean width, infinite where one interval is, and `mean_width_se` its standard
        error, NaN for a single node or where the mean is infinite; half of the intervals are at most `median_width`
        wide; `finite_width` is the mean width of the finite intervals, NaN where there is none; `infinite_rate` is the
        share of intervals that are the whole line, and `point_rate` the share that are a single point, because even the
        smallest score is above the threshold.
    gaps : mapping
        How far coverage is from 1 − alpha within groups, compared with chance, by the name of the grouping.
    """

    metrics: tuple[str, ...]
    nodes: int
    coverage: float
    coverage_se: float
    pccv: float
    pccv_chance: float
    infinite: int
    measures: Mapping[str, float]
    gaps: Mapping[str, CoverageGap] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["measures"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def row(self) -> Record:
        """Return the metrics by name, for tables and JSON: gaps as ``gap_class``, ``chance_class`` and so on."""
        values = {name: getattr(self, name) for name in self.metrics}
        for kind, gap in self.gaps.items():
            values |= {f"{name}_{kind}": value for name, value in gap.row().items()}
        return values


def judge_rows(
    prediction: Prediction,
    own: AnyArray,
    *,
    strata: Strata | None,
    neighbourhoods: IntArray | None,
    groups: Mapping[str, AnyArray],
) -> Judgement:
    """Judge predictions by what was checked: the truth, the neighbourhood of PCCV and the groups of each row."""
    kind, alpha, count = kind_of(type(prediction)), prediction.alpha, len(prediction)
    covered = prediction.contains_own(own)
    share = mean(covered)
    over = None if neighbourhoods is None else gap_within(covered, neighbourhoods, alpha)
    groupings = dict(groups)
    for name, group in kind.own_groups(prediction).items():
        groupings.setdefault(name, group)
    return Judgement(
        metrics=kind.metrics,
        nodes=count,
        coverage=share,
        coverage_se=math.sqrt(share * (1.0 - share) / count) if count else math.nan,
        pccv=math.nan if over is None else over.worst,
        pccv_chance=math.nan if over is None else over.worst_chance,
        infinite=prediction.infinite,
        measures=kind.measures(prediction, covered, strata),
        gaps={name: gap_within(covered, group, alpha) for name, group in groupings.items()},
    )


def check_groups(groups: object) -> dict[str, ArrayLike]:
    """Return groupings by name, none for None; refuse what is not a mapping: an array alone has no name."""
    if groups is None:
        return {}
    named = check_kind("groups", groups, Mapping, way="Write groups={'region': regions}.")  # type: ignore[type-abstract]
    for name in named:
        if not isinstance(name, str):
            raise InvalidInputError(f"`groups` must map names to arrays; got {shown(name)} for a name")
    return dict(named)


def halves(nodes: ArrayLike, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Split labelled nodes at random into those that calibrate and those that judge; no label does both.

    Parameters
    ----------
    nodes : array of integers
        The nodes, at least two.
    seed : int
        Seed of the split.

    Examples
    --------
    >>> calibration, judged = halves([0, 1, 2, 3, 4])
    >>> calibration.size, judged.size
    (2, 3)
    """
    labelled = check_integers("nodes", nodes)
    if labelled.size < 2:
        raise InvalidInputError(
            f"at least two labelled nodes are needed, to calibrate and to judge; got {labelled.size}"
        )
    shuffled = np.random.default_rng(check_seed(seed)).permutation(labelled)
    return np.sort(shuffled[: labelled.size // 2]), np.sort(shuffled[labelled.size // 2 :])


#: Neighbourhoods from which on evenness is measured over them.
_ENOUGH = 5
#: How often an interval misses.
MISS = 0.05


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
    count = level_labels(result.calibrated)
    place = min(rank_place(count, comparison.alpha), count)
    mean = place / (count + 1)
    return result.slope**2 * mean * (1 - mean) / (count + 2)


def evenness(gap: CoverageGap, other: CoverageGap, miss: float = MISS) -> Interval:
    """Return by how much more coverage in a group falls short of 1 − alpha than another method's, paired by group.

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
    """Return over which groups evenness is looked at, and each method's coverage in them.

    They are the comparison's neighbourhoods, or fifths by degree where there are too few neighbourhoods to compare.
    """
    over = "neighbourhood" if len(comparison.partition) >= _ENOUGH else "degree"
    return over, [result.gaps[over] for result in comparison]
