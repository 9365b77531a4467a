"""The options that several commands share: one name, one meaning, one help text.

A command takes a record in place of many options: `add_command` declares the options of its fields, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from napsets import scores
from napsets.checks.compressed import Direction
from napsets.checks.values import LARGEST_HOPS
from napsets.cli._output import wrong_use
from napsets.files import Inputs, read_inputs
from napsets.files.reading import Reading
from napsets.localisers.hops import DECAYS, hop_weights
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

_FORMATS = "Parquet, CSV or TSV (.gz too); - is standard input"

#: What each option is, for the help of every command that does not say otherwise.
HELP = {
    "edges": f"Edges: columns source, target[, weight]. {_FORMATS}.",
    "probabilities": "Probabilities: column node, then one column per class (or one list column probabilities). "
    f"{_FORMATS}.",
    "labels": f"Known labels: columns node, label (name of the class, or its number from 0). {_FORMATS}.",
    "nodes": "Nodes to predict: column node. Without it, all nodes without a label.",
    "evidence": "Further known labels, a file like --labels, of nodes labelled for any reason: methods learn from "
    "them, and all of --labels sets the level. Then only --labels must be a random sample.",
    "training": "Nodes that the model was trained on: column node. They are neither predicted nor used to calibrate.",
    "fail_on": "With warning: exit with code 3 if the verdict has a warning; files are written.",
    "alpha": "Error rate: how often a set may miss the truth.",
    "hops": "Depth of a neighbourhood, the paper's K.",
    "decay": "Weight of a node k hops away: uniform (1), hyperbolic (1/k), geometric (2^-k), or numbers as in 1,0.5; "
    "by path length also linear or gaussian. Without it, the method's default.",
    "pool": "Weight of all labelled nodes together, in neighbours. Without it, the method's default.",
    "alike": "Weight of the labelled nodes with the same predicted label, in neighbours. Without it, the method's "
    "default.",
    "radius": "Radius of a neighbourhood by path length, for naps-lengths. Without it, the median distance at which a "
    "labelled node has 50 others.",
    "features": f"Features by which nodes are compared (auto, informed, snaps): column node, then one column per "
    f"feature. With them, --edges may be left out. {_FORMATS}.",
    "score": f"Conformity score: {', '.join(scores.SCORES)}.",
    "seed": "Seed of each node's uniform number.",
    "allow_empty": "Keep empty sets, or put the most probable label into them.",
    "fallback": "What a node with too few labelled nodes near it gets: every label, or the global threshold.",
    "level": "Thresholds at 1 − alpha (nominal), or at a level set on held-out labels (exact: with a guarantee). "
    "Without it, the method's default; auto sets its own.",
    "directed": "Edges go from source to target; follow them as --direction says.",
    "direction": "With --directed: from a node to its targets (out), its sources (in), or both.",
    "weights_are": "Whether the column weight of the edges holds lengths or strengths (length = 1/strength). Without "
    "it, weights are not used.",
    "skip_unknown": "Leave out rows with ids that the probabilities lack, or labels that are not classes, instead of "
    "failing.",
    "logits": "The file holds logits (a model's outputs before softmax) instead of probabilities.",
    "ignore_columns": "Columns of --probabilities that are not classes, as in split,year.",
    "task": "Sets of labels, or intervals for numbers. For intervals, --probabilities has the columns node and lower, "
    "upper (two quantiles) or prediction [, spread], and --labels has the columns node, target.",
    "rename": "A column with another name, as in uid=node or class=label; in every file that has it. Repeat the option "
    "for several columns.",
    "no_header": "CSV files have no header: columns come in the documented order, and classes are called 0, 1, 2, …",
    "separator": "Separator of CSV files, read or written: ';', '|', tab. Without it a comma, in .tsv a tab.",
}

#: The heading under which options on how files are written stand; they come after all others of a command.
FILES_PANEL = "How files are written"


def _check_rename(texts: list[str]) -> list[str]:
    _renames(texts)
    return texts


def _renames(texts: list[str]) -> dict[str, str]:
    """Return napsets' names of columns by those of the files, from texts such as ``uid=node``."""
    pairs: dict[str, str] = {}
    for text in texts:
        old, _, new = (word.strip() for word in text.rpartition("="))
        if not (old and new):
            raise typer.BadParameter(f"must be OLD=NEW, as in uid=node; got {text!r}")
        if pairs.setdefault(old, new) != new:
            raise typer.BadParameter(f"must give each column one name; {old} has {pairs[old]} and {new}")
    return pairs


