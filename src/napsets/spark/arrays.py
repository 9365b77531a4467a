"""Tables become the arrays that workers map: numbered ids, compressed sparse rows, a matrix of probabilities.

Which process makes the arrays depends on where they go. In a folder that all machines see, tasks write their own part
each, and nothing comes to the driver but counts; tables so small that starting tasks would take longer are gathered in
the driver. Where machines share no folder, the driver makes all arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from napsets.errors import InvalidInputError
from napsets.spark import numbering
from napsets.spark.mapped import Folder, offsets_of
from napsets.spark.numbering import NumberedPart, RowsPart
from napsets.spark.session import literally
from napsets.spark.tables import Tables, label_indices, with_kinds, with_kinds_here

#: Entries of the graph that one task sorts: a few hundred megabytes while it does.
_ENTRIES_PER_PART = 1 << 24
#: Numbers that are put into their place without a task.
_FEW = 1 << 20

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

#: A table of Spark's, or one that is here already.
AnyTable: TypeAlias = DataFrame | pa.Table


@dataclass(frozen=True)
class Route:
    """Where the arrays are written, and by which process."""

    here: bool = False  # the driver makes them, and not tasks
    carried: bool = False  # Spark carries them to its executors, because machines share no folder
    temporary: bool = False  # their folder is Spark's own, which goes when the session ends
    pieces: int = 1  # in which the driver gathers a table


def is_local(spark: SparkSession) -> bool:
    """Return whether all that runs for a session runs on this machine, in one process of Java's."""
    return spark.sparkContext.master == "local" or spark.sparkContext.master.startswith("local[")


