"""The graph on every worker: nodes go to the graph, not edges to the nodes.

The tables become arrays in a folder that all machines see: ids are numbered, edges become compressed sparse rows,
probabilities a matrix, each by a job whose tasks write their own part. One task calibrates the method. Then the nodes
to predict are cut into shares, and every worker maps the arrays, which a machine holds once, and runs the kernels on
its shares. Nothing comes to the driver but counts, and the calibrated method without its arrays.

Every step is marked when it is done, and every share's sets appear whole under their name: the same call goes on after
a lost executor, a lost driver or a full disk.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.errors import InvalidInputError
from napsets.scores import APS
from napsets.spark import arrow, numbering, shares
from napsets.spark.batches import literally
from napsets.spark.job import Result, sets_columns, with_kinds, with_level
from napsets.spark.mapped import Folder, offsets_of
from napsets.spark.methods import joins_know
from napsets.spark.numbering import NumberedPart, RowsPart
from napsets.spark.session import plain_errors
from napsets.spark.shares import Asked, Calibration
from napsets.spark.tables import Tables

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

__all__ = ["GRAPH_PLAN", "GraphJob", "looks_around"]

GRAPH_PLAN = "graph-on-every-worker"

#: Entries of the graph that one task sorts: a few hundred megabytes while it does.
_ENTRIES_A_PART = 1 << 24
#: Nodes of a share: enough to outweigh what a search needs to start, little enough to lose.
_LARGEST_SHARE, _SMALLEST_SHARE = 1 << 18, 1 << 14
#: Numbers that are put into their place without a task.
_FEW = 1 << 20
#: Shares a core: the last ones to end leave few cores idle, and progress can be told.
_SHARES_A_CORE = 4

Item = TypeVar("Item")
Found = TypeVar("Found")


def looks_around(method: Any) -> bool:
    """Tell whether a method may depend on other nodes' probabilities, and on the order of nodes.

    Sums over neighbours and over labelled nodes are taken in the order of their numbers, so that a last digit may
    depend on it; scores of single rows, thresholds of hops and levels, which is all that joins know, do not.
    """
    return not joins_know(method)


@dataclass(frozen=True, eq=False)
class GraphJob:
    """One call.

    Attributes
    ----------
    spark : SparkSession
        The session.
    tables : Tables
        The input in one shape.
    method : Method or Choosing
        What makes the sets.
    alpha : float
        The error rate.
    directed : bool
        Whether edges go one way.
    labels_are : str
        What a label is.
    store : Folder
        Where arrays, marks and sets go.
    batch_size : int or None
        Nodes of a share.
    progress : callable or None
        Called as ``progress(done, total)`` in shares.
    """

    spark: SparkSession
    tables: Tables
    method: Any
    alpha: float
    directed: bool
    labels_are: str
    store: Folder
    batch_size: int | None = None
    progress: Progress | None = None

    def run(self) -> Result:
        """Do all of it; the sets are written when this returns."""
        os.makedirs(self.store.path, exist_ok=True)
        with plain_errors():
            known = self._numbered()
            self._laid_out()
            labels, targets = self._labelled(known), self._targets(known)
            told = self._predicted(known, labels, targets)
        folder = self.store.file(told["folder"])
        files = tuple(sorted(str(path) for path in Path(folder).glob("part-*.parquet")))
        schema = sets_columns(self.tables)
        # One by one, so that drafts of tasks that were killed are not read.
        read = self.spark.read.schema(schema)
        places = [literally(f"file://{file}") for file in files]
        sets = read.parquet(*places) if places else self.spark.createDataFrame([], schema)
        level = told["level"]
        return Result(with_level(sets, level), level, GRAPH_PLAN, told["choice"], files, told["labelled"])

    # -- steps -----------------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> arrow.Settings:
        """What tasks that read tables need to know."""
        names = self.tables.class_names
        return arrow.Settings(np.empty(0), APS(), self.alpha, 0, True, names, labels_are=self.labels_are)

    @property
    def _cores(self) -> int:
        return max(1, self.spark.sparkContext.defaultParallelism)

    def _each(self, work: Callable[[Item], Found], items: Sequence[Item], *, small: bool = False) -> list[Found]:
        """Do some work on each of the items, a task each; return what they return.

        What is small is done here: to start tasks would take longer.
        """
        if small or not items:
            return [work(item) for item in items]
        return self.spark.sparkContext.parallelize(items, len(items)).map(work).collect()

    def _numbered(self) -> int:
        """Give the nodes numbers and write their edges as pairs of numbers; return how many have probabilities."""
        store, rows = self.store, self.tables.rows
        if looks_around(self.method):
            rows = rows.orderBy(*self.tables.order)
        nodes = store.step("nodes", partial(self._write_nodes, rows.select("node", "probabilities")))
        store.step("arrays", partial(self._fill_nodes, [nodes]))
        edges = store.step("edges", partial(self._write_edges, self.tables.edges))
        if edges["stray"] and store.done("graph") is None:
            stray = self.spark.read.schema(self.tables.edges.schema).parquet(literally(self._stray(edges["folder"])))
            ends = (stray.select(sf.col(name).alias("node")) for name in ("source", "target"))
            strangers = next(ends).union(next(ends)).distinct()
            more = store.step("strangers", partial(self._write_nodes, strangers, but=store))
            store.step("more-arrays", partial(self._fill_nodes, [nodes, more]))
            store.step("more-edges", partial(self._write_edges, stray))
        return int(nodes["rows"])

    def _stray(self, folder: str) -> str:
        return f"file://{self.store.file(folder)}/stray"

    def _write_nodes(self, rows: DataFrame, folder: str, but: Folder | None = None) -> dict[str, Any]:
        work = partial(numbering.write_nodes, folder=self.store.file(folder), settings=self._settings, but=but)
        parts = sorted(tuple(row) for row in rows.mapInArrow(work, numbering.PART_COLUMNS).collect())
        ascending = all(part[3] for part in parts)
        ascending &= all(after[4] > before[5] for before, after in pairwise(parts))
        counts = [[int(value) for value in part[:3]] for part in parts]
        return {"folder": folder, "parts": counts, "ascending": ascending, "rows": sum(part[1] for part in counts)}

    def _fill_nodes(self, steps: list[dict[str, Any]], folder: str) -> dict[str, Any]:
        store, strings = self.store, self.tables.id_type == "string"
        parts = [(step["folder"], *part) for step in steps for part in step["parts"]]
        row, letter = offsets_of([part[2] for part in parts]), offsets_of([part[3] for part in parts])
        if not row[-1]:
            raise InvalidInputError("`probabilities` must have at least one row; it has none")
        if row[-1] > numbering.MOST_NODES:
            raise InvalidInputError(
                f"`plan` must be joins for more than {numbering.MOST_NODES:,} nodes; there are {row[-1]:,}"
            )
        kind = self.tables.rows.schema["probabilities"].dataType.elementType.simpleString()
        store.make("keys", np.int64, (row[-1],))
        store.make("probabilities", np.float32 if kind == "float" else np.float64, (row[-1], self._classes))
        if strings:
            store.make("letters", np.uint8, (letter[-1],))
            store.make("offsets", np.int64, (row[-1] + 1,))
        places = zip(parts, row, letter, strict=False)
        shares_ = [NumberedPart(part[0], part[1], first, start) for part, first, start in places]
        small = row[-1] * self._classes + letter[-1] <= _FEW
        self._each(partial(numbering.fill_nodes, store=store), shares_, small=small)
        if strings or len(steps) > 1 or not steps[0]["ascending"]:
            (same,) = self._each(numbering.sort_keys, [store], small=small)
            if same is not None:
                raise self._twice(same)
        return {}

    @property
    def _classes(self) -> int:
        return len(self.tables.class_names)

    def _twice(self, numbers: tuple[int, int]) -> InvalidInputError:
        one, other = numbering.node_ids(self.store, np.array(numbers)).to_pylist()
        if one != other:
            return InvalidInputError(f"`probabilities` has two ids with one 64-bit hash; rename {one!r} or {other!r}")
        keys = self.store.array("keys")
        count = int((keys == keys[numbers[0]]).sum())
        return InvalidInputError(f"`probabilities` must have one row a node; node {one!s} has {count} rows")

    def _write_edges(self, edges: DataFrame, folder: str) -> dict[str, Any]:
        words = self.store.file(f"{folder}/words")
        os.makedirs(words)
        work = partial(numbering.write_edges, store=self.store, folder=words, directed=self.directed)
        edges.mapInArrow(work, edges.schema).write.parquet(self._stray(folder))
        stray = sum(
            pq.read_metadata(path).num_rows for path in Path(self.store.file(folder), "stray").glob("*.parquet")
        )
        if stray and looks_around(self.method):
            raise InvalidInputError(
                f"`probabilities` must have a row for each node of `edges` for methods that look at other nodes; "
                f"{stray:,} edges lead to nodes without one"
            )
        return {"stray": stray}

    def _laid_out(self) -> None:
        """Bring the edges into compressed sparse rows."""
        store = self.store
        folders = [
            f"{step['folder']}/words" for step in (store.done("edges"), store.done("more-edges")) if step is not None
        ]
        store.step("graph", partial(self._make_rows, folders))
        for name in ("nodes", "strangers", "edges", "more-edges"):
            store.clear(name)  # what they are made of is not needed any more

    def _make_rows(self, folders: list[str], _: str) -> dict[str, Any]:
        store, nodes = self.store, int(self.store.array("keys").size)
        paths = [store.file(folder) for folder in folders]
        bounds = store.step("rows", lambda own: self._bounds(paths, nodes))
        parts = [RowsPart(i, *ends) for i, ends in enumerate(pairwise(bounds["bounds"]))]
        work = partial(numbering.merge_rows, store=store, folders=folders, folder=bounds["folder"])
        small = bounds["stored"] <= _FEW
        entry = offsets_of(self._each(work, parts, small=small))
        store.make("indptr", np.int64, (nodes + 1,))
        store.make("indices", np.int32, (entry[-1],))
        placed = [part._replace(entry=start) for part, start in zip(parts, entry, strict=False)]
        self._each(partial(numbering.fill_rows, store=store, folder=bounds["folder"]), placed, small=small)
        store.clear("rows")
        return {"entries": entry[-1]}

    def _bounds(self, paths: list[str], nodes: int) -> dict[str, Any]:
        bounds, stored = numbering.row_bounds(paths, nodes, _ENTRIES_A_PART, 2 * self._cores)
        return {"bounds": bounds, "stored": stored}

    def _labelled(self, known: int) -> tuple[str, list[int]]:
        """Write the labels as numbers; return where they are."""
        rows = with_kinds(self.tables.known, self.tables.class_names)
        work = partial(numbering.write_labels, store=self.store, settings=self._settings, nodes=known)
        return self._numbers("labels", rows, work)

    def _targets(self, known: int) -> tuple[str, list[int]] | None:
        """Write the nodes to predict as numbers; return where they are, None for all that have no label."""
        if not self.tables.may_be_labelled:
            return None
        work = partial(numbering.write_targets, store=self.store, nodes=known)
        return self._numbers("asked", self.tables.nodes, work)

    def _numbers(self, name: str, rows: DataFrame, work: Callable[..., Any]) -> tuple[str, list[int]]:
        def make(folder: str) -> dict[str, Any]:
            found = rows.mapInArrow(partial(work, folder=self.store.file(folder)), numbering.COUNT_COLUMNS).collect()
            return {"parts": sorted(int(row["part"]) for row in found)}

        told = self.store.step(name, make)
        return told["folder"], told["parts"]

    # -- sets ------------------------------------------------------------------------------------------------------

    def _predicted(
        self, known: int, labels: tuple[str, list[int]], targets: tuple[str, list[int]] | None
    ) -> dict[str, Any]:
        """Calibrate and predict what is not there yet; return where the sets are, and what was found on the way."""
        store = self.store
        told = store.done("sets")
        if told is not None:
            if self.progress is not None:
                self.progress(told["shares"], told["shares"])
            return told
        for path in Path(store.path).glob("state-*.npy"):  # of a run that was lost
            path.unlink()
        kernels = self._kernels()
        prefix = f"state-{uuid.uuid4().hex[:8]}"
        asked = Calibration(
            store, self.method, self.directed, known, labels, targets, self.alpha, self._threads, kernels, prefix
        )
        (found,) = self._each(shares.calibrate, [asked])
        # Written down: after a restart the cluster may be another, and shares must stay what they were.
        cut = store.step("shares", lambda own: {"size": self._share_size(found.targets)})
        cpus = int(self.spark.sparkContext.getConf().get("spark.task.cpus", "1") or 1)
        size, classes = int(cut["size"]), self.tables.class_names
        told = {"folder": cut["folder"], "shares": -(-found.targets // size) if found.targets else 0}
        told |= {"level": found.level, "choice": found.choice, "labelled": found.labelled}
        integers = self.tables.integer_labels
        ask = Asked(store, cut["folder"], size, self.alpha, classes, integers, cpus, kernels)
        self._predict_all(ask, found.state, told["shares"])
        store.step("sets", lambda own: told)
        for path in Path(store.path).glob("state-*.npy"):
            path.unlink()
        return told

    def _share_size(self, targets: int) -> int:
        if self.batch_size is not None:
            return self.batch_size
        wanted = -(-targets // (_SHARES_A_CORE * self._cores))
        return max(_SMALLEST_SHARE, min(_LARGEST_SHARE, wanted))

    def _predict_all(self, asked: Asked, state: bytes, count: int) -> None:
        sent = self.spark.sparkContext.broadcast(state)
        left = [share for share in range(count) if not os.path.exists(shares.share_path(asked, share))]
        done = count - len(left)
        if done and self.progress is not None:
            self.progress(done, count)
        # One share first, where machines have kernels to compile: all others find them compiled.
        width = 1 if asked.kernels is not None else _SHARES_A_CORE * self._cores
        while left:
            some, left = left[:width], left[width:]
            self._each(partial(shares.predict_share, asked=asked, state=sent), some)
            done += len(some)
            width = _SHARES_A_CORE * self._cores
            if self.progress is not None:
                self.progress(done, count)

    @property
    def _local(self) -> bool:
        return self.spark.sparkContext.master.startswith("local[") or self.spark.sparkContext.master == "local"

    @property
    def _threads(self) -> int | None:
        """Threads that the calibrating task may use: nothing else runs meanwhile where it does."""
        cores = self.spark.sparkContext.getConf().get("spark.executor.cores")
        return None if self._local or not cores else int(cores)

    def _kernels(self) -> str | None:
        """Return where workers on other machines find compiled kernels, after those of this one were copied there."""
        if self._local:
            return None  # they share this machine's
        from napsets.kernels._jit import keep_in

        folder = self.store.file("kernels")
        os.makedirs(folder, exist_ok=True)
        keep_in(folder, stay=True)
        return folder
