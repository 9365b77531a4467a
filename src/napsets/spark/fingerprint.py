"""A name for what was asked for: the same tables and settings have the same one, in any order of rows.

Each table is read once and summed up as the number of its rows and the sum of their hashes. Nothing is shuffled.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from napsets.localisers import Hops
from napsets.localisers.decay import hop_weights
from napsets.spark.tables import named
from napsets.version import __version__

__all__ = ["Content", "content", "of"]

#: Bits of a hash that are summed together.
_PIECE = (1 << 24) - 1

#: A function as a decay is known by what it gives at up to so many hops.
_HOPS = 64


@dataclass(frozen=True)
class Content:
    """What is known of a table that was read once: its columns, its rows, and a sum over them."""

    schema: str
    rows: int
    totals: tuple[int, ...]


def content(table: DataFrame) -> Content:
    """Read a table once."""
    columns = [named(column) for column in table.columns]
    # Sums, because they do not depend on the order; of a hash in three pieces, because those of 2³⁹ rows do not
    # overflow, and plain integers are added faster than decimals.
    hashed = sf.xxhash64(*columns)
    pieces = (sf.shiftrightunsigned(hashed, shift).bitwiseAND(sf.lit(_PIECE)) for shift in (0, 24, 48))
    rows, *totals = table.agg(sf.count(sf.lit(1)), *(sf.sum(piece) for piece in pieces)).first() or (0, 0, 0, 0)
    return Content(table.schema.simpleString(), int(rows or 0), tuple(int(total or 0) for total in totals))


def of(tables: Mapping[str, Content | None], settings: Mapping[str, Any]) -> str:
    """Return sixteen hexadecimal digits that change with any row, column or setting.

    What is of somebody else's making, such as a score, gets a fingerprint of its own each time, because its name may
    not tell all that it depends on.
    """
    told = [__version__]
    told += [f"{name}: {_setting(value)}" for name, value in settings.items()]
    told += [f"{name}: {table}" for name, table in tables.items()]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _setting(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_setting(item) for item in value)}]"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, Hops) and callable(value.decay):
        if value.hops > _HOPS:
            return uuid.uuid4().hex
        weights = hop_weights(value.decay, value.hops)
        return f"Hops({value.hops}, {_setting(weights)}, {value.pool}, {value.alike}, {value.direction})"
    if is_dataclass(value) and type(value).__module__.startswith("napsets."):
        told = (f"{field.name}={_setting(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(told)})"
    return uuid.uuid4().hex
