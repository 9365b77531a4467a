"""Checks of single values (numbers, flags, names, settings), and registries of named objects.

As in `arguments`, each function takes the argument's name first, because the message begins with it.
"""

from __future__ import annotations

import copy
import difflib
import math
import operator
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from time import monotonic
from typing import Any, SupportsIndex, TypeVar, cast

import numpy as np
import numpy.typing as npt

from napsets.errors import InvalidInputError
from napsets.kernels.threads import MOST_THREADS, Progress, available_threads

Kind = TypeVar("Kind")
Value = TypeVar("Value")
Named = TypeVar("Named")

#: Plain values by name, as JSON holds them: descriptions, rows of tables, settings that are collected.
Record = dict[str, Any]
#: Values by name that are only read: settings, descriptions, figures.
Values = Mapping[str, Any]

#: The largest number of hops: the kernels hold one bit vector per hop.
LARGEST_HOPS = 64

_SHOWN = 80  # characters of a value that a message repeats
_NO_NUMBER = (TypeError, ValueError, OverflowError, RuntimeError)  # what float() raises, of tensors too


def shown(value: object) -> str:
    """Return the repr of a value for a message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"{type(value).__name__} too long to be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def plain(value: Any) -> Any:
    """Convert a 0-d array or a NumPy scalar to a Python scalar; return anything else unchanged."""
    return value.item() if isinstance(value, np.ndarray | np.generic) else value


def is_sequence(value: object) -> bool:
    """Whether a value is a list or an array of values, rather than a single one."""
    try:
        return isinstance(value, list | tuple) or np.ndim(cast(Any, value)) > 0
    except (TypeError, ValueError, RuntimeError):  # what looks like a sequence and is not an array
        return False


def in_digits(value: float, decimals: int = 4, *, sign: str = "") -> str:
    """Write a number for people with this many decimals, or with four digits where it is too small or large for that.

    Examples
    --------
    >>> in_digits(0.0512), in_digits(4.8e-9), in_digits(-1.7e300), in_digits(0.0, sign="+")
    ('0.0512', '4.8e-09', '-1.7e+300', '+0.0000')
    """
    plain = value == 0 or 0.5 * 10.0**-decimals < abs(value) < 1e9
    return format(value, f"{sign}.{decimals}f" if plain else f"{sign}.4g")


def number(value: float | None, digits: int = 4) -> str:
    """Write a number for people."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,}" if isinstance(value, int) else in_digits(value, digits)


