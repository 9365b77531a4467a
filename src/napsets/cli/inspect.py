"""``napsets inspect``: why a node's set, or interval, is what it is; and ``--like``: how a file or report was made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from napsets.checks.arguments import IntArray
from napsets.checks.values import shown
from napsets.cli._inspected import explain, explanation_tables
from napsets.cli._methods import MethodOptions, ignored
from napsets.cli._options import DEFAULT_SCORE, LARGEST_COUNT, InputFiles, ReadingOptions
from napsets.cli._output import REPORT_SUFFIXES, Output, number
from napsets.errors import FileFormatError, NapsetsError
from napsets.files import Inputs, PredictionFile, Reading, read_prediction
from napsets.files.formats import open_table
from napsets.files.prediction_columns import COLUMNS_OF
from napsets.files.prediction_file import check_recorded
from napsets.predictions import Prediction, PredictionSets
from napsets.scores import SCORES

EXAMPLES = [
    "napsets inspect --node 42 --like sets.parquet --edges edges.parquet --probabilities p.parquet --labels y.parquet",
    "napsets inspect --node 42 --like report.html -e edges.csv -p p.csv -l y.csv --method naps-h",
    "napsets inspect --node user-7 -e edges.csv -p p.csv -l y.csv --hops 3 --decay geometric --neighbours 50",
    "napsets inspect --node 42 -e edges.csv -p p.csv -l y.csv --method informed",
    "napsets inspect --node 42 --task regression -e edges.csv -p quantiles.csv -l targets.csv --method informed",
    "napsets inspect --node 42 --like intervals.parquet -e edges.csv -p quantiles.csv -l targets.csv --neighbours 5",
    "napsets inspect --node 42 --config napsets.toml --json",
]

#: Numbers that differ by a smaller share, ends by a smaller share of the width, were rounded on another machine.
_ROUNDED = 1e-6


@dataclass(frozen=True, eq=False)
class WrittenRecord:
    """How a file of sets or intervals, or a report, was made, as it says itself: settings by the names of options."""

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
            if name in options and options[name] != recorded:
                notes.append(f"{name} is {options[name]!r} here, though {self.path} was made with {recorded!r}")
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
    if path.suffix.lower() in REPORT_SUFFIXES:
        from napsets.report.record import read_report_record

        record = WrittenRecord(path, report=True, settings_in_file=read_report_record(path))
        check_recorded("like", path, record.settings_in_file)
        return record
    table = open_table("like", path)
    if table.settings is None:
        placeless = {"csv": "CSV cannot store them", "jsonl": "JSON Lines cannot store them"}
        reason = placeless.get(table.format, "it holds none")
        raise FileFormatError(
            f"`like` must be a sets file or a report that records how it was made; {path} does not: {reason}. Write "
            "the sets as Parquet or npz, or pass the settings as flags."
        )
    record = WrittenRecord(path, report=False, settings_in_file=table.about())
    check_recorded("like", path, record.settings_in_file)
    table.require(*COLUMNS_OF[record.prediction].required)
    return record


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
        help="A file of sets or intervals (Parquet or npz), or a report, to explain: its settings and its calibration "
        "nodes are used. Other flags take precedence.",
        callback=_apply,
    ),
]


def inspect(
    run: Output,
    context: typer.Context,
    node: Annotated[str, typer.Option(help="The node's id, as the files have it.")],
    files: InputFiles,
    like: Like = None,
    options: MethodOptions = MethodOptions(),
    neighbours: Annotated[int, typer.Option(min=0, max=LARGEST_COUNT, help="How many calibration nodes to list.")] = 10,
    read: ReadingOptions = ReadingOptions(),
) -> None:
    """Show why a node's set, or its interval, is what it is.

    It prints the neighbourhood by hop with weights, the score of each label, the threshold and where it comes from, and
    the calibration nodes with the nearest scores. If neighbours' labels are evidence (informed, auto), it also prints
    the model's own probabilities, what each kind of evidence adds, and which neighbours are evidence for which label.

    With --task regression it explains an interval: the model's outputs, how the targets around the node change them
    (informed, auto), and the threshold.

    With the files and settings that `napsets predict` had, it explains the set, or the interval, that was written.
    --like takes the settings from that file, or from a report, which may have used half of the labels for evaluation.
    Without it, all labels calibrate.
    """
    from napsets.advice.inspection import inspect_node

    record = None if like is None else read_written_record(like)
    if record is not None:
        record.check_task(read.task)
    options = options.chosen(context)
    read.refuse({"--logits": read.logits, "--features": options.features is not None})
    run.notes(ignored(context, read, options.name))
    options.check(read)
    with run.steps() as steps:
        inputs = files.read(read, steps.stage, predicting=False)
        if record is not None:
            record.check_score(context, inputs)
        method = options.make_for(context, inputs, read, steps.stage)
        run.notes(inputs.notes)
        place = inputs.ids.find(node)
        calibration = inputs.calibration if record is None else record.calibration(inputs)
        calibrated = inputs.calibrate(method, calibration)
        inspection: Any = inspect_node(calibrated, position=place, alpha=options.alpha)
        score = options.score if inputs.score is None else SCORES.name_of(type(inputs.score))
        result: dict[str, Any] = {"method": options.name, "task": read.task, "score": score}
        result |= explain(inspection, inputs, neighbours)
        if record is not None:
            run.notes([*record.notes(context.params, inputs), *written_otherwise(record, result, inputs, place)])
    choice = None if calibrated.choice is None else str(calibrated.choice)
    result |= {"calibration": int(calibration.size), "labelled": int(inputs.calibration.size)}
    result |= {"like": None if like is None else str(like), "choice": choice}
    first, others = explanation_tables(result, inspection, read.prediction)
    run.result(
        result,
        first,
        inspection.reason(),
        _calibrated_on(result, like.name if like and record and record.calibrated_alike(inputs) else None),
        *([] if choice is None else [f"Chosen: {choice}."]),
        *others,
    )


def _calibrated_on(result: dict[str, Any], alike: str | None) -> str:
    """Say how many labels calibrated, and the name of the file that as many made."""
    used, labelled = result["calibration"], result["labelled"]
    which = f"all {labelled:,}" if used == labelled else f"{used:,} of {labelled:,}"
    return f"Calibrated on {which} labelled nodes" + ("." if alike is None else f", as {alike} was.")


# -- what the file has for a node --------------------------------------------------------------------------------------


def written_otherwise(record: WrittenRecord, result: dict[str, Any], inputs: Inputs, place: int) -> list[str]:
    """Say where a file has another set, interval or threshold for a node; a report keeps too few nodes."""
    if record.report:
        return []
    file = read_prediction(record.path, Reading(ids="string" if inputs.ids.is_string else "auto"))
    if file.ids.is_string != inputs.ids.is_string:
        return []
    rows = [int(row) for row in file.ids.positions(inputs.ids.take(np.array([place]))) if row >= 0]
    for row in rows:
        threshold = float(file.prediction.thresholds[row])
        text, same = (_set_row if record.prediction is PredictionSets else _interval_row)(file, row, result)
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


def _shown(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else number(value)
