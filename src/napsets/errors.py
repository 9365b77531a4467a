"""Everything napsets raises on purpose, in one small tree.

::

    NapsetsError
    ├── InvalidInputError       also a ValueError: an argument has the wrong value
    │   └── FileFormatError     a file is truncated, or not of the kind it should be
    ├── NotCalibratedError      also a RuntimeError: predict() before calibrate()
    └── MissingDependencyError  also an ImportError: an extra is not installed

    NapsetsWarning              a UserWarning: legal, but probably not what was meant
"""

from __future__ import annotations

__all__ = [
    "FileFormatError",
    "InvalidInputError",
    "MissingDependencyError",
    "NapsetsError",
    "NapsetsWarning",
    "NotCalibratedError",
]


class NapsetsError(Exception):
    """Base of all errors that napsets raises on purpose."""


class InvalidInputError(NapsetsError, ValueError):
    """An argument has a value that it cannot have; the message names argument, expectation and value."""


class FileFormatError(InvalidInputError):
    """A file is missing a part, is truncated, or is of another kind than expected."""


class NotCalibratedError(NapsetsError, RuntimeError):
    """A predictor was asked to predict before it was calibrated."""


class MissingDependencyError(NapsetsError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}; install it with: pip install 'napsets[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class NapsetsWarning(UserWarning):
    """Something legal that is probably not what was meant."""
