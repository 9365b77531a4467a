"""The sets study: set sizes and evenness of coverage compared with split APS on a dozen graphs, many repetitions.

The models are those of the leaderboard with seed 0, except GraphSAGE on Amazon, whose predictions are included in the
package. All predictions are kept in the repository, so that the study needs no torch and gives the same results
everywhere.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from napsets.checks.text import percent
from napsets.datasets import amazon_predictions
from napsets.errors import InvalidInputError
from napsets.files.predictions import NodePredictions
from napsets.studies.draws import GRAPHS, KINDS, MODELS, DrawCell, DrawScope, DrawStudy
from napsets.studies.standings import BASELINE, Overall, Standing, make_standings, overall
from napsets.studies.study import DIFFERENCE, POSITIVE, SHARE, Row, columns
from napsets.studies.tables import Entry, Table, distinct, fold, select

METHODS = (BASELINE, "naps", "naps-exact", "daps", "informed", "auto", "auto-small")
#: The goals that were set: method, share of labels, what was to be reached, and the most that a ratio was to be.
_GOALS = (
    ("auto", 0.3, "at least 17 % smaller (arithmetic mean)", "arithmetic", 0.83),
    ("auto", 0.05, "at least 13 % smaller (arithmetic mean)", "arithmetic", 0.87),
    ("auto", 0.3, "at most 2 % larger on any graph", "worst", 1.02),
    ("auto", 0.05, "at most 2 % larger on any graph", "worst", 1.02),
    ("auto", 0.3, "at most 0.7 of the excess gaps", "gap_ratio", 0.7),
    ("auto", 0.05, "at most 0.9 of the excess gaps", "gap_ratio", 0.9),
    ("auto-small", 0.3, "at least 24 % smaller (arithmetic mean)", "arithmetic", 0.76),
    ("auto-small", 0.05, "at least 18 % smaller (arithmetic mean)", "arithmetic", 0.82),
)

_LAW = """\
With m labels for the level and k = ⌈0.9(m+1)⌉, the number of covered nodes has a beta-binomial distribution, whatever
was chosen, and the repetitions are independent draws. Every mean coverage therefore has a two-sided tail probability.
"""


@dataclass(frozen=True)
class SetsCell(DrawCell):
    """One method on one draw of labelled nodes, with the split and models of seed 0."""

    study: ClassVar[str] = "sets"
    measured: ClassVar = {
        **columns("labels level_labels nodes classes mean_size seconds", POSITIVE),
        **columns("exact accuracy coverage empty_rate full_rate", SHARE),
        **{f"{part}_{kind}": SHARE for kind in KINDS for part in ("gap", "share")},
        **{f"excess_{kind}": DIFFERENCE for kind in KINDS},
        **{f"groups_{kind}": POSITIVE for kind in KINDS},
    }
    may_lack: ClassVar = ("gap_neighbourhood", "excess_neighbourhood")

    @property
    def draw_name(self) -> tuple[object, ...]:  # noqa: D102
        return (self.dataset, f"{self.share:g}", self.repetition)

    @property
    def draw_seed(self) -> int:  # noqa: D102
        return self.repetition

    def shipped_predictions(self) -> NodePredictions | None:  # noqa: D102
        return amazon_predictions() if (self.dataset, self.model) == ("amazon-computers", "graphsage-mean") else None


class SetsStudy(DrawStudy):
    """Sizes and evenness compared with split APS, with many repetitions, and the goals of the study."""

    kinds = (SetsCell,)
    options = ("method", "share", "repetitions")
    page = "sets"
    command = "napsets reproduce sets --page docs/sets.md"
    cell = SetsCell
    full = DrawScope(models=MODELS[:2], seeds=(0,), repetitions=20, methods=METHODS)
    #: Three small graphs, two repetitions.
    quick = DrawScope(
        ("cora-ml", "citeseer-full", "squirrel-filtered"), MODELS[:2], seeds=(0,), repetitions=2, methods=METHODS
    )

    def scope(self, quick: bool, options: Mapping[str, Any]) -> DrawScope:
        """Return the scope; there is one seed, because only the predictions of its models are kept."""
        if options.get("seeds") not in (None, 1):
            raise InvalidInputError(f"`seeds` must be 1 in the study of sets; got {options['seeds']}")
        return super().scope(quick, options)

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return the tables of the page; the comparison with split APS is short enough for a terminal."""
        standings = make_standings(rows, by_model=True)
        return [
            *_comparison_tables(standings),
            *_goal_table(standings),
            *_choice_table(rows),
            *_graph_tables(rows, standings),
        ]

    def parts(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return goals and comparison, and the tables of single models and graphs."""
        standings = make_standings(rows, by_model=True)
        if not standings:
            return {}
        counts, comparisons = distinct(standings, "draws"), _comparison_tables(standings)
        everywhere = [table for table in comparisons if "all-models" in table.name] or comparisons
        by_model = [table for table in comparisons if table not in everywhere]
        tested = [line for method in ("auto", "auto-small") for line in _test_sentences(rows, method)]
        return {
            "graphs": len(distinct(standings, "dataset")),
            "models": len(distinct(standings, "model")),
            "repetitions": f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}",
            "goals": _goal_table(standings),
            "everywhere": everywhere,
            "by_model": fold("The same for each model", *by_model) if by_model else "",
            "tests": [_LAW, "\n".join(tested)] if tested else "",
            "choices": _choice_table(rows),
            "by_graph": _graph_tables(rows, standings),
        }


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names in this order, and those that it lacks after them."""
    return sorted(set(names), key=lambda name: (order.index(name) if name in order else len(order), name))


def _scopes(standings: Sequence[Standing]) -> dict[str, list[str]]:
    """Return all models together, and each of them."""
    models = _in_order((standing.model for standing in standings), MODELS)
    return ({"all models": models} if len(models) > 1 else {}) | {model: [model] for model in models}


def compare_with_split(standings: Iterable[Standing], share: float, models: Sequence[str]) -> dict[str, Overall]:
    """Compare each method with split APS on all graphs and these models."""
    here = [standing for standing in select(standings, share=share) if standing.model in models]
    summaries = {summary.method: summary for summary in overall(here)}
    return {method: summaries[method] for method in _in_order(summaries, METHODS)}


def _comparison_tables(standings: Sequence[Standing]) -> list[Table]:
    """Return sizes and gaps relative to split APS, for each share of labels, over all models and for each."""
    sizes: dict[str, Any] = {
        "method": "method",
        "geometric mean": lambda summary: summary.ratio.mean,
        "arithmetic mean": "arithmetic",
        "worst": "worst",
        "on": "worst_on",
        "coverage": "coverage",
        "empty": lambda summary: percent(summary.empty_rate),
        "full": lambda summary: percent(summary.full_rate),
    }
    notes = ["Coverage, and the share of empty and of full sets, are means over graphs."]
    heads, comparisons = ["method", "all", *KINDS], []
    for share, (name, models) in product(distinct(standings, "share"), _scopes(standings).items()):
        summaries = compare_with_split(standings, share, models).values()
        gaps: list[list[Entry]] = [[summary.method, *summary.gap_ratios.values()] for summary in summaries]
        where, file = f"{percent(share, 0)} labelled, {name}", f"{_percent(share)}-{name.replace(' ', '-')}"
        title = f"{where}: ratio of the mean sums of excess gaps, and by kind of group"
        comparisons += [
            Table.of(f"sets-sizes-{file}", f"{where}: ratio of mean sizes", summaries, sizes, notes=notes),
            Table(f"sets-gaps-{file}", title, heads, gaps, dict.fromkeys(heads[1:], 2)),
        ]
    return comparisons


def _percent(share: float) -> str:
    return f"{round(100 * share):02d}"


class Goal(NamedTuple):
    """A ratio to split APS that was to be reached, and the most that it was to be."""

    text: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the value is at most the limit."""
        return self.value <= self.limit


def goals(standings: Sequence[Standing], models: Sequence[str]) -> list[Goal]:
    """Return the goals that were set, over all graphs and these models; nothing if these were not measured."""
    by_share = {share: compare_with_split(standings, share, models) for share in (0.05, 0.3)}
    if not all(method in by_share[share] for method, share, *_ in _GOALS):
        return []
    return [
        Goal(f"`{method}`, {percent(share, 0)} labelled: {words}", getattr(by_share[share][method], name), limit)
        for method, share, words, name, limit in _GOALS
    ]


def _goal_table(standings: Sequence[Standing]) -> list[Table]:
    """Return the goals with the measured values; nothing if these were not measured."""
    scopes = _scopes(standings)
    reached = [goals(standings, models) for models in scopes.values()]
    if not reached or not all(reached):
        return []
    lines: list[list[Entry]] = [
        [same[0].text, same[0].limit, *(f"{goal.value:.4f} {'met' if goal.met else '**not met**'}" for goal in same)]
        for same in zip(*reached, strict=True)
    ]
    met = sum(goal.met for goal in reached[0])
    notes = [f"Over {next(iter(scopes))}, {met} of {len(reached[0])} goals are met."]
    title = "Goals: ratios to split APS with the same labels"
    return [Table("sets-goals", title, ["goal", "at most", *scopes], lines, {"at most": 2}, notes, for_screen=False)]


class CoverageTest(NamedTuple):
    """Mean coverage over repetitions, and its distribution if nodes are labelled at random."""

    where: tuple[str, str, float]  #: graph, model, share of labels
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
    from scipy.stats import betabinom

    by_place: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in select(rows, method=method):
        by_place[row["dataset"], row["model"], row["share"]].append(row)
    tests = []
    for where, here in sorted(by_place.items()):
        settings = {(row["nodes"], row["level_labels"], row["alpha"]) for row in here}
        if len(settings) != 1:
            raise InvalidInputError(f"{where} was measured with different numbers of labels")
        nodes, labels, alpha = settings.pop()
        k = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
        covered = sum(round(row["coverage"] * row["nodes"]) for row in here)
        size = 1 << (nodes * len(here)).bit_length()
        single = betabinom.pmf(np.arange(nodes + 1), nodes, k, labels + 1 - k)
        together = np.maximum(np.fft.irfft(np.fft.rfft(single, size) ** len(here), size), 0.0)
        tail = float(min(together[: covered + 1].sum(), together[covered:].sum()))
        mean = covered / nodes / len(here)
        tests.append(CoverageTest(where, labels, k / (labels + 1), mean, min(1.0, 2.0 * tail)))
    return tests


def _test_sentences(rows: Sequence[Row], method: str) -> list[str]:
    tests = coverage_tests(rows, method)
    if not tests:
        return []
    worst = min(tests, key=lambda test: test.p_value)
    below = sum(test.p_value < 0.05 for test in tests)
    graph, model, share = worst.where
    where = f"{graph}, {model}, {percent(share, 0)}"
    return [
        f"- `{method}`: the smallest of {len(tests)} p-values is {worst.p_value:.3g} ({where}: coverage "
        f"{worst.coverage:.4f}, expected {worst.expected:.4f}, m = {worst.level_labels}); after "
        f"Bonferroni correction {min(1.0, worst.p_value * len(tests)):.2g}. {below} of them are below 0.05; "
        f"{0.05 * len(tests):.1f} are expected."
    ]


def _choice_table(rows: Sequence[Row]) -> list[Table]:
    """Return the most frequent choices of `auto` on each graph; nothing without rows."""
    counts: dict[tuple[str, float], Counter[str]] = defaultdict(Counter)
    for row in select(rows, method="auto"):
        counts[row["dataset"], row["share"]][row["choice"]] += 1
    shares = distinct(rows, "share")
    lines: list[list[Entry]] = [
        [graph, *("; ".join(f"{name} ({times})" for name, times in counts[graph, s].most_common(3)) for s in shares)]
        for graph in _in_order((row["dataset"] for row in rows), GRAPHS)
    ]
    title = "The three most frequent choices, over models and repetitions"
    heads = ["graph", *(f"{percent(share, 0)} labelled" for share in shares)]
    return [Table("sets-choices", title, heads, lines, for_screen=False)] if rows else []


def _graph_tables(rows: Sequence[Row], standings: Sequence[Standing]) -> list[Table]:
    """Return size, excess gaps and coverage of each method on each graph."""
    shown = {"size": ("mean-size", "mean size", 2), "total": ("total", "sum of excess gaps", 3)}
    shown |= {"coverage": ("coverage", "coverage", 3)}
    graph_tables, known = [], {(row["dataset"], row["model"], row["share"]): row for row in rows}
    places = product(distinct(standings, "share"), _in_order((p.model for p in standings), MODELS))
    for share, model in places:
        here = {(p.dataset, p.method): p for p in select(standings, share=share, model=model)}
        methods = _in_order((method for _, method in here), METHODS)
        heads = ["graph", "labels", "accuracy", *methods]
        for name, (file, heading, digits) in shown.items():
            lines: list[list[Entry]] = []
            for graph in _in_order((dataset for dataset, _ in here), GRAPHS):
                row = known[graph, model, share]
                numbers = [getattr(here[graph, m], name) if (graph, m) in here else None for m in methods]
                lines.append([graph, row["labels"], row["accuracy"], *numbers])
            title, shown_as = f"{percent(share, 0)} labelled, {model}: {heading}", dict.fromkeys(methods, digits)
            file = f"sets-{file}-{_percent(share)}-{model}"
            graph_tables.append(Table(file, title, heads, lines, shown_as, for_screen=False))
    return graph_tables
