"""What runs in tasks to turn tables into arrays: ids into numbers, edges into rows, labels and nodes into numbers.

Each function here takes Arrow batches or a plain description of its share, and writes files of a `Folder`; what it
returns are counts. None of them knows of a Spark session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError
from napsets.files.ids import id_keys, id_texts
from napsets.spark.mapped import Folder, drafted, part_name, read_part, writing_part
from napsets.spark.tables import checked_probabilities

Batches = Iterator[pa.RecordBatch]

#: An edge is one 64-bit word, with the row in the upper and the column in the lower half; more nodes would not fit.
MOST_NODES = 2**31 - 1
_BITS = 32
_COLUMN = (1 << _BITS) - 1

#: Edges that a task holds before it sorts them and writes them down.
_EDGES_AT_ONCE = 1 << 22


class NumberedPart(NamedTuple):
    """A part of the nodes: where its rows and its letters go in the arrays of all."""

    folder: str
    part: int
    row: int
    letter: int


class RowsPart(NamedTuple):
    """Rows of the graph that one task makes, and where their entries go in the array of all."""

    part: int
    first: int
    last: int
    entry: int = 0


def _own_part() -> int:
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())  # the driver's own part is the only one


# -- nodes ---------------------------------------------------------------------------------------------------------


def write_nodes(batches: Batches, folder: str, classes: int, but: Folder | None = None) -> Batches:
    """Write the ids and probabilities of a part of the nodes; yield how many there are and whether keys ascend.

    Nodes that have a number in the folder `but` are left out.
    """
    numbers = None if but is None else Numbers(but)
    part, rows, letters, ascending = _own_part(), 0, 0, True
    ends: list[int] = []
    with writing_part(folder, part) as add:
        for batch in batches:
            if numbers is not None:
                batch = batch.filter(pa.array(numbers.of(batch.column("node")) < 0))
            if not batch.num_rows:
                continue
            column = batch.column("node")
            keys = id_keys(column).view(np.int64)
            ascending &= bool((keys[1:] > keys[:-1]).all()) and (not ends or int(keys[0]) > ends[-1])
            ends = [ends[0] if ends else int(keys[0]), int(keys[-1])]
            add(keys=keys)
            if "probabilities" in batch.schema.names:
                add(probabilities=checked_probabilities(batch, column, classes, "nodes"))
            rows += batch.num_rows
            if not pa.types.is_integer(column.type):
                texts = id_texts(column)
                written = texts.letters[texts.offsets[0] : texts.offsets[-1]]
                add(lengths=np.diff(texts.offsets), letters=written)
                letters += written.size
    if rows:
        counts = {"part": part, "rows": rows, "letters": letters, "ascending": ascending}
        yield pa.RecordBatch.from_pylist([counts | {"first": ends[0], "last": ends[1]}])


#: The columns of what `write_nodes` yields.
PART_COLUMNS = "part bigint, rows bigint, letters bigint, ascending boolean, first bigint, last bigint"


def fill_nodes(share: NumberedPart, store: Folder) -> None:
    """Put a part of the nodes into the arrays of all nodes."""
    column = partial(read_part, store.file(share.folder), share.part)
    keys, outputs = column("keys", np.int64), store.array("probabilities")
    rows = column("probabilities", outputs.dtype)
    if not rows.size:  # nodes of edges alone: their probabilities are not used, but there must be rows
        rows = np.full((keys.size, outputs.shape[1]), 1.0 / outputs.shape[1])
    store.fill("keys", share.row, keys)
    store.fill("probabilities", share.row, rows)
    if store.has("letters"):
        store.fill("letters", share.letter, column("letters", np.uint8))
        store.fill("offsets", share.row + 1, share.letter + np.cumsum(column("lengths", np.int64)))


def sort_keys(store: Folder) -> tuple[int, int] | None:
    """Write the keys in ascending order and the number of each; return two numbers that share a key, if there are."""
    keys = store.array("keys")
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if same.size:
        return int(order[same[0]]), int(order[same[0] + 1])
    store.save("sorted-keys", ordered)
    store.save("sorted-numbers", order.astype(np.int32))
    return None


def node_ids(store: Folder, numbers: IntArray) -> pa.Array:
    """Return the ids of some nodes, as they were."""
    if not store.has("letters"):
        return pa.array(store.array("keys")[numbers], pa.int64())
    offsets, letters = store.array("offsets"), store.array("letters")
    texts = pa.LargeStringArray.from_buffers(offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(letters))
    return texts.take(pa.array(numbers, pa.int64())).cast(pa.string())


class Numbers:
    """The number of each id, looked up in mapped arrays."""

    def __init__(self, store: Folder) -> None:
        self.store = store
        keys = store.array("keys")
        sorted_ = store.has("sorted-keys")
        self.keys = store.array("sorted-keys") if sorted_ else keys
        self.numbers = store.array("sorted-numbers") if sorted_ else None
        self.size = int(keys.size)
        # Consecutive integers need no search.
        self.dense = self.size > 0 and int(self.keys[-1]) - int(self.keys[0]) == self.size - 1

    def of(self, column: pa.Array) -> IntArray:
        """Return the number of each id, −1 where it is unknown."""
        keys = id_keys(column).view(np.int64)
        if not self.size:
            return np.full(keys.size, -1, dtype=np.int64)
        if self.dense:
            inside = (keys >= self.keys[0]) & (keys <= self.keys[-1])
            places = np.where(inside, keys - self.keys[0], 0)
        else:
            places = np.minimum(np.searchsorted(self.keys, keys), self.size - 1)
            inside = self.keys[places] == keys
        numbers: IntArray = np.where(inside, places if self.numbers is None else self.numbers[places], -1)
        return numbers.astype(np.int64, copy=False)

    def known(self, column: pa.Array, nodes: int, asker: str) -> IntArray:
        """Return the number of each id, all of which must be among the first `nodes`: those with probabilities."""
        numbers = self.of(column)
        missing = (numbers < 0) | (numbers >= nodes)
        if missing.any():
            node = column[int(missing.argmax())].as_py()
            raise InvalidInputError(
                f"`probabilities` must have a row for each node of `{asker}`; node {node!s} has none"
            )
        return numbers


# -- edges ---------------------------------------------------------------------------------------------------------


def write_edges(batches: Batches, store: Folder, folder: str, directed: bool) -> Batches:
    """Write a part of the edges as sorted words; yield those of which an end is unknown."""
    numbers = Numbers(store)
    held: list[tuple[IntArray, IntArray]] = []
    count = chunks = 0
    with drafted(f"{folder}/{part_name(_own_part())}") as draft:
        os.makedirs(draft)
        for batch in batches:
            source, target = (numbers.of(batch.column(name)) for name in ("source", "target"))
            known = (source >= 0) & (target >= 0)
            if not known.all():
                yield batch.filter(pa.array(~known))
                source, target = source[known], target[known]
            held.append((source, target))
            count += source.size
            if count >= _EDGES_AT_ONCE:
                np.save(f"{draft}/{chunks:05d}.npy", _words(held, directed))
                held, count, chunks = [], 0, chunks + 1
        if count:
            np.save(f"{draft}/{chunks:05d}.npy", _words(held, directed))


def _words(held: list[tuple[IntArray, IntArray]], directed: bool) -> IntArray:
    source, target = (np.concatenate([pair[i] for pair in held]) for i in (0, 1))
    different = source != target
    source, target = source[different], target[different]
    words = source << _BITS | target
    return _distinct(words if directed else np.concatenate([words, target << _BITS | source]))


def _distinct(words: IntArray) -> IntArray:
    words.sort()
    return words[np.diff(words, prepend=-1) > 0]


def _chunks(folders: list[str]) -> list[str]:
    return sorted(str(chunk) for folder in folders for chunk in Path(folder).glob("[!.]*/*.npy"))


def row_bounds(folders: list[str], nodes: int, entries_per_part: int, least: int) -> dict[str, Any]:
    """Return the rows at which parts of about as many entries start, with the end of the last; and all entries."""
    chunks = _chunks(folders)
    stored = sum(max(0, os.path.getsize(chunk) - 128) // 8 for chunk in chunks)
    parts = max(least, -(-stored // entries_per_part))
    looked_at = (np.load(chunk, mmap_mode="r") for chunk in chunks[:: max(1, len(chunks) // 32)])
    sample = [words[:: max(1, words.size // 4096)] >> _BITS for words in looked_at]
    rows = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *sample]))
    inner = rows[np.arange(1, parts) * rows.size // parts] if rows.size else rows
    return {"bounds": sorted({0, nodes, *inner.tolist()}), "stored": stored}


def merge_rows(share: RowsPart, store: Folder, folders: list[str], folder: str) -> int:
    """Make some rows of the graph from all words of theirs; return how many entries they have."""
    target = f"{store.file(folder)}/{part_name(share.part)}"
    if not os.path.isdir(target):
        pieces = [np.empty(0, dtype=np.int64)]
        for chunk in _chunks([store.file(name) for name in folders]):
            words = np.load(chunk, mmap_mode="r")
            first, last = np.searchsorted(words, [share.first << _BITS, share.last << _BITS])
            pieces.append(words[first:last])
        words = _distinct(np.concatenate(pieces))
        degrees = np.bincount((words >> _BITS) - share.first, minlength=share.last - share.first)
        columns = (words & _COLUMN).astype(np.int32)
        with writing_part(store.file(folder), share.part) as add:
            add(degrees=degrees.astype(np.int64, copy=False), columns=columns)
    return os.path.getsize(f"{target}/columns") // 4


def fill_rows(share: RowsPart, store: Folder, folder: str) -> None:
    """Put rows that were made into the arrays of the graph."""
    column = partial(read_part, store.file(folder), share.part)
    store.fill("indices", share.entry, column("columns", np.int32))
    store.fill("indptr", share.first + 1, share.entry + np.cumsum(column("degrees", np.int64)))


# -- labels, and the nodes to predict ------------------------------------------------------------------------------


def write_rows(
    batches: Batches,
    name: str,
    store: Folder,
    folder: str,
    nodes: int,
    indices: Callable[[pa.RecordBatch, pa.Array], IntArray] | None = None,
) -> Batches:
    """Write a part of a table as numbers of nodes and, if it has labels, of classes; yield which, if it has rows."""
    numbers, part, rows = Numbers(store), _own_part(), 0
    with writing_part(folder, part) as add:
        for batch in batches:
            if batch.num_rows:
                column = batch.column("node")
                add(nodes=numbers.known(column, nodes, name))
                if indices is not None:
                    add(labels=indices(batch, column))
                rows += batch.num_rows
    if rows:
        yield pa.RecordBatch.from_pydict({"part": [part]})


def read_labels(store: Folder, nodes: int) -> IntArray:
    """Return the label of each node, −1 where there is none."""
    labelled, labels = (_column(store, "labels", name) for name in ("nodes", "labels"))
    if not labelled.size:
        raise InvalidInputError("`labels` must hold at least one known label; it holds none")
    counts = np.bincount(labelled, minlength=nodes)
    if counts.max() > 1:
        number = int(counts.argmax())
        node = node_ids(store, np.array([number]))[0].as_py()
        raise InvalidInputError(f"`labels` must have one row per node; node {node!s} has {counts[number]} rows")
    all_labels = np.full(nodes, -1, dtype=np.int64)
    all_labels[labelled] = labels
    return all_labels


def read_targets(store: Folder) -> IntArray | None:
    """Return the nodes to predict, each once, in ascending order; None where no table names them."""
    return None if store.done("targets") is None else np.unique(_column(store, "targets", "nodes"))


def _column(store: Folder, step: str, name: str) -> IntArray:
    written = store.done(step) or {}
    read = (read_part(store.file(written["folder"]), part, name, np.int64) for part in written["parts"])
    return np.concatenate([np.empty(0, dtype=np.int64), *read])
