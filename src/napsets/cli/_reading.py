"""How commands read files: the options that say it, and the record that they fill, `ReadingOptions`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Any, cast

import typer

from napsets.errors import InvalidInputError
from napsets.files.reading import FORMATS, Reading
from napsets.graph import Direction
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets


class IdKindName(str, Enum):
    """How ids are read."""

    auto = "auto"
    integer = "integer"
    string = "string"


class DirectionName(str, Enum):
    """Which way edges are followed."""

    out = "out"
    in_ = "in"
    both = "both"


class WeightsName(str, Enum):
    """What weights of edges are."""

    lengths = "lengths"
    strengths = "strengths"


class LabelsName(str, Enum):
    """How labels are read."""

    auto = "auto"
    names = "names"
    indices = "indices"


class TaskName(str, Enum):
    """What is predicted of a node."""

    classification = "classification"
    regression = "regression"


Directed = Annotated[
    bool, typer.Option("--directed", help="Edges go from source to target; follow them as --direction says.")
]

DirectionOption = Annotated[
    DirectionName,
    typer.Option("--direction", help="With --directed: from a node to its targets (out), its sources (in), or both."),
]

WeightsAre = Annotated[
    WeightsName | None,
    typer.Option(
        "--weights-are",
        help="Whether the column weight of the edges holds lengths or strengths (length = 1/strength). Without it, "
        "weights are not used.",
    ),
]

IdKind = Annotated[
    IdKindName,
    typer.Option("--ids", help="Read ids as the files have them (auto), or all of them as integers or as text."),
]

LabelsAre = Annotated[
    LabelsName,
    typer.Option(
        "--labels-are",
        help="Whether labels are names of classes or their numbers from 0; auto: names if all are, numbers if none is.",
    ),
]

Logits = Annotated[
    bool,
    typer.Option("--logits", help="The file holds logits (a model's outputs before softmax) instead of probabilities."),
]

Normalise = Annotated[
    bool,
    typer.Option("--normalise", help="Divide each row of probabilities by its sum: rounded shares, or percentages."),
]

IgnoreColumns = Annotated[
    str,
    typer.Option("--ignore-columns", help="Columns of --probabilities that are not classes, as in split,year."),
]

SkipUnknown = Annotated[
    bool,
    typer.Option(
        "--skip-unknown",
        help="Leave out rows with ids that the probabilities lack, or labels that are not classes, instead of failing.",
    ),
]

TaskOption = Annotated[
    TaskName,
    typer.Option(
        "--task",
        help="Sets of labels, or intervals for numbers. For intervals, --probabilities has the columns node and lower, "
        "upper (two quantiles) or prediction [, spread], and --labels has the columns node, target.",
    ),
]

#: The heading under which options on how files are written stand; they come after all others of a command.
FILES_PANEL = "How files are written"


def _check_reading(name: str) -> Any:
    """Return what checks one option on how files are written."""

    def check(value: str | None) -> str | None:
        try:
            Reading(**{name: value})  # type: ignore[arg-type]
        except InvalidInputError as error:
            raise typer.BadParameter(str(error)) from error
        return value

    return check


Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of columns, if not node, source, target, label: node=id,source=src. In one file only: "
        "labels.node=uid. For regression: prediction=yhat, labels.target=price. Files of sets keep their names.",
        callback=_check_reading("columns"),
        rich_help_panel=FILES_PANEL,
    ),
]

Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="Separator of CSV files, read or written: ';', '|', tab. Without it a comma, in .tsv a tab.",
        callback=_check_reading("separator"),
        rich_help_panel=FILES_PANEL,
    ),
]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"Format of files whose name does not show it, and of -: {', '.join(FORMATS)}. Without it, - is CSV.",
        autocompletion=lambda: list(FORMATS),
        callback=_check_reading("format"),
        rich_help_panel=FILES_PANEL,
    ),
]

#: What each task predicts, and which options on reading its files have a meaning for it.
_PREDICTIONS: dict[str, type[Prediction]] = {"classification": PredictionSets, "regression": PredictionIntervals}

_READ_FOR: dict[type[Prediction], tuple[str, ...]] = {
    PredictionSets: ("ids", "labels_are", "skip_unknown", "logits"),
    PredictionIntervals: ("ids", "skip_unknown"),
}


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read, and what is to be predicted from them."""

    directed: Directed = False
    direction: DirectionOption = DirectionName.out
    weights_are: WeightsAre = None
    ids: IdKind = IdKindName.auto
    skip_unknown: SkipUnknown = False
    labels_are: LabelsAre = LabelsName.auto
    logits: Logits = False
    normalise: Normalise = False
    ignore_columns: IgnoreColumns = ""
    task: TaskOption = TaskName.classification
    columns: Columns = None
    separator: Separator = None
    format: FormatOption = None

    @property
    def reading(self) -> Reading:
        """How files are read, for the readers."""
        named: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(Reading)}
        return Reading(**named)

    @property
    def prediction(self) -> type[Prediction]:
        """What is to be predicted."""
        return _PREDICTIONS[self.task]

    def refuse(self, unused: dict[str, bool], *, works: str = "works without", elsewhere: bool = False) -> None:
        """Refuse options that only the usual task has: any that was given, of ``{flag: whether it was}``."""
        if self.prediction is not PredictionSets and (elsewhere or any(unused.values())):
            *flags, last = unused
            raise typer.BadParameter(f"{works} {', '.join(flags)} and {last}", param_hint="--task")

    @property
    def along(self) -> Direction:
        """Which way edges are followed."""
        return cast("Direction", self.direction)

    def recorded(self) -> dict[str, Any]:
        """Return what a file of predictions records of how files were read, as far as it was said."""
        known = {name: getattr(self, name) for name in _READ_FOR[self.prediction]}
        recorded = ("weights_are", "columns", "separator", "format", "normalise", "ignore_columns")
        values = {name: getattr(self, name) for name in recorded}
        return known | {name: value for name, value in values.items() if value not in (None, False, "")}

    def direction_notes(self, *, follows_direction: bool = False) -> list[str]:
        """Say that --direction was given, which has no effect on undirected edges."""
        if self.directed or not (follows_direction or self.direction != "out"):
            return []
        return ["--direction has no effect without --directed: edges go both ways"]
