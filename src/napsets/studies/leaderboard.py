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
from napsets.studies.tables import Entry, Table, distinct, fold, mean, select

_CAPTION = "Set size and unevenness of coverage of each method on each graph, {} of the nodes labelled"


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
    page = "leaderboard"
    command = "napsets reproduce leaderboard --repetitions 1 --sparing cf-gnn --jobs 2 --page docs/leaderboard.md"
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
        return [table for share, standings in _by_share(rows).items() for table in _tables(rows, standings, share)]

    def figures(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the pictures by name, one for each share of labels."""
        return {_name("front", share): front_figure(standings) for share, standings in _by_share(rows).items()}

    def parts(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the picture and the findings, and the tables, each kind behind a fold of its own."""
        by_share = _by_share(rows)
        if not by_share:
            return {}
        pictures = {share: f"![{_CAPTION.format(percent(share, 0))}]" for share in by_share}
        pictures = {share: f"{text}(figures/{_name('front', share)}.svg)" for share, text in pictures.items()}
        tables = {table.name: table for table in self.tables(rows)}
        kinds = {
            "All graphs together": ("overall",),
            "Graph by graph": ("size", "gap", "coverage"),
            "By model and by kind of group": ("models", "kinds"),
        }
        first = max(by_share)
        return {
            "labelled": percent(first, 0),
            "picture": pictures.pop(first),
            "findings": [
                f"With {percent(share, 0)} of the nodes labelled:\n\n- " + "\n- ".join(findings(by_share[share]))
                for share in sorted(by_share, reverse=True)
            ],
            "settings": _settings(rows),
            "baseline": BASELINE,
            "baseline_title": title(BASELINE),
            "target": 1.0 - rows[0]["alpha"],
            "results": [
                *(fold(f"Picture: {percent(share, 0)} labelled", picture) for share, picture in pictures.items()),
                *(
                    fold(f"{heading}, {percent(share, 0)} labelled", *(tables[_name(kind, share)] for kind in names))
                    for heading, names in kinds.items()
                    for share in by_share
                ),
            ],
            "graphs": _graph_table(rows),
        }


def _by_share(rows: Sequence[Row]) -> dict[float, list[Standing]]:
    return dict(sorted(grouped(make_standings(rows), "share").items()))


def findings(standings: Sequence[Standing]) -> list[str]:
    """Return the findings for one share of labels, including where the methods that choose automatically lose."""
    summaries = overall(standings)
    graphs = len(distinct(standings, "dataset"))
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
    for mine in select(standings, method=summary.method):
        better = [other for other in select(standings, dataset=mine.dataset, covers=True) if other.beats(mine)]
        if better:
            lost.append(f"{mine.dataset} (`{min(better, key=lambda other: other.size).method}`)")
    if lost:
        sentence += f" Another method has sets no larger and coverage no less even on {', '.join(lost)}."
    return sentence


def _chooses(method: str) -> bool:
    return method in METHODS and isinstance(make_method(method), AutoMethod)


def _settings(rows: Sequence[Row]) -> str:
    """Describe what was run, and how long it took."""
    datasets, models, seeds, methods = (distinct(rows, name) for name in ("dataset", "model", "seed", "method"))
    shares, draws = distinct(rows, "share"), len(distinct(rows, "repetition"))
    seconds = sum(row["seconds"] for row in rows)
    lines = [
        f"{len(methods)} methods on {len(datasets)} graphs × {len(models)} models ({', '.join(models)}) × {len(seeds)} "
        f"seed{'s' * (len(seeds) != 1)} × {' and '.join(percent(share, 0) for share in shares)} labelled × {draws} "
        f"draw{'s' * (draws != 1)} of labels, alpha {rows[0]['alpha']:g}: {len(rows):,} rows. Calibrating and "
        f"predicting took {seconds / 60:.0f} minutes in total."
    ]
    counts = {method: len(select(rows, method=method)) for method in methods}
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


def _tables(rows: Sequence[Row], standings: Sequence[Standing], share: float) -> list[Table]:
    """Return the tables of one share: over all graphs (in the width of a terminal, and whole), by model, by graph."""
    summaries, where = overall(standings), f"{percent(share, 0)} labelled"
    short = {name: _OVERALL[name] for name in _SHORT} | {"size ratio (95 %)": lambda summary: summary.ratio.text(2)}
    heading = f"{where}, all models: relative to `{BASELINE}`, smallest sets first"
    notes = [
        "Rank: average rank by size among the methods that cover. Seconds: time to calibrate and predict; scores that "
        "several methods share count for the first of them."
    ]
    digits = {"rank": 1, "worst": 2}
    kinds: list[list[Entry]] = [[summary.method, *(summary.excess[kind] for kind in KINDS)] for summary in summaries]
    return [
        Table.of(_name("short", share), f"{where}, all models: relative to {BASELINE}", summaries, short),
        Table.of(_name("overall", share), heading, summaries, _OVERALL, digits=digits, notes=notes, for_screen=False),
        _model_table(select(rows, share=share), share),
        Table(
            _name("kinds", share), f"{where}: excess gap by kind of group, mean over graphs", ["method", *KINDS], kinds
        ),
        *_graph_tables(standings, [summary.method for summary in summaries], share),
    ]


def _model_table(rows: Sequence[Row], share: float) -> Table:
    """Return ratio and gap of each method with each model."""
    by_model = {
        model: {summary.method: summary for summary in overall(standings)}
        for model, standings in sorted(grouped(make_standings(rows, by_model=True), "model").items())
    }
    lines: list[list[Entry]] = []
    for method in dict.fromkeys(method for summaries in by_model.values() for method in summaries):
        here = [summaries.get(method) for summaries in by_model.values()]
        sizes = [None if summary is None else summary.ratio.mean for summary in here]
        lines.append([method, *sizes, *(None if summary is None else summary.gap.mean for summary in here)])
    columns = ["method", *(f"{name}, {model}" for name in ("size", "gap") for model in by_model)]
    return Table(_name("models", share), f"{percent(share, 0)} labelled: size ratio and gap by model", columns, lines)


def _graph_tables(standings: Sequence[Standing], methods: Sequence[str], share: float) -> list[Table]:
    """Return size, gap and coverage of each method on each graph; those on the Pareto front are bold."""
    by_graph = {
        graph: {standing.method: standing for standing in here} for graph, here in grouped(standings, "dataset").items()
    }
    fronts = {graph: front(list(here.values())) for graph, here in by_graph.items()}
    shown: dict[str, tuple[str, Callable[[Standing], str]]] = {
        "size": ("mean size ± standard error over seeds", lambda place: _pair(place.size, place.size_error, 2)),
        "gap": ("excess gap ± standard error over seeds", lambda place: _pair(place.gap, place.gap_error, 3)),
        "coverage": ("coverage", lambda place: f"{place.coverage:.3f}"),
    }

    def entry(method: str, graph: str, text: Callable[[Standing], str]) -> Entry:
        standing = by_graph[graph].get(method)
        if standing is None:
            return None
        return f"**{text(standing)}**" if standing in fronts[graph] else text(standing)

    tables = []
    for name, (heading, text) in shown.items():
        lines = [[method, *(entry(method, graph, text) for graph in by_graph)] for method in methods]
        words = f"{percent(share, 0)} labelled: {heading}"
        tables.append(Table(_name(name, share), words, ["method", *by_graph], lines, for_screen=False))
    return tables


def _graph_table(rows: Sequence[Row]) -> Table:
    """Return a description of each graph, the number of labelled nodes, and the accuracy of each model."""
    base = select(rows, method=BASELINE)
    graphs, shares, models = (distinct(base, name) for name in ("dataset", "share", "model"))

    def average(name: str, **wanted: Any) -> Entry:
        return mean(row[name] for row in select(base, **wanted))

    labels = {f"labels, {percent(share, 0)}": share for share in shares}
    columns = ["graph", "description", *labels, *(f"accuracy, {model}" for model in models)]
    lines: list[list[Entry]] = [
        [
            graph,
            DATASETS[graph].summary if graph in DATASETS else None,
            *(average("labels", dataset=graph, share=share) for share in shares),
            *(average("accuracy", dataset=graph, model=model) for model in models),
        ]
        for graph in graphs
    ]
    heading = "Description, labelled nodes, and accuracy of the models"
    return Table("leaderboard-graphs", heading, columns, lines, dict.fromkeys(labels, 0), for_screen=False)


def _pair(value: float, error: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if error != error else f"{value:.{digits}f} ± {error:.{digits}f}"
    return text.replace("-", "−")


def _name(what: str, share: float) -> str:
    return f"leaderboard-{what}-{round(100 * share):02d}"
