"""Targets in batches, each finished and written before the next begins, under a name for the call.

A lost executor takes its shuffle files with it, and Spark recomputes what they came from. Here that is never more than
the batch under way: the adjacency, the scores and the thresholds of finished batches lie in Parquet. A lost driver
costs no more: the same call finds them again, by the fingerprint of what was asked for, which is the same for the same
tables and settings in any order of rows. One job reads each table once, and sums it up as the number of its rows and
the sum of their hashes.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.errors import warn
from napsets.localisers import Hops
from napsets.localisers.neighbourhoods import hop_weights
from napsets.spark.session import file_system, hadoop_path, literally, plain_errors
from napsets.spark.tables import named
from napsets.spark.walk import Walker
from napsets.version import __version__

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

#: Pairs that one task of a batch should make: enough to outweigh its start, little enough to lose.
PAIRS_PER_TASK = 4_000_000

#: Targets whose cost is measured to estimate that of all.
_SAMPLE = 400


class Checkpoints:
    """A directory of Parquet that belongs to one input and one way of asking.

    It is in a place that outlives executors: a distributed file system, or a local folder where all runs on one
    machine. The same fingerprint (see `fingerprint_of`) finds the same tables again.
    """

    def __init__(self, spark: SparkSession, directory: str, fingerprint: str) -> None:
        self.spark = spark
        self.path = f"{directory.rstrip('/')}/napsets-{fingerprint}"

    def write(self, table: DataFrame, name: str) -> DataFrame:
        """Write a table unless it is there whole, and return it as read from there: its history ends here."""
        path = f"{self.path}/{name}"
        if not self.has(name):
            with plain_errors():
                table.write.mode("overwrite").parquet(path)
        return self.spark.read.schema(table.schema).parquet(literally(path))

    def has(self, name: str) -> bool:
        """Tell whether a table was written to its end: Spark's own mark stands in its folder then."""
        mark = hadoop_path(self.spark, f"{self.path}/{name}/_SUCCESS")
        return bool(file_system(self.spark, mark).exists(mark))

    def row(self, name: str, schema: str, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return a row that was written before, or make it and write it."""
        if not self.has(name):
            self.write(self.spark.createDataFrame([make()], schema).coalesce(1), name)
        row = self.spark.read.schema(schema).parquet(literally(f"{self.path}/{name}")).first()
        assert row is not None
        return tuple(row)


def sampled_cost(walker: Walker, targets: DataFrame, count: int, last_share: float) -> float:
    """Return how many pairs the walk from a target makes: the mean over a sample, plus two standard errors."""
    share = min(1.0, _SAMPLE / count) if count else 1.0
    sample = targets.where(_shuffled(targets, "sample") < share)
    pairs = walker.followed(sample, last_share)
    row = pairs.agg(sf.sum("edges"), sf.sum(sf.col("edges") * sf.col("edges")), sf.count(sf.lit(1))).first()
    total, squares, met = (float(value or 0.0) for value in (row or (0.0, 0.0, 0.0)))
    size = max(met, share * count, 1.0)  # targets without an edge are not in the table, and cost nothing
    mean = total / size
    return mean + 2.0 * math.sqrt(max(squares / size - mean**2, 0.0) / size)


def stored_edges(walker: Walker) -> tuple[int, float]:
    """Return the number of stored edges, and the share of them that leads to a calibration node."""
    stored, known = (
        int(row[0] or 0) if row else 0
        for row in (
            walker.adjacency.degrees.agg(sf.sum("degree")).first(),
            walker.adjacency.last.agg(sf.sum(sf.size("entries"))).first(),
        )
    )
    return stored, known / max(stored, 1)


def batch_count(count: int, cost: float, stored: int, tasks: int, batch_size: int | None) -> int:
    """Return into how many batches `count` targets are put, of which each makes `cost` pairs.

    A batch shuffles the adjacency whatever its size, so that it should make at least as many pairs as there are
    stored edges: then the adjacency is not the larger part of what is shuffled.
    """
    if batch_size is not None:
        return max(1, -(-count // batch_size))
    return max(1, math.ceil(count * cost / max(PAIRS_PER_TASK * tasks, stored)))


def in_batches(
    targets: DataFrame,
    work: Callable[[DataFrame], DataFrame],
    batches: int,
    checkpoints: Checkpoints,
    progress: Progress | None,
    name: str = "batch",
) -> DataFrame:
    """Do `work` on the targets batch by batch; return all that was written, as one table."""
    place = sf.floor(_shuffled(targets, "batch") * batches).cast("int")
    paths = []
    for i in range(batches):
        done = checkpoints.write(work(targets.where(place == i)), f"{name}-{i:05d}")
        paths.append(literally(f"{checkpoints.path}/{name}-{i:05d}"))
        if progress is not None:
            progress(i + 1, batches)
    return checkpoints.spark.read.schema(done.schema).parquet(*paths)


def report_caps(table: DataFrame, count: int, cap: int) -> None:
    """Warn where a cap has cut neighbourhoods, and say how many."""
    row = table.agg(sf.count("capped_at")).first()
    cut = int(row[0]) if row else 0
    if cut:
        warn(
            f"`max_neighbourhood` = {cap} has cut the neighbourhoods of {cut} of {count} nodes; the column capped_at "
            f"says which"
        )


def _shuffled(targets: DataFrame, purpose: str) -> Any:
    """Return a number in [0, 1) for each target that has nothing to do with where Spark puts it."""
    return sf.shiftrightunsigned(sf.xxhash64(sf.lit(purpose), targets["node"]), 11) * sf.lit(2.0**-53)


# -- a name for a call -------------------------------------------------------------------------------------------------

#: Bits of a hash that are summed together.
_PIECE = (1 << 24) - 1

#: A function as a decay is known by what it gives at up to this many hops.
_HOPS = 64


@dataclass(frozen=True)
class Content:
    """What is known of a table that was read once: its columns, its rows, and a sum over them."""

    schema: str
    rows: int
    totals: tuple[int, ...]


def contents(tables: Mapping[str, DataFrame | None], *, hashed: bool = True) -> dict[str, Content | None]:
    """Read some tables once, all in one job; without hashes, only to count their rows."""
    counted = [_counted(name, table, hashed=hashed) for name, table in tables.items() if table is not None]
    totals = {name: (int(rows), sums) for name, rows, *sums in reduce(DataFrame.union, counted).collect()}
    return {
        name: None if table is None else Content(table.schema.simpleString(), totals[name][0], tuple(totals[name][1]))
        for name, table in tables.items()
    }


def _counted(name: str, table: DataFrame, *, hashed: bool) -> DataFrame:
    sums = []
    if hashed:
        # Sums, because they do not depend on the order; of a hash in three pieces, because those of 2³⁹ rows do not
        # overflow, and plain integers are added faster than decimals.
        row = sf.xxhash64(*(named(column) for column in table.columns))
        pieces = (sf.shiftrightunsigned(row, shift).bitwiseAND(sf.lit(_PIECE)) for shift in (0, 24, 48))
        sums = [sf.coalesce(sf.sum(piece), sf.lit(0)) for piece in pieces]
    return table.agg(sf.count(sf.lit(1)), *sums).select(sf.lit(name), "*")


def fingerprint_of(tables: Mapping[str, Content | None], settings: Mapping[str, Any]) -> str:
    """Return sixteen hexadecimal digits that change with any row, column or setting.

    Objects from outside the package, such as a user's score, get a new fingerprint each time, because their name may
    not determine all that they depend on.
    """
    lines = [__version__]
    lines += [f"{name}: {_setting(value)}" for name, value in settings.items()]
    lines += [f"{name}: {table}" for name, table in tables.items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


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
        settings = (f"{field.name}={_setting(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(settings)})"
    return uuid.uuid4().hex
