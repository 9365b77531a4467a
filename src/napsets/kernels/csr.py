"""Building compressed sparse rows by counting, in time linear in the edges.

An edge list is laid into buckets by its larger end, then, bucket after bucket, into rows by its smaller end. Two
counting passes leave every row sorted, without a single comparison, so duplicates stand side by side. For an
undirected graph only the upper triangle is kept until the end; the full rows are then written in sorted order
straight away. Beside the result, at most two arrays of one entry an edge are alive. Where edges have lengths, these
move with them, and of several edges between two nodes the shortest is kept.

A few edges are sorted by NumPy, to the same rows: compiling kernels would take a thousand times as long.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, read_only
from napsets.kernels.threads import Stop, run

__all__ = [
    "FEW_EDGES",
    "RANGE_EDGES",
    "bucket_by_column",
    "compress_few",
    "deduplicate",
    "mirror",
    "offsets_of_rows",
    "one_way_edge",
    "renumbered",
    "reversed_rows",
    "row_ranges",
    "rows_from_buckets",
    "subgraph",
]


Array = npt.NDArray[Any]

#: Up to so many edges no kernel is compiled to bring them into rows.
FEW_EDGES = 1 << 14


def compress_few(
    source: Array, target: Array, num_nodes: int, undirected: bool, lengths: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """Return offsets, columns and lengths of the rows of a graph: sorted, without repeats and without self-loops.

    Ids fit into 32 bits, so that a pair of them fits into a word.
    """
    ends = np.stack([source, target]).astype(np.int64, copy=False)
    if undirected:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
        lengths = None if lengths is None else np.tile(lengths, 2)
    kept = ends[0] != ends[1]
    pairs = ends[0, kept] * num_nodes + ends[1, kept]
    shortest = None
    if lengths is None:
        pairs = np.unique(pairs)
    else:
        order = np.lexsort((lengths[kept], pairs))
        pairs, first = np.unique(pairs[order], return_index=True)
        shortest = lengths[kept][order][first]
    row, column = np.divmod(pairs, max(num_nodes, 1))
    return np.append(0, np.cumsum(np.bincount(row, minlength=num_nodes))), column.astype(np.int32), shortest


def bucket_by_column(
    source: Array,
    target: Array,
    num_nodes: int,
    canonical: bool,
    out: Array,
    lengths: Array | None = None,
    out_lengths: Array | None = None,
) -> Array:
    """Lay each edge's row end into the bucket of its column end; return the buckets' offsets.

    With `canonical`, the row end is the smaller of the two. Self-loops are left out, so fewer entries than
    ``len(out)`` may be filled.
    """
    offsets = np.zeros(num_nodes + 1, np.int64)
    cursor = np.empty(num_nodes, np.int64)
    read = None if lengths is None else read_only(lengths)
    _bucket_by_column(read_only(source), read_only(target), canonical, out, offsets, cursor, read, out_lengths)
    return offsets


@jit
def _bucket_by_column(source, target, canonical, out, offsets, cursor, lengths, out_lengths):
    for e in range(source.shape[0]):
        u, v = np.int64(source[e]), np.int64(target[e])
        if u != v:
            if canonical and u > v:
                v = u
            offsets[v + 1] += 1
    for v in range(cursor.shape[0]):
        cursor[v] = offsets[v]
        offsets[v + 1] += offsets[v]
    for e in range(source.shape[0]):
        u, v = np.int64(source[e]), np.int64(target[e])
        if u != v:
            if canonical and u > v:
                u, v = v, u
            out[cursor[v]] = u
            if lengths is not None:
                out_lengths[cursor[v]] = lengths[e]
            cursor[v] += 1


def rows_from_buckets(
    offsets: Array,
    buckets: Array,
    num_nodes: int,
    out: Array,
    lengths: Array | None = None,
    out_lengths: Array | None = None,
) -> Array:
    """Turn column buckets into rows whose columns ascend; return the rows' offsets."""
    rows = np.zeros(num_nodes + 1, np.int64)
    read = None if lengths is None else read_only(lengths)
    cursor = np.empty(num_nodes, np.int64)
    _rows_from_buckets(read_only(offsets), read_only(buckets), out, rows, cursor, read, out_lengths)
    return rows


