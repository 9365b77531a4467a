"""The page of the documentation about the comparison, made from rows and from nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napsets.datasets import DATASETS
from napsets.files.places import replacing
from napsets.methods import METHODS, make_method, title
from napsets.methods.auto import Choosing
from napsets.paper.cells import Row
from napsets.paper.figures import save_figure
from napsets.paper.leaderboard.figure import front_figure
from napsets.paper.leaderboard.measure import KINDS
from napsets.paper.leaderboard.summary import BASELINE, Overall, Standing, front, overall, standings
from napsets.paper.table import Entry, Table

__all__ = ["COMMAND", "board_figures", "board_tables", "findings", "page_text", "write_page"]

#: What makes the committed rows and the page.
COMMAND = "napsets reproduce leaderboard --repetitions 1 --sparing cf-gnn --jobs 2 --page docs/leaderboard.md"

_HOW = """\
**How.** For each seed the nodes of a graph are split anew: about a tenth trains a model, another tenth chooses its
weights, inductively, and the graph induced on the other nodes is the one whose neighbourhoods count. Some of these
are labelled at random; every method of [the table](methods.md) sees these labels and no others, as it comes, with its
defaults, and makes the sets of all other nodes, which judge it. All methods get the same draws, the same uniform
numbers and the same models, of which `mlp` sees no graph at all.

**Size** is the mean number of labels in a set. Over graphs it is shown as the ratio to that of `{baseline}`
({baseline_title}), geometric mean, with the 95 % interval that the spread over graphs gives: what to expect on another
graph like these.

**Gap** is the mean |coverage − {target:g}| over groups of nodes less what chance alone would give with groups of these
sizes, so that 0 is perfect and a little below 0 is luck. The groups are neighbourhoods (two hops, at least 30 nodes),
classes, fifths of the nodes by degree, and fifths by the model's confidence; shown is the mean of the four, or of those
that there are. *Under* is the part of it that is lack of coverage.

**The front** of a graph holds the methods that cover and that no other one that covers beats: none has sets as small
and coverage as even. It goes by means, so that neighbours on it may be equal but for noise. A method *does not cover*
where its mean coverage lies more than three standard errors below {target:g}.
"""

_SOURCES = """\
Amazon Computers comes with the package; the others lie in `benchmarks/data`, whose README names their sources and
licences (all MIT). Graphs that are there twice, with and without the direction of edges, are counted once. The two
wiki graphs have a number for each node, cut into five classes by its quintiles. The constants of the methods that
choose, and the priors of the evidence, were chosen on these same graphs: their figures are a little flattering.
"""


def write_page(path: str | os.PathLike[str], rows: Sequence[Row]) -> Path:
    """Write the page, and its figures into ``figures`` beside it."""
    target = Path(path)
    for name, chart in board_figures(rows).items():
        save_figure(chart, target.parent / "figures", name, [".svg"])
    with replacing(target) as draft:
        draft.write_text(page_text(rows), encoding="utf-8")
    return target


def page_text(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    found = standings(rows)
    if not found:
        return f"# Leaderboard\n\nNothing is measured yet. Run\n\n```\n{COMMAND}\n```\n"
    by_share = _by_share(found)
    shown = by_share.items()
    parts = [
        "# Leaderboard",
        "<!-- Made from the rows in results/leaderboard; to change it, run the command below. -->",
        "Every method of the table on the same graphs, models and draws of labels: how small are its sets, how even is "
        f"its coverage? Everything on this page is made from rows of results by\n\n```\n{COMMAND}\n```\n\n"
        "which runs only what is not there yet.",
        _settings(rows),
        _HOW.format(baseline=BASELINE, baseline_title=title(BASELINE), target=1.0 - found[0].alpha),
        "## What it shows",
        *(f"{share:.0%} labelled:\n\n" + "\n".join(f"- {one}" for one in findings(some)) for share, some in shown),
        "## Size against evenness",
        *(f"{share:.0%} labelled:\n\n![{_figure(share)}](figures/{_figure(share)}.svg)" for share in by_share),
        "## Over all graphs",
        *(_overall_table(some, share).markdown() for share, some in by_share.items()),
        "## By model",
        *(_model_table(rows, share).markdown() for share in by_share),
        "## By kind of group",
        *(_kind_table(some, share).markdown() for share, some in by_share.items()),
        "## Graph by graph",
        *(table.markdown() for share, some in by_share.items() for table in _graph_tables(some, share)),
        "## The graphs",
        _graph_table(rows).markdown(),
        _SOURCES,
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def board_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the pictures by name, one for each share of labels."""
    return {_figure(share): front_figure(some) for share, some in _by_share(standings(rows)).items()}


