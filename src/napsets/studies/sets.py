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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from napsets.checks.text import percent
from napsets.datasets import amazon_predictions
from napsets.errors import InvalidInputError
from napsets.files.predictions import NodePredictions
from napsets.studies.draws import GRAPHS, KINDS, MODELS, DrawCell, DrawScope, DrawStudy
from napsets.studies.standings import BASELINE, Overall, Standing, grouped, make_standings, overall
from napsets.studies.study import DIFFERENCE, POSITIVE, SHARE, Row, columns
from napsets.studies.tables import Entry, Table, fold, join_page, mean

#: The command that writes the committed rows and the page.
COMMAND = "napsets reproduce sets --page docs/sets.md"
METHODS = (BASELINE, "naps", "naps-exact", "daps", "informed", "auto", "auto-small")
#: The goals that were set: method, share of labels, what was to be reached, and the most that a ratio was to be.
_GOALS = (
    ("auto", 0.3, "at least 17 % smaller (arithmetic mean)", "arithmetic", 0.83),
    ("auto", 0.05, "at least 13 % smaller (arithmetic mean)", "arithmetic", 0.87),
    ("auto", 0.3, "at most 2 % larger on any graph", "worst", 1.02),
    ("auto", 0.05, "at most 2 % larger on any graph", "worst", 1.02),
    ("auto", 0.3, "at most 0.7 of the excess gaps", "gaps", 0.7),
    ("auto", 0.05, "at most 0.9 of the excess gaps", "gaps", 0.9),
    ("auto-small", 0.3, "at least 24 % smaller (arithmetic mean)", "arithmetic", 0.76),
    ("auto-small", 0.05, "at least 18 % smaller (arithmetic mean)", "arithmetic", 0.82),
)

_INTRODUCTION = """\
# Sets on a dozen graphs

<!-- Generated from the rows in results/sets; to change it, run the command below. -->

This study compares set sizes and evenness of coverage on {graphs} graphs of different kinds, with {models} models per
graph, at alpha = 0.1. All numbers are computed from committed rows. This command runs only what is missing:

```
{command}
```
"""

_HOW = """\
**Procedure.** A tenth of the nodes trains a model, another tenth selects its weights, and training is inductive.
Neighbourhoods are those of the graph induced on the other nodes. In each of {repetitions} repetitions some of these
nodes, 5 % or 30 %, are labelled at random; every method predicts sets for all others and is evaluated on them. The
methods have their default settings: `split` (APS, one threshold for all nodes) uses all labels for its threshold,
`naps` is NAPS as published with 2 hops, and `naps-exact`, `informed`, `auto` and `auto-small` hold out a part of the
labels for the level. The two wiki graphs are regression data whose target was divided into five classes by its
quintiles. The few constants of `auto` (the power that probabilities are raised to, the weights of class-wise ranks) and
of the evidence (its priors, the ridge penalties) were chosen on these same graphs, the latest of them on other draws of
labels and on the first five of these. The results of `auto`, `auto-small` and `informed` are therefore slightly
optimistic.

**Excess gaps.** `coverage_gap` is the average |coverage − 0.9| over groups of nodes, minus what chance alone gives with
groups of these sizes. The groups are neighbourhoods (radius 2, at least 30 nodes; minesweeper has none, citeseer-full
hardly any), classes, fifths by degree, and fifths by the model's confidence; the tables show the sum of the four. Small
is good, and a value slightly below zero is chance.

Read sizes together with coverage: `naps` covers far more than 0.9, because nodes with few labelled neighbours get full
sets.
"""

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

    def text(self, rows: Sequence[Row]) -> str:
        """Return the page: goals and comparison first, the tables of single models and graphs behind folds."""
        if not rows:
            return f"# Sets on a dozen graphs\n\nNo results yet. Run\n\n```\n{COMMAND}\n```\n"
        standings = make_standings(rows, by_model=True)
        counts = sorted({standing.draws for standing in standings})
        settings = {
            "graphs": len({standing.dataset for standing in standings}),
            "models": len(_models(standings)),
            "repetitions": f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}",
            "command": COMMAND,
        }
        goal_table, comparisons = _goal_table(standings), _comparison_tables(standings)
        everywhere = [wide for wide in comparisons if "all-models" in wide.name] or comparisons
        by_model = [wide for wide in comparisons if wide not in everywhere]
        tested = [line for method in ("auto", "auto-small") for line in _test_sentences(rows, method)]
        parts = [
            _INTRODUCTION.format(**settings),
            "## Goals" if goal_table else "",
            *_markdown(goal_table),
            "## Compared with split APS",
            *_markdown(everywhere),
            fold("The same for each model", *_markdown(by_model)) if by_model else "",
            "## How it was measured",
            _HOW.format(**settings),
            *(["## Tests of coverage", _LAW, "\n".join(tested)] if tested else []),
            "## Choices of `auto`",
            fold("The most frequent choices", *_markdown(_choice_table(rows))),
            "## Graph by graph",
            fold("Size, gaps and coverage", *_markdown(_graph_tables(rows, standings))),
        ]
        return join_page(parts)


