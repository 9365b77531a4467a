"""Analysis of the sets study: sizes and gaps relative to split APS, tests of coverage, and the goals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from napsets.errors import InvalidInputError
from napsets.studies.draws import KINDS
from napsets.studies.study import Row


class Place(NamedTuple):
    """What an average is about."""

    dataset: str
    model: str
    share: float
    method: str


@dataclass(frozen=True)
class Average:
    """A method on one graph with one model and share of labels: means over repetitions."""

    repetitions: int
    labels: int
    accuracy: float
    coverage: float
    mean_size: float
    empty_rate: float
    full_rate: float
    excess: dict[str, float]  # by kind of group; NaN where there are no groups

    @property
    def total(self) -> float:
        """Sum of the excess gaps over all kinds of groups that there are."""
        return float(np.nansum(list(self.excess.values())))


Averages = Mapping[Place, Average]


def _by_place(rows: Iterable[Row]) -> dict[Place, list[Row]]:
    """Return the rows of every combination, in the order of graphs, models, shares and methods."""
    by_place: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        by_place[Place(row["dataset"], row["model"], row["share"], row["method"])].append(row)
    return {place: by_place[place] for place in sorted(by_place)}


def averages(rows: Iterable[Row]) -> dict[Place, Average]:
    """Return the means over repetitions of every combination."""
    return {place: _average(some) for place, some in _by_place(rows).items()}


def _average(rows: Sequence[Row]) -> Average:
    def mean(name: str) -> float:
        values = np.array([row[name] for row in rows], dtype=float)
        return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan

    metrics = {name: mean(name) for name in ("coverage", "mean_size", "empty_rate", "full_rate")}
    excess = {kind: mean(f"excess_{kind}") for kind in KINDS}
    return Average(len(rows), rows[0]["labels"], rows[0]["accuracy"], **metrics, excess=excess)


@dataclass(frozen=True)
class SplitRatios:
    """A method compared with split APS over graphs: ratios of mean sizes and of mean excess gaps, and means."""

    method: str
    geometric: float
    arithmetic: float
    worst: float
    worst_on: str
    gaps: float
    gaps_by_kind: dict[str, float]
    coverage: float
    empty: float
    full: float


def compare_with_split(table: Averages, method: str, share: float, models: Sequence[str]) -> SplitRatios:
    """Compare a method with split APS on all graphs and these models."""
    pairs = {
        place: (average, table[place._replace(method="split")])
        for place, average in table.items()
        if place.method == method and place.share == share and place.model in models
    }
    both = list(pairs.values())
    ratios = np.array([own.mean_size / plain.mean_size for own, plain in both])
    worst = list(pairs)[int(ratios.argmax())]
    kinds = {}
    for kind in KINDS:
        excess = np.array([(own.excess[kind], plain.excess[kind]) for own, plain in both])
        kinds[kind] = float(np.nanmean(excess[:, 0]) / np.nanmean(excess[:, 1]))
    totals = np.array([(own.total, plain.total) for own, plain in both])
    return SplitRatios(
        method,
        float(np.exp(np.log(ratios).mean())),
        float(ratios.mean()),
        float(ratios.max()),
        f"{worst.dataset}, {worst.model}",
        float(totals[:, 0].mean() / totals[:, 1].mean()),
        kinds,
        *(float(np.mean([getattr(own, name) for own, _ in both])) for name in ("coverage", "empty_rate", "full_rate")),
    )


def is_comparable(table: Averages, method: str, share: float, models: Sequence[str]) -> bool:
    """Return whether a method was measured, and split APS on the same graphs."""
    places = [place for place in table if (place.method, place.share) == (method, share) and place.model in models]
    return bool(places) and all(place._replace(method="split") in table for place in places)


@dataclass(frozen=True)
class CoverageTest:
    """Mean coverage over repetitions, and its distribution if nodes are labelled at random."""

    place: Place
    level_labels: int
    expected: float
    coverage: float
    p_value: float


def coverage_tests(rows: Iterable[Row], method: str) -> list[CoverageTest]:
    """Return the two-sided tail probability of each mean coverage of a method.

    With m labels for the level and k = ⌈(m+1)(1−α)⌉, the covered ones among N nodes are beta-binomial (N; k, m+1−k),
    whatever the score. Repetitions are drawn again from the same nodes, so that their counts are independent and their
    sum is the convolution of these laws.
    """
    ours = _by_place(row for row in rows if row["method"] == method)
    return [_coverage_test(place, some) for place, some in ours.items()]


def _coverage_test(place: Place, rows: Sequence[Row]) -> CoverageTest:
    from scipy.stats import betabinom

    settings = {(row["nodes"], row["level_labels"], row["alpha"]) for row in rows}
    if len(settings) != 1:
        raise InvalidInputError(f"{place} was measured with different numbers of labels")
    nodes, labels, alpha = settings.pop()
    k = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
    covered = sum(round(row["coverage"] * row["nodes"]) for row in rows)
    size = 1 << (nodes * len(rows)).bit_length()
    single = betabinom.pmf(np.arange(nodes + 1), nodes, k, labels + 1 - k)
    together = np.maximum(np.fft.irfft(np.fft.rfft(single, size) ** len(rows), size), 0.0)
    tail = float(min(together[: covered + 1].sum(), together[covered:].sum()))
    return CoverageTest(place, labels, k / (labels + 1), covered / nodes / len(rows), min(1.0, 2.0 * tail))


class Goal(NamedTuple):
    """A ratio to split APS that was to be reached, and the most that it was to be."""

    text: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the value is at most the limit."""
        return self.value <= self.limit


def goals(table: Averages, models: Sequence[str]) -> list[Goal]:
    """Return the goals that were set, over all graphs and these models."""
    few, many = (compare_with_split(table, "auto", share, models) for share in (0.05, 0.3))
    few_small, many_small = (compare_with_split(table, "auto-small", share, models) for share in (0.05, 0.3))
    return [
        Goal("`auto`, 30 % labelled: at least 17 % smaller (arithmetic mean)", many.arithmetic, 0.83),
        Goal("`auto`, 5 % labelled: at least 13 % smaller (arithmetic mean)", few.arithmetic, 0.87),
        Goal("`auto`, 30 % labelled: at most 2 % larger on any graph", many.worst, 1.02),
        Goal("`auto`, 5 % labelled: at most 2 % larger on any graph", few.worst, 1.02),
        Goal("`auto`, 30 % labelled: at most 0.7 of the excess gaps", many.gaps, 0.7),
        Goal("`auto`, 5 % labelled: at most 0.9 of the excess gaps", few.gaps, 0.9),
        Goal("`auto-small`, 30 % labelled: at least 24 % smaller (arithmetic mean)", many_small.arithmetic, 0.76),
        Goal("`auto-small`, 5 % labelled: at least 18 % smaller (arithmetic mean)", few_small.arithmetic, 0.82),
    ]
