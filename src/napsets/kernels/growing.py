"""Rows of neighbours with room to grow, for a graph that changes, and the surroundings of its nodes.

An edge is entered without building the graph again. Row v is ``columns[starts[v] : starts[v] + sizes[v]]``, ascending,
with room for ``rooms[v]`` neighbours. A row that is full moves to the end of `columns` and gets twice the room; what it
leaves behind is reclaimed when rows are packed. A *slot* is the row of a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, jit, part, prefetch
from napsets.kernels.layout import Array

_LEAST_ROOM = 4
#: Rows that are asked for ahead of their use, and entries of one that are.
_AHEAD, _COLUMNS = 64, 32


class GrowingRows(NamedTuple):
    """A graph with room to grow, as above."""

    starts: Array
    sizes: Array
    columns: Array


class Walk(NamedTuple):
    """Room for one search."""

    stamps: Array  #: int64 of shape (slots,). When each slot was last met.
    clock: Array  #: int64 of shape (1,). The time of the last search.
    queue: Array  #: int64 of shape (slots,). The slots met, hop by hop.
    ends: Array  #: int64 of shape (hops + 1,). Where each hop ends in the queue.


@part
def _ask_for(slots, starts, sizes, columns):
    """Ask the cache for the rows of some slots, all at once, instead of waiting for each in turn."""
    for slot in slots:
        prefetch(starts, slot)
        prefetch(sizes, slot)
    for slot in slots:
        for j in range(starts[slot], starts[slot] + min(sizes[slot], _COLUMNS), 16):
            prefetch(columns, j)


@part
def _walk_hops(source, hops, rows, walk, flags):
    """List the slots within some hops of one, itself first; at the last hop only those with a flag."""
    rows, walk = borrowed(rows), borrowed(walk)
    starts, sizes, columns = rows.starts, rows.sizes, rows.columns
    stamps, queue, ends = walk.stamps, walk.queue, walk.ends
    walk.clock[0] += 1
    now = walk.clock[0]
    stamps[source] = now
    queue[0] = source
    first, count = 0, 1
    ends[0] = 1
    for k in range(1, hops + 1):
        last = count
        for begin in range(first, last, _AHEAD):
            end = min(begin + _AHEAD, last)
            _ask_for(queue[begin:end], starts, sizes, columns)
            for i in range(begin, end):
                start = starts[queue[i]]
                for j in range(start, start + sizes[queue[i]]):
                    other = columns[j]
                    if (k < hops or flags[other]) and stamps[other] != now:
                        stamps[other] = now
                        queue[count] = other
                        count += 1
        ends[k] = count
        first = last
    return count


@part
def _find(row, column, starts, sizes, columns):
    """Find the place of a column in a row that ascends, and whether it is there."""
    low, end = starts[row], starts[row] + sizes[row]
    high = end
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low, low < end and columns[low] == column


@jit
def insert_edges(source, target, starts, sizes, rooms, columns, used):
    """Enter directed edges that ascend and occur once each, row by row, until there is no room.

    `used` entries of `columns` belong to some row, or did. Returns how many edges were handled, how many of them are
    new, and the new `used`.
    """
    begin, added = 0, 0
    while begin < source.size:
        row, stop, fresh = source[begin], begin, 0
        while stop < source.size and source[stop] == row:
            fresh += not _find(row, target[stop], starts, sizes, columns)[1]
            stop += 1
        start, size = starts[row], sizes[row]
        if size + fresh > rooms[row]:
            room = max(_LEAST_ROOM, 2 * size, size + fresh)
            if used + room > columns.size:
                return begin, added, used
            for i in range(size):
                columns[used + i] = columns[start + i]
            start = used
            starts[row], rooms[row] = used, room
            used += room
        # Merge from the end, where there is room.
        old, new, place = start + size - 1, stop - 1, start + size + fresh - 1
        while place > old:
            if old >= start and columns[old] >= target[new]:
                new -= columns[old] == target[new]
                columns[place] = columns[old]
                old -= 1
            else:
                columns[place] = target[new]
                new -= 1
            place -= 1
        sizes[row] = size + fresh
        added += fresh
        begin = stop
    return begin, added, used


@jit
def remove_edges(source, target, starts, sizes, columns):
    """Remove directed edges, which ascend, row by row; return the number of those that existed."""
    begin, removed = 0, 0
    while begin < source.size:
        row, stop = source[begin], begin
        while stop < source.size and source[stop] == row:
            stop += 1
        kept, _ = _find(row, target[begin], starts, sizes, columns)
        end = starts[row] + sizes[row]
        for place in range(kept, end):
            while begin < stop and target[begin] < columns[place]:
                begin += 1
            if begin == stop or target[begin] != columns[place]:
                columns[kept] = columns[place]
                kept += 1
        sizes[row] = kept - starts[row]
        removed += end - kept
        begin = stop
    return removed


@jit
def pack_rows(starts, sizes, columns, offsets, packed):
    """Write the rows one after another, without gaps."""
    for row in range(starts.size):
        for i in range(sizes[row]):
            packed[offsets[row] + i] = columns[starts[row] + i]


@jit
def has_edges(source, target, starts, sizes, columns):
    """Return a flag for each directed edge: whether it exists."""
    there = np.zeros(source.size, np.bool_)
    for e in range(source.size):
        _, there[e] = _find(source[e], target[e], starts, sizes, columns)
    return there


# -- what is around nodes ----------------------------------------------------------------------------------------------


@jit
def list_around(slots, hops, rows, walk, flags):
    """List the flagged slots around each of `slots`, hop by hop; return them, and their number by hop."""
    counts = np.zeros((slots.size, hops), np.int64)
    met, total = np.empty(256, np.int64), 0
    for i in range(slots.size):
        _walk_hops(slots[i], hops, rows, walk, flags)
        for k in range(1, hops + 1):
            for j in range(walk.ends[k - 1], walk.ends[k]):
                other = walk.queue[j]
                if flags[other]:
                    if total == met.size:
                        met = np.concatenate((met, np.empty_like(met)))
                    met[total] = other
                    total += 1
                    counts[i, k - 1] += 1
    return met[:total], counts


@jit
def count_labels(slots, rows, labels, near):
    """Count the labels of neighbours; −1 does not count."""
    rows = borrowed(rows)
    for i in range(slots.size):
        start = rows.starts[slots[i]]
        for j in range(start, start + rows.sizes[slots[i]]):
            label = labels[rows.columns[j]]
            if label >= 0:
                near[i, label] += 1.0


@jit
def walk_on(slots, rows, labels, walked, worth, met):
    """Write the labels that a walk meets from each slot: those of the neighbours and of the walks from there.

    Neighbours beyond the rows of `walked` count with their labels alone.
    """
    rows, classes = borrowed(rows), met.shape[1]
    for i in range(slots.size):
        start, size = rows.starts[slots[i]], rows.sizes[slots[i]]
        for j in range(start, start + size):
            other = rows.columns[j]
            if labels[other] >= 0:
                met[i, labels[other]] += 1.0
            if other < walked.shape[0]:
                for c in range(classes):
                    met[i, c] += walked[other, c]
        for c in range(classes):
            met[i, c] *= worth / max(size, 1)


@jit
def average_outputs(slots, rows, outputs, means, stale, around):
    """Write the mean outputs of the neighbours and of their neighbours, added in the order of a batch.

    `means` holds the mean over the neighbours of every slot; those that are stale are computed again where they are
    needed.
    """
    rows, classes = borrowed(rows), outputs.shape[1]
    for i in range(slots.size):
        slot, size = slots[i], rows.sizes[slots[i]]
        _renew(slot, rows, outputs, means, stale)
        for c in range(classes):
            around[i, c] = 0.0 if size > 0 else means[slot, c]
        for j in range(rows.starts[slot], rows.starts[slot] + size):
            other = rows.columns[j]
            _renew(other, rows, outputs, means, stale)
            for c in range(classes):
                around[i, c] += means[other, c]
        for c in range(classes):
            around[i, c] = 0.5 * (means[slot, c] + around[i, c] / max(size, 1))


@part
def _renew(slot, rows, outputs, means, stale):
    """Compute the mean over the neighbours of a slot again if it is stale; without neighbours, take its output."""
    if stale[slot]:
        size, classes = rows.sizes[slot], outputs.shape[1]
        for c in range(classes):
            means[slot, c] = 0.0 if size > 0 else np.float64(outputs[slot, c])
        for j in range(rows.starts[slot], rows.starts[slot] + size):
            other = rows.columns[j]
            for c in range(classes):
                means[slot, c] += outputs[other, c]
        for c in range(classes):
            means[slot, c] /= max(size, 1)
        stale[slot] = False