def _markdown(tables: Iterable[Table]) -> list[str]:
    return [table.markdown() for table in tables]


def _models(standings: Iterable[Standing]) -> list[str]:
    there = {standing.model for standing in standings}
    return [model for model in MODELS if model in there]


def _scopes(standings: Sequence[Standing]) -> dict[str, list[str]]:
    """Return all models together, and each of them."""
    models = _models(standings)
    return ({"all models": models} if len(models) > 1 else {}) | {model: [model] for model in models}


def _percent(share: float) -> str:
    return f"{round(100 * share):02d}"


class SplitRatios(NamedTuple):
    """A method compared with split APS over graphs: ratios of mean sizes, and of mean excess gaps."""

    sizes: Overall
    gaps: float
    gaps_by_kind: dict[str, float]


def compare_with_split(standings: Iterable[Standing], share: float, models: Sequence[str]) -> dict[str, SplitRatios]:
    """Compare each method with split APS on all graphs and these models."""
    here = [standing for standing in standings if standing.share == share and standing.model in models]
    base = {standing.setting: standing for standing in here if standing.method == BASELINE}
    summaries = {summary.method: summary for summary in overall(here)}
    ratios = {}
    for method, mine in grouped(here, "method").items():
        theirs = [base[standing.setting] for standing in mine]
        kinds = {kind: mean(p.excess[kind] for p in mine) / mean(p.excess[kind] for p in theirs) for kind in KINDS}
        gaps = mean(standing.total for standing in mine) / mean(standing.total for standing in theirs)
        ratios[method] = SplitRatios(summaries[method], gaps, kinds)
    return {method: ratios[method] for method in _in_order(ratios)}


def _in_order(methods: Iterable[str]) -> list[str]:
    there = list(methods)
    return [*(name for name in METHODS if name in there), *sorted(name for name in there if name not in METHODS)]


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
    size_notes = ["Coverage, and the share of empty and of full sets, are means over graphs."]
    comparisons = []
    for share in sorted({standing.share for standing in standings}):
        for name, models in _scopes(standings).items():
            ratios = compare_with_split(standings, share, models)
            where, file = f"{percent(share, 0)} labelled, {name}", f"{_percent(share)}-{name.replace(' ', '-')}"
            summaries = [ratio.sizes for ratio in ratios.values()]
            title = f"{where}: ratio of mean sizes"
            comparisons.append(Table.of(f"sets-sizes-{file}", title, summaries, sizes, notes=size_notes))
            gap_lines: list[list[Entry]] = [[m, r.gaps, *r.gaps_by_kind.values()] for m, r in ratios.items()]
            title = f"{where}: ratio of the mean sums of excess gaps, and by kind of group"
            heads = ["method", "all", *KINDS]
            comparisons.append(Table(f"sets-gaps-{file}", title, heads, gap_lines, dict.fromkeys(heads[1:], 2)))
    return comparisons


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
    reached = []
    for method, share, words, name, limit in _GOALS:
        ratios = by_share[share][method]
        value = ratios.gaps if name == "gaps" else getattr(ratios.sizes, name)
        reached.append(Goal(f"`{method}`, {percent(share, 0)} labelled: {words}", value, limit))
    return reached


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


