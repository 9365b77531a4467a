"""What is done with a neighbourhood once it was found: thresholds are selected from it, or its nodes counted.

These records go to the kernels as they are. A kernel is compiled for the ending that it is given, None standing for
those that are not wanted, so none pays for another.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import read_only
from napsets.kernels.layout import BLOCK_WORDS

__all__ = ["Counting", "Pairs", "Pooling", "Room", "Selection", "room_for", "seen_by_kernels"]

Array = npt.NDArray[Any]
Record = TypeVar("Record", bound=tuple[Any, ...])


class Pairs(NamedTuple):
    """For which calibration nodes each source is asked: a pair is a source and a split.

    Attributes
    ----------
    offsets : int64 of shape (sources + 1,)
        The pairs of source i are ``offsets[i]..offsets[i + 1]``.
    splits : int64 of shape (pairs,)
        The split of each pair.
    masks : uint64 of shape (splits, mask words)
        The calibration nodes that each split uses, bit b of word w for number 64·w + b.
    """

    offsets: Array
    splits: Array
    masks: Array


class Selection(NamedTuple):
    """Thresholds are wanted.

    Attributes
    ----------
    weights : float64 of shape (rows, hops)
        Weights by hop; each row gives thresholds of its own.
    levels : float64 of shape (levels,)
        Shares of the mass to be reached, 1−α.
    rules : int8 of shape (levels,)
        What reaching means: see `rules`.
    rounding : float
        The part of the mass that the nominal rule forgives.
    scores : float64 of shape (calibration nodes,)
        Ascending.
    thresholds : float64 of shape (pairs, rows, levels)
        Written: +∞ where the level is not reached, −∞ where it needs no mass.
    hop_counts : int64 of shape (pairs, hops)
        Written: calibration nodes by hop.
    """

    weights: Array
    levels: Array
    rules: Array
    rounding: float
    scores: Array
    thresholds: Array
    hop_counts: Array


class Pooling(NamedTuple):
    """Calibration nodes count wherever they are, and more where their group is the source's.

    Attributes
    ----------
    pools, alikes : float64 of shape (rows,)
        What all calibration nodes weigh together, and what those of the source's group weigh together on top.
    own, group : int64 of shape (sources,)
        The number of each source, and its group; −1 where it has none.
    ranks : int64 of shape (splits, mask words + 1)
        Nodes of a split before each word.
    group_masks : uint64 of shape (groups, mask words)
        The calibration nodes of each group.
    group_ranks : int32 or int64 of shape (splits, groups, mask words + 1)
        Nodes of a split and a group before each word.
    """

    pools: Array
    alikes: Array
    own: Array
    group: Array
    ranks: Array
    group_masks: Array
    group_ranks: Array


class Counting(NamedTuple):
    """Counts by hop are wanted.

    Attributes
    ----------
    positions : int64 of shape (1, positions) or (pairs, positions)
        Nodes with a number below them are counted; one row may serve all pairs.
    counts : int32 or int64 of shape (pairs, hops, positions)
        Written.
    """

    positions: Array
    counts: Array


class Room(NamedTuple):
    """Where an ending works.

    Attributes
    ----------
    base : int64 of shape (mask words,)
        Which word of the whole vector each kept word is; all of them unless some are left out.
    running : int64 of shape (hops, blocks + 1)
        Bits by hop before each block.
    counts : int64 of shape (hops, 2)
        Bits by hop before a word and after it.
    """

    base: Array
    running: Array
    counts: Array


def room_for(hops: int, mask_words: int) -> Room:
    """Return room for neighbourhoods of so many hops, with no word left out."""
    running = np.empty((hops, mask_words // BLOCK_WORDS + 1), np.int64)
    return Room(np.arange(mask_words), running, np.empty((hops, 2), np.int64))


def seen_by_kernels(record: Record, *written: str) -> Record:
    """Return a record whose arrays cannot be written to, but for those named."""
    fields: Any = record
    return type(record)(
        *(
            value if name in written or not isinstance(value, np.ndarray) else read_only(value)
            for name, value in zip(fields._fields, record, strict=True)
        )
    )
