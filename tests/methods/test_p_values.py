"""p-values: a label is in the set exactly if its p-value is over alpha, smoothed ones are uniform, selection holds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import kstest

import napsets as ns
from methods.test_full import random_case, scores_of_bag, world
from napsets.levels import Exact, Full, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods import Method
from napsets.scores import APS, THR, Informed

ALPHAS = [0.05, 0.1, 0.2, 0.3, 0.5]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        yield


@pytest.mark.parametrize("groups", [None, "class", "degree"])
@pytest.mark.parametrize(
    ("score", "localiser", "level"),
    [(APS(), Everyone(), Nominal()), (THR(), Hops(2, pool=10.0), Exact()), (Informed(), Everyone(), Full())],
)
def test_a_label_is_in_the_set_exactly_if_its_p_value_is_over_alpha(score, localiser, level, groups):
    graph, p, labels = world(np.random.default_rng(0), nodes=600)
    calibrated = Method(score, localiser, level, groups=groups).calibrate(graph, p, labels, np.arange(400))
    nodes = np.arange(400, 600)
    values = calibrated.p_values(nodes)
    for alpha in (0.1, 0.2, 0.3, 0.5):
        assert np.array_equal(values > alpha, calibrated.predict(nodes, alpha).member)
    sets = calibrated.predict(nodes, 0.2, p_values=True)
    assert np.array_equal(sets.p_values, values)
    assert np.array_equal(sets[3:5].p_values, values[3:5])


@pytest.mark.parametrize("seed", range(8))
def test_p_values_of_a_full_level_are_those_of_every_bag_counted_anew(seed):
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
    graph, p, labels = world(rng)
    found = []
    for draw in range(400):
        order = rng.permutation(labels.size)
        calibrated = Method(Informed(), Everyone(), Full(), seed=draw).calibrate(graph, p, labels, order[:60])
        found.append(calibrated.p_values(order[60:61], smoothed=True)[0, labels[order[60]]])
    assert kstest(found, "uniform").pvalue > 1e-4


def test_methods_that_weigh_nodes_by_where_they_are_have_none():
    graph, p, labels = world(np.random.default_rng(1))
    naps = ns.NAPS().calibrate(graph, p, labels, np.arange(100))
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be asked of a method that compares exchangeable"):
        naps.predict([150], p_values=True)
    intervals = ns.SplitConformal(score="absolute").calibrate(p[:, 0], p[:, 0], np.arange(100))
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be asked of a method of labels"):
        intervals.predict([150], p_values=True)


@pytest.mark.parametrize("method", ["split", "informed"])
def test_few_selected_nodes_are_of_another_class(method):
    """The mean share of false selections over draws is at most the rate, by the tail of a bound on its mean."""
    rng = np.random.default_rng(3)
    graph, p, labels = world(rng, nodes=400)
    p = np.exp(2.5 * (np.arange(3) == labels[:, None]) + rng.normal(size=p.shape))
    p /= p.sum(axis=1, keepdims=True)
    shares, sizes = [], []
    for draw in range(150):
        order = rng.permutation(labels.size)
        known, new = order[:200], order[200:]
        made = ns.make_method(method, score="thr", seed=draw).calibrate(graph, p, labels, known)
        chosen = ns.select(made.p_values(new), label=1, fdr=0.2)
        sizes.append(chosen.size)
        shares.append((labels[new[chosen]] != 1).mean() if chosen.size else 0.0)
    assert np.mean(sizes) > 5
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) < 0.2 + 4 * error


def test_selection_is_benjamini_and_hochbergs():
    rng = np.random.default_rng(0)
    p = rng.random((50, 3))
    p[:10, [0, 2]] *= 0.01
    chosen = ns.select(p, 1, 0.2)
    against = np.maximum(p[:, 0], p[:, 2])
    counts = [k for k in range(1, 51) if np.sort(against)[k - 1] <= 0.2 * k / 50]
    assert chosen.size == max(counts)
    assert set(chosen) == set(np.argsort(against)[: max(counts)])
    assert ns.select(np.ones((4, 2)), 0).size == 0
    for wrong in ({"p_values": None}, {"p_values": [0.1]}, {"p_values": [[2.0, 0.1]]}, {"label": 3}, {"fdr": 2}):
        with pytest.raises(ns.InvalidInputError):
            ns.select(**({"p_values": p, "label": 1} | wrong))
