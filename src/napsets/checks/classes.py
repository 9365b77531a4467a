"""What classes are called: names from the columns of a frame, and labels that are such names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray, as_column, check_names, plain, shown
from napsets.errors import InvalidInputError

__all__ = ["label_numbers", "named_columns"]

#: What Polars calls columns that nobody named.
_UNNAMED = re.compile(r"column_\d+")
_NUMBER = re.compile(r"-?\d+")


def named_columns(table: Any, class_names: Any) -> tuple[Any, Sequence[str] | None]:
    """Return probabilities with their columns in the order of the classes, and what the classes are called.

    Columns that are numbered 0..C−1 in any order go back into this order, as rows do by their index.

    Parameters
    ----------
    table : array or frame
        The probabilities.
    class_names : sequence of str or None
        What the user calls the classes; None for the column names of a frame.
    """
    columns = getattr(table, "columns", None)
    if columns is None or callable(columns) or not hasattr(table, "shape"):
        return table, class_names
    names = [plain(name) for name in columns]
    numbers = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
    if numbers and sorted(names) == list(range(len(names))):
        ordered = names == sorted(names)
        return table if ordered else table.iloc[:, np.argsort(names)], class_names
    if class_names is not None:
        listed = check_names("class_names", class_names) or ()
        if sorted(map(str, listed)) == sorted(map(str, names)) and list(map(str, listed)) != list(map(str, names)):
            raise InvalidInputError(
                f"`class_names` must be in the order of the columns of `probabilities`, {shown(names)}; got "
                f"{shown(list(listed))}. Leave `class_names` out, or reorder the columns."
            )
        return table, class_names
    if numbers:
        raise InvalidInputError(
            f"`probabilities` must have columns that are class names, or numbered from 0; they are numbered "
            f"{shown(names)}. Pass them with .to_numpy() where labels count from 0, or rename both columns and labels "
            f"with .astype(str)."
        )
    if not names or not all(isinstance(name, str) for name in names) or all(map(_UNNAMED.fullmatch, names)):
        return table, None
    return table, names


def label_numbers(labels: Any, class_names: Sequence[str] | None) -> Any:
    """Return labels as numbers of classes, −1 where one is missing: None, NaN or a null of another library.

    Integers are such numbers already, names are looked up among those of the classes, and whole numbers that missing
    entries made floats become integers again. A single column is one label per row. Anything else is returned as it
    is, for other checks to refuse.

    Parameters
    ----------
    labels : array
        One label per node.
    class_names : sequence of str or None
        What the classes are called.

    Examples
    --------
    >>> label_numbers(["dog", None, "cat"], ["cat", "dog"]).tolist()
    [1, -1, 0]
    """
    if hasattr(labels, "toarray"):
        return labels
    column = as_column("labels", labels)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or not column.size:
        return column if column.ndim == 1 else labels
    if column.dtype.kind == "f":
        whole = np.where(np.isnan(column), -1.0, column)
        return whole.astype(np.int64) if (whole == np.round(whole)).all() and (np.abs(whole) < 2**53).all() else column
    if column.dtype.kind not in "UO":
        _refuse_other_numbers(column, class_names)
        return column
    return _looked_up(column, class_names)


def _refuse_other_numbers(column: npt.NDArray[Any], class_names: Sequence[str] | None) -> None:
    """Refuse integers where classes are called by other integers: which of the two they count is not known."""
    if class_names is None or column.dtype.kind not in "iu" or not all(map(_NUMBER.fullmatch, class_names)):
        return
    if [int(name) for name in class_names] != list(range(len(class_names))):
        raise InvalidInputError(
            f"`labels` must be class names, as text, where classes are called by numbers that do not count from 0, "
            f"{shown(list(class_names))}: pass them with .astype(str). Without class names (.to_numpy() of a frame), "
            f"labels count from 0."
        )


def _looked_up(column: npt.NDArray[Any], class_names: Sequence[str] | None) -> Any:
    """Return the numbers of classes that are named, or that a column of Python objects holds."""
    known = ~np.fromiter((_is_missing(item) for item in column), dtype=bool, count=column.size)
    present = column[known].tolist()
    numbers: IntArray = np.full(column.size, -1, dtype=np.int64)
    if all(isinstance(item, int) and not isinstance(item, bool) for item in present):
        if any(abs(item) >= 2**63 for item in present):
            return column
        numbers[known] = present
        return numbers
    if not all(isinstance(item, str) for item in present):
        return column
    if class_names is None:
        raise InvalidInputError(
            f"`labels` must hold integers; got names such as {shown(present[0])}. For names, pass class_names=[...] in "
            f"the order of the columns, or `probabilities` as a frame whose columns are called by the classes."
        )
    places = {name: place for place, name in enumerate(class_names)}
    if len(places) < len(class_names):
        raise InvalidInputError(
            f"`class_names` must be distinct where labels are names; got {shown(list(class_names))}"
        )
    lost = [name for name in present if name not in places]
    if lost:
        raise InvalidInputError(
            f"`labels` must be among the class names, {shown(list(class_names))}; {len(lost)} are not, "
            f"{shown(lost[0])} first"
        )
    numbers[known] = [places[name] for name in present]
    return numbers


def _is_missing(item: Any) -> bool:
    """Return whether an entry stands for nothing: None, NaN, or pandas' NA and NaT."""
    return item is None or type(item).__name__ in ("NAType", "NaTType") or (isinstance(item, float) and item != item)
