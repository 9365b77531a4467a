"""Hashes of strings as Arrow holds them: letters one after the other, and offsets into them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit
from napsets.kernels.layout import read_only


def hash_texts(offsets: npt.NDArray[np.int64], letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the FNV-1a hash of each string: what `napsets.randomness.hash_ids` returns for it.

    String i is ``letters[offsets[i]:offsets[i + 1]]``, in UTF-8.
    """
    keys = np.empty(offsets.size - 1, dtype=np.uint64)
    _hash(read_only(offsets), read_only(letters), keys)
    return keys


@jit
def _hash(offsets, letters, keys):
    for i in range(keys.shape[0]):
        word = np.uint64(0xCBF29CE484222325)
        for position in range(offsets[i], offsets[i + 1]):
            word = (word ^ np.uint64(letters[position])) * np.uint64(0x100000001B3)
        keys[i] = word
