"""Choosing thresholds from bit vectors, and counting in them.

Calibration nodes are numbered in ascending order of their scores, so a set of them held as bits *is* their
sorted list: counting bits from the left counts scores from the smallest. `bits[k]` holds those at hop k+1, and a
mask has the bits of all calibration nodes. A block is eight words, 512 numbers; masks are whole blocks.

With a pooling every calibration node counts, near or far. To the mass of the hops comes (pool/n)·c, with c the nodes
up to a score, wherever they are, and (alike/n_same)·c_same with those of the source's group. Numbers are ranks, so both
counts are known before any search: for the group, a table holds them for the start of each word, and inside a word bits
are counted. The answer may be any node's score, also one that the search never met.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from napsets.kernels._jit import count_bits, count_bits_of_eight, inlined, jit, part
from napsets.kernels.layout import ABOVE, BLOCK_WORDS, NOMINAL, Array


def needed_mass(level: float, rule: int, total: float, rounding: float) -> float:
    """Return the smallest mass that reaches a level by a rule: −∞ where none is needed, +∞ where none is enough.

    Masses are compared with what this returns by ≥, whichever the rule. That is the same as dividing each of them:
    division by one number never decreases, so there is a smallest float whose quotient is large enough.
    """
    whole = 1.0 + total
    if not (level < math.inf and whole < math.inf):  # NaN among them: halving would never end
        return math.inf
    if rule == NOMINAL:
        needed = level * whole * (1.0 - rounding)
        return needed if needed > 0.0 else -math.inf
    above = rule == ABOVE
    if level < 0.0 or (level == 0.0 and not above):
        return -math.inf
    # Two floats with the wanted one between them, then halving: as a rule a handful of floats lies between.
    high = level * whole * (1.0 + 1e-15) + whole * 1e-323
    while not (high / whole > level if above else high / whole >= level):
        high *= 2.0
    low = level * whole * (1.0 - 1e-15)
    if low / whole > level if above else low / whole >= level:
        low = 0.0
    while True:
        middle = low + (high - low) / 2.0
        if middle <= low or middle >= high:
            return high
        if middle / whole > level if above else middle / whole >= level:
            high = middle
        else:
            low = middle


needed = part(needed_mass)


@jit
def count_blocks(bits, ring, mask, running):
    """Write into ``running[k, b]`` how many masked bits hop k+1 has before block b; the last column is the total.

    `ring` lists the bits of the first hop, or is None. Where there are few, going through the list takes less time
    than counting all words.
    """
    words, blocks = mask.shape[0], mask.shape[0] // BLOCK_WORDS
    first = 0
    if ring is not None and ring.shape[0] < words:
        row, first = running[0], 1
        row[:] = 0
        for v in ring:
            if v >> 6 < words:
                bit = (mask[v >> 6] >> np.uint64(v & 63)) & np.uint64(1)
                row[v // (64 * BLOCK_WORDS) + 1] += np.int64(bit)
        for b in range(blocks):
            row[b + 1] += row[b]
    for k in range(first, bits.shape[0]):
        row, total = bits[k], np.int64(0)
        for b in range(blocks):
            running[k, b] = total
            total += count_bits_of_eight(row, mask, b * BLOCK_WORDS)
        running[k, blocks] = total


@part
def weigh(weights, d, counts, column):
    """Weigh integer counts in the order of the hops, as the specification does."""
    mass = 0.0
    for k in range(weights.shape[1]):
        mass += weights[d, k] * np.float64(counts[k, column])
    return mass


_NOT_THERE = 1 << 62  # after all numbers


class Others(NamedTuple):
    """All calibration nodes, near or far, but the source."""

    known: int  #: The number of calibration nodes.
    same: Array  #: uint64 of shape (mask words,). Those in the source's group.
    same_ranks: Array  #: integers of shape (mask words + 1,). Their number before each word.
    own: int  #: The source's number, which must not count, if it is among them; otherwise one after all numbers.
    #: Their number without the source; `same_size` is 0 where it has no group.
    size: int
    same_size: int


@part
def others_of(source, known, pooling):
    """Return the other calibration nodes of a source; None without a pooling."""
    if pooling is None:
        return None
    number, group = np.int64(pooling.own[source]), pooling.group[source]
    row = max(group, np.int64(0))
    same, same_ranks = pooling.group_masks[row], pooling.group_ranks[row]
    there = number < known
    own = number if there else np.int64(_NOT_THERE)
    same_size = np.int64(same_ranks[same.shape[0]]) - np.int64(there) if group >= 0 else np.int64(0)
    return Others(known, same, same_ranks, own, known - np.int64(there), same_size)


@part
def shares_of(pooling, d, others):
    """Return the weight of one node in each pool, for a row of weights: of everyone, and of its group."""
    if others is None:
        return 0.0, 0.0
    pool = pooling.pools[d] / np.float64(others.size) if others.size > 0 else 0.0
    alike = pooling.alikes[d] / np.float64(others.same_size) if others.same_size > 0 else 0.0
    return pool, alike


@part
def mass_of(near, shares, count, same_count):
    """Return Σ_k w(k)·c_k + (pool/n)·c + (alike/n_same)·c_same, of which `near` is the first sum."""
    return near + shares[0] * np.float64(count) + shares[1] * np.float64(same_count)


@part
def _before_word(near, shares, others, word):
    """Add to the mass of the hops that of all nodes before a word."""
    if others is None:
        return near
    itself = np.int64(others.own < 64 * word)
    return mass_of(near, shares, min(64 * word, others.known) - itself, others.same_ranks[word] - itself)


@part
def with_others(near, shares, others, number):
    """Add to the mass of the hops that of all nodes up to a number."""
    if others is None:
        return near
    word = number >> 6
    same = others.same[word] & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(63 - (number & 63)))
    itself = np.int64(others.own <= number)
    same_count = others.same_ranks[word] + count_bits(same) - itself
    return mass_of(near, shares, min(number + 1, others.known) - itself, same_count)


@part
def _find(bits, mask, room, weights, d, shares, others, enough):
    """Return the smallest number whose mass reaches `enough`, which the total does."""
    running, counts, hops = room.running, room.counts, weights.shape[1]
    low, high = np.int64(0), np.int64(mask.shape[0] // BLOCK_WORDS - 1)
    while low < high:
        middle = (low + high) >> 1
        near = weigh(weights, d, running, middle + 1)
        if _before_word(near, shares, others, (middle + 1) * BLOCK_WORDS) >= enough:
            high = middle
        else:
            low = middle + 1
    for k in range(hops):
        counts[k, 0] = running[k, low]
    word, last_word = low * BLOCK_WORDS, low * BLOCK_WORDS + BLOCK_WORDS - 1
    while word < last_word:
        for k in range(hops):
            counts[k, 1] = counts[k, 0] + count_bits(bits[k, word] & mask[word])
        if _before_word(weigh(weights, d, counts, np.int64(1)), shares, others, word + 1) >= enough:
            break
        for k in range(hops):
            counts[k, 0] = counts[k, 1]
        word += 1
    first, last = 64 * word, 64 * word + 63
    while first < last:
        number = (first + last) >> 1
        up_to = mask[word] & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(63 - (number & 63)))
        for k in range(hops):
            counts[k, 1] = counts[k, 0] + count_bits(bits[k, word] & up_to)
        if with_others(weigh(weights, d, counts, np.int64(1)), shares, others, number) >= enough:
            last = number
        else:
            first = number + 1
    return first


@jit
def count_below_positions(bits, ring, mask, pair, room, counting):
    """Write a pair's counts by hop of the nodes below each position."""
    running = room.running
    positions, counts = counting.positions[pair], counting.counts[pair]
    count_blocks(bits, ring, mask, running)
    for p in range(positions.shape[0]):
        word = positions[p] >> 6
        below = ~(np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(positions[p] & 63))
        block = word // BLOCK_WORDS
        for k in range(bits.shape[0]):
            count = running[k, block]
            for w in range(block * BLOCK_WORDS, word):
                count += count_bits(bits[k, w] & mask[w])
            if word < mask.shape[0]:
                count += count_bits(bits[k, word] & mask[word] & below)
            counts[k, p] = count


