"""Compressed sparse rows: built by counting, in time linear in the edges, and sums over the columns of each.

An edge list is laid into buckets by its larger end, then, bucket after bucket, into rows by its smaller end. Two
counting passes leave every row sorted, without a single comparison, so duplicates stand side by side. For an
undirected graph only the upper triangle is kept until the end; the full rows are then written in sorted order
straight away. Beside the result, at most two arrays of one entry per edge are alive. Where edges have lengths, these
move with them, and of several edges between two nodes the shortest is kept.

NumPy sorts edges into the same rows, where that takes less time than compiling kernels. A sum over neighbours is a
sparse product with a matrix of ones, without the matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from napsets.kernels._jit import jit, prefetch
from napsets.kernels.layout import Array, Ints, edges_of, read_only
from napsets.kernels.threads import available_threads, run_ranges, worth_compiling


def compress(
    source: Array, target: Array, num_nodes: int, directed: bool, lengths: Array | None, dtype: type
) -> tuple[Array, Array, Array | None]:
    """Return offsets, columns and lengths of rows that ascend, without repeats and self-loops; the shortest is kept.

    Columns are of the given type. Without `directed`, each edge goes both ways.
    """
    if dtype is np.int32 and not worth_compiling(source.size):
        return _compress_few(source, target, num_nodes, not directed, lengths)

    def room(size: int) -> Array | None:
        return None if lengths is None else np.empty(size)

    source, target = (_for_kernels(ids, dtype) for ids in (source, target))
    offsets, cursor = np.zeros(num_nodes + 1, np.int64), np.empty(num_nodes, np.int64)
    buckets: Array = np.empty(source.size, dtype=dtype)
    in_buckets = room(source.size)
    _bucket_by_column(source, target, not directed, buckets, offsets, cursor, _read(lengths), in_buckets)
    del source, target  # they may be copies
    columns, long = np.empty(offsets[-1], dtype), room(offsets[-1])
    rows = _rows_from_buckets(offsets, buckets, columns, in_buckets, long)
    del buckets, offsets, in_buckets
    kept = _deduplicate(rows, columns, long)
    if directed:
        if kept < columns.size:
            columns, long = columns[:kept].copy(), None if long is None else long[:kept].copy()
        return rows, columns, long
    offsets, both_ways, twice = np.zeros(num_nodes + 1, np.int64), np.empty(2 * kept, dtype), room(2 * kept)
    _mirror(read_only(rows), read_only(columns), both_ways, offsets, cursor, _read(long), twice)
    return offsets, both_ways, twice


def _for_kernels(ids: Array, dtype: type) -> Array:
    """Return ids in a layout that kernels are compiled for, copied if necessary."""
    usual = ids.dtype in (np.int32, np.int64) and ids.flags.c_contiguous
    return read_only(ids if usual else np.ascontiguousarray(ids, dtype=dtype))


def _read(lengths: Array | None) -> Array | None:
    return None if lengths is None else read_only(lengths)


def _compress_few(
    source: Array, target: Array, num_nodes: int, undirected: bool, lengths: Array | None
) -> tuple[Array, Array, Array | None]:
    """Compress few edges by sorting. Ids fit into 32 bits, so that a pair of them fits into a word."""
    ends = np.stack([source, target]).astype(np.int64, copy=False)
    if undirected:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
        lengths = None if lengths is None else np.tile(lengths, 2)
    kept = ends[0] != ends[1]
    pairs = ends[0, kept] * num_nodes + ends[1, kept]
    if lengths is None:
        pairs.sort()
    else:
        order = np.lexsort((lengths[kept], pairs))
        pairs, lengths = pairs[order], lengths[kept][order]
    first = np.append(True, pairs[1:] != pairs[:-1])[: pairs.size]
    shortest = None if lengths is None else lengths[first]
    row, column = np.divmod(pairs[first], max(num_nodes, 1))
    return np.append(0, np.cumsum(np.bincount(row, minlength=num_nodes))), column.astype(np.int32), shortest


@jit
def _bucket_by_column(source, target, canonical, out, offsets, cursor, lengths, out_lengths):
    """Lay each edge's row end into the bucket of its column end, and write the buckets' offsets.

    With `canonical`, the row end is the smaller of the two. Self-loops are left out, so fewer entries than there are
    edges may be filled.
    """
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


def _rows_from_buckets(
    offsets: Array, buckets: Array, out: Array, lengths: Array | None, out_lengths: Array | None
) -> Array:
    """Turn column buckets into rows whose columns ascend; return the rows' offsets."""
    rows, cursor = np.zeros(offsets.size, np.int64), np.empty(offsets.size - 1, np.int64)
    _lay_rows(read_only(offsets), read_only(buckets), out, rows, cursor, _read(lengths), out_lengths)
    return rows


@jit
def _lay_rows(offsets, buckets, out, rows, cursor, lengths, out_lengths):
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
    if not worth_compiling(indices.size):
        order = np.argsort(indices, kind="stable")
        back = np.repeat(np.arange(nodes), np.diff(indptr))[order].astype(indices.dtype)
        rows = np.append(0, np.cumsum(np.bincount(indices, minlength=nodes)))
        return rows, back, None if lengths is None else lengths[order]
    back = np.empty_like(indices)
    lengths_back = None if lengths is None else np.empty_like(lengths)
    # Rows are buckets of the columns that stand in them: one more pass over them swaps the two.
    rows = _rows_from_buckets(indptr, indices, back, lengths, lengths_back)
    return rows, back, lengths_back


@jit
def _deduplicate(rows, columns, lengths):
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


@jit
def _mirror(rows, columns, out, offsets, cursor, lengths, out_lengths):
    """Write the symmetric graph of an upper triangle with sorted rows, and its offsets.

    Row v holds first the u < v that name it, which come in ascending order because u does, then its own columns.
    """
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


