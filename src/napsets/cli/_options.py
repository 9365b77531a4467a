"""The options that several commands share: one name, one meaning, one help text.

Those on how files are read are in `napsets.cli._reading`. A command takes a record in place of many options:
`add_command` declares the options of its fields, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from napsets import scores
from napsets.checks.values import LARGEST_HOPS
from napsets.errors import InvalidInputError
from napsets.localisers.decay import DECAYS, check_decay
from napsets.localisers.path_lengths import LENGTH_DECAYS

#: What `napsets.randomness` takes: the parser refuses more, in the words of all its refusals.
LARGEST_SEED = 2**64 - 1
#: The same for whatever is counted in nodes, labels or hops.
LARGEST_COUNT = 2**31 - 1

_FORMATS = "Parquet, CSV, TSV, JSON Lines or npz; - is standard input"


class FallbackName(str, Enum):
    """What a node with too little support gets."""

    full = "full"
    global_ = "global"


class FailOn(str, Enum):
    """What makes a command fail although it did its work."""

    never = "never"
    warning = "warning"


def make_score(name: str) -> Any:
    """Return the score of that name, with its usual settings."""
    try:
        return scores.make_score(name)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error
    except TypeError as error:
        raise typer.BadParameter(f"{name} needs settings, which can be given only in Python") from error


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
        help=f"Probabilities: column node, then one column per class (or one list column probabilities). {_FORMATS}.",
    ),
]
Labels = Annotated[
    Path,
    typer.Option(
        "--labels",
        "-l",
        help=f"Known labels: columns node, label (name of the class, or its number from 0). {_FORMATS}.",
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option("--nodes", "-n", help="Nodes to predict: column node. Without it, all nodes without a label."),
]
TrainingOption = Annotated[
    Path | None,
    typer.Option(
        "--training",
        help="Nodes that the model was trained on: column node. They are neither predicted nor used to calibrate.",
    ),
]
FailOnOption = Annotated[
    FailOn,
    typer.Option("--fail-on", help="With warning: exit with code 3 if the verdict has a warning; files are written."),
]
FeaturesOption = Annotated[
    Path | None,
    typer.Option(
        "--features",
        help=f"Features by which nodes are compared (snaps): column node, then one column per feature. {_FORMATS}; or "
        "a sparse matrix of scipy.sparse.save_npz, one row per node in the order of --probabilities.",
    ),
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", "-a", help="Error rate: how often a set may miss the truth.", callback=_check_alpha),
]
Hops = Annotated[
    int, typer.Option("--hops", "-k", min=0, max=LARGEST_HOPS, help="Depth of a neighbourhood, the paper's K.")
]
DecayOption = Annotated[
    str | None,
    typer.Option(
        "--decay",
        help="Weight of a node k hops away: uniform (1), hyperbolic (1/k), geometric (2^-k), or numbers as in 1,0.5; "
        "by path length also linear or gaussian. Without it, the method's default.",
        autocompletion=_decay_names,
    ),
]
ScoreOption = Annotated[
    str,
    typer.Option(
        "--score",
        help=f"Conformity score: {', '.join(scores.SCORES)}.",
        autocompletion=_score_names,
        callback=_check_score,
    ),
]
#: The default score.
DEFAULT_SCORE = "aps"
Seed = Annotated[int, typer.Option("--seed", help="Seed of each node's uniform number.", min=0, max=LARGEST_SEED)]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty/--no-empty", help="Keep empty sets, or put the most probable label into them.")
]
FallbackOption = Annotated[
    FallbackName,
    typer.Option(
        "--fallback", help="What a node with too few labelled nodes near it gets: every label, or the global threshold."
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        "--radius",
        min=0,
        help="Radius of a neighbourhood by path length, for naps-lengths. Without it, the median distance at which a "
        "labelled node has 50 others.",
    ),
]


# -- records -----------------------------------------------------------------------------------------------------------


class Only:
    """In the annotation of a record: the fields that a command has as options; the others are as by default."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True)
class InputFiles:
    """The files of a prediction."""

    edges: Edges
    probabilities: Probabilities
    labels: Labels