def _separator(text: str | None) -> str | None:
    """Return the character that ``--separator`` means."""
    mark = {"\\t": "\t", "tab": "\t"}.get((text or "").lower(), text)
    with wrong_use():
        return Reading(separator=mark).separator


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read, and what is to be predicted from them."""

    directed: bool = False
    direction: Direction = "out"
    weights_are: Literal["lengths", "strengths"] | None = None
    skip_unknown: bool = False
    logits: bool = False
    ignore_columns: str = ""
    task: Literal["classification", "regression"] = "classification"
    rename: Annotated[list[str], typer.Option(callback=_check_rename, rich_help_panel=FILES_PANEL)] = field(
        default_factory=list
    )
    no_header: Annotated[bool, typer.Option("--no-header", rich_help_panel=FILES_PANEL)] = False
    separator: Annotated[str | None, typer.Option(callback=_separator, rich_help_panel=FILES_PANEL)] = None

    def __post_init__(self) -> None:
        if self.direction != "out" and not self.directed:
            raise typer.BadParameter("needs --directed: otherwise edges go both ways", param_hint="--direction")

    @cached_property
    def reading(self) -> Reading:
        """How files are read, for the readers."""
        return Reading(
            skip_unknown=self.skip_unknown, logits=self.logits, directed=self.directed, weights_are=self.weights_are,
            ignore_columns=[name.strip() for name in self.ignore_columns.split(",") if name.strip()],
            rename=_renames(self.rename), separator=self.separator, header=not self.no_header,
        )  # fmt: skip

    @property
    def prediction(self) -> type[Prediction]:
        """What is to be predicted."""
        return PredictionSets if self.task == "classification" else PredictionIntervals

    def refuse(self, unused: dict[str, bool]) -> None:
        """Raise for an option that only classification has; `unused` is ``{flag: whether it was given}``."""
        if self.prediction is not PredictionSets and any(unused.values()):
            raise typer.BadParameter(f"works without {' and '.join(unused)}", param_hint="--task")

    def recorded(self) -> dict[str, Any]:
        """Return the options on reading that a file of predictions records: those that were given."""
        names = (
            "skip_unknown", "logits", "weights_are", "rename", "no_header", "separator", "ignore_columns"
        )  # fmt: skip
        return {name: value for name in names if (value := getattr(self, name)) not in (None, False, "", [])}


#: What `napsets.randomness` takes: the parser refuses more, in the words of all its refusals.
LARGEST_SEED = 2**64 - 1
#: The same for whatever is counted in nodes, labels or hops.
LARGEST_COUNT = 2**31 - 1


def make_score(name: str) -> Any:
    """Return the score of that name, with its usual settings."""
    try:
        with wrong_use():
            return scores.make_score(name)
    except TypeError as error:
        raise typer.BadParameter(f"{name} needs settings, which can be given only in Python") from error


def _check_score(name: str) -> str:
    make_score(name)
    return name


def make_decay(text: str | None, hops: int) -> str | list[float] | None:
    """Turn the text of ``--decay`` into a name or into weights, one for each hop; None leaves it to the method."""
    if text is None:
        return None
    decay: str | list[float] = text
    if text in LENGTH_DECAYS and text not in DECAYS:
        return text  # methods that count hops refuse it
    if text not in DECAYS:
        try:
            decay = [float(part) for part in text.split(",")]
        except ValueError:
            names = ", ".join(DECAYS)
            message = f"must be one of {names}, or a weight for each hop as in 1,0.5,0.25; got {text!r}"
            raise typer.BadParameter(message, param_hint="--decay") from None
    with wrong_use("--decay"):
        hop_weights(decay, hops)
    return decay


def _check_alpha(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise typer.BadParameter(f"must lie strictly between 0 and 1; got {value:g}")
    return value


Edges = Annotated[Path, typer.Option("--edges", "-e")]
Probabilities = Annotated[Path, typer.Option("--probabilities", "-p")]
Labels = Annotated[Path, typer.Option("--labels", "-l")]
Evidence = Annotated[Path | None, typer.Option("--evidence")]
Nodes = Annotated[Path | None, typer.Option("--nodes", "-n")]
Alpha = Annotated[float, typer.Option("--alpha", "-a", callback=_check_alpha)]
Hops = Annotated[int, typer.Option("--hops", "-k", min=0, max=LARGEST_HOPS)]
ScoreOption = Annotated[str, typer.Option(autocompletion=lambda: list(scores.SCORES), callback=_check_score)]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED)]
#: A weight in neighbours, or a distance; None leaves it to the method.
Amount = Annotated[float | None, typer.Option(min=0)]
FailOn = Literal["never", "warning"]
Fallback = Literal["full", "global"]
#: The default score.
DEFAULT_SCORE = "aps"


def refuse_given(message: str, flags: Mapping[str, bool]) -> None:
    """Raise for an option that makes no sense here; `flags` is ``{flag: whether it was given}``."""
    for flag, was_given in flags.items():
        if was_given:
            raise typer.BadParameter(message, param_hint=flag)


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
    evidence: Evidence = None

    def read(self, read: ReadingOptions, stage: Callable[[str], None], **options: Any) -> Inputs:
        """Read the files; the options are further ones of `read_inputs`."""
        return read_inputs(
            self.edges, self.probabilities, self.labels,
            reading=read.reading, prediction=read.prediction, evidence=self.evidence, stage=stage, **options,
        )  # fmt: skip
