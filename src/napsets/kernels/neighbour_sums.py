"""Sums and counts over neighbours: a sparse product with a matrix of ones, without the matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit
from napsets.kernels.csr import row_ranges
from napsets.kernels.few import Kernels
from napsets.kernels.layout import read_only
from napsets.kernels.threads import Stop, available_threads, run

Array = npt.NDArray[Any]

_KERNELS = Kernels(0.4, "neighbour_sums._add_rows", "neighbour_sums._count_rows")


def neighbour_sums(indptr: Array, indices: Array, values: Array, threads: int | None = None) -> Array:
    """Return, for each row, the sum of the values of its columns.

    Parameters
    ----------
    indptr, indices : arrays
        Compressed sparse rows.
    values : float64 array of shape (nodes, width)
        One row per node.

    Returns
    -------
    numpy.ndarray
        Shape (nodes, width). Each row is summed by one thread in the order of its columns: no number of threads
        changes a bit.
    """
    if not _KERNELS.pay(indices.size * (20.0 + 2.0 * values.shape[1])):
        from scipy.sparse import csr_array  # adds in the same order, and need not be compiled

        ones = np.ones(indices.size)
        few: Array = csr_array((ones, indices, indptr), shape=(indptr.size - 1, values.shape[0])) @ values
        return few
    out = np.zeros((indptr.size - 1, values.shape[1]))
    _in_parts(_add_rows, indptr, indices, np.ascontiguousarray(values), out, threads)
    return out


def neighbour_labels(indptr: Array, indices: Array, labels: Array, classes: int, threads: int | None = None) -> Array:
    """Return, for each row, how many of its columns have each label; a negative label counts for none.

    What `neighbour_sums` of a matrix of zeros and ones would give, without that matrix.
    """
    out = np.zeros((indptr.size - 1, classes))
    if not _KERNELS.pay(indices.size * 25.0):
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        known = labels[indices] >= 0
        np.add.at(out, (rows[known], labels[indices[known]]), 1.0)
        return out
    _in_parts(_count_rows, indptr, indices, np.ascontiguousarray(labels), out, threads)
    return out


def _in_parts(kernel: Any, indptr: Array, indices: Array, read: Array, out: Array, threads: int | None) -> None:
    """Let threads write the rows of `out`, each row by one of them."""
    count = available_threads(threads)
    arrays = [read_only(array) for array in (indptr, indices, read)]

    def work(first: int, last: int, stop: Stop) -> None:
        kernel(first, last, *arrays, out)

    ranges = row_ranges(indptr, 4 * count)
    run(((last - first, partial(work, first, last)) for first, last in ranges), threads=count, total=out.shape[0])


@jit
def _count_rows(first, last, indptr, indices, labels, out):
    for u in range(first, last):
        for e in range(indptr[u], indptr[u + 1]):
            label = labels[indices[e]]
            if label >= 0:
                out[u, label] += 1.0


@jit
def _add_rows(first, last, indptr, indices, values, out):
    width = values.shape[1]
    for u in range(first, last):
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            for c in range(width):
                out[u, c] += values[v, c]


@jit
def same_label_shares(indptr, indices, labels, shares):
    """Write, for each labelled node, the share of its labelled neighbours that have its label; 0 if it has none."""
    for v in range(labels.shape[0]):
        same = 0
        known = 0
        for e in range(indptr[v], indptr[v + 1]):
            other = labels[indices[e]]
            known += other >= 0
            same += other == labels[v]
        shares[v] = same / known if known > 0 and labels[v] >= 0 else 0.0
