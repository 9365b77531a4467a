"""Reading probabilities: a class a column, or one list a row, into one array."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE
from napsets.checks.frozen import sealed
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import IdKind, NodeIds, id_column
from napsets.files.numbers import check_width, joined_ids, number_rows

__all__ = ["NodeProbabilities", "read_probabilities"]

LIST_COLUMN = "probabilities"


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


def read_probabilities(
    path: str | os.PathLike[str], *, ids: IdKind = "auto", logits: bool = False
) -> NodeProbabilities:
    """Read a table of probabilities, batch by batch, into one array.

    Parameters
    ----------
    path : path
        Parquet, CSV, JSON Lines or npz with the column ``node`` and either one column a class, named after it, or
        one list column ``probabilities``.
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the file's type; in CSV, integers if every id looks like one.
    logits : bool
        The file holds what a model says before its softmax: any finite numbers, which become probabilities here.
    """
    table = open_table("probabilities", path)
    table.require("node")
    columns = [LIST_COLUMN] if LIST_COLUMN in table.columns else _class_columns(table)
    rows = _Rows(table, columns, logits)
    parts = []
    for batch in table.batches(["node", *columns]):
        part = id_column(table, batch, "node", "string" if ids == "string" else "auto")
        rows.add(batch, part)
        parts.append(part)
    if not parts:
        raise FileFormatError(f"`probabilities` must have at least one row; {table.path} has none")
    rows.refuse()
    values = rows.finish()
    return NodeProbabilities(
        NodeIds(joined_ids(table, parts, ids), "probabilities", table.path),
        values,
        _class_names(table, columns, values.shape[1]),
    )


def _class_columns(table: TableFile) -> list[str]:
    columns = [column for column in table.columns if column != "node"]
    if not columns:
        raise FileFormatError(
            f"`probabilities` must have one column a class beside node, or one list column named {LIST_COLUMN}; "
            f"{table.path} has the columns {', '.join(table.columns)}"
        )
    if "" in columns:
        raise FileFormatError(
            f"`probabilities` must have a name for each column; {table.path} has one without, as pandas writes its "
            f"index. Write it with index=False, or name that column."
        )
    return columns


def _class_names(table: TableFile, columns: list[str], classes: int) -> list[str]:
    if columns != [LIST_COLUMN]:
        return columns
    names = table.about().get("class_names")
    if names is None:
        return [str(y) for y in range(classes)]
    if len(names) != classes:
        raise FileFormatError(
            f"`probabilities` must have as many entries in each row as its metadata names classes, {len(names)}; "
            f"{table.path} has {classes}"
        )
    return list(names)


class _Rows:
    """Rows that come in batches and end up in one array, which is as wide as the file's numbers are."""

    def __init__(self, table: TableFile, columns: list[str], logits: bool) -> None:
        self.table = table
        self.logits = logits
        self.columns = columns
        self.filled = 0
        self.array: npt.NDArray[Any] | None = None
        self.parts: list[npt.NDArray[Any]] = []
        self.total = table.num_rows()
        self.bad = 0
        self.first_bad = ""
        #: Columns without which every bad row so far would sum to 1.
        self.surplus: list[int] | None = None

    def add(self, batch: Any, ids: Any) -> None:
        block = number_rows(self.table, batch, self.columns, self.filled, list_column=LIST_COLUMN)
        if self.logits:
            self._check_finite(block, ids)
            block = _softmax(block)
        else:
            self._check(block, ids)
        if self.total is None:
            self.parts.append(block)
        else:
            if self.array is None:
                self.array = np.empty((self.total, block.shape[1]), dtype=block.dtype)
            check_width(self.table, block, self.array.shape[1])
            self.array[self.filled : self.filled + len(block)] = block
        self.filled += len(block)

    def finish(self) -> npt.NDArray[Any]:
        # Read-only, so that nobody who keeps it needs a copy.
        return sealed(np.concatenate(self.parts) if self.array is None else self.array)

    def refuse(self) -> None:
        if self.bad:
            raise FileFormatError(
                f"`probabilities` must have rows of finite numbers, none negative, that sum to 1; {self.bad:,} of the "
                f"{self.filled:,} rows of {self.table.path} do not: {self.first_bad}. {self._way_out()}"
            )

    def _way_out(self) -> str:
        if self.surplus is not None and len(self.surplus) == 1:
            column = self.columns[self.surplus[0]]
            return f"They all would without the column {column}: if that is no class, drop it."
        return (
            "If they are what a model says before its softmax, say so with --logits; if they were rounded, divide each "
            "row by its sum."
        )

    def _check_finite(self, block: npt.NDArray[Any], ids: Any) -> None:
        bad = ~np.isfinite(block).all(axis=1)
        if bad.any():
            row = int(bad.argmax())
            raise FileFormatError(
                f"`probabilities` must have rows of finite numbers, also as logits; row {self.filled + row} of "
                f"{self.table.path}, node {ids[row].as_py()!r}, has {block[row][~np.isfinite(block[row])][0]:g}"
            )

    def _check(self, block: npt.NDArray[Any], ids: Any) -> None:
        sums = block.sum(axis=1, dtype=np.float64)
        lowest = block.min(axis=1)
        good = _good_rows(sums, lowest)
        if good.all():
            return
        row = int(good.argmin())
        if not self.bad:
            what = f"has a negative entry, {lowest[row]:.6g}" if lowest[row] < 0 else f"sums to {sums[row]:.6g}"
            self.first_bad = f"row {self.filled + row}, node {ids[row].as_py()!r}, {what}"
        self.bad += int((~good).sum())
        self._narrow_surplus(block[~good])

    def _narrow_surplus(self, bad: npt.NDArray[Any]) -> None:
        """Keep the columns without which these rows, too, are probabilities: one of them may be no class."""
        if self.surplus is None:
            # A list has no columns that could be dropped.
            self.surplus = [] if self.columns == [LIST_COLUMN] or bad.shape[1] < 2 else list(range(bad.shape[1]))
        for some in (bad[:64], bad):  # a few rows rule out nearly all columns
            self.surplus = [column for column in self.surplus if _are_good(np.delete(some, column, axis=1))]


def _softmax(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return exp(x) / Σ exp(x) of each row, as wide as it came; the largest is taken off first: none overflows."""
    wide = logits.astype(np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    shares: npt.NDArray[Any] = (raised / raised.sum(axis=1, keepdims=True)).astype(logits.dtype)
    return shares


def _good_rows(sums: npt.NDArray[Any], lowest: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    good: npt.NDArray[np.bool_] = (np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE) & (lowest >= 0)  # NaN is neither
    return good


def _are_good(block: npt.NDArray[Any]) -> bool:
    return bool(_good_rows(block.sum(axis=1, dtype=np.float64), block.min(axis=1)).all())
