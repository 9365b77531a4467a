"""Shortest paths by length, one source at a time, and thresholds from the calibration nodes that they meet.

The distance of a node is the smallest sum of lengths over all paths from the source, each path summed in float64 from
the source on. Rounding is monotone: a + l ≥ a, and a ≤ b gives a + l ≤ b + l. So Dijkstra's algorithm finds exactly
this minimum, whichever of two equally near nodes it settles first, and any correct implementation gives the same bits.

Nodes that wait are kept in a heap with four children per node, which knows where each of them stands: one that is
reached on a shorter path moves up, so that the heap never holds more than the nodes of the graph.

What was met is listed by number, that is in the order of the scores, without sorting: a bit is set for each number,
and a second vector, with one bit per word, leads to the words that have any. The mass is then a running sum in this
order; among equal scores the heaviest come first, so that neither the numbering of ties nor the order of visiting
changes a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, jit, lowest_bit, part, sort_in_place
from napsets.kernels.layout import Array
from napsets.kernels.selection import needed, others_of, shares_of, with_others

#: Nodes settled between two looks at whether to stop.
_SETTLED = 1 << 19


class Roads(NamedTuple):
    """A graph with lengths, and its calibration nodes."""

    #: Compressed sparse rows by node id, and the length of each entry.
    indptr: Array
    indices: Array
    lengths: Array
    #: The number of each node and the node of each number; those below `known` calibrate.
    numbers: Array
    nodes: Array
    known: int  #: The number of calibration nodes.


class Met(NamedTuple):
    """Calibration nodes met around some sources, one source after the other."""

    offsets: Array  #: int64 of shape (sources + 1,). Source i met the entries ``offsets[i]..offsets[i + 1]``.
    numbers: Array  #: integers of shape (room,). Their numbers, ascending for each source.
    distances: Array  #: float64 of shape (room,). Their distances from the source.


class Scratch(NamedTuple):
    """The arrays that a search works in."""

    distances: Array  #: float64 of shape (nodes,). The shortest sum found so far; +∞ between searches.
    touched: Array  #: integers of shape (nodes,). Nodes that have one.
    #: arrays of shape (nodes,). Distance and node at each slot of the heap.
    keys: Array
    heap: Array
    slots: Array  #: integers of shape (nodes,). Where a node stands in the heap.
    #: uint64. A bit for each number, and one for each word of those.
    marks: Array
    tops: Array


def search_scratch(roads: Roads) -> Scratch:
    """Return the arrays for searches on one thread."""
    nodes, ids = roads.indptr.size - 1, roads.indices.dtype
    words = (roads.known + 63) // 64
    return Scratch(
        np.full(nodes, np.inf),
        np.empty(nodes, ids),
        np.empty(nodes),
        np.empty(nodes, ids),
        np.empty(nodes, ids),
        np.zeros(words, np.uint64),
        np.zeros((words + 63) // 64, np.uint64),
    )


@part
def _rise(keys, heap, slots, at, key, node):
    """Put a node in at a place or above it, where its key belongs."""
    while at > 0:
        above = (at - 1) >> 2
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        heap[at] = heap[above]
        slots[heap[at]] = at
        at = above
    keys[at] = key
    heap[at] = node
    slots[node] = at


@part
def _sink(keys, heap, slots, size, key, node):
    """Put a node in at the top or below it, where its key belongs, in a heap of that size."""
    at = np.int64(0)
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        least, smallest = first, keys[first]
        for child in range(first + 1, min(first + 4, size)):
            if keys[child] < smallest:
                least, smallest = child, keys[child]
        if smallest >= key:
            break
        keys[at] = smallest
        heap[at] = heap[least]
        slots[heap[at]] = at
        at = least
    keys[at] = key
    heap[at] = node
    slots[node] = at


@part
def _settle(source, roads, radius, most, room):
    """Settle the nodes within a radius, or until this many of them calibrate.

    Marks the numbers of those that do; returns how many they are, how many nodes were settled and how many touched.
    """
    indptr, indices, lengths, numbers, known = roads.indptr, roads.indices, roads.lengths, roads.numbers, roads.known
    distances, touched, keys, heap, slots = room.distances, room.touched, room.keys, room.heap, room.slots
    distances[source] = 0.0
    touched[0] = source
    keys[0] = 0.0
    heap[0] = source
    size, reached, met, settled = np.int64(1), np.int64(1), np.int64(0), np.int64(0)
    while size > 0 and met < most:
        distance, u = keys[0], heap[0]
        size -= 1
        if size > 0:
            _sink(keys, heap, slots, size, keys[size], heap[size])
        settled += 1
        number = numbers[u]
        if number < known and u != source:
            room.marks[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
            room.tops[number >> 12] |= np.uint64(1) << np.uint64((number >> 6) & 63)
            met += 1
        for e in range(indptr[u], indptr[u + 1]):
            along = distance + lengths[e]
            if along <= radius:
                v = indices[e]
                before = distances[v]
                # A settled node is at most as far as this one, and so never reached on a shorter path.
                if along < before:
                    distances[v] = along
                    if before == np.inf:
                        touched[reached] = v
                        reached += 1
                        at, size = size, size + 1
                    else:
                        at = np.int64(slots[v])
                    _rise(keys, heap, slots, at, along, v)
    return met, settled, reached


@part
def _list(roads, room, numbers, distances, start):
    """List the marked numbers, ascending, from `start` on, and clear the marks; with a negative `start`, only clear."""
    at = start
    for t in range(room.tops.shape[0]):
        top = room.tops[t]
        room.tops[t] = np.uint64(0)
        while top != np.uint64(0):
            w = t * 64 + lowest_bit(top)
            top &= top - np.uint64(1)
            word = room.marks[w]
            room.marks[w] = np.uint64(0)
            while start >= 0 and word != np.uint64(0):
                number = w * 64 + lowest_bit(word)
                word &= word - np.uint64(1)
                numbers[at] = number
                distances[at] = room.distances[roads.nodes[number]]
                at += 1
    return at


@jit
def find_near(sources, roads, radius, most, room, met):
    """List the calibration nodes within a radius of each source, without the source; at most the nearest `most`.

    Goes on until the room for what is met is full, or many nodes were settled; returns how many sources were handled.
    There must be room for all that calibrate, so that this is at least one.
    """
    roads, room, met = borrowed(roads), borrowed(room), borrowed(met)
    used, work = np.int64(0), np.int64(0)
    for i in range(sources.shape[0]):
        if work > _SETTLED:
            return i
        count, settled, reached = _settle(sources[i], roads, radius, most, room)
        fits = used + count <= met.numbers.shape[0]
        if fits:
            used = _list(roads, room, met.numbers, met.distances, used)
        else:
            _list(roads, room, met.numbers, met.distances, np.int64(-1))
        for k in range(reached):
            room.distances[room.touched[k]] = np.inf
        if not fits:
            return i
        met.offsets[i + 1] = used
        work += settled
    return sources.shape[0]


@part
def _add_up(numbers, weights, start, stop, scores, running):
    """Write the running sum of the weights into `running`, with the heaviest of equal scores first."""
    total, first = 0.0, start
    while first < stop:
        last = first + 1
        while last < stop and scores[numbers[last]] == scores[numbers[first]]:
            last += 1
        if last - first > 1:
            sort_in_place(weights[first:last])
            for k in range((last - first) // 2):
                weights[first + k], weights[last - 1 - k] = weights[last - 1 - k], weights[first + k]
        for k in range(first, last):
            total += weights[k]
            running[k - start] = total
        first = last
    return total


@part
def _size_up(weights, start, stop, sizes):
    """Write the number of positive weights, (Σw)²/Σw², Σw and Σw²."""
    count, largest, mass, square = 0.0, 0.0, 0.0, 0.0
    for k in range(start, stop):
        count += weights[k] > 0.0
        largest = max(largest, weights[k])
        mass += weights[k]
        square += weights[k] * weights[k]
    sizes[0], sizes[1], sizes[2], sizes[3] = count, 0.0, mass, square
    if largest > 0.0:
        # Squares of tiny weights would be 0: relative to the largest they are not.
        mass, square = 0.0, 0.0
        for k in range(start, stop):
            share = weights[k] / largest
            mass += share
            square += share * share
        sizes[1] = mass * mass / square


@part
def _first_pooled(numbers, running, count, known, shares, others, enough):
    """Return the smallest number whose mass reaches `enough`, which the total does; see `selection`."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if with_others(running[middle], shares, others, np.int64(numbers[middle])) >= enough:
            high = middle
        else:
            low = middle + 1
    # Between two that were met, only those that count wherever they are add to the mass.
    near = running[low - 1] if low > 0 else 0.0
    first = np.int64(numbers[low - 1]) + 1 if low > 0 else np.int64(0)
    last = np.int64(numbers[low]) if low < count else np.int64(known - 1)
    while first < last:
        middle = (first + last) >> 1
        if with_others(near, shares, others, middle) >= enough:
            last = middle
        else:
            first = middle + 1
    return first


