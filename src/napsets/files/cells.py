"""The contents of cells in files: numbers as NumPy arrays; of sets files, lists of labels, and p-values by class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, sealed
from napsets.checks.values import shown
from napsets.errors import FileFormatError, arrow
from napsets.files.formats import TableFile
from napsets.files.npz_format import npz_arrays
from napsets.files.places import reading
from napsets.files.text_formats import number_advice


def label_lists(table: TableFile, lists: Any) -> Any:
    """Return the labels of each row as a list of text."""
    pa = arrow()
    if not table.typed:
        lists = pa.array([_parsed(table, text) for text in lists.to_pylist()], pa.list_(pa.string()))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise FileFormatError(f"`sets` must hold lists in its column labels; in {table.path} it is {lists.type}")
    flat = lists.flatten()
    if pa.types.is_nested(flat.type):
        raise FileFormatError(f"`sets` must hold lists of names in its column labels; {table.path} nests them")
    refuse_empty(table, "labels", lists, flat)
    return lists.cast(pa.large_list(pa.large_string()))


def _parsed(table: TableFile, text: str | None) -> list[str]:
    """Return the labels of a cell of CSV, a JSON array."""
    names = _json(text)
    if not isinstance(names, list) or {type(name) for name in names} not in (set(), {str}, {int}):
        raise FileFormatError(
            f"`sets` must hold a JSON array in each cell of its column labels; {table.path} has {shown(text)}. "
            f'The array holds names, as in ["cat", "dog"], or integers.'
        )
    return [str(name) for name in names]


def _json(text: str | None) -> Any:
    """Return what a cell of CSV says; None where it is not JSON."""
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return None


def predicted_names(table: TableFile, values: Any) -> Any:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    refuse_empty(table, "prediction", values)
    return values.cast(arrow().large_string())


def named_fields(table: TableFile, values: npt.NDArray[Any]) -> Any:
    """Return a matrix of npz as a structure with a field per class, which the metadata names."""
    names = table.about().get("class_names")
    if values.shape[1] == 0 or len(names or ()) != values.shape[1]:
        raise FileFormatError(
            f"`sets` must list a class in its metadata for each column of p_values, {values.shape[1]}; {table.path} "
            f"lists {len(names or ())}"
        )
    return arrow().StructArray.from_arrays(list(map(arrow().array, values.T)), names)


def p_value_fields(table: TableFile, values: Any) -> Any:
    """Return p-values as a structure with a field per class."""
    pa = arrow()
    if not table.typed:
        values = pa.array([_object(table, text) for text in values.to_pylist()])
    types = pa.types
    if not types.is_struct(values.type) or not values.type.num_fields:
        raise FileFormatError(
            f"`sets` must hold a number for each class in its column p_values; in {table.path} it is {values.type}"
        )
    parts = values.flatten()
    refuse_empty(table, "p_values", values, *parts)
    if not all(types.is_floating(part.type) or types.is_integer(part.type) for part in parts):
        raise FileFormatError(f"`sets` must hold numbers in its column p_values; in {table.path} it is {values.type}")
    names = [field.name for field in values.type]
    return pa.StructArray.from_arrays([part.cast(pa.float64()) for part in parts], names)


def _object(table: TableFile, text: str | None) -> dict[str, Any]:
    """Return the p-values of a cell of CSV, a JSON object."""
    numbers = _json(text)
    if not isinstance(numbers, dict) or not all(type(value) in (int, float) for value in numbers.values()):
        raise FileFormatError(
            f"`sets` must hold a JSON object in each cell of its column p_values, as in "
            f'{{"cat": 0.41, "dog": 0.02}}; {table.path} has {shown(text)}'
        )
    return numbers


def p_value_matrix(table: TableFile, values: Any, class_names: list[str]) -> FloatArray:
    """Return p-values with one column per class, in the order of the classes."""
    names = [field.name for field in values.type]
    if sorted(names) != sorted(class_names):
        raise FileFormatError(
            f"`sets` must have p_values of the classes of its metadata; {table.path} has those of {shown(names)}"
        )
    matrix = np.column_stack([values.field(name).to_numpy(zero_copy_only=False) for name in class_names])
    wrong = ~((matrix >= 0) & (matrix <= 1)).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise FileFormatError(f"each of p_values of `sets` must be from 0 to 1; row {row} of {table.path} has others")
    return matrix


def class_codes(table: TableFile, labels: Any, class_names: list[str], what: str) -> IntArray:
    """Return labels as class indices."""
    pc = arrow().compute
    codes = pc.index_in(labels, value_set=arrow().array(class_names, labels.type))
    if codes.null_count:
        strange = labels.filter(pc.is_null(codes))[0].as_py()
        raise FileFormatError(
            f"`sets` must hold {what} that are among the class_names of its metadata; {table.path} has {strange!r}"
        )
    return plain_array(codes).astype(np.int64)


#: Columns that a file of predictions may have in addition to node and probabilities.
_COMPANIONS = ("label", "split")


def number_rows(
    table: TableFile, batch: Any, columns: Sequence[str], first: int, *, list_column: str, booleans: bool = False
) -> npt.NDArray[Any]:
    """Return a batch's rows of numbers: float32 where the file has float32, otherwise float64.

    They are in one column per number, or in the list column alone; `first` is the row of the file that the batch begins
    with. With `booleans`, true and false count as numbers.
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
    return plain_array(numbers)


def check_width(table: TableFile, block: npt.NDArray[Any], width: int) -> None:
    """Refuse rows that are longer or shorter than those before them."""
    if block.shape[1] != width:
        raise FileFormatError(
            f"`{table.name}` must have the same number of entries in each row, {width}; {table.path} has a row of "
            f"{block.shape[1]}"
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
    refuse_empty(table, column, values, first=first)
    array = plain_array(values)
    return array.astype(str) if array.dtype == object else array


def refuse_empty(table: TableFile, column: str, *values: Any, first: int | None = None) -> None:
    """Refuse a column with empty cells; the rows of a batch that begins at row `first` of the file are named."""
    if any(part.null_count for part in values):
        where = f", among the rows from {first} on. Fill them in, drop those rows, or drop that column."
        raise FileFormatError(
            f"`{table.name}` must have no empty cell; the column {column} of {table.path} has some"
            f"{'' if first is None else where}"
        )


def plain_array(values: Any) -> npt.NDArray[Any]:
    """Return an Arrow array as one of NumPy."""
    array: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


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
    refuse_empty(table, column, values, first=first)
    return plain_array(values)


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
            f"`{table.name}` must have the same number of entries in each row, at least one; row {first + row} of "
            f"{table.path} has {lengths[row]}, row {first} has {size}"
        )
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return values.astype(dtype, copy=False).reshape(-1, size)
