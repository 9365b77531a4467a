"""Everything napsets raises on purpose, in one small tree; and optional packages, imported where they are used.

::

    NapsetsError
    ├── InvalidInputError       also a ValueError: an argument has the wrong value
    │   └── FileFormatError     a file is truncated, or not of the kind it should be
    ├── NotCalibratedError      also a RuntimeError: predict() before calibrate()
    └── MissingDependencyError  also an ImportError: an extra is not installed

    NapsetsWarning              a UserWarning: legal, but probably not what was meant
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

#: Where a message is read: as an exception of Python, in the terminal, or in an answer of the service.
Surface = Literal["python", "terminal", "http"]


class NapsetsError(Exception):
    """Base of all errors that napsets raises on purpose."""


class InvalidInputError(NapsetsError, ValueError):
    """An argument has a value that it cannot have; the message names argument, expectation and value.

    Parameters
    ----------
    message : str
        The facts, which read the same everywhere.
    helps : mapping, optional
        What helps, in the words of each surface. `str` has those of Python.
    """

    def __init__(self, message: str = "", helps: Mapping[Surface, str] | None = None) -> None:
        self.message, self.helps = message, dict(helps or {})
        super().__init__(self.on("python"))

    def on(self, surface: Surface) -> str:
        """Return the message with what helps in the words of a surface."""
        return f"{self.message} {self.helps.get(surface, '')}".rstrip()


class FileFormatError(InvalidInputError):
    """A file is missing a part, is truncated, or is of another kind than expected."""


class NotCalibratedError(NapsetsError, RuntimeError):
    """A predictor was used before it was calibrated."""


class MissingDependencyError(NapsetsError, ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}; install it with: pip install 'napsets[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class NapsetsWarning(UserWarning):
    """Valid input that is probably not what was meant."""


def warn(message: str) -> None:
    """Issue a `NapsetsWarning` that names the line of the user: the first one outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "napsets":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, NapsetsWarning, stacklevel=level)


def imported(module: str, extra: str, package: str | None = None) -> Any:
    """Import an optional module, or raise an error that names the extra (and the package, if its name differs)."""
    try:
        return sys.modules.get(module) or import_module(module)
    except ImportError as error:
        raise MissingDependencyError(package or module, extra) from error


def arrow() -> Any:
    """Import PyArrow with the modules that files need, or raise an error that names the extra."""
    for part in ("compute", "csv", "dataset", "parquet"):
        imported(f"pyarrow.{part}", "cli", "pyarrow")
    return imported("pyarrow", "cli")
