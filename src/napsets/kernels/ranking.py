"""Classes of a row in descending order of probability, ties by class index: what rank-based scores need."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit

__all__ = ["rank_all", "rank_labels"]


_RUN = 16  # shorter runs are sorted by insertion, longer rows by merging such runs


@jit
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


@jit
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


@jit
def rank_all(probabilities, cumulative, rank):
    """For every class of every row: the sum of probabilities up to and including it, and its rank from 1."""
    rows, classes = probabilities.shape
    order, spare = np.empty(classes, np.int64), np.empty(classes, np.int64)
    for i in range(rows):
        _descending(probabilities[i], order, spare)
        total = 0.0
        for place in range(classes):
            y = order[place]
            total += np.float64(probabilities[i, y])
            cumulative[i, y] = total
            rank[i, y] = place + 1


@jit
def rank_labels(probabilities, labels, cumulative, rank, largest):
    """Write the same as `rank_all` for one label a row, and the row's largest probability."""
    rows, classes = probabilities.shape
    order, spare = np.empty(classes, np.int64), np.empty(classes, np.int64)
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
