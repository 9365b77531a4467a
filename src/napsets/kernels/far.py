"""Searching so many hops that a bit vector a hop would be nearly empty: long, thin graphs such as paths and roads.

Here a node met is a number and its hop, and a threshold is found by halving: count by hop what lies up to a score,
weigh the counts in the order of the hops, and look whether that is enough. The sums are those of `selection`, to the
bit.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.pooling import others_of, shares_of, with_others
from napsets.kernels.rules import needed_mass
from napsets.kernels.sums import weigh
from napsets.kernels.walk import walk

__all__ = ["far_search"]

_needed = part(needed_mass)


@part
def _list_hops(source, indptr, indices, numbers, known, mark, stamps, queue, ends, hop_of):
    """Write the hop of each calibration node within reach into ``hop_of[number]``."""
    rings, _ = walk(source, indptr, indices, ends.shape[0] - 1, mark, stamps, queue, ends)
    for ring in range(1, rings + 1):
        for place in range(ends[ring - 1], ends[ring]):
            number = numbers[queue[place]]
            if number < known:
                hop_of[number] = ring


@part
def _count(hop_of, mask, stop, counts):
    """Count by hop the nodes with a number below `stop` that were met and that the mask lets calibrate."""
    counts[:] = 0
    for number in range(stop):
        hop = hop_of[number]
        if hop > 0 and (mask[number >> 6] >> np.uint64(number & 63)) & np.uint64(1):
            counts[hop - 1, 0] += 1


@part
def _mass(i, p, hop_of, stop, d, counts, pairs, selection, pooling):
    """Return the mass of the nodes with a number below `stop`, for a row of weights."""
    _count(hop_of, pairs.masks[pairs.splits[p]], stop, counts)
    mass = weigh(selection.weights, d, counts, 0)
    if pooling is not None:
        others = others_of(i, p, pairs, pooling)
        mass = with_others(mass, shares_of(pooling, d, others), others, np.int64(stop - 1))
    return mass


@part
def _select(i, p, hop_of, counts, pairs, selection, pooling):
    known = selection.scores.shape[0]
    for d in range(selection.weights.shape[0]):
        total = _mass(i, p, hop_of, known, d, counts, pairs, selection, pooling)
        selection.hop_counts[p] = counts[:, 0]
        for a in range(selection.levels.shape[0]):
            needed = _needed(selection.levels[a], selection.rules[a], total, selection.rounding)
            if total < needed:
                selection.thresholds[p, d, a] = np.inf
            elif needed <= 0.0:
                selection.thresholds[p, d, a] = -np.inf
            else:
                low, high = np.int64(0), np.int64(known - 1)
                while low < high:
                    middle = (low + high) >> 1
                    if _mass(i, p, hop_of, middle + 1, d, counts, pairs, selection, pooling) >= needed:
                        high = middle
                    else:
                        low = middle + 1
                selection.thresholds[p, d, a] = selection.scores[low]


@part
def _count_below(p, hop_of, counting):
    positions, counts = counting.positions[p if counting.positions.shape[0] > 1 else 0], counting.counts[p]
    counts[:] = 0
    for number in range(hop_of.shape[0]):
        if hop_of[number] > 0:
            for q in range(positions.shape[0]):
                counts[hop_of[number] - 1, q] += number < positions[q]


@jit
def far_search(sources, indptr, indices, numbers, known, hops, pairs, selection, pooling, counting):
    """Search around each source and do for each of its pairs what is wanted; see `endings`.

    Sources go by their ids; `numbers` says what number each node has, and those below `known` calibrate.
    """
    nodes = numbers.shape[0]
    stamps = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, indices.dtype)
    ends = np.empty(hops + 1, np.int64)
    hop_of = np.zeros(known, np.int64)
    counts = np.empty((hops, 1), np.int64)
    for i in range(sources.shape[0]):
        hop_of[:] = 0
        _list_hops(sources[i], indptr, indices, numbers, known, i, stamps, queue, ends, hop_of)
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            if selection is not None:
                _select(i, p, hop_of, counts, pairs, selection, pooling)
            if counting is not None:
                _count_below(p, hop_of, counting)
