"""The leaderboard: every method of the table × graphs × models × shares of labels, on the same draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from napsets.methods import title
from studies.collections import DESCRIPTIONS
from studies.draws import KINDS, MODELS, DrawScope, draw_kind
from studies.standings import BASELINE, front_figure, make_standings, overall
from studies.tables import Entry, Row, Table, distinct, fill_page, fold, grouped, percent, select, spread

COMMAND = "python -m studies leaderboard --jobs 2 --page docs/leaderboard.md"
FULL = DrawScope(slow=("cf-gnn",))
#: One or two minutes: four graphs of different kinds, two models, one seed.
QUICK = DrawScope(("cora-ml", "citeseer-full", "squirrel-filtered", "tolokers"), (MODELS[0], MODELS[-1]), (0,), (0.3,))
KIND = draw_kind(
    "leaderboard",
    (
        *("labels", "level_labels", "nodes", "classes", "accuracy", "choice", "seconds"),
        *("coverage", "mean_size", "singleton_rate", "empty_rate", "full_rate"),
        *(f"{part}_{kind}" for kind in KINDS for part in ("gap", "chance", "under", "over", "share")),
    ),
    lambda cell: (
        (cell["dataset"], f"{cell['share']:g}", cell["seed"], cell["repetition"]),
        1000 * cell["seed"] + cell["repetition"],
    ),
)
#: Methods that choose automatically.
_CHOOSING = ("auto", "auto-small")
_CAPTION = "Set size and unevenness of coverage of each method on each graph, {} of the nodes labelled"


def summary(rows: Sequence[Row]) -> list[str | Table]:
    """Return what the command prints: findings and the table over all graphs, for each share of labels."""
    parts: list[str | Table] = []
    for share, standings in _by_share(rows).items():
        parts += [_overall_table(overall(standings), share), "\n".join(f"- {text}" for text in findings(standings))]
    return parts


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the pictures by name, one for each share of labels."""
    return {_picture(share): front_figure(standings) for share, standings in _by_share(rows).items()}