@jit
def _rows_from_buckets(offsets, buckets, out, rows, cursor, lengths, out_lengths):
    num_nodes = cursor.shape[0]
    for e in range(offsets[num_nodes]):
        rows[buckets[e] + 1] += 1
    for u in range(num_nodes):
        cursor[u] = rows[u]
        rows[u + 1] += rows[u]
    for v in range(num_nodes):
        for e in range(offsets[v], offsets[v + 1]):
            u = buckets[e]
            out[cursor[u]] = v
            if lengths is not None:
                out_lengths[cursor[u]] = lengths[e]
            cursor[u] += 1


def reversed_rows(indptr: Array, indices: Array, lengths: Array | None = None) -> tuple[Array, Array, Array | None]:
    """Return the rows of the graph whose edges go the other way: row v has the u whose rows name v, ascending."""
    nodes = indptr.size - 1
    if indices.size <= FEW_EDGES:
        order = np.argsort(indices, kind="stable")
        back = np.repeat(np.arange(nodes), np.diff(indptr))[order].astype(indices.dtype)
        rows = np.append(0, np.cumsum(np.bincount(indices, minlength=nodes)))
        return rows, back, None if lengths is None else lengths[order]
    back = np.empty_like(indices)
    lengths_back = None if lengths is None else np.empty_like(lengths)
    # Rows are buckets of the columns that stand in them: one more pass over them swaps the two.
    rows = rows_from_buckets(indptr, indices, nodes, back, lengths, lengths_back)
    return rows, back, lengths_back


@jit
def deduplicate(rows, columns, lengths=None):
    """Drop repeated columns of sorted rows in place; `rows` is rewritten, the entries kept come first.

    Of repeated ones the shortest is kept, where there are lengths.
    """
    kept = np.int64(0)
    start = rows[0]
    for u in range(rows.shape[0] - 1):
        end = rows[u + 1]
        row_start = kept
        for e in range(start, end):
            v = columns[e]
            if kept == row_start or columns[kept - 1] != v:
                columns[kept] = v
                if lengths is not None:
                    lengths[kept] = lengths[e]
                kept += 1
            elif lengths is not None:
                lengths[kept - 1] = min(lengths[kept - 1], lengths[e])
        start = end
        rows[u + 1] = kept
    return kept


def mirror(
    rows: Array, columns: Array, out: Array, lengths: Array | None = None, out_lengths: Array | None = None
) -> Array:
    """Write the symmetric graph of an upper triangle with sorted rows; return its offsets.

    Row v holds first the u < v that name it, which come in ascending order because u does, then its own columns.
    """
    offsets = np.zeros(rows.size, np.int64)
    read = None if lengths is None else read_only(lengths)
    cursor = np.empty(rows.size - 1, np.int64)
    _mirror(read_only(rows), read_only(columns), out, offsets, cursor, read, out_lengths)
    return offsets


@jit
def _mirror(rows, columns, out, offsets, cursor, lengths, out_lengths):
    num_nodes = cursor.shape[0]
    for u in range(num_nodes):
        offsets[u + 1] += rows[u + 1] - rows[u]
        for e in range(rows[u], rows[u + 1]):
            offsets[columns[e] + 1] += 1
    for u in range(num_nodes):
        cursor[u] = offsets[u]
        offsets[u + 1] += offsets[u]
    for u in range(num_nodes):
        for e in range(rows[u], rows[u + 1]):
            v = columns[e]
            out[cursor[v]] = u
            out[cursor[u]] = v
            if lengths is not None:
                out_lengths[cursor[v]] = out_lengths[cursor[u]] = lengths[e]
            cursor[v] += 1
            cursor[u] += 1


