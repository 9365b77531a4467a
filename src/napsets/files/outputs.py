"""Reading what is known of nodes in rows of numbers: probabilities of classes, numbers of a model, features."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ROW_SUM_TOLERANCE, BoolArray, sealed
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, number_advice, open_table
from napsets.files.ids import NodeIds, id_column, own_ids, place_rows
from napsets.files.reading import PLAIN, Reading
from napsets.scores import CQR, AbsoluteResidual, NormalisedResidual

if TYPE_CHECKING:
    import pyarrow as pa

    Values: TypeAlias = pa.Array | pa.ChunkedArray

#: The list columns of probabilities and of features.
LIST_COLUMN, FEATURES = "probabilities", "features"

#: Columns that a file of predictions may have in addition to node and probabilities.
_COMPANIONS = ("label", "split")

#: Rows that are changed at a time.
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
        raise FileFormatError(f"`{table.name}` must have at least one row; {table.path} has none")
    ids = id_column(table, rows)
    if list(columns) in ([LIST_COLUMN], [FEATURES]):
        return own_ids(table, ids), _list_rows(table, rows[columns[0]].combine_chunks(), columns[0], ids)
    narrow = all(arrow().types.is_float32(kind) for kind in rows.schema.types[1:])
    values = np.empty((len(rows), len(columns)), dtype=np.float32 if narrow else np.float64)
    for place, column in enumerate(columns):
        values[:, place] = number_column(table, rows.column(1 + place), column, ids)
    return own_ids(table, ids), values


def _list_rows(table: TableFile, lists: pa.Array, column: str, ids: pa.ChunkedArray) -> Block:
    """Turn lists of one length into rows, without a Python object per row."""
    types = arrow().types
    if not (types.is_list(lists.type) or types.is_large_list(lists.type) or types.is_fixed_size_list(lists.type)):
        raise FileFormatError(
            f"`{table.name}` must hold a list of numbers in each row of its column {column}; in {table.path} that "
            f"column is {lists.type}. Write one column per number in addition to node, or lists in Parquet."
        )
    lengths = plain_array(arrow().compute.list_value_length(lists).fill_null(0))
    size = int(lengths[0])
    if size == 0 or (lengths != size).any():
        row = int((lengths != size).argmax())
        raise FileFormatError(
            f"`{table.name}` must have the same number of entries in each row, at least one; "
            f"{table.at(row, ids[row].as_py())} has {lengths[row]}, the first has {size}"
        )
    values = number_column(table, lists.flatten(), column, ids, width=size)
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return values.astype(dtype, copy=False).reshape(-1, size)


def number_column(
    table: TableFile, values: Values, column: str, ids: pa.ChunkedArray | None = None, *, width: int = 1
) -> Block:
    """Return a column of numbers without empty cells; true and false are numbers among features.

    A row has `width` numbers, and the node that `ids` name, for messages.
    """
    types = arrow().types
    if types.is_decimal(values.type):  # what SQL makes of 0.5
        values = values.cast(arrow().float64())
    truth_values = table.name == FEATURES and types.is_boolean(values.type)
    if not (types.is_floating(values.type) or types.is_integer(values.type) or truth_values):
        wanted = f"`{table.name}` must hold numbers in its column {column}; in {table.path} it is {values.type}"
        raise FileFormatError(wanted + (_class_advice(values, column) if table.name == LIST_COLUMN else ""))
    refuse_empty(table, column, values, ids=ids, width=width)
    return plain_array(values)


def _class_advice(values: pa.Array, column: str) -> str:
    """Say what to do with a column of probabilities that holds no numbers."""
    types = arrow().types
    advice = f". If it is not a class, add --ignore-columns {column}."
    if column in _COMPANIONS:
        advice += " A list column named probabilities may be in the file too."
    texts = values.drop_null() if types.is_string(values.type) or types.is_large_string(values.type) else []
    return f"{advice} {number_advice(str(texts[0].as_py()))}".rstrip() if len(texts) else advice


def refuse_empty(
    table: TableFile, column: str, *values: Values, ids: pa.ChunkedArray | None = None, width: int = 1
) -> None:
    """Raise for a column with empty cells, and name the first; `ids` and `width` as in `number_column`."""
    for part in values:
        if part.null_count:
            row = arrow().compute.index(part.is_null(), True).as_py() // width
            raise FileFormatError(
                f"`{table.name}` must have no empty cell; the column {column} has one in "
                f"{table.at(row, None if ids is None else ids[row].as_py())}. Fill it in, drop that row, or drop that "
                f"column."
            )


def plain_array(values: Values) -> Block:
    """Return an Arrow column as an array of NumPy."""
    if isinstance(values, arrow().ChunkedArray):
        return np.asarray(values.to_numpy())
    array: Block = values.to_numpy(zero_copy_only=False)
    return array


# -- probabilities -----------------------------------------------------------------------------------------------------


def read_probabilities(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read a table of probabilities, batch by batch, into one array.

    It has the column ``node`` and either one column per class, named after it, or one list column ``probabilities``.
    """
    table = open_table("probabilities", path, reading)
    table.require("node")
    columns = [LIST_COLUMN] if LIST_COLUMN in table.columns else _class_columns(table)
    ids, values = read_rows(table, columns)
    if reading.logits:
        _check_finite(table, ids, values)
        _change_rows(values, _softmax)
    else:
        if reading.normalise:
            _change_rows(values, _normalised)
        _check_rows(table, columns, ids, values)
    # Read-only, so that it can be kept without a copy.
    return NodeOutputs(ids, sealed(values), _class_names(table, columns, values.shape[1]))