@part
def _select_row(source, numbers, total, running, d, selection, pooling):
    """Write the thresholds of one source for one row of weights, whose running sum ends with `total`."""
    scores, levels, thresholds = selection.scores, selection.levels, selection.thresholds
    known, count = np.int64(scores.shape[0]), np.int64(numbers.shape[0])
    if pooling is not None:
        others = others_of(source, known, pooling)
        shares = shares_of(pooling, d, others)
        total = with_others(total, shares, others, known - 1)
    for a in range(levels.shape[0]):
        enough = needed(levels[a], selection.rules[a], total, selection.rounding)
        if total < enough:
            thresholds[source, d, a] = np.inf
        elif enough <= 0.0:
            thresholds[source, d, a] = -np.inf
        elif pooling is not None:
            thresholds[source, d, a] = scores[_first_pooled(numbers, running, count, known, shares, others, enough)]
        else:
            thresholds[source, d, a] = scores[numbers[np.searchsorted(running[:count], enough)]]


@jit
def select_near(met, weights, first, last, selection, pooling, running, sizes):
    """Write the thresholds of the sources ``first..last`` for each row of weights and each level, and the sizes.

    `weights`, of shape (rows, met), are those of the nodes met, and are brought into the order of summing.
    ``sizes[source, row]`` gets what `_size_up` writes.
    """
    met, selection, pooling = borrowed(met), borrowed(selection), borrowed(pooling)
    for source in range(first, last):
        start, stop = met.offsets[source - first], met.offsets[source - first + 1]
        for d in range(weights.shape[0]):
            total = _add_up(met.numbers, weights[d], start, stop, selection.scores, running)
            _size_up(weights[d], start, stop, sizes[source, d])
            _select_row(source, met.numbers[start:stop], total, running, d, selection, pooling)


@jit
def rank_near(met, weights, first, last, scores, positions, running, below):
    """Write, for each source and row of weights, the mass with a number below the source's position, and in all.

    ``below[source, row]`` gets the two; all else is as for `select_near`.
    """
    met = borrowed(met)
    for source in range(first, last):
        start, stop = met.offsets[source - first], met.offsets[source - first + 1]
        for d in range(weights.shape[0]):
            below[source, d, 1] = _add_up(met.numbers, weights[d], start, stop, scores, running)
            count = np.searchsorted(met.numbers[start:stop], positions[source])
            below[source, d, 0] = running[count - 1] if count > 0 else 0.0
