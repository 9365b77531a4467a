"""The most similar rows of each row by cosine, exactly and in bounded memory.

Dense rows: BLAS gives the cosines of a strip of rows with all others in single precision. Its sums may differ from one
number of threads to another, so it only nominates: every row within the error of single precision of the k-th largest
cosine is computed again in double precision, in one fixed order, and those decide. So the result is that of the
definition, to the bit, on any number of threads. Sparse rows: sums over the columns that a row has, in their order.

Of equally similar rows those that come first are taken. Only similarities above 0 count.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.layout import Array, read_only
from napsets.kernels.threads import Progress, available_threads, ranges, run_ranges, worth_compiling

#: Cosines of a strip of rows with all others that are held at a time, and rows of a strip.
_STRIP, _MOST_ROWS, _FEWEST_ROWS = 1 << 23, 1024, 16
_PIECE = 64  # rows that a thread handles between two looks at whether to stop
_BLOCK = 64  # cosines that are compared at a time


def nearest_rows(
    rows: Callable[[int, int], Array],
    others: Array,
    own: Array,
    count: int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    cosines: bool = False,
) -> tuple[Array, Array]:
    """Find the `count` others most similar to each row; −1 where fewer have a similarity above 0.

    Parameters
    ----------
    rows : callable
        ``rows(first, last)`` gives those rows, in double precision.
    others : array of shape (others, columns)
        The rows that are searched, in double precision.
    own : int64 array
        For each row its place among the others, at which it is not looked at; −1 if it is not among them.
    count : int
        How many are found.
    cosines : bool
        Whether the similarities are returned too; otherwise the second array is empty.

    Memory: a copy of the others in single precision, and a strip of at most 32 MB or 16 rows of cosines.
    """
    size, (found, width) = own.size, others.shape
    count = min(count, found)
    places = np.full((size, count), -1, dtype=np.int32)
    values = np.zeros((size, count)) if cosines else np.zeros((0, count))
    strip = min(max(_STRIP // max(found, 1), _FEWEST_ROWS), _MOST_ROWS)
    lengths, unit = _unit_rows(others)
    padding = -found % _BLOCK  # rows of zeros, which are similar to none
    padded, turned = np.pad(lengths, (0, padding)), np.ascontiguousarray(np.pad(unit, ((0, padding), (0, 0))).T)
    # Products of rounded entries and their sum, each off by at most a unit in the last place of single precision.
    margin = np.float32(2.0 * (width + 4) * 2.0**-24)
    compiled, workers = worth_compiling(float(size) * found), available_threads(threads)
    held = np.empty((strip, padded.size), dtype=np.float32) if compiled else None
    others_read = read_only(others)
    for start in range(0, size if count else 0, strip):
        last = min(start + strip, size)
        some = np.ascontiguousarray(rows(start, last), dtype=np.float64)
        if held is None:
            _choose_in_numpy(some, others, lengths, own[start:last], places[start:last], values[start:last])
        else:
            own_lengths, own_unit = _unit_rows(some)
            np.matmul(own_unit, turned, out=held[: last - start])
            fixed = (held, read_only(some), own_lengths, others_read, padded, own[start:last], margin)
            out = (places[start:last], values[start:last])
            pieces = ranges(0, last - start, max(_PIECE, math.ceil((last - start) / workers)))
            run_ranges(lambda a, b, fixed=fixed, out=out: _choose_dense(a, b, *fixed, *out), pieces, workers)  # type: ignore[misc]
        if progress is not None:
            progress(last, size)
    return places, values


def along(rows: Array, vectors: Array) -> Array:
    """Return rows @ vectors in double precision, each row by itself, added in the order of its columns."""
    out = np.zeros((rows.shape[0], vectors.shape[1]))
    if worth_compiling(float(rows.size)):
        _add_along(rows, vectors, out)
    else:
        for column in range(rows.shape[1]):
            out += rows[:, column, None].astype(np.float64) * vectors[column]
    return out


@jit
def _add_along(rows, vectors, out):
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            x = np.float64(rows[i, j])
            for k in range(vectors.shape[1]):
                out[i, k] += x * vectors[j, k]


def _unit_rows(rows: Array) -> tuple[Array, Array]:
    """Return the lengths of rows, and the rows divided by them in single precision."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths, (rows / np.maximum(lengths, 1e-300)[:, None]).astype(np.float32)


def _choose_in_numpy(rows: Array, others: Array, lengths: Array, own: Array, places: Array, values: Array) -> None:
    """Find the most similar rows without the compiler, with the bits of `_choose_dense`."""
    dots = np.zeros((rows.shape[0], others.shape[0]))
    for column in range(others.shape[1]):  # in this order, as the kernel adds them up
        dots += rows[:, column, None] * others[None, :, column]
    known = np.flatnonzero(own >= 0)
    dots[known, own[known]] = 0.0
    own_lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    scale = own_lengths[:, None] * lengths[None, :]
    cosines = np.divide(dots, scale, out=np.zeros_like(dots), where=(dots > 0.0) & (scale > 0.0))
    count = places.shape[1]
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    best = np.take_along_axis(cosines, order, axis=1)
    places[:] = np.where(best > 0.0, order, -1)
    if values.shape[0]:
        values[:] = best


