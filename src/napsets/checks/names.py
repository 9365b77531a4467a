"""Tables of named things, and choosing from one, with a suggestion where the name is nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from napsets.checks.arguments import shown
from napsets.errors import InvalidInputError

__all__ = ["Table", "choose"]

Value = TypeVar("Value")
Named = TypeVar("Named")


class Table(dict[str, Value]):
    """Things by the name that settings, files and the command line call them by.

    Examples
    --------
    >>> DECAYS = Table()
    >>> @DECAYS.add("none")
    ... def none(k):
    ...     return 0.0
    >>> list(DECAYS)
    ['none']
    """

    def add(self, name: str) -> Callable[[Named], Named]:
        """Return a decorator that enters what it decorates."""

        def enter(value: Named) -> Named:
            self[name] = value  # type: ignore[assignment]
            return value

        return enter

    def name_of(self, value: object) -> str | None:
        """Return the name under which exactly this thing is entered, or None."""
        return next((name for name, entered in self.items() if entered is value), None)

    def describe(self, argument: str, value: Any) -> dict[str, Any]:
        """Return name and settings of what a class of this table made, for files; settings may be such things too."""
        name = self.name_of(type(value))
        if name is None or not is_dataclass(value):
            raise InvalidInputError(
                f"`{argument}` must be one of {', '.join(self)} to be saved; got {type(value).__name__}"
            )
        settings = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        return {
            "name": name,
            "settings": {
                key: self.describe(argument, setting) if self.name_of(type(setting)) else setting
                for key, setting in settings.items()
            },
        }

    def rebuild(self, argument: str, described: Mapping[str, Any]) -> Any:
        """Make what was described; the class refuses settings that cannot be."""
        settings = {
            key: self.rebuild(argument, setting) if isinstance(setting, dict) and "settings" in setting else setting
            for key, setting in described["settings"].items()
        }
        made: Any = choose(argument, described["name"], self)
        return made(**settings)


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
