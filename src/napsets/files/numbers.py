"""Tables with a row of numbers a node: ids in batches that become one column, numbers that must be numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, arrow
from napsets.files.ids import IdKind, looks_integer

__all__ = ["joined_ids", "list_rows", "number_column"]

#: What a file of predictions may carry beside node and probabilities.
_COMPANIONS = ("label", "split")


def joined_ids(table: TableFile, parts: list[Any], ids: IdKind) -> Any:
    """Return the ids of all batches as one Arrow array; text from a CSV becomes integers where it all looks so."""
    pa = arrow()
    kinds = sorted({str(part.type) for part in parts})
    if len(kinds) > 1:
        raise FileFormatError(
            f"`{table.name}` must have ids of one type in all its parts; {table.path} has {' and '.join(kinds)}"
        )
    column = pa.chunked_array(parts).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if not pa.types.is_integer(column.type):
        guessed = ids == "auto" and not table.typed and looks_integer(column)
        if ids == "integer" and not looks_integer(column):
            raise FileFormatError(
                f"`{table.name}` must have integer ids, as --ids integer asks; {table.path} does not. "
                f"Leave --ids out to keep its ids as text."
            )
        if guessed or ids == "integer":
            return column.cast(pa.int64())
    return column


def number_column(
    table: TableFile, values: Any, column: str, first: int, *, booleans: bool = False
) -> npt.NDArray[Any]:
    """Return a batch's numbers; `first` is the row of the file that the batch begins with."""
    types = arrow().types
    if not (
        types.is_floating(values.type) or types.is_integer(values.type) or (booleans and types.is_boolean(values.type))
    ):
        companion = " A list column named probabilities may stand beside it." if column in _COMPANIONS else ""
        raise FileFormatError(
            f"`{table.name}` must hold numbers in every column but node; the column {column} of {table.path} is "
            f"{values.type}. Drop that column.{companion}"
        )
    if values.null_count:
        raise FileFormatError(
            f"`{table.name}` must have no empty cell; the column {column} of {table.path} has some, among the rows "
            f"from {first} on. Fill them in, drop those rows, or drop that column."
        )
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def list_rows(table: TableFile, lists: Any, column: str, first: int) -> npt.NDArray[Any]:
    """Turn lists of one length into rows, without a Python object a row."""
    types = arrow().types
    if not (types.is_list(lists.type) or types.is_large_list(lists.type) or types.is_fixed_size_list(lists.type)):
        raise FileFormatError(
            f"`{table.name}` must hold a list of numbers in each row of its column {column}; in {table.path} that "
            f"column is {lists.type}. Write one column a number beside node, or lists in Parquet or npz."
        )
    values = number_column(table, lists.flatten(), column, first)
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
