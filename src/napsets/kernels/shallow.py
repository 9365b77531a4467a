"""Breadth-first search one source at a time, marking bits.

The last hop needs neither a visited test nor a queue: every edge sets a bit, in a vector small enough for a near
cache, and what was seen before is masked out afterwards, word by word. No branch depends on the data, so the
processor never guesses wrong. Nodes carry the numbers that `selection` wants; rows stay where they are.

`dense_thresholds` walks over all words of a vector for each source, and adds the rows of hubs as vectors (see
`hub_rows`). `sparse_thresholds` keeps a second vector with one bit a word, and touches only words that were marked:
right where a neighbourhood is a small part of the graph.

In both, `columns` holds numbers already when `labels` is None; otherwise it holds node ids and `labels` numbers
them on the way, which saves the renumbered copy of the graph when only few of its rows are read. In the copy the
calibration nodes of a row come first, so that the last hop, to which no other matters, reads these alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, lined_zeros, lowest_bit, part, prefetch, read_only
from napsets.kernels.selection import BLOCK_WORDS, select, selection_inputs

__all__ = ["count_touched", "dense_thresholds", "hubs", "sparse_thresholds"]

Array = npt.NDArray[Any]

_AHEAD = 4  # rows between asking the cache for a row and reading it


@part
def _number(labels, column):
    return column if labels is None else labels[column]


@part
def _first_frontier(source, starts, stops, columns, labels, queue):
    """Queue the source's neighbours; return how many."""
    start = starts[source]
    count = stops[source] - start
    for i in range(count):
        queue[i] = _number(labels, columns[start + i])
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
def _add_hubs(met, hubs, vectors, words, level):
    """Write the neighbours of the hubs that were met, two hubs at a time, over whatever `level` held."""
    for w in range(words):
        level[w] = np.uint64(0)
    for h in range(0, hubs - 1, 2):
        one, other = vectors[met[h]], vectors[met[h + 1]]
        for w in range(words):
            level[w] |= one[w] | other[w]
    if hubs & 1:
        last = vectors[met[hubs - 1]]
        for w in range(words):
            level[w] |= last[w]


@part
def _mark_rows(queue, count, starts, ends, columns, labels, level):
    """Set the bits of all neighbours of the queued nodes; the row of a hub ends before it starts."""
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(columns, starts[queue[i + _AHEAD]])
        u = queue[i]
        for e in range(starts[u], ends[u]):
            v = _number(labels, columns[e])
            level[v >> 6] |= _bit(v)


@part
def _list_bits(word, w, queue, count):
    """Queue the numbers of a word's bits; return the new length of the queue."""
    while word != np.uint64(0):
        queue[count] = w * 64 + lowest_bit(word)
        count += 1
        word &= word - np.uint64(1)
    return count


@part
def _forget_row(source, starts, stops, columns, labels, level):
    """Clear the words that hold a source's neighbours."""
    for e in range(starts[source], stops[source]):
        level[_number(labels, columns[e]) >> 6] = np.uint64(0)


@part
def _search_dense(
    source, starts, stops, columns, labels, ends, last_ends, vectors, words, last_words, bits, seen, queue, met
):
    """Fill ``bits[k]`` with the nodes at distance exactly k+1 from `source`; of the last hop, the first words only.

    ``bits[0]`` comes empty.
    """
    hops = bits.shape[0]
    count = _first_frontier(source, starts, stops, columns, labels, queue)
    for i in range(count):
        bits[0, queue[i] >> 6] |= _bit(queue[i])
    for k in range(1, hops):
        before, level = bits[k - 1], bits[k]
        wanted, rows_end = (words, ends) if k + 1 < hops else (last_words, last_ends)
        hubs = _meet_hubs(queue, count, rows_end, met)
        _add_hubs(met, hubs, vectors, wanted, level)
        _mark_rows(queue, count, starts, rows_end, columns, labels, level)
        if k == 1:
            for w in range(wanted):
                level[w] &= ~before[w]
        else:
            for w in range(wanted):
                # What was seen is the first level, when the second has just been found, and grows from there.
                old = (bits[0, w] if k == 2 else seen[w]) | before[w]
                seen[w] = old
                level[w] &= ~old
        level[source >> 6] &= ~_bit(source)
        if k + 1 < hops:
            count = np.int64(0)
            for w in range(words):
                count = _list_bits(level[w], w, queue, count)


