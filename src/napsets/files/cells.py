"""What stands in the cells of a sets file: lists of labels, predicted labels, and p-values by class."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, shown
from napsets.errors import FileFormatError
from napsets.files.formats import TableFile, arrow

__all__ = ["class_codes", "cuts", "label_lists", "named_fields", "p_value_fields", "p_value_matrix"]
__all__ += ["predicted_names"]


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
    if lists.null_count or flat.null_count:
        raise FileFormatError(f"`sets` must have no empty cell; the column labels of {table.path} has some")
    return lists.cast(pa.large_list(pa.large_string()))


def _parsed(table: TableFile, text: str | None) -> list[str]:
    """Return the labels of a cell of CSV, a JSON array."""
    try:
        names = json.loads(text or "")
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or {type(name) for name in names} not in (set(), {str}, {int}):
        cell = repr(text) if text is None or len(text) <= 80 else repr(text[:80]) + "…"
        raise FileFormatError(
            f"`sets` must hold a JSON array in each cell of its column labels; {table.path} has {cell}. "
            f'The array holds names, as in ["cat", "dog"], or integers.'
        )
    return [str(name) for name in names]


def predicted_names(table: TableFile, values: Any) -> Any:
    """Return predicted labels as text."""
    types = arrow().types
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_integer(values.type)):
        raise FileFormatError(f"`sets` must hold names in its column prediction; in {table.path} it is {values.type}")
    if values.null_count:
        raise FileFormatError(f"`sets` must have no empty cell; the column prediction of {table.path} has some")
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
    if values.null_count or any(part.null_count for part in parts):
        raise FileFormatError(f"`sets` must have no empty cell; the column p_values of {table.path} has some")
    if not all(types.is_floating(part.type) or types.is_integer(part.type) for part in parts):
        raise FileFormatError(f"`sets` must hold numbers in its column p_values; in {table.path} it is {values.type}")
    names = [field.name for field in values.type]
    return pa.StructArray.from_arrays([part.cast(pa.float64()) for part in parts], names)


def _object(table: TableFile, text: str | None) -> dict[str, Any]:
    """Return the p-values of a cell of CSV, a JSON object."""
    try:
        numbers = json.loads(text or "")
    except (ValueError, RecursionError):
        numbers = None
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
    indices: IntArray = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices


def cuts(offsets: npt.NDArray[Any], sets: int, labels: int) -> bool:
    """Whether offsets cut this many labels into this many sets."""
    if offsets.dtype.kind not in "iu" or offsets.size != sets + 1:
        return False
    return bool(offsets[0] == 0 and offsets[-1] == labels and (offsets[1:] >= offsets[:-1]).all())
