"""Arrays with room to grow, for a graph that changes: rows of neighbours, and pairs of numbers in order.

*Rows.* An edge is entered without building the graph again. Row v is ``columns[starts[v] : starts[v] + sizes[v]]``,
ascending, with room for ``rooms[v]`` neighbours. A row that is full moves to the end of `columns` and gets twice the
room; what it leaves behind is reclaimed when rows are packed.

*Pairs.* One is entered, removed, counted or found without moving all others. Block i holds ``sizes[i]`` pairs that
ascend, by their first number and then by their second, and its pairs come before those of block i + 1; ``before[i]``
pairs stand in the blocks before it. A block that is full is halved. ``used[0]`` blocks are in use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import borrowed, jit, part, prefetch

_LEAST_ROOM = 4
#: Rows that are asked for ahead of their use, and entries of one that are.
AHEAD, _COLUMNS = 64, 32


class GrowingRows(NamedTuple):
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
    """Enter directed edges, unless they are there or loops, until there is no room; `changed` says which were new.

    `used` entries of `columns` belong to some row, or did. Returns how many edges were handled, and the new `used`.
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


# -- pairs of numbers in order -----------------------------------------------------------------------------------------

BLOCK = 512
_FEWEST_BLOCKS = 4


class Blocks(NamedTuple):
    """The pairs as kernels see them: arrays of shape (blocks, BLOCK), and of shape (blocks,)."""

    first: Any
    second: Any
    sizes: Any
    before: Any
    used: Any


@part
def _place_in(blocks, block, a, b, after):
    """Return how many pairs of a block are below (a, b); with `after`, up to and including it."""
    low, high = 0, blocks.sizes[block]
    while low < high:
        middle = (low + high) // 2
        x, y = blocks.first[block, middle], blocks.second[block, middle]
        if x < a or (x == a and (y < b or (after and y == b))):
            low = middle + 1
        else:
            high = middle
    return low


@part
def _find_pair(blocks, a, b, after):
    """Return the first block that does not lie below (a, b) as a whole, or else the last, and the place there."""
    low, high = 0, blocks.used[0] - 1
    while low < high:
        middle = (low + high) // 2
        last = blocks.sizes[middle] - 1
        x, y = blocks.first[middle, last], blocks.second[middle, last]
        if x < a or (x == a and (y < b or (after and y == b))):
            low = middle + 1
        else:
            high = middle
    return low, _place_in(blocks, low, a, b, after)


@jit
def count_pairs(blocks, a, b, after):
    """Return how many pairs are below (a, b); with `after`, up to and including it."""
    blocks = borrowed(blocks)
    block, place = _find_pair(blocks, a, b, after)
    return blocks.before[block] + place


@part
def pair_at(blocks, place):
    """Return the pair at a place, from 0."""
    blocks = borrowed(blocks)
    low, high = 0, blocks.used[0]
    while high - low > 1:
        middle = (low + high) // 2
        if blocks.before[middle] <= place:
            low = middle
        else:
            high = middle
    return blocks.first[low, place - blocks.before[low]], blocks.second[low, place - blocks.before[low]]


@part
def _add_up(blocks, start):
    """Recount the pairs before each block, from one block on."""
    for block in range(start, blocks.used[0]):
        blocks.before[block] = blocks.before[block - 1] + blocks.sizes[block - 1] if block else 0


@part
def _copy(blocks, block, start, target):
    """Copy the pairs of a block, from one on, to the start of another block."""
    size = blocks.sizes[block] - start
    for i in range(size):
        blocks.first[target, i] = blocks.first[block, start + i]
        blocks.second[target, i] = blocks.second[block, start + i]
    blocks.sizes[target] = size


