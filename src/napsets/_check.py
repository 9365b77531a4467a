"""Turning what users pass into arrays, or into an error that names the argument.

Each function takes the argument's name first, because that name opens the message:
what it must be, then what came.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Protocol, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from napsets.errors import InvalidInputError

__all__ = [
    "ArrayLike",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "as_array",
    "check_alpha",
    "check_count",
    "check_index",
    "check_integers",
    "check_labels",
    "check_probabilities",
    "check_scores",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: How far a row of probabilities may be from summing to 1: float32 softmax is within 1e-6,
#: probabilities written with four decimals within 1e-3.
ROW_SUM_TOLERANCE = 1e-3


class HasArray(Protocol):
    """Anything NumPy can convert, torch tensors among them."""

    def __array__(self) -> npt.NDArray[Any]:
        """Return the values as a NumPy array."""


ArrayLike = npt.ArrayLike | HasArray


def as_array(name: str, value: object) -> npt.NDArray[Any]:
    """Convert lists, NumPy arrays, torch tensors (of any device, with or without gradient) and their kin."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must be an array; got {type(value).__name__}: {error}") from error
    if array.dtype == object:
        raise InvalidInputError(f"`{name}` must be an array of numbers; got an array of Python objects")
    return array


def check_integers(name: str, value: object, *, ndim: int = 1) -> npt.NDArray[Any]:
    """Integers of any width, kept at that width; whole floats are refused, an empty list is not."""
    array = as_array(name, value)
    if array.ndim != ndim:
        raise InvalidInputError(f"`{name}` must have {ndim} dimension{'s' * (ndim > 1)}; got shape {array.shape}")
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"`{name}` must hold integers; got dtype {array.dtype}")
    return array


def check_index(name: str, value: object, size: int, *, unique: bool = False) -> IntArray:
    """Node indices in 0..size−1, from an index array or a boolean mask of length `size`."""
    array = as_array(name, value)
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise InvalidInputError(
                f"`{name}` as a boolean mask must have one entry a node, shape ({size},); got {array.shape}"
            )
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.ndim == 0:
        array = array.reshape(1)
    array = check_integers(name, array)
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            raise InvalidInputError(f"`{name}` must hold ids from 0 to {size - 1}; got {low if low < 0 else high}")
    index = array.astype(np.int64, copy=False)
    if unique and index.size:
        counts = np.bincount(index, minlength=0)
        if counts.max() > 1:
            raise InvalidInputError(
                f"`{name}` must not repeat a node; node {int(counts.argmax())} appears {counts.max()} times"
            )
    return index


def check_probabilities(value: object, *, num_nodes: int | None = None) -> npt.NDArray[Any]:
    """Rows on the simplex, float32 or float64, kept at that width."""
    array = as_array("probabilities", value)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInputError(
            f"`probabilities` must have shape (nodes, classes) with at least one class; got {array.shape}"
        )
    if num_nodes is not None and array.shape[0] != num_nodes:
        raise InvalidInputError(
            f"`probabilities` must have one row a node of the graph, {num_nodes}; got {array.shape[0]} rows"
        )
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    elif array.dtype not in (np.float32, np.float64):
        raise InvalidInputError(f"`probabilities` must be float32 or float64; got dtype {array.dtype}")
    array = np.ascontiguousarray(array)
    sums = array.sum(axis=1, dtype=np.float64)
    finite = np.isfinite(sums)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InvalidInputError(f"`probabilities` must be finite; row {row} has a NaN or infinite entry")
    if array.size and array.min() < 0:
        row, column = divmod(int(array.argmin()), array.shape[1])
        raise InvalidInputError(
            f"`probabilities` must not be negative; row {row}, class {column} is {array[row, column]:.6g}"
        )
    off = np.abs(sums - 1.0)
    if off.size and off.max() > ROW_SUM_TOLERANCE:
        row = int(np.argmax(off > ROW_SUM_TOLERANCE))
        raise InvalidInputError(f"`probabilities` must have rows that sum to 1; row {row} sums to {sums[row]:.6g}")
    return array


def check_labels(value: object, *, size: int, num_classes: int) -> IntArray:
    """One label a node: 0..num_classes−1, or −1 for unknown."""
    array = check_integers("labels", value)
    if array.shape[0] != size:
        raise InvalidInputError(f"`labels` must have one entry a node, {size} (−1 where unknown); got {array.shape[0]}")
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < -1 or high >= num_classes:
            raise InvalidInputError(
                f"`labels` must be from 0 to {num_classes - 1}, or −1 for unknown; got {low if low < -1 else high}"
            )
    return array.astype(np.int64, copy=False)


def check_scores(name: str, value: object, *, size: int | None = None) -> FloatArray:
    """Return a vector of scores without NaN, as float64; −0.0 becomes 0.0, so that equal scores have equal bits."""
    array = as_array(name, value)
    if array.ndim != 1:
        raise InvalidInputError(f"`{name}` must have 1 dimension; got shape {array.shape}")
    if size is not None and array.shape[0] != size:
        raise InvalidInputError(f"`{name}` must have one entry a calibration node, {size}; got {array.shape[0]}")
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"`{name}` must hold numbers; got dtype {array.dtype}")
    scores = array.astype(np.float64, copy=False) + 0.0
    missing = np.isnan(scores)
    if missing.any():
        raise InvalidInputError(f"`{name}` must not be NaN; entry {int(missing.argmax())} is")
    return scores


def check_alpha(value: object) -> float:
    """One error rate strictly between 0 and 1."""
    try:
        alpha = float(cast(Any, value))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`alpha` must be a number between 0 and 1; got {value!r}") from error
    if not 0.0 < alpha < 1.0:  # NaN fails this too
        raise InvalidInputError(f"`alpha` must lie strictly between 0 and 1; got {alpha:g}")
    return alpha


def check_count(name: str, value: object, *, minimum: int = 0) -> int:
    """Return an integer of at least `minimum`."""
    try:
        count = operator.index(cast(SupportsIndex, value))
    except TypeError as error:
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            count = int(value)
        else:
            raise InvalidInputError(f"`{name}` must be an integer; got {value!r}") from error
    if count < minimum:
        raise InvalidInputError(f"`{name}` must be at least {minimum}; got {count}")
    return count
