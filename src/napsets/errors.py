"""Everything napsets raises on purpose, in one small tree; and optional packages, imported where they are used.

::

    NapsetsError
    ├── InvalidInputError       also a ValueError: an argument has the wrong value
    │   └── FileFormatError     a file is truncated, or not of the kind it should be
    ├── NotCalibratedError      also a RuntimeError: predict() before calibrate()
    └── MissingDependencyError  also an ImportError: an extra is not installed

    NapsetsWarning              a UserWarning: legal, but probably not what was meant

Errors and warnings have a `topic`: the section of the guide that is about them, which ``napsets errors TOPIC`` prints.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from typing import Any

#: The arguments that a topic of the guide is about; what no topic names is a setting.
_ARGUMENTS = {
    "probabilities": "probabilities score_matrix u model",
    "labels": "labels labels_are class_names",
    "numbers": "outputs targets target lower upper",
    "calibration": "calibration calibration_mask reference apart level",
    "nodes": "nodes node ids original_ids per",
    "graph": "graph edge_index edges adjacency indptr indices data weight lengths strengths directed num_nodes",
    "alpha": "alpha alphas",
    "groups": "by groups grouping partition",
    "features": "features",
    "files": "path root output columns separator format sets like checkpoint",
}
_TOPICS = {argument: topic for topic, arguments in _ARGUMENTS.items() for argument in arguments.split()}
#: Words by which a warning is known, and the topic that is about it.
_WARNINGS = {
    "calibration nodes": "calibration-nodes",
    "fewer than": "small-groups",
    "in no group": "small-groups",
    "taken for node ids": "mask-or-ids",
    "look like probabilities": "mask-or-ids",
    "compiled kernels": "kernel-cache",
}


class NapsetsError(Exception):
    """Base of all errors that napsets raises on purpose."""

    @property
    def topic(self) -> str:
        """The section of the guide that is about this error."""
        return "settings"


class InvalidInputError(NapsetsError, ValueError):
    """An argument has a value that it cannot have; the message names argument, expectation and value."""

    @property
    def topic(self) -> str:
        """The section of the guide about the argument that the message names first."""
        named = re.search(r"`(\w+)", str(self))
        return _TOPICS.get(named[1], "settings") if named else "settings"


class FileFormatError(InvalidInputError):
    """A file is missing a part, is truncated, or is of another kind than expected."""

    topic = "files"  # whatever it holds


class NotCalibratedError(NapsetsError, RuntimeError):
    """A predictor was used before it was calibrated."""

    topic = "not-calibrated"


class MissingDependencyError(NapsetsError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""

    topic = "missing-extra"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}; install it with: pip install 'napsets[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class NapsetsWarning(UserWarning):
    """Valid input that is probably not what was meant."""

    @property
    def topic(self) -> str:
        """The section of the guide that is about this warning."""
        message = str(self)
        return next((topic for words, topic in _WARNINGS.items() if words in message), "other-warnings")


def warn(message: str) -> None:
    """Give a `NapsetsWarning` that names the line of the user: the first one outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "napsets":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, NapsetsWarning, stacklevel=level)


def imported(module: str, extra: str, package: str | None = None) -> Any:
    """Return an optional module, or say which extra installs it, and the package if its name differs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(package or module, extra) from error


def arrow() -> Any:
    """Return PyArrow with the parts that files need, or say which extra installs it."""
    for part in ("compute", "csv", "parquet"):
        imported(f"pyarrow.{part}", "cli", "pyarrow")
    return imported("pyarrow", "cli")