def offsets_of_rows(indptr: Array, indices: Array, nodes: Array, position: Array) -> Array:
    """Count, for each of `nodes`, its neighbours that have a `position` (≥ 0); return running offsets."""
    offsets = np.zeros(nodes.size + 1, np.int64)
    _offsets_of_rows(*map(read_only, (indptr, indices, nodes, position)), offsets)
    return offsets


@jit
def one_way_edge(indptr, indices):
    """Return an edge (u, v) of sorted rows whose way back is missing, or (−1, −1) where every edge has one.

    Rows that name u, taken in the order of u, name it as their next entry if edges go both ways. So one place a row
    is enough to remember.
    """
    nodes = indptr.shape[0] - 1
    cursor = indptr[:-1].copy()
    for u in range(nodes):
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            at = cursor[v]
            if at == indptr[v + 1] or indices[at] > u:
                return np.int64(u), np.int64(v)
            if indices[at] < u:
                return np.int64(v), np.int64(indices[at])
            cursor[v] = at + 1
    return np.int64(-1), np.int64(-1)


@jit
def _offsets_of_rows(indptr, indices, nodes, position, offsets):
    for i in range(nodes.shape[0]):
        count = np.int64(0)
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            count += position[indices[e]] >= 0
        offsets[i + 1] = offsets[i] + count


def subgraph(
    indptr: Array,
    indices: Array,
    nodes: Array,
    position: Array,
    offsets: Array,
    out: Array,
    lengths: Array | None = None,
    out_lengths: Array | None = None,
) -> None:
    """Write the rows of the subgraph induced on `nodes`, in their order, with sorted columns."""
    read = None if lengths is None else read_only(lengths)
    _subgraph(*map(read_only, (indptr, indices, nodes, position, offsets)), out, read, out_lengths)


@jit
def _subgraph(indptr, indices, nodes, position, offsets, out, lengths, out_lengths):
    for i in range(nodes.shape[0]):
        start = kept = offsets[i]
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            new = position[indices[e]]
            if new >= 0:
                out[kept] = new
                if lengths is not None:
                    out_lengths[kept] = lengths[e]
                kept += 1
        if lengths is not None:
            order = np.argsort(out[start:kept])
            out_lengths[start:kept] = out_lengths[start:kept][order]
        out[start:kept].sort()


#: Edges that a thread handles between two looks at whether to stop.
RANGE_EDGES = 1 << 23
#: Edges below which it does not pay to hand a range to another thread.
LEAST_EDGES = 1 << 16


def row_ranges(indptr: npt.NDArray[np.int64], parts: int = 1) -> list[tuple[int, int]]:
    """Cut the nodes into at least so many ranges, if they are worth it, with at most about `RANGE_EDGES` edges each."""
    nodes = indptr.size - 1
    size = int(indptr[-1]) + nodes
    marks = np.arange(0, size, min(RANGE_EDGES, max(LEAST_EDGES, -(-size // parts))))
    bounds = np.unique(np.append(np.searchsorted(indptr[:-1] + np.arange(nodes), marks), nodes))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def renumbered(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[Any], numbers: npt.NDArray[Any], known: int, threads: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the rows in numbers instead of ids, those below `known` first in each, and where these end."""
    out = np.empty_like(indices, dtype=numbers.dtype)
    middles = np.empty(indptr.size - 1, dtype=np.int64)
    ranges = row_ranges(indptr)
    read = [read_only(array) for array in (indptr, indices, numbers)]

    def write(first: int, last: int, stop: Stop) -> None:
        _renumber(first, last, *read, known, out, middles)

    pieces = ((last - first, partial(write, first, last)) for first, last in ranges)
    run(pieces, threads=max(1, min(threads, len(ranges))), total=middles.size)
    return out, middles


@jit
def _renumber(first, last, indptr, indices, numbers, known, out, middles):
    for u in range(first, last):
        front, back = indptr[u], indptr[u + 1] - 1
        for e in range(indptr[u], indptr[u + 1]):
            v = numbers[indices[e]]
            low = v < known
            out[front if low else back] = v
            front += low
            back -= not low
        middles[u] = front
