"""What predictions need to become tables, and rows found by what their nodes are called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from napsets.checks.arguments import as_column
from napsets.checks.frames import find_rows
from napsets.errors import MissingDependencyError

if TYPE_CHECKING:
    from napsets.predictions.prediction import Prediction

__all__ = ["ByName", "imported", "pyarrow"]

Rows = TypeVar("Rows", bound="Prediction")


class ByName(Generic[Rows]):
    """The rows of a prediction by what their nodes are called: ``sets.loc[17]``, ``sets.loc[["ann", "bob"]]``."""

    def __init__(self, prediction: Rows) -> None:
        self._prediction = prediction

    def __repr__(self) -> str:
        return f"rows of {self._prediction!r} by the ids of their nodes"

    def __getitem__(self, names: Any) -> Any:
        wanted = as_column("names", names)
        rows = find_rows(self._prediction.row_names, wanted.reshape(-1))
        if rows.min(initial=0) < 0:
            name = wanted.reshape(-1)[rows < 0][0]
            raise KeyError(f"{name.item() if isinstance(name, np.generic) else name!r}: no row is of that node")
        return self._prediction.one(int(rows[0])) if wanted.ndim == 0 else self._prediction[rows]


def imported(module: str, extra: str) -> Any:
    """Return a module that is optional, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(module, extra) from error


def pyarrow() -> Any:
    """Return PyArrow, or say which extra brings it."""
    return imported("pyarrow", "cli")
