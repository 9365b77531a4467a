"""Thresholds from a graph: shapes, what a node may use, and the index that is made once."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.localisers.neighbourhoods import HopThresholds
from oracles import STRATEGIES, same_bits

#        0 - 1 - 2 - 3 - 4      5 (alone)
PATH = ns.Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]], num_nodes=6)
CALIBRATION = [1, 2, 3, 4]
SCORES = [0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_path_by_hand(strategy):
    index = ns.CalibrationIndex(PATH, SCORES, CALIBRATION)
    thresholds = ns.neighbourhood_thresholds(index, [0, 2, 5], [1.0, 1.0], 0.5, strategy=strategy)
    # 0 sees nodes 1 and 2 (0.4, 0.3; 0.5 · 3 needs both). 2 sees 1, 3 and 4 (0.4, 0.2, 0.1; 0.5 · 4 needs two).
    assert thresholds.values[0, 0].tolist() == [0.4, 0.2, np.inf]
    assert thresholds.hop_counts.tolist() == [[1, 1], [2, 1], [0, 0]]
    assert thresholds.support[0].tolist() == [2, 3, 0]
    assert thresholds.effective_size[0].tolist() == [2.0, 3.0, 0.0]


def test_nodes_that_do_not_calibrate_are_walked_through():
    thresholds = ns.hop_thresholds(PATH, [0.7, 0.8], [3, 4], [0], [1.0, 1.0, 1.0, 1.0], alpha=0.5)
    assert thresholds.tolist() == [0.8]


def test_direction_is_that_of_the_edges():
    out = ns.Graph.from_edge_index([[0], [1]], num_nodes=2, directed=True)
    assert ns.hop_thresholds(out, [0.5, 0.6], [0, 1], [0, 1], [1.0], alpha=0.5).tolist() == [0.6, np.inf]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_cycle_back_to_the_node_does_not_let_it_calibrate_itself(strategy):
    ring = ns.Graph.from_edge_index([[0, 1, 2], [1, 2, 0]], num_nodes=3, directed=True)
    index = ns.CalibrationIndex(ring, [0.0, 1.0, 2.0], [0, 1, 2])
    thresholds = ns.neighbourhood_thresholds(index, [0], np.ones(5), 0.5, strategy=strategy)
    assert thresholds.hop_counts.tolist() == [[1, 1, 0, 0, 0]]


def test_axes_appear_for_several_decays_and_several_alphas():
    def shape(weights, alpha):
        return ns.hop_thresholds(PATH, SCORES, CALIBRATION, [0, 2], weights, alpha).shape

    assert shape([1.0], 0.1) == (2,)
    assert shape([[1.0]], 0.1) == (1, 2)
    assert shape([1.0], [0.1, 0.2, 0.3]) == (3, 2)
    assert shape([[1.0], [0.5]], [0.1, 0.2, 0.3]) == (2, 3, 2)
    assert shape([1.0], []) == (0, 2)


def test_no_hops_and_no_nodes_are_legal_questions():
    assert ns.hop_thresholds(PATH, SCORES, CALIBRATION, [0, 1], []).tolist() == [np.inf, np.inf]
    assert ns.hop_thresholds(PATH, SCORES, CALIBRATION, [], [1.0]).shape == (0,)
    assert ns.hop_thresholds(PATH, SCORES, CALIBRATION, np.zeros(6, bool), [1.0]).shape == (0,)


def test_masks_stand_for_indices():
    mask = np.isin(np.arange(6), CALIBRATION)
    by_mask = ns.hop_thresholds(PATH, SCORES, mask, np.ones(6, bool), [1.0, 1.0], 0.5)
    assert same_bits(by_mask, ns.hop_thresholds(PATH, SCORES, CALIBRATION, np.arange(6), [1.0, 1.0], 0.5))


def test_an_index_serves_every_question():
    index = ns.CalibrationIndex(PATH, SCORES, CALIBRATION)
    for weights, alpha in (([1.0], 0.5), ([1.0, 0.5], 0.3)):
        thresholds = ns.neighbourhood_thresholds(index, np.arange(6), weights, alpha)
        assert same_bits(
            thresholds.values[0, 0], ns.hop_thresholds(PATH, SCORES, CALIBRATION, np.arange(6), weights, alpha)
        )
    assert index.sorted_scores.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert index.nodes[:4].tolist() == [4, 3, 2, 1]
    assert index.numbers[index.nodes].tolist() == list(range(6))


def test_support_counts_only_hops_with_weight():
    index = ns.CalibrationIndex(PATH, SCORES, CALIBRATION)
    thresholds = ns.neighbourhood_thresholds(index, [2], [[0.0, 2.0], [1.0, 0.5]], 0.5)
    assert thresholds.support.tolist() == [[1], [3]]
    assert thresholds.effective_size.tolist() == [[1.0], [2.5**2 / 2.25]]


def test_torch_tensors_are_taken_everywhere():
    torch = pytest.importorskip("torch")
    thresholds = ns.hop_thresholds(
        PATH, torch.tensor(SCORES, dtype=torch.float64), torch.tensor(CALIBRATION), torch.arange(6),
        torch.tensor([1.0, 1.0]), 0.5,
    )  # fmt: skip
    assert same_bits(thresholds, ns.hop_thresholds(PATH, SCORES, CALIBRATION, np.arange(6), [1.0, 1.0], 0.5))


@pytest.mark.slow  # compiles a search a second time
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_int64_ids_give_the_same_bits(strategy):
    # Ids are 64 bits wide where a graph has 2³¹ nodes or more; the kernels must not care.
    index = ns.CalibrationIndex(PATH, SCORES, CALIBRATION)
    wide = ns.CalibrationIndex(PATH, SCORES, CALIBRATION)
    wide.layout.numbers = wide.numbers.astype(np.int64)
    thresholds = [ns.neighbourhood_thresholds(i, np.arange(6), [1, 1], 0.5, strategy=strategy) for i in (index, wide)]
    assert same_bits(thresholds[0].values, thresholds[1].values)


def effective_size(weights, counts):
    return HopThresholds(np.empty(0), counts, weights).effective_size


@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e-300, 5e-324, 1e100])
def test_the_effective_size_does_not_depend_on_the_scale_of_the_weights(scale):
    weights, counts = np.array([[1.0, 1.0], [1.0, 0.0]]) * scale, np.array([[3, 4], [0, 5], [0, 0], [2, 0]])
    expected = [[7, 5, 0, 2], [3, 0, 0, 2]]
    np.testing.assert_allclose(effective_size(weights, counts), expected, rtol=1e-15)


def test_the_effective_size_of_far_nodes_alone_is_their_number():
    weights = ns.hop_weights("geometric", 700)[None]
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
