"""Reading what is known of nodes in rows of numbers: probabilities of classes, numbers of a model, features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, FloatArray, sealed
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files import places
from napsets.files.cells import check_width, number_rows
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, NodeRows, id_column, joined_ids
from napsets.files.reading import PLAIN, Reading
from napsets.scores import CQR, AbsoluteResidual, NormalisedResidual

LIST_COLUMN = "probabilities"

#: How far an entry may be off that was rounded to two decimals, and a little more for sums of floats.
_ROUNDING = 0.005 + 1e-6

#: The scores whose columns a file of numbers may have, the more telling first.
_SCORES = (CQR(), NormalisedResidual(), AbsoluteResidual())


@dataclass(frozen=True, eq=False)
class NodeOutputs:
    """What a model says of nodes: probabilities of classes, or numbers such as two quantiles or a prediction."""

    ids: NodeIds
    #: One row per node. Probabilities have one column per class, and are float32 where the file has float32, otherwise
    #: float64; numbers have one column for each that the score names.
    values: Any
    class_names: Any = None  # a list of str, where there are classes
    score: Any = None  # the score whose columns a file of numbers has
    notes: list[str] = field(default_factory=list)  # for the user


def read_probabilities(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read a table of probabilities, batch by batch, into one array.

    It has the column ``node`` and either one column per class, named after it, or one list column ``probabilities``.
    """
    table = open_table("probabilities", path, reading)
    table.require("node")
    columns = [LIST_COLUMN] if LIST_COLUMN in table.columns else _class_columns(table)
    rows = _Rows(table, columns)
    parts = []
    for batch in table.batches(["node", *columns]):
        parts.append(id_column(table, batch, "node"))
        rows.add(batch, parts[-1])
    if not parts:
        raise FileFormatError(f"`probabilities` must have at least one row; {table.path} has none")
    rows.refuse()
    values = rows.finish()
    return NodeOutputs(
        NodeIds(joined_ids(table, parts), "probabilities", table.path),
        values,
        _class_names(table, columns, values.shape[1]),
    )


