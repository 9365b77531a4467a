"""``--like``: how a file of sets or intervals, or a report, was made, and what it has for a node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.checks.values import shown
from napsets.cli._options import DEFAULT_SCORE
from napsets.cli._output import number
from napsets.errors import FileFormatError, NapsetsError
from napsets.files import Inputs, PredictionFile, Reading, read_prediction
from napsets.files.formats import TableFile, open_table
from napsets.files.npz_format import METADATA_KEY, check_recorded
from napsets.files.prediction_columns import COLUMNS_OF
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import SCORES

#: Numbers that differ by a smaller share, ends by a smaller share of the width, were rounded on another machine.
_ROUNDED = 1e-6


@dataclass(frozen=True, eq=False)
class WrittenRecord:
    """How a file was made.

    Attributes
    ----------
    path : Path
        The file.
    report : bool
        Whether it is a report; otherwise it is a file of sets or of intervals.
    settings_in_file : dict
        What it says: settings by the names of options, and what else `napsets` wrote there.
    """

    path: Path
    report: bool
    settings_in_file: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, as options take them."""
        decay = self.settings_in_file.get("decay")
        # Files of sets do not say that they are about labels.
        return (
            {"task": "classification"}
            | self.settings_in_file
            | ({"decay": ",".join(map(repr, decay))} if isinstance(decay, list) else {})
        )

    @property
    def prediction(self) -> type[Prediction]:
        """What it holds, or is about."""
        return next(kind for kind in COLUMNS_OF if kind.task == self.settings["task"])

    def check_task(self, task: str) -> None:
        """Refuse to explain sets as intervals, or intervals as sets."""
        own = self.settings["task"]
        if task != own:
            holds = "is about" if self.report else "holds"
            raise typer.BadParameter(
                f"must be {own}, or left out: {self.path} {holds} {self.prediction.noun}s", param_hint="--task"
            )

    def check_score(self, context: typer.Context, inputs: Inputs) -> None:
        """Refuse outputs of another kind than it was made from, unless a flag asks for their score."""
        if inputs.score is None:
            return
        own, here = self.settings_in_file.get("score"), SCORES.name_of(type(inputs.score))
        in_the_call = getattr(context.get_parameter_source("score"), "name", "") == "COMMANDLINE"
        if own is not None and own != here and not in_the_call:
            raise FileFormatError(
                f"{self.path} was made from other files: its score is {own}, and that of the columns of these files is "
                f"{here}. Pass the files that it was made from."
            )

    def calibrated_alike(self, inputs: Inputs) -> bool:
        """Return whether as many labels calibrated it as calibrate here; a report names them, and they are taken."""
        return self.report or bool(self.settings_in_file.get("calibration") == inputs.calibration.size)

    def calibration(self, inputs: Inputs) -> IntArray:
        """Return the nodes that calibrated, of files that should be those it was made from."""
        here = inputs.class_names or []
        names = self.settings_in_file.get("class_names", here)
        if sorted(names) != sorted(here):
            raise FileFormatError(
                f"{self.path} was made from other files: its classes are {shown(names)}, and those of these files are "
                f"{shown(here)}. Pass the files that it was made from."
            )
        if not self.report:
            return inputs.calibration
        from napsets.report.record import calibrating_nodes

        nodes = calibrating_nodes(self.settings_in_file, inputs.ids.keys)
        unknown = int(np.isin(nodes, inputs.calibration, invert=True).sum())
        if unknown:
            raise FileFormatError(
                f"{self.path} was made from other files: {unknown:,} of the {nodes.size:,} nodes that calibrated in it "
                f"have no label here. Pass the files that it was made from."
            )
        return nodes

    def notes(self, options: Mapping[str, Any], inputs: Inputs) -> list[str]:
        """Say where flags win over the record, and where the files are not those it was made from."""
        notes = []
        for name, recorded in self.settings.items():
            value = getattr(options.get(name), "value", options.get(name))
            if name in options and value != recorded:
                notes.append(f"{name} is {value!r} here, though {self.path} was made with {recorded!r}")
        counts = {"num_nodes": ("nodes", len(inputs.ids))}
        if not self.report:
            counts["calibration"] = ("labels", int(inputs.calibration.size))
        for key, (what, here) in counts.items():
            if self.settings_in_file.get(key, here) != here:
                notes.append(
                    f"{self.path} was made from {self.settings_in_file[key]} {what} and these files have {here}: its "
                    "contents may differ from what is explained here"
                )
        return notes


