"""Thresholds from a graph: which nodes a node may use, and what they are worth together."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from oracles import STRATEGIES, same_bits
from searches import Found, make_layout, search_thresholds

#        0 - 1 - 2 - 3 - 4      5 (alone)
PATH = ns.Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]], num_nodes=6)
CALIBRATION = [1, 2, 3, 4]
SCORES = [0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_path_by_hand(strategy):
    layout = make_layout(PATH, SCORES, CALIBRATION)
    thresholds = search_thresholds(layout, [0, 2, 5], [1.0, 1.0], 0.5, strategy=strategy)
    # 0 sees nodes 1 and 2 (0.4, 0.3; 0.5 · 3 needs both). 2 sees 1, 3 and 4 (0.4, 0.2, 0.1; 0.5 · 4 needs two).
    assert thresholds.values[0, 0].tolist() == [0.4, 0.2, np.inf]
    assert thresholds.hop_counts.tolist() == [[1, 1], [2, 1], [0, 0]]
    assert thresholds.support[0].tolist() == [2, 3, 0]
    assert thresholds.effective_size[0].tolist() == [2.0, 3.0, 0.0]


def test_nobody_is_around_without_hops_and_nothing_is_answered_without_nodes():
    layout = make_layout(PATH, SCORES, CALIBRATION)
    assert search_thresholds(layout, [0, 1], np.ones((1, 0)), 0.1).values.tolist() == [[[np.inf, np.inf]]]
    assert search_thresholds(layout, [], [1.0], 0.1).values.shape == (1, 1, 0)


@pytest.mark.slow  # compiles a search a second time
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_int64_ids_give_the_same_bits(strategy):
    # Ids are 64 bits wide where a graph has 2³¹ nodes or more; the kernels must not care.
    layout = make_layout(PATH, SCORES, CALIBRATION)
    wide = make_layout(PATH, SCORES, CALIBRATION)
    wide.numbers = wide.numbers.astype(np.int64)
    thresholds = [search_thresholds(i, np.arange(6), [1, 1], 0.5, strategy=strategy) for i in (layout, wide)]
    assert same_bits(thresholds[0].values, thresholds[1].values)


def effective_size(weights, counts):
    return Found(np.empty(0), counts, weights).effective_size


@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e-300, 5e-324, 1e100])
def test_the_effective_size_does_not_depend_on_the_scale_of_the_weights(scale):
    weights, counts = np.array([[1.0, 1.0], [1.0, 0.0]]) * scale, np.array([[3, 4], [0, 5], [0, 0], [2, 0]])
    expected = [[7, 5, 0, 2], [3, 0, 0, 2]]
    np.testing.assert_allclose(effective_size(weights, counts), expected, rtol=1e-15)


def test_the_effective_size_of_far_nodes_alone_is_their_number():
    weights = 2.0 ** -np.arange(1.0, 701.0)[None]
    counts = np.zeros((1, 700), int)
    counts[0, -1] = 12
    assert effective_size(weights, counts).tolist() == [[12.0]]


def test_the_effective_size_of_ordinary_weights_keeps_its_bits():
    rng = np.random.default_rng(0)
    weights, counts = rng.random((3, 5)), rng.integers(0, 50, (200, 5))
    mass, square = np.zeros((2, 3, 200))
    for k in range(5):
        mass += weights[:, k, None] * counts[:, k]
        square += weights[:, k, None] ** 2 * counts[:, k]
    assert same_bits(effective_size(weights, counts), mass**2 / square)
