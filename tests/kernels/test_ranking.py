"""Ranks and running sums of probabilities, against a sort in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.kernels.ranking import rank_all, rank_labels
from oracles import same_bits


def naive(row):
    cumulative, rank, total = {}, {}, 0.0
    for place, y in enumerate(sorted(range(len(row)), key=lambda y: (-row[y], y)), 1):
        total += float(row[y])
        cumulative[y], rank[y] = total, place
    return [cumulative[y] for y in range(len(row))], [rank[y] for y in range(len(row))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 2, 7, 16, 17, 31, 33, 64, 65, 300])  # runs of 16 are merged above 16
@pytest.mark.parametrize("tied", [False, True])
def test_ranks_descend_by_probability_and_ties_by_class(dtype, classes, tied):
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.ones(classes), size=40)
    if tied:
        p = np.round(p * 3 * classes)
    p = p.astype(dtype)
    cumulative, rank = np.empty(p.shape), np.empty(p.shape, np.int64)
    rank_all(p, cumulative, rank)
    expected = [naive(row) for row in p]
    assert same_bits(cumulative, [e[0] for e in expected])
    assert rank.tolist() == [e[1] for e in expected]
    labels = rng.integers(classes, size=40)
    at, place, largest = np.empty(40), np.empty(40, np.int64), np.empty(40)
    rank_labels(p, labels, at, place, largest)
    rows = np.arange(40)
    assert same_bits(at, cumulative[rows, labels])
    assert np.array_equal(place, rank[rows, labels])
    assert same_bits(largest, p.max(axis=1))
