"""Reading what is known of nodes in rows of numbers: probabilities of classes, numbers of a model, features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, BoolArray, sealed
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, own_ids, place_rows
from napsets.files.reading import PLAIN, Reading
from napsets.scores import CQR, AbsoluteResidual, NormalisedResidual

if TYPE_CHECKING:
    import pyarrow as pa

    Values: TypeAlias = pa.Array | pa.ChunkedArray

#: The arguments of probabilities and of features, and what a column of lists is called in their files.
PROBABILITIES, FEATURES = "probabilities", "features"
#: What an index is called that pandas has written to CSV, and what pandas calls that column when it reads it again.
_NAMELESS = ("", "Unnamed: 0")

#: Rows of logits that are changed at a time.
_ROWS = 1 << 16

#: How far an entry may be off that was rounded to two decimals, and a little more for sums of floats.
_ROUNDING = 0.005 + 1e-6

#: The scores whose columns a file of numbers may have, the more telling first.
_SCORES = (CQR(), NormalisedResidual(), AbsoluteResidual())

Block = npt.NDArray[Any]

#: The scores whose columns a file of numbers may have.
IntervalScore = CQR | NormalisedResidual | AbsoluteResidual


@dataclass(frozen=True, eq=False)
class NodeOutputs:
    """What a model says of nodes: probabilities of classes, or numbers such as two quantiles or a prediction."""

    ids: NodeIds
    #: One row per node. Probabilities have one column per class, and are float32 where the file has float32, otherwise
    #: float64; numbers have one column for each that the score names.
    values: Block
    class_names: list[str] | None = None
    score: IntervalScore | None = None  # whose columns a file of numbers has
    notes: list[str] = field(default_factory=list)  # for the user


# -- numbers -----------------------------------------------------------------------------------------------------------


def read_rows(table: TableFile, columns: Sequence[str]) -> tuple[NodeIds, Block]:
    """Read the ids of a table, and its numbers as one array.

    They are in one column per number, or in a list column alone; float32 where the file has float32, otherwise float64.
    """
    rows = table.read(["node", *columns])
    if not len(rows):
        raise table.fault("have at least one row", "has none")
    ids = id_column(table, rows)
    if _is_list(columns):
        return own_ids(table, ids), _list_rows(table, rows[columns[0]].combine_chunks(), columns[0], ids)
    narrow = all(arrow().types.is_float32(kind) for kind in rows.schema.types[1:])
    values = np.empty((len(rows), len(columns)), dtype=np.float32 if narrow else np.float64)
    for place, column in enumerate(columns):
        values[:, place] = number_column(table, rows.column(1 + place), column, ids)
    return own_ids(table, ids), values


def _is_list(columns: Sequence[str]) -> bool:
    return list(columns) in ([PROBABILITIES], [FEATURES])


def _number_columns(table: TableFile, what: str) -> list[str]:
    """Return the columns of numbers, one per class or feature: the list column alone where there is one."""
    table.require("node")
    if table.name in table.columns:
        return [table.name]
    columns = [name for name in table.columns if name != "node" and name not in table.reading.ignore_columns]
    if not columns:
        must = f"have one column per {what} in addition to node, or one list column named {table.name}"
        raise table.fault(must, f"has the columns {', '.join(table.columns)}")
    unnamed = [name for name in columns if name in _NAMELESS[: 1 + (table.name == FEATURES)]]
    if unnamed:
        raise table.fault(
            "have a name for each column",
            f"has one without{f' ({unnamed[0]})' * bool(unnamed[0])}, as pandas writes its index",
            "Write it with index=False, or name that column.",
        )
    return columns


def _list_rows(table: TableFile, lists: pa.Array, column: str, ids: pa.ChunkedArray) -> Block:
    """Turn lists of one length into rows, without a Python object per row."""
    types = arrow().types
    if not (types.is_list(lists.type) or types.is_large_list(lists.type) or types.is_fixed_size_list(lists.type)):
        raise table.fault(
            f"hold a list of numbers in each row of its column {column}", f"has {lists.type}",
            "Write one column per number in addition to node, or lists in Parquet.",
        )  # fmt: skip
    lengths = plain_array(arrow().compute.list_value_length(lists).fill_null(0))
    size = int(lengths[0])
    if size == 0 or (lengths != size).any():
        row = int((lengths != size).argmax())
        got, node = f"has {lengths[row]}, the first has {size}", ids[row].as_py()
        raise table.fault("have the same number of entries in each row, at least one", got, row=row, node=node)
    values = number_column(table, lists.flatten(), column, ids, width=size)
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return values.astype(dtype, copy=False).reshape(-1, size)


def number_column(
    table: TableFile, values: Values, column: str, ids: pa.ChunkedArray, *, width: int = 1, empty: bool = False
) -> Block:
    """Return a column of numbers; true and false are numbers among features.

    Empty cells are refused or, with `empty`, NaN. A row has `width` numbers, and the node that `ids` name, for
    messages.
    """
    types = arrow().types
    if types.is_decimal(values.type) or types.is_null(values.type):  # what SQL makes of 0.5; a column without numbers
        values = values.cast(arrow().float64())
    truth_values = table.name == FEATURES and types.is_boolean(values.type)
    if not (types.is_floating(values.type) or types.is_integer(values.type) or truth_values):
        advice = f"If it is not a class, add --ignore-columns {column}." if table.name == PROBABILITIES else ""
        raise table.fault(f"hold numbers in its column {column}", f"has {values.type} there", advice)
    if not empty:
        refuse_empty(table, column, values, ids, width)
    return plain_array(values)


def refuse_empty(table: TableFile, column: str, values: Values, ids: pa.ChunkedArray, width: int = 1) -> None:
    """Raise for a column with empty cells, and name the first; `ids` and `width` as in `number_column`."""
    if values.null_count:
        row = arrow().compute.index(values.is_null(), True).as_py() // width
        raise FileFormatError(
            f"`{table.name}` must have no empty cell; the column {column} has one in "
            f"{table.at(row, ids[row].as_py())}. Fill it in, drop that row, or drop that column."
        )


def _refuse_infinite(table: TableFile, columns: Sequence[str], ids: NodeIds, rows: Block) -> None:
    """Raise for a number that is NaN or infinite, and name the first."""
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        node = ids.values[row].as_py()
        raise table.fault("hold finite numbers", _infinite_entry(columns, rows[row]), row=row, node=node)


def _infinite_entry(columns: Sequence[str], row: Block) -> str:
    entry = int((~np.isfinite(row)).argmax())
    return f"has {row[entry]:g} in {f'entry {entry}' if _is_list(columns) else f'the column {columns[entry]}'}"


def plain_array(values: Values) -> Block:
    """Return an Arrow column as an array of NumPy."""
    if isinstance(values, arrow().ChunkedArray):
        return np.asarray(values.to_numpy())
    array: Block = values.to_numpy(zero_copy_only=False)
    return array


# -- probabilities -----------------------------------------------------------------------------------------------------


def read_probabilities(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read a table of probabilities into one array.

    It has the column ``node`` and either one column per class, named after it, or one list column ``probabilities``.
    """
    table = open_table(PROBABILITIES, path, reading)
    columns = _number_columns(table, "class")
    missing = [column for column in reading.ignore_columns if column not in table.columns]
    if missing:
        raise FileFormatError(
            f"`ignore_columns` must name columns of `probabilities`; {table.path} has no column {missing[0]}. It has: "
            f"{', '.join(table.columns[:12])}"
        )
    ids, values = read_rows(table, columns)
    if reading.logits:
        _refuse_infinite(table, columns, ids, values)
        for start in range(0, len(values), _ROWS):  # so that little more than the array itself is held
            values[start : start + _ROWS] = _softmax(values[start : start + _ROWS])
    else:
        _check_rows(table, columns, ids, values)
    # Read-only, so that it can be kept without a copy.
    return NodeOutputs(ids, sealed(values), _class_names(table, columns, values.shape[1]))


