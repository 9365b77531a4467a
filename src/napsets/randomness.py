"""The uniform number of a node: a function of (seed, node id) and of nothing else.

A counter-based hash instead of a stream of random numbers: the order of rows, the size of batches, the number of
threads and the engine cannot change what a node draws.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, as_column
from napsets.checks.values import check_seed, shown
from napsets.errors import InvalidInputError

UInt64Array = npt.NDArray[np.uint64]

#: The longest id, in bytes of UTF-8.
MOST_ID_BYTES = 1024

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's increment: 2⁶⁴ divided by the golden ratio, made odd
_SPLIT = np.uint64(0xD1B54A32D192ED03)
_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)


def node_uniforms(ids: ArrayLike, seed: int = 0) -> FloatArray:
    """Return one number in [0, 1) for each id: SplitMix64's finaliser of seed and id, top 53 bits.

    Parameters
    ----------
    ids : array of integers or strings
        Node ids; strings go through a stable hash first (see `hash_ids`).
    seed : int
        From 0 to 2⁶⁴−1; another seed gives independent numbers.

    Examples
    --------
    >>> bool(node_uniforms([7], seed=1)[0] == node_uniforms([3, 7], seed=1)[1])
    True
    """
    stream = _stream(int(check_seed(seed)))
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is the point
        bits = _finalise(stream + (hash_ids(ids) + np.uint64(1)) * _GOLDEN)
    return to_unit(bits)


@lru_cache(maxsize=64)
def _stream(seed: int) -> np.uint64:
    """Return the start of the numbers of a seed."""
    with np.errstate(over="ignore"):
        stream: np.uint64 = _finalise(np.atleast_1d(np.uint64(seed) + _GOLDEN))[0]
    return stream


def split_order(ids: ArrayLike, seed: int = 0) -> IntArray:
    """Return a random order of the ids, whose first n are a random part of them for every n.

    The order depends on the seed and on *which* ids there are, not on their order. It must depend on all of them: if an
    id alone decided where it goes, the same nodes would be in the first part whenever they are labelled, and the second
    part would not be a random sample of the others. It has nothing to do with `node_uniforms`.

    Examples
    --------
    >>> ids = np.array([4, 8, 15, 16, 23, 42])
    >>> first = ids[split_order(ids)][:3]
    >>> turned = ids[::-1]
    >>> bool((turned[split_order(turned)][:3] == first).all())
    True
    """
    total = split_hashes(ids).sum(dtype=np.uint64)  # a sum has no order
    return np.argsort(node_uniforms(ids, split_seed(seed, int(total))), kind="stable")


def split_hashes(ids: ArrayLike) -> UInt64Array:
    """Return the summand of each id in the sum that identifies a set of ids."""
    return splitmix64(hash_ids(ids))


def split_seed(seed: int, total: int) -> int:
    """Return the seed of the order of a split, from the user's and the sum, modulo 2⁶⁴, of `split_hashes`."""
    with np.errstate(over="ignore"):
        bits = np.uint64(seed) ^ _SPLIT ^ np.uint64(total % (1 << 64))
        return int(_finalise(np.atleast_1d(bits))[0])


def hash_ids(ids: ArrayLike) -> UInt64Array:
    """Map ids to 64-bit hashes: integers to themselves, strings to the FNV-1a hash of their UTF-8 bytes.

    An array of Python objects may hold both, as in a living graph. A string has at most `MOST_ID_BYTES` bytes.
    """
    array = as_column("ids", ids)
    if array.ndim != 1:
        raise InvalidInputError(f"`ids` must have 1 dimension; got shape {array.shape}")
    if array.dtype.kind in "iu" or array.size == 0:
        return array.astype(np.uint64)
    if array.dtype.kind not in "UO":
        raise InvalidInputError(f"`ids` must be integers or strings; got dtype {array.dtype}")
    items = array.tolist()
    is_text = np.array([isinstance(item, str) for item in items])
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
        raise InvalidInputError(f"`ids` must be integers or strings; got dtype {array.dtype}")
    hashes = np.empty(array.size, dtype=np.uint64)
    try:
        hashes[~is_text] = np.array([item for item in items if not isinstance(item, str)], np.int64).astype(np.uint64)
    except OverflowError as error:
        raise InvalidInputError(f"`ids` must be integers of 64 bits or strings: {error}") from error
    hashes[is_text] = _fnv1a([encoded_id("ids", item) for item in items if isinstance(item, str)])
    return hashes


def encoded_id(name: str, item: str) -> bytes:
    """Return the UTF-8 bytes of an id, or raise if there are none or more than `MOST_ID_BYTES`."""
    try:
        letters = item.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"`{name}` must be text that UTF-8 can hold; got {shown(item)}") from error
    if len(letters) > MOST_ID_BYTES:
        raise InvalidInputError(
            f"`{name}` must have at most {MOST_ID_BYTES:,} bytes per id; {shown(item[:20])}… has {len(letters):,}"
        )
    return letters


def _fnv1a(texts: list[bytes]) -> UInt64Array:
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return hash_texts(np.append(0, np.cumsum(lengths)), np.frombuffer(b"".join(texts), dtype=np.uint8))


def hash_texts(offsets: IntArray, letters: npt.NDArray[np.uint8]) -> UInt64Array:
    """Return the FNV-1a hash of each string i, ``letters[offsets[i]:offsets[i + 1]]`` in UTF-8, as Arrow holds them."""
    lengths = np.diff(offsets)
    # Letter by letter, the longest strings first, so that those which have ended drop out at the end.
    order = np.argsort(-lengths, kind="stable")
    starts = offsets[:-1][order]
    active = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
    mixed = np.full(lengths.size, _FNV_OFFSET)
    with np.errstate(over="ignore"):
        for position, count in enumerate(active.tolist()):
            mixed[:count] = (mixed[:count] ^ letters[starts[:count] + position]) * _FNV_PRIME
    hashes = np.empty_like(mixed)
    hashes[order] = mixed
    return hashes


def splitmix64(states: UInt64Array) -> UInt64Array:
    """Return SplitMix64's output for each state: a bijection that scatters neighbouring words."""
    with np.errstate(over="ignore"):
        return _finalise(states + _GOLDEN)


def to_unit(bits: UInt64Array) -> FloatArray:
    """Turn words into numbers in [0, 1) by their upper 53 bits."""
    units: FloatArray = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return units


def _finalise(bits: UInt64Array) -> UInt64Array:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
