"""Standings: each method on each graph and over all of them, always compared with the baseline on the same draws.

A method may have been run on fewer draws than others. So nothing is compared across draws: sizes are ratios to the
baseline's on the draws that both have, gaps are differences to it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.errors import imported
from napsets.methods import PAPER, title
from napsets.studies.draws import KINDS
from napsets.studies.study import Row
from napsets.studies.tables import MeanInterval, colours, interval, mean, panels

#: What all others are compared with: split conformal prediction with the paper's score.
BASELINE = PAPER["APS"]
#: A mean coverage this many standard errors below 1 − alpha is not due to chance.
_CLEARLY = 3.0
#: A palette that colour-blind readers can distinguish (Okabe and Ito).
_COLOURS = {"on the front": "#0072B2", "not on it": "#999999", "does not cover": "#D55E00", "baseline": "#000000"}
#: What is averaged over the graphs of a method.
_AVERAGED = ("under", "coverage", "empty_rate", "full_rate", "seconds")

#: Rows by model, seed and repetition.
_Draws = dict[tuple[object, ...], Row]


@dataclass(frozen=True)
class Standing:
    """A method on one graph with one share of labels, over models, seeds and draws."""

    dataset: str
    model: str  #: the only one, where models are kept apart; otherwise empty
    share: float
    method: str
    draws: int  #: rows that it rests on
    ratio: float  #: its mean size over the baseline's, on the draws that it has
    size: float  #: the baseline's mean size over all draws, times `ratio`: its own mean size where it has all draws
    size_error: float  #: standard error of the mean size over seeds; NaN with one seed
    #: Mean excess of the gap of coverage over what chance gives, over the kinds of groups that there are: that of the
    #: baseline over all draws, plus the mean difference to it on the draws that the method has.
    gap: float
    gap_error: float  #: standard error over seeds; NaN with one seed
    #: The same mean excess by kind of group, on the draws that the method has; NaN where there are no groups.
    excess: Mapping[str, float]
    under: float  #: mean excess of what coverage lacks in groups over what it lacks by chance
    coverage: float
    #: Standard error of the mean coverage by its law: labels and evaluated nodes are draws, and models share them.
    coverage_error: float
    empty_rate: float
    full_rate: float
    seconds: float  #: the median; coverage and rates are means
    alpha: float  #: error rate

    @property
    def setting(self) -> str:
        """Where it was measured, for people."""
        return f"{self.dataset}, {self.model}" if self.model else self.dataset

    @property
    def total(self) -> float:
        """Sum of the excess gaps over all kinds of groups that there are."""
        return float(np.nansum(list(self.excess.values())))

    @property
    def covers(self) -> bool:
        """Whether coverage is not clearly below 1 − alpha."""
        return self.coverage >= 1.0 - self.alpha - _CLEARLY * self.coverage_error

    def beats(self, other: Standing) -> bool:
        """Say whether sets are no larger and coverage is no less even, and one of the two is better."""
        no_worse = self.size <= other.size and self.gap <= other.gap
        return no_worse and (self.size < other.size or self.gap < other.gap)


def make_standings(rows: Iterable[Row], *, by_model: bool = False) -> list[Standing]:
    """Return the standing of each method on each graph with each share, over all models or for each of them.

    Rows without a baseline are left out.
    """
    by_graph: dict[tuple[str, str, float], dict[str, _Draws]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        where = (row["dataset"], row["model"] if by_model else "", row["share"])
        by_graph[where][row["method"]][row["model"], row["seed"], row["repetition"]] = row
    return [
        _standing(*where, method, own, methods[BASELINE])
        for where, methods in sorted(by_graph.items())
        if BASELINE in methods
        for method, own in methods.items()
        if own.keys() & methods[BASELINE].keys()
    ]


def _standing(dataset: str, model: str, share: float, method: str, own: _Draws, base: _Draws) -> Standing:
    both = [(own[draw], base[draw]) for draw in sorted(own.keys() & base.keys(), key=str)]
    mine = [row for row, _ in both]
    ratio = mean(row["mean_size"] for row in mine) / mean(plain["mean_size"] for _, plain in both)
    difference = mean(_row_excess(row) - _row_excess(plain) for row, plain in both)
    by_seed = [[row for row in mine if row["seed"] == seed] for seed in sorted({row["seed"] for row in mine})]
    independent = {(row["seed"], row["repetition"]): row for row in mine}.values()
    alpha = mine[0]["alpha"]
    noise = [alpha * (1 - alpha) * (1 / row["level_labels"] + 1 / row["nodes"]) for row in independent]
    return Standing(
        dataset,
        model,
        share,
        method,
        len(both),
        ratio=ratio,
        size=ratio * mean(row["mean_size"] for row in base.values()),
        size_error=_error([mean(row["mean_size"] for row in rows) for rows in by_seed]),
        gap=difference + mean(_row_excess(row) for row in base.values()),
        gap_error=_error([mean(_row_excess(row) for row in rows) for rows in by_seed]),
        excess={kind: mean(_excess(row, kind) for row in mine) for kind in KINDS},
        under=mean(_lacking(row, kind) for row in mine for kind in KINDS),
        coverage_error=math.sqrt(sum(noise)) / len(noise),
        **{name: mean(row[name] for row in mine) for name in ("coverage", "empty_rate", "full_rate")},
        seconds=float(np.median([row["seconds"] for row in mine])),
        alpha=alpha,
    )


def _row_excess(row: Row) -> float:
    """Return the mean excess gap over the kinds of groups that there are."""
    return mean(_excess(row, kind) for kind in KINDS)


def _excess(row: Row, kind: str) -> float:
    """Return the gap beyond chance, NaN without groups."""
    gap: float | None = row[f"gap_{kind}"]
    if gap is None:
        return math.nan
    return float(row[f"excess_{kind}"]) if f"excess_{kind}" in row else gap - float(row[f"chance_{kind}"])


def _lacking(row: Row, kind: str) -> float:
    """Return the part of the gap beyond chance that lies below the target; by chance half of a gap does."""
    under = row.get(f"under_{kind}")
    return math.nan if under is None else under - row[f"chance_{kind}"] / 2


def front(standings: Sequence[Standing]) -> list[Standing]:
    """Return those that cover and that no other one that covers beats, the smallest sets first."""
    able = [standing for standing in standings if standing.covers]
    best = [standing for standing in able if not any(other.beats(standing) for other in able)]
    return sorted(best, key=lambda standing: (standing.size, standing.gap))


@dataclass(frozen=True)
class Overall:
    """A method over all graphs."""

    method: str  #: its name
    #: What it rests on.
    graphs: int
    draws: int
    ratio: MeanInterval  #: geometric mean over graphs of its size over the baseline's
    arithmetic: float  #: arithmetic mean of these ratios
    #: The largest of them, and the graph.
    worst: float
    worst_on: str
    gap: MeanInterval  #: mean over graphs of the excess gap
    gap_difference: MeanInterval  #: mean over graphs of the excess gap less the baseline's
    #: Means over graphs of the excess gaps, of all kinds together and of each: its own, and the baseline's.
    excess: Mapping[str, float]
    base_excess: Mapping[str, float]
    under: float  #: mean excess of under-coverage in groups
    rank: float  #: mean rank by size among the methods that cover, 1 for the smallest; NaN where it never does
    on_front: int  #: graphs on whose front it is
    fails: list[str]  #: graphs where coverage is clearly below 1 − alpha
    #: Means over graphs.
    coverage: float
    empty_rate: float
    full_rate: float
    seconds: float

    @property
    def front_text(self) -> str:
        """On how many fronts it is, for people."""
        return f"{self.on_front} of {self.graphs}"

    @property
    def gap_ratios(self) -> dict[str, float]:
        """The mean excess gaps over the baseline's, of all kinds together and of each."""
        return {kind: self.excess[kind] / self.base_excess[kind] for kind in self.excess}

    @property
    def gap_ratio(self) -> float:
        """That of all kinds together."""
        return self.gap_ratios["all"]


