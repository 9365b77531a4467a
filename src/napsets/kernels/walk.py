"""Walking a graph ring by ring, one source at a time: how deep it is, its balls, and searches that go very far.

So many hops that a bit vector per hop would be nearly empty are walked in long, thin graphs such as paths and roads.
There a node met is a number and its hop, and halving gives the threshold: count by hop what lies up to a score,
weigh the counts in the order of the hops, and look whether that is enough. The sums are those of `selection`, to the
bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.layout import Array
from napsets.kernels.selection import needed, others_of, shares_of, weigh, with_others


@part
def walk(source, indptr, indices, hops, mark, stamps, queue, ends, least=None):
    """Queue the nodes within this many hops, ring after ring; return the furthest ring that has nodes, and how many.

    All of them get the mark, which no node to be walked to may have had before. Where `ends` is given, ring k stands at
    ``queue[ends[k - 1]:ends[k]]``. The walk ends as soon as `least` nodes are queued.
    """
    stamps[source] = mark
    queue[0] = source
    first, last, ring = np.int64(0), np.int64(1), np.int64(0)
    if ends is not None:
        ends[0] = 1
    while ring < hops:
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
                    if least is not None and last >= least:
                        return ring + 1, last
        if last == end:
            break
        ring += 1
        if ends is not None:
            ends[ring] = last
    return ring, last


@jit
def deepest_search(sources, indptr, indices, hops, stamps, queue):
    """Return the distance of the furthest node within `hops` of any source; `stamps` holds no marks but sources'."""
    deepest = np.int64(0)
    for i in range(sources.shape[0]):
        depth, _ = walk(sources[i], indptr, indices, hops, sources[i], stamps, queue, None)
        deepest = max(deepest, depth)
        if deepest == hops:
            break
    return deepest


@jit
def component_reach(indptr, indices):
    """Return a number of hops that no two connected nodes of an undirected graph are further apart than."""
    nodes = indptr.shape[0] - 1
    stamps = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, indices.dtype)
    reach = np.int64(0)
    for root in range(nodes):
        if stamps[root] < 0:
            depth, size = walk(root, indptr, indices, nodes, root, stamps, queue, None)
            reach = max(reach, min(2 * depth, size - 1))
    return reach


@jit
def cut_balls(indptr, indices, roots, radius, alive, members):
    """Take the ball around each root that is still alive, within what is alive, and remove it.

    Writes the balls' nodes one after the other into `members` and returns their offsets.
    """
    offsets = np.zeros(roots.shape[0] + 1, np.int64)
    balls = 0
    for r in range(roots.shape[0]):
        if alive[roots[r]]:
            start = offsets[balls]
            _, size = walk(roots[r], indptr, indices, radius, False, alive, members[start:], None)
            balls += 1
            offsets[balls] = start + size
    return offsets[: balls + 1]


@part
def _list_hops(source, indptr, indices, numbers, known, mark, stamps, queue, ends, hop_of):
    """Write the hop of each calibration node within reach into ``hop_of[number]``, and 0 for all others."""
    hop_of[:] = 0
    rings, _ = walk(source, indptr, indices, ends.shape[0] - 1, mark, stamps, queue, ends)
    for ring in range(1, rings + 1):
        for place in range(ends[ring - 1], ends[ring]):
            number = numbers[queue[place]]
            if number < known:
                hop_of[number] = ring


@part
def _count(hop_of, mask, stop, counts):
    """Count by hop the nodes with a number below `stop` that were met and that the mask lets calibrate."""
    for k in range(counts.shape[0]):
        counts[k, 0] = 0
    for number in range(stop):
        hop = hop_of[number]
        if hop > 0 and (mask[number >> 6] >> np.uint64(number & 63)) & np.uint64(1):
            counts[hop - 1, 0] += 1


@part
def _mass(i, p, hop_of, stop, d, counts, pairs, selection, pooling):
    """Return the mass of the nodes with a number below `stop`, for a row of weights."""
    _count(hop_of, pairs.masks[pairs.splits[p]], stop, counts)
    mass, others = weigh(selection.weights, d, counts, 0), others_of(i, p, pairs, pooling)
    return with_others(mass, shares_of(pooling, d, others), others, np.int64(stop - 1))


@part
def _select_far(i, p, hop_of, counts, pairs, selection, pooling):
    known = selection.scores.shape[0]
    for d in range(selection.weights.shape[0]):
        total = _mass(i, p, hop_of, known, d, counts, pairs, selection, pooling)
        for k in range(counts.shape[0]):
            selection.hop_counts[p, k] = counts[k, 0]
        for a in range(selection.levels.shape[0]):
            enough = needed(selection.levels[a], selection.rules[a], total, selection.rounding)
            if total < enough:
                selection.thresholds[p, d, a] = np.inf
            elif enough <= 0.0:
                selection.thresholds[p, d, a] = -np.inf
            else:
                low, high = np.int64(0), np.int64(known - 1)
                while low < high:
                    middle = (low + high) >> 1
                    if _mass(i, p, hop_of, middle + 1, d, counts, pairs, selection, pooling) >= enough:
                        high = middle
                    else:
                        low = middle + 1
                selection.thresholds[p, d, a] = selection.scores[low]


def far_search(
    sources: Array, rows: tuple[Array, Array], numbers: Array, known: int, hops: int, ending: Any, first: int, last: int
) -> None:
    """Search around some sources and do for each of their pairs what is wanted; see `layout`.

    Sources go by their ids; `numbers` says what number each node has, and those below `known` calibrate.
    """
    # Marks, a queue, where each ring ends in it, hops by number, and counts by hop.
    marks_and_queue = np.full(numbers.size, -1), np.empty(numbers.size, rows[1].dtype)
    room = (*marks_and_queue, np.empty(hops + 1, np.int64), np.empty(known, np.int64), np.empty((hops, 1), np.int64))
    _far(first, last, sources, *rows, numbers, known, room, *ending)


@jit
def _far(first, last, sources, indptr, indices, numbers, known, room, pairs, selection, pooling, counting):
    stamps, queue, ends, hop_of, counts = room
    for i in range(first, last):
        _list_hops(sources[i], indptr, indices, numbers, known, i, stamps, queue, ends, hop_of)
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            if selection is not None:
                _select_far(i, p, hop_of, counts, pairs, selection, pooling)
            if counting is not None:
                positions = counting.positions[p if counting.positions.shape[0] > 1 else 0]
                for q in range(positions.shape[0]):
                    _count(hop_of, pairs.masks[pairs.splits[p]], positions[q], counts)
                    for k in range(counts.shape[0]):
                        counting.counts[p, k, q] = counts[k, 0]
