"""``napsets evaluate``: how good a file of sets or of intervals is, once the truth is known."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from napsets.checks.arguments import IntArray
from napsets.cli._methods import is_given
from napsets.cli._options import LARGEST_COUNT, LARGEST_SEED, Labels, Only, ReadingOptions, refuse_given
from napsets.cli._output import Output, number, percent, table
from napsets.errors import FileFormatError
from napsets.files import read_graph_around, read_groups, read_prediction
from napsets.files.formats import open_table
from napsets.files.ids import read_node_rows
from napsets.files.reading import LabelsAre, Reading
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

if TYPE_CHECKING:
    from napsets.evaluation.files import LabelledFile
    from napsets.live.monitoring import Monitor

EXAMPLES = [
    "napsets evaluate sets.parquet --labels truth.csv",
    "napsets evaluate sets.parquet --labels truth.csv --edges edges.parquet --strata 0-1,2-3,4-10",
    "napsets evaluate sets.parquet --labels truth.csv --groups regions.csv",
    "napsets evaluate sets.parquet --labels truth.csv --json",
    "napsets evaluate sets.parquet --labels truth.csv --in-order date",
    "napsets evaluate intervals.parquet --labels targets.csv --edges edges.parquet --groups regions.csv",
    "napsets evaluate sets.csv --labels truth.tsv --rename id=node --ids string --skip-unknown",
    "napsets evaluate - --format csv --labels truth.csv < sets.csv",
]


@dataclass(frozen=True)
class NeighbourhoodOptions:
    """The neighbourhoods of PCCV."""

    radius: Annotated[int, typer.Option(min=0, max=LARGEST_COUNT, help="Radius of the neighbourhoods of PCCV.")] = 2
    min_size: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="Smallest neighbourhood that PCCV counts.")
    ] = 30
    seed: Annotated[int, typer.Option(help="Seed of the neighbourhoods' roots.", min=0, max=LARGEST_SEED)] = 0


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
        typer.Option(help="Your own groups: columns node, group. Adds coverage by group, and what chance explains."),
    ] = None,
    strata: Annotated[str | None, typer.Option(help="Ranges of set sizes for SSCV, as in 0-1,2-3,4-10.")] = None,
    neighbourhoods: NeighbourhoodOptions = NeighbourhoodOptions(),
    read: Annotated[ReadingOptions, Only("directed", "direction", "ids")] = ReadingOptions(),
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="No note on labels without a set, which are left out anyway.")
    ] = False,
    labels_are: LabelsAre = "auto",
    in_order: Annotated[
        str | None, typer.Option(help="Labels came in the order of this column of --labels; 'rows' for its rows.")
    ] = None,
    made: Annotated[
        str | None, typer.Option(help="When each set was made: a column of --labels; adds the delay of labels.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="With --in-order, write pictures over time to this HTML page.")
    ] = None,
) -> None:
    """Compare sets, or intervals, with the truth: coverage, size, and how evenly the coverage is spread.

    Sets whose node has no label in --labels are left out and counted; so are labels without a set. Labels that were
    used to make the sets should not be used to evaluate them.

    A file of intervals is recognised by its columns; --labels then has the columns node and target. Coverage is shown
    with the range that chance explains. With --directed, degrees and neighbourhoods follow --direction; where neither
    option is given, they are those that the file was made with, if it records them.

    With --in-order, coverage is followed over time: an interval that holds at all times, the worst window of 200
    labels, and two alarms, for coverage and for exchangeability, that are false with at most 1 % chance each. --page
    draws coverage, size, alarms and, with --made, the delay of labels over time.
    """
    if in_order is None:
        refuse_given("goes with --in-order", {"--made": made is not None, "--page": page is not None})
    from napsets.evaluation.files import evaluate_file, label_file

    ranges = None if strata is None else _parse_strata(strata)
    reading = replace(read, labels_are=labels_are, skip_unknown=True).reading
    with run.steps() as steps:
        steps.stage("reading sets")
        file = read_prediction(sets, reading)
        if not isinstance(file.prediction, PredictionSets):
            message = f"is for sets of labels; {context.params['sets']} holds {file.prediction.noun}s"
            refuse_given(message, {"--strata": strata is not None, "--labels-are": labels_are != "auto"})
        steps.stage(f"reading {file.prediction.truth_name}")
        labelled = label_file(file, labels, reading, silent=skip_unknown)
        notes = list(labelled.notes)
        made_with, on_edges = _as_made(context, read, file.metadata) if edges is not None else (read, [])
        run.notes([*on_edges, *replace(made_with, direction=read.direction).direction_notes()])
        graph = None
        if edges is not None:
            steps.stage("reading edges")
            reading = replace(reading, directed=made_with.directed)
            graph = read_graph_around(edges, file.ids, reading, notes=notes).along(made_with.direction)
        named = None
        if groups is not None:
            steps.stage("reading groups")
            named = read_groups(groups, file.ids, reading)
        result = evaluate_file(labelled, ranges, graph=graph, groups=named, **vars(neighbourhoods))
    # As it was called: what comes from standard input is read from a file of another name.
    result |= {"task": file.prediction.task, "sets": str(context.params["sets"]), "settings": file.metadata}
    run.notes([*notes, *_caveats(result, file.metadata), *_on_pccv(result, neighbourhoods)])
    shown = [*_tables(type(file.prediction), result), *(f"Warning: {text}." for text in result["weak"])]
    if in_order is not None:
        noun = file.prediction.noun
        result["in_order"] = over_time = _follow_labels(labelled, labels, in_order, reading, made)
        figures = _order_rows(over_time, noun)
        shown.append(table("In the order of the labels", ["", ""], figures))
        if page is not None:
            from napsets.report.over_time import write_over_time

            write_over_time(page, over_time, float(file.prediction.alpha), noun, figures)
    run.result(result, *shown)


def _caveats(result: dict[str, Any], metadata: dict[str, Any]) -> list[str]:
    """Say what is not known because the file does not say it."""
    caveats = []
    if math.isnan(result.get("full_rate", 0.0)):
        caveats.append(
            f"the number of full sets is not known, because {result['sets']} does not list its classes. Parquet "
            f"files written by napsets do"
        )
    if "level_labels" not in metadata:
        caveats.append(
            f"the range that chance explains is that of the evaluated nodes alone: {result['sets']} does not record "
            f"how many labels set the level. Parquet files written by napsets do"
        )
    return caveats


def _as_made(
    context: typer.Context, read: ReadingOptions, metadata: dict[str, Any]
) -> tuple[ReadingOptions, list[str]]:
    """Return how edges are read and followed, and notes: as the file was made, unless options say otherwise."""
    plain: dict[str, Any] = {"directed": False, "direction": "out"}
    options = {key: getattr(read, key) for key in plain if is_given(context, key)}
    recorded = {key: metadata[key] for key in plain if key in metadata}
    here = plain | recorded | options
    there = plain | recorded if "directed" in recorded else here
    name, now, then, notes = context.params["sets"], _edges_are(here), _edges_are(there), []
    if now != then:
        notes = [f"{name} was made with {then}, and is evaluated with {now}"]
    elif now != _edges_are(plain | options):
        notes = [f"evaluated with {now}, as {name} was made"]
    return replace(read, **here), notes


def _edges_are(settings: dict[str, Any]) -> str:
    return f"directed edges, --direction {settings['direction']}" if settings["directed"] else "undirected edges"


def _parse_strata(text: str) -> list[tuple[int, int]]:
    # Sizes of at most ten digits: no number of labels has more, and Python reads no number of some thousand digits.
    parts = re.findall(r"(?:^|,)\s*(\d{1,10})(?:-(\d{1,10}))?\s*(?=,|$)", text)
    ranges = [(int(low), int(high or low)) for low, high in parts]
    if len(parts) != text.count(",") + 1 or any(low > high or high > LARGEST_COUNT for low, high in ranges):
        shown = text if len(text) <= 80 else f"{text[:80]}…"
        raise typer.BadParameter(
            f"must be ranges of sizes as in 0-1,2-3,4-10, each at most {LARGEST_COUNT}; got {shown!r}",
            param_hint="--strata",
        )
    return ranges


#: What groups may be by, in the order of the table.
_KINDS = ("class", "degree", "neighbourhood", "width", "group")
#: PCCV is the worst of this many averages; over fewer, or a smaller share of the nodes, it says little about the rest.
_MANY_NEIGHBOURHOODS = 10
_MOST_NODES = 0.5


def _on_pccv(result: dict[str, Any], neighbourhoods: NeighbourhoodOptions) -> list[str]:
    """Say where PCCV is missing or means little, and why."""
    count, share = result.get("neighbourhoods"), result.get("share_in_neighbourhoods", 1.0)
    if count is None or (count >= _MANY_NEIGHBOURHOODS and share >= _MOST_NODES):
        return []
    what = "PCCV is not known" if count == 0 else "PCCV means little"
    plural = "s" * (count != 1)
    return [
        f"{what}: {count} neighbourhood{plural} of radius {neighbourhoods.radius} with at least "
        f"{neighbourhoods.min_size} evaluated nodes contain{'s' * (count == 1)} {percent(share)} of the nodes. "
        f"Evaluate more nodes, or count smaller neighbourhoods (--min-size {max(neighbourhoods.min_size // 3, 1)})"
    ]


def _pccv_rows(result: dict[str, Any], what: str) -> list[tuple[str, str]]:
    """Return PCCV compared with chance, where there is a graph."""
    if "pccv" not in result:
        return []
    held = percent(result["share_in_neighbourhoods"])
    return [
        (f"PCCV ({result['neighbourhoods']} neighbourhoods, {held} of the nodes)", number(result["pccv"])),
        (f"PCCV expected by chance, if every {what} met the target", number(result["pccv_chance"])),
    ]


def _gap_tables(result: dict[str, Any]) -> list[Any]:
    """Return how far coverage is from the target within groups, compared with chance."""
    names = ("gap", "chance", "under", "over", "worst", "worst_chance")
    rows = [
        (kind, *(number(result[f"{name}_{kind}"]) for name in names), percent(result[f"share_{kind}"]))
        for kind in _KINDS
        if f"gap_{kind}" in result
    ]
    columns = ["groups by", "gap", "by chance", "under", "over", "worst", "by chance", "of the nodes"]
    return [table("Average |coverage − target| over groups", columns, rows)] if rows else []


def _coverage_table(kind: str, rows: list[dict[str, Any]], size: str | None = None) -> Any:
    """Return coverage by group, with the mean size or width where it is known."""
    if kind != "degree":  # degrees have an order of their own
        rows = sorted(rows, key=lambda row: row["coverage"])
    columns = [kind, "nodes", "coverage"]
    shown = [[row["group"], number(row.get("nodes", row.get("count"))), percent(row["coverage"])] for row in rows]
    if size is not None:
        columns.append(size.replace("mean_", "average "))
        shown = [[*cells, number(row[size], 3)] for cells, row in zip(shown, rows, strict=True)]
    return table(f"Coverage by {kind}", columns, shown)


def _set_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("average size", f"{number(result['mean_size'])} ± {number(result['mean_size_se'])}"),
        ("average size of sets that contain the label", number(result["size_given_coverage"])),
        ("SSCV (worst gap by set size)", number(result["sscv"])),
        *_pccv_rows(result, "set"),
        ("sets of one label", percent(result["singleton_rate"])),
        ("empty sets", percent(result["empty_rate"])),
        ("full sets", percent(result["full_rate"]) if result["full_rate"] >= 0 else "classes not listed"),
        ("too little support (threshold ∞)", number(result["infinite"])),
    ]


def _interval_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    finite = [("average width of the finite ones", number(result["finite_width"]))]
    return [
        ("average width", f"{number(result['mean_width'])} ± {number(result['mean_width_se'])}"),
        *(finite if result["infinite_rate"] > 0 else []),
        ("median width", number(result["median_width"])),
        *_pccv_rows(result, "interval"),
        ("intervals that are the whole line", percent(result["infinite_rate"])),
        ("intervals of one point", percent(result["point_rate"])),
    ]


#: What is said of sizes and shares; and by what groups coverage is shown, with the size next to it.
_ROWS = {PredictionSets: _set_rows, PredictionIntervals: _interval_rows}
_SIZES: dict[type[Prediction], dict[str, str | None]] = {
    PredictionSets: {"class": "mean_size", "degree": "mean_size", "group": None},
    PredictionIntervals: {"degree": "mean_width", "group": "mean_width"},
}


def _tables(prediction: type[Prediction], result: dict[str, Any]) -> list[Any]:
    truth = prediction.truth_name
    chance = f"{percent(result['coverage_low'])} to {percent(result['coverage_high'])}"
    rows = [
        ("nodes evaluated", number(result["nodes"])),
        (f"{prediction.noun}s without a known {truth.removesuffix('s')}", number(result["unlabelled"])),
        ("coverage", f"{percent(result['coverage'])} ± {percent(result['coverage_se'])}"),
        ("target", percent(1.0 - result["alpha"])),
        ("range that chance explains (95 of 100 cases)", chance),
        *_ROWS[prediction](result),
    ]
    groups = [
        _coverage_table(kind, result[f"coverage_by_{kind}"], size)
        for kind, size in _SIZES[prediction].items()
        if f"coverage_by_{kind}" in result
    ]
    return [table(f"{result['sets']} against {truth}", ["", ""], rows), *_gap_tables(result), *groups]


# -- over time ---------------------------------------------------------------------------------------------------------

#: The name that stands for the order of the rows.
_ROWS_AS_READ = "rows"
#: Points of the curves.
_POINTS = 200


def _follow_labels(
    labelled: LabelledFile, labels: Path, column: str, reading: Reading, made: str | None = None
) -> dict[str, Any]:
    """Return the figures of `Monitor` over the judged predictions, and how they came about, in at most 200 points.

    A file of predictions has no scores. What is tested for exchangeability is whether a prediction missed, then its
    size: if nodes are exchangeable, so are these. All predictions share the labels that set the level. Without their
    number, too many misses cannot be told from an unlucky draw of these labels, and there is no coverage alarm.
    """
    from napsets.live.alarms import smoothed_p_values
    from napsets.live.monitoring import Monitor

    prediction = labelled.prediction
    order, delays, times = _order(labelled, labels, column, reading, made)
    missed = ~np.asarray(prediction.contains(labelled.truth), dtype=np.bool_)[order]
    sizes = np.asarray(prediction.sizes, dtype=np.float64)[order]
    _, ranks = np.unique(np.stack([missed, sizes]), axis=1, return_inverse=True)
    p_values = smoothed_p_values(ranks.ravel().astype(np.float64))
    monitor, curves = Monitor(float(prediction.alpha)), list[dict[str, Any]]()
    shown = set(np.linspace(1, missed.size, min(_POINTS, missed.size)).astype(int).tolist())
    late = [None] * missed.size if delays is None else delays.tolist()
    count = labelled.file.metadata.get("level_labels")
    judged = zip(missed.tolist(), sizes.tolist(), p_values.tolist(), late, times, strict=True)
    for miss, size, p_value, delay, time in judged:
        monitor.step(miss, size, p_value, delay, labels=count, time=time)
        if monitor.labels in shown:
            curves.append(_point(_status(monitor, count)))
    return {"order": column, **_status(monitor, count), "over_time": curves}


def _status(monitor: Monitor, labels: int | None) -> dict[str, Any]:
    """Return the figures of a monitor, without a coverage alarm where it is not known how many labels set the level."""
    status = monitor.status()
    if labels is None:
        status["alarms"]["coverage"] = {"rang": None, "time": None, "log10_capital": None, "tests": 0}
    return status


def _point(status: dict[str, Any]) -> dict[str, Any]:
    names = ("labels", "coverage", "coverage_interval", "recent_coverage", "mean_size", "recent_size", "label_delay")
    alarms = {f"log10_{name}": alarm["log10_capital"] for name, alarm in status["alarms"].items()}
    return {name: status[name] for name in names} | alarms


def _order(
    labelled: LabelledFile, labels: Path, column: str, reading: Reading, made: str | None
) -> tuple[IntArray, IntArray | None, list[str | float | None]]:
    """Return the judged predictions in the order of the labels (of rows or of a column), their delays and times."""
    file = open_table("labels", labels, reading)
    wanted = [name for name in (None if column == _ROWS_AS_READ else column, made) if name is not None]
    rows = read_node_rows(file, labelled.file.ids, *wanted, text=wanted)
    places, columns = rows.places, {name: rows.columns[name].to_pylist() for name in wanted}
    for name, values in columns.items():
        if any(value is None or value == "" for value in values):
            raise FileFormatError(f"`in_order` must name a column without empty cells; {name} of {labels} has some")
    times = np.arange(places.size) if column == _ROWS_AS_READ else _sortable(columns[column])
    turn = np.argsort(times, kind="stable")
    came = np.full(len(labelled.file.ids), -1)
    known = turn[places[turn] >= 0]
    came[places[known]] = np.arange(known.size)
    order = np.argsort(came[labelled.prediction.nodes], kind="stable")
    judged = known[came[labelled.prediction.nodes[order]]]
    when: list[str | float | None] = [None] * judged.size
    if column != _ROWS_AS_READ:
        when = [time if isinstance(time, float) else str(time) for time in times[judged].tolist()]
    if made is None:
        return order, None, when
    before = np.searchsorted(times[judged], _sortable(columns[made])[judged], side="right")
    return order, np.maximum(np.arange(judged.size) - before, 0), when


def _sortable(values: list[Any]) -> npt.NDArray[Any]:
    """Return numbers as numbers, also where a file has them as text, and anything else as it is: dates, say."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(values)


