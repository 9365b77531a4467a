"""Choosing from a table by name, with a suggestion where the name is nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from napsets.checks.arguments import shown
from napsets.errors import InvalidInputError

__all__ = ["choose"]

Value = TypeVar("Value")


def choose(argument: str, name: object, options: Mapping[str, Value]) -> Value:
    """Return ``options[name]``, or an error that lists the names and suggests the nearest.

    Examples
    --------
    >>> choose("decay", "uniform", {"uniform": 1})
    1
    """
    if isinstance(name, str) and name in options:
        return options[name]
    near = difflib.get_close_matches(shown(name).strip("'").lower(), options, n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InvalidInputError(f"`{argument}` must be one of {', '.join(options)}; got {shown(name)}{hint}")
