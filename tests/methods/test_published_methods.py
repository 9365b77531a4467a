"""Methods of other papers in the table: made, saved, read back, explained."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.methods import load, make_method, save
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE, CLASSES = 500, 4
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE - 10, size=(2, 1500)), SIZE)  # the last nodes have no neighbours
Y = RNG.integers(CLASSES, size=SIZE)
P = 0.5 * np.eye(CLASSES)[Y] + 0.5 * RNG.dirichlet(np.ones(CLASSES), SIZE)
CALIBRATION, NODES = np.arange(0, SIZE, 2), np.arange(1, SIZE, 2)
NAMES = ["split", "thr", "daps", "snaps"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_predicts_what_was_written(tmp_path, name):
    calibrated = make_method(name, seed=3).calibrate(GRAPH, P, Y, CALIBRATION)
    save(calibrated, tmp_path / "a.npz")
    again = load(tmp_path / "a.npz")
    assert isinstance(again, ns.Calibrated)
    assert again.method == calibrated.method
    for one, other in zip(*(each.predict(NODES, [0.05, 0.3]) for each in (calibrated, again)), strict=True):
        assert np.array_equal(one.member, other.member)
        assert same_bits(one.thresholds, other.thresholds)
        assert np.array_equal(one.support, other.support)


@pytest.mark.parametrize("name", NAMES)
def test_what_explains_a_node_adds_up_to_its_threshold(name):
    calibrated = make_method(name, seed=1).calibrate(GRAPH, P, Y, CALIBRATION)
    for node in (1, 251, 499):
        seen = inspect_node(calibrated, node, alpha=0.2)
        assert seen.is_quantile
        assert seen.support == seen.neighbours.size
        assert node not in seen.neighbours
        expected = ns.weighted_quantile(seen.neighbour_scores, seen.neighbour_weights, alpha=0.2)
        if not calibrated.is_exact:
            assert seen.threshold == expected
        assert seen.total_mass == pytest.approx(seen.neighbour_weights.sum())
