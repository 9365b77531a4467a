"""p-values: a label is in the set exactly if its p-value is over alpha, smoothed ones are uniform."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import napsets as ns
from methods.test_full import random_case, scores_of_bag
from napsets.levels import Exact, Full, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods import Method
from napsets.scores import APS, THR, Informed
from worlds import weak_model

ALPHAS = [0.05, 0.1, 0.2, 0.3, 0.5]


pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


@pytest.mark.parametrize("groups", [None, "class", "degree"])
@pytest.mark.parametrize(
    ("score", "localiser", "level"),
    [(APS(), Everyone(), Nominal()), (THR(), Hops(2, pool=10.0), Exact()), (Informed(), Everyone(), Full())],
)
def test_a_label_is_in_the_set_exactly_if_its_p_value_is_over_alpha(score, localiser, level, groups):
    graph, p, labels = weak_model(seed=0, nodes=600)
    calibrated = Method(score, localiser, level, groups=groups).calibrate(graph, p, labels, np.arange(400))
    nodes = np.arange(400, 600)
    values = calibrated.p_values(nodes)
    for alpha in (0.1, 0.2, 0.3, 0.5):
        assert np.array_equal(values > alpha, calibrated.predict(nodes, alpha).member)
    sets = calibrated.predict(nodes, 0.2, p_values=True)
    assert np.array_equal(sets.p_values, values)
    assert np.array_equal(sets[3:5].p_values, values[3:5])


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kernels", [False, True])
def test_p_values_of_a_full_level_are_those_of_every_bag_counted_anew(seed, kernels, monkeypatch):
    monkeypatch.setattr("napsets.methods.full._KERNELS.pay", lambda work: kernels)
    data, method, _ = random_case(seed)
    calibrated = method.fit(data)
    held_out, classes = calibrated.scored.level_nodes, data.outputs.shape[1]
    nodes = np.setdiff1d(np.arange(data.outputs.shape[0]), calibrated.scored.reference.nodes)
    values = calibrated.p_values(nodes)
    for row, v in enumerate(nodes):
        others = held_out[held_out != v]
        for y in range(classes):
            bag, labels = np.append(others, v), np.append(data.truth[others], y)
            bound, scores = scores_of_bag(calibrated, data, bag, labels, others)
            own = bound.at(np.array([v]), np.array([y]))[0]
            assert values[row, y] == (1 + (scores >= own).sum()) / (1 + others.size)


def test_smoothed_p_values_are_uniform():
    rng = np.random.default_rng(7)
    graph, p, labels = weak_model(seed=rng)
    results = []
    for draw in range(400):
        order = rng.permutation(labels.size)
        calibrated = Method(Informed(), Everyone(), Full(), seed=draw).calibrate(graph, p, labels, order[:60])
        results.append(calibrated.p_values(order[60:61], smoothed=True)[0, labels[order[60]]])
    assert kstest(results, "uniform").pvalue > 1e-4


def test_methods_that_weigh_nodes_by_where_they_are_have_none():
    graph, p, labels = weak_model(seed=1)
    naps = ns.NAPS().calibrate(graph, p, labels, np.arange(100))
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be asked of a method that compares exchangeable"):
        naps.predict([150], p_values=True)
    intervals = ns.SplitConformal(score="absolute").calibrate(p[:, 0], p[:, 0], np.arange(100))
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be left out for intervals"):
        intervals.predict([150], p_values=True)
