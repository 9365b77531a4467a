"""The sets study: set sizes and evenness of coverage compared with split APS on a dozen graphs, many repetitions.

The models are those of the leaderboard with seed 0, except GraphSAGE on Amazon, whose predictions are included in the
package. All predictions are kept in the repository, so that the study needs no torch and gives the same results
everywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from napsets.checks.text import percent
from napsets.datasets import amazon_predictions
from napsets.errors import InvalidInputError
from napsets.files.predictions import NodePredictions
from napsets.studies.draws import GRAPHS, KINDS, MODELS, DrawCell, DrawScope, DrawStudy
from napsets.studies.split_comparison import (
    Averages,
    Place,
    averages,
    compare_with_split,
    coverage_tests,
    goals,
    is_comparable,
)
from napsets.studies.study import DIFFERENCE, POSITIVE, SHARE, Findings, Page, Row, columns
from napsets.studies.tables import Entry, Table, fold, join_page

if TYPE_CHECKING:
    from napsets.studies.laboratory import Laboratory, RowStore

#: The command that writes the committed rows and the page.
COMMAND = "napsets reproduce sets --page docs/sets.md"
METHODS = ("split", "naps", "naps-exact", "daps", "informed", "auto", "auto-small")

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

    def findings(self, laboratory: Laboratory, scope: DrawScope) -> Findings:  # noqa: D102
        rows = self.rows(laboratory.store, scope)
        return Findings(tables(rows), dict, facts={"rows": len(rows), "skipped": laboratory.skipped})

    def page(self, store: RowStore, scope: DrawScope) -> Page:  # noqa: D102
        return Page(page_text(self.rows(store, scope)), {})


def page_text(rows: Sequence[Row]) -> str:
    """Return the page in Markdown: goals and comparison first, the tables of single models and graphs behind folds."""
    if not rows:
        return f"# Sets on a dozen graphs\n\nNo results yet. Run\n\n```\n{COMMAND}\n```\n"
    table = averages(rows)
    counts = sorted({average.repetitions for average in table.values()})
    settings = {
        "graphs": len({place.dataset for place in table}),
        "models": len(_models(table)),
        "repetitions": f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}",
        "command": COMMAND,
    }
    parts = [_INTRODUCTION.format(**settings)]
    if _goal_table(table):
        parts += ["## Goals", *(goal.markdown() for goal in _goal_table(table))]
    comparisons = _comparison_tables(table)
    everywhere = [wide for wide in comparisons if "all-models" in wide.name] or comparisons
    by_model = [wide for wide in comparisons if wide not in everywhere]
    parts += ["## Compared with split APS", *(wide.markdown() for wide in everywhere)]
    if by_model:
        parts.append(fold("The same for each model", *(wide.markdown() for wide in by_model)))
    parts += ["## How it was measured", _HOW.format(**settings)]
    tested = [line for method in ("auto", "auto-small") for line in _test_sentences(rows, method)]
    if tested:
        parts += ["## Tests of coverage", _LAW, "\n".join(tested)]
    parts += ["## Choices of `auto`", fold("The most frequent choices", _choice_table(rows).markdown())]
    parts += ["## Graph by graph", fold("Size, gaps and coverage", *(one.markdown() for one in _graph_tables(table)))]
    return join_page(parts)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page; the comparison with split APS is short enough for a terminal."""
    if not rows:
        return []
    table = averages(rows)
    return [*_comparison_tables(table), *_goal_table(table), _choice_table(rows), *_graph_tables(table)]


def _models(table: Averages) -> list[str]:
    return [model for model in MODELS if any(place.model == model for place in table)]


def _methods(table: Averages) -> list[str]:
    return list(dict.fromkeys([*METHODS, *(place.method for place in table)]))


def _scopes(table: Averages) -> dict[str, list[str]]:
    """Return all models together, and each of them."""
    models = _models(table)
    return ({"all models": models} if len(models) > 1 else {}) | {model: [model] for model in models}


def _percent(share: float) -> str:
    return f"{round(100 * share):02d}"


