"""Rows of neighbours with room to grow: an edge is entered without building the graph again.

Row v is ``columns[starts[v] : starts[v] + sizes[v]]``, ascending, with room for ``rooms[v]`` neighbours. A row that is
full moves to the end of `columns` and gets twice the room; what it leaves behind is reclaimed when rows are packed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, jit, part, prefetch

_LEAST_ROOM = 4
#: Rows that are asked for ahead of their use, and entries of one that are.
AHEAD, _COLUMNS = 64, 32


class Rows(NamedTuple):
    """A graph with room to grow, as above."""

    starts: Any
    sizes: Any
    columns: Any


class Walk(NamedTuple):
    """Room for one search."""

    stamps: Any  #: int64 of shape (slots,). When each slot was last met.
    clock: Any  #: int64 of shape (1,). The time of the last search.
    queue: Any  #: int64 of shape (slots,). The slots met, hop by hop.
    ends: Any  #: int64 of shape (hops + 1,). Where each hop ends in the queue.


@part
def ask_for(slots, starts, sizes, columns):
    """Ask the cache for the rows of some slots, all at once, instead of waiting for each in turn."""
    for slot in slots:
        prefetch(starts, slot)
        prefetch(sizes, slot)
    for slot in slots:
        for j in range(starts[slot], starts[slot] + min(sizes[slot], _COLUMNS), 16):
            prefetch(columns, j)


@part
def walk_hops(source, hops, rows, walk, marks, least):
    """List the slots within some hops of one, itself first; at the last hop only those with at least some mark."""
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
        for begin in range(first, last, AHEAD):
            end = min(begin + AHEAD, last)
            ask_for(queue[begin:end], starts, sizes, columns)
            for i in range(begin, end):
                start = starts[queue[i]]
                for j in range(start, start + sizes[queue[i]]):
                    other = columns[j]
                    if (k < hops or marks[other] >= least) and stamps[other] != now:
                        stamps[other] = now
                        queue[count] = other
                        count += 1
        ends[k] = count
        first = last
    return count


@part
def _find(row, column, starts, sizes, columns):
    """Return where a column stands, or would stand, in a row that ascends, and whether it is there."""
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
def insert_edges(source, target, starts, sizes, rooms, columns, used, changed):
    """Enter directed edges until there is no room; say which were new.

    Parameters
    ----------
    source, target : int64 of shape (edges,)
        The edges; those that are there already, and loops, change nothing.
    starts, sizes, rooms : int64 of shape (nodes,)
        The rows; written.
    columns : int32 or int64
        The neighbours; written.
    used : int
        Entries of `columns` that belong to some row, or did.
    changed : bool of shape (edges,)
        Written: which edges were not there before.

    Returns
    -------
    tuple of int
        How many edges were handled, and the new `used`.
    """
    for e in range(source.size):
        row, column = source[e], target[e]
        changed[e] = False
        place, there = _find(row, column, starts, sizes, columns)
        if there or row == column:
            continue
        start, size = starts[row], sizes[row]
        if size == rooms[row]:
            room = max(_LEAST_ROOM, 2 * size)
            if used + room > columns.size:
                return e, used
            for i in range(size):
                columns[used + i] = columns[start + i]
            place += used - start
            start = used
            starts[row], rooms[row] = used, room
            used += room
        for i in range(start + size, place, -1):
            columns[i] = columns[i - 1]
        columns[place] = column
        sizes[row] = size + 1
        changed[e] = True
    return source.size, used


@jit
def remove_edges(source, target, starts, sizes, columns):
    """Take directed edges out, and return how many were there."""
    removed = 0
    for e in range(source.size):
        row, column = source[e], target[e]
        place, there = _find(row, column, starts, sizes, columns)
        if there:
            sizes[row] -= 1
            for i in range(place, starts[row] + sizes[row]):
                columns[i] = columns[i + 1]
            removed += 1
    return removed


@jit
def pack_rows(starts, sizes, columns, offsets, packed):
    """Write the rows one after another, without gaps."""
    for row in range(starts.size):
        for i in range(sizes[row]):
            packed[offsets[row] + i] = columns[starts[row] + i]


@jit
def has_edges(source, target, starts, sizes, columns):
    """Return which directed edges are there."""
    there = np.zeros(source.size, np.bool_)
    for e in range(source.size):
        _, there[e] = _find(source[e], target[e], starts, sizes, columns)
    return there
