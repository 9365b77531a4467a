"""The most similar rows of each row by cosine, exactly and in bounded memory.

Dense rows: BLAS gives the cosines of some rows with all others in single precision. How it adds up may differ from one
number of threads to another, so it only nominates: every row within the error of single precision of the k-th is
computed again in double precision, in one fixed order, and those decide. So the result is that of the definition, to
the bit, on any number of threads. Sparse rows: sums over the columns that a row has, in their order.

Of equally similar rows those with the smaller number come first. Only similarities above 0 count.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.layout import Array, read_only
from napsets.kernels.threads import available_threads, ranges, run_ranges

#: Cosines of some rows with all others that are held at a time.
_STRIP = 1 << 25
_PIECE = 64  # rows that a thread handles between two looks at whether to stop


def similar_dense(rows: Array, count: int, threads: int | None = None) -> tuple[Array, Array]:
    """Return the numbers and similarities of the `count` rows most similar to each row; −1 and 0 where there are fewer.

    Memory: a copy of the rows in single precision, and a strip of cosines of 128 MB.
    """
    size, width = rows.shape
    lengths = np.empty(size)
    unit = np.empty((size, width), dtype=np.float32)
    step = max(1, (1 << 22) // max(width, 1))
    for first in range(0, size, step):
        some = rows[first : first + step].astype(np.float64)
        lengths[first : first + step] = np.sqrt(np.einsum("ij,ij->i", some, some))
        unit[first : first + step] = some / np.maximum(lengths[first : first + step], 1e-300)[:, None]
    numbers, cosines = np.full((size, count), -1, dtype=np.int64), np.zeros((size, count))
    # Products of rounded entries and their sum, each off by at most a unit in the last place of single precision.
    margin = np.float32(2.0 * (width + 4) * 2.0**-24)
    strip = min(max(_STRIP // max(size, 1), 16), 1024)
    held = np.empty((strip, size), dtype=np.float32)
    rows_read, workers = read_only(rows), available_threads(threads)
    for start in range(0, size, strip):
        last = min(start + strip, size)
        np.matmul(unit[start:last], unit.T, out=held[: last - start])
        fixed = (read_only(held), start, rows_read, lengths, margin, numbers, cosines)
        _in_pieces(_choose_dense, fixed, start, last, workers)
    return numbers, cosines


def similar_sparse(
    indptr: Array, indices: Array, data: Array, width: int, count: int, threads: int | None = None
) -> tuple[Array, Array]:
    """Do the same for compressed sparse rows whose columns ascend; the work is Σ over columns of (entries)²."""
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


def _in_pieces(kernel: Any, fixed: tuple[Any, ...], start: int, last: int, threads: int) -> None:
    pieces = ranges(start, last, max(_PIECE, math.ceil((last - start) / 64)))
    run_ranges(lambda first, end: kernel(first, end, *fixed), pieces, threads)


@part
def _sift(heap, size, value):
    """Let a value take the place of the smallest in a heap."""
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
    """Keep a row among the best so far, which stand in order; rows come in ascending order of their numbers."""
    if met == count and value <= values[count - 1]:
        return met
    place = met if met < count else count - 1
    while place > 0 and values[place - 1] < value:
        if place < count:
            values[place], numbers[place] = values[place - 1], numbers[place - 1]
        place -= 1
    values[place], numbers[place] = value, number
    return min(met + 1, count)


@jit
def _choose_dense(first, last, held, start, rows, lengths, margin, numbers, cosines):
    size, width = rows.shape
    count = numbers.shape[1]
    heap = np.empty(count, np.float32)
    for i in range(first, last):
        if lengths[i] == 0.0 or count == 0:
            continue
        row = held[i - start]
        heap[:] = np.float32(0.0)  # what is not above 0 never counts
        for j in range(size):
            if row[j] > heap[0] and j != i:
                _sift(heap, count, row[j])
        least = heap[0] - margin
        met = np.int64(0)
        for j in range(size):
            if row[j] >= least and j != i and lengths[j] > 0.0:
                dot = 0.0
                for f in range(width):
                    dot += np.float64(rows[i, f]) * np.float64(rows[j, f])
                if dot > 0.0:
                    met = _enter(j, dot / (lengths[i] * lengths[j]), count, met, numbers[i], cosines[i])


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
