"""Columns of numbers as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.frozen import sealed
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, arrow
from napsets.files.npz_format import npz_arrays
from napsets.files.places import reading
from napsets.files.text_formats import number_advice

__all__ = ["check_width", "number_rows", "numbers_or_nan", "whole_columns"]

#: Columns that a file of predictions may have in addition to node and probabilities.
_COMPANIONS = ("label", "split")


def number_rows(
    table: TableFile, batch: Any, columns: Sequence[str], first: int, *, list_column: str, booleans: bool = False
) -> npt.NDArray[Any]:
    """Return a batch's rows of numbers: float32 where the file has float32, otherwise float64.

    Parameters
    ----------
    table : TableFile
        Where the batch comes from.
    batch : pyarrow.RecordBatch
        Some of its rows.
    columns : sequence of str
        One column per number, or the list column alone.
    first : int
        The row of the file that the batch begins with.
    list_column : str
        What the list column is called.
    booleans : bool
        Whether true and false count as numbers.
    """
    if list(columns) == [list_column]:
        return _list_rows(table, batch.column(list_column), list_column, first)
    narrow = all(arrow().types.is_float32(batch.column(name).type) for name in columns)
    block = np.empty((batch.num_rows, len(columns)), dtype=np.float32 if narrow else np.float64)
    for i, name in enumerate(columns):
        block[:, i] = _number_column(table, batch.column(name), name, first, booleans=booleans)
    return block


def numbers_or_nan(table: TableFile, values: Any, column: str) -> npt.NDArray[np.float64]:
    """Return a column of numbers, or of text that reads as numbers, with NaN for empty cells."""
    pa = arrow()
    types = pa.types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kinds = ("integer", "floating", "decimal", "null", "string", "large_string")
    wanted = f"`{table.name}` must hold numbers in the column {column}; in {table.path}"
    if not any(getattr(types, f"is_{kind}")(values.type) for kind in kinds):
        raise FileFormatError(f"{wanted} it is {values.type}")
    try:
        numbers = values.cast(pa.float64(), safe=False)  # integers may be larger than a float knows to the last digit
    except pa.ArrowInvalid as error:
        raise FileFormatError(f"{wanted} not all of it is: {error}") from error
    array: npt.NDArray[np.float64] = numbers.to_numpy(zero_copy_only=False)
    return array


def check_width(table: TableFile, block: npt.NDArray[Any], width: int) -> None:
    """Refuse rows that are longer or shorter than those before them."""
    if block.shape[1] != width:
        raise FileFormatError(
            f"`{table.name}` must have as many entries in each row, {width}; {table.path} has a row of {block.shape[1]}"
        )


def whole_columns(table: TableFile, columns: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return whole columns as arrays, sealed: text as text, numbers as they are, lists of one length as rows."""
    if table.format == "npz":  # which needs no PyArrow
        with reading(table.path, table.name):
            arrays = npz_arrays(table.name, table.path, columns)
    else:
        parts: dict[str, list[npt.NDArray[Any]]] = {column: [] for column in columns}
        filled = 0
        for batch in table.batches(columns):
            for column in columns:
                block = _plain_column(table, batch.column(column), column, filled)
                if block.ndim == 2 and parts[column]:
                    check_width(table, block, parts[column][0].shape[1])
                parts[column].append(block)
            filled += batch.num_rows
        if not filled:
            raise FileFormatError(f"`{table.name}` must have at least one row; {table.path} has none")
        arrays = {column: np.concatenate(blocks) for column, blocks in parts.items()}
    return {column: sealed(array) for column, array in arrays.items()}


def _plain_column(table: TableFile, values: Any, column: str, first: int) -> npt.NDArray[Any]:
    types = arrow().types
    if types.is_nested(values.type):
        return _list_rows(table, values, column, first)
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    _refuse_empty(table, values, column, first)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array.astype(str) if array.dtype == object else array


def _refuse_empty(table: TableFile, values: Any, column: str, first: int) -> None:
    if values.null_count:
        raise FileFormatError(
            f"`{table.name}` must have no empty cell; the column {column} of {table.path} has some, among the rows "
            f"from {first} on. Fill them in, drop those rows, or drop that column."
        )


def _number_column(
    table: TableFile, values: Any, column: str, first: int, *, booleans: bool = False
) -> npt.NDArray[Any]:
    types = arrow().types
    if types.is_decimal(values.type):  # what SQL makes of 0.5
        values = values.cast(arrow().float64())
    if not (
        types.is_floating(values.type) or types.is_integer(values.type) or (booleans and types.is_boolean(values.type))
    ):
        companion = " A list column named probabilities may be in the file too." if column in _COMPANIONS else ""
        raise FileFormatError(
            f"`{table.name}` must hold numbers in every column but node; the column {column} of {table.path} is "
            f"{values.type}. If it is not a class, add --ignore-columns {column}.{companion}{_number_hint(values)}"
        )
    _refuse_empty(table, values, column, first)
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _number_hint(values: Any) -> str:
    """Say how text that nearly is numbers can be read, by its first cell."""
    types = arrow().types
    texts = values.drop_null() if types.is_string(values.type) or types.is_large_string(values.type) else []
    return f" {number_advice(str(texts[0].as_py()))}".rstrip() if len(texts) else ""


def _list_rows(table: TableFile, lists: Any, column: str, first: int) -> npt.NDArray[Any]:
    """Turn lists of one length into rows, without one Python object per row."""
    types = arrow().types
    if not (types.is_list(lists.type) or types.is_large_list(lists.type) or types.is_fixed_size_list(lists.type)):
        raise FileFormatError(
            f"`{table.name}` must hold a list of numbers in each row of its column {column}; in {table.path} that "
            f"column is {lists.type}. Write one column per number in addition to node, or lists in Parquet or npz."
        )
    values = _number_column(table, lists.flatten(), column, first)
    lengths = arrow().compute.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    size = int(lengths[0]) if len(lengths) else 0
    if size == 0 or (lengths != size).any():
        row = int((lengths != size).argmax())
        raise FileFormatError(
            f"`{table.name}` must have as many entries in each row, at least one; row {first + row} of {table.path} "
            f"has {lengths[row]}, row {first} has {size}"
        )
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return values.astype(dtype, copy=False).reshape(-1, size)
