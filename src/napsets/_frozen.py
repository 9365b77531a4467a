"""Arrays that nobody can write to: what a value object keeps must not change under it."""

from __future__ import annotations

import mmap
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["frozen", "sealed"]

Array = TypeVar("Array", bound=npt.NDArray[Any])


def frozen(array: Array) -> Array:
    """Return the array itself if nobody can write to its memory, otherwise a read-only copy.

    Examples
    --------
    >>> given = np.zeros(3)
    >>> kept = frozen(given)
    >>> kept is given, frozen(kept) is kept
    (False, True)
    """
    return array if _unwritable(array) else sealed(array.copy())


def sealed(array: Array) -> Array:
    """Make an array that we made ourselves read-only, in place, so that `frozen` need not copy it.

    Views inherit it, but only those that are taken afterwards.
    """
    array.flags.writeable = False
    return array


def _unwritable(array: npt.NDArray[Any]) -> bool:
    """Tell whether an array and all that it looks into are read-only, down to memory that NumPy knows the owner of.

    A read-only view of a writeable array is not enough. Bytes cannot change, nor can a file be changed through a map
    of it that is read-only; of buffers of other kinds nothing is known.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes | mmap.mmap)
