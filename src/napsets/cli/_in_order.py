"""``napsets evaluate --in-order``: coverage over time, with labels in the order in which they arrived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.cli._output import number, percent
from napsets.errors import FileFormatError
from napsets.evaluation.files import LabelledFile
from napsets.files.formats import open_table
from napsets.files.ids import read_node_rows
from napsets.files.reading import Reading
from napsets.live.alarms import smoothed_p_values
from napsets.live.monitoring import Monitor

#: The name that stands for the order of the rows.
ROWS = "rows"
#: Points of the curves.
_POINTS = 200


def follow_labels(
    labelled: LabelledFile, labels: Path, column: str, reading: Reading, made: str | None = None
) -> dict[str, Any]:
    """Return the figures of `Monitor` over the judged predictions, and how they came about, in at most 200 points.

    A file of predictions has no scores. What is tested for exchangeability is whether a prediction missed, then its
    size: if nodes are exchangeable, so are these.
    """
    prediction = labelled.prediction
    order, delays = _order(labelled, labels, column, reading, made)
    missed = ~np.asarray(prediction.contains(labelled.truth), dtype=np.bool_)[order]
    sizes = np.asarray(prediction.sizes, dtype=np.float64)[order]
    _, ranks = np.unique(np.stack([missed, sizes]), axis=1, return_inverse=True)
    p_values = smoothed_p_values(ranks.ravel().astype(np.float64))
    monitor, curves = Monitor(float(prediction.alpha)), list[dict[str, Any]]()
    shown = set(np.linspace(1, missed.size, min(_POINTS, missed.size)).astype(int).tolist())
    late = [None] * missed.size if delays is None else delays.tolist()
    for miss, size, p_value, delay in zip(missed.tolist(), sizes.tolist(), p_values.tolist(), late, strict=True):
        monitor.step(miss, size, p_value, delay)
        if monitor.labels in shown:
            curves.append(_point(monitor.status()))
    return {"order": column, **monitor.status(), "over_time": curves}


def _point(status: dict[str, Any]) -> dict[str, Any]:
    names = ("labels", "coverage", "coverage_interval", "recent_coverage", "mean_size", "recent_size", "label_delay")
    alarms = {f"log10_{name}": alarm["log10_capital"] for name, alarm in status["alarms"].items()}
    return {name: status[name] for name in names} | alarms


def _order(
    labelled: LabelledFile, labels: Path, column: str, reading: Reading, made: str | None
) -> tuple[IntArray, IntArray | None]:
    """Return the judged predictions in the order of the labels, that of the rows or of a column, and their delays."""
    file = open_table("labels", labels, reading)
    wanted = [name for name in (None if column == ROWS else column, made) if name is not None]
    places, parts = read_node_rows(file, labelled.file.ids, *wanted)
    columns = {name: [value for part in parts[name] for value in part.to_pylist()] for name in wanted}
    for name, values in columns.items():
        if any(value is None or value == "" for value in values):
            raise FileFormatError(f"`in_order` must name a column without empty cells; {name} of {labels} has some")
    times = np.arange(places.size) if column == ROWS else _sortable(columns[column])
    turn = np.argsort(times, kind="stable")
    came = np.full(len(labelled.file.ids), -1)
    known = turn[places[turn] >= 0]
    came[places[known]] = np.arange(known.size)
    order = np.argsort(came[labelled.prediction.nodes], kind="stable")
    if made is None:
        return order, None
    judged = known[came[labelled.prediction.nodes[order]]]
    before = np.searchsorted(times[judged], _sortable(columns[made])[judged], side="right")
    return order, np.maximum(np.arange(judged.size) - before, 0)


def _sortable(values: list[Any]) -> npt.NDArray[Any]:
    """Return numbers as numbers, also where a file has them as text, and anything else as it is: dates, say."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(values)


def order_rows(result: dict[str, Any], noun: str) -> list[tuple[str, str]]:
    """Return the figures: what each is, and its value."""
    lower, upper = result["coverage_interval"]
    worst, size = result["worst_window"], "mean size" if noun == "set" else "mean width"

    def alarm(name: str) -> str:
        rang, evidence = result["alarms"][name]["rang"], result["alarms"][name]["log10_capital"]
        return f"{'not raised' if rang is None else f'raised after {rang:,} labels'} (evidence now 10^{evidence:.1f})"

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
