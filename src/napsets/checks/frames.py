"""Arguments with names of rows and columns: node ids, the index of pandas frames, names of classes.

Rows with an index are brought into one order, and indexes that differ are rejected. Columns with names name the
classes, and labels may be such names. Nothing here imports pandas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, IntArray, as_column, check_integers
from napsets.checks.values import Record, Values, check_names, plain, shown
from napsets.errors import InvalidInputError

Names = AnyArray


def align(rows: Values, ids: Any = None, names: Names | None = None) -> tuple[Record, Any]:
    """Bring arguments with one entry per node into one order by their pandas indexes, those that have one.

    The order is that of `ids`, or else of `names` (the graph's), or else of the first index. Rows whose index holds
    0..n−1 in any order go back to these positions; where there are ids or names, an index that merely counts from 0
    says nothing. Returned with the rows is what the nodes are called, if by anything but 0..n−1.
    """
    aligned = dict(rows)
    indexes = {name: index for name, value in rows.items() if (index := index_of(value)) is not None}
    if not indexes:
        return aligned, ids
    first, order = next(iter(indexes.items()))
    known = ids if ids is not None else names
    if known is not None:
        order = as_column("ids", known)
    elif order.dtype.kind in "iu" and counts_from_0(np.sort(order)):
        order = np.arange(order.size)
    for name, index in indexes.items():
        if known is not None and (counts_from_0(index) or index.shape != order.shape):
            continue  # other checks report the number of rows
        if not _same(index, order):
            aligned[name] = rows[name].iloc[_places(name, index, order, "ids" if known is not None else first)]
    return aligned, None if order.dtype.kind in "iu" and counts_from_0(order) else order


def index_of(value: object) -> Names | None:
    """Return the index of a pandas object; None for anything else."""
    return np.asarray(value.index) if hasattr(value, "iloc") and hasattr(value, "index") else None


def has_own_index(value: object) -> bool:
    """Whether a pandas object has an index other than the default, which counts from 0."""
    index = index_of(value)
    return index is not None and not counts_from_0(index)


def counts_from_0(index: Names) -> bool:
    """Whether an index counts from 0, as the default index does."""
    return index.dtype.kind in "iu" and bool((index == np.arange(index.size)).all())


def _same(first: Names, second: Names) -> bool:
    return first.shape == second.shape and bool(np.all(first == second))


def _places(name: str, index: Names, order: Names, of: str) -> IntArray:
    """Return the rows of an index in another order; an index with other entries is rejected."""
    places = find_rows(index, order)
    if index.shape == order.shape and places.min(initial=0) >= 0:
        return places
    lost = np.flatnonzero(places < 0)
    which = f"it lacks {shown(order[lost[0]])}" if lost.size else "it has more rows"
    expected = "the `ids` for an index" if of == "ids" else f"the index of `{of}`"
    raise InvalidInputError(
        f"`{name}` must have {expected}; {which}. Reindex it (.reindex(index, fill_value=-1) where labels are "
        f"unknown), or pass it with .to_numpy() if its rows are in the same order"
    )


def find_rows(known: Names, wanted: Names) -> IntArray:
    """Return the place of each name among the known ones, which may be in any order; −1 if it is not among them."""
    if known.dtype == object or (known.dtype.kind in "UO" and wanted.dtype.kind in "UO"):
        rows = {name: row for row, name in enumerate(known.tolist())}
        return np.array([rows.get(name, -1) for name in wanted.tolist()], dtype=np.int64)
    if known.dtype.kind not in "iu" or wanted.dtype.kind not in "iu" or not known.size:
        return np.full(wanted.size, -1, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known[order], wanted), known.size - 1)
    matches: IntArray = np.where(known[order[places]] == wanted, order[places], -1)
    return matches


def find_nodes(name: str, value: Any, ids: Names | None, *, hint: str) -> Any:
    """Convert ids of nodes to their positions; masks and positions are returned unchanged.

    Values are taken for ids where `ids` are of the same type, integers or text. Messages end with a `hint` how to
    pass positions instead.
    """
    column = as_column(name, value)
    if column.dtype == np.bool_:
        return align({name: value}, ids)[0][name]
    text = column.dtype.kind in "UO" and column.size > 0 and all(isinstance(item, str) for item in column.flat)
    if not text and (ids is None or ids.dtype.kind not in "iu"):
        return value
    if ids is None or (text and ids.dtype.kind not in "UO"):
        raise InvalidInputError(
            f"`{name}` must be numbers, unless the nodes' names are passed to calibrate(...) as ids="
        )
    wanted = column.reshape(-1) if text else check_integers(name, column.reshape(-1))
    rows, what = find_rows(ids, wanted), "names" if text else "ids"
    lost = rows < 0
    if lost.any():
        instead = "" if text else f". For positions pass {hint}"
        raise InvalidInputError(
            f"`{name}` must hold {what} that are among the ids; {int(lost.sum())} are not, "
            f"{shown(plain(wanted[lost][0]))} first{instead}"
        )
    _, inverse, counts = np.unique(ids.astype(str) if text else ids, return_inverse=True, return_counts=True)
    twice = counts[inverse[rows]] > 1
    if twice.any():
        raise InvalidInputError(
            f"`{name}` must hold {what} of one node each; several are called {shown(plain(wanted[twice][0]))}"
        )
    return rows


#: The names that Polars gives to unnamed columns.
_UNNAMED = re.compile(r"column_\d+")
_NUMBER = re.compile(r"-?\d+")


def named_columns(table: Any, class_names: Sequence[str] | None) -> tuple[Any, Sequence[str] | None]:
    """Return probabilities with their columns in the order of the classes, and the names of the classes.

    Columns that are numbered 0..C−1 in any order go back into this order, as rows do by their index. Without
    `class_names`, the columns of a frame name the classes.
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
        as_text = list(map(str, names))
        if sorted(class_names) == sorted(as_text) and list(class_names) != as_text:
            raise InvalidInputError(
                f"`class_names` must be in the order of the columns of `probabilities`, {shown(names)}; got "
                f"{shown(list(class_names))}. Leave `class_names` out, or reorder the columns."
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


def check_class_names(names: Sequence[str] | None, classes: int, score: object = None) -> tuple[str, ...] | None:
    """Return the names of the classes, or None."""
    if names is None:
        return None
    if not classes:
        raise InvalidInputError(f"`class_names` must be None with a score of numbers; {type(score).__name__} is one")
    checked = tuple(check_names("class_names", names) or ())
    if len(checked) != classes:
        raise InvalidInputError(f"`class_names` must have one name per class, {classes}; got {len(checked)}")
    return checked


def label_numbers(labels: ArrayLike, class_names: Sequence[str] | None) -> ArrayLike:
    """Return labels as numbers of classes, −1 where one is missing: None, NaN or a null of another library.

    Integers are such numbers already, names are looked up among those of the classes, and whole numbers that missing
    entries made floats become integers again. A single column is one label per row. Anything else is returned
    unchanged, for other checks to reject.

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
        _reject_other_numbers(column, class_names)
        return column
    return _looked_up(column, class_names)


def _reject_other_numbers(column: AnyArray, class_names: Sequence[str] | None) -> None:
    """Reject integers where the names of classes are other integers: labels could mean either."""
    if class_names is None or column.dtype.kind not in "iu" or not all(map(_NUMBER.fullmatch, class_names)):
        return
    if [int(name) for name in class_names] != list(range(len(class_names))):
        raise InvalidInputError(
            f"`labels` must be class names, as text, where classes are called by numbers that do not count from 0, "
            f"{shown(list(class_names))}: pass them with .astype(str). Without class names (.to_numpy() of a frame), "
            f"labels count from 0."
        )


def _looked_up(column: AnyArray, class_names: Sequence[str] | None) -> AnyArray:
    """Return the class numbers of a column of names or of Python integers."""
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


def _is_missing(item: object) -> bool:
    """Whether an entry is missing: None, NaN, or pandas' NA and NaT."""
    return item is None or type(item).__name__ in ("NAType", "NaTType") or (isinstance(item, float) and item != item)
