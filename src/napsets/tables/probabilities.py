"""Reading probabilities: a class a column, or one list a row, into one array."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets._check import ROW_SUM_TOLERANCE
from napsets._frozen import sealed
from napsets.errors import FileFormatError
from napsets.tables.formats import TableFile, arrow, open_table
from napsets.tables.ids import IdKind, NodeIds, id_column, looks_integer

__all__ = ["NodeProbabilities", "read_probabilities"]

LIST_COLUMN = "probabilities"

#: What a file of predictions may carry beside node and probabilities.
_COMPANIONS = ("label", "split")


@dataclass(frozen=True, eq=False)
class NodeProbabilities:
    """Probabilities with the ids of their rows and the names of their columns.

    Attributes
    ----------
    ids : NodeIds
        One id a row, as the file has them.
    values : numpy.ndarray
        Shape (nodes, classes); float32 where the file has float32, otherwise float64.
    class_names : list of str
        One name a class.
    """

    ids: NodeIds
    values: npt.NDArray[Any]
    class_names: list[str]


def read_probabilities(path: str | os.PathLike[str], *, ids: IdKind = "auto") -> NodeProbabilities:
    """Read a table of probabilities, batch by batch, into one array.

    Parameters
    ----------
    path : path
        Parquet, CSV (plain or gzip) or npz with the column ``node`` and either one column a class, named after it, or
        one list column ``probabilities``.
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the file's type; in CSV, integers if every id looks like one.
    """
    table = open_table("probabilities", path)
    table.require("node")
    columns = [LIST_COLUMN] if LIST_COLUMN in table.columns else _class_columns(table)
    rows = _Rows(table, columns)
    parts = []
    for batch in table.batches(["node", *columns]):
        part = id_column(table, batch, "node", "string" if ids == "string" else "auto")
        rows.add(batch, part)
        parts.append(part)
    if not parts:
        raise FileFormatError(f"`probabilities` must have at least one row; {table.path} has none")
    rows.refuse()
    values = rows.finish()
    return NodeProbabilities(NodeIds(_join(table, parts, ids)), values, _class_names(table, columns, values.shape[1]))


def _join(table: TableFile, parts: list[Any], ids: IdKind) -> Any:
    pa = arrow()
    column = pa.chunked_array(parts).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if not pa.types.is_integer(column.type):
        guessed = ids == "auto" and not table.typed and looks_integer(column)
        if ids == "integer" and not looks_integer(column):
            raise FileFormatError(
                f"`probabilities` must have integer ids, as --ids integer asks; {table.path} does not. "
                f"Leave --ids out to keep its ids as text."
            )
        if guessed or ids == "integer":
            return column.cast(pa.int64())
    return column


def _class_columns(table: TableFile) -> list[str]:
    columns = [column for column in table.columns if column != "node"]
    if not columns:
        raise FileFormatError(
            f"`probabilities` must have one column a class beside node, or one list column named {LIST_COLUMN}; "
            f"{table.path} has the columns {', '.join(table.columns)}"
        )
    return columns


def _class_names(table: TableFile, columns: list[str], classes: int) -> list[str]:
    if columns != [LIST_COLUMN]:
        return columns
    about = json.loads(table.metadata.get(b"napsets", b"{}"))
    names = about.get("class_names") if isinstance(about, dict) else None
    return [str(name) for name in names] if names and len(names) == classes else [str(y) for y in range(classes)]


class _Rows:
    """Rows that come in batches and end up in one array, which is as wide as the file's numbers are."""

    def __init__(self, table: TableFile, columns: list[str]) -> None:
        self.table = table
        self.columns = columns
        self.filled = 0
        self.array: npt.NDArray[Any] | None = None
        self.parts: list[npt.NDArray[Any]] = []
        self.total = table.num_rows()
        self.bad = 0
        self.first_bad = ""

    def add(self, batch: Any, ids: Any) -> None:
        block = self._block(batch)
        self._check(block, ids)
        if self.total is None:
            self.parts.append(block)
        else:
            if self.array is None:
                self.array = np.empty((self.total, block.shape[1]), dtype=block.dtype)
            if block.shape[1] != self.array.shape[1]:
                raise FileFormatError(
                    f"`probabilities` must have as many entries in each row, {self.array.shape[1]}; {self.table.path} "
                    f"has a row of {block.shape[1]}"
                )
            self.array[self.filled : self.filled + len(block)] = block
        self.filled += len(block)

    def finish(self) -> npt.NDArray[Any]:
        # Read-only, so that nobody who keeps it needs a copy.
        return sealed(np.concatenate(self.parts) if self.array is None else self.array)

    def refuse(self) -> None:
        if self.bad:
            raise FileFormatError(
                f"`probabilities` must have rows of finite numbers, none negative, that sum to 1; {self.bad:,} of the "
                f"{self.filled:,} rows of {self.table.path} do not: {self.first_bad}. If they are scores or logits, "
                f"pass them through a softmax; if they were rounded, divide each row by its sum."
            )

    def _check(self, block: npt.NDArray[Any], ids: Any) -> None:
        sums = block.sum(axis=1, dtype=np.float64)
        lowest = block.min(axis=1)
        good = (np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE) & (lowest >= 0)  # NaN is neither
        if good.all():
            return
        row = int(good.argmin())
        if not self.bad:
            what = f"has a negative entry, {lowest[row]:.6g}" if lowest[row] < 0 else f"sums to {sums[row]:.6g}"
            self.first_bad = f"row {self.filled + row}, node {ids[row].as_py()!r}, {what}"
        self.bad += int((~good).sum())

    def _block(self, batch: Any) -> npt.NDArray[Any]:
        if self.columns == [LIST_COLUMN]:
            return self._rectangle(batch.column(LIST_COLUMN))
        narrow = all(arrow().types.is_float32(batch.column(name).type) for name in self.columns)
        block = np.empty((batch.num_rows, len(self.columns)), dtype=np.float32 if narrow else np.float64)
        for i, name in enumerate(self.columns):
            block[:, i] = self._numbers(batch.column(name), name)
        return block

    def _numbers(self, values: Any, name: str) -> npt.NDArray[Any]:
        types = arrow().types
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            companion = " A list column named probabilities may stand beside it." if name in _COMPANIONS else ""
            raise FileFormatError(
                f"`probabilities` must hold numbers in every column but node, one column a class; the column {name} of "
                f"{self.table.path} is {values.type}. Drop that column.{companion}"
            )
        if values.null_count:
            raise FileFormatError(
                f"`probabilities` must have no empty cell; the column {name} of {self.table.path} has some, among the "
                f"rows from {self.filled} on. Fill them in or drop those rows."
            )
        array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return array

    def _rectangle(self, lists: Any) -> npt.NDArray[Any]:
        """Turn lists of one length into rows, without a Python object a row."""
        types = arrow().types
        if not (types.is_list(lists.type) or types.is_large_list(lists.type) or types.is_fixed_size_list(lists.type)):
            raise FileFormatError(
                f"`probabilities` must hold a list of numbers in each row of its column {LIST_COLUMN}; in "
                f"{self.table.path} that column is {lists.type}. Write one column a class, or lists in Parquet or npz."
            )
        values = self._numbers(lists.flatten(), LIST_COLUMN)
        lengths = arrow().compute.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        classes = int(lengths[0]) if len(lengths) else 0
        if classes == 0 or (lengths != classes).any():
            row = int((lengths != classes).argmax())
            raise FileFormatError(
                f"`probabilities` must have as many entries in each row, at least one; row {self.filled + row} of "
                f"{self.table.path} has {lengths[row]}, row {self.filled} has {classes}"
            )
        dtype = np.float32 if values.dtype == np.float32 else np.float64
        return values.astype(dtype, copy=False).reshape(-1, classes)