def read_numbers(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read ``node`` and ``lower``, ``upper`` (two quantiles), or ``prediction`` [, ``spread``]."""
    table = open_table("probabilities", path, reading)
    table.require("node")
    score = next((score for score in _SCORES if set(score.columns) <= set(table.columns)), None)
    if score is None:
        raise FileFormatError(
            f"`probabilities` must have the columns lower and upper, or prediction and maybe spread, with --task "
            f"regression; {table.path} has {', '.join(table.columns)}. If they have other names, say so with --columns "
            "prediction=…"
        )
    ids, rows = read_rows(table, score.columns)
    try:
        values = score.check(rows)
    except InvalidInputError as error:
        raise FileFormatError(f"`probabilities` cannot be used: {table.path}: {error}") from error
    return NodeOutputs(ids, values, None, score, _crossed(table, values) if isinstance(score, CQR) else [])


def read_rows(
    table: TableFile, columns: Sequence[str], *, list_column: str = "", dtype: npt.DTypeLike | None = None
) -> tuple[NodeIds, npt.NDArray[Any]]:
    """Read the ids of a table, and its rows of numbers as one array, of some type where one is named."""
    parts, blocks, filled = [], [], 0
    for batch in table.batches(["node", *columns]):
        parts.append(id_column(table, batch, "node"))
        block = number_rows(table, batch, columns, filled, list_column=list_column, booleans=table.name == "features")
        blocks.append(block.astype(dtype or block.dtype, copy=False))
        check_width(table, block, blocks[0].shape[1])
        filled += batch.num_rows
    if not parts:
        raise FileFormatError(f"`{table.name}` must have at least one row; {table.path} has none")
    return NodeIds(joined_ids(table, parts), table.name, table.path), np.concatenate(blocks)


def _crossed(table: TableFile, values: FloatArray) -> list[str]:
    """Say that two quantiles look swapped; that a few cross is what models do, and what CQR expects."""
    crossed = int((values[:, 0] > values[:, 1]).sum())
    if 2 * crossed <= len(values):
        return []
    return [
        f"lower is above upper in {crossed:,} of the {len(values):,} rows of `probabilities` ({table.path}): are the "
        f"two columns swapped? Each pair is put in order"
    ]


def _class_columns(table: TableFile) -> list[str]:
    unused = table.reading.ignore_columns
    missing = [column for column in unused if column not in table.columns]
    if missing:
        raise FileFormatError(
            f"`ignore_columns` must name columns of `probabilities`; {table.path} has no column {missing[0]}. It has: "
            f"{', '.join(table.columns[:12])}"
        )
    columns = [column for column in table.columns if column != "node" and column not in unused]
    if not columns:
        raise FileFormatError(
            f"`probabilities` must have one column per class in addition to node, or one list column named "
            f"{LIST_COLUMN}; {table.path} has the columns {', '.join(table.columns)}"
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

    def __init__(self, table: TableFile, columns: list[str]) -> None:
        self.table = table
        self.columns = columns
        self.filled = 0
        self.array: npt.NDArray[Any] | None = None
        self.parts: list[npt.NDArray[Any]] = []
        self.total = table.num_rows()
        self.bad = 0
        self.first_bad = ""
        #: Columns without which every bad row so far would sum to 1.
        self.surplus: list[int] | None = None
        #: Whether every bad row so far sums to 1, or to 100, except for rounding.
        self.rounded = self.percentages = True

    def add(self, batch: Any, ids: Any) -> None:
        block = number_rows(self.table, batch, self.columns, self.filled, list_column=LIST_COLUMN)
        if self.table.reading.logits:
            self._check_finite(block, ids)
            block = _softmax(block)
        else:
            if self.table.reading.normalise:
                block = _normalised(block)
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
        # Read-only, so that it can be kept without a copy.
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
            return f"They all would without the column {column}: if that is not a class, add --ignore-columns {column}."
        if self.rounded:
            return "They sum to 1 except for rounding: add --normalise, which divides each row by its sum."
        if self.percentages:
            return "They sum to 100, as percentages do: add --normalise, which divides each row by its sum."
        return (
            "If they are logits (a model's outputs before softmax), add --logits; if a column is not a class, add "
            "--ignore-columns with its name."
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
        room = _ROUNDING * block.shape[1]
        fine = lowest[~good] >= 0
        self.rounded &= bool((fine & (np.abs(sums[~good] - 1.0) <= room)).all())
        self.percentages &= bool((fine & (np.abs(sums[~good] - 100.0) <= 100.0 * room)).all())
        self._narrow_surplus(block[~good])

    def _narrow_surplus(self, bad: npt.NDArray[Any]) -> None:
        """Keep the columns without which these rows, too, are probabilities: one of them may be no class."""
        if self.surplus is None:
            # A list has no columns that could be dropped.
            self.surplus = [] if self.columns == [LIST_COLUMN] or bad.shape[1] < 2 else list(range(bad.shape[1]))
        for some in (bad[:64], bad):  # a few rows rule out nearly all columns
            self.surplus = [column for column in self.surplus if _are_good(np.delete(some, column, axis=1))]


def _normalised(block: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows divided by their sum, where that is 1 or 100 except for rounding; others as they are."""
    sums, room = block.sum(axis=1, dtype=np.float64), _ROUNDING * block.shape[1]
    near = (np.abs(sums - 1.0) <= room) | (np.abs(sums - 100.0) <= 100.0 * room)
    divided = block.astype(np.float64)
    divided[near] /= sums[near, None]
    return divided.astype(block.dtype)


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


# -- features ----------------------------------------------------------------------------------------------------------

#: The list column of features.
_FEATURES = "features"
#: What `scipy.sparse.save_npz` calls the parts of compressed sparse rows.
_SPARSE = {"indptr", "indices", "data", "shape", "format"}


def read_features(path: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN) -> Any:
    """Read features into one row for each of `nodes`, an array or compressed sparse rows; each node must have a row.

    The table has the column ``node`` and one column per feature, or one list column ``features``; or it is what
    ``scipy.sparse.save_npz`` wrote, one row per node in the order of the probabilities.
    """
    sparse = _read_sparse(path, len(nodes)) if os.fspath(path).endswith(".npz") else None
    if sparse is not None:
        return sparse
    table = open_table("features", path, reading)
    table.require("node")
    columns = [column for column in table.columns if column != "node"]
    if _FEATURES in columns:
        columns = [_FEATURES]
    if not columns:
        raise FileFormatError(f"`features` must have one column per feature in addition to node; {table.path} has none")
    rows, blocks, filled = NodeRows(table, nodes), [], 0
    for batch in rows.batches(*columns):
        blocks.append(number_rows(table, batch, columns, filled, list_column=_FEATURES, booleans=True))
        check_width(table, blocks[-1], blocks[0].shape[1])
        filled += batch.num_rows
    known = rows.places()
    missing = len(nodes) - int((known >= 0).sum())
    if missing:
        raise FileFormatError(
            f"`features` must have a row for each of the {len(nodes):,} nodes of `{nodes.name}`; {table.path} lacks "
            f"{missing:,}"
        )
    block = np.concatenate(blocks)
    features = np.empty((len(nodes), block.shape[1]), dtype=block.dtype)
    features[known[known >= 0]] = block[known >= 0]
    return features


def _read_sparse(path: str | os.PathLike[str], size: int) -> Any:
    """Return the rows of a file that SciPy wrote, or None where it is another one."""
    with places.reading(path, "features") as source, np.load(source, allow_pickle=False) as archive:
        if not set(archive.files) >= _SPARSE:
            return None
        parts = {name: archive[name] for name in _SPARSE}
    if parts["format"].item() not in (b"csr", "csr"):
        raise FileFormatError(
            f"`features` must be compressed sparse rows (csr); {os.fspath(path)} holds {parts['format'].item()!r}"
        )
    from scipy.sparse import csr_array

    try:
        height, width = (int(n) for n in parts["shape"])
        rows = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(height, width))
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise FileFormatError(
            f"`features` must be compressed sparse rows; {os.fspath(path)} is not: {error}"
        ) from error
    if rows.shape[0] != size:
        raise FileFormatError(
            f"`features` must have a row for each of the {size:,} nodes of `probabilities`, in their order; "
            f"{os.fspath(path)} has {rows.shape[0]:,}"
        )
    return rows