def overall(standings: Sequence[Standing]) -> list[Overall]:
    """Compare methods over the graphs of one share, the smallest sets first."""
    by_graph, by_method = grouped(standings, "setting"), grouped(standings, "method")
    base = {standing.setting: standing for standing in by_method.get(BASELINE, [])}
    fronts = {graph: {standing.method for standing in front(here)} for graph, here in by_graph.items()}
    ranks = {graph: _ranks(here) for graph, here in by_graph.items()}
    summaries = []
    for method, mine in by_method.items():
        worst = max(mine, key=lambda standing: standing.ratio)
        summaries.append(
            Overall(
                method,
                graphs=len(mine),
                draws=sum(standing.draws for standing in mine),
                ratio=MeanInterval(*(math.exp(end) for end in interval(np.log([standing.ratio for standing in mine])))),
                arithmetic=mean(standing.ratio for standing in mine),
                worst=worst.ratio,
                worst_on=worst.setting,
                gap=interval(np.array([standing.gap for standing in mine])),
                gap_difference=interval(np.array([standing.gap - base[standing.setting].gap for standing in mine])),
                excess=_mean_excess(mine),
                base_excess=_mean_excess([base[standing.setting] for standing in mine]),
                rank=mean(ranks[standing.setting][method] for standing in mine if method in ranks[standing.setting]),
                on_front=sum(method in fronts[standing.setting] for standing in mine),
                fails=[standing.dataset for standing in mine if not standing.covers],
                **{name: mean(getattr(standing, name) for standing in mine) for name in _AVERAGED},
            )
        )
    return sorted(summaries, key=lambda summary: summary.ratio.mean)


