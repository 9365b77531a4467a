"""``napsets evaluate``: compare a file of sets or of intervals with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Group, RenderableType

from napsets.checks.arguments import IntArray
from napsets.cli._options import Labels, Only, ReadingOptions
from napsets.cli._output import Output, number, percent, table
from napsets.errors import FileFormatError
from napsets.files import read_graph_around, read_groups, read_prediction
from napsets.files.formats import open_table
from napsets.files.ids import read_node_rows
from napsets.files.reading import Reading
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

if TYPE_CHECKING:
    from napsets.evaluation.files import LabelledFile

EXAMPLES = [
    "napsets evaluate sets.parquet --labels truth.csv",
    "napsets evaluate sets.parquet --labels truth.csv --edges edges.parquet --groups regions.csv",
    "napsets evaluate sets.parquet --labels truth.csv --json",
    "napsets evaluate sets.parquet --labels truth.csv --in-order date",
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
    in_order: Annotated[
        str | None, typer.Option(help="Labels came in the order of this column of --labels; 'rows' for its rows.")
    ] = None,
    read: Annotated[ReadingOptions, Only()] = ReadingOptions(),
) -> None:
    """Compare sets, or intervals, with the truth: coverage, size, and how evenly the coverage is spread.

    Sets whose node has no label in --labels are left out and counted; so are labels without a set. Labels that were
    used to make the sets should not be used to evaluate them. --json has all metrics.

    A file of intervals is recognised by its columns; --labels then has the columns node and target. Coverage is shown
    with the range that chance explains. Edges are followed in the direction with which the file was made.

    With --in-order, coverage is followed over time: an interval that holds at all times, the worst window of 200
    labels, and two alarms, for coverage and for exchangeability, that are false with at most 1 % chance each.
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
    if in_order is not None:
        result["in_order"] = over_time = _follow_labels(labelled, labels, in_order, reading)
        shown.append(table("In the order of the labels", ["", ""], _order_rows(over_time, file.prediction.size_name)))
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
    tables = [table(f"{result['sets']} against {prediction.truth_name}; ± 1.96 standard errors", ["", ""], rows)]
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


# -- over time ---------------------------------------------------------------------------------------------------------

#: The name that stands for the order of the rows.
_ROWS_AS_READ = "rows"


def _follow_labels(labelled: LabelledFile, labels: Path, column: str, reading: Reading) -> dict[str, Any]:
    """Return the figures of `Monitor` over the judged predictions, in the order in which their labels came.

    A file of predictions has no scores. The exchangeability test uses whether a prediction missed, then its size: if
    nodes are exchangeable, so are these. All predictions share the labels that set the level. Without their number, too
    many misses cannot be told from an unlucky draw of these labels, and there is no coverage alarm.
    """
    from napsets.live.alarms import smoothed_p_values
    from napsets.live.monitoring import Monitor

    prediction = labelled.prediction
    order, times = _order(labelled, labels, column, reading)
    missed = ~np.asarray(prediction.contains(labelled.truth), dtype=np.bool_)[order]
    sizes = np.asarray(prediction.sizes, dtype=np.float64)[order]
    _, ranks = np.unique(np.stack([missed, sizes]), axis=1, return_inverse=True)
    p_values = smoothed_p_values(ranks.ravel().astype(np.float64))
    monitor, count = Monitor(float(prediction.alpha)), labelled.file.metadata.get("level_labels")
    judged = zip(missed.tolist(), sizes.tolist(), p_values.tolist(), times, strict=True)
    for miss, size, p_value, time in judged:
        monitor.step(miss, size, p_value, labels=count, time=time)
    status = monitor.status()
    if count is None:
        status["alarms"]["coverage"] = {"rang": None, "time": None, "log10_capital": None, "tests": 0}
    return {"order": column, **status}


def _order(
    labelled: LabelledFile, labels: Path, column: str, reading: Reading
) -> tuple[IntArray, Sequence[str | float | None]]:
    """Return the judged predictions in the order of the labels (of rows or of a column), and the times of a column."""
    file, by_row = open_table("labels", labels, reading), column == _ROWS_AS_READ
    wanted = [] if by_row else [column]
    rows = read_node_rows(file, labelled.file.ids, *wanted, text=["node", *wanted])
    values = [] if by_row else rows.columns[column].to_pylist()
    if any(value is None or value == "" for value in values):
        raise FileFormatError(f"`in_order` must name a column without empty cells; {column} of {labels} has some")
    times = np.arange(rows.places.size) if by_row else _sortable(values)
    turn = np.argsort(times, kind="stable")
    came = np.full(len(labelled.file.ids), -1)
    known = turn[rows.places[turn] >= 0]
    came[rows.places[known]] = np.arange(known.size)
    order = np.argsort(came[labelled.prediction.nodes], kind="stable")
    if by_row:
        return order, [None] * order.size
    judged = times[known[came[labelled.prediction.nodes[order]]]].tolist()
    return order, [time if isinstance(time, float) else str(time) for time in judged]


def _sortable(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return numbers as numbers, also where a file has them as text, and anything else unchanged, such as dates."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(values)


def _order_rows(result: Figures, size: str) -> list[tuple[str, str]]:
    """Return the figures over time as rows of a table."""
    lower, upper = result["coverage_interval"]
    worst, window = result["worst_window"], result["window"]

    def alarm(name: str) -> str:
        rang, time, evidence = (result["alarms"][name][key] for key in ("rang", "time", "log10_capital"))
        if evidence is None:
            return "not known (the file does not record how many labels set the level)"
        when = "" if time is None else f", at {result['order']} {time:g}" if isinstance(time, float) else f", on {time}"
        raised = "not raised" if rang is None else f"raised after {rang:,} labels{when}"
        return f"{raised} (evidence now 10^{evidence:.1f})"

    return [
        ("labels", number(result["labels"])),
        ("coverage so far", percent(result["coverage"])),
        ("holds at all times with 95 % confidence", f"{percent(lower)} to {percent(upper)}"),
        (f"worst {window} labels in a row", f"{percent(worst['coverage'])}, up to label {worst['end']:,}"),
        (f"last {window} labels", percent(result["recent_coverage"])),
        (f"mean {size}", f"{number(result['mean_size'])}, of the last {window} {number(result['recent_size'])}"),
        ("coverage alarm", alarm("coverage")),
        ("exchangeability alarm", alarm("exchangeability")),
    ]
