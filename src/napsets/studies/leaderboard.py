"""The leaderboard: every method of the table × graphs × models × shares of labels, on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from napsets.checks.text import percent
from napsets.datasets import DATASETS
from napsets.methods import METHODS, AutoMethod, make_method, title
from napsets.studies.draws import KINDS, MODELS, DrawCell, DrawScope, DrawStudy
from napsets.studies.standings import BASELINE, Overall, Standing, front, front_figure, grouped, make_standings, overall
from napsets.studies.study import POSITIVE, SHARE, Row, columns
from napsets.studies.tables import Entry, Table, fold, join_page, mean

#: The command that writes the committed rows and the page.
COMMAND = "napsets reproduce leaderboard --repetitions 1 --sparing cf-gnn --jobs 2 --page docs/leaderboard.md"

_HOW = """\
**Procedure.** For each seed the nodes of a graph are split at random: about a tenth trains a model, another tenth
selects its weights, and training is inductive. Neighbourhoods are those of the graph induced on the other nodes. Some
of these nodes are labelled at random. Every [method](methods.md) uses these labels only, with its default settings, and
predicts sets for all other nodes, on which it is evaluated. All methods get the same draws, the same uniform numbers
and the same models; the model `mlp` does not use the graph.

**Size** is the mean number of labels in a set. Over all graphs it is shown as the ratio to the size of `{baseline}`
({baseline_title}): the geometric mean, with a 95 % interval from the spread over graphs, which is what to expect on
another graph of this kind.

**Gap** is the average |coverage − {target:g}| over groups of nodes, minus what chance alone gives with groups of these
sizes. 0 is perfect, and a value slightly below 0 is chance. The groups are neighbourhoods (two hops, at least 30
nodes), classes, fifths of the nodes by degree, and fifths by the model's confidence. The table shows the mean of the
four, or of those that exist. *Under* is the part that is due to coverage below {target:g}.

