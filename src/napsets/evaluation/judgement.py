"""Judgement: what sets are worth, every metric at once, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import ArrayLike, IntArray, as_array, check_integers, check_kind, check_seed, shown
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import CoverageGap, coverage_gap, worst_deviation
from napsets.evaluation.metrics import (
    checked_sets,
    coverage,
    empty_rate,
    full_rate,
    mean_size,
    pccv,
    singleton_rate,
    size_given_coverage,
    sscv,
)
from napsets.intervals import PredictionIntervals
from napsets.sets import Per, PredictionSets

__all__ = ["METRICS", "Judged", "Judgement", "halves", "judge", "judge_coverage"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """What sets or intervals are worth, as far as both have it.

    Attributes
    ----------
    nodes : int
        The sets, or intervals, that were judged.
    coverage, pccv : float
        The metrics of the same names; PCCV is NaN where there was no partition.
    coverage_se : float
        Binomial standard error of the coverage, as if nodes were independent.
    pccv_chance : float
        What PCCV would be on average if every set covered with probability 1 − alpha: of many small neighbourhoods one
        is always far off.
    infinite : int
        Nodes whose threshold is +∞, because their neighbourhood has too little mass.
    gaps : mapping
        How far coverage is from 1 − alpha within groups, beside what chance gives, by the name of the grouping.
    """

    #: Names of what is one number, in the order of a row.
    metrics: ClassVar[tuple[str, ...]]

    nodes: int
    coverage: float
    coverage_se: float
    pccv: float
    pccv_chance: float
    infinite: int
    gaps: Mapping[str, CoverageGap] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return the metrics by name, for tables and JSON: gaps as ``gap_class``, ``chance_class`` and so on."""
        found = {name: getattr(self, name) for name in self.metrics}
        for kind, gap in self.gaps.items():
            found |= {f"{name}_{kind}": value for name, value in gap.row().items()}
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement(Judged):
    """What sets are worth: what a `Judged` has, and what only sets have.

    Attributes
    ----------
    mean_size, size_given_coverage, sscv, singleton_rate, empty_rate, full_rate : float
        The metrics of the same names.
    mean_size_se : float
        Standard error of the mean size, as if nodes were independent; NaN for a single node.
    """

    metrics: ClassVar[tuple[str, ...]] = (
        "nodes", "coverage", "coverage_se", "mean_size", "mean_size_se", "size_given_coverage", "sscv", "pccv",
        "pccv_chance", "singleton_rate", "empty_rate", "full_rate", "infinite",
    )  # fmt: skip

    mean_size: float
    mean_size_se: float
    size_given_coverage: float
    sscv: float
    singleton_rate: float
    empty_rate: float
    full_rate: float


#: Names of the metrics that are one number, in the order of a row.
METRICS = Judgement.metrics


def judge(
    sets: PredictionSets,
    labels: ArrayLike,
    *,
    strata: Sequence[tuple[int, int]],
    partition: Sequence[ArrayLike] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    per: Per = "node",
) -> Judgement:
    """Judge sets by labels that did not help to make them.

    Parameters
    ----------
    sets, labels, per
        As in `coverage`.
    strata : sequence of (low, high)
        As in `sscv`.
    partition : sequence of arrays, optional
        As in `pccv`.
    groups : mapping, optional
        Groupings by name, each as in `coverage_gap`: of `usual_groups`, or the user's own.
    """
    y = checked_sets(sets).own_labels(labels, per=per)
    count = len(sets)
    return Judgement(
        **judge_coverage(sets, labels, partition=partition, groups=check_groups(groups), per=per),
        mean_size=mean_size(sets),
        mean_size_se=float(sets.sizes.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        size_given_coverage=size_given_coverage(sets, y, per="set"),
        sscv=sscv(sets, y, strata, per="set"),
        singleton_rate=singleton_rate(sets),
        empty_rate=empty_rate(sets),
        full_rate=full_rate(sets),
    )


def judge_coverage(
    found: PredictionSets | PredictionIntervals,
    labels: ArrayLike,
    *,
    partition: Sequence[ArrayLike] | None,
    groups: Mapping[str, ArrayLike],
    per: Per = "node",
) -> dict[str, Any]:
    """Return what a `Judged` holds, of sets or intervals."""
    share, count = coverage(found, labels, per=per), len(found)
    return {
        "nodes": count,
        "coverage": share,
        "coverage_se": math.sqrt(share * (1.0 - share) / count) if count else math.nan,
        "pccv": math.nan if partition is None else pccv(found, labels, partition, per=per),
        "pccv_chance": _pccv_chance(found.alpha, () if partition is None else partition),
        "infinite": found.infinite,
        "gaps": {name: coverage_gap(found, labels, some, per=per) for name, some in groups.items()},
    }


def check_groups(groups: Any) -> dict[str, Any]:
    """Return groupings by name, none for None; refuse what is no mapping: an array alone has no name in a table."""
    if groups is None:
        return {}
    check_kind("groups", groups, Mapping, way="Write groups={'region': regions}.")  # type: ignore[type-abstract]
    for name in groups:
        if not isinstance(name, str):
            raise InvalidInputError(f"`groups` must map names to arrays; got {shown(name)} for a name")
    return dict(groups)


def _pccv_chance(alpha: float, partition: Sequence[ArrayLike]) -> float:
    columns = [as_array("partition", part) for part in partition]
    sizes = [int(part.sum()) if part.dtype == bool else part.size for part in columns]
    return worst_deviation(np.array(sizes, dtype=np.int64), 1.0 - alpha)


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