def _change_rows(values: Block, change: Callable[[Block], Block]) -> None:
    """Change rows in place, some at a time, so that little more than the array itself is held."""
    for start in range(0, len(values), _ROWS):
        values[start : start + _ROWS] = change(values[start : start + _ROWS])


def _class_columns(table: TableFile) -> list[str]:
    unused = table.reading.ignore_columns
    there = set(table.columns)
    missing = [column for column in unused if column not in there]
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
    if not isinstance(names, list):
        return [str(y) for y in range(classes)]
    if len(names) != classes:
        raise FileFormatError(
            f"`probabilities` must have as many entries in each row as its metadata names classes, {len(names)}; "
            f"{table.path} has {classes}"
        )
    return [str(name) for name in names]


def _check_finite(table: TableFile, ids: NodeIds, logits: Block) -> None:
    bad = ~np.isfinite(logits).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise FileFormatError(
            f"`probabilities` must have rows of finite numbers, also as logits; "
            f"{table.at(row, ids.values[row].as_py())} has {logits[row][~np.isfinite(logits[row])][0]:g}"
        )


def _softmax(logits: Block) -> Block:
    """Return exp(x) / Σ exp(x) of each row; the largest is taken off first, so that none overflows."""
    wide = logits.astype(np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    shares: Block = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _normalised(block: Block) -> Block:
    """Return rows divided by their sum, where that is 1 or 100 except for rounding; others as they are."""
    divided = block.astype(np.float64)
    sums, room = divided.sum(axis=1), _ROUNDING * block.shape[1]
    near = (np.abs(sums - 1.0) <= room) | (np.abs(sums - 100.0) <= 100.0 * room)
    divided[near] /= sums[near, None]
    return divided


def _check_rows(table: TableFile, columns: list[str], ids: NodeIds, values: Block) -> None:
    """Refuse rows that are no probabilities: say how many there are, which is the first, and what may be meant."""
    good = _good_rows(values)
    if good.all():
        return
    row, bad = int(good.argmin()), values[~good]
    unknown, total = ~np.isfinite(values[row]), values[row].sum(dtype=np.float64)
    what = f"sums to {total:.6g}"
    if unknown.any():
        column = int(unknown.argmax())
        where = f"the column {columns[column]}" if columns != [LIST_COLUMN] else f"entry {column}"
        what = f"has {values[row][column]:g} in {where}"
    elif values[row].min() < 0:
        what = f"has a negative entry, {values[row].min():.6g}"
    raise FileFormatError(
        f"`probabilities` must have rows of finite numbers, none negative, that sum to 1; {len(bad):,} of the "
        f"{len(values):,} rows of {table.path} do not: {table.at(row, ids.values[row].as_py(), path=False)} {what}. "
        f"{_remedy(bad, [] if columns == [LIST_COLUMN] else columns)}"
    )


def _good_rows(rows: Block) -> BoolArray:
    sums, lowest = rows.sum(axis=1, dtype=np.float64), rows.min(axis=1)
    good: BoolArray = (np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE) & (lowest >= 0)  # NaN is neither
    return good


def _remedy(bad: Block, columns: list[str]) -> str:
    """Say what may be meant by rows that are no probabilities."""
    surplus = [i for i in range(len(columns)) if len(columns) > 1]
    for rows in (bad[:64], bad):  # a few rows rule out nearly all columns
        surplus = [i for i in surplus if _good_rows(np.delete(rows, i, axis=1)).all()]
    if len(surplus) == 1:
        column = columns[surplus[0]]
        return f"They all would without the column {column}: if that is not a class, add --ignore-columns {column}."
    sums, room = bad.sum(axis=1, dtype=np.float64), _ROUNDING * bad.shape[1]
    if np.isnan(bad).any():
        return "Write numbers there, or drop those rows; if a column is not a class, add --ignore-columns and its name."
    if (bad >= 0).all() and (np.abs(sums - 1.0) <= room).all():
        return "They sum to 1 except for rounding: add --normalise, which divides each row by its sum."
    if (bad >= 0).all() and (np.abs(sums - 100.0) <= 100.0 * room).all():
        return "They sum to 100, as percentages do: add --normalise, which divides each row by its sum."
    return (
        "If they are logits (a model's outputs before softmax), add --logits; if a column is not a class, add "
        "--ignore-columns with its name."
    )


# -- numbers of a model, and features ----------------------------------------------------------------------------------


def read_numbers(path: str | os.PathLike[str], reading: Reading = PLAIN) -> NodeOutputs:
    """Read ``node`` and ``lower``, ``upper`` (two quantiles), or ``prediction`` [, ``spread``]."""
    table = open_table("probabilities", path, reading)
    table.require("node")
    score = next((score for score in _SCORES if set(score.columns) <= set(table.columns)), None)
    if score is None:
        raise FileFormatError(
            f"`probabilities` must have the columns lower and upper, or prediction and maybe spread, with --task "
            f"regression; {table.path} has {', '.join(table.columns)}. If they have other names, add --rename "
            f"OLD=prediction"
        )
    ids, rows = read_rows(table, score.columns)
    infinite = ~np.isfinite(rows).all(axis=1)
    if infinite.any():
        row = int(infinite.argmax())
        bad = int((~np.isfinite(rows[row])).argmax())
        raise FileFormatError(
            f"`probabilities` must hold finite numbers; {table.at(row, ids.values[row].as_py())} has "
            f"{rows[row][bad]:g} in the column {score.columns[bad]}"
        )
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


def feature_columns(table: TableFile) -> list[str]:
    """Return the columns of a table of features: the list column alone, where it has one."""
    table.require("node")
    columns = [FEATURES] if FEATURES in table.columns else [column for column in table.columns if column != "node"]
    if not columns:
        raise FileFormatError(f"`features` must have one column per feature in addition to node; {table.path} has none")
    return columns


def read_features(path: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN) -> Block:
    """Read features into one row for each of `nodes`; each node must have a row.

    The table has the column ``node`` and one column per feature, or one list column ``features``.
    """
    table = open_table("features", path, reading)
    ids, rows = read_rows(table, feature_columns(table))
    known = place_rows(table, nodes, ids.values)
    missing = len(nodes) - int((known >= 0).sum())
    if missing:
        raise FileFormatError(
            f"`features` must have a row for each of the {len(nodes):,} nodes of `{nodes.name}`; {table.path} lacks "
            f"{missing:,}"
        )
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise FileFormatError(
            f"`features` must hold finite numbers; {table.at(row, ids.values[row].as_py())} has "
            f"{rows[row][~np.isfinite(rows[row])][0]:g}"
        )
    features = np.empty((len(nodes), rows.shape[1]), dtype=rows.dtype)
    features[known[known >= 0]] = rows[known >= 0]
    return features
