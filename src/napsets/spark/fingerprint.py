"""A name for what was asked for: the same tables and settings have the same one, in any order of rows.

Each table is read once and summed up as the number of its rows and the sum of their hashes. Nothing is shuffled.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from napsets.scores import APS, RAPS, SAPS, THR, Score, Sharpened
from napsets.spark.tables import named
from napsets.version import __version__

__all__ = ["of"]


def of(tables: Mapping[str, DataFrame | None], settings: Mapping[str, Any]) -> str:
    """Return sixteen hexadecimal digits that change with any row, column or setting.

    A score of somebody else's making gets a fingerprint of its own each time, because its name may not tell all that
    it depends on.
    """
    told = [__version__]
    told += [f"{name}: {_setting(value)}" for name, value in settings.items()]
    told += [f"{name}: {None if table is None else _content(table)}" for name, table in tables.items()]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _setting(value: Any) -> str:
    score: Any = value
    while type(score) is Sharpened:  # its name tells that of the score underneath
        score = score.base
    known = not isinstance(score, Score) or type(score) in (APS, RAPS, SAPS, THR)
    return repr(value) if known else uuid.uuid4().hex


def _content(table: DataFrame) -> str:
    columns = [named(column) for column in table.columns]
    # A sum, because it does not depend on the order, and of decimals, because those do not overflow.
    row = table.agg(sf.count(sf.lit(1)), sf.sum(sf.xxhash64(*columns).cast("decimal(28, 0)"))).first()
    return f"{table.schema.simpleString()} {row}"