@inlined
def finish(source, pair, bits, ring, room, pairs, selection, pooling, counting):
    """Select the thresholds of a pair, and count; `ring` lists the bits of the first hop, or is None."""
    mask = pairs.mask
    if selection is not None:
        weights, levels = selection.weights, selection.levels
        thresholds, hop_counts = selection.thresholds[pair], selection.hop_counts[pair]
        running, blocks = room.running, mask.shape[0] // BLOCK_WORDS
        count_blocks(bits, ring, mask, running)
        for k in range(bits.shape[0]):
            hop_counts[k] = running[k, blocks]
        others = others_of(source, np.int64(selection.scores.shape[0]), pooling)
        for d in range(weights.shape[0]):
            shares = shares_of(pooling, d, others)
            total = _before_word(weigh(weights, d, running, blocks), shares, others, np.int64(mask.shape[0]))
            for a in range(levels.shape[0]):
                enough = needed(levels[a], selection.rules[a], total, selection.rounding)
                if total < enough:
                    thresholds[d, a] = np.inf
                elif enough <= 0.0:
                    thresholds[d, a] = -np.inf
                else:
                    number = _find(bits, mask, room, weights, d, shares, others, enough)
                    thresholds[d, a] = selection.scores[number]
    if counting is not None:
        count_below_positions(bits, ring, mask, pair, room, counting)