@dataclass(frozen=True, eq=False)
class Arrays:
    """The arrays of one call, and the marks and sets beside them."""

    spark: SparkSession
    tables: Tables
    store: Folder
    route: Route
    directed: bool
    labels_are: str
    ordered: bool  # whether the order of nodes matters, and with it each node's probabilities

    def make(self) -> int:
        """Make those that are not there yet; return how many nodes have probabilities."""
        os.makedirs(self.store.path, exist_ok=True)
        known = self._numbered()
        self.store.step("graph", self._make_rows)
        for name in ("nodes", "strangers", "edges", "more-edges"):
            self.store.clear(name)  # the pairs are no longer needed
        self.store.step("labels", partial(self._write_labels, known))
        if self.tables.may_be_labelled:
            self.store.step("targets", partial(self._write_rows, "nodes", self.tables.nodes, known))
        return known

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return max(1, self.spark.sparkContext.defaultParallelism)

    def each(self, work: Callable[[Item], Outcome], items: Sequence[Item], *, here: bool) -> list[Outcome]:
        """Do some work on each of the items, here or one task per item; return what they return."""
        if here or not items:
            return [work(item) for item in items]
        return self.spark.sparkContext.parallelize(items, len(items)).map(work).collect()

    def _numbered(self) -> int:
        """Give the nodes numbers and write their edges as pairs of numbers; return how many have probabilities."""
        store = self.store
        nodes = store.step("nodes", lambda own: self._write_nodes(self._ordered_rows(), own))
        store.step("arrays", partial(self._fill_nodes, [nodes]))
        edges = store.step("edges", partial(self._write_edges, self.tables.edges))
        if edges["stray"] and store.done("graph") is None:
            stray, strangers = self._strangers(self._stray(edges["folder"]))
            more = store.step("strangers", partial(self._write_nodes, strangers, but=store))
            store.step("more-arrays", partial(self._fill_nodes, [nodes, more]))
            store.step("more-edges", partial(self._write_edges, stray))
        return int(nodes["rows"])

    def _ordered_rows(self) -> AnyTable:
        """Return the rows of probabilities, in their order where it matters."""
        rows, columns = self.tables.rows, ["node", "probabilities"]
        if not self.ordered:
            return rows.select(*columns)
        if self.route.here:
            return rows.coalesce(1).sortWithinPartitions(*self.tables.order).select(*columns).toArrow()
        return rows.orderBy(*self.tables.order).select(*columns)

    def _stray(self, folder: str) -> str:
        return f"{self.store.file(folder)}/stray"

    def _strangers(self, folder: str) -> tuple[AnyTable, AnyTable]:
        """Return the edges of which an end has no number, and their ends."""
        if self.route.here:  # other machines need not see the folder
            table = pq.read_table(folder)
            ends = [chunk for name in ("source", "target") for chunk in table[name].chunks]
            return table, pa.table({"node": pc.unique(pa.chunked_array(ends))})
        stray = self.spark.read.schema(self.tables.edges.schema).parquet(literally(f"file://{folder}"))
        source, target = (stray.select(sf.col(name).alias("node")) for name in ("source", "target"))
        return stray, source.union(target).distinct()

    def _through(self, table: AnyTable, work: Callable[..., Any], columns: str) -> list[tuple[Any, ...]]:
        """Let tasks, or this process, do some work on each part of a table; return the rows they give."""
        if isinstance(table, DataFrame) and not self.route.here:
            return [tuple(row) for row in table.mapInArrow(work, columns).collect()]
        return [tuple(row.values()) for batch in work(self._gathered(table)) for row in batch.to_pylist()]

    def _gathered(self, table: AnyTable) -> Iterator[pa.RecordBatch]:
        """Bring a table here, batch by batch."""
        return chain.from_iterable(piece.to_batches() for piece in self._pieces(table))

    def _pieces(self, table: AnyTable) -> Iterator[pa.Table]:
        """Bring a table here, in pieces that Spark lets through."""
        pieces = self.route.pieces
        if not isinstance(table, DataFrame):
            yield table
        elif pieces == 1:
            yield table.toArrow()
        else:
            part = sf.pmod(sf.xxhash64(table.columns[0]), sf.lit(pieces))
            for piece in range(pieces):
                yield table.where(part == piece).toArrow()

    def _write_nodes(self, rows: AnyTable, folder: str, but: Folder | None = None) -> dict[str, Any]:
        work = partial(numbering.write_nodes, folder=self.store.file(folder), classes=self._classes, but=but)
        parts = sorted(self._through(rows, work, numbering.PART_COLUMNS))
        ascending = all(part[3] for part in parts)
        ascending &= all(after[4] > before[5] for before, after in pairwise(parts))
        counts = [[int(value) for value in part[:3]] for part in parts]
        return {"parts": counts, "ascending": ascending, "rows": sum(part[1] for part in counts)}

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
        here = self.route.here or row[-1] * self._classes + letter[-1] <= _FEW  # tasks would take longer to start
        self.each(partial(numbering.fill_nodes, store=store), shares_, here=here)
        if strings or len(steps) > 1 or not steps[0]["ascending"]:
            (same,) = self.each(numbering.sort_keys, [store], here=here)
            if same is not None:
                raise self._twice(same)
        return {}

    @property
    def _classes(self) -> int:
        return len(self.tables.class_names)

    def _twice(self, numbers: tuple[int, int]) -> InvalidInputError:
        first, second = numbering.node_ids(self.store, np.array(numbers)).to_pylist()
        if first != second:
            return InvalidInputError(
                f"`probabilities` has two ids with one 64-bit hash; rename {first!r} or {second!r}"
            )
        keys = self.store.array("keys")
        count = int((keys == keys[numbers[0]]).sum())
        return InvalidInputError(f"`probabilities` must have one row per node; node {first!s} has {count} rows")

    def _write_edges(self, edges: AnyTable, folder: str) -> dict[str, Any]:
        words = self.store.file(f"{folder}/words")
        os.makedirs(words)
        work = partial(numbering.write_edges, store=self.store, folder=words, directed=self.directed)
        if isinstance(edges, DataFrame) and not self.route.here:
            edges.mapInArrow(work, edges.schema).write.parquet(f"file://{self._stray(folder)}")
        else:
            os.makedirs(self._stray(folder))
            for i, batch in enumerate(work(self._gathered(edges))):
                pq.write_table(pa.Table.from_batches([batch]), f"{self._stray(folder)}/{i:07d}.parquet")
        stray = sum(pq.read_metadata(path).num_rows for path in Path(self._stray(folder)).glob("*.parquet"))
        if stray and self.ordered:
            raise InvalidInputError(
                f"`probabilities` must have a row for each node of `edges` for methods that look at other nodes; "
                f"{stray:,} edges lead to nodes without one"
            )
        return {"stray": stray}

    def _make_rows(self, _: str) -> dict[str, Any]:
        """Bring the edges into compressed sparse rows."""
        store, nodes = self.store, int(self.store.array("keys").size)
        steps = (store.done("edges"), store.done("more-edges"))
        folders = [f"{step['folder']}/words" for step in steps if step is not None]
        paths, least = [store.file(folder) for folder in folders], 2 * self.cores
        rows = store.step("rows", lambda own: numbering.row_bounds(paths, nodes, _ENTRIES_PER_PART, least))
        parts = [RowsPart(i, *ends) for i, ends in enumerate(pairwise(rows["bounds"]))]
        work = partial(numbering.merge_rows, store=store, folders=folders, folder=rows["folder"])
        here = self.route.here or rows["stored"] <= _FEW
        entry = offsets_of(self.each(work, parts, here=here))
        store.make("indptr", np.int64, (nodes + 1,))
        store.make("indices", np.int32, (entry[-1],))
        placed = [part._replace(entry=start) for part, start in zip(parts, entry, strict=False)]
        self.each(partial(numbering.fill_rows, store=store, folder=rows["folder"]), placed, here=here)
        store.clear("rows")
        return {"entries": entry[-1]}

    def _write_labels(self, known: int, folder: str) -> dict[str, Any]:
        labels, names, here = self.tables.known, self.tables.class_names, self.route.here
        rows = with_kinds_here(pa.concat_tables(self._pieces(labels)), names) if here else with_kinds(labels, names)
        indices = partial(label_indices, names=names, labels_are=self.labels_are)
        return self._write_rows("labels", rows, known, folder, indices)

    def _write_rows(
        self, name: str, rows: AnyTable, known: int, folder: str, indices: Callable[..., Any] | None = None
    ) -> dict[str, Any]:
        """Write the nodes of a table, and their labels if it has some, as numbers; return which parts have rows."""
        path = self.store.file(folder)
        work = partial(numbering.write_rows, name=name, store=self.store, folder=path, nodes=known, indices=indices)
        return {"parts": sorted(int(part) for (part,) in self._through(rows, work, "part bigint"))}
