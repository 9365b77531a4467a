"""Arrays that nobody can write to: what a value object keeps must not change under it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

__all__ = ["Sealed", "frozen", "sealed"]

Array = TypeVar("Array", bound=npt.NDArray[Any])

#: The arrays that we sealed, by identity. Of a read-only array of somebody else nothing is known: its owner may have
#: kept a view, may make it writeable again, or may write to the file that it maps.
_OURS: WeakValueDictionary[int, npt.NDArray[Any]] = WeakValueDictionary()


def frozen(array: Array) -> Array:
    """Return the array itself if it is sealed, or a view of what is; otherwise a sealed copy.

    Examples
    --------
    >>> given = np.zeros(3)
    >>> kept = frozen(given)
    >>> kept is given, frozen(kept) is kept
    (False, True)
    """
    return array if _is_ours(array) else sealed(array.copy())


def sealed(array: Array) -> Array:
    """Make an array that we made ourselves, and nobody else holds, read-only in place, so that it is never copied."""
    array.flags.writeable = False
    _OURS[id(array)] = array
    return array


def _is_ours(array: npt.NDArray[Any]) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        if _OURS.get(id(owner)) is owner:
            return True
        owner = owner.base
    return isinstance(owner, bytes)


class Sealed:
    """A frozen dataclass that goes through its constructor in other processes too: unpickled arrays are writeable."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)  # type: ignore[arg-type]
