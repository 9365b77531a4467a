"""Convert what users pass to arrays, or raise an error that names the argument.

Each function takes the argument's name first, because that name opens the message:
what it must be, then what was passed.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.values import shown
from napsets.errors import InvalidInputError, NapsetsWarning, Surface, warn

#: An array of any type.
AnyArray = npt.NDArray[Any]
Array = TypeVar("Array", bound=AnyArray)


def frozen(array: Array) -> Array:
    """Return the array itself if nothing can write to its memory, otherwise a read-only copy.

    That memory may be an array's own, bytes, or a memoryview that is read-only. All other memory is copied, including
    memory maps, whose file may be written to.
    """
    memory: object = array
    while isinstance(memory, np.ndarray) and not memory.flags.writeable:
        memory = memory.base
    closed = memory is None or isinstance(memory, bytes) or (isinstance(memory, memoryview) and memory.readonly)
    if closed:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def sealed(array: Array) -> Array:
    """Mark an array that only napsets holds as read-only, in place, with the arrays that it is a view of."""
    view: object = array
    while isinstance(view, np.ndarray):
        view.flags.writeable = False
        view = view.base
    return array


class Sealed:
    """A frozen dataclass whose arrays are read-only, in other processes too: there it goes through its constructor.

    Only napsets holds these arrays. A class whose arrays come from users takes copies of them (see `frozen`).
    """

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[type[Sealed], tuple[object, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)  # type: ignore[arg-type]


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: How far a row of probabilities may be from summing to 1: float32 softmax is within 1e-6,
#: probabilities written with four decimals within 1e-3.
ROW_SUM_TOLERANCE = 1e-3

_ROUNDED = "if they were rounded, divide each row by its sum."
_SOFTMAX: dict[Surface, str] = {
    "python": "If they are logits, pass logits=True to calibrate(...), or put them through a softmax "
    f"(scipy.special.softmax(x, axis=1)); {_ROUNDED}",
    "terminal": f"If they are logits, add --logits; {_ROUNDED}",
    "http": f"If they are logits, put them through a softmax first; {_ROUNDED}",
}


#: Anything that NumPy can convert, torch tensors among them.
ArrayLike = npt.ArrayLike


def as_array(name: str, value: object) -> AnyArray:
    """Convert lists, NumPy arrays, torch tensors (of any device, with or without gradient) and similar objects."""
    if hasattr(value, "toarray"):
        raise InvalidInputError(f"`{name}` must be a dense array; got {type(value).__name__}: pass its .toarray()")
    array = value if type(value) is np.ndarray else as_column(name, value)
    if array.dtype == object:
        for item in array.flat:
            if isinstance(item, int) and not -(2**63) <= item < 2**64:
                raise InvalidInputError(f"`{name}` must hold numbers of at most 64 bits; got {shown(item)} among them")
        raise InvalidInputError(
            f"`{name}` must be an array of numbers; got an array of Python objects. If they are all numbers, convert "
            f"them with .astype(float) or .astype(int)."
        )
    if array.dtype.isbuiltin != 1 and array.dtype.name == "bfloat16":  # the name of a type takes long to make
        return array.astype(np.float32)
    return array


def as_column(name: str, value: object) -> AnyArray:
    """Convert values of any type, names among them."""
    if type(value) is np.ndarray:
        return value
    refuse_masked(name, value)
    refuse_batches(name, value)
    try:
        if hasattr(value, "detach"):  # a tensor goes to memory that NumPy can read, in a type that it supports
            tensor: Any = value.detach().cpu()
            value = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # other libraries' arrays raise what they like, tensors without data among them
        raise InvalidInputError(f"`{name}` must be an array; got {type(value).__name__}: {error}") from error


def refuse_batches(name: str, value: object) -> None:
    """Reject a list of matrices, and an iterator or a loader that makes them: rows of all nodes belong in one array."""
    wanted = f"`{name}` must be one array with an entry per node, in the order of the nodes"
    if isinstance(value, list | tuple):
        shapes = [shape for part in value[:2] if (shape := getattr(part, "shape", None)) is not None]
        if any(len(shape) > 1 for shape in shapes) or len(set(map(tuple, shapes))) > 1:
            joined = "torch.cat(batches)" if hasattr(value[0], "detach") else "np.concatenate(batches)"
            raise InvalidInputError(f"{wanted}; got a {type(value).__name__} of {len(value)} batches. Pass {joined}.")
    elif hasattr(value, "__next__") or (hasattr(value, "batch_size") and hasattr(value, "__iter__")):
        raise InvalidInputError(
            f"{wanted}; got a {type(value).__name__}. Run the model on its batches, and join the outputs."
        )


def refuse_masked(name: str, value: object) -> None:
    """Reject masked arrays with masked entries, alone or in a list: NumPy would use the hidden values."""
    for part in value if isinstance(value, list | tuple) else (value,):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise InvalidInputError(
                f"`{name}` must not be masked, because what a mask hides would count; {np.ma.getmaskarray(part).sum()} "
                f"entries are. Fill them (.filled(-1) for unknown labels) or drop them (.compressed())."
            )


def check_integers(name: str, value: object, *, ndim: int = 1) -> AnyArray:
    """Return integers at their own width; floats are rejected, except for an empty list."""
    return _integers(name, as_array(name, value), ndim)


def _integers(name: str, array: AnyArray, ndim: int = 1) -> AnyArray:
    if array.ndim != ndim:
        raise InvalidInputError(f"`{name}` must have {ndim} dimension{'s' * (ndim > 1)}; got shape {array.shape}")
    if array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"`{name}` must hold integers; got dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InvalidInputError(f"`{name}` must hold integers below 2^63; got {array.max()}")
    return array


def check_index(name: str, value: object, size: int, *, unique: bool = False, quiet: bool = False) -> IntArray:
    """Return node indices in 0..size−1, from indices or a boolean mask of length `size`; `quiet` omits warnings."""
    array = as_array(name, value)
    if array.dtype == np.bool_:
        if array.shape != (size,):
            split = ". Take one split of them, mask[:, 0]" if array.ndim == 2 and array.shape[0] == size else ""
            raise InvalidInputError(
                f"`{name}` as a boolean mask must have one entry per node, shape ({size},); got {array.shape}{split}"
            )
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.ndim == 0:
        array = array.reshape(1)
    array = _integers(name, array)
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            raise InvalidInputError(f"`{name}` must hold ids from 0 to {size - 1}; got {low if low < 0 else high}")
        if (low, high) == (0, 1) and array.size == size > 2 and not quiet:
            _suspect_mask(name, refuse=unique)
    index = np.ascontiguousarray(array, dtype=np.int64)  # as kernels are compiled for
    if unique and index.size:
        counts = np.bincount(index, minlength=0)
        if counts.max() > 1:
            raise InvalidInputError(
                f"`{name}` must not repeat a node; node {int(counts.argmax())} appears {counts.max()} times"
            )
    return index


def _suspect_mask(name: str, *, refuse: bool) -> None:
    """Reject integers that look like a mask where no node may repeat; elsewhere they may be meant, so warn."""
    what = "integers 0 and 1, one per node. If they are a mask, pass it with .astype(bool)"
    if refuse:
        raise InvalidInputError(f"`{name}` must hold node ids or be a boolean mask; got {what}.")
    warnings.warn(f"`{name}` is taken for node ids, the nodes 0 and 1 repeatedly; got {what}", NapsetsWarning, 4)


def check_node(name: str, value: object, size: int) -> int:
    """Return the id of one node, from 0 to size−1."""
    array = as_array(name, value)
    if array.size != 1 or array.dtype == np.bool_:
        what = "a mask" if array.dtype == np.bool_ else array.size
        raise InvalidInputError(f"`{name}` must be one node; got {what}. Pass one at a time, by its id.")
    return int(check_index(name, array.reshape(1), size)[0])


def check_probabilities(value: object, *, num_nodes: int | None = None) -> AnyArray:
    """Return probabilities, rows that sum to 1, as float32 or float64."""
    array = as_array("probabilities", value)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInputError(
            f"`probabilities` must have shape (nodes, classes) with at least one class; got {array.shape}"
        )
    if num_nodes is not None:
        check_row_count("probabilities", array, num_nodes)
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
            f"`probabilities` must not be negative; row {row}, class {column} is {array[row, column]:.6g}.", _SOFTMAX
        )
    off = np.abs(sums - 1.0)
    if off.size and off.max() > ROW_SUM_TOLERANCE:
        row = int(np.argmax(off > ROW_SUM_TOLERANCE))
        raise InvalidInputError(
            f"`probabilities` must have rows that sum to 1; row {row} sums to {sums[row]:.6g}.", _SOFTMAX
        )
    return array


def check_row_count(name: str, array: AnyArray, num_nodes: int) -> None:
    """Reject a number of rows that differs from the number of nodes."""
    if array.shape[0] != num_nodes:
        raise InvalidInputError(f"`{name}` must have one row per node of the graph, {num_nodes}; got {array.shape[0]}")


def check_labels(value: object, *, size: int, num_classes: int) -> IntArray:
    """Return one label per node: 0..num_classes−1, or −1 for unknown."""
    array = check_integers("labels", value)
    if array.shape[0] != size:
        raise InvalidInputError(
            f"`labels` must have one entry per node, {size} (−1 where unknown); got {array.shape[0]}"
        )
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < -1 or high >= num_classes:
            raise InvalidInputError(
                f"`labels` must be from 0 to {num_classes - 1}, or −1 for unknown; got {low if low < -1 else high}"
            )
    return np.ascontiguousarray(array, dtype=np.int64)


def check_known(value: object, *, size: int, num_classes: int) -> IntArray:
    """Return labels as in `check_labels`, none of them unknown."""
    labels = check_labels(value, size=size, num_classes=num_classes)
    if (labels < 0).any():
        raise InvalidInputError(f"`labels` must be known to be scored; entry {int((labels < 0).argmax())} is −1")
    return labels


def check_scores(name: str, value: object, *, size: int | None = None, each: str = "calibration node") -> FloatArray:
    """Return a vector of scores without NaN, as float64; −0.0 becomes 0.0, so that equal scores have equal bits."""
    array = as_array(name, value)
    if array.ndim != 1:
        raise InvalidInputError(f"`{name}` must have 1 dimension; got shape {array.shape}")
    if size is not None and array.shape[0] != size:
        raise InvalidInputError(f"`{name}` must have one entry per {each}, {size}; got {array.shape[0]}")
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"`{name}` must hold numbers; got dtype {array.dtype}")
    scores = array.astype(np.float64, copy=False) + 0.0
    missing = np.isnan(scores)
    if missing.any():
        raise InvalidInputError(f"`{name}` must not be NaN; entry {int(missing.argmax())} is")
    return scores


def check_table(name: str, value: object, rows: int) -> FloatArray:
    """Return a table of numbers with one row per node, as float64; NaN and infinities are numbers too."""
    array = as_array(name, value)
    if array.ndim != 2 or array.shape[0] != rows or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` must be a table of numbers with one row per node, shape ({rows}, columns); got {array.dtype} of "
            f"shape {array.shape}"
        )
    return array.astype(np.float64, copy=False)


def check_numbers(name: str, value: object, *, largest: float) -> FloatArray:
    """Return an array of numbers from 0 to `largest`, as float64."""
    array = as_array(name, value)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"`{name}` must hold numbers; got dtype {array.dtype}")
    numbers = array.astype(np.float64)
    bad = ~((numbers >= 0) & (numbers <= largest))  # NaN is bad too
    if bad.any():
        raise InvalidInputError(f"`{name}` must be finite, from 0 to {largest:g}; got {numbers[bad][0]:g}")
    return numbers


def training_nodes(mask: object, size: int) -> BoolArray | None:
    """Return the nodes that a mask of training nodes holds; None where there is no such mask.

    The mask has one boolean per node, or one per node and split, in which every split must contain a node; anything
    else is ignored.
    """
    marks = None if mask is None else as_column("train_mask", mask)
    if marks is None or marks.dtype != np.bool_ or marks.shape[:1] != (size,) or not marks.size:
        return None
    inside: BoolArray = np.all(marks.reshape(size, -1), axis=1)
    return frozen(inside)


def count_trained(mask: object, calibration: IntArray, size: int) -> int:
    """Count the calibration nodes in a mask of training nodes, with a warning where there are any.

    The mask is as in `training_nodes`.
    """
    training = training_nodes(mask, size)
    trained = 0 if training is None else int(training[calibration].sum())
    if trained:
        warn(
            f"`calibration` holds {trained:,} of the nodes of `train_mask`: the model was trained on their labels, so "
            f"coverage of other nodes will be lower than promised. Calibrate on labels that it has not seen, such as "
            f"those of `val_mask`."
        )
    return trained
