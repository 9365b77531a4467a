"""Packages that not every user has, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from napsets.errors import MissingDependencyError


def imported(module: str, extra: str, package: str | None = None) -> Any:
    """Return a module that is optional, or say which extra brings it, and the package where it has another name."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(package or module, extra) from error


def arrow() -> Any:
    """Return PyArrow with the parts that files need, or say which extra brings it."""
    for part in ("compute", "csv", "parquet"):
        imported(f"pyarrow.{part}", "cli", "pyarrow")
    return imported("pyarrow", "cli")
