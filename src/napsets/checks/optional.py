"""Optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from napsets.errors import MissingDependencyError


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