**The Pareto front** of a graph consists of the methods that cover and for which no other covering method has sets as
small and coverage as even. It is based on means, so that two methods on it may differ by noise only. A method *does not
cover* if its mean coverage is more than three standard errors below {target:g}.
"""

_CAPTION = "Set size and unevenness of coverage of each method on each graph, {} of the nodes labelled"

_SOURCES = """\
Amazon Computers is included in the package; the others are in `benchmarks/data`, whose README names their sources and
licences (all MIT). Graphs that exist with and without the direction of edges are counted once. In the two wiki graphs
each node has a number, divided into five classes by its quintiles. Predictions of GraphSAGE-mean and GCN with seed 0
are in the repository. The constants of the methods that choose automatically, and the priors of the evidence, were
chosen on these same graphs, so their results are slightly optimistic.
"""


@dataclass(frozen=True)
class LeaderboardCell(DrawCell):
    """One method on one draw of labelled nodes."""

    study: ClassVar[str] = "leaderboard"
    measured: ClassVar = {
        **columns("labels level_labels nodes classes mean_size seconds", POSITIVE),
        **columns("accuracy coverage singleton_rate empty_rate full_rate", SHARE),
        **{f"{part}_{kind}": SHARE for kind in KINDS for part in ("gap", "chance", "under", "over", "share")},
    }
    may_lack: ClassVar = tuple(f"{part}_neighbourhood" for part in ("gap", "chance", "under", "over"))


class LeaderboardStudy(DrawStudy):
    """The comparison of all methods on the same draws."""

    kinds = (LeaderboardCell,)
    options = ("method", "share", "repetitions", "sparing")
    cell = LeaderboardCell
    full = DrawScope()
    #: One or two minutes: four graphs of different kinds, two models, one seed.
    quick = DrawScope(
        datasets=("cora-ml", "citeseer-full", "squirrel-filtered", "tolokers"),
        models=(MODELS[0], MODELS[-1]),
        seeds=(0,),
        shares=(0.3,),
        repetitions=1,
    )

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return the tables of the page, and a short one for the terminal."""
        return [
            table
            for share, standings in _by_share(rows).items()
            for table in (
                *_overall_tables(standings, share),
                _model_table([row for row in rows if row["share"] == share], share),
                _kind_table(standings, share),
                *_graph_tables(standings, share),
            )
        ]

    def figures(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the pictures by name, one for each share of labels."""
        return {_name("front", share): front_figure(standings) for share, standings in _by_share(rows).items()}

    def text(self, rows: Sequence[Row]) -> str:
        """Return the page: the picture and the findings first, the tables behind folds."""
        by_share = _by_share(rows)
        if not by_share:
            return f"# Leaderboard\n\nNo results yet. Run\n\n```\n{COMMAND}\n```\n"
        pictures = {share: f"![{_CAPTION.format(percent(share, 0))}]" for share in by_share}
        pictures = {share: f"{text}(figures/{_name('front', share)}.svg)" for share, text in pictures.items()}
        first = max(by_share)
        parts = [
            "# Leaderboard",
            "<!-- Generated from the rows in results/leaderboard; to change it, run the command below. -->",
            f"All methods on the same graphs, models and draws of labels, with {percent(first, 0)} of the nodes "
            "labelled. Each panel is a graph. Sets are smaller to the left, and coverage is more even below.",
            pictures.pop(first),
            *(
                f"With {percent(share, 0)} of the nodes labelled:\n\n- " + "\n- ".join(findings(by_share[share]))
                for share in sorted(by_share, reverse=True)
            ),
            "## How it was measured",
            _settings(rows),
            "All numbers are computed from committed rows. This command runs only what is missing:\n\n"
            f"```\n{COMMAND}\n```",
            fold(
                "Procedure, and the meaning of size, gap and Pareto front",
                _HOW.format(baseline=BASELINE, baseline_title=title(BASELINE), target=1.0 - rows[0]["alpha"]),
            ),
            "## Results",
            *(fold(f"Picture: {percent(share, 0)} labelled", picture) for share, picture in pictures.items()),
            *self._folds(rows, list(by_share)),
            "## The graphs",
            fold("Size, labels and accuracy of the models", _graph_table(rows).markdown()),
            _SOURCES,
        ]
        return join_page(parts)

    def _folds(self, rows: Sequence[Row], shares: Sequence[float]) -> list[str]:
        """Return the tables of the page, each kind behind a fold of its own."""
        tables = {table.name: table.markdown() for table in self.tables(rows)}
        kinds = {
            "All graphs together": ("overall",),
            "Graph by graph": ("size", "gap", "coverage"),
            "By model and by kind of group": ("models", "kinds"),
        }
        return [
            fold(f"{heading}, {percent(share, 0)} labelled", *(tables[_name(kind, share)] for kind in names))
            for heading, names in kinds.items()
            for share in shares
        ]


def _by_share(rows: Sequence[Row]) -> dict[float, list[Standing]]:
    return dict(sorted(grouped(make_standings(rows), "share").items()))


def findings(standings: Sequence[Standing]) -> list[str]:
    """Return the findings for one share of labels, including where the methods that choose automatically lose."""
    summaries = overall(standings)
    graphs = len({standing.dataset for standing in standings})
    able = [summary for summary in summaries if not summary.fails and summary.graphs == graphs]
    sentences = []
    if able:
        small, even = min(able, key=lambda summary: summary.ratio.mean), min(able, key=lambda summary: summary.gap.mean)
        base = next(summary for summary in summaries if summary.method == BASELINE)
        sentences.append(
            f"Of the methods that cover on all {graphs} graphs, `{small.method}` has the smallest sets, "
            f"{small.ratio.text(2)} times the size of `{BASELINE}`. `{even.method}` has the most even coverage: its "
            f"gap is {even.gap.text()}, compared with {base.gap.text()} for `{BASELINE}`."
        )
    often = sorted(summaries, key=lambda summary: -summary.on_front)[:3]
    names = ", ".join(f"`{summary.method}` ({summary.on_front})" for summary in often)
    sentences.append(f"Methods that are on the Pareto front of the most graphs: {names}.")
    failing = [f"`{summary.method}` ({', '.join(summary.fails)})" for summary in summaries if summary.fails]
    if failing:
        sentences.append(f"Methods whose coverage is clearly too low on a graph: {'; '.join(failing)}.")
    wide = [summary for summary in summaries if summary.coverage > 1.0 - standings[0].alpha / 2]
    if wide:
        sentences.append(
            "Methods whose average coverage is far too high, with larger sets than necessary: "
            + ", ".join(f"`{summary.method}` ({summary.coverage:.3f})" for summary in wide)
            + "."
        )
    sentences += [_about(summary, standings) for summary in summaries if _chooses(summary.method)]
    return sentences


def _about(summary: Overall, standings: Sequence[Standing]) -> str:
    """Describe the results of a method that chooses automatically, and where another one is better in both respects."""
    sentence = (
        f"`{summary.method}`, which chooses automatically, has sets {summary.ratio.text(2)} times the size of "
        f"`{BASELINE}`, at worst {summary.worst:.2f} times ({summary.worst_on}). Its gap differs from that of "
        f"`{BASELINE}` by {summary.gap_difference.text()}. It is on the Pareto front of {summary.front_text} graphs."
    )
    lost = []
    for mine in standings:
        if mine.method == summary.method:
            here = [
                other for other in standings if other.dataset == mine.dataset and other.covers and other.beats(mine)
            ]
            if here:
                lost.append(f"{mine.dataset} (`{min(here, key=lambda other: other.size).method}`)")
    if lost:
        sentence += f" Another method has sets no larger and coverage no less even on {', '.join(lost)}."
    return sentence


def _chooses(method: str) -> bool:
    return method in METHODS and isinstance(make_method(method), AutoMethod)


def _settings(rows: Sequence[Row]) -> str:
    """Describe what was run, and how long it took."""

    def several(name: str) -> list[Any]:
        return sorted({row[name] for row in rows})

    datasets, models, seeds, methods = (several(name) for name in ("dataset", "model", "seed", "method"))
    shares, draws = several("share"), len(several("repetition"))
    seconds = sum(row["seconds"] for row in rows)
    lines = [
        f"{len(methods)} methods on {len(datasets)} graphs × {len(models)} models ({', '.join(models)}) × {len(seeds)} "
        f"seed{'s' * (len(seeds) != 1)} × {' and '.join(percent(share, 0) for share in shares)} labelled × {draws} "
        f"draw{'s' * (draws != 1)} of labels, alpha {rows[0]['alpha']:g}: {len(rows):,} rows. Calibrating and "
        f"predicting took {seconds / 60:.0f} minutes in total."
    ]
    counts = {method: sum(row["method"] == method for row in rows) for method in methods}
    fewer = [f"`{method}` ({count:,})" for method, count in counts.items() if count < max(counts.values())]
    if fewer:
        lines.append(
            f"Some methods were run on fewer than {max(counts.values()):,} draws, and are compared with the others on "
            f"the common draws: {', '.join(fewer)}."
        )
    return " ".join(lines)


#: The columns of the overall table.
_OVERALL: dict[str, Any] = {
    "method": "method",
    "size ratio (95 %)": lambda summary: summary.ratio.text(),
    "worst": "worst",
    "on": "worst_on",
    "gap (95 %)": lambda summary: summary.gap.text(),
    "minus the baseline's (95 %)": lambda summary: summary.gap_difference.text(),
    "under": "under",
    "coverage": "coverage",
    "empty": "empty_rate",
    "full": "full_rate",
    "rank": "rank",
    "on the front of": "front_text",
    "seconds": "seconds",
}
#: Those of them for which a terminal is wide enough.
_SHORT = ("method", "size ratio (95 %)", "gap (95 %)", "coverage", "full", "on the front of")


def _overall_tables(standings: Sequence[Standing], share: float) -> list[Table]:
    """Return the comparison over all graphs in the width of a terminal, and whole."""
    summaries, heading = overall(standings), f"{percent(share, 0)} labelled, all models: relative to"
    short = {name: _OVERALL[name] for name in _SHORT} | {"size ratio (95 %)": lambda summary: summary.ratio.text(2)}
    notes = [
        "Rank: average rank by size among the methods that cover. Seconds: time to calibrate and predict; scores that "
        "several methods share count for the first of them."
    ]
    return [
        Table.of(_name("short", share), f"{heading} {BASELINE}", summaries, short),
        Table.of(
            _name("overall", share), f"{heading} `{BASELINE}`, smallest sets first", summaries, _OVERALL,
            digits={"rank": 1, "worst": 2}, notes=notes, for_screen=False,
        ),
    ]  # fmt: skip


def _model_table(rows: Sequence[Row], share: float) -> Table:
    """Return ratio and gap of each method with each model."""
    by_model = {
        model: {summary.method: summary for summary in overall(standings)}
        for model, standings in sorted(grouped(make_standings(rows, by_model=True), "model").items())
    }
    methods = dict.fromkeys(method for summaries in by_model.values() for method in summaries)
    lines: list[list[Entry]] = []
    for method in methods:
        here = [summaries.get(method) for summaries in by_model.values()]
        sizes = [None if summary is None else summary.ratio.mean for summary in here]
        gaps = [None if summary is None else summary.gap.mean for summary in here]
        lines.append([method, *sizes, *gaps])
    columns = ["method", *(f"{name}, {model}" for name in ("size", "gap") for model in by_model)]
    return Table(_name("models", share), f"{percent(share, 0)} labelled: size ratio and gap by model", columns, lines)


def _kind_table(standings: Sequence[Standing], share: float) -> Table:
    by_method = grouped(standings, "method")
    rows: list[list[Entry]] = [
        [summary.method, *(mean(standing.excess[kind] for standing in by_method[summary.method]) for kind in KINDS)]
        for summary in overall(standings)
    ]
    heading = f"{percent(share, 0)} labelled: excess gap by kind of group, mean over graphs"
    return Table(_name("kinds", share), heading, ["method", *KINDS], rows)


def _graph_tables(standings: Sequence[Standing], share: float) -> list[Table]:
    """Return size, gap and coverage of each method on each graph; those on the Pareto front are bold."""
    by_graph = {
        graph: {standing.method: standing for standing in here} for graph, here in grouped(standings, "dataset").items()
    }
    fronts = {graph: front(list(here.values())) for graph, here in by_graph.items()}
    shown: dict[str, tuple[str, Callable[[Standing], str]]] = {
        "size": (
            "mean size ± standard error over seeds",
            lambda standing: _pair(standing.size, standing.size_error, 2),
        ),
        "gap": ("excess gap ± standard error over seeds", lambda standing: _pair(standing.gap, standing.gap_error, 3)),
        "coverage": ("coverage", lambda standing: f"{standing.coverage:.3f}"),
    }

    def entry(method: str, graph: str, text: Callable[[Standing], str]) -> Entry:
        standing = by_graph[graph].get(method)
        if standing is None:
            return None
        return f"**{text(standing)}**" if standing in fronts[graph] else text(standing)

    tables = []
    for name, (heading, text) in shown.items():
        lines = [[s.method, *(entry(s.method, graph, text) for graph in by_graph)] for s in overall(standings)]
        words = f"{percent(share, 0)} labelled: {heading}"
        tables.append(Table(_name(name, share), words, ["method", *by_graph], lines, for_screen=False))
    return tables


def _graph_table(rows: Sequence[Row]) -> Table:
    """Return a description of each graph, the number of labelled nodes, and the accuracy of each model."""
    base = [row for row in rows if row["method"] == BASELINE]
    graphs, shares, models = (sorted({row[name] for row in base}) for name in ("dataset", "share", "model"))

    def average(name: str, **wanted: Any) -> Entry:
        return mean(row[name] for row in base if all(row[key] == value for key, value in wanted.items()))

    columns = [
        "graph",
        "description",
        *(f"labels, {percent(share, 0)}" for share in shares),
        *(f"accuracy, {m}" for m in models),
    ]
    lines: list[list[Entry]] = [
        [
            graph,
            DATASETS[graph].summary if graph in DATASETS else None,
            *(average("labels", dataset=graph, share=share) for share in shares),
            *(average("accuracy", dataset=graph, model=model) for model in models),
        ]
        for graph in graphs
    ]
    digits = {name: 0 for name in columns if name.startswith("labels")}
    heading = "Description, labelled nodes, and accuracy of the models"
    return Table("leaderboard-graphs", heading, columns, lines, digits, for_screen=False)


def _pair(value: float, error: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if error != error else f"{value:.{digits}f} ± {error:.{digits}f}"
    return text.replace("-", "−")


def _name(what: str, share: float) -> str:
    return f"leaderboard-{what}-{round(100 * share):02d}"
