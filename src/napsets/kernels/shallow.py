"""Breadth-first search one source at a time, marking bits.

The last hop needs neither a visited test nor a queue: every edge sets a bit, in a vector small enough for a near
cache, and what was seen before is masked out afterwards, word by word. No branch depends on the data, so the
processor never guesses wrong. Nodes carry the numbers that `selection` wants; rows stay where they are.

`dense_search` walks over all words of a vector for each source, and adds the rows of hubs as vectors (see
`layout`). `sparse_search` keeps a second vector with one bit per word, and touches only words that were marked:
right where a neighbourhood is a small part of the graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, frozen, jit, lowest_bit, part, prefetch
from napsets.kernels.layout import BLOCK_WORDS, Array, HubRows, lined_zeros, room_for
from napsets.kernels.selection import finish

_AHEAD = 4  # rows between asking the cache for a row and reading it


class NumberedRows(NamedTuple):
    """The graph's rows by number."""

    #: int64 of shape (nodes,). The row of number u is ``columns[starts[u]:stops[u]]``.
    starts: Array
    stops: Array
    #: int64 of shape (nodes,). Where the row stops for the last hop, to which none but calibration nodes matter.
    middles: Array
    #: integers of shape (edges,). Neighbours: by number, those that calibrate first in each row, if `numbers` is None;
    #: otherwise by id.
    columns: Array
    #: integers of shape (nodes,) or None. The number of each id. Looking it up on the way saves the renumbered copy of
    #: the graph, where only few of its rows are read.
    numbers: Array | None


class _DenseRoom(NamedTuple):
    """Where a dense search works: one vector per hop, what was seen, a queue, and the hubs met in it."""

    bits: Array
    seen: Array
    queue: Array
    met: Array


class _SparseRoom(NamedTuple):
    """Where a sparse search works: one vector per hop, the words of each that are marked, what was seen, a queue.

    Of `bits` and of a split's mask the marked words are kept side by side in `kept` and `mask`.
    """

    bits: Array
    marked: Array
    seen: Array
    queue: Array
    kept: Array
    mask: Array


@part
def _number(numbers, column):
    return column if numbers is None else numbers[column]


@part
def _first_frontier(source, rows, queue):
    """Queue the source's neighbours; return how many."""
    start = rows.starts[source]
    count = rows.stops[source] - start
    for i in range(count):
        queue[i] = _number(rows.numbers, rows.columns[start + i])
    return count


@part
def _bit(v):
    return np.uint64(1) << np.uint64(v & 63)


@part
def _meet_hubs(queue, count, ends, met):
    """List the hubs among the queued nodes; return how many."""
    hubs = 0
    for i in range(count):
        end = ends[queue[i]]
        met[hubs] = ~end
        hubs += end < 0
    return hubs


@part
def _add_hubs(met, hubs, vectors, words, ring):
    """Write the neighbours of the hubs that were met, two hubs at a time, over whatever `ring` held."""
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
    starts, columns = rows.starts, rows.columns
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(columns, starts[queue[i + _AHEAD]])
        u = queue[i]
        for e in range(starts[u], ends[u]):
            v = columns[e]
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
def _forget_row(source, rows, ring):
    """Clear the words that hold a source's neighbours."""
    for e in range(rows.starts[source], rows.stops[source]):
        ring[rows.columns[e] >> 6] = np.uint64(0)


@part
def _search_dense(source, rows, hubs, words, last_words, space):
    """Fill ``bits[k]`` with the nodes at distance exactly k+1 from `source`; of the last hop, the first words only.

    ``bits[0]`` comes empty.
    """
    bits, seen, queue = space.bits, space.seen, space.queue
    hops = bits.shape[0]
    count = _first_frontier(source, rows, queue)
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
            count = np.int64(0)
            for w in range(words):
                count = _list_bits(ring[w], w, queue, count)


def dense_search(
    sources: Array, rows: NumberedRows, hubs: HubRows, hops: int, ending: tuple[Any, ...], first: int, last: int
) -> None:
    """Search around each of some sources, by number, and do for each of its pairs what is wanted; see `layout`.

    The columns of the rows must be numbers.
    """
    words, mask_words = (rows.starts.size + 63) // 64, ending[0].masks.shape[1]
    space = _DenseRoom(
        lined_zeros((hops, max(words, mask_words)), np.uint64),
        np.zeros(words, np.uint64),
        np.empty(rows.starts.size, rows.columns.dtype),
        np.empty(hubs.vectors.shape[0] + 1, np.int64),
    )
    _dense(first, last, sources, rows, hubs, space, *ending, room_for(hops, mask_words))


@jit
def _dense(first, last, sources, rows, hubs, space, pairs, selection, pooling, counting, room):
    rows, hubs, space, pairs, room = borrowed(rows), borrowed(hubs), borrowed(space), borrowed(pairs), borrowed(room)
    selection, pooling, counting = borrowed(selection), borrowed(pooling), borrowed(counting)
    words, mask_words = space.seen.shape[0], pairs.masks.shape[1]
    last_words = words if words < mask_words else mask_words
    bits = frozen(space.bits)
    for i in range(first, last):
        _search_dense(sources[i], rows, hubs, words, last_words, space)
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            mask = pairs.masks[pairs.splits[p]]
            finish(i, p, bits, mask, mask_words, room, pairs, selection, pooling, counting)
        _forget_row(sources[i], rows, space.bits[0])


