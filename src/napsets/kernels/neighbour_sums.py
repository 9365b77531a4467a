"""Sums over neighbours: a sparse product with a matrix of ones, without the matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, read_only
from napsets.kernels.csr import FEW_EDGES, row_ranges
from napsets.kernels.threads import Stop, available_threads, run

__all__ = ["neighbour_sums"]

Array = npt.NDArray[Any]


def neighbour_sums(indptr: Array, indices: Array, values: Array, threads: int | None = None) -> Array:
    """Return, for each row, the sum of the values of its columns.

    Parameters
    ----------
    indptr, indices : arrays
        Compressed sparse rows.
    values : float64 array of shape (nodes, width)
        A row a node.

    Returns
    -------
    numpy.ndarray
        Shape (nodes, width). Each row is summed by one thread in the order of its columns: no number of threads
        changes a bit.
    """
    if indices.size <= FEW_EDGES:
        from scipy.sparse import csr_array  # adds in the same order, and need not be compiled

        ones = np.ones(indices.size)
        few: Array = csr_array((ones, indices, indptr), shape=(indptr.size - 1, values.shape[0])) @ values
        return few
    out = np.zeros((indptr.size - 1, values.shape[1]))
    count = available_threads(threads)
    read = [read_only(array) for array in (indptr, indices, np.ascontiguousarray(values))]

    def add(first: int, last: int, stop: Stop) -> None:
        _add_rows(first, last, *read, out)

    ranges = row_ranges(indptr, 4 * count)
    run(((last - first, partial(add, first, last)) for first, last in ranges), threads=count, total=out.shape[0])
    return out


@jit
def _add_rows(first, last, indptr, indices, values, out):
    width = values.shape[1]
    for u in range(first, last):
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            for c in range(width):
                out[u, c] += values[v, c]
