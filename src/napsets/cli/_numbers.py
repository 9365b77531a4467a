"""Node regression on the command line: the task, and the method that files of numbers are calibrated with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any

import typer

from napsets.cli._methods import make, with_file_groups
from napsets.cli._options import make_score
from napsets.files.regression import RegressionInputs
from napsets.scores import SCORES

__all__ = ["Task", "TaskOption", "make_for_numbers", "reading_numbers", "score_for_numbers"]


class Task(str, Enum):
    """What is predicted of a node."""

    classification = "classification"
    regression = "regression"


TaskOption = Annotated[
    Task,
    typer.Option(
        "--task",
        help="Sets of labels; or intervals of numbers: --probabilities then has the columns node and lower, upper "
        "(two quantiles) or prediction [, spread], and --labels the columns node, target.",
    ),
]


def reading_numbers(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return how files are read, without what only labels have."""
    return {key: value for key, value in reading.items() if key not in ("labels_are", "logits")}


def make_for_numbers(
    context: typer.Context,
    settings: Mapping[str, Any],
    inputs: RegressionInputs,
    reading: Mapping[str, Any],
    stage: Callable[[str], None],
) -> tuple[Any, str]:
    """Return the method, and the name of its score: that of the file's columns."""
    score = score_for_numbers(context, settings["score"], inputs)
    made = make(settings["method"], {**settings, "score": score})
    return with_file_groups(made, settings.get("by"), inputs, reading, stage), str(SCORES.name_of(type(score)))


def score_for_numbers(context: typer.Context, name: str, inputs: RegressionInputs) -> Any:
    """Return the score of the file's columns; no other may be asked for."""
    asked = context.get_parameter_source("score")
    score = inputs.score if getattr(asked, "name", "DEFAULT") == "DEFAULT" else make_score(name)
    if score != inputs.score:
        raise typer.BadParameter(
            f"must be {SCORES.name_of(type(inputs.score))} for a file with the columns "
            f"{', '.join(inputs.score.columns)}",
            param_hint="--score",
        )
    return score