def subgraph(
    indptr: Array, indices: Array, nodes: Array, lengths: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """Return the rows of the subgraph induced on `nodes`, in their order, with sorted columns."""
    position = np.full(indptr.size - 1, -1, dtype=indices.dtype)
    position[nodes] = np.arange(nodes.size)
    ascend = bool((nodes[1:] > nodes[:-1]).all())
    sizes = np.append(0, np.cumsum(np.diff(indptr)[nodes]))
    degrees, columns, long = [np.zeros(1, np.int64)], [indices[:0]], [np.empty(0)]
    for first, last in row_ranges(sizes, most=_CUT_EDGES):
        offsets, edges = edges_of(indptr, nodes[first:last])
        row, column = np.repeat(np.arange(last - first), np.diff(offsets)), position[indices[edges]]
        order = np.flatnonzero(column >= 0)
        if not ascend:
            order = order[np.lexsort((column[order], row[order]))]
        degrees.append(np.bincount(row[order], minlength=last - first))
        columns.append(column[order])
        if lengths is not None:
            long.append(lengths[edges[order]])
    kept = None if lengths is None else np.concatenate(long)
    return np.cumsum(np.concatenate(degrees)), np.concatenate(columns), kept


#: Edges between asking the cache for a row of values and adding it.
_AHEAD = 16
#: Edges that a thread handles between two looks at whether to stop.
RANGE_EDGES = 1 << 23
#: Edges that NumPy looks at together.
_CUT_EDGES = 1 << 20
#: Ranges with fewer edges are not worth a thread of their own.
LEAST_EDGES = 1 << 16


def row_ranges(indptr: Ints, parts: int = 1, most: int | None = None) -> list[tuple[int, int]]:
    """Cut the nodes into at least this many ranges, if they are worth it, with at most about this many edges each."""
    nodes = indptr.size - 1
    size = int(indptr[-1]) + nodes
    marks = np.arange(0, size, min(most or RANGE_EDGES, max(LEAST_EDGES, -(-size // parts))))
    bounds = np.unique(np.append(np.searchsorted(indptr[:-1] + np.arange(nodes), marks), nodes))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def renumbered(indptr: Ints, indices: Array, numbers: Array, known: int, threads: int) -> tuple[Array, Ints]:
    """Return the rows in numbers instead of ids, those below `known` first in each, and where these end."""
    out = np.empty_like(indices, dtype=numbers.dtype)
    middles = np.empty(indptr.size - 1, dtype=np.int64)
    _in_parts(_renumber, row_ranges(indptr), threads, indptr, indices, numbers, known, out, middles)
    return out, middles


def _in_parts(
    kernel: Callable[..., None],
    pieces: list[tuple[int, int]],
    threads: int,
    indptr: Array,
    indices: Array,
    values: Array,
    *others: Array | int,
) -> None:
    """Let threads call a kernel for each range of rows; the first three arrays are only read."""
    arguments = (*map(read_only, (indptr, indices, values)), *others)
    run_ranges(lambda first, last: kernel(first, last, *arguments), pieces, threads)


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


@jit
def fill_vectors(hubs, starts, stops, columns, vectors):
    """Set the bits of the neighbours of each hub."""
    for h in range(hubs.shape[0]):
        for e in range(starts[hubs[h]], stops[hubs[h]]):
            v = columns[e]
            vectors[h, v >> 6] |= np.uint64(1) << np.uint64(v & 63)


def neighbour_sums(indptr: Array, indices: Array, values: Array, threads: int | None = None) -> Array:
    """Return, for each row, the sum of the values of its columns, added in their order; `values` has a row per node.

    It is a sparse product with a matrix of ones. Of large graphs a kernel asks for the rows before it adds them, which
    takes less than half the time.
    """
    width = values.shape[1]
    if worth_compiling(indices.size) and values.dtype == np.float64:
        out, count = np.zeros((indptr.size - 1, width)), available_threads(threads)
        _in_parts(_add_rows, row_ranges(indptr, 4 * count), count, indptr, indices, values, out)
        return out
    from scipy.sparse import csr_array

    sums: Array = csr_array((np.ones(indices.size), indices, indptr), shape=(indptr.size - 1, values.shape[0])) @ values
    return sums


@jit
def _add_rows(first, last, indptr, indices, values, out):
    width, end = values.shape[1], indptr[last]
    for u in range(first, last):
        for e in range(indptr[u], indptr[u + 1]):
            if e + _AHEAD < end:
                start = indices[e + _AHEAD] * width
                for position in range(start, start + width, 8):  # a line of the cache holds eight numbers
                    prefetch(values, position)
            v = indices[e]
            for j in range(width):
                out[u, j] += values[v, j]


def neighbour_labels(indptr: Array, indices: Array, labels: Array, classes: int, threads: int | None = None) -> Array:
    """Count the labels of the columns of each row, shape (rows, classes); negative labels do not count.

    It equals `neighbour_sums` of a matrix of zeros and ones, which few edges are multiplied with and many are not.
    """
    if not worth_compiling(indices.size):
        return neighbour_sums(indptr, indices, (np.arange(classes) == labels[:, None]).astype(np.float64))
    out, count = np.zeros((indptr.size - 1, classes)), available_threads(threads)
    _in_parts(_count_rows, row_ranges(indptr, 4 * count), count, indptr, indices, labels, out)
    return out


@jit
def _count_rows(first, last, indptr, indices, labels, out):
    for u in range(first, last):
        for e in range(indptr[u], indptr[u + 1]):
            label = labels[indices[e]]
            if label >= 0:
                out[u, label] += 1.0
