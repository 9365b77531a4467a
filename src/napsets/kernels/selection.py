"""Choosing thresholds from bit vectors, and counting in them.

Calibration nodes are numbered in ascending order of their scores, so a set of them held as bits *is* their
sorted list: counting bits from the left counts scores from the smallest. `bits[k]` holds those at hop k+1, and a
mask says which of them may calibrate (one mask a calibration split). A block is eight words, 512 numbers. Words
without any bit may be left out: `base` says which word of the whole vector each one is. What comes after those that
are kept, up to the end of a block, is zero.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import count_bits, jit, part
from napsets.kernels.layout import BLOCK_WORDS
from napsets.kernels.pooling import select_pooled
from napsets.kernels.rules import needed_mass
from napsets.kernels.sums import count_blocks, weigh

__all__ = ["count_below_positions", "finish", "select"]

_needed = part(needed_mass)


@part
def _find(bits, mask, blocks, running, counts, weights, d, needed):
    """Return word and bit of the smallest number whose mass reaches `needed`, which the total does."""
    low, high = np.int64(0), np.int64(blocks - 1)
    while low < high:
        middle = (low + high) >> 1
        if weigh(weights, d, running, middle + 1) >= needed:
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
        if weigh(weights, d, counts, np.int64(1)) >= needed:
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
def select(bits, mask, words, pair, room, selection):
    """Write a pair's threshold for each row of weights and each level, and its counts by hop.

    `words` words are kept of each of `bits` and of `mask`.
    """
    weights, levels = selection.weights, selection.levels
    thresholds, hop_counts = selection.thresholds[pair], selection.hop_counts[pair]
    running, blocks = room.running, (words + BLOCK_WORDS - 1) // BLOCK_WORDS
    count_blocks(bits, mask, blocks, running)
    for k in range(bits.shape[0]):
        hop_counts[k] = running[k, blocks]
    for d in range(weights.shape[0]):
        total = weigh(weights, d, running, blocks)
        for a in range(levels.shape[0]):
            needed = _needed(levels[a], selection.rules[a], total, selection.rounding)
            if total < needed:
                thresholds[d, a] = np.inf
            elif needed <= 0.0:
                thresholds[d, a] = -np.inf
            else:
                word, bit = _find(bits, mask, blocks, running, room.counts, weights, d, needed)
                thresholds[d, a] = selection.scores[room.base[word] * 64 + bit]


@part
def _first_kept(base, words, word):
    """Return the first of the kept words that is not before a word of the whole vector; `words` where none is."""
    if word < words and base[word] == word:  # none is left out before it
        return np.int64(word)
    low, high = np.int64(0), np.int64(words)
    while low < high:
        middle = (low + high) >> 1
        if base[middle] >= word:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def count_below_positions(bits, mask, words, pair, room, counting):
    """Write a pair's counts by hop of the nodes below each position."""
    base, running = room.base, room.running
    positions, counts = counting.positions[pair if counting.positions.shape[0] > 1 else 0], counting.counts[pair]
    count_blocks(bits, mask, (words + BLOCK_WORDS - 1) // BLOCK_WORDS, running)
    for p in range(positions.shape[0]):
        word = positions[p] >> 6
        below = ~(np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(positions[p] & 63))
        kept = _first_kept(base, words, word)
        block = kept // BLOCK_WORDS
        for k in range(bits.shape[0]):
            count = running[k, block]
            for w in range(block * BLOCK_WORDS, kept):
                count += count_bits(bits[k, w] & mask[w])
            if kept < words and base[kept] == word:
                count += count_bits(bits[k, kept] & mask[kept] & below)
            counts[k, p] = count


@part
def finish(source, pair, bits, mask, words, room, pairs, selection, pooling, counting):
    """Do for a pair what is wanted; see `endings`."""
    if selection is not None:
        if pooling is None:
            select(bits, mask, words, pair, room, selection)
        else:
            select_pooled(source, bits, mask, words, pair, room, pairs, selection, pooling)
    if counting is not None:
        count_below_positions(bits, mask, words, pair, room, counting)
