"""Classes of a row in descending order of probability, ties by class index: what rank-based scores need."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit

__all__ = ["rank_all", "rank_labels"]


@jit
def _descending(row, order):
    """Write the classes in descending order of probability; equal ones keep the order of their index."""
    classes = row.shape[0]
    if classes > 64:
        order[:] = np.argsort(-row, kind="mergesort")
        return
    for y in range(classes):
        place = y
        while place > 0 and row[order[place - 1]] < row[y]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = y


@jit
def rank_all(probabilities, cumulative, rank):
    """For every class of every row: the sum of probabilities up to and including it, and its rank from 1."""
    rows, classes = probabilities.shape
    order = np.empty(classes, np.int64)
    for i in range(rows):
        _descending(probabilities[i], order)
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
    order = np.empty(classes, np.int64)
    for i in range(rows):
        _descending(probabilities[i], order)
        largest[i] = probabilities[i, order[0]]
        total = 0.0
        for place in range(classes):
            y = order[place]
            total += np.float64(probabilities[i, y])
            if y == labels[i]:
                cumulative[i] = total
                rank[i] = place + 1
                break
