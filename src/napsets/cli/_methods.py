"""Methods on the command line: their names, help and settings, all from the table of methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from napsets.cli._options import direction_notes
from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import COMPARED
from napsets.files import Inputs, read_features, read_groups
from napsets.files.regression import RegressionInputs
from napsets.groups import GROUPS, ByGroup
from napsets.methods import METHODS, Settings, make_method
from napsets.methods.table import with_groups
from napsets.scores import Similarity

__all__ = [
    "Alike",
    "LevelName",
    "LevelOption",
    "MethodOption",
    "MethodsOption",
    "Pool",
    "chosen_method",
    "groups_file",
    "ignored",
    "is_given",
    "make",
    "names_of",
    "recorded",
    "takes",
    "with_features",
    "with_file_groups",
]

#: What `predict` and `inspect` use where nothing is said about how sets are to be made.
DEFAULT_METHOD = "auto"
#: What they use where a setting of neighbourhoods or a score is asked for, or the engine knows no other.
LOCAL_METHOD = "naps"
#: What they use where a radius is asked for.
LENGTH_METHOD = "naps-lengths"
#: Two values of each setting; a method that is the same with both takes no notice of it.
_PROBES: dict[str, tuple[Any, Any]] = {
    "hops": (1, 2),
    "decay": ("hyperbolic", "geometric"),
    "pool": (1.0, 2.0),
    "alike": (1.0, 2.0),
    "fallback": ("full", "global"),
    "level": ("nominal", "exact"),
    "direction": ("in", "both"),
    "radius": (1.0, 2.0),
}


class LevelName(str, Enum):
    """Where thresholds are taken."""

    nominal = "nominal"
    exact = "exact"


def _names() -> list[str]:
    return list(METHODS)


def _check_name(name: str | None) -> str | None:
    if name is not None:
        names_of(name)
    return name


def names_of(text: str) -> list[str]:
    """Return the methods of a list such as ``split,naps``, each of which must be in the table."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in METHODS:
            try:
                make_method(name)
            except InvalidInputError as error:
                raise typer.BadParameter(f"{error}; `napsets methods` says what each is for") from error
    return names


def _check_names(text: str) -> str:
    names_of(text)
    return text


MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        help=f"How sets are made: {', '.join(METHODS)}. `napsets methods` says what each is for. Without it "
        f"{DEFAULT_METHOD}, or {LOCAL_METHOD} where --hops, --decay, --pool, --alike, --fallback, --level, --direction "
        f"or --score is given, or {LENGTH_METHOD} where --radius is.",
        autocompletion=_names,
        callback=_check_name,
    ),
]
MethodsOption = Annotated[
    str,
    typer.Option(
        "--methods",
        help=f"What to compare, the baseline first, divided by commas: {', '.join(METHODS)}.",
        autocompletion=_names,
        callback=_check_names,
    ),
]
#: The default of `MethodsOption`.
COMPARED_METHODS = ",".join(COMPARED)
Pool = Annotated[
    float | None,
    typer.Option(
        "--pool",
        min=0,
        help="How many neighbours all labelled nodes together count for. Without it, as the method has it.",
    ),
]
Alike = Annotated[
    float | None,
    typer.Option(
        "--alike",
        min=0,
        help="The same for labelled nodes with the same predicted label. Without it, as the method has it.",
    ),
]

#: Groups that are made from names alone.
GROUP_NAMES = tuple(name for name in GROUPS if name != "group")
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        help=f"Within what coverage is to hold: {', '.join(GROUP_NAMES)}, or a file with the columns node and group.",
    ),
]
LevelOption = Annotated[
    LevelName | None,
    typer.Option(
        "--level",
        help="Thresholds at 1 − alpha (nominal), or at a level set on labels kept apart (exact: a guarantee). Without "
        "it, as the method has it; auto sets its own.",
    ),
]


def make(name: str, settings: Mapping[str, Any]) -> Any:
    """Return a method with those of the settings that a method may have."""
    known = {field.name for field in fields(Settings)} - {"features"}  # which are read when the nodes are known
    if settings.get("by") not in GROUP_NAMES:  # so are groups that a file has
        known -= {"by"}
    return make_method(name, **{key: value for key, value in settings.items() if key in known})


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


def with_file_groups(
    method: Any,
    by: str | None,
    inputs: Inputs | RegressionInputs,
    reading: Mapping[str, Any],
    stage: Callable[[str], None],
) -> Any:
    """Return a method that judges nodes by the groups of a file, where one is given."""
    if by is None or by in GROUP_NAMES:
        return method
    stage("reading groups")
    found = read_groups(by, inputs.ids, ids=reading["ids"], skip_unknown=reading["skip_unknown"])
    return with_groups(method, ByGroup(found))


def with_features(
    method: Any, path: Path | None, inputs: Inputs, reading: Mapping[str, Any], stage: Callable[[str], None]
) -> Any:
    """Return a method whose score compares nodes by the features of a file, where one is given."""
    if path is None:
        return method
    if not isinstance(getattr(method, "score", None), Similarity):
        raise typer.BadParameter("needs a method that compares nodes: --method snaps", param_hint="--features")
    stage("reading features")
    found = read_features(path, inputs.ids, ids=reading["ids"], skip_unknown=reading["skip_unknown"])
    return replace(method, score=replace(method.score, features=found))


def recorded(method: Any) -> dict[str, Any]:
    """Return the weights that a method came to have, as JSON has them; those of functions are left out."""
    localiser = getattr(method, "localiser", None)
    found = {key: getattr(localiser, key, None) for key in ("decay", "pool", "alike", "direction", "radius")}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    usual = {"direction": "out"}
    return {key: v for key, v in plain.items() if v is not None and not callable(v) and v != usual.get(key)}


def takes(name: str, setting: str) -> bool:
    """Return whether a setting makes a difference to a method."""
    try:
        first, second = (make_method(name, **{setting: value}) for value in _PROBES[setting])
    except InvalidInputError:  # it does: it refuses one of them
        return True
    return bool(first != second)


def chosen_method(context: typer.Context, name: str | None, *, everywhere: bool = False) -> str:
    """Return the method asked for; without one, what the other options fit.

    Whoever asks for hops, weights or a score means NAPS with them, and whoever names a radius NAPS by path length. With
    `everywhere`, the method must also be one that works on every engine.
    """
    if name is not None:
        return name
    if is_given(context, "radius"):
        return LENGTH_METHOD
    if not everywhere and is_given(context, "features"):
        return "snaps"
    return LOCAL_METHOD if everywhere or any(is_given(context, key) for key in (*_PROBES, "score")) else DEFAULT_METHOD


def is_given(context: typer.Context, key: str) -> bool:
    """Return whether an option was given, in the call or in a settings file."""
    return getattr(context.get_parameter_source(key), "name", "DEFAULT") != "DEFAULT"


def ignored(context: typer.Context, name: str) -> list[str]:
    """Say which options were given that the method takes no notice of."""
    given = [key for key in _PROBES if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"]
    notes = [f"the method {name} takes no notice of --{key}" for key in given if not takes(name, key)]
    return notes + direction_notes(asked="direction" in given, directed=bool(context.params.get("directed")))
