"""PyArrow, imported where it is used."""

from __future__ import annotations

from typing import Any

from napsets.errors import MissingDependencyError

__all__ = ["arrow"]


def arrow() -> Any:
    """Import PyArrow with the parts used here, or say which extra brings it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "cli") from error
    return pa
