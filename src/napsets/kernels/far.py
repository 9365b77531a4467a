"""Searching so many hops that a bit vector a hop would be nearly empty: long, thin graphs such as paths and roads.

Here a node met is a number and its hop, and a threshold is found by halving: count by hop what lies up to a score,
weigh the counts in the order of the hops, and look whether that is enough. The sums are those of `selection`, to the
bit.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part

__all__ = ["MANY_HOPS", "far_thresholds"]

#: From more hops than these on, a search goes this way.
MANY_HOPS = 64


@part
def _walk(source, indptr, indices, numbers, known, hops, mark, stamps, queue, hop_of):
    """Write the hop of each calibration node within reach into ``hop_of[number]``."""
    stamps[source] = mark
    queue[0] = source
    first, last = np.int64(0), np.int64(1)
    for hop in range(1, hops + 1):
        end = last
        while first < end:
            u = queue[first]
            first += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if stamps[v] != mark:
                    stamps[v] = mark
                    queue[last] = v
                    last += 1
                    if numbers[v] < known:
                        hop_of[numbers[v]] = hop
        if first == last:
            break


@part
def _count(hop_of, mask, stop, counts):
    """Count by hop the nodes with a number below `stop` that were met and that the mask lets calibrate."""
    counts[:] = 0
    for number in range(stop):
        hop = hop_of[number]
        if hop > 0 and (mask[number >> 6] >> np.uint64(number & 63)) & np.uint64(1):
            counts[hop - 1] += 1


@part
def _mass(weights, d, counts):
    mass = 0.0
    for k in range(weights.shape[1]):
        mass += weights[d, k] * np.float64(counts[k])
    return mass


@jit
def far_thresholds(
    sources, indptr, indices, numbers, masks, pair_offsets, pair_split, weights, levels, rounding, scores, thresholds,
    hop_counts,
):  # fmt: skip
    """Search around each source and select for each (source, split) pair, as `shallow.dense_thresholds` does.

    Sources go by their ids, and `numbers` says what number each node has.
    """
    nodes, known, hops = numbers.shape[0], scores.shape[0], weights.shape[1]
    stamps = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, indices.dtype)
    hop_of = np.zeros(known, np.int64)
    counts = np.empty(hops, np.int64)
    for i in range(sources.shape[0]):
        hop_of[:] = 0
        _walk(sources[i], indptr, indices, numbers, known, hops, i, stamps, queue, hop_of)
        for p in range(pair_offsets[i], pair_offsets[i + 1]):
            mask = masks[pair_split[p]]
            _count(hop_of, mask, known, hop_counts[p])
            for d in range(weights.shape[0]):
                total = _mass(weights, d, hop_counts[p])
                for a in range(levels.shape[0]):
                    needed = levels[a] * (1.0 + total) * (1.0 - rounding)
                    thresholds[p, d, a] = np.inf
                    if total >= needed:
                        low, high = np.int64(0), np.int64(known - 1)
                        while low < high:
                            middle = (low + high) >> 1
                            _count(hop_of, mask, middle + 1, counts)
                            if _mass(weights, d, counts) >= needed:
                                high = middle
                            else:
                                low = middle + 1
                        thresholds[p, d, a] = scores[low]
