"""Checking single values: numbers, flags, names, settings.

As in `_check`, which has them too, each function takes the argument's name first, because that name opens the message.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeVar, cast

import numpy as np

from napsets.errors import InvalidInputError

__all__ = [
    "LARGEST_HOPS",
    "check_alpha",
    "check_count",
    "check_flag",
    "check_hops",
    "check_kind",
    "check_list",
    "check_names",
    "check_number",
    "check_seed",
    "check_settings",
    "check_share",
    "shown",
]

Kind = TypeVar("Kind")

#: More hops than this are a mistake; fewer are walked as far as there are nodes.
LARGEST_HOPS = 2**31 - 1

_SHOWN = 80  # characters of a value that a message repeats
_NO_NUMBER = (TypeError, ValueError, OverflowError, RuntimeError)  # what float() raises, of tensors too


def shown(value: object) -> str:
    """Return what a message shows of a value: its repr, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"{type(value).__name__} too long to be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_alpha(value: object) -> float:
    """One error rate strictly between 0 and 1."""
    try:
        alpha = float(cast(Any, value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`alpha` must be a number between 0 and 1; got {shown(value)}") from error
    if not 0.0 < alpha < 1.0:  # NaN fails this too
        raise InvalidInputError(f"`alpha` must lie strictly between 0 and 1; got {alpha:g}")
    return alpha


def check_share(name: str, value: object) -> float:
    """One number from 0 to 1, both included."""
    try:
        share = float(cast(Any, value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`{name}` must be a number from 0 to 1; got {shown(value)}") from error
    if not 0.0 <= share <= 1.0:
        raise InvalidInputError(f"`{name}` must lie in [0, 1]; got {share:g}")
    return share


def check_number(name: str, value: object, *, largest: float) -> float:
    """One number from 0 to `largest`."""
    try:
        number = float("nan") if isinstance(value, str) else float(cast(Any, value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`{name}` must be a number; got {shown(value)}") from error
    if not 0.0 <= number <= largest:  # NaN fails this too
        raise InvalidInputError(f"`{name}` must be finite, at least 0 and at most {largest:g}; got {shown(value)}")
    return number


def check_count(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return an integer of at least `minimum` and, where given, at most `maximum`."""
    try:
        count = operator.index(cast(SupportsIndex, value))
    except _NO_NUMBER as error:
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            count = int(value)
        else:
            raise InvalidInputError(f"`{name}` must be an integer; got {shown(value)}") from error
    if count < minimum:
        raise InvalidInputError(f"`{name}` must be at least {minimum}; got {shown(count)}")
    if maximum is not None and count > maximum:
        raise InvalidInputError(f"`{name}` must be at most {maximum:,}; got {shown(count)}")
    return count


def check_hops(name: str, value: object, *, minimum: int = 0) -> int:
    """Return a depth; one that no graph has is refused, one that this graph has not costs nothing."""
    return check_count(name, value, minimum=minimum, maximum=LARGEST_HOPS)


def check_seed(value: object) -> int:
    """Return a seed: an integer from 0 to 2⁶⁴−1, for all that draw at random alike."""
    try:
        seed = operator.index(cast(SupportsIndex, value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`seed` must be an integer; got {shown(value)}") from error
    if not 0 <= seed < 2**64:
        raise InvalidInputError(f"`seed` must be at least 0 and below 2^64; got {shown(seed)}")
    return seed


def check_flag(name: str, value: object) -> bool:
    """Return True or False, and nothing that merely counts as one of them: 'no' would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"`{name}` must be True or False; got {shown(value)}")
    return bool(value)


def check_kind(name: str, value: object, kind: type[Kind], *, way: str) -> Kind:
    """Return a value of one class, or say what came and how to get one."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"`{name}` must be a {kind.__name__}; got {type(value).__name__}. {way}")
    return value


def check_list(name: str, value: object, of: str) -> list[Any]:
    """Return what a sequence holds; one text is not the list of its letters, nor a mapping that of its keys."""
    if isinstance(value, str | bytes | Mapping):
        raise InvalidInputError(f"`{name}` must be a list of {of}; got {shown(value)}")
    try:
        return list(cast(Any, value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"`{name}` must be a list of {of}; got {shown(value)}") from error


def check_names(name: str, value: object) -> tuple[str, ...] | None:
    """Return names as a tuple, or None where there are none."""
    return None if value is None else tuple(str(item) for item in check_list(name, value, "names"))


def check_settings(value: object) -> dict[str, Any]:
    """Return settings as a dictionary of our own, which nobody else can change."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"`settings` must be a mapping; got {shown(value)}")
    return copy.deepcopy(dict(value))