def similar_sparse(
    indptr: Array, indices: Array, data: Array, width: int, count: int, threads: int | None = None
) -> tuple[Array, Array]:
    """Find the most similar compressed sparse rows, with ascending columns; the work is Σ (entries of a column)²."""
    size = indptr.size - 1
    owner = np.repeat(np.arange(size), np.diff(indptr))
    lengths = np.sqrt(np.bincount(owner, weights=data.astype(np.float64) ** 2, minlength=size))
    by_column = np.argsort(indices, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(indices, minlength=width))).astype(np.int64)
    numbers, cosines = np.full((size, count), -1, dtype=np.int64), np.zeros((size, count))
    data = data.astype(np.float64)
    rows = tuple(map(read_only, (indptr.astype(np.int64), indices.astype(np.int64), data)))
    columns = tuple(map(read_only, (starts, owner[by_column], data[by_column])))
    fixed = (rows, columns, read_only(lengths), numbers, cosines)
    _in_pieces(_choose_sparse, fixed, 0, size, available_threads(threads))
    return numbers, cosines


def _in_pieces(kernel: Callable[..., None], fixed: tuple[object, ...], start: int, last: int, threads: int) -> None:
    pieces = ranges(start, last, max(_PIECE, math.ceil((last - start) / 64)))
    run_ranges(lambda first, end: kernel(first, end, *fixed), pieces, threads)


@part
def _sift(heap, size, value):
    """Replace the smallest value of a heap."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@part
def _enter(number, value, count, met, numbers, values):
    """Insert a row into the sorted list of the best so far; rows come in ascending order of their numbers."""
    if met == count and value <= values[count - 1]:
        return met
    place = met if met < count else count - 1
    while place > 0 and values[place - 1] < value:
        if place < count:
            values[place], numbers[place] = values[place - 1], numbers[place - 1]
        place -= 1
    values[place], numbers[place] = value, number
    return min(met + 1, count)


@part
def _largest_of_block(row, block):
    largest, values = np.int32(0), row[block * _BLOCK : (block + 1) * _BLOCK]
    for j in range(_BLOCK):  # several at a time, as its length is known
        largest = values[j] if values[j] > largest else largest
    return largest


@jit
def _choose_dense(first, last, held, rows, row_lengths, others, lengths, own, margin, places, values):
    """Choose for the rows first..last; `held` has their cosines with the others, padded to whole blocks."""
    width, count = others.shape[1], places.shape[1]
    heap = np.empty(count, np.int32)
    best = np.empty(count, np.float64)
    largest = np.empty(held.shape[1] // _BLOCK, np.int32)
    for i in range(first, last):
        if row_lengths[i] == 0.0:
            continue
        if own[i] >= 0:
            held[i, own[i]] = np.float32(-1.0)
        # Positive floats are in the order of their bits, read as integers, and what is not above 0 never counts.
        row = held[i].view(np.int32)
        heap[:] = 0
        for block in range(largest.size):
            largest[block] = _largest_of_block(row, block)
            if largest[block] > heap[0]:
                _sift(heap, count, largest[block])
        least_block = max(heap[0], np.int32(1))  # the blocks with the largest maxima hold the largest cosines
        heap[:] = 0
        for block in range(largest.size):
            if largest[block] >= least_block:
                for j in range(block * _BLOCK, (block + 1) * _BLOCK):
                    if row[j] > heap[0]:
                        _sift(heap, count, row[j])
        least = heap[:1].view(np.float32)[0] - margin
        met = np.int64(0)
        for block in range(largest.size):
            if largest[block : block + 1].view(np.float32)[0] < least:
                continue
            for j in range(block * _BLOCK, (block + 1) * _BLOCK):
                if held[i, j] >= least and j != own[i] and lengths[j] > 0.0:
                    dot = 0.0
                    for f in range(width):
                        dot += rows[i, f] * others[j, f]
                    if dot > 0.0:
                        met = _enter(j, dot / (row_lengths[i] * lengths[j]), count, met, places[i], best)
        if values.shape[0]:
            values[i, :met] = best[:met]


@jit
def _choose_sparse(first, last, rows, columns, lengths, numbers, cosines):
    indptr, indices, data = rows
    starts, owners, values = columns
    size, count = indptr.shape[0] - 1, numbers.shape[1]
    dots = np.zeros(size)
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            x = data[e]
            for c in range(starts[indices[e]], starts[indices[e] + 1]):
                dots[owners[c]] += x * values[c]
        met = np.int64(0)
        for j in range(size):
            dot = dots[j]
            dots[j] = 0.0
            if dot > 0.0 and j != i and count > 0:
                met = _enter(j, dot / (lengths[i] * lengths[j]), count, met, numbers[i], cosines[i])
