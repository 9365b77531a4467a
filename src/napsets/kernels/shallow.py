"""Breadth-first search one source at a time, marking bits.

The last hop needs neither a visited test nor a queue: every edge sets a bit, in a vector small enough for a near
cache, and what was seen before is masked out afterwards, word by word. No branch depends on the data, so the
processor never guesses wrong. Nodes carry the numbers that `selection` wants; rows stay where they are.

All words of a vector are passed over once per hop, eight at a time, and the rows of hubs are added as vectors (see
`layout`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, frozen, jit, lowest_bit, part, prefetch
from napsets.kernels.layout import Array, Ending, HubRows, cache_aligned_zeros, ending_scratch
from napsets.kernels.selection import finish

_AHEAD = 4  # rows between asking the cache for a row and reading it


class NumberedRows(NamedTuple):
    """The graph's rows by number."""

    #: int64 of shape (nodes,). The row of number u is ``columns[starts[u]:stops[u]]``.
    starts: Array
    stops: Array
    #: integers of shape (edges,). Neighbours: by number, those that calibrate first in each row, if `numbers` is None;
    #: otherwise by id.
    columns: Array
    #: integers of shape (nodes,) or None. The number of each id. Looking it up on the way saves the renumbered copy of
    #: the graph, where only few of its rows are read.
    numbers: Array | None


class _DenseScratch(NamedTuple):
    """Scratch arrays of a search: one vector per hop, visited nodes, the neighbours, a queue, and the hubs in it."""

    bits: Array
    seen: Array
    first: Array
    queue: Array
    met: Array


@part
def _number(numbers, column):
    return column if numbers is None else numbers[column]


@part
def _first_ring(source, rows, first):
    """List the source's neighbours; return their number."""
    start = rows.starts[source]
    count = rows.stops[source] - start
    for i in range(count):
        first[i] = _number(rows.numbers, rows.columns[start + i])
    return count


@part
def _bit(v):
    return np.uint64(1) << np.uint64(v & 63)


@part
def _meet_hubs(queue, count, ends, met):
    """List the hubs among the queued nodes; return their number."""
    hubs = 0
    for i in range(count):
        end = ends[queue[i]]
        met[hubs] = ~end
        hubs += end < 0
    return hubs


@part
def _add_hubs(met, hubs, vectors, words, ring):
    """Overwrite `ring` with the neighbours of the hubs that were met, two hubs at a time."""
    for w in range(words):
        ring[w] = np.uint64(0)
    for h in range(0, hubs - 1, 2):
        one, other = vectors[met[h]], vectors[met[h + 1]]
        for w in range(words):
            ring[w] |= one[w] | other[w]
    if hubs & 1:
        last = vectors[met[hubs - 1]]
        for w in range(words):
            ring[w] |= last[w]


@part
def _mark_rows(queue, count, rows, ends, ring):
    """Set the bits of all neighbours of the queued nodes; the row of a hub ends before it starts."""
    starts, columns, numbers = rows.starts, rows.columns, rows.numbers
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(columns, starts[queue[i + _AHEAD]])
        u = queue[i]
        for e in range(starts[u], ends[u]):
            v = _number(numbers, columns[e])
            ring[v >> 6] |= _bit(v)


@part
def _list_bits(word, w, queue, count):
    """Queue the numbers of a word's bits; return the new length of the queue."""
    while word != np.uint64(0):
        queue[count] = w * 64 + lowest_bit(word)
        count += 1
        word &= word - np.uint64(1)
    return count


@part
def _search_dense(source, rows, hubs, words, last_words, space):
    """Fill ``bits[k]`` with the nodes at distance exactly k+1 from `source`; of the last hop, the first words only.

    ``bits[0]`` comes empty. Returns how many nodes are at distance 1; they are listed in ``space.first``.
    """
    bits, seen, queue = space.bits, space.seen, space.first
    hops = bits.shape[0]
    degree = count = _first_ring(source, rows, queue)
    for i in range(count):
        bits[0, queue[i] >> 6] |= _bit(queue[i])
    for k in range(1, hops):
        before, ring = bits[k - 1], bits[k]
        wanted, ends = (words, hubs.ends) if k + 1 < hops else (last_words, hubs.last_ends)
        met = _meet_hubs(queue, count, ends, space.met)
        _add_hubs(space.met, met, hubs.vectors, wanted, ring)
        _mark_rows(queue, count, rows, ends, ring)
        if k == 1:
            for w in range(wanted):
                ring[w] &= ~before[w]
        else:
            for w in range(wanted):
                # What was seen is the first ring, when the second has just been found, and grows from there.
                old = (bits[0, w] if k == 2 else seen[w]) | before[w]
                seen[w] = old
                ring[w] &= ~old
        ring[source >> 6] &= ~_bit(source)
        if k + 1 < hops:
            queue, count = space.queue, np.int64(0)
            for w in range(words):
                count = _list_bits(ring[w], w, queue, count)
    return degree


def dense_search(
    sources: Array, rows: NumberedRows, hubs: HubRows, hops: int, ending: Ending, first: int, last: int
) -> None:
    """Search around the sources first..last, by number, and select thresholds or count for each of their pairs."""
    words, mask_words = (rows.starts.size + 63) // 64, ending[0].mask.size
    space = _DenseScratch(
        cache_aligned_zeros((hops, max(words, mask_words)), np.uint64),
        np.zeros(words, np.uint64),
        np.empty(rows.starts.size, rows.columns.dtype),
        np.empty(rows.starts.size, rows.columns.dtype),
        np.empty(hubs.vectors.shape[0] + 1, np.int64),
    )
    _dense(first, last, sources, rows, hubs, space, *ending, ending_scratch(hops, mask_words))


@jit
def _dense(first, last, sources, rows, hubs, space, pairs, selection, pooling, counting, room):
    rows, hubs, space, pairs, room = borrowed(rows), borrowed(hubs), borrowed(space), borrowed(pairs), borrowed(room)
    selection, pooling, counting = borrowed(selection), borrowed(pooling), borrowed(counting)
    words, mask_words = space.seen.shape[0], pairs.mask.shape[0]
    last_words = words if words < mask_words else mask_words
    bits = frozen(space.bits)
    for i in range(first, last):
        degree = _search_dense(sources[i], rows, hubs, words, last_words, space)
        ring = space.first[:degree]
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            finish(i, p, bits, ring, room, pairs, selection, pooling, counting)
        for v in ring:
            space.bits[0, v >> 6] = np.uint64(0)


@jit
def best_connected_neighbours(nodes, indptr, indices, out):
    """Write each node's best connected neighbour, or itself where it has none."""
    for i in range(nodes.shape[0]):
        u = nodes[i]
        best, degree = np.int64(u), np.int64(-1)
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            if indptr[v + 1] - indptr[v] > degree:
                best, degree = v, indptr[v + 1] - indptr[v]
        out[i] = best
