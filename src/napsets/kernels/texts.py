"""Strings as Arrow holds them, letters one after the other and offsets into them: their hashes, and where they are.

A `TextTable` has room for twice as many strings as there are. Where one would stand follows from its hash; if another
stands there, it stands in the next free slot. Hash and place lie side by side, so that looking for a string reads one
slot, usually, and then the letters of that one string.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, part, prefetch
from napsets.kernels.layout import read_only
from napsets.kernels.sampling import hash64

UInt64Array = npt.NDArray[np.uint64]

_AT_ONCE = 64  # strings looked for side by side


class Texts(NamedTuple):
    """String i is ``letters[offsets[i]:offsets[i + 1]]``, in UTF-8."""

    offsets: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint8]


def hash_texts(texts: Texts) -> UInt64Array:
    """Return the FNV-1a hash of each string: what `napsets.randomness.hash_ids` returns for it."""
    keys = np.empty(texts.offsets.size - 1, dtype=np.uint64)
    _hash(read_only(texts.offsets), read_only(texts.letters), keys)
    return keys


class TextTable:
    """Finds the places 0, 1, 2, … of strings whose hashes are known."""

    def __init__(self, texts: Texts, keys: UInt64Array) -> None:
        self._texts = texts
        #: Hash and place + 1; 0 where a slot is free.
        self._slots = np.zeros((2 << max(keys.size - 1, 1).bit_length(), 2), dtype=np.uint64)
        #: Whether two strings have one hash, equal strings among them; only the first of them is in the table.
        self.repeated = bool(_fill(read_only(keys), self._slots))

    def places(self, texts: Texts, keys: UInt64Array) -> npt.NDArray[np.int64]:
        """Return the place of each string, −1 where it is unknown; `keys` are the strings' hashes."""
        places = np.empty(keys.size, dtype=np.int64)
        arrays = (*self._texts, self._slots, *texts, keys)
        _find(*(read_only(array) for array in arrays), places)
        return places


@jit
def _hash(offsets, letters, keys):
    for i in range(keys.shape[0]):
        word = np.uint64(0xCBF29CE484222325)
        for position in range(offsets[i], offsets[i + 1]):
            word = (word ^ np.uint64(letters[position])) * np.uint64(0x100000001B3)
        keys[i] = word


@part
def _first_slot(slots, key):
    return hash64(key) & np.uint64(slots.shape[0] - 1)


@part
def _slot(slots, key):
    """Return the slot where a hash is, or else the free one where it belongs."""
    slot = _first_slot(slots, key)
    while slots[slot, 1] != np.uint64(0) and slots[slot, 0] != key:
        slot = (slot + np.uint64(1)) & np.uint64(slots.shape[0] - 1)
    return slot


@jit
def _fill(keys, slots):
    repeated = False
    for i in range(keys.shape[0]):
        slot = _slot(slots, keys[i])
        if slots[slot, 1] != np.uint64(0):
            repeated = True
        else:
            slots[slot, 0] = keys[i]
            slots[slot, 1] = np.uint64(i + 1)
    return repeated


@part
def _same(letters, start, end, others, other_start, other_end):
    length, alike = end - start, np.int64(0)
    if length != other_end - other_start:
        return False
    while alike < length and letters[start + alike] == others[other_start + alike]:
        alike += 1
    return alike == length


@jit
def _find(known_offsets, known_letters, slots, offsets, letters, keys, places):
    count = keys.shape[0]
    for first in range(0, count, _AT_ONCE):
        last = first + _AT_ONCE if first + _AT_ONCE < count else count
        # Each step asks the cache for what the next one reads, of all these strings before it reads any.
        for i in range(first, last):
            prefetch(slots, 2 * np.int64(_first_slot(slots, keys[i])))
        for i in range(first, last):
            places[i] = np.int64(slots[_slot(slots, keys[i]), 1]) - 1
            prefetch(known_offsets, places[i])
        for i in range(first, last):
            if places[i] >= 0:
                prefetch(known_letters, known_offsets[places[i]])
        for i in range(first, last):
            place = places[i]
            # Two strings with one hash are never taken for each other.
            if place >= 0 and not _same(
                letters, offsets[i], offsets[i + 1], known_letters, known_offsets[place], known_offsets[place + 1]
            ):
                places[i] = -1
