"""Methods on the command line: their names, help and settings, all from the table of methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from napsets.checks.values import choose
from napsets.cli._options import (
    DEFAULT_SCORE,
    Alpha,
    Amount,
    Fallback,
    Hops,
    ReadingOptions,
    ScoreOption,
    Seed,
    make_decay,
    make_score,
)
from napsets.errors import InvalidInputError
from napsets.evaluation.kinds import SETS, interval_methods, kind_of
from napsets.files import Inputs, read_groups
from napsets.groups import GROUPS, ByGroup
from napsets.localisers.hops import DECAYS
from napsets.methods import METHODS, make_method
from napsets.methods.table import settings_of, suitable, with_groups
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import SCORES, prediction_type

#: The method of `predict` and `inspect` where no option names another.
DEFAULT_METHOD = "auto"
#: What they use where one of its settings is given.
LOCAL_METHOD = "naps"
_SETTINGS_OF_NAPS = ("hops", "decay", "pool", "alike", "fallback", "level", "score")


def names_of(text: str) -> list[str]:
    """Return the methods of a list such as ``split,naps``, each of which must be in the table."""
    names = [name.strip() for name in text.split(",")]
    try:
        for name in names:
            choose("method", name, METHODS)
    except InvalidInputError as error:
        raise typer.BadParameter(f"{error}; `napsets methods` says what each is for") from error
    return names


def _check_names(text: str | None) -> str | None:
    if text is not None:
        names_of(text)
    return text


#: Groups that are made from names alone.
GROUP_NAMES = tuple(name for name in GROUPS if name != "group")

Level = Literal["nominal", "exact"]


# -- records -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodOptions:
    """One method and its settings."""

    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help=f"The method: {', '.join(METHODS)}. `napsets methods` says what each is for. Without it "
            f"{DEFAULT_METHOD}, or {LOCAL_METHOD} if one of its settings is given: {', '.join(_SETTINGS_OF_NAPS)}.",
            autocompletion=lambda: list(METHODS),
            callback=_check_names,
        ),
    ] = None
    alpha: Alpha = 0.1
    hops: Hops = 2
    decay: Annotated[str | None, typer.Option(autocompletion=lambda: list(DECAYS))] = None
    pool: Amount = None
    alike: Amount = None
    radius: Amount = None
    features: Path | None = None
    by: Annotated[
        str | None,
        typer.Option(
            help=f"Groups within each of which coverage has to hold: {', '.join(GROUP_NAMES)}, or a file with the "
            f"columns node and group."
        ),
    ] = None
    score: ScoreOption = DEFAULT_SCORE
    seed: Seed = 0
    allow_empty: Annotated[bool, typer.Option("--allow-empty/--no-empty")] = True
    fallback: Fallback = "full"
    level: Level | None = None

    def chosen(self, context: typer.Context) -> MethodOptions:
        """Return the options with a method: without --method, NAPS where one of its settings is given."""
        given = any(is_given(context, key) for key in _SETTINGS_OF_NAPS)
        return replace(self, method=self.method or (LOCAL_METHOD if given else DEFAULT_METHOD))

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method or DEFAULT_METHOD

    @property
    def graph_optional(self) -> bool:
        """Whether there need not be a graph: there are features, or the method uses none."""
        return self.features is not None or not make_method(self.name).needs_graph

    def switched(self, context: typer.Context) -> str | None:
        """Return a note where other options than --method chose the method."""
        flags = [f"--{key.replace('_', '-')}" for key in _SETTINGS_OF_NAPS if is_given(context, key)]
        if is_given(context, "method") or not flags:
            return None
        return f"the method is {self.name}, not {DEFAULT_METHOD}, because of {', '.join(flags)}; --method names another"

    def settings(self, read: ReadingOptions) -> dict[str, Any]:
        """Return the settings as files record them, None where they are left to the method."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        changes: dict[str, Any] = {
            "decay": make_decay(self.decay, self.hops),
            "features": None if self.features is None else str(self.features),
            "directed": read.directed,
        }
        return named | changes | ({} if read.direction == "out" else {"direction": read.direction})

    def make(self, read: ReadingOptions, score: Any = None) -> Any:
        """Return the method, without the groups of a file."""
        settings = self.settings(read) | {"score": make_score(self.score) if score is None else score}
        known = suitable(self.name, settings)
        return make_method(self.name, **{k: v for k, v in known.items() if k != "by" or self.by in GROUP_NAMES})

    def check(self, read: ReadingOptions) -> None:
        """Check the settings that can be wrong whatever the files contain, before files are read."""
        groups_file(self.by)
        score = make_score(self.score)
        if prediction_type(score) is read.prediction:
            method = self.make(read, score)
            if self.features is not None and not method.uses_features:
                message = "needs a method that compares nodes: auto, informed or snaps"
                raise typer.BadParameter(message, param_hint="--features")

    def make_for(
        self, context: typer.Context, inputs: Inputs, read: ReadingOptions, stage: Callable[[str], None]
    ) -> Any:
        """Return the method for files that were read: with their score and groups."""
        method, reading = self.make(read, score_of(context, self.score, inputs)), read.reading
        if inputs.prediction is PredictionIntervals and prediction_type(method.score) is PredictionSets:
            # It has a score of its own.
            message = f"{self.name} is for classification; with --task regression, use one of"
            raise typer.BadParameter(f"{message} {', '.join(interval_methods())}", param_hint="--method")
        path = groups_file(self.by)
        if path is not None:
            stage("reading groups")
            method = with_groups(method, ByGroup(read_groups(path, inputs.ids, reading)))
        return method