def read_written_record(path: Path) -> WrittenRecord:
    """Read what a file of sets or intervals, or a report, says of how it was made; refuse what napsets does not say."""
    report = path.suffix.lower() in (".html", ".htm")
    table = None if report else _opened(path)
    written = _of_report(path) if table is None else table.about()
    check_recorded("like", path, written)
    record = WrittenRecord(path, report, written)
    if table is not None:
        table.require(*COLUMNS_OF[record.prediction].required)
    return record


def _of_report(path: Path) -> dict[str, Any]:
    from napsets.report import record

    return record.read_report_record(path)


def _opened(path: Path) -> TableFile:
    """Open a file of sets or intervals that has a place for settings."""
    table = open_table("like", path)
    if METADATA_KEY not in table.metadata:
        placeless = {"csv": "CSV cannot store them", "jsonl": "JSON Lines cannot store them"}
        reason = placeless.get(table.format, "it holds none")
        raise FileFormatError(
            f"`like` must be a sets file or a report that records how it was made; {path} does not: {reason}. Write "
            "the sets as Parquet or npz, or pass the settings as flags."
        )
    return table


def _apply(context: typer.Context, path: Path | None) -> Path | None:
    """Make a record the source of defaults, before those of a settings file; flags still win."""
    if path is None or context.resilient_parsing:
        return path
    try:
        settings = read_written_record(path).settings
    except (NapsetsError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    if settings.get("score", DEFAULT_SCORE) not in SCORES:
        raise typer.BadParameter(
            f"{path} was made with the score {settings['score']}, for which the command has no name; inspect_node "
            f"explains such sets in Python"
        )
    options = {parameter.name for parameter in context.command.params}
    chosen = {name: value for name, value in settings.items() if name in options}
    context.default_map = {**(context.default_map or {}), **chosen}
    return path


#: Declared before the options that it fills in.
Like = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="A file of sets or intervals (Parquet or npz), or a report, to explain: its settings and its calibration "
        "nodes are used. Other flags take precedence.",
        callback=_apply,
    ),
]


# -- what the file has for a node --------------------------------------------------------------------------------------


def written_otherwise(record: WrittenRecord, result: dict[str, Any], inputs: Inputs, place: int) -> list[str]:
    """Say where a file has another set, interval or threshold for a node; nothing of a report, which keeps few nodes.

    Parameters
    ----------
    record : WrittenRecord
        The file.
    result : dict
        What was explained, as `Explanation.result` gives it.
    inputs : Inputs
        What was read.
    place : int
        The node.
    """
    if record.report:
        return []
    file = read_prediction(record.path, Reading(ids="string" if inputs.ids.is_string else "auto"))
    if file.ids.is_string != inputs.ids.is_string:
        return []
    rows = [int(row) for row in file.ids.positions(inputs.ids.take(np.array([place]))) if row >= 0]
    for row in rows:
        threshold = float(file.prediction.thresholds[row])
        text, same = _ROWS[type(file.prediction)](file, row, result)
        if not same or not math.isclose(threshold, result["threshold"], rel_tol=_ROUNDED):
            has = f"{text} at the threshold {_shown(threshold)}"
            return [f"{record.path} has {has} for this node: the files or settings differ"]
    return []


def _set_row(file: PredictionFile, row: int, result: dict[str, Any]) -> tuple[str, bool]:
    """Return a set of the file, and whether it is the one that was explained."""
    names = file.prediction[row]
    return f"{{{', '.join(names)}}}", sorted(names) == sorted(result["set"])


def _interval_row(file: PredictionFile, row: int, result: dict[str, Any]) -> tuple[str, bool]:
    """Return an interval of the file, and whether it is the one that was explained."""
    lower, upper = file.prediction[row]
    room = _ROUNDED * (upper - lower) if math.isfinite(upper - lower) else 0.0
    same = np.isclose([result["lower"], result["upper"]], [lower, upper], rtol=1e-12, atol=room).all()
    return f"[{_shown(lower)}, {_shown(upper)}]", bool(same)


_ROWS: dict[type[Prediction], Callable[[PredictionFile, int, dict[str, Any]], tuple[str, bool]]] = {
    PredictionSets: _set_row,
    PredictionIntervals: _interval_row,
}


def _shown(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else number(value)
