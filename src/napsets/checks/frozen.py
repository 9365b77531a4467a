"""Read-only arrays: what a value object keeps must not change."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


def frozen(array: Array) -> Array:
    """Return the array itself if it is read-only down to the memory that it is a view of, otherwise a read-only copy.

    That memory may be an array's own, bytes, or a memoryview that is read-only. All other memory is copied, including
    memory maps, whose file may be written to.

    Examples
    --------
    >>> scores = np.zeros(3)
    >>> kept = frozen(scores)
    >>> kept is scores, frozen(kept) is kept
    (False, True)
    """
    memory: Any = array
    while isinstance(memory, np.ndarray) and not memory.flags.writeable:
        memory = memory.base
    closed = memory is None or isinstance(memory, bytes) or (isinstance(memory, memoryview) and memory.readonly)
    return array if closed else sealed(array.copy())


def sealed(array: Array) -> Array:
    """Make an array of our own that is not shared read-only in place, so that it is never copied.

    Arrays that it is a view of become read-only with it: they are ours too.
    """
    view: Any = array
    while isinstance(view, np.ndarray):
        view.flags.writeable = False
        view = view.base
    return array


class Sealed:
    """A frozen dataclass that goes through its constructor in other processes too: unpickled arrays are writeable."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)  # type: ignore[arg-type]