def _mean_excess(standings: Sequence[Standing]) -> dict[str, float]:
    together = mean(standing.total for standing in standings)
    return {"all": together} | {kind: mean(standing.excess[kind] for standing in standings) for kind in KINDS}


def grouped(standings: Iterable[Standing], name: str) -> dict[Any, list[Standing]]:
    """Return the standings by one of their attributes."""
    groups: dict[Any, list[Standing]] = defaultdict(list)
    for standing in standings:
        groups[getattr(standing, name)].append(standing)
    return groups


def _ranks(here: Sequence[Standing]) -> dict[str, float]:
    """Return the rank by size of each method that covers; those of the same size share the mean of theirs."""
    from scipy.stats import rankdata

    able = [standing for standing in here if standing.covers]
    return {standing.method: float(rank) for standing, rank in zip(able, rankdata([p.size for p in able]), strict=True)}


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def front_figure(standings: Sequence[Standing]) -> Any:
    """Return one panel per graph of one share: methods by mean size and excess gap, and the Pareto front."""
    charts = [_panel(here, graph) for graph, here in grouped(standings, "dataset").items()]
    return panels(charts, 3).resolve_scale(color="shared")


def _panel(here: Sequence[Standing], graph: str) -> Any:
    alt = imported("altair", "report")
    best = front(here)
    on_front = {standing.method for standing in best}
    points = [{"method": title(p.method), "size": p.size, "gap": p.gap, "place": _place(p, on_front)} for p in here]
    # Logarithmic, because the sets of NAPS as published may be several times as large as the others.
    wide, high = alt.Scale(type="log", nice=False, padding=12), alt.Scale(zero=False, padding=12)
    x = alt.X("size:Q", title="mean size", scale=wide, axis=alt.Axis(tickCount=5, format="~g"))
    y = alt.Y("gap:Q", title="excess gap", scale=high, axis=alt.Axis(format=".3~f", tickCount=5))
    colour = colours("place", _COLOURS)
    drawn = alt.Chart(alt.Data(values=points)).encode(x=x, y=y, color=colour)
    named = [point for point in points if point["place"] in ("on the front", "baseline")]
    words = alt.Chart(alt.Data(values=named)).mark_text(align="left", dx=6, dy=-4, fontSize=9)
    joined = alt.Chart(alt.Data(values=[{"size": standing.size, "gap": standing.gap} for standing in best]))
    return alt.layer(
        joined.mark_line(color=_COLOURS["on the front"], opacity=0.5).encode(x=x, y=y),
        drawn.mark_point(filled=True, size=45, opacity=0.9),
        words.encode(x=x, y=y, text="method:N", color=colour),
    ).properties(width=250, height=210, title=graph)


def _place(standing: Standing, on_front: set[str]) -> str:
    if not standing.covers:
        return "does not cover"
    if standing.method in on_front:
        return "on the front"
    return "baseline" if standing.method == BASELINE else "not on it"