def dense_thresholds(
    sources: Array, starts: Array, stops: Array, columns: Array, labels: Array | None, ends: Array, last_ends: Array,
    vectors: Array, hops: int, masks: Array, *selection: Any,
) -> None:  # fmt: skip
    """Search and select for each source, for each (source, split) pair that it has.

    Pairs of source i stand at ``pair_offsets[i]..pair_offsets[i+1]``; ``masks[pair_split[p]]`` are its calibrators.
    """
    words, mask_words = (starts.size + 63) // 64, masks.shape[1]
    room = (
        np.arange(mask_words),
        lined_zeros((hops, max(words, mask_words)), np.uint64),
        np.zeros(words, np.uint64),
        np.empty(starts.size, columns.dtype),
        np.empty(vectors.shape[0] + 1, np.int64),
        np.empty((hops, mask_words // BLOCK_WORDS + 1), np.int64),
        np.empty((hops, 2), np.int64),
    )
    graph = _graph(sources, starts, stops, columns, labels, ends, last_ends, vectors)
    _dense(*graph, *selection_inputs(masks, *selection), *room)


@jit
def _dense(
    sources, starts, stops, columns, labels, ends, last_ends, vectors, masks, pair_offsets, pair_split, weights, levels,
    rounding, scores, thresholds, hop_counts, base, bits, seen, queue, met, running, counts,
):  # fmt: skip
    words, mask_words = seen.shape[0], masks.shape[1]
    blocks = mask_words // BLOCK_WORDS
    last_words = words if words < mask_words else mask_words
    for i in range(sources.shape[0]):
        _search_dense(
            sources[i], starts, stops, columns, labels, ends, last_ends, vectors, words, last_words, bits, seen, queue,
            met,
        )  # fmt: skip
        for p in range(pair_offsets[i], pair_offsets[i + 1]):
            select(
                bits, masks[pair_split[p]], base, blocks, running, counts, weights, levels, rounding, scores,
                thresholds[p], hop_counts[p],
            )  # fmt: skip
        _forget_row(sources[i], starts, stops, columns, labels, bits[0])


@part
def _search_sparse(source, starts, stops, columns, labels, middles, bits, marked, seen, queue):
    """Fill ``bits[k]`` as `_search_dense` does, and set a bit of ``marked[k]`` for each word that was written."""
    hops = bits.shape[0]
    top_words = marked.shape[1]
    seen[source >> 6] |= _bit(source)
    count = _first_frontier(source, starts, stops, columns, labels, queue)
    for i in range(count):
        v = queue[i]
        bits[0, v >> 6] |= _bit(v)
        marked[0, v >> 12] |= _bit(v >> 6)
        seen[v >> 6] |= _bit(v)
    for k in range(1, hops):
        level, top = bits[k], marked[k]
        rows_end = stops if k + 1 < hops else middles
        for i in range(count):
            if i + _AHEAD < count:
                prefetch(columns, starts[queue[i + _AHEAD]])
            u = queue[i]
            for e in range(starts[u], rows_end[u]):
                v = _number(labels, columns[e])
                level[v >> 6] |= _bit(v)
                top[v >> 12] |= _bit(v >> 6)
        count = np.int64(0)
        for t in range(top_words):
            rest = top[t]
            while rest != np.uint64(0):
                w = t * 64 + lowest_bit(rest)
                rest &= rest - np.uint64(1)
                level[w] &= ~seen[w]
                seen[w] |= level[w]
                if k + 1 < hops:
                    count = _list_bits(level[w], w, queue, count)


@part
def _compact(bits, marked, mask_words, compact, base):
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
                    compact[k, count] = bits[k, w]
                base[count] = w
                count += 1
    for w in range(count, (count + BLOCK_WORDS - 1) // BLOCK_WORDS * BLOCK_WORDS):
        for k in range(hops):
            compact[k, w] = np.uint64(0)
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


def sparse_thresholds(
    sources: Array, starts: Array, stops: Array, columns: Array, labels: Array | None, middles: Array, hops: int,
    masks: Array, *selection: Any,
) -> None:  # fmt: skip
    """Do what `dense_thresholds` does, to the same bits, touching only the words that a search marks."""
    words, mask_words = (starts.size + 63) // 64, masks.shape[1]
    room = (
        np.zeros(mask_words, np.int64),
        np.zeros((hops, words), np.uint64),
        np.zeros((hops, (words + 63) // 64), np.uint64),
        np.zeros(words, np.uint64),
        np.empty(starts.size, columns.dtype),
        lined_zeros((hops, mask_words), np.uint64),
        lined_zeros((mask_words,), np.uint64),
        np.empty((hops, mask_words // BLOCK_WORDS + 1), np.int64),
        np.empty((hops, 2), np.int64),
    )
    graph = _graph(sources, starts, stops, columns, labels, middles)
    _sparse(*graph, *selection_inputs(masks, *selection), *room)


@jit
def _sparse(
    sources, starts, stops, columns, labels, middles, masks, pair_offsets, pair_split, weights, levels, rounding,
    scores, thresholds, hop_counts, base, bits, marked, seen, queue, compact, mask, running, counts,
):  # fmt: skip
    mask_words = masks.shape[1]
    for i in range(sources.shape[0]):
        _search_sparse(sources[i], starts, stops, columns, labels, middles, bits, marked, seen, queue)
        count = _compact(bits, marked, mask_words, compact, base)
        for p in range(pair_offsets[i], pair_offsets[i + 1]):
            row = masks[pair_split[p]]
            for w in range(count):
                mask[w] = row[base[w]]
            select(
                compact, mask, base, (count + BLOCK_WORDS - 1) // BLOCK_WORDS, running, counts, weights, levels,
                rounding, scores, thresholds[p], hop_counts[p],
            )  # fmt: skip
        _forget(sources[i], bits, marked, seen)


def _graph(sources: Array, *rows: Array | None) -> list[Array | None]:
    """Return what a kernel reads of the graph as it takes it."""
    return [None if array is None else read_only(array) for array in (sources, *rows)]


def hubs(nodes: Array, indptr: Array, indices: Array, out: Array) -> None:
    """Write each node's best connected neighbour, or itself where it has none."""
    _hubs(*map(read_only, (nodes, indptr, indices)), out)


@jit
def _hubs(nodes, indptr, indices, out):
    for i in range(nodes.shape[0]):
        u = nodes[i]
        best, degree = np.int64(u), np.int64(-1)
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            if indptr[v + 1] - indptr[v] > degree:
                best, degree = v, indptr[v + 1] - indptr[v]
        out[i] = best


@jit
def count_touched(sources, indptr, indices, hops, limit, stamps, queue, stamp, hub_degree, hub_work, last_share):
    """Count the edges that searches of `hops` hops from some sources read, and the work of reading them.

    An edge is one unit of work, but all those of a node of at least `hub_degree`, which are added as a vector, are
    `hub_work` together; in the last hop only a share of the edges matters. Counting ends once the work passes `limit`.

    Nodes go by their ids here. Source i leaves the mark ``stamp + i + 1``, which no search with the same `stamps`
    may have used before; `queue` holds one entry more than there are nodes, because an entry is written before it
    is known whether it stays.
    """
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