@dataclass(frozen=True)
class ComparisonOptions:
    """Several methods, and the settings that they share."""

    methods: Annotated[
        str | None,
        typer.Option(
            help=f"Methods to compare, the baseline first, separated by commas: {', '.join(METHODS)}. Without it "
            f"{', '.join(SETS.compared)}, as far as they suit the task.",
            autocompletion=lambda: list(METHODS),
            callback=_check_names,
        ),
    ] = None
    alpha: Alpha = 0.1
    hops: Hops = 2
    pool: Amount = None
    alike: Amount = None
    fallback: Fallback = "full"
    level: Level | None = None

    def names(self, prediction: type[Prediction] = PredictionSets) -> list[str]:
        """Return the names of the methods: those that suit the task, where none is named."""
        return list(kind_of(prediction).compared) if self.methods is None else names_of(self.methods)

    def settings(self, prediction: type[Prediction] = PredictionSets) -> dict[str, Any]:
        """Return the arguments of `compare`."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"methods": self.names(prediction)}


# -- what follows from them --------------------------------------------------------------------------------------------


def score_of(context: typer.Context, name: str, inputs: Inputs) -> Any:
    """Return the score: that of the columns of the file of outputs, where these are of one, and no other then."""
    if inputs.score is None:
        return make_score(name)
    score = make_score(name) if is_given(context, "score") else inputs.score
    if score != inputs.score:
        raise typer.BadParameter(
            f"must be {SCORES.name_of(type(inputs.score))} for a file with the columns "
            f"{', '.join(inputs.score.columns)}",
            param_hint="--score",
        )
    return score


def groups_file(by: str | None) -> Path | None:
    """Return the file that `--by` names, if it does not name a grouping; one that is not there is refused."""
    if by is None or by in GROUP_NAMES:
        return None
    if not Path(by).exists():
        raise typer.BadParameter(
            f"must be one of {', '.join(GROUP_NAMES)}, or a file with the columns node and group; "
            f"there is no file {by}",
            param_hint="--by",
        )
    return Path(by)


def recorded(method: Any) -> dict[str, Any]:
    """Return the weights that a method came to have, as JSON has them; those of functions are left out."""
    localiser = getattr(method, "localiser", None)
    weights = {key: getattr(localiser, key, None) for key in ("hops", "decay", "pool", "alike", "direction", "radius")}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in weights.items()}
    usual = {"direction": "out"}
    return {key: v for key, v in plain.items() if v is not None and not callable(v) and v != usual.get(key)}


def is_given(context: typer.Context, key: str) -> bool:
    """Return whether an option was given, in the call or in a settings file."""
    return _source(context, key) != "DEFAULT"


def _source(context: typer.Context, key: str) -> str:
    return getattr(context.get_parameter_source(key), "name", "DEFAULT")


def ignored(context: typer.Context, *names: str) -> list[str]:
    """Return notes on options that were given and that all of the methods ignore."""
    flags = [key for key in (*_SETTINGS_OF_NAPS, "radius", "direction") if _source(context, key) == "COMMANDLINE"]
    who = f"the method {names[0]} ignores" if len(names) == 1 else f"the methods {', '.join(names)} ignore"
    known = set().union(*(settings_of(name) for name in names))
    return [f"{who} --{key}" for key in flags if key not in known]