@jit
def insert_pair(blocks, a, b):
    """Enter a pair, and return whether there was a block left for it."""
    block, place = _find_pair(blocks, a, b, False)
    if blocks.sizes[block] == BLOCK:
        used = blocks.used[0]
        if used == blocks.sizes.size:
            return False
        for i in range(used, block + 1, -1):
            _copy(blocks, i - 1, 0, i)
        half = BLOCK // 2
        _copy(blocks, block, half, block + 1)
        blocks.sizes[block] = half
        blocks.used[0] = used + 1
        block, place = _find_pair(blocks, a, b, False)
    for i in range(blocks.sizes[block], place, -1):
        blocks.first[block, i] = blocks.first[block, i - 1]
        blocks.second[block, i] = blocks.second[block, i - 1]
    blocks.first[block, place], blocks.second[block, place] = a, b
    blocks.sizes[block] += 1
    _add_up(blocks, max(block - 1, 0))
    return True


@jit
def move_pair(blocks, a, old, new):
    """Replace the pair (a, old), which must exist, by (a, new), and return whether there was a block left for it."""
    block, place = _find_pair(blocks, a, old, False)
    row, last = blocks.second[block], blocks.sizes[block] - 1
    after = blocks.first[block, 0] < a or row[0] <= new
    if after and (blocks.first[block, last] > a or new <= row[last]):  # it stays in its block
        target = _place_in(blocks, block, a, new, False)
        while place < target - 1:
            row[place] = row[place + 1]
            place += 1
        while place > target:
            row[place] = row[place - 1]
            place -= 1
        row[place] = new
        return True
    remove_pair(blocks, a, old)
    return insert_pair(blocks, a, new)


@jit
def remove_pair(blocks, a, b):
    """Remove one such pair, which must exist."""
    low, place = _find_pair(blocks, a, b, False)
    size = blocks.sizes[low] - 1
    for i in range(place, size):
        blocks.first[low, i] = blocks.first[low, i + 1]
        blocks.second[low, i] = blocks.second[low, i + 1]
    blocks.sizes[low] = size
    if size == 0:
        used = blocks.used[0] - 1
        for i in range(low, used):
            _copy(blocks, i + 1, 0, i)
        blocks.sizes[used] = 0
        blocks.used[0] = max(used, 1)
    _add_up(blocks, max(low - 1, 0))


class OrderedPairs:
    """Pairs of numbers in order, with room to grow."""

    def __init__(self) -> None:
        self.blocks = _room(_FEWEST_BLOCKS)

    @property
    def size(self) -> int:
        """How many pairs there are."""
        last = self.blocks.used[0] - 1
        return int(self.blocks.before[last] + self.blocks.sizes[last])

    @property
    def pairs(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The first and the second numbers of all pairs, in order."""
        used = int(self.blocks.used[0])
        listed = np.arange(BLOCK) < self.blocks.sizes[:used, None]
        return self.blocks.first[:used][listed], self.blocks.second[:used][listed]

    def fill(self, first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> None:
        """Enter many pairs where there are none yet."""
        order = np.lexsort((second, first))
        half = BLOCK // 2
        count = max(1, -(-order.size // half))
        self.blocks = _room(max(_FEWEST_BLOCKS, 2 * count))
        for block in range(count):
            some = order[block * half : (block + 1) * half]
            self.blocks.first[block, : some.size], self.blocks.second[block, : some.size] = first[some], second[some]
            self.blocks.sizes[block], self.blocks.before[block] = some.size, block * half
        self.blocks.used[0] = count

    def add(self, first: float, second: float) -> None:
        """Enter a pair."""
        while not insert_pair(self.blocks, float(first), second):
            self.grow()

    def grow(self) -> None:
        """Make room for twice as many blocks."""
        old = self.blocks
        self.blocks = _room(2 * old.sizes.size)
        for new, array in zip(self.blocks[:4], old[:4], strict=True):
            new[: old.sizes.size] = array
        self.blocks.used[0] = old.used[0]

    def remove(self, first: float, second: float) -> None:
        """Remove a pair that exists."""
        remove_pair(self.blocks, float(first), second)

    def count(self, first: float, second: float, *, after: bool = False) -> int:
        """Return how many pairs are below one; with `after`, up to and including it."""
        return int(count_pairs(self.blocks, float(first), second, after))


def _room(count: int) -> Blocks:
    shape = (count, BLOCK)
    counts = [np.zeros(count, np.int64) for _ in range(2)]
    return Blocks(np.zeros(shape), np.zeros(shape), counts[0], counts[1], np.ones(1, np.int64))
