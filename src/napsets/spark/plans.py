"""Which plan suits, the graph on every worker or joins; which methods joins can run; and a name for a call.

Where the graph and what is known of its nodes fit into the memory of the smallest machine, the first is faster by far.
Beyond that, joins move what is needed to where it is needed.

The same call after a lost driver finds what was written by the fingerprint of what was asked for, which is the same for
the same tables and settings in any order of rows. One job reads each table once, and sums it up as the number of its
rows and the sum of their hashes.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets import __version__
from napsets.checks.text import percent
from napsets.errors import InvalidInputError, warn
from napsets.graph import Direction
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.localisers.hops import hop_weights
from napsets.methods.method import Method
from napsets.predictions import PredictionIntervals
from napsets.scores import RowScore, learns, prediction_type
from napsets.spark.arrays import Route, is_local
from napsets.spark.numbering import MOST_NODES
from napsets.spark.tables import named

Plan = Literal["auto", "graph-on-every-worker", "joins"]
GRAPH_PLAN = "graph-on-every-worker"
JOINS = "joins"

#: The share of a machine's memory that the mapped arrays may take; the rest is Spark's and the searches'.
_SHARE = 0.6


#: Bytes of tables that the driver gathers itself, though tasks could: to start those takes as long.
_GATHERED = 1 << 26

#: Bytes of an id that is text, more or less.
_TEXT = 40

#: What joins cost at two hops for every unlabelled node, as measured in `benchmarks/results/spark_growth.md`.
_COST = "10⁷ edges took them 272 s on two cores, and one machine without Spark 16.6 s (docs/scale.md)"


@dataclass(frozen=True)
class PlanChoice:
    """A plan, why it is taken, and of the graph on every worker which way."""

    plan: str
    reason: str
    route: Route = field(default_factory=Route)

    def __str__(self) -> str:
        return f"plan {self.plan}: {self.reason}"


@dataclass(frozen=True)
class Size:
    """How large the input is: rows of its tables, and what a row takes."""

    nodes: int
    edges: int
    classes: int
    width: int  # bytes of a probability
    directed: bool
    direction: Direction = "out"
    text_ids: bool = False

    @property
    def tables(self) -> tuple[int, int]:
        """Bytes of the tables of probabilities and of edges, more or less."""
        id_ = _TEXT if self.text_ids else 8
        return self.nodes * (id_ + 4 + self.classes * self.width), self.edges * 2 * id_


def mapped_bytes(size: Size, *, evidence: bool = False) -> int:
    """Return what the arrays take that each machine maps; with evidence, what the calibrating one holds on top.

    8 bytes per stored edge (an undirected edge is stored twice): the graph, and the same by number; where hops lead
    against directed edges 4 more per edge, where they lead both ways 16. 100 bytes and a row of probabilities per node.
    Methods that weigh the labels around a node, or spread scores, hold 64 bytes per node and
    class more while they are calibrated.
    """
    stored = size.edges * (1 if size.directed else 2)
    turned = size.edges * {"out": 0, "in": 1, "both": 4}[size.direction] if size.directed else 0
    return 8 * stored + 4 * turned + size.nodes * (100 + size.classes * (size.width + 64 * evidence))


def choose_plan(
    spark: SparkSession, plan: str, method: Any, size: Size, *, folder: str | None, capped: bool
) -> PlanChoice:
    """Return the plan of the user's choice, or with "auto" the one that suits; refuse what cannot be.

    Arrays would go to `folder`; None where there is none that this machine knows. Only joins cut neighbourhoods
    (`capped`).
    """
    joins = joins_know(method)
    only = "" if joins else "the method looks at other nodes' probabilities or labels, which joins do not know"
    if plan == JOINS:
        if only:
            raise InvalidInputError(f"`plan` must be auto or {GRAPH_PLAN}; {only}")
        return _joins("they were asked for")
    forced = plan == GRAPH_PLAN
    route, against = _route(spark, size, folder, capped=capped, ordered=not joins, forced=forced)
    if against is None:
        fits = f"{_shown(mapped_bytes(size))} of arrays fit into the memory of each machine"
        return PlanChoice(GRAPH_PLAN, "asked for" if forced else only or fits, route)
    if forced or only:
        way = f"This plan is needed: {only}." if only else "Take joins."
        raise InvalidInputError(f"`plan` cannot be {GRAPH_PLAN}: {against}. {way}")
    return _joins(against)


def _joins(reason: str) -> PlanChoice:
    warn(f"joins are the slow plan: {_COST}. They are taken because {reason}")
    return PlanChoice(JOINS, reason)


def _route(
    spark: SparkSession, size: Size, folder: str | None, *, capped: bool, ordered: bool, forced: bool
) -> tuple[Route, str | None]:
    """Return how arrays reach the workers, and a reason against it, or None."""
    if capped:
        return Route(), "`max_neighbourhood` cuts joins only"
    if size.nodes > MOST_NODES:
        return Route(), f"{size.nodes:,} nodes are more than {MOST_NODES:,}"
    here = Machine(socket.gethostname(), memory_of_machine(), sees=True)
    machines = [here] if is_local(spark) else _machines(spark, folder)
    carried = not all(machine.sees for machine in machines)
    most = _largest_result(spark)
    rows, edges = size.tables
    route = Route(
        here=carried or rows + edges <= min(_GATHERED, most),
        carried=carried,
        temporary=carried or folder is None,
        pieces=-(-max(rows, edges) // most) if carried else 1,
    )
    if carried and ordered and rows > most:
        return route, (
            f"the method needs rows in their order, and {_shown(rows)} of them cannot come to the driver, whose "
            f"spark.driver.maxResultSize is {_shown(2 * most)}; raise it, or name a `checkpoint_dir` that all machines "
            f"see"
        )
    # Each executor has its own copy of what Spark carries; other files a machine holds once.
    copies = Counter(machine.name for machine in set(machines)) if carried else {}
    needed = mapped_bytes(size, evidence=ordered)
    smallest = min(machine.memory // copies.get(machine.name, 1) for machine in machines)
    if needed > _SHARE * smallest and not forced:
        return route, (
            f"{_shown(needed)} of arrays would be more than {percent(_SHARE, 0)} of the {_shown(smallest)} of the "
            f"smallest machine"
        )
    return route, None


def _largest_result(spark: SparkSession) -> int:
    """Return how many bytes a table may have that comes to the driver: half of what Spark lets through."""
    text = spark.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    context: Any = spark.sparkContext
    return int(context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text)) // 2 or sys.maxsize


class Machine(NamedTuple):
    """One that tasks run on: its memory, whether it sees a file just written, and where an executor has its files."""

    name: str
    memory: int
    sees: bool
    files: str = ""


def _machines(spark: SparkSession, folder: str | None) -> list[Machine]:
    """Ask the machines that tasks run on."""
    token = None if folder is None else Path(folder) / f".seen-{uuid.uuid4().hex[:8]}"
    if token is not None:
        token.parent.mkdir(parents=True, exist_ok=True)
        token.touch()
    try:
        context = spark.sparkContext
        tasks = 2 * max(1, context.defaultParallelism)
        return context.parallelize(range(tasks), tasks).map(partial(_machine, token=token)).collect()
    finally:
        if token is not None:
            token.unlink()


def _machine(_: int, token: Path | None) -> Machine:
    sees = token is not None and token.exists()
    return Machine(socket.gethostname(), memory_of_machine(), sees, SparkFiles.getRootDirectory())


def memory_of_machine() -> int:
    """Return the bytes of memory that this machine has, or this container may use."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _shown(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


