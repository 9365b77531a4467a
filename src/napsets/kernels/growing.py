"""Rows of neighbours with room to grow: an edge is entered without building the graph again.

Row v is ``columns[starts[v] : starts[v] + sizes[v]]``, ascending, with room for ``rooms[v]`` neighbours. A row that is
full moves to the end of `columns` and gets twice the room; what it leaves behind is reclaimed when rows are packed.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part

_LEAST_ROOM = 4


@part
def _place(column, columns, start, size):
    """Return where a column stands, or would stand, in a row that ascends."""
    low, high = start, start + size
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


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
        if row == column:
            continue
        start, size = starts[row], sizes[row]
        place = _place(column, columns, start, size)
        if place < start + size and columns[place] == column:
            continue
        if size == rooms[row]:
            room = max(_LEAST_ROOM, 2 * size)
            if used + room > columns.size:
                return e, used
            columns[used : used + size] = columns[start : start + size]
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
        start, size = starts[row], sizes[row]
        place = _place(column, columns, start, size)
        if place < start + size and columns[place] == column:
            for i in range(place, start + size - 1):
                columns[i] = columns[i + 1]
            sizes[row] = size - 1
            removed += 1
    return removed


@jit
def pack_rows(starts, sizes, columns, offsets, packed):
    """Write the rows one after another, without gaps."""
    for row in range(starts.size):
        packed[offsets[row] : offsets[row] + sizes[row]] = columns[starts[row] : starts[row] + sizes[row]]


@jit
def has_edges(source, target, starts, sizes, columns):
    """Return which directed edges are there."""
    there = np.zeros(source.size, np.bool_)
    for e in range(source.size):
        start, size = starts[source[e]], sizes[source[e]]
        place = _place(target[e], columns, start, size)
        there[e] = place < start + size and columns[place] == target[e]
    return there
