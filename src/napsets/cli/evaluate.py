"""``napsets evaluate``: compare a file of sets or of intervals with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from napsets.cli._options import Labels, Only, ReadingOptions
from napsets.cli._output import Output, number, percent, table
from napsets.files import read_graph_around, read_groups, read_prediction
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

EXAMPLES = [
    "napsets evaluate sets.parquet --labels truth.csv",
    "napsets evaluate sets.parquet --labels truth.csv --edges edges.parquet --groups regions.csv",
    "napsets evaluate sets.parquet --labels truth.csv --json",
    "napsets evaluate intervals.parquet --labels targets.csv --edges edges.parquet",
    "napsets evaluate sets.csv --labels truth.tsv --rename id=node",
    "napsets evaluate - --labels truth.csv < sets.csv",
]


def evaluate(
    run: Output,
    context: typer.Context,
    sets: Annotated[Path, typer.Argument(help="A file that `napsets predict` wrote.", show_default=False)],
    labels: Labels,
    edges: Annotated[
        Path | None,
        typer.Option("--edges", "-e", help="Edges: adds coverage by degree and by neighbourhood (PCCV)."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(help="Your own groups: columns node, group. Adds coverage by group, compared with chance."),
    ] = None,
    read: Annotated[ReadingOptions, Only()] = ReadingOptions(),
) -> None:
    """Compare sets, or intervals, with the truth: coverage, size, and how evenly the coverage is spread.

    Sets whose node has no label in --labels are left out and counted; so are labels without a set. Labels that were
    used to make the sets should not be used to evaluate them. --json has all metrics.

    A file of intervals is recognised by its columns; --labels then has the columns node and target. Coverage is shown
    with the range that chance explains. Edges are followed in the direction with which the file was made.
    """
    from napsets.evaluation.files import evaluate_file, label_file

    reading, name = replace(read.reading, skip_unknown=True), str(context.params["sets"])
    with run.steps() as steps:
        steps.stage("reading sets")
        file = read_prediction(sets, reading)
        steps.stage(f"reading {file.prediction.truth_name}")
        labelled = label_file(file, labels, reading)
        notes = list(labelled.notes)
        graph = None
        if edges is not None:
            steps.stage("reading edges")
            direction = file.metadata.get("direction", "out")
            reading = replace(reading, directed=file.metadata.get("directed", False))
            if reading.directed:
                notes.append(f"edges are directed, and followed with --direction {direction}, as {name} was made")
            graph = read_graph_around(edges, file.ids, reading, notes=notes)[1].along(direction)
        named = None
        if groups is not None:
            steps.stage("reading groups")
            named = read_groups(groups, file.ids, reading)
        result = evaluate_file(labelled, graph=graph, groups=named)
    # By the name that was typed: standard input is read from a temporary file.
    result |= {"task": file.prediction.task, "sets": name, "settings": file.metadata}
    if "level_labels" not in file.metadata:
        notes.append(
            f"the range that chance explains is that of the evaluated nodes alone: {name} does not record how many "
            f"labels set the level. Parquet files written by napsets do"
        )
    run.notes(notes)
    shown: list[RenderableType] = [
        *_tables(type(file.prediction), result),
        *(f"Warning: {text}." for text in result["weak"]),
    ]
    run.result(result, *shown)


# -- tables ------------------------------------------------------------------------------------------------------------

Figures = Mapping[str, Any]

#: The kinds of groups, in the order of the table.
_KINDS = ("class", "degree", "neighbourhood", "width", "group")

#: Sizes in the table, and the kinds of groups that have a table of their own, with the size that it shows.
_SIZE_ROWS: dict[type[Prediction], dict[str, str]] = {
    PredictionSets: {"mean_size": "average size", "singleton_rate": "sets of one label"},
    PredictionIntervals: {
        "mean_width": "average width",
        "finite_width": "average width of the finite ones",
        "median_width": "median width",
    },
}
_SIZES: dict[type[Prediction], dict[str, str | None]] = {
    PredictionSets: {"class": "mean_size", "degree": "mean_size", "group": None},
    PredictionIntervals: {"degree": "mean_width", "group": "mean_width"},
}


def _tables(prediction: type[Prediction], result: Figures) -> list[Group]:
    def shown(key: str) -> str:
        error = f" ± {number(1.96 * result[f'{key}_se'])}" if f"{key}_se" in result else ""
        return percent(result[key]) if key.endswith("_rate") else number(result[key]) + error

    rows = [
        ("nodes evaluated", number(result["nodes"])),
        (f"{prediction.noun}s without a known {prediction.truth_column}", number(result["unlabelled"])),
        ("coverage", f"{percent(result['coverage'])} ± {percent(1.96 * result['coverage_se'])}"),
        ("target", percent(1.0 - result["alpha"])),
        (
            "range that chance explains (95 of 100 cases)",
            f"{percent(result['coverage_low'])} to {percent(result['coverage_high'])}",
        ),
        *(
            (text, shown(key))
            for key, text in _SIZE_ROWS[prediction].items()
            if key != "finite_width" or result["infinite"]
        ),
        ("too little support (threshold ∞)", number(result["infinite"])),
    ]
    tables = [table(f"{result['sets']} against {prediction.truth_name}", ["", ""], rows)]
    names = ("gap", "chance", "worst", "worst_chance")
    gaps = [
        (kind, *(number(result[f"{name}_{kind}"]) for name in names), percent(result[f"share_{kind}"]))
        for kind in _KINDS
        if f"gap_{kind}" in result
    ]
    if gaps:
        head = ["groups by", "gap", "by chance", "worst", "by chance", "of the nodes"]
        tables.append(table("Average |coverage − target| over groups", head, gaps))
    return tables + [
        _coverage_table(kind, result[f"coverage_by_{kind}"], size)
        for kind, size in _SIZES[prediction].items()
        if f"coverage_by_{kind}" in result
    ]


def _coverage_table(kind: str, rows: Sequence[Figures], size: str | None) -> Group:
    """Return coverage by group, with the average size or width where it is known."""
    if kind != "degree":  # degrees have an order of their own
        rows = sorted(rows, key=lambda row: row["coverage"])
    columns = [kind, "nodes", "coverage", *([] if size is None else [size.replace("mean_", "average ")])]
    cells = [
        [row["group"], number(row.get("nodes", row.get("count"))), percent(row["coverage"])]
        + ([] if size is None else [number(row[size], 3)])
        for row in rows
    ]
    return table(f"Coverage by {kind}", columns, cells)
