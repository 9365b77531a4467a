"""p-values: a label is in the set exactly if its p-value is over alpha, smoothed ones are uniform."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import napsets as ns
from napsets.levels import Exact, Nominal
from napsets.localisers import Everyone, Hops
from napsets.methods import Method
from napsets.scores import APS, THR, ByLabel, Informed
from worlds import weak_model

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


@pytest.mark.parametrize("groups", [None, "class", "degree"])
@pytest.mark.parametrize(
    ("score", "localiser", "level"),
    [(APS(), Everyone(), Nominal()), (THR(), Hops(2, pool=10.0), Exact()), (Informed(), Everyone(), Exact())],
)
def test_a_label_is_in_the_set_exactly_if_its_p_value_is_over_alpha(score, localiser, level, groups):
    graph, p, labels = weak_model(seed=0, nodes=600)
    calibrated = Method(score, localiser, level, groups=groups).calibrate(graph, p, labels, np.arange(400))
    nodes = np.arange(600)  # labelled ones, too: those held out, and those of the reference
    values = calibrated.p_values(nodes)
    for alpha in (0.1, 0.2, 0.3, 0.5):
        assert np.array_equal(values > alpha, calibrated.predict(nodes, alpha).member)
    sets = calibrated.predict(nodes, 0.2, p_values=True)
    assert np.array_equal(sets.p_values, values)
    assert np.array_equal(sets[3:5].p_values, values[3:5])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("score", [THR(), Informed(), ByLabel(Informed(), 0.5)])
def test_p_values_of_an_exact_level_are_counted_by_their_definition(score, seed):
    """Pairs (share of reference scores below, score), compared one by one; all held-out labels set the one level."""
    graph, p, labels = weak_model(seed=seed, nodes=120)
    calibrated = Method(score, Everyone(), Exact(), seed).calibrate(graph, p, labels, np.arange(0, 120, 2))
    scored, nodes = calibrated.scored, np.arange(0, 120, 3)
    matrix = calibrated.score.matrix(np.arange(120))

    def pair(node, label):
        others = scored.reference.scores[scored.reference.nodes != node]
        return (others < matrix[node, label]).sum() / (1 + others.size), matrix[node, label]

    known = {int(node): pair(node, labels[node]) for node in scored.level_nodes}
    for node, row in zip(nodes.tolist(), calibrated.p_values(nodes), strict=True):
        for label, value in enumerate(row):
            assert value == (1 + sum(other >= pair(node, label) for other in known.values())) / (1 + len(known))


def test_smoothed_p_values_are_uniform():
    rng = np.random.default_rng(7)
    graph, p, labels = weak_model(seed=rng)
    results = []
    for draw in range(400):
        order = rng.permutation(labels.size)
        calibrated = Method(Informed(), Everyone(), Exact(), seed=draw).calibrate(graph, p, labels, order[:60])
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