def _order_rows(result: dict[str, Any], noun: str) -> list[tuple[str, str]]:
    """Return the figures: what each is, and its value."""
    lower, upper = result["coverage_interval"]
    worst, size = result["worst_window"], "mean size" if noun == "set" else "mean width"

    def alarm(name: str) -> str:
        rang, time, evidence = (result["alarms"][name][key] for key in ("rang", "time", "log10_capital"))
        if evidence is None:
            return "not known (the file does not record how many labels set the level)"
        when = "" if time is None else f", at {result['order']} {time:g}" if isinstance(time, float) else f", on {time}"
        raised = "not raised" if rang is None else f"raised after {rang:,} labels{when}"
        return f"{raised} (evidence now 10^{evidence:.1f})"

    rows = [
        ("labels", number(result["labels"])),
        ("coverage so far", percent(result["coverage"])),
        ("holds at all times with 95 % confidence", f"{percent(lower)} to {percent(upper)}"),
        (f"worst {result['window']} labels in a row", f"{percent(worst['coverage'])}, up to label {worst['end']:,}"),
        (f"last {result['window']} labels", percent(result["recent_coverage"])),
        (size, f"{number(result['mean_size'])}, of the last {result['window']} {number(result['recent_size'])}"),
        ("coverage alarm", alarm("coverage")),
        ("exchangeability alarm", alarm("exchangeability")),
    ]
    if result["label_delay"] is not None:
        rows.append(("delay of labels", f"{result['label_delay']:g} labels (median of the last {result['window']})"))
    return rows