def _number(name: str, value: object, wanted: str) -> float:
    """Convert to float, or raise an error with the `wanted` kind of value; numeric strings are rejected."""
    try:
        return float(cast(Any, None if isinstance(value, str) else value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`{name}` must be {wanted}; got {shown(value)}") from error


def check_alpha(value: object) -> float:
    """Return an error rate strictly between 0 and 1."""
    alpha = _number("alpha", value, "a number between 0 and 1")
    if not 0.0 < alpha < 1.0:  # NaN fails this too
        raise InvalidInputError(f"`alpha` must lie strictly between 0 and 1; got {alpha:g}")
    return alpha


def check_rates(alpha: object) -> tuple[bool, list[float]]:
    """Check one error rate or several: whether `alpha` is a sequence, and its error rates."""
    if not is_sequence(alpha):
        return False, [check_alpha(alpha)]
    rates = check_list("alpha", alpha, "error rates")
    if not rates:
        raise InvalidInputError("`alpha` must hold at least one error rate; it is empty")
    for rate in rates:
        if is_sequence(rate):
            raise InvalidInputError(f"`alpha` must be a number or a list of numbers; got {shown(rate)} in a list")
    return True, [check_alpha(rate) for rate in rates]


#: Numbers that are predicted: differences, squares and sums of these are finite too.
LARGEST_NUMBER = 1e150


def check_size(name: str, numbers: npt.ArrayLike) -> None:
    """Reject finite numbers that are too large to be squared; NaN and infinities pass."""
    sizes = np.abs(np.asarray(numbers, dtype=np.float64))
    large = np.isfinite(sizes) & (sizes > LARGEST_NUMBER)
    if large.any():
        row = int(np.argwhere(large)[0][0])
        raise InvalidInputError(
            f"`{name}` must be numbers of at most {LARGEST_NUMBER:g} in size; row {row} has {sizes[large][0]:g}. "
            f"Divide all of them by one number."
        )


def check_share(name: str, value: object) -> float:
    """Return a number from 0 to 1."""
    share = _number(name, value, "a number from 0 to 1")
    if not 0.0 <= share <= 1.0:
        raise InvalidInputError(f"`{name}` must lie in [0, 1]; got {share:g}")
    return share


def check_number(name: str, value: object, *, largest: float) -> float:
    """Return a number from 0 to `largest`."""
    number = _number(name, value, "a number")
    if not 0.0 <= number <= largest:  # NaN fails this too
        raise InvalidInputError(f"`{name}` must be finite, at least 0 and at most {largest:g}; got {shown(value)}")
    return number


def check_finite(name: str, value: object) -> float:
    """Return a finite number."""
    number = _number(name, value, "a finite number")
    if not math.isfinite(number):
        raise InvalidInputError(f"`{name}` must be a finite number; got {shown(value)}")
    return number


def check_count(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return an integer of at least `minimum` and at most `maximum`."""
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
    """Return a number of hops, from `minimum` to `LARGEST_HOPS`."""
    return check_count(name, value, minimum=minimum, maximum=LARGEST_HOPS)


def check_seed(value: object) -> int:
    """Return a seed: an integer from 0 to 2⁶⁴−1."""
    try:
        seed = operator.index(cast(SupportsIndex, value))
    except _NO_NUMBER as error:
        raise InvalidInputError(f"`seed` must be an integer; got {shown(value)}") from error
    if not 0 <= seed < 2**64:
        raise InvalidInputError(f"`seed` must be at least 0 and below 2^64; got {shown(seed)}")
    return seed


def check_threads(threads: object) -> int:
    """Return the number of threads to use: `threads`, or ``NAPSETS_THREADS``, or all cores."""
    if threads is not None:
        return check_count("threads", threads, minimum=1, maximum=MOST_THREADS)
    try:
        return available_threads()
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


def check_path(name: str, value: object) -> Path:
    """Return the path of a file, from a string or a path-like object."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise InvalidInputError(f"`{name}` must be the path of a file; got {shown(value)}")
    return Path(text)


def check_flag(name: str, value: object) -> bool:
    """Return True or False; other values are rejected, because 'no' would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"`{name}` must be True or False; got {shown(value)}")
    return bool(value)


def check_kind(name: str, value: object, kind: type[Kind], *, hint: str) -> Kind:
    """Return a value of a class, or raise an error with the type that was passed and a hint how to get one."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"`{name}` must be a {kind.__name__}; got {type(value).__name__}. {hint}")
    return value


def check_list(name: str, value: object, of: str) -> list[Any]:
    """Return the items of a sequence; strings and mappings are rejected."""
    if isinstance(value, str | bytes | Mapping):
        raise InvalidInputError(f"`{name}` must be a list of {of}; got {shown(value)}")
    try:
        return list(cast(Any, value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"`{name}` must be a list of {of}; got {shown(value)}") from error


def check_names(name: str, value: object) -> tuple[str, ...] | None:
    """Return names as a tuple, or None where there are none."""
    return None if value is None else tuple(str(item) for item in check_list(name, value, "names"))


def check_settings(value: object) -> Record:
    """Return settings as a private copy of the dictionary."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"`settings` must be a mapping; got {shown(value)}")
    return copy.deepcopy(dict(value))


# -- progress, as users request it ----------------------------------------------------------------------

#: Seconds between two reports, on a terminal and where lines stay.
_EVERY, _EVERY_LINE = 0.1, 10.0


def check_progress(value: object) -> Progress | None:
    """Return the function that progress is reported to, or None; True stands for a line on standard error."""
    if value is None or value is False:
        return None
    if value is True:
        return _Line()
    if callable(value):
        return value
    raise InvalidInputError(f"`progress` must be True, False or a function of (done, total); got {shown(value)}")


class _Line:
    """Print progress: one updating line on a terminal, an occasional line elsewhere, and one at the end."""

    def __init__(self) -> None:
        self.reported = monotonic()

    def __call__(self, done: int, total: int) -> None:
        now, live = monotonic(), sys.stderr.isatty()
        ended = done >= total
        if not ended and now - self.reported < (_EVERY if live else _EVERY_LINE):
            return
        self.reported = now
        text = f"{done:,} of {total:,} ({100 * done // max(total, 1)} %)"
        print(f"\r{text}" if live else text, end="\n" if ended or not live else "", file=sys.stderr, flush=True)


# -- what has a name ---------------------------------------------------------------------------------------


def choose(argument: str, name: object, options: Mapping[str, Value], *, hint: str = "") -> Value:
    """Return ``options[name]``, or raise an error that lists the names and suggests the nearest, or gives a `hint`."""
    if isinstance(name, str) and name in options:
        return options[name]
    elsewhere = options.elsewhere(name) if isinstance(options, Registry) and isinstance(name, str) else None
    if elsewhere is not None:
        raise InvalidInputError(f"`{argument}` must be one of {', '.join(options)}; {elsewhere}")
    near = difflib.get_close_matches(shown(name).strip("'").lower(), options, n=1, cutoff=0.4)
    end = f" (did you mean {near[0]!r}?)" if near else hint and f". {hint}"
    raise InvalidInputError(f"`{argument}` must be one of {', '.join(options)}; got {shown(name)}{end}")


class Registry(dict[str, Value]):
    """Objects by the names that settings, files and the command line use; messages call the table by its `title`."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        #: Optional hint for a name that belongs to another registry.
        self.elsewhere: Callable[[str], str | None] = lambda name: None

    def add(self, name: str) -> Callable[[Named], Named]:
        """Return a decorator that registers an object; names that are in use are rejected."""

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

    def describe(self, argument: str, value: Any) -> Record:
        """Describe an object whose class is in this table by name and settings, for files; settings may be such, too.

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

    def rebuild(self, argument: str, described: Values, arrays: Values | None = None) -> Any:
        """Make an object from its description and its settings that are `arrays`; its class checks them."""
        settings = dict(described["settings"])
        for key, setting in settings.items():
            if isinstance(setting, dict) and "settings" in setting:
                settings[key] = self.rebuild(argument, setting)
            elif isinstance(setting, list):  # JSON has no tuples, and a frozen class no lists
                settings[key] = tuple(setting)
        kind: Any = choose(
            argument,
            described["name"],
            self,
            hint=f"If it is of your own, import what enters it in {self.title} first.",
        )
        missing = [field.name for field in fields(kind) if field.metadata.get("array")] if is_dataclass(kind) else []
        return kind(**settings, **{name: (arrays or {}).get(name) for name in missing})


def _definition(value: object) -> tuple[str, str]:
    """Return the module and the name of a class or a function: the same if a cell of a notebook is run again."""
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))


def _is_plain(setting: object) -> bool:
    """Whether JSON can hold a setting."""
    if isinstance(setting, list | tuple):
        return all(_is_plain(part) for part in setting)
    return setting is None or isinstance(setting, str | int | float | np.generic)