def board_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page, and a short one for the terminal."""
    by_share = _by_share(standings(rows))
    return [
        table
        for share, some in by_share.items()
        for table in (
            _short_table(some, share),
            _overall_table(some, share),
            _model_table(rows, share),
            _kind_table(some, share),
            *_graph_tables(some, share),
        )
    ]


def findings(some: Sequence[Standing]) -> list[str]:
    """Say what the standings of one share show, also where the methods that choose by evidence lose."""
    found = overall(some)
    graphs = len({one.dataset for one in some})
    able = [one for one in found if not one.fails and one.graphs == graphs]
    told = []
    if able:
        small, even = min(able, key=lambda one: one.ratio.mean), min(able, key=lambda one: one.gap.mean)
        told.append(
            f"Among the methods that cover on all {graphs} graphs, `{small.method}` makes the smallest sets, "
            f"{small.ratio.text(2)} of those of `{BASELINE}`, and `{even.method}` has the most even coverage: its gap "
            f"is {even.gap.text()} beyond chance, against {_of(found, BASELINE).gap.text()} of `{BASELINE}`."
        )
    often = sorted(found, key=lambda one: -one.on_front)[:3]
    told.append("Most often on the front: " + ", ".join(f"`{one.method}` ({one.on_front})" for one in often) + ".")
    failing = [f"`{one.method}` ({', '.join(one.fails)})" for one in found if one.fails]
    if failing:
        told.append(f"Clearly below the coverage asked for: {'; '.join(failing)}.")
    wide = [one for one in found if one.coverage > 1.0 - some[0].alpha / 2]
    if wide:
        told.append(
            "Far above the coverage asked for, with sets that are larger than they need be: "
            + ", ".join(f"`{one.method}` ({one.coverage:.3f})" for one in wide)
            + "."
        )
    told += [_about(one, some) for one in found if _chooses(one.method)]
    return told


def _about(one: Overall, some: Sequence[Standing]) -> str:
    """Say how a method that chooses fares, and where another one is better in both respects."""
    told = (
        f"`{one.method}`, which chooses by evidence, makes sets of {one.ratio.text(2)} of the size of `{BASELINE}` and "
        f"is on the front of {one.on_front} of {one.graphs} graphs; at worst its ratio is {one.worst:.2f} "
        f"({one.worst_on}), and its gap differs from that of `{BASELINE}` by {one.apart.text()}."
    )
    lost = []
    for mine in some:
        if mine.method == one.method:
            here = [other for other in some if other.dataset == mine.dataset and other.covers and other.beats(mine)]
            if here:
                lost.append(f"{mine.dataset} (`{min(here, key=lambda other: other.size).method}`)")
    if lost:
        told += f" It loses to a method with sets no larger and coverage no less even on {', '.join(lost)}."
    return told


def _chooses(method: str) -> bool:
    return method in METHODS and isinstance(make_method(method), Choosing)


def _settings(rows: Sequence[Row]) -> str:
    """Say what was run, and how long it took."""

    def several(name: str) -> list[Any]:
        return sorted({row[name] for row in rows})

    datasets, models, seeds, methods = (several(name) for name in ("dataset", "model", "seed", "method"))
    shares, draws = several("share"), len(several("repetition"))
    seconds = sum(row["seconds"] for row in rows)
    lines = [
        f"{len(methods)} methods on {len(datasets)} graphs × {len(models)} models ({', '.join(models)}) × {len(seeds)} "
        f"seed{'s' * (len(seeds) != 1)} × {' and '.join(f'{share:.0%}' for share in shares)} labelled × {draws} "
        f"draw{'s' * (draws != 1)} of labels, alpha {rows[0]['alpha']:g}: {len(rows):,} rows. Calibrating and "
        f"predicting took {seconds / 60:.0f} minutes in all."
    ]
    counts = {method: sum(row["method"] == method for row in rows) for method in methods}
    fewer = [f"`{method}` ({count:,})" for method, count in counts.items() if count < max(counts.values())]
    if fewer:
        lines.append(
            f"Run on fewer draws than the {max(counts.values()):,} of the others, and compared with them on those that "
            f"they share: {', '.join(fewer)}."
        )
    return " ".join(lines)


def _overall_table(some: Sequence[Standing], share: float) -> Table:
    columns = [
        "method", "size ratio (95 %)", "worst", "on", "gap (95 %)", "less the baseline's (95 %)", "under", "coverage",
        "empty", "full", "rank", "front of", "seconds",
    ]  # fmt: skip
    rows: list[list[Entry]] = [
        [
            one.method, one.ratio.text(), one.worst, one.worst_on, one.gap.text(), one.apart.text(), one.under,
            one.coverage, one.empty_rate, one.full_rate, one.rank, f"{one.on_front} of {one.graphs}", one.seconds,
        ]
        for one in overall(some)
    ]  # fmt: skip
    notes = [
        "Rank: mean place by size among the methods that cover. Seconds: to calibrate and predict, where scores that "
        "methods share count for the first that asks for them."
    ]
    heading = f"{share:.0%} labelled, all models: against `{BASELINE}`, the smallest sets first"
    return Table(_name("overall", share), heading, columns, rows, {"rank": 1, "worst": 2}, notes, for_screen=False)


def _short_table(some: Sequence[Standing], share: float) -> Table:
    """Return the same in the width of a terminal."""
    columns = ["method", "size ratio (95 %)", "gap (95 %)", "coverage", "full", "front of"]
    rows: list[list[Entry]] = [
        [one.method, one.ratio.text(2), one.gap.text(), one.coverage, one.full_rate, f"{one.on_front} of {one.graphs}"]
        for one in overall(some)
    ]
    return Table(_name("short", share), f"{share:.0%} labelled, all models: against {BASELINE}", columns, rows)


def _model_table(rows: Sequence[Row], share: float) -> Table:
    """Return ratio and gap of each method with each model."""
    models = sorted({row["model"] for row in rows})
    found = {
        model: {
            one.method: one
            for one in overall(standings([row for row in rows if (row["model"], row["share"]) == (model, share)]))
        }
        for model in models
    }
    methods = dict.fromkeys(method for some in found.values() for method in some)
    columns = ["method", *(f"size, {model}" for model in models), *(f"gap, {model}" for model in models)]
    lines: list[list[Entry]] = [
        [
            method,
            *(found[model][method].ratio.mean if method in found[model] else None for model in models),
            *(found[model][method].gap.mean if method in found[model] else None for model in models),
        ]
        for method in methods
    ]
    return Table(_name("models", share), f"{share:.0%} labelled: size ratio and gap by model", columns, lines)


def _kind_table(some: Sequence[Standing], share: float) -> Table:
    methods = [one.method for one in overall(some)]
    rows: list[list[Entry]] = []
    for method in methods:
        mine = [one for one in some if one.method == method]
        means: list[Entry] = []
        for kind in KINDS:
            known = [one.excess[kind] for one in mine if one.excess[kind] == one.excess[kind]]
            means.append(sum(known) / len(known) if known else None)
        rows.append([method, *means])
    heading = f"{share:.0%} labelled: gap beyond chance by kind of group, mean over graphs"
    return Table(_name("kinds", share), heading, ["method", *KINDS], rows)


def _graph_tables(some: Sequence[Standing], share: float) -> list[Table]:
    """Return size, gap and coverage of each method on each graph; those on the front are bold."""
    graphs = list(dict.fromkeys(one.dataset for one in some))
    methods = [one.method for one in overall(some)]
    at = {(one.method, one.dataset): one for one in some}
    fronts = {graph: {one.method for one in front([o for o in some if o.dataset == graph])} for graph in graphs}

    def entries(text: Any) -> list[list[Entry]]:
        return [
            [
                method,
                *(
                    (f"**{text(at[method, graph])}**" if method in fronts[graph] else text(at[method, graph]))
                    if (method, graph) in at
                    else None
                    for graph in graphs
                ),
            ]
            for method in methods
        ]

    shown = {
        "size": ("mean size ± standard error over seeds", lambda one: _pair(one.size, one.size_error, 2)),
        "gap": ("gap beyond chance ± standard error over seeds", lambda one: _pair(one.gap, one.gap_error, 3)),
        "coverage": ("coverage", lambda one: f"{one.coverage:.3f}"),
    }
    return [
        Table(
            _name(name, share), f"{share:.0%} labelled: {words}", ["method", *graphs], entries(text), for_screen=False
        )
        for name, (words, text) in shown.items()
    ]


def _graph_table(rows: Sequence[Row]) -> Table:
    """Return what each graph is, how many nodes are labelled and judged, and how often models are right."""
    base = [row for row in rows if row["method"] == BASELINE]
    graphs, shares, models = (sorted({row[name] for row in base}) for name in ("dataset", "share", "model"))

    def mean(name: str, **wanted: Any) -> Entry:
        values = [row[name] for row in base if all(row[key] == value for key, value in wanted.items())]
        return sum(values) / len(values) if values else None

    columns = ["graph", "what it is", *(f"labels, {share:.0%}" for share in shares), *(f"right, {m}" for m in models)]
    lines: list[list[Entry]] = [
        [
            graph,
            DATASETS[graph].summary if graph in DATASETS else None,
            *(mean("labels", dataset=graph, share=share) for share in shares),
            *(mean("accuracy", dataset=graph, model=model) for model in models),
        ]
        for graph in graphs
    ]
    digits = {name: 0 for name in columns if name.startswith("labels")}
    heading = "What each is, labelled nodes, and the share of nodes whose most likely label is right"
    return Table("leaderboard-graphs", heading, columns, lines, digits, for_screen=False)


def _by_share(found: Sequence[Standing]) -> dict[float, list[Standing]]:
    shares = sorted({one.share for one in found})
    return {share: [one for one in found if one.share == share] for share in shares}


def _of(found: Sequence[Overall], method: str) -> Overall:
    return next(one for one in found if one.method == method)


def _pair(value: float, error: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if error != error else f"{value:.{digits}f} ± {error:.{digits}f}"
    return text.replace("-", "−")


def _name(what: str, share: float) -> str:
    return f"leaderboard-{what}-{round(100 * share):02d}"


def _figure(share: float) -> str:
    return _name("front", share)
