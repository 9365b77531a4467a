"""The options that several commands share: one name, one meaning, one help text."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from napsets import scores
from napsets.checks.arguments import LARGEST_HOPS
from napsets.errors import InvalidInputError
from napsets.localisers.decay import DECAYS, check_decay
from napsets.localisers.path_lengths import LENGTH_DECAYS

__all__ = [
    "DEFAULT_SCORE",
    "LARGEST_SEED",
    "AllowEmpty",
    "Alpha",
    "DecayOption",
    "Directed",
    "DirectionName",
    "DirectionOption",
    "Edges",
    "FallbackName",
    "FallbackOption",
    "FeaturesOption",
    "Hops",
    "IdKind",
    "IdKindName",
    "Labels",
    "LabelsAre",
    "LabelsName",
    "Logits",
    "Nodes",
    "Probabilities",
    "Radius",
    "ScoreOption",
    "Seed",
    "SkipUnknown",
    "WeightsAre",
    "WeightsName",
    "direction_notes",
    "make_decay",
    "make_score",
]

#: What `napsets.randomness` takes: the parser refuses more, in the words of all its refusals.
LARGEST_SEED = 2**64 - 1

_FORMATS = "Parquet, CSV, TSV, JSON Lines or npz; - is standard input"


class IdKindName(str, Enum):
    """How ids are read."""

    auto = "auto"
    integer = "integer"
    string = "string"


class FallbackName(str, Enum):
    """What a node with too little support gets."""

    full = "full"
    global_ = "global"


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


def make_score(name: str) -> Any:
    """Return the score of that name, with its usual settings."""
    try:
        return scores.make_score(name)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error
    except TypeError as error:
        raise typer.BadParameter(f"{name} is nothing without settings, which only Python can give it") from error


def _check_score(name: str) -> str:
    make_score(name)
    return name


def make_decay(text: str | None, hops: int) -> str | list[float] | None:
    """Turn the text of ``--decay`` into a name or into weights, one for each hop; None leaves it to the method."""
    decay: Any = text
    if text is None:
        return None
    if text in LENGTH_DECAYS and text not in DECAYS:
        return text  # methods that count hops refuse it
    if text not in DECAYS:
        try:
            decay = [float(part) for part in text.split(",")]
        except ValueError:
            names = ", ".join(DECAYS)
            message = f"must be one of {names}, or a weight for each hop as in 1,0.5,0.25; got {text!r}"
            raise typer.BadParameter(message, param_hint="--decay") from None
    try:
        check_decay(decay, hops)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--decay") from error
    return decay  # type: ignore[no-any-return]


def direction_notes(*, asked: bool, directed: bool) -> list[str]:
    """Say that a direction was asked for which edges do not have."""
    return ["--direction makes no difference without --directed: edges go both ways"] if asked and not directed else []


def _check_alpha(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must lie strictly between 0 and 1; got {value:g}")
    return value


def _decay_names() -> list[str]:
    return list(DECAYS)


def _score_names() -> list[str]:
    return list(scores.SCORES)


Edges = Annotated[Path, typer.Option("--edges", "-e", help=f"Edges: columns source, target[, weight]. {_FORMATS}.")]
Probabilities = Annotated[
    Path,
    typer.Option(
        "--probabilities",
        "-p",
        help=f"Probabilities: column node, then one column a class (or one list column probabilities). {_FORMATS}.",
    ),
]
Labels = Annotated[
    Path,
    typer.Option(
        "--labels", "-l", help=f"Known labels: columns node, label (a class's name or number from 0). {_FORMATS}."
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option("--nodes", "-n", help="Nodes to predict: column node. Without it, all that have no label."),
]
FeaturesOption = Annotated[
    Path | None,
    typer.Option(
        "--features",
        help=f"Features by which nodes are compared (snaps): column node, then one column a feature. {_FORMATS}; or a "
        "sparse matrix of scipy.sparse.save_npz, a row a node in the order of --probabilities.",
    ),
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", "-a", help="Error rate: a set misses the truth this often.", callback=_check_alpha),
]
Hops = Annotated[
    int, typer.Option("--hops", "-k", min=0, max=LARGEST_HOPS, help="Depth of a neighbourhood, the paper's K.")
]
DecayOption = Annotated[
    str | None,
    typer.Option(
        "--decay",
        help="Weight of a node k hops away: uniform (1), hyperbolic (1/k), geometric (2^-k), or numbers as in 1,0.5; "
        "by path length also linear or gaussian. Without it, as the method has it.",
        autocompletion=_decay_names,
    ),
]
ScoreOption = Annotated[
    str,
    typer.Option(
        "--score",
        help=f"How badly a label fits: {', '.join(scores.SCORES)}.",
        autocompletion=_score_names,
        callback=_check_score,
    ),
]
#: The score where nothing else is asked for.
DEFAULT_SCORE = "aps"
Seed = Annotated[int, typer.Option("--seed", help="Seed of each node's uniform number.", min=0, max=LARGEST_SEED)]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty/--no-empty", help="Keep empty sets, or give them the best label.")
]
FallbackOption = Annotated[
    FallbackName,
    typer.Option("--fallback", help="A node with too little support gets all labels, or the global threshold."),
]
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
        help="What the column weight of the edges is: lengths, or strengths (length = 1/strength). Without it none.",
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        "--radius",
        min=0,
        help="How far a neighbourhood reaches by path length, for naps-lengths. Without it, as far as half of the "
        "labelled nodes need to have 50 others.",
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
    typer.Option("--logits", help="The probabilities are what a model says before its softmax, which is taken here."),
]
SkipUnknown = Annotated[
    bool,
    typer.Option("--skip-unknown", help="Leave out rows with ids that the probabilities lack, instead of failing."),
]
