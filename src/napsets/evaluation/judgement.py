"""Judgement: all metrics of predictions, with standard errors and with how evenly coverage is spread."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, IntArray, check_integers
from napsets.checks.values import Record, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import CoverageGap, gap_within
from napsets.evaluation.kinds import SETS, Strata, kind_of
from napsets.evaluation.metrics import mean
from napsets.predictions import Prediction

if TYPE_CHECKING:
    pass


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
    truth: AnyArray,
    *,
    strata: Strata | None,
    neighbourhoods: IntArray | None,
    groups: Mapping[str, AnyArray],
) -> Judgement:
    """Judge predictions by what was checked: the truth, the neighbourhood of PCCV and the groups of each row."""
    kind, alpha, count = kind_of(type(prediction)), prediction.alpha, len(prediction)
    covered = prediction.contains_own(truth)
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
    """Check groupings by name, none for None; an array alone is rejected, because it has no name."""
    if groups is None:
        return {}
    named = check_kind("groups", groups, Mapping, hint="Write groups={'region': regions}.")  # type: ignore[type-abstract]
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