# -- the content of tables, and a name for a call ------------------------------------------------------------------

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


def contents_of(tables: Mapping[str, DataFrame | None], *, hashed: bool = True) -> dict[str, Content | None]:
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


# -- methods ---------------------------------------------------------------------------------------------------------


def check_method(method: Any) -> Any:
    """Return a method that Spark can run: anything that is calibrated with `fit`."""
    if not callable(getattr(method, "fit", None)):
        raise InvalidInputError(f"`method` must be a Method, or the name of one; got {type(method).__name__}")
    if prediction_type(getattr(method, "score", None)) is PredictionIntervals:
        raise InvalidInputError(
            "`score` must be one of labels on Spark; intervals of numbers are made on one machine, in Python or with "
            "--engine local"
        )
    return method


def joins_know(method: Any) -> bool:
    """Return whether joins can run a method: a score of single rows, one threshold or hops, a nominal or exact level.

    Such a method depends on no other node's probabilities, and not on the order of nodes. Others take sums over
    neighbours or labelled nodes in the order of their numbers, on which a last digit may depend.
    """
    if type(method) is not Method:
        return False
    score = method.score
    rows = isinstance(score, RowScore) or all(callable(getattr(score, part, None)) for part in ("matrix", "at"))
    usual = Method(score, method.localiser, method.level, method.seed, method.allow_empty)
    if learns(score) or not rows or method != usual:  # a field beyond these is set
        return False
    return type(method.localiser) in (Everyone, Hops) and type(method.level) in (Nominal, Exact)
