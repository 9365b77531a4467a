"""Tables of named objects, and the choice from one, with a suggestion if the name is nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from napsets.checks.values import shown
from napsets.errors import InvalidInputError

Value = TypeVar("Value")
Named = TypeVar("Named")


class Registry(dict[str, Value]):
    """Objects by the names that settings, files and the command line use.

    Parameters
    ----------
    title : str
        What the table is called in Python, for messages.

    Examples
    --------
    >>> DECAYS = Registry("DECAYS")
    >>> @DECAYS.add("none")
    ... def none(k):
    ...     return 0.0
    >>> list(DECAYS)
    ['none']
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        #: What to say of a name that belongs elsewhere; None where nothing is to be said.
        self.elsewhere: Callable[[str], str | None] = lambda name: None

    def add(self, name: str) -> Callable[[Named], Named]:
        """Return a decorator that registers what it decorates; a name that is in use is refused."""

        def enter(value: Named) -> Named:
            entered = self.get(name, value)
            if _definition(entered) != _definition(value):
                raise InvalidInputError(
                    f"`name` must be new to {self.title}; {name!r} is {'.'.join(_definition(entered))} there. Use "
                    f"another name, or remove it first: del {self.title}[{name!r}]"
                )
            self[name] = value  # type: ignore[assignment]
            return value

        return enter

    def name_of(self, value: object) -> str | None:
        """Return the name under which this object is registered, or None."""
        return next((name for name, entered in self.items() if entered is value), None)

    def describe(self, argument: str, value: Any) -> dict[str, Any]:
        """Return name and settings of an object whose class is in this table, for files; settings may be such too.

        A setting that is an array (field metadata ``array``) is left out, for `rebuild` to be given again.
        """
        name = self.name_of(type(value))
        if name is None or not is_dataclass(value):
            raise InvalidInputError(
                f"`{argument}` must be one of {', '.join(self)} to be saved; got {type(value).__name__}. To save a "
                f"class of your own, make it a frozen dataclass and enter it in the table of these names: "
                f"@{self.title}.add('a name')"
            )
        for field in fields(value):
            if field.metadata.get("array") and callable(getattr(value, field.name)):
                raise InvalidInputError(
                    f"`{field.name}` must be a matrix to be saved; {type(value).__name__} has a function, which cannot "
                    f"be written"
                )
        kept = [field.name for field in fields(value) if field.init and not field.metadata.get("array")]
        settings = {name: getattr(value, name) for name in kept}
        for key, setting in settings.items():
            if self.name_of(type(setting)) is not None:
                settings[key] = self.describe(argument, setting)
            elif not _is_plain(setting):
                raise InvalidInputError(
                    f"`{key}` must be a number, a text, or a tuple of them to be saved; {type(value).__name__} has a "
                    f"{type(setting).__name__}"
                )
        return {"name": name, "settings": settings}

    def rebuild(self, argument: str, described: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> Any:
        """Make what was described, with its settings that are `arrays`; the class refuses settings that cannot be."""
        settings = dict(described["settings"])
        for key, setting in settings.items():
            if isinstance(setting, dict) and "settings" in setting:
                settings[key] = self.rebuild(argument, setting)
            elif isinstance(setting, list):  # JSON has no tuples, and a frozen class no lists
                settings[key] = tuple(setting)
        kind: Any = choose(
            argument, described["name"], self, way=f"If it is of your own, import what enters it in {self.title} first."
        )
        missing = [field.name for field in fields(kind) if field.metadata.get("array")] if is_dataclass(kind) else []
        return kind(**settings, **{name: (arrays or {}).get(name) for name in missing})


def _definition(value: object) -> tuple[str, str]:
    """Return where a class or a function is defined: a cell of a notebook that is run again defines the same one."""
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))


def _is_plain(setting: object) -> bool:
    """Return whether JSON can hold a setting."""
    if isinstance(setting, list | tuple):
        return all(_is_plain(part) for part in setting)
    return setting is None or isinstance(setting, str | int | float | np.generic)


def choose(argument: str, name: object, options: Mapping[str, Value], *, way: str = "") -> Value:
    """Return ``options[name]``, or an error that lists the names and suggests the nearest, or else the `way` out.

    Examples
    --------
    >>> choose("decay", "uniform", {"uniform": 1})
    1
    """
    if isinstance(name, str) and name in options:
        return options[name]
    elsewhere = options.elsewhere(name) if isinstance(options, Registry) and isinstance(name, str) else None
    if elsewhere is not None:
        raise InvalidInputError(f"`{argument}` must be one of {', '.join(options)}; {elsewhere}")
    near = difflib.get_close_matches(shown(name).strip("'").lower(), options, n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else way and f". {way}"
    raise InvalidInputError(f"`{argument}` must be one of {', '.join(options)}; got {shown(name)}{hint}")