def page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown: a picture, the findings, and the tables, each kind behind a fold of its own."""
    by_share = _by_share(rows)
    if not by_share:
        return fill_page("leaderboard", COMMAND, {})
    pictures = {share: f"![{_CAPTION.format(percent(share))}](figures/{_picture(share)}.svg)" for share in by_share}
    summaries, first = {share: overall(standings) for share, standings in by_share.items()}, max(by_share)
    kinds: dict[str, Callable[[float], Sequence[Table]]] = {
        "All graphs together": lambda share: [_overall_table(summaries[share], share)],
        "Graph by graph": lambda share: _graph_tables(by_share[share], summaries[share], share),
    }
    parts = {
        "labelled": percent(first),
        "picture": pictures.pop(first),
        "findings": [
            f"With {percent(share)} of the nodes labelled:\n\n- " + "\n- ".join(findings(by_share[share]))
            for share in sorted(by_share, reverse=True)
        ],
        "settings": _settings(rows),
        "baseline": BASELINE,
        "baseline_title": title(BASELINE),
        "target": 1.0 - rows[0]["alpha"],
        "results": [
            *(fold(f"Picture: {percent(share)} labelled", picture) for share, picture in pictures.items()),
            *(
                fold(f"{heading}, {percent(share)} labelled", *tables(share))
                for heading, tables in kinds.items()
                for share in by_share
            ),
        ],
        "graphs": _graph_table(rows),
    }
    return fill_page("leaderboard", COMMAND, parts)


def _by_share(rows: Sequence[Row]) -> dict[float, list[Row]]:
    return dict(sorted(grouped(make_standings(rows), "share").items()))


def _picture(share: float) -> str:
    return f"leaderboard-front-{round(100 * share):02d}"


def findings(standings: Sequence[Row]) -> list[str]:
    """Return the findings for one share of labels, including where the methods that choose automatically lose."""
    summaries = overall(standings)
    graphs = len(distinct(standings, "dataset"))
    able = [row for row in summaries if not row["fails"] and row["graphs"] == graphs]
    sentences = []
    if able:
        small, even = (min(able, key=lambda row: row[name].mean) for name in ("ratio", "gap"))
        (base,) = select(summaries, method=BASELINE)
        sentences.append(
            f"Of the methods that cover on all {graphs} graphs, `{small['method']}` has the smallest sets, "
            f"{small['ratio'].text(2)} times the size of `{BASELINE}`. `{even['method']}` has the most even coverage: "
            f"its gap is {even['gap'].text()}, compared with {base['gap'].text()} for `{BASELINE}`."
        )
    often = sorted(summaries, key=lambda row: -row["on_front"])[:3]
    names = ", ".join(f"`{row['method']}` ({row['on_front']})" for row in often)
    sentences.append(f"Methods that are on the Pareto front of the most graphs: {names}.")
    failing = [f"`{row['method']}` ({', '.join(row['fails'])})" for row in summaries if row["fails"]]
    if failing:
        sentences.append(f"Methods whose coverage is clearly too low on a graph: {'; '.join(failing)}.")
    wide = [row for row in summaries if row["coverage"] > 1.0 - standings[0]["alpha"] / 2]
    if wide:
        sentences.append(
            "Methods whose average coverage is far too high, with larger sets than necessary: "
            + ", ".join(f"`{row['method']}` ({row['coverage']:.3f})" for row in wide)
            + "."
        )
    return sentences + [_about(row) for row in summaries if row["method"] in _CHOOSING]


def _about(summary: Row) -> str:
    """Describe the results of a method that chooses automatically."""
    return (
        f"`{summary['method']}`, which chooses automatically, has sets {summary['ratio'].text(2)} times the size of "
        f"`{BASELINE}`, at worst {summary['worst']:.2f} times ({summary['worst_on']}). Its gap differs from that of "
        f"`{BASELINE}` by {summary['gap_difference'].text()}. It is on the Pareto front of {summary['on_front']} of "
        f"{summary['graphs']} graphs."
    )


def _settings(rows: Sequence[Row]) -> str:
    """Describe what was run, and how long it took."""
    datasets, models, seeds, methods = (distinct(rows, name) for name in ("dataset", "model", "seed", "method"))
    shares, draws = distinct(rows, "share"), len(distinct(rows, "repetition"))
    seconds = sum(row["seconds"] for row in rows)
    lines = [
        f"{len(methods)} methods on {len(datasets)} graphs × {len(models)} models ({', '.join(models)}) × {len(seeds)} "
        f"seed{'s' * (len(seeds) != 1)} × {' and '.join(percent(share) for share in shares)} labelled × {draws} "
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


#: The columns of the table over all graphs.
_OVERALL: dict[str, Any] = {
    "method": "method",
    "size ratio (95 %)": lambda row: row["ratio"].text(),
    "worst": "worst",
    "on": "worst_on",
    "gap (95 %)": lambda row: row["gap"].text(),
    "minus the baseline's (95 %)": lambda row: row["gap_difference"].text(),
    "coverage": "coverage",
    "empty": "empty_rate",
    "full": "full_rate",
    "on the front of": lambda row: f"{row['on_front']} of {row['graphs']}",
    "seconds": "seconds",
}


def _overall_table(summaries: Sequence[Row], share: float) -> Table:
    heading = f"{percent(share)} labelled, all models: relative to `{BASELINE}`, smallest sets first"
    notes = ["Seconds: time to calibrate and predict; scores that several methods share count for the first of them."]
    return Table.of(heading, summaries, _OVERALL, digits={"worst": 2}, notes=notes)


def _graph_tables(standings: Sequence[Row], summaries: Sequence[Row], share: float) -> list[Table]:
    """Return size, gap and coverage of each method on each graph; those on the Pareto front are bold."""
    shown: dict[str, Callable[[Row], str]] = {
        "mean size ± standard error over seeds": lambda row: _pair(row["size"], row["size_error"], 2),
        "excess gap ± standard error over seeds": lambda row: _pair(row["gap"], row["gap_error"], 3),
        "coverage": lambda row: f"{row['coverage']:.3f}",
    }
    graphs, places = distinct(standings, "dataset"), {(row["method"], row["dataset"]): row for row in standings}

    def entry(place: tuple[str, str], text: Callable[[Row], str]) -> Entry:
        row = places.get(place)
        return None if row is None else f"**{text(row)}**" if row["on_front"] else text(row)

    return [
        Table(
            f"{percent(share)} labelled: {heading}",
            ["method", *graphs],
            [[row["method"], *(entry((row["method"], graph), text) for graph in graphs)] for row in summaries],
        )
        for heading, text in shown.items()
    ]


def _graph_table(rows: Sequence[Row]) -> Table:
    """Return a description of each graph, the number of labelled nodes, and the accuracy of each model."""
    base = select(rows, method=BASELINE)
    graphs, shares, models = (distinct(base, name) for name in ("dataset", "share", "model"))

    def average(name: str, **where: Any) -> float:
        known = spread(select(base, **where), name)
        return math.nan if known is None else known.mean

    labels = {f"labels, {percent(share)}": share for share in shares}
    columns = ["graph", "description", *labels, *(f"accuracy, {model}" for model in models)]
    lines: list[list[Entry]] = [
        [
            graph,
            DESCRIPTIONS.get(graph),
            *(average("labels", dataset=graph, share=share) for share in shares),
            *(average("accuracy", dataset=graph, model=model) for model in models),
        ]
        for graph in graphs
    ]
    heading = "Description, labelled nodes, and accuracy of the models"
    return Table(heading, columns, lines, dict.fromkeys(labels, 0))


def _pair(value: float, error: float | None, digits: int) -> str:
    text = f"{value:.{digits}f}" if error is None else f"{value:.{digits}f} ± {error:.{digits}f}"
    return text.replace("-", "−")
