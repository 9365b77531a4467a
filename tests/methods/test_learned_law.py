"""What methods that learn from labels promise at an exact level, by tail probabilities; and their probabilities."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import betabinom, binom, kstest

import napsets as ns
from napsets.levels import Exact, rank_place
from napsets.localisers import Everyone, Hops
from napsets.methods import Auto, Method, make_method
from napsets.scores import APS, THR, ByLabel, Informed, Sharpened
from worlds import weak_model

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

ALPHA, JUDGED = 0.1, 200
METHODS = {
    "informed": make_method("informed"),
    "informed thr": make_method("informed", score="thr"),
    "class-wise ranks": Method(ByLabel(Informed(Sharpened(APS(), 2.0)), 0.5), Everyone(), Exact()),
    "local thresholds": Method(Informed(THR()), Hops(2, pool=10.0), Exact(0.4)),
    "auto": Auto(ALPHA),
    "auto-small": Auto(ALPHA, "small"),
}
#: Labels, and how often they are drawn: `auto` chooses from 100 labels on, and rounds no coverage away below 1,000.
DRAWS = [
    *((name, 40, 300) for name in METHODS if not name.startswith("auto")),
    *((name, 150, 120) for name in METHODS),
    *(pytest.param(name, labelled, 300, marks=pytest.mark.slow) for name in METHODS for labelled in (101, 999, 1000)),
]


@cache
def draws_of(name, labelled, draws):
    """Return, for each draw of labels: how many were held out, a new node's two p-values, and how many are covered."""
    rng = np.random.default_rng(labelled)
    graph, p, labels = weak_model(seed=rng, nodes=labelled + JUDGED)
    rows = []
    for draw in range(draws):
        known, new = np.split(rng.permutation(labels.size), [labelled])
        visible = np.full(labels.size, -1)
        visible[known] = labels[known]
        calibrated = replace(METHODS[name], seed=draw).calibrate(graph, p, visible, known)
        one, label = new[:1], labels[new[0]]
        p_values = (calibrated.p_values(one, smoothed=smoothed)[0, label] for smoothed in (True, False))
        covered = calibrated.predict(new, ALPHA).contains(labels).sum()
        rows.append((calibrated.scored.level_nodes.size, *p_values, covered))
    return np.array(rows).T


@pytest.mark.parametrize(("name", "labelled", "draws"), DRAWS)
def test_p_values_of_true_labels_are_uniform(name, labelled, draws):
    """Smoothed ones are uniform; (|Q|+1)·p of others is uniform on 1..|Q|+1, and spread over its step, p is."""
    held_out, smoothed, plain, _ = draws_of(name, labelled, draws)
    assert kstest(smoothed, "uniform").pvalue > 1e-4
    np.testing.assert_allclose(plain * (held_out + 1), np.round(plain * (held_out + 1)))
    assert kstest(plain - np.random.default_rng(0).random(draws) / (held_out + 1), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("name", "labelled", "draws"), DRAWS)
def test_hits_are_beta_binomial(name, labelled, draws):
    """Of m nodes, BetaBinomial(m, k, |Q|+1−k) are covered, whatever was learned and chosen."""
    held_out, _, _, covered = draws_of(name, labelled, draws)
    places = np.array([rank_place(int(size), ALPHA) for size in held_out])
    law = betabinom(JUDGED, places, held_out + 1 - places)
    spread = law.cdf(covered - 1) + np.random.default_rng(1).random(draws) * law.pmf(covered)
    assert kstest(spread, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("method", ["informed", "auto", "auto-small"])
def test_permuting_hidden_labels_changes_no_set_and_no_p_value(method):
    rng = np.random.default_rng(2)
    graph, p, labels = weak_model(seed=rng, nodes=500)
    known, hidden = np.arange(0, 500, 2), np.arange(1, 500, 2)
    shuffled = labels.copy()
    shuffled[hidden] = rng.permutation(labels[hidden])
    assert (shuffled != labels).any()
    one, other = (make_method(method).calibrate(graph, p, y, known) for y in (labels, shuffled))
    assert one.method == other.method
    sets = [calibrated.predict(hidden) for calibrated in (one, other)]
    assert np.array_equal(sets[0].member, sets[1].member)
    assert np.array_equal(one.p_values(hidden), other.p_values(hidden))


@pytest.mark.parametrize("method", ["informed", "auto", "auto-small"])
def test_permuting_held_out_labels_changes_no_probability_and_no_choice(method):
    """What the held-out labels do is to set the level, and nothing else."""
    graph, p, labels = weak_model(seed=3, nodes=500)
    known = np.arange(0, 500, 2)
    one = make_method(method).calibrate(graph, p, labels, known)
    held_out = one.scored.level_nodes
    shuffled = labels.copy()
    shuffled[held_out] = np.random.default_rng(0).permutation(labels[held_out])
    assert (shuffled != labels).any()
    other = make_method(method).calibrate(graph, p, shuffled, known)
    assert one.method == other.method
    assert np.array_equal(one.probabilities, other.probabilities)
    assert not np.array_equal(one.scored.level_scores, other.scored.level_scores)


# -- the probabilities that sets are made from -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def amazon():
    data = ns.datasets.load("amazon-computers", seed=0)
    graph, labels = data.graph.subgraph(data.test), data.labels[data.test]
    p = ns.datasets.amazon_predictions().probabilities
    known, new = np.split(np.random.default_rng(0).permutation(labels.size), [1000])
    return graph, p, labels, known, new


@pytest.mark.parametrize("method", [make_method("informed"), ns.Auto(), ns.Auto(prefer="small")])
def test_corrected_probabilities_predict_labels_at_least_as_well_as_the_model(amazon, method):
    """By a tail probability: were the corrected predictions right no more often, such a gain would be that rare."""
    graph, p, labels, known, new = amazon
    visible = np.full(labels.size, -1)
    visible[known] = labels[known]
    calibrated = method.calibrate(graph, p, visible, known)
    corrected = calibrated.probabilities
    assert corrected.shape == p.shape
    np.testing.assert_allclose(corrected.sum(axis=1), 1.0, atol=1e-5)
    right, before = (q[new].argmax(axis=1) == labels[new] for q in (corrected, p))
    won, lost = int((right & ~before).sum()), int((before & ~right).sum())
    assert right.mean() >= before.mean()
    assert binom.sf(won - 1, won + lost, 0.5) < 1e-6


def test_methods_that_do_not_correct_the_model_give_its_own_probabilities(amazon):
    graph, p, labels, known, _ = amazon
    for method in ("split", "naps", "daps", "by-class"):
        assert np.array_equal(make_method(method).calibrate(graph, p, labels, known).probabilities, p)
    few = ns.Auto().calibrate(graph, p, labels, known[:50])  # too few to choose by
    assert np.array_equal(few.probabilities, p)


def test_probabilities_are_read_only(amazon):
    graph, p, labels, known, _ = amazon
    calibrated = make_method("informed").calibrate(graph, p, labels, known)
    with pytest.raises(ValueError, match="read-only"):
        calibrated.probabilities[0, 0] = 1.0


def test_a_score_of_numbers_has_no_probabilities():
    y = np.linspace(0.0, 1.0, 100)
    calibrated = ns.SplitConformal("absolute").calibrate(y, y, np.arange(50))
    with pytest.raises(ns.InvalidInputError, match="a score of numbers has none"):
        _ = calibrated.probabilities
