"""Features of nodes as a setting: a fingerprint that carries what it was taken of.

A score is a value: equal scores are interchangeable, and files name its settings. Features are an array of any size.
So a setting of features is the text of their fingerprint, which is compared, shown and written, and which holds the
features themselves while they are in memory. What a file gives back is the text alone.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from napsets.checks.arguments import as_array, shown
from napsets.errors import InvalidInputError

__all__ = ["Features", "check_features"]


class Features(str):
    """The fingerprint of features, and the features: a dense array or compressed sparse rows, read-only."""

    values: Any

    def __new__(cls, text: str, values: Any = None) -> Features:
        """Make one of a fingerprint and what it was taken of."""
        made = super().__new__(cls, text)
        made.values = values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Features, (str(self), self.values)


def check_features(name: str, value: object) -> Features | None:
    """Return features by their fingerprint; a text is one whose features are elsewhere, None is none."""
    if value is None or isinstance(value, Features):
        return value
    if isinstance(value, str):
        return Features(value)
    values, parts = _sparse(name, value) if hasattr(value, "tocsr") else _dense(name, value)
    digest = hashlib.sha256(repr((values.shape, [part.dtype.str for part in parts])).encode())
    for part in parts:
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise InvalidInputError(f"`{name}` must be finite; some entries are not")
        digest.update(part)
    return Features(f"sha256:{digest.hexdigest()}", values)


def _dense(name: str, value: object) -> tuple[Any, list[Any]]:
    array = as_array(name, value)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` must be a table of numbers, a row a node; got shape {array.shape}, {array.dtype}"
        )
    kind = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    kept = np.array(array, dtype=kind, order="C")
    kept.flags.writeable = False
    return kept, [kept]


def _sparse(name: str, value: Any) -> tuple[Any, list[Any]]:
    from scipy.sparse import csr_array

    if len(value.shape) != 2 or value.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` must be a table of numbers, a row a node; got {shown(value.shape)}, {value.dtype}"
        )
    kept = csr_array(value, dtype=np.float64, copy=True)
    kept.sum_duplicates()
    kept.eliminate_zeros()
    parts = [kept.indptr.astype(np.int64), kept.indices.astype(np.int64), kept.data]
    return kept, parts
