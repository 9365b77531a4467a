"""Methods of other papers in the table: made, saved, read back, explained."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.methods import load, make_method, save, title
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE, CLASSES = 500, 4
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE - 10, size=(2, 1500)), SIZE)  # the last nodes have no neighbours
Y = RNG.integers(CLASSES, size=SIZE)
P = 0.5 * np.eye(CLASSES)[Y] + 0.5 * RNG.dirichlet(np.ones(CLASSES), SIZE)
CALIBRATION, NODES = np.arange(0, SIZE, 2), np.arange(1, SIZE, 2)
NAMES = ["snaps", "daps-thr", "daps-tuned", "rlcp", "pagerank", "pagerank-exact", "node-ex", "edge-ex"]


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


def test_they_go_by_the_names_of_their_papers():
    assert [title(name) for name in NAMES] == [
        "SNAPS", "DAPS THR", "DAPS tuned", "RLCP", "PageRank", "PageRank exact", "NodeEx", "EdgeEx",
    ]  # fmt: skip


def test_node_ex_is_another_name_of_split():
    for settings in ({}, {"score": "informed"}, {"seed": 3, "allow_empty": False, "by": "degree", "level": "exact"}):
        assert make_method("node-ex", **settings) == make_method("split", **settings)


def test_methods_keep_labels_apart_where_their_score_learns():
    for name in ("rlcp", "node-ex", "edge-ex"):
        assert make_method(name).level == ns.Nominal()
        assert make_method(name, score="informed").level == ns.Exact()
    assert make_method("pagerank", pool=3.0).localiser == ns.PageRank(pool=3.0)


def test_a_randomised_predictor_is_the_method_of_the_table_and_survives_a_file(tmp_path):
    predictor = ns.RandomisedNAPS(min_size=100, seed=5).calibrate(GRAPH, P, Y, CALIBRATION)
    sets = predictor.predict(NODES, alpha=0.2)
    table = make_method("rlcp", seed=5).calibrate(GRAPH, P, Y, CALIBRATION).predict(NODES, alpha=0.2)
    assert same_bits(sets.thresholds, table.thresholds)
    predictor.save(tmp_path / "r.npz")
    again = ns.RandomisedNAPS.load(tmp_path / "r.npz")
    assert (again.min_size, again.seed, again.score) == (100, 5, ns.APS())
    assert same_bits(again.predict(NODES, alpha=0.2).thresholds, sets.thresholds)
    with pytest.raises(ns.InvalidInputError, match=r"`path` must hold a NAPS; .* holds a RandomisedNAPS"):
        ns.NAPS.load(tmp_path / "r.npz")
    assert inspect_node(again, 1).support > 0


def test_balls_of_another_size_need_no_new_calibration_and_another_seed_does():
    predictor = ns.RandomisedNAPS(min_size=40).calibrate(GRAPH, P, Y, CALIBRATION)
    predictor.min_size = 100
    fresh = ns.RandomisedNAPS(min_size=100).calibrate(GRAPH, P, Y, CALIBRATION)
    assert same_bits(predictor.predict(NODES).thresholds, fresh.predict(NODES).thresholds)
    predictor.seed = 1
    with pytest.raises(ns.NotCalibratedError, match="`seed` was changed after it"):
        predictor.predict(NODES)


def test_another_seed_draws_other_nodes_and_gives_other_thresholds():
    one, other = (ns.RandomisedNAPS(40, score="thr", seed=s).calibrate(GRAPH, P, Y, CALIBRATION) for s in (0, 1))
    apart = one.predict(NODES).thresholds != other.predict(NODES).thresholds
    assert apart.mean() > 0.3