def _class_names(table: TableFile, columns: list[str], classes: int) -> list[str]:
    if not _is_list(columns):
        return columns
    names: list[str] = table.about().get("class_names") or [str(y) for y in range(classes)]
    if len(names) != classes:
        must = f"have as many entries in each row as its metadata names classes, {len(names)}"
        raise table.fault(must, f"has {classes}")
    return names


def _softmax(logits: Block) -> Block:
    """Return exp(x) / Σ exp(x) of each row; the largest is taken off first, so that none overflows."""
    wide = logits.astype(np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    shares: Block = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _check_rows(table: TableFile, columns: list[str], ids: NodeIds, values: Block) -> None:
    """Raise if rows are not probabilities, with their number, the first of them and what may be meant."""
    good = _good_rows(values)
    if good.all():
        return
    row, bad = int(good.argmin()), values[~good]
    what = f"sums to {values[row].sum(dtype=np.float64):.6g}"
    if not np.isfinite(values[row]).all():
        what = _infinite_entry(columns, values[row])
    elif values[row].min() < 0:
        what = f"has a negative entry, {values[row].min():.6g}"
    raise FileFormatError(
        f"`probabilities` must have rows of finite numbers, none negative, that sum to 1; {len(bad):,} of the "
        f"{len(values):,} rows of {table.path} do not: {table.at(row, ids.values[row].as_py(), path=False)} {what}. "
        f"{_remedy(bad, columns)}"
    )


def _good_rows(rows: Block) -> BoolArray:
    sums, lowest = rows.sum(axis=1, dtype=np.float64), rows.min(axis=1)
    good: BoolArray = (np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE) & (lowest >= 0)  # NaN is neither
    return good


def _remedy(bad: Block, columns: list[str]) -> str:
    """Return a hint for rows that are not probabilities, such as percentages."""
    surplus = [i for i in range(len(columns)) if len(columns) > 1]
    for rows in (bad[:64], bad):  # a few rows rule out nearly all columns
        surplus = [i for i in surplus if _good_rows(np.delete(rows, i, axis=1)).all()]
    if len(surplus) == 1:
        column = columns[surplus[0]]
        return f"They all would without the column {column}: if that is not a class, add --ignore-columns {column}."
    sums, room = bad.sum(axis=1, dtype=np.float64), _ROUNDING * bad.shape[1]
    if np.isnan(bad).any():
        return "Write numbers there, or drop those rows; if a column is not a class, add --ignore-columns and its name."
    for total, what in ((1.0, "1 except for rounding"), (100.0, "100, as percentages do")):
        if (bad >= 0).all() and (np.abs(sums - total) <= total * room).all():
            return f"They sum to {what}: divide each row by its sum."
    return (
        "If they are logits (a model's outputs before softmax), add --logits; if a column is not a class, add "
        "--ignore-columns with its name."
    )


# -- numbers of a model, and features ----------------------------------------------------------------------------------


def read_numbers(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read ``node`` and ``lower``, ``upper`` (two quantiles), or ``prediction`` [, ``spread``]."""
    table = open_table(PROBABILITIES, path, reading)
    table.require("node")
    score = next((score for score in _SCORES if set(score.columns) <= set(table.columns)), None)
    if score is None:
        must = "have the columns lower and upper, or prediction and maybe spread, with --task regression"
        advice = "If they have other names, add --rename OLD=prediction"
        raise table.fault(must, f"has {', '.join(table.columns)}", advice)
    ids, rows = read_rows(table, score.columns)
    _refuse_infinite(table, score.columns, ids, rows)
    try:
        values = score.check(rows)
    except InvalidInputError as error:
        raise FileFormatError(f"`probabilities` cannot be used: {table.path}: {error}") from error
    notes = []
    crossed = int((values[:, 0] > values[:, 1]).sum()) if isinstance(score, CQR) else 0
    if 2 * crossed > len(values):  # that a few quantiles cross is what models do, and what CQR expects
        notes.append(
            f"lower is above upper in {crossed:,} of the {len(values):,} rows of `probabilities` ({table.path}): are "
            f"the two columns swapped? Each pair is put in order"
        )
    return NodeOutputs(ids, values, None, score, notes)


def read_features(path: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN) -> Block:
    """Read features into one row for each of `nodes`; each node must have a row.

    The table has the column ``node`` and one column per feature, or one list column ``features``.
    """
    table = open_table(FEATURES, path, reading)
    columns = _number_columns(table, "feature")
    ids, rows = read_rows(table, columns)
    known = place_rows(table, nodes, ids.values)
    missing = len(nodes) - int((known >= 0).sum())
    if missing:
        raise table.fault(f"have a row for each of the {len(nodes):,} nodes of `{nodes.name}`", f"lacks {missing:,}")
    _refuse_infinite(table, columns, ids, rows)
    features = np.empty((len(nodes), rows.shape[1]), dtype=rows.dtype)
    features[known[known >= 0]] = rows[known >= 0]
    return features
