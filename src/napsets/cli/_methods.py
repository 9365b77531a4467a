"""Methods on the command line: their names, help and settings, all from the table of methods."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from napsets.checks.text import percent
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
from napsets.files import Inputs, read_features, read_groups
from napsets.groups import GROUPS, ByGroup
from napsets.localisers.hops import DECAYS
from napsets.methods import METHODS, make_method
from napsets.methods.table import settings_of, suitable, with_groups
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import SCORES, Similarity, prediction_type

#: What `predict` and `inspect` use where nothing is said about how sets are to be made.
DEFAULT_METHOD = "auto"
#: What they use if an option of neighbourhoods or a score is given, or the engine has no other.
LOCAL_METHOD = "naps"
#: What they use if a radius is given.
LENGTH_METHOD = "naps-lengths"
#: Settings that some methods ignore.
_CHOSEN_BY = ("hops", "decay", "pool", "alike", "fallback", "level", "direction", "radius")


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
            f"{DEFAULT_METHOD}; or {LOCAL_METHOD} if --hops, --decay, --pool, --alike, --fallback, --level, --score "
            f"or, with --directed, --direction is given, and {LENGTH_METHOD} if --radius is.",
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

    def chosen(self, context: typer.Context, *, everywhere: bool = False) -> MethodOptions:
        """Return the same with a method: the given one, or else the one that fits the other options.

        Hops, weights and scores are settings of NAPS, and a radius is one of NAPS by path length; `switched` says so.
        With `everywhere`, the method must also be one that works on every engine.
        """
        if self.method is not None:
            return self
        local = everywhere or any(_chooses(context, key) for key in (*_CHOSEN_BY, "score"))
        name = LOCAL_METHOD if local else DEFAULT_METHOD
        if self.features is not None and not everywhere:
            name = "snaps"
        return replace(self, method=LENGTH_METHOD if is_given(context, "radius") else name)

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method or DEFAULT_METHOD

    def switched(self, context: typer.Context) -> str | None:
        """Say that other options than --method decided which method is used; None where they did not."""
        flags = ("features", *_CHOSEN_BY, "score")
        flagged = [f"--{key.replace('_', '-')}" for key in flags if _chooses(context, key)]
        if is_given(context, "method") or self.name == DEFAULT_METHOD or not flagged:
            return None
        options, verb = ("it", "is") if len(flagged) == 1 else ("they", "are")
        return (
            f"the method is {self.name}, not {DEFAULT_METHOD}, because of {', '.join(flagged)}: {options} {verb} not a "
            f"setting of {DEFAULT_METHOD}. To choose the method yourself, add --method"
        )

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
        """Return the method, without what files have to say: features, and groups of one's own."""
        settings = self.settings(read) | {"score": make_score(self.score) if score is None else score}
        left_out = {"features"} if self.by in GROUP_NAMES else {"features", "by"}
        known = suitable(self.name, settings)
        return make_method(self.name, **{key: value for key, value in known.items() if key not in left_out})

    def check(self, read: ReadingOptions) -> None:
        """Refuse settings that are wrong whatever the files contain, before files are read."""
        groups_file(self.by)
        score = make_score(self.score)
        if prediction_type(score) is read.prediction:
            self._check_features(self.make(read, score))

    def _check_features(self, method: Any) -> None:
        if self.features is not None and not compares_nodes(method):
            raise typer.BadParameter("needs a method that compares nodes: --method snaps", param_hint="--features")

    def make_for(
        self, context: typer.Context, inputs: Inputs, read: ReadingOptions, stage: Callable[[str], None]
    ) -> Any:
        """Return the method for files that were read: with their score, features and groups."""
        method, reading = self.make(read, score_of(context, self.score, inputs)), read.reading
        if inputs.prediction is PredictionIntervals and prediction_type(method.score) is PredictionSets:
            # It has a score of its own.
            message = f"{self.name} is for classification; with --task regression, use one of"
            raise typer.BadParameter(f"{message} {', '.join(interval_methods())}", param_hint="--method")
        self._check_features(method)
        if self.features is not None:
            stage("reading features")
            features = read_features(self.features, inputs.ids, reading)
            method = replace(method, score=replace(method.score, features=features))
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
        """Return what `compare` takes."""
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


def compares_nodes(method: Any) -> bool:
    """Return whether a method compares nodes by their features."""
    return isinstance(getattr(method, "score", None), Similarity)


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


def _chooses(context: typer.Context, key: str) -> bool:
    """Return whether an option was given and has an effect; --direction has none where edges go both ways."""
    return is_given(context, key) and (key != "direction" or bool(context.params.get("directed")))


def _source(context: typer.Context, key: str) -> str:
    return getattr(context.get_parameter_source(key), "name", "DEFAULT")


