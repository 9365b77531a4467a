"""Judgement: what sets are worth, every metric at once, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

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
from napsets.sets import Per, PredictionSets

__all__ = ["METRICS", "Judgement", "halves", "judge"]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What sets are worth.

    Attributes
    ----------
    nodes : int
        The sets that were judged.
    coverage, mean_size, size_given_coverage, sscv, pccv, singleton_rate, empty_rate, full_rate : float
        The metrics of the same names; PCCV is NaN where there was no partition.
    pccv_chance : float
        What PCCV would be on average if every set covered with probability 1 − alpha: of many small neighbourhoods one
        is always far off.
    coverage_se : float
        Binomial standard error of the coverage, as if nodes were independent.
    mean_size_se : float
        Standard error of the mean size, as if nodes were independent; NaN for a single node.
    infinite : int
        Nodes whose threshold is +∞, because their neighbourhood has too little mass.
    gaps : mapping
        How far coverage is from 1 − alpha within groups, beside what chance gives, by the name of the grouping.
    """

    nodes: int
    coverage: float
    coverage_se: float
    mean_size: float
    mean_size_se: float
    size_given_coverage: float
    sscv: float
    pccv: float
    pccv_chance: float
    singleton_rate: float
    empty_rate: float
    full_rate: float
    infinite: int
    gaps: Mapping[str, CoverageGap] = field(default_factory=dict, kw_only=True)

    def row(self) -> dict[str, Any]:
        """Return the metrics by name, for tables and JSON: gaps as ``gap_class``, ``chance_class`` and so on."""
        found = {name: getattr(self, name) for name in METRICS}
        for kind, gap in self.gaps.items():
            found |= {f"{name}_{kind}": value for name, value in gap.row().items()}
        return found


#: Names of the metrics that are one number, in the order of a row.
METRICS = tuple(one.name for one in fields(Judgement) if one.name != "gaps")


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
    share, count = coverage(sets, y, per="set"), len(sets)
    return Judgement(
        nodes=count,
        coverage=share,
        coverage_se=math.sqrt(share * (1.0 - share) / count) if count else math.nan,
        mean_size=mean_size(sets),
        mean_size_se=float(sets.sizes.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        size_given_coverage=size_given_coverage(sets, y, per="set"),
        sscv=sscv(sets, y, strata, per="set"),
        pccv=math.nan if partition is None else pccv(sets, y, partition, per="set"),
        pccv_chance=_pccv_chance(sets, () if partition is None else partition),
        singleton_rate=singleton_rate(sets),
        empty_rate=empty_rate(sets),
        full_rate=full_rate(sets),
        infinite=sets.infinite,
        gaps={name: coverage_gap(sets, labels, some, per=per) for name, some in check_groups(groups).items()},
    )


def check_groups(groups: Any) -> dict[str, Any]:
    """Return groupings by name, none for None; refuse what is no mapping: an array alone has no name in a table."""
    if groups is None:
        return {}
    check_kind("groups", groups, Mapping, way="Write groups={'region': regions}.")  # type: ignore[type-abstract]
    for name in groups:
        if not isinstance(name, str):
            raise InvalidInputError(f"`groups` must map names to arrays; got {shown(name)} for a name")
    return dict(groups)


def _pccv_chance(sets: PredictionSets, partition: Sequence[ArrayLike]) -> float:
    columns = [as_array("partition", part) for part in partition]
    sizes = [int(part.sum()) if part.dtype == bool else part.size for part in columns]
    return worst_deviation(np.array(sizes, dtype=np.int64), 1.0 - sets.alpha)


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