@dataclass(frozen=True)
class CoverageTest:
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
    by_place: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        if row["method"] == method:
            by_place[row["dataset"], row["model"], row["share"]].append(row)
    return [_coverage_test(where, by_place[where]) for where in sorted(by_place)]


def _coverage_test(where: tuple[str, str, float], rows: Sequence[Row]) -> CoverageTest:
    from scipy.stats import betabinom

    settings = {(row["nodes"], row["level_labels"], row["alpha"]) for row in rows}
    if len(settings) != 1:
        raise InvalidInputError(f"{where} was measured with different numbers of labels")
    nodes, labels, alpha = settings.pop()
    k = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
    covered = sum(round(row["coverage"] * row["nodes"]) for row in rows)
    size = 1 << (nodes * len(rows)).bit_length()
    single = betabinom.pmf(np.arange(nodes + 1), nodes, k, labels + 1 - k)
    together = np.maximum(np.fft.irfft(np.fft.rfft(single, size) ** len(rows), size), 0.0)
    tail = float(min(together[: covered + 1].sum(), together[covered:].sum()))
    return CoverageTest(where, labels, k / (labels + 1), covered / nodes / len(rows), min(1.0, 2.0 * tail))


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
    for row in rows:
        if row["method"] == "auto":
            counts[row["dataset"], row["share"]][row["choice"]] += 1
    shares = sorted({row["share"] for row in rows})
    lines: list[list[Entry]] = [
        [graph, *("; ".join(f"{name} ({times})" for name, times in counts[graph, s].most_common(3)) for s in shares)]
        for graph in _graphs(row["dataset"] for row in rows)
    ]
    title = "The three most frequent choices, over models and repetitions"
    heads = ["graph", *(f"{percent(share, 0)} labelled" for share in shares)]
    return [Table("sets-choices", title, heads, lines, for_screen=False)] if rows else []


def _graphs(datasets: Iterable[str]) -> list[str]:
    names = set(datasets)
    return [*(name for name in GRAPHS if name in names), *sorted(names - set(GRAPHS))]


def _graph_tables(rows: Sequence[Row], standings: Sequence[Standing]) -> list[Table]:
    """Return size, excess gaps and coverage of each method on each graph."""
    shown = {"size": ("mean-size", "mean size", 2), "total": ("total", "sum of excess gaps", 3)}
    shown |= {"coverage": ("coverage", "coverage", 3)}
    graph_tables, known = [], {(row["dataset"], row["model"], row["share"]): row for row in rows}
    for share in sorted({standing.share for standing in standings}):
        for model in _models(standings):
            here = {(p.dataset, p.method): p for p in standings if (p.share, p.model) == (share, model)}
            methods = _in_order({method for _, method in here})
            for name, (file, heading, digits) in shown.items():
                lines: list[list[Entry]] = []
                for graph in _graphs(dataset for dataset, _ in here):
                    row = known[graph, model, share]
                    numbers = [getattr(here[graph, m], name) if (graph, m) in here else None for m in methods]
                    lines.append([graph, row["labels"], row["accuracy"], *numbers])
                title = f"{percent(share, 0)} labelled, {model}: {heading}"
                heads = ["graph", "labels", "accuracy", *methods]
                shown_as = dict.fromkeys(methods, digits)
                file = f"sets-{file}-{_percent(share)}-{model}"
                graph_tables.append(Table(file, title, heads, lines, shown_as, for_screen=False))
    return graph_tables
