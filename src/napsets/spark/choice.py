"""Which plan suits: the graph on every worker, or joins.

Where the graph and what is known of its nodes fit into the memory of the smallest machine, and all machines see one
folder, the first is faster by far. Beyond that, joins move what is needed to where it is needed.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from napsets.checks.names import choose
from napsets.errors import InvalidInputError
from napsets.graph import Direction
from napsets.spark.graph_plan import GRAPH_PLAN, looks_around
from napsets.spark.numbering import MOST_NODES

__all__ = ["JOINS", "PLANS", "Chosen", "Plan", "Size", "choose_plan", "mapped_bytes"]

Plan = Literal["auto", "graph-on-every-worker", "joins"]
JOINS = "joins"
PLANS = {"auto": 1, GRAPH_PLAN: 1, JOINS: 1}

#: The share of a machine's memory that the mapped arrays may take; the rest is Spark's and the searches'.
_SHARE = 0.6


@dataclass(frozen=True)
class Chosen:
    """A plan, and why it is taken."""

    plan: str
    reason: str

    def __str__(self) -> str:
        return f"plan {self.plan}: {self.reason}"


@dataclass(frozen=True)
class Size:
    """How large the input is.

    Attributes
    ----------
    nodes, edges : int
        Rows of the tables of probabilities and of edges.
    classes, width : int
        Entries of a row of probabilities, and bytes of each.
    directed : bool
        Whether an edge is stored once.
    direction : {"out", "in", "both"}
        Along which direction of edges hops lead.
    """

    nodes: int
    edges: int
    classes: int
    width: int
    directed: bool
    direction: Direction = "out"


def mapped_bytes(size: Size, *, evidence: bool = False) -> int:
    """Return what the arrays take that each machine maps; with evidence, what the calibrating one holds on top.

    8 bytes a stored edge (an undirected edge is stored twice): the graph, and the same by number; where hops lead
    against directed edges 4 more an edge, where they lead both ways 16. 100 bytes and a row of probabilities a node.
    Methods that weigh the labels around a node, or spread scores, hold 64 bytes a node and
    class more while they are calibrated.
    """
    stored = size.edges * (1 if size.directed else 2)
    turned = size.edges * {"out": 0, "in": 1, "both": 4}[size.direction] if size.directed else 0
    return 8 * stored + 4 * turned + size.nodes * (100 + size.classes * (size.width + 64 * evidence))


def choose_plan(
    spark: SparkSession,
    asked: str,
    method: Any,
    size: Size,
    *,
    folder: str | None,
    joins: bool,
    capped: bool,
    memory: int | None = None,
) -> Chosen:
    """Return the plan that was asked for, or the one that suits; refuse what cannot be.

    Parameters
    ----------
    spark : SparkSession
        Asked for the memory of its machines.
    asked : {"auto", "graph-on-every-worker", "joins"}
        What the user said.
    method : Method or Choosing
        What makes the sets.
    size : Size
        How large the input is.
    folder : str or None
        Where arrays would go, a path; None where the place to write is no path of this machine.
    joins : bool
        Whether joins know the method.
    capped : bool
        Whether neighbourhoods are to be cut, which only joins do.
    memory : int, optional
        Bytes of the smallest machine; by default they are asked.
    """
    choose("plan", asked, PLANS)
    only = None if joins else "the method looks at other nodes' probabilities or labels, which joins do not know"
    if asked == JOINS:
        if only is not None:
            raise InvalidInputError(f"`plan` must be auto or {GRAPH_PLAN}; {only}")
        return Chosen(JOINS, "asked for")
    against = _against(spark, method, size, folder, capped, memory, forced=asked == GRAPH_PLAN)
    if asked == GRAPH_PLAN or only is not None:
        if against is not None:
            way = "Take joins, or another folder." if joins else f"This plan is needed: {only}."
            raise InvalidInputError(f"`plan` cannot be {GRAPH_PLAN}: {against}. {way}")
        return Chosen(GRAPH_PLAN, "asked for" if asked == GRAPH_PLAN else only or "")
    if against is not None:
        return Chosen(JOINS, against)
    return Chosen(GRAPH_PLAN, f"{_shown(mapped_bytes(size))} of arrays fit into the memory of each machine")


def _against(
    spark: SparkSession, method: Any, size: Size, folder: str | None, capped: bool, memory: int | None, *, forced: bool
) -> str | None:
    """Return what speaks against the graph on every worker, None where nothing does."""
    if capped:
        return "`max_neighbourhood` cuts joins only"
    if folder is None:
        return "arrays need a folder that all machines see, and the place to write is an address"
    if size.nodes > MOST_NODES:
        return f"{size.nodes:,} nodes are more than {MOST_NODES:,}"
    machines = _machines(spark, folder)
    blind = sorted({name for name, _, sees in machines if not sees})
    if blind:
        return f"the folder {folder} must be seen by all machines, and {blind[0]} does not see it"
    needed = mapped_bytes(size, evidence=looks_around(method))
    smallest = min(bytes_ for _, bytes_, _ in machines) if memory is None else memory
    if needed > _SHARE * smallest and not forced:
        return (
            f"{_shown(needed)} of arrays would be more than {_SHARE:.0%} of the {_shown(smallest)} of the smallest "
            f"machine"
        )
    return None


def _machines(spark: SparkSession, folder: str) -> list[tuple[str, int, bool]]:
    """Return name, memory and whether it sees a file just written, of the machines that tasks run on."""
    os.makedirs(folder, exist_ok=True)
    token = Path(folder) / f".seen-{uuid.uuid4().hex[:8]}"
    token.touch()
    try:
        context = spark.sparkContext
        tasks = 2 * max(1, context.defaultParallelism)
        return context.parallelize(range(tasks), tasks).map(partial(_machine, token=str(token))).collect()
    finally:
        token.unlink()


def _machine(_: int, token: str) -> tuple[str, int, bool]:
    return socket.gethostname(), memory_of_machine(), os.path.exists(token)


def memory_of_machine() -> int:
    """Return the bytes of memory that this machine has, or this container may use."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)


def _shown(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
