"""What the rows say: sizes and gaps against split APS, coverage against its law, the goals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.sets.measure import GROUPS

__all__ = ["Against", "Cell", "Goal", "Law", "against_split", "cells", "goals", "law_of"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A method on one graph with one model and share of labels: means over repetitions."""

    dataset: str
    model: str
    share: float
    method: str
    repetitions: int
    labels: int
    accuracy: float
    coverage: float
    mean_size: float
    empty_rate: float
    full_rate: float
    excess: dict[str, float]  # by kind of group; NaN where there are none

    @property
    def total(self) -> float:
        """Sum of the excess gaps over all kinds of groups that there are."""
        return float(np.nansum(list(self.excess.values())))


def cells(rows: Iterable[Row]) -> dict[tuple[str, str, float, str], Cell]:
    """Return the mean over repetitions of every combination."""
    found: dict[tuple[str, str, float, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["dataset"], row["model"], row["share"], row["method"]].append(row)
    return {key: _cell(key, some) for key, some in found.items()}


def _cell(key: tuple[str, str, float, str], rows: Sequence[Row]) -> Cell:
    def mean(name: str) -> float:
        values = np.array([row[name] for row in rows], dtype=float)
        return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan

    return Cell(
        *key,
        repetitions=len(rows),
        labels=rows[0]["labels"],
        accuracy=rows[0]["accuracy"],
        coverage=mean("coverage"),
        mean_size=mean("mean_size"),
        empty_rate=mean("empty_rate"),
        full_rate=mean("full_rate"),
        excess={kind: mean(f"excess_{kind}") for kind in GROUPS},
    )


@dataclass(frozen=True)
class Against:
    """A method against split APS over graphs: ratios of mean sizes, and of mean excess gaps."""

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


def against_split(
    table: dict[tuple[str, str, float, str], Cell], method: str, share: float, models: Sequence[str]
) -> Against:
    """Compare a method with split APS on all graphs and the given models."""
    pairs = [
        (cell, table[cell.dataset, cell.model, share, "split"])
        for cell in table.values()
        if cell.method == method and cell.share == share and cell.model in models
    ]
    ratios = np.array([one.mean_size / plain.mean_size for one, plain in pairs])
    worst = int(ratios.argmax())
    kinds = {}
    for kind in GROUPS:
        both = np.array([(one.excess[kind], plain.excess[kind]) for one, plain in pairs])
        kinds[kind] = float(np.nanmean(both[:, 0]) / np.nanmean(both[:, 1]))
    totals = np.array([(one.total, plain.total) for one, plain in pairs])
    return Against(
        method,
        float(np.exp(np.log(ratios).mean())),
        float(ratios.mean()),
        float(ratios[worst]),
        f"{pairs[worst][0].dataset}, {pairs[worst][0].model}",
        float(totals[:, 0].mean() / totals[:, 1].mean()),
        kinds,
        *(float(np.mean([getattr(one, name) for one, _ in pairs])) for name in ("coverage", "empty_rate", "full_rate")),
    )


@dataclass(frozen=True)
class Law:
    """Mean coverage over repetitions against the law that it follows if labels are gathered at random."""

    dataset: str
    model: str
    share: float
    level_labels: int
    expected: float
    coverage: float
    p_value: float


def law_of(rows: Iterable[Row], method: str) -> list[Law]:
    """Return the two-sided tail probability of each mean coverage.

    With m labels for the level and k = ⌈(m+1)(1−α)⌉, the covered ones among N nodes are beta-binomial (N; k, m+1−k),
    whatever the score. Repetitions are drawn anew from the same nodes, so that their counts are independent and their
    sum is the convolution of these laws.
    """
    found: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        if row["method"] == method:
            found[row["dataset"], row["model"], row["share"]].append(row)
    return [_law(key, some) for key, some in found.items()]


def _law(key: tuple[str, str, float], rows: Sequence[Row]) -> Law:
    facts = {(row["nodes"], row["level_labels"], row["alpha"]) for row in rows}
    if len(facts) != 1:
        raise ValueError(f"{key} was measured with different numbers of labels")
    nodes, labels, alpha = facts.pop()
    k = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
    counts = sum(round(row["coverage"] * row["nodes"]) for row in rows)
    size = 1 << (nodes * len(rows)).bit_length()
    one = stats.betabinom.pmf(np.arange(nodes + 1), nodes, k, labels + 1 - k)
    together = np.maximum(np.fft.irfft(np.fft.rfft(one, size) ** len(rows), size), 0.0)
    below, above = together[: counts + 1].sum(), together[counts:].sum()
    p = min(1.0, 2.0 * float(min(below, above)))
    return Law(*key, labels, k / (labels + 1), counts / nodes / len(rows), p)


@dataclass(frozen=True)
class Goal:
    """Something that was to be reached, and what was."""

    words: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the value is at most the limit."""
        return self.value <= self.limit


def goals(table: dict[tuple[str, str, float, str], Cell], models: Sequence[str]) -> list[Goal]:
    """Return the goals: values are ratios to split APS, and must be at most the limits."""
    few, many = (against_split(table, "auto", share, models) for share in (0.05, 0.3))
    small = against_split(table, "auto-small", 0.3, models)
    return [
        Goal("`auto`, 30 % labelled: at least 12 % smaller (arithmetic mean)", many.arithmetic, 0.88),
        Goal("`auto`, 5 % labelled: at least 8 % smaller (arithmetic mean)", few.arithmetic, 0.92),
        Goal("`auto`, 30 % labelled: at most 2 % larger on any graph", many.worst, 1.02),
        Goal("`auto`, 5 % labelled: at most 2 % larger on any graph", few.worst, 1.02),
        Goal("`auto`, 30 % labelled: at most 0.7 of the excess gaps", many.gaps, 0.7),
        Goal("`auto`, 5 % labelled: at most 0.7 of the excess gaps", few.gaps, 0.7),
        Goal("`auto-small`, 30 % labelled: at least 22 % smaller (arithmetic mean)", small.arithmetic, 0.78),
    ]
