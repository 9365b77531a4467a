"""Settings as a file records them: refused where they cannot be what napsets wrote."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from napsets.checks.values import LARGEST_HOPS, shown
from napsets.errors import FileFormatError, InvalidInputError
from napsets.localisers.decay import check_decay
from napsets.localisers.path_lengths import LENGTH_DECAYS

_COUNT = 2**63 - 1


def check_recorded(name: str, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Refuse settings of a kind or size that napsets does not write; those that it does not know are passed over.

    Parameters
    ----------
    name : str
        The argument that the file came from.
    path : path
        The file.
    settings : mapping
        What it records, as JSON has it.
    """
    for key, (fine, wanted) in _RULES.items():
        if key in settings and not fine(settings[key]):
            raise _refused(name, path, key, wanted, settings[key])
    by_length = isinstance(settings.get("decay"), str) and settings["decay"] in LENGTH_DECAYS
    if "decay" in settings and "hops" in settings and not by_length:
        try:
            check_decay(settings["decay"], settings["hops"])
        except InvalidInputError as error:
            raise FileFormatError(f"{_opening(name, path)} do not fit each other: {error}") from error


def _refused(name: str, path: str | os.PathLike[str], key: str, wanted: str, value: object) -> FileFormatError:
    what = f"have the {key} {shown(value)}, which must be {wanted}"
    return FileFormatError(f"{_opening(name, path)} {what}. Write the file again.")


def _opening(name: str, path: str | os.PathLike[str]) -> str:
    return f"`{name}` must record settings that napsets can have; those of {os.fspath(path)}"


def _integer(largest: int) -> tuple[Callable[[Any], bool], str]:
    def fine(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest

    return fine, f"an integer from 0 to {largest}"


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_YES_OR_NO: tuple[Callable[[Any], bool], str] = (lambda value: isinstance(value, bool), "true or false")

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "alpha": (lambda value: _number(value) and 0 < value < 1, "a number strictly between 0 and 1"),
    "hops": _integer(LARGEST_HOPS),
    "decay": (
        lambda value: isinstance(value, str) or (isinstance(value, list) and all(map(_number, value))),
        "a name or a list of numbers",
    ),
    "score": (lambda value: isinstance(value, str), "a name"),
    "task": _one_of("classification", "regression"),
    "features": (lambda value: isinstance(value, str), "the name of a file"),
    "by": (lambda value: isinstance(value, str), "the name of a grouping or of a file"),
    "method": (lambda value: isinstance(value, str), "a name"),
    "pool": (lambda value: _number(value) and 0 <= value < math.inf, "a number from 0"),
    "alike": (lambda value: _number(value) and 0 <= value < math.inf, "a number from 0"),
    "radius": (lambda value: _number(value) and 0 < value < math.inf, "a positive number"),
    "direction": _one_of("out", "in", "both"),
    "weights_are": _one_of("lengths", "strengths"),
    "seed": _integer(2**64 - 1),
    "fallback": _one_of("full", "global"),
    "level": _one_of("nominal", "exact"),
    "p_values": _one_of("plain", "smoothed"),
    "ids": _one_of("auto", "integer", "string"),
    "labels_are": _one_of("auto", "names", "indices"),
    "allow_empty": _YES_OR_NO,
    "directed": _YES_OR_NO,
    "skip_unknown": _YES_OR_NO,
    "logits": _YES_OR_NO,
    "num_nodes": _integer(_COUNT),
    "calibration": _integer(_COUNT),
    "level_labels": _integer(_COUNT),
    "method_description": (lambda value: isinstance(value, dict), "a description of a method"),
}