def ignored(context: typer.Context, read: ReadingOptions, *names: str) -> list[str]:
    """Say which options were given that all of the methods ignore; to be said before any work is done."""
    flags = [key for key in (*_CHOSEN_BY, "score") if _source(context, key) == "COMMANDLINE"]
    who = f"the method {names[0]} ignores" if len(names) == 1 else f"the methods {', '.join(names)} ignore"
    known = set().union(*(settings_of(name) for name in names))
    unused = [f"{who} --{key}" for key in flags if key not in known]
    return unused + (read.direction_notes(follows_direction=True) if "direction" in flags else [])


# -- what would do better ----------------------------------------------------------------------------------------------

#: A smaller share of sets without a threshold of their own is not mentioned.
_WORTH_SAYING = 0.1

#: From this share of full sets on, a note says that they are uninformative.
_MOSTLY_FULL = 0.5

#: Options that do not change what is computed; --config is replaced by what it filled in.
_LEFT_OUT = {"json", "quiet", "debug", "config", "help"}

#: What nodes with too little support get.
_WITHOUT_SUPPORT: dict[type[Prediction], str] = {
    PredictionSets: "sets ({}) contain every label",
    PredictionIntervals: "intervals ({}) are the whole line",
}


def support_note(result: Mapping[str, Any], context: Any, prediction: type[Prediction]) -> str | None:
    """Return a note on predictions that leave nothing out for lack of support, or None where there are few."""
    from napsets.advice.theory import fewest_labels

    share = result["infinite"] / max(result["nodes"], 1)
    if share < _WORTH_SAYING:
        return None
    alpha, hops, calibration = result["alpha"], result["hops"], result.get("calibration")
    without = _WITHOUT_SUPPORT[prediction].format(percent(share, 0))
    opening = f"{result['infinite']:,} of {result['nodes']:,} {without} because of too little support: "
    method, settings = result["method"], settings_of(result["method"])
    everyone = {"fallback": "global"} if "fallback" in settings else {}
    needed = fewest_labels(alpha)
    if calibration is not None and calibration < needed:
        reason = f"there are {calibration:,} calibration nodes, and alpha = {alpha:g} needs {needed:,} at least. "
        better = command_with(context, alpha=math.ceil(1000 / (calibration + 1)) / 1000, **everyone)
        return f"{opening}{reason}Label more nodes, or lower the target: {better}"
    if not (everyone or "hops" in settings):
        return f"{opening}{method} finds too few labels for them. To see what each method is for: napsets methods"
    if hops == 0:
        split = " (or use --fallback global: split conformal prediction)" if everyone else ""
        better = command_with(context, **_hops(result, 2))
        return f"{opening}no node is within 0 hops of another. Use two hops: {better}{split}"
    reason = f"too few calibration nodes are within {hops} hop{'s' * (hops > 1)}. "
    if everyone:
        better = command_with(context, **everyone)
        return f"{opening}{reason}To give those the threshold of all calibration nodes: {better}"
    better = command_with(context, **_hops(result, hops + 1))
    return f"{opening}{reason}To look further: {better}"


def full_note(result: Mapping[str, Any], context: Any) -> str | None:
    """Return a note on sets that are full though support is not what they lack, or None where there are few."""
    nodes, alpha, full = result["nodes"], result["alpha"], result.get("full_rate", 0.0)
    reached = round(full * nodes) - result["infinite"]
    # One class alone fills every set; and where most full sets lack support, that is what there is to say.
    if full < _MOSTLY_FULL or 2 * reached < full * nodes or result.get("classes", 2) < 2:
        return None
    larger = min(2 * alpha, (1 + alpha) / 2)
    return (
        f"{reached:,} of {nodes:,} sets ({percent(reached / nodes, 0)}) contain every label although they have "
        "support: the probabilities hardly distinguish the classes. Use a better model, or lower the target: "
        f"{command_with(context, alpha=larger)}"
    )


def _hops(result: Mapping[str, Any], hops: int) -> dict[str, Any]:
    """Return what to change for a deeper search: weights that were given for each hop do not reach further."""
    return {"hops": hops} if isinstance(result.get("decay", ""), str) else {"hops": hops, "decay": "uniform"}


def command_with(context: Any, **changes: Any) -> str:
    """Return the command line that is being run, with some options changed; what is as by default is left out."""
    words = [context.command_path]
    for parameter in context.command.params:
        if parameter.name in _LEFT_OUT:
            continue
        value = changes.get(parameter.name, context.params.get(parameter.name))
        if value is None or (value == parameter.default and parameter.name not in changes):
            continue
        if getattr(parameter, "is_flag", False):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], shlex.quote(str(value))]
    return " ".join(words)
