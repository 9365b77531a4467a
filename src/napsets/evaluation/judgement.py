"""Judgement: all metrics of predictions, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, IntArray, check_integers
from napsets.checks.values import check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import CoverageGap, gap_within, own_groups, worst_deviation
from napsets.evaluation.kinds import SETS, Strata, kind_of
from napsets.evaluation.metrics import check_prediction, mean, rows_of_parts, worst_violation
from napsets.predictions import Per, Prediction

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

    def row(self) -> dict[str, Any]:
        """Return the metrics by name, for tables and JSON: gaps as ``gap_class``, ``chance_class`` and so on."""
        values = {name: getattr(self, name) for name in self.metrics}
        for kind, gap in self.gaps.items():
            values |= {f"{name}_{kind}": value for name, value in gap.row().items()}
        return values


def judge(
    prediction: Prediction,
    truth: ArrayLike,
    *,
    strata: Sequence[tuple[int, int]] | None = None,
    partition: Sequence[ArrayLike] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    per: Per = "node",
) -> Judgement:
    """Evaluate predictions with true labels, or targets, that were not used to make them.

    Gaps are computed over `groups`; for intervals also over "width": fifths by their own width, the widest last.

    Parameters
    ----------
    prediction : PredictionSets or PredictionIntervals
        The sets, or the intervals.
    truth, per
        As `labels` and `per` in `coverage`.
    strata : sequence of (low, high), optional
        As in `sscv`, for sets; by default `size_strata` of the number of classes.
    partition : sequence of arrays, optional
        As in `pccv`.
    groups : mapping, optional
        Groupings by name, each as in `coverage_gap`: of `usual_groups`, or the user's own.
    """
    own = check_prediction("prediction", prediction).own_labels(truth, per=per)
    ranges = kind_of(type(prediction)).check_strata(strata, prediction)
    groupings = {name: own_groups(prediction, group, per=per) for name, group in check_groups(groups).items()}
    parts = None if partition is None else rows_of_parts(prediction, partition)
    return judge_rows(prediction, own, strata=ranges, parts=parts, groups=groupings)


def judge_rows(
    prediction: Prediction,
    own: npt.NDArray[Any],
    *,
    strata: Strata | None,
    parts: Sequence[IntArray] | None,
    groups: Mapping[str, npt.NDArray[Any]],
) -> Judgement:
    """Judge predictions by what was checked: the truth and the groups of each row, and the rows of each part."""
    kind, alpha, count = kind_of(type(prediction)), prediction.alpha, len(prediction)
    covered = prediction.covers(own)
    share = mean(covered)
    sizes = np.array([part.size for part in parts or ()], dtype=np.int64)
    groupings = dict(groups)
    for name, group in kind.own_groups(prediction).items():
        groupings.setdefault(name, group)
    return Judgement(
        metrics=kind.metrics,
        nodes=count,
        coverage=share,
        coverage_se=math.sqrt(share * (1.0 - share) / count) if count else math.nan,
        pccv=math.nan if parts is None else worst_violation(covered, parts, alpha),
        pccv_chance=worst_deviation(sizes, 1.0 - alpha),
        infinite=prediction.infinite,
        measures=kind.measures(prediction, covered, strata),
        gaps={name: gap_within(covered, group, alpha) for name, group in groupings.items()},
    )


def check_groups(groups: Any) -> dict[str, Any]:
    """Return groupings by name, none for None; refuse what is not a mapping: an array alone has no name."""
    if groups is None:
        return {}
    check_kind("groups", groups, Mapping, way="Write groups={'region': regions}.")  # type: ignore[type-abstract]
    for name in groups:
        if not isinstance(name, str):
            raise InvalidInputError(f"`groups` must map names to arrays; got {shown(name)} for a name")
    return dict(groups)


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