def _comparison_tables(table: Averages) -> list[Table]:
    """Return sizes and gaps relative to split APS, for each share of labels, over all models and for each."""
    sizes = ["method", "geometric mean", "arithmetic mean", "worst", "on", "coverage", "empty", "full"]
    shown = ("method", "geometric", "arithmetic", "worst", "worst_on", "coverage")
    size_notes = ["Coverage, and the share of empty and of full sets, are means over graphs."]
    comparisons = []
    for share in sorted({place.share for place in table}):
        for name, models in _scopes(table).items():
            methods = [method for method in _methods(table) if is_comparable(table, method, share, models)]
            ratios = [compare_with_split(table, method, share, models) for method in methods]
            size_lines: list[list[Entry]] = [
                [*(getattr(r, name) for name in shown), percent(r.empty), percent(r.full)] for r in ratios
            ]
            gap_lines: list[list[Entry]] = [
                [r.method, r.gaps, *(r.gaps_by_kind[kind] for kind in KINDS)] for r in ratios
            ]
            where, file = f"{percent(share, 0)} labelled, {name}", f"{_percent(share)}-{name.replace(' ', '-')}"
            comparisons += [
                Table(f"sets-sizes-{file}", f"{where}: ratio of mean sizes", sizes, size_lines, notes=size_notes),
                Table(
                    f"sets-gaps-{file}", f"{where}: ratio of the mean sums of excess gaps, and by kind of group",
                    ["method", "all", *KINDS], gap_lines, dict.fromkeys(["all", *KINDS], 2),
                ),
            ]  # fmt: skip
    return comparisons


def _goal_table(table: Averages) -> list[Table]:
    """Return the goals with the measured values; nothing if these were not measured."""
    scopes = _scopes(table)
    wanted = (("auto", 0.05), ("auto", 0.3), ("auto-small", 0.05), ("auto-small", 0.3))
    if not all(is_comparable(table, method, share, models) for method, share in wanted for models in scopes.values()):
        return []
    reached = [goals(table, models) for models in scopes.values()]
    lines: list[list[Entry]] = [
        [same[0].text, same[0].limit, *(f"{goal.value:.4f} {'met' if goal.met else '**not met**'}" for goal in same)]
        for same in zip(*reached, strict=True)
    ]
    met = sum(goal.met for goal in reached[0])
    notes = [f"Over {next(iter(scopes))}, {met} of {len(reached[0])} goals are met."]
    title = "Goals: ratios to split APS with the same labels"
    return [Table("sets-goals", title, ["goal", "at most", *scopes], lines, {"at most": 2}, notes, for_screen=False)]


def _test_sentences(rows: Sequence[Row], method: str) -> list[str]:
    tests = coverage_tests(rows, method)
    if not tests:
        return []
    worst = min(tests, key=lambda test: test.p_value)
    below = sum(test.p_value < 0.05 for test in tests)
    where = f"{worst.place.dataset}, {worst.place.model}, {percent(worst.place.share, 0)}"
    return [
        f"- `{method}`: the smallest of {len(tests)} p-values is {worst.p_value:.3g} ({where}: coverage "
        f"{worst.coverage:.4f}, expected {worst.expected:.4f}, m = {worst.level_labels}); after "
        f"Bonferroni correction {min(1.0, worst.p_value * len(tests)):.2g}. {below} of them are below 0.05; "
        f"{0.05 * len(tests):.1f} are expected."
    ]


def _choice_table(rows: Sequence[Row]) -> Table:
    """Return the most frequent choices of `auto` on each graph."""
    counts: dict[tuple[str, float], Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["method"] == "auto":
            counts[row["dataset"], row["share"]][row["choice"]] += 1
    shares = sorted({row["share"] for row in rows})
    lines: list[list[Entry]] = [
        [graph, *("; ".join(f"{name} ({times})" for name, times in counts[graph, s].most_common(3)) for s in shares)]
        for graph in _graphs(rows)
    ]
    title = "The three most frequent choices, over models and repetitions"
    heads = ["graph", *(f"{percent(share, 0)} labelled" for share in shares)]
    return Table("sets-choices", title, heads, lines, for_screen=False)


def _graphs(rows: Sequence[Row]) -> list[str]:
    names = {row["dataset"] for row in rows}
    return [*(name for name in GRAPHS if name in names), *sorted(names - set(GRAPHS))]


def _graph_tables(table: Averages) -> list[Table]:
    """Return size, excess gaps and coverage of each method on each graph."""
    shown = {"mean_size": ("mean size", 2), "total": ("sum of excess gaps", 3), "coverage": ("coverage", 3)}
    graphs = _graphs([place._asdict() for place in table])
    graph_tables = []
    for share in sorted({place.share for place in table}):
        for model in _models(table):
            methods = [method for method in _methods(table) if is_comparable(table, method, share, [model])]
            for name, (heading, digits) in shown.items():
                lines: list[list[Entry]] = []
                for graph in graphs:
                    known = {m: table[place] for m in methods if (place := Place(graph, model, share, m)) in table}
                    if "split" in known:
                        numbers = [getattr(known[m], name) if m in known else None for m in methods]
                        lines.append([graph, known["split"].labels, known["split"].accuracy, *numbers])
                title = f"{percent(share, 0)} labelled, {model}: {heading}"
                file = f"sets-{name.replace('_', '-')}-{_percent(share)}-{model}"
                heads = ["graph", "labels", "accuracy", *methods]
                graph_tables.append(Table(file, title, heads, lines, dict.fromkeys(methods, digits), for_screen=False))
    return graph_tables
