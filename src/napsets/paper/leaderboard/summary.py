"""What the rows say: each method on each graph and over all of them, always beside the baseline on the same draws.

A method may have been run on fewer draws than others. So nothing is compared across draws: sizes are ratios to the
baseline's on the draws that both have, gaps are differences to it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray
from napsets.methods import PAPER
from napsets.paper.cells import Row
from napsets.paper.leaderboard.measure import KINDS

__all__ = ["BASELINE", "Interval", "Overall", "Standing", "front", "interval", "overall", "standings"]

#: What all others are compared with: split conformal prediction with the paper's score.
BASELINE = PAPER["APS"]
#: A mean coverage this many standard errors below 1 − alpha is no accident.
_CLEARLY = 3.0


class Interval(NamedTuple):
    """A mean, and where it lies with 95 % confidence; the ends are NaN where there is one value only."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        """Return it as people read it."""
        if math.isnan(self.mean):
            return "–"
        mean, low, high = (f"{value:.{digits}f}".replace("-", "−") for value in self)
        return mean if math.isnan(self.low) or self.low == self.high else f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class Standing:
    """A method on one graph with one share of labels, over models, seeds and draws.

    Attributes
    ----------
    dataset, share, method
        What it is about.
    draws : int
        Rows that it rests on.
    ratio : float
        Its mean size over the baseline's, on the draws that it has.
    size : float
        The baseline's mean size over all draws, times `ratio`: its own mean size where it has all draws.
    size_error : float
        Standard error of the mean size over seeds; NaN with one seed.
    gap : float
        Mean excess of the gap of coverage over what chance gives, over the kinds of groups that there are: that of the
        baseline over all draws, plus the mean difference to it on the draws that the method has.
    gap_error : float
        Standard error over seeds; NaN with one seed.
    excess : mapping
        The same mean excess by kind of group, on the draws that the method has; NaN where there are no groups.
    under : float
        Mean excess of what coverage lacks in groups over what it lacks by chance.
    coverage, empty_rate, full_rate, seconds : float
        Means, and the median time.
    coverage_error : float
        Standard error of the mean coverage by its law: labels and judged nodes are draws, and models share them.
    alpha : float
        Error rate.
    """

    dataset: str
    share: float
    method: str
    draws: int
    ratio: float
    size: float
    size_error: float
    gap: float
    gap_error: float
    excess: Mapping[str, float]
    under: float
    coverage: float
    coverage_error: float
    empty_rate: float
    full_rate: float
    seconds: float
    alpha: float

    @property
    def covers(self) -> bool:
        """Whether coverage is not clearly below 1 − alpha."""
        return self.coverage >= 1.0 - self.alpha - _CLEARLY * self.coverage_error

    def beats(self, other: Standing) -> bool:
        """Say whether sets are no larger and coverage is no less even, and one of the two is better."""
        no_worse = self.size <= other.size and self.gap <= other.gap
        return no_worse and (self.size < other.size or self.gap < other.gap)


def standings(rows: Iterable[Row]) -> list[Standing]:
    """Return the standing of each method on each graph with each share; rows without a baseline are left out."""
    found: dict[tuple[str, float], dict[str, dict[tuple[object, ...], Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        draw = (row["model"], row["seed"], row["repetition"])
        found[row["dataset"], row["share"]][row["method"]][draw] = row
    return [
        _standing(dataset, share, method, own, methods[BASELINE])
        for (dataset, share), methods in sorted(found.items())
        if BASELINE in methods
        for method, own in methods.items()
        if own.keys() & methods[BASELINE].keys()
    ]


def _standing(
    dataset: str, share: float, method: str, own: dict[tuple[object, ...], Row], base: dict[tuple[object, ...], Row]
) -> Standing:
    both = [(own[draw], base[draw]) for draw in sorted(own.keys() & base.keys(), key=str)]
    mine = [row for row, _ in both]
    ratio = _mean([row["mean_size"] for row in mine]) / _mean([plain["mean_size"] for _, plain in both])
    apart = _mean([row_excess(row) - row_excess(plain) for row, plain in both])
    seeds = sorted({row["seed"] for row in mine})
    by_seed = [[row for row in mine if row["seed"] == seed] for seed in seeds]
    independent = {(row["seed"], row["repetition"]): row for row in mine}.values()
    alpha = mine[0]["alpha"]
    noise = [alpha * (1 - alpha) * (1 / row["level_labels"] + 1 / row["nodes"]) for row in independent]
    return Standing(
        dataset,
        share,
        method,
        len(both),
        ratio=ratio,
        size=ratio * _mean([row["mean_size"] for row in base.values()]),
        size_error=_error([_mean([row["mean_size"] for row in some]) for some in by_seed]),
        gap=apart + _mean([row_excess(row) for row in base.values()]),
        gap_error=_error([_mean([row_excess(row) for row in some]) for some in by_seed]),
        excess={kind: _mean([_excess(row, "gap", kind) for row in mine]) for kind in KINDS},
        under=_mean([_excess(row, "under", kind) for row in mine for kind in KINDS]),
        coverage=_mean([row["coverage"] for row in mine]),
        coverage_error=math.sqrt(sum(noise)) / len(noise),
        empty_rate=_mean([row["empty_rate"] for row in mine]),
        full_rate=_mean([row["full_rate"] for row in mine]),
        seconds=float(np.median([row["seconds"] for row in mine])),
        alpha=alpha,
    )


def row_excess(row: Row) -> float:
    """Return the mean excess gap over the kinds of groups that there are."""
    return _mean([_excess(row, "gap", kind) for kind in KINDS])


def _excess(row: Row, name: str, kind: str) -> float:
    """Return what is beyond chance, NaN without groups; by chance half of a gap lies below and half above."""
    value, chance = row[f"{name}_{kind}"], row[f"chance_{kind}"]
    return math.nan if value is None else value - (chance if name == "gap" else chance / 2)


def front(some: Sequence[Standing]) -> list[Standing]:
    """Return those that cover and that no other one that covers beats, the smallest sets first."""
    able = [one for one in some if one.covers]
    best = [one for one in able if not any(other.beats(one) for other in able)]
    return sorted(best, key=lambda one: (one.size, one.gap))


@dataclass(frozen=True)
class Overall:
    """A method over all graphs.

    Attributes
    ----------
    method : str
        Its name.
    graphs, draws : int
        What it rests on.
    ratio : Interval
        Geometric mean over graphs of its size over the baseline's.
    worst, worst_on
        The largest of these ratios, and the graph.
    gap : Interval
        Mean over graphs of the excess gap.
    apart : Interval
        Mean over graphs of the excess gap less the baseline's.
    under : float
        Mean excess of under-coverage in groups.
    rank : float
        Mean rank by size among the methods that cover, 1 for the smallest; NaN where it never does.
    on_front : int
        Graphs on whose front it is.
    fails : list of str
        Graphs where coverage is clearly below 1 − alpha.
    coverage, empty_rate, full_rate, seconds : float
        Means over graphs.
    """

    method: str
    graphs: int
    draws: int
    ratio: Interval
    worst: float
    worst_on: str
    gap: Interval
    apart: Interval
    under: float
    rank: float
    on_front: int
    fails: list[str]
    coverage: float
    empty_rate: float
    full_rate: float
    seconds: float


def overall(some: Sequence[Standing]) -> list[Overall]:
    """Compare methods over the graphs of one share, the smallest sets first."""
    by_graph: dict[str, list[Standing]] = defaultdict(list)
    by_method: dict[str, list[Standing]] = defaultdict(list)
    for one in some:
        by_graph[one.dataset].append(one)
        by_method[one.method].append(one)
    base = {one.dataset: one for one in by_method.get(BASELINE, [])}
    fronts = {graph: {one.method for one in front(here)} for graph, here in by_graph.items()}
    ranks = {graph: _ranks(here) for graph, here in by_graph.items()}
    found = []
    for method, mine in by_method.items():
        logs = interval(np.log([one.ratio for one in mine]))
        worst = max(mine, key=lambda one: one.ratio)
        placed = [ranks[one.dataset][method] for one in mine if method in ranks[one.dataset]]
        found.append(
            Overall(
                method,
                graphs=len(mine),
                draws=sum(one.draws for one in mine),
                ratio=Interval(*(math.exp(end) for end in logs)),
                worst=worst.ratio,
                worst_on=worst.dataset,
                gap=interval(np.array([one.gap for one in mine])),
                apart=interval(np.array([one.gap - base[one.dataset].gap for one in mine])),
                under=_mean([one.under for one in mine]),
                rank=_mean(placed),
                on_front=sum(method in fronts[one.dataset] for one in mine),
                fails=[one.dataset for one in mine if not one.covers],
                coverage=_mean([one.coverage for one in mine]),
                empty_rate=_mean([one.empty_rate for one in mine]),
                full_rate=_mean([one.full_rate for one in mine]),
                seconds=_mean([one.seconds for one in mine]),
            )
        )
    return sorted(found, key=lambda one: one.ratio.mean)


def interval(values: FloatArray) -> Interval:
    """Return the mean of values and the 95 % interval that Student's law gives it.

    Examples
    --------
    >>> interval(np.array([1.0, 2.0, 3.0])).text(2)
    '2.00 (−0.48 to 4.48)'
    """
    from scipy.stats import t

    mean = float(np.mean(values))
    if values.size < 2:
        return Interval(mean, math.nan, math.nan)
    reach = float(t.ppf(0.975, values.size - 1) * np.std(values, ddof=1)) / math.sqrt(values.size)
    return Interval(mean, mean - reach, mean + reach)


def _ranks(here: Sequence[Standing]) -> dict[str, float]:
    """Return the rank by size of each method that covers; those of the same size share the mean of theirs."""
    able = [one for one in here if one.covers]
    return {
        one.method: 1 + sum(other.size < one.size for other in able) + (sum(o.size == one.size for o in able) - 1) / 2
        for one in able
    }


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
