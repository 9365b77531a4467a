"""Choosing thresholds from bit vectors.

Calibration nodes are numbered in ascending order of their scores, so a set of them held as bits *is* their
sorted list: counting bits from the left counts scores from the smallest. `bits[k]` holds those at hop k+1, and a
mask says which of them may calibrate (one mask a calibration split). A block is eight words, 512 numbers. Words
without any bit may be left out: `base` says which word of the whole vector each one is.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import count_bits, jit

__all__ = ["BLOCK_WORDS", "count_blocks", "select"]

BLOCK_WORDS = 8


@jit
def count_blocks(bits, mask, blocks, running):
    """Write into ``running[k, b]`` how many masked bits hop k+1 has before block b; the last column is the total."""
    for k in range(bits.shape[0]):
        row = bits[k]
        total = np.int64(0)
        for b in range(blocks):
            running[k, b] = total
            inside = np.int64(0)
            for w in range(b * BLOCK_WORDS, (b + 1) * BLOCK_WORDS):
                inside += count_bits(row[w] & mask[w])
            total += inside
        running[k, blocks] = total


@jit
def _mass(weights, counts):
    """Weigh integer counts in the order of the hops, as the specification does."""
    mass = 0.0
    for k in range(weights.shape[0]):
        mass += weights[k] * np.float64(counts[k])
    return mass


@jit
def _find(bits, mask, blocks, running, weights, needed, counts):
    """Return word and bit of the smallest number whose mass reaches `needed`, which the total does."""
    low, high = np.int64(0), np.int64(blocks - 1)
    while low < high:
        middle = (low + high) >> 1
        if _mass(weights, running[:, middle + 1]) >= needed:
            high = middle
        else:
            low = middle + 1
    hops = weights.shape[0]
    for k in range(hops):
        counts[k] = running[k, low]
    word = low * BLOCK_WORDS
    while True:
        for k in range(hops):
            counts[k] += count_bits(bits[k, word] & mask[word])
        if _mass(weights, counts) >= needed:
            break
        word += 1
    for k in range(hops):
        counts[k] -= count_bits(bits[k, word] & mask[word])
    first, last = np.int64(0), np.int64(63)
    while first < last:
        middle = (first + last) >> 1
        up_to = mask[word] & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(63 - middle))
        mass = 0.0
        for k in range(hops):
            mass += weights[k] * np.float64(counts[k] + count_bits(bits[k, word] & up_to))
        if mass >= needed:
            last = middle
        else:
            first = middle + 1
    return word, first


@jit
def select(bits, mask, base, blocks, running, weights, levels, rounding, scores, thresholds, hop_counts):
    """Write one threshold for each row of `weights` and each of `levels` (1−α), and the counts by hop."""
    hops = bits.shape[0]
    count_blocks(bits, mask, blocks, running)
    for k in range(hops):
        hop_counts[k] = running[k, blocks]
    counts = np.empty(hops, np.int64)
    for d in range(weights.shape[0]):
        total = _mass(weights[d], hop_counts)
        for a in range(levels.shape[0]):
            needed = levels[a] * (1.0 + total) * (1.0 - rounding)
            if total >= needed:
                word, bit = _find(bits, mask, blocks, running, weights[d], needed, counts)
                thresholds[d, a] = scores[base[word] * 64 + bit]
            else:
                thresholds[d, a] = np.inf
