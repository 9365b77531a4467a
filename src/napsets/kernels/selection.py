"""Choosing thresholds from bit vectors.

Calibration nodes are numbered in ascending order of their scores, so a set of them held as bits *is* their
sorted list: counting bits from the left counts scores from the smallest. `bits[k]` holds those at hop k+1, and a
mask says which of them may calibrate (one mask a calibration split). A block is eight words, 512 numbers. Words
without any bit may be left out: `base` says which word of the whole vector each one is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import count_bits, count_bits_of_eight, jit, part, read_only

__all__ = ["BLOCK_WORDS", "count_blocks", "select", "selection_inputs"]

BLOCK_WORDS = 8


@jit
def count_blocks(bits, mask, blocks, running):
    """Write into ``running[k, b]`` how many masked bits hop k+1 has before block b; the last column is the total."""
    for k in range(bits.shape[0]):
        row, total = bits[k], np.int64(0)
        for b in range(blocks):
            running[k, b] = total
            total += count_bits_of_eight(row, mask, b * BLOCK_WORDS)
        running[k, blocks] = total


@part
def _mass(weights, d, counts, column):
    """Weigh integer counts in the order of the hops, as the specification does."""
    mass = 0.0
    for k in range(weights.shape[1]):
        mass += weights[d, k] * np.float64(counts[k, column])
    return mass


@part
def _find(bits, mask, blocks, running, counts, weights, d, needed):
    """Return word and bit of the smallest number whose mass reaches `needed`, which the total does."""
    low, high = np.int64(0), np.int64(blocks - 1)
    while low < high:
        middle = (low + high) >> 1
        if _mass(weights, d, running, middle + 1) >= needed:
            high = middle
        else:
            low = middle + 1
    hops = weights.shape[1]
    for k in range(hops):
        counts[k, 0] = running[k, low]
    word = low * BLOCK_WORDS
    while True:
        for k in range(hops):
            counts[k, 1] = counts[k, 0] + count_bits(bits[k, word] & mask[word])
        if _mass(weights, d, counts, np.int64(1)) >= needed:
            break
        for k in range(hops):
            counts[k, 0] = counts[k, 1]
        word += 1
    first, last = np.int64(0), np.int64(63)
    while first < last:
        middle = (first + last) >> 1
        up_to = mask[word] & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(63 - middle))
        mass = 0.0
        for k in range(hops):
            mass += weights[d, k] * np.float64(counts[k, 0] + count_bits(bits[k, word] & up_to))
        if mass >= needed:
            last = middle
        else:
            first = middle + 1
    return word, first


@jit
def select(bits, mask, base, blocks, running, counts, weights, levels, rounding, scores, thresholds, hop_counts):
    """Write one threshold for each row of `weights` and each of `levels` (1−α), and the counts by hop.

    `running` and `counts` are room to work in: a row a hop, of `blocks` + 1 and of two numbers.
    """
    hops = bits.shape[0]
    count_blocks(bits, mask, blocks, running)
    for k in range(hops):
        hop_counts[k] = running[k, blocks]
    for d in range(weights.shape[0]):
        total = _mass(weights, d, running, blocks)
        for a in range(levels.shape[0]):
            needed = levels[a] * (1.0 + total) * (1.0 - rounding)
            if total >= needed:
                word, bit = _find(bits, mask, blocks, running, counts, weights, d, needed)
                thresholds[d, a] = scores[base[word] * 64 + bit]
            else:
                thresholds[d, a] = np.inf


def selection_inputs(
    masks: npt.NDArray[Any],
    pair_offsets: npt.NDArray[Any],
    pair_split: npt.NDArray[Any],
    weights: npt.NDArray[Any],
    levels: npt.NDArray[Any],
    rounding: float,
    scores: npt.NDArray[Any],
    thresholds: npt.NDArray[Any],
    hop_counts: npt.NDArray[Any],
) -> tuple[Any, ...]:
    """Return what kernels need to select for (source, split) pairs, of the types that they are compiled for."""
    read = [read_only(array) for array in (masks, pair_offsets, pair_split, weights, levels)]
    return *read, rounding, read_only(scores), thresholds, hop_counts