@part
def _search_sparse(source, rows, space):
    """Fill ``bits[k]`` as `_search_dense` does, and set a bit of ``marked[k]`` for each word that was written."""
    starts, columns, numbers = rows.starts, rows.columns, rows.numbers
    bits, marked, seen, queue = space.bits, space.marked, space.seen, space.queue
    hops = bits.shape[0]
    top_words = marked.shape[1]
    seen[source >> 6] |= _bit(source)
    count = _first_frontier(source, rows, queue)
    for i in range(count):
        v = queue[i]
        bits[0, v >> 6] |= _bit(v)
        marked[0, v >> 12] |= _bit(v >> 6)
        seen[v >> 6] |= _bit(v)
    for k in range(1, hops):
        ring, top = bits[k], marked[k]
        ends = rows.stops if k + 1 < hops else rows.middles
        for i in range(count):
            if i + _AHEAD < count:
                prefetch(columns, starts[queue[i + _AHEAD]])
            u = queue[i]
            for e in range(starts[u], ends[u]):
                v = _number(numbers, columns[e])
                ring[v >> 6] |= _bit(v)
                top[v >> 12] |= _bit(v >> 6)
        count = np.int64(0)
        for t in range(top_words):
            rest = top[t]
            while rest != np.uint64(0):
                w = t * 64 + lowest_bit(rest)
                rest &= rest - np.uint64(1)
                ring[w] &= ~seen[w]
                seen[w] |= ring[w]
                if k + 1 < hops:
                    count = _list_bits(ring[w], w, queue, count)


@part
def _keep_marked(bits, marked, mask_words, kept, base):
    """Copy the marked words of calibration nodes side by side, in ascending order; return how many.

    Zeros follow them, up to the end of a block.
    """
    hops = bits.shape[0]
    count = np.int64(0)
    for t in range(marked.shape[1]):
        rest = np.uint64(0)
        for k in range(hops):
            rest |= marked[k, t]
        while rest != np.uint64(0):
            w = t * 64 + lowest_bit(rest)
            rest &= rest - np.uint64(1)
            if w < mask_words:
                for k in range(hops):
                    kept[k, count] = bits[k, w]
                base[count] = w
                count += 1
    for w in range(count, (count + BLOCK_WORDS - 1) // BLOCK_WORDS * BLOCK_WORDS):
        for k in range(hops):
            kept[k, w] = np.uint64(0)
    return count


@part
def _forget(source, bits, marked, seen):
    """Set back to zero every word that a search wrote, and no other."""
    seen[source >> 6] = np.uint64(0)
    for k in range(bits.shape[0]):
        for t in range(marked.shape[1]):
            rest = marked[k, t]
            marked[k, t] = np.uint64(0)
            while rest != np.uint64(0):
                w = t * 64 + lowest_bit(rest)
                rest &= rest - np.uint64(1)
                bits[k, w] = np.uint64(0)
                seen[w] = np.uint64(0)


def sparse_search(
    sources: Array, rows: NumberedRows, hops: int, ending: tuple[Any, ...], first: int, last: int
) -> None:
    """Do what `dense_search` does, to the same bits, touching only the words that a search marks."""
    words, mask_words = (rows.starts.size + 63) // 64, ending[0].masks.shape[1]
    space = _SparseRoom(
        np.zeros((hops, words), np.uint64),
        np.zeros((hops, (words + 63) // 64), np.uint64),
        np.zeros(words, np.uint64),
        np.empty(rows.starts.size, rows.columns.dtype),
        lined_zeros((hops, mask_words), np.uint64),
        lined_zeros((mask_words,), np.uint64),
    )
    _sparse(first, last, sources, rows, space, *ending, room_for(hops, mask_words))


@jit
def _sparse(first, last, sources, rows, space, pairs, selection, pooling, counting, room):
    rows, space, pairs, room = borrowed(rows), borrowed(space), borrowed(pairs), borrowed(room)
    selection, pooling, counting = borrowed(selection), borrowed(pooling), borrowed(counting)
    base, mask = room.base, space.mask
    kept, kept_mask = frozen(space.kept), frozen(mask)
    for i in range(first, last):
        _search_sparse(sources[i], rows, space)
        words = _keep_marked(space.bits, space.marked, pairs.masks.shape[1], space.kept, base)
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            whole = pairs.masks[pairs.splits[p]]
            for w in range(words):
                mask[w] = whole[base[w]]
            finish(i, p, kept, kept_mask, words, room, pairs, selection, pooling, counting)
        _forget(sources[i], space.bits, space.marked, space.seen)


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


@jit
def count_touched(sources, indptr, indices, hops, limit, stamps, queue, stamp, hub, last_share):
    """Count the edges that searches of `hops` hops from some sources read, and the work of reading them.

    An edge is one unit of work. `hub` is the least degree of a hub and the work of all its edges together, which are
    added as a vector; in the last hop only a share of the edges matters. Counting ends once the work passes `limit`.

    Nodes go by their ids here. Source i leaves the mark ``stamp + i + 1``, which no search with the same `stamps`
    may have used before; `queue` holds one entry more than there are nodes, because an entry is written before it
    is known whether it stays.
    """
    hub_degree, hub_work = hub
    edges, work = np.int64(0), 0.0
    for i in range(sources.shape[0]):
        mark = np.int64(stamp + i + 1)
        queue[0] = sources[i]
        stamps[sources[i]] = mark
        first, last = np.int64(0), np.int64(1)
        for k in range(hops):
            end = last
            share = 1.0 if k + 1 < hops else last_share
            while first < end and work <= limit:
                u = queue[first]
                first += 1
                degree = indptr[u + 1] - indptr[u]
                edges += degree
                work += share * (degree if degree < hub_degree else hub_work)
                if k + 1 < hops:
                    for e in range(indptr[u], indptr[u + 1]):
                        v = indices[e]
                        queue[last] = v
                        last += stamps[v] != mark
                        stamps[v] = mark
    return edges, work
