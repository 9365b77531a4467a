"""Classes of a row in descending order of probability, ties by class index: what rank-based scores need.

A few rows are ranked by NumPy, to the same bits: compiling a kernel would take a thousand times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, part, read_only

__all__ = ["FEW_ENTRIES", "rank_all", "rank_labels"]

#: Up to so many probabilities no kernel is compiled.
FEW_ENTRIES = 1 << 14

#: Shorter runs are sorted by insertion, longer rows by merging such runs. Nanoseconds a probability, against a kernel
#: with np.argsort(kind="mergesort"): 16 and 22 with 10 classes, 34 and 32 with 50, 68 and 67 with 1,000. Of the two
#: this one compiles in a third of the time, and it needs no new arrays for each row.
_RUN = 16


@part
def _descending(row, order, spare):
    """Write the classes in descending order of probability; equal ones keep the order of their index."""
    classes = row.shape[0]
    for start in range(0, classes, _RUN):
        for y in range(start, min(start + _RUN, classes)):
            place = y
            while place > start and row[order[place - 1]] < row[y]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = y
    width = _RUN
    while width < classes:
        for start in range(0, classes, 2 * width):
            _merge(row, order, spare, start, min(start + width, classes), min(start + 2 * width, classes))
        width *= 2


@part
def _merge(row, order, spare, start, middle, end):
    """Merge two sorted runs of classes; of equal ones, the left comes first."""
    for place in range(start, middle):
        spare[place] = order[place]
    left, right = start, middle
    for place in range(start, end):
        if left == middle:
            break  # what is left of the right run stands in its place already
        if right < end and row[order[right]] > row[spare[left]]:
            order[place] = order[right]
            right += 1
        else:
            order[place] = spare[left]
            left += 1


def rank_all(probabilities: npt.NDArray[Any], cumulative: npt.NDArray[Any], rank: npt.NDArray[Any]) -> None:
    """For every class of every row: the sum of probabilities up to and including it, and its rank from 1."""
    classes = probabilities.shape[1]
    if probabilities.size > FEW_ENTRIES:
        spare = np.empty((2, classes), np.int64)
        _rank_all(read_only(probabilities), spare[0], spare[1], cumulative, rank)
        return
    order = np.argsort(-probabilities, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1, dtype=np.float64)
    np.put_along_axis(cumulative, order, sums, axis=1)
    np.put_along_axis(rank, order, np.arange(1, classes + 1)[None], axis=1)


def rank_labels(
    probabilities: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    cumulative: npt.NDArray[Any],
    rank: npt.NDArray[Any],
    largest: npt.NDArray[Any],
) -> None:
    """Write the same as `rank_all` for one label a row, and the row's largest probability."""
    rows, classes = probabilities.shape
    if probabilities.size > FEW_ENTRIES:
        spare = np.empty((2, classes), np.int64)
        _rank_labels(read_only(probabilities), read_only(labels), spare[0], spare[1], cumulative, rank, largest)
        return
    sums, ranks = np.empty((rows, classes)), np.empty((rows, classes), np.int64)
    rank_all(probabilities, sums, ranks)
    chosen = np.arange(rows), labels
    cumulative[:], rank[:], largest[:] = sums[chosen], ranks[chosen], probabilities.max(axis=1, initial=0.0)


@jit
def _rank_all(probabilities, order, spare, cumulative, rank):
    rows, classes = probabilities.shape
    for i in range(rows):
        _descending(probabilities[i], order, spare)
        total = 0.0
        for place in range(classes):
            y = order[place]
            total += np.float64(probabilities[i, y])
            cumulative[i, y] = total
            rank[i, y] = place + 1


@jit
def _rank_labels(probabilities, labels, order, spare, cumulative, rank, largest):
    rows, classes = probabilities.shape
    for i in range(rows):
        _descending(probabilities[i], order, spare)
        largest[i] = probabilities[i, order[0]]
        total = 0.0
        for place in range(classes):
            y = order[place]
            total += np.float64(probabilities[i, y])
            if y == labels[i]:
                cumulative[i] = total
                rank[i] = place + 1
                break
