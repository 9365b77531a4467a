"""The law of coverage with evidence that is anything but a random sample, by tail probabilities."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import kstest

from napsets.levels import Exact, hits_law
from napsets.localisers import Everyone, Hops
from napsets.methods import Auto, Method
from napsets.scores import APS, THR, Informed
from oracles import tails
from worlds import block_model, guess

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

ALPHA = 0.1
GRAPH, _, Y = block_model(same=0.75, nodes=800, classes=4, degree=7, seed=3)
#: A model that knows one class, and nodes with many neighbours, far better than the others.
P = guess(Y, 0.5 + 2.0 * (Y == 2) + 1.5 * (GRAPH.degrees > 8), np.random.default_rng(3))
TAUGHT = 180
#: How the evidence was gathered: nodes that the model is sure of, of (nearly) one class, with most neighbours.
BIASED = {
    "confident": np.argsort(-P.max(axis=1), kind="stable")[:TAUGHT],
    "one class": np.flatnonzero(Y == 2)[:TAUGHT],
    "nearly one class": np.concatenate([np.flatnonzero(y == Y)[: TAUGHT if y == 2 else 3] for y in range(4)]),
    "hubs": np.argsort(-GRAPH.degrees, kind="stable")[:TAUGHT],
}
METHODS = {
    "informed": Method(Informed(), Everyone(), Exact()),
    "naps-exact": Method(APS(), Hops(2, pool=10.0), Exact()),
    "auto": Auto(ALPHA),
    "auto-small": Auto(ALPHA, "small"),
}
SIZES = (50, 100, 300)
DRAWS = [25, pytest.param(400, marks=pytest.mark.slow)]


@cache
def hits_of(method, bias, labels, draws):
    """Return how many of how many other nodes are covered, in draws of the calibration labels beside fixed evidence.

    Then how many labels set the level: all calibration labels, unless `auto` leaves the evidence out.
    """
    evidence = BIASED[bias]
    others = np.setdiff1d(np.arange(Y.size), evidence)
    hits = []
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(others)
        calibration, judged = order[:labels], order[labels:]
        known = np.full(Y.size, -1)
        known[evidence], known[calibration] = Y[evidence], Y[calibration]
        calibrated = METHODS[method].calibrate(GRAPH, P, known, calibration, evidence=evidence)
        hits.append(int(calibrated.predict(judged, ALPHA).contains(Y).sum()))
    taught = calibrated.scored.evidence
    assert taught or (method.startswith("auto") and bias == "one class")
    return np.array(hits), others.size - labels, labels if taught else calibrated.level_size


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("labels", SIZES)
@pytest.mark.parametrize("bias", BIASED)
@pytest.mark.parametrize("method", METHODS)
def test_hits_are_beta_binomial_given_the_calibration_labels_alone(method, bias, labels, draws):
    hits, judged, setting = hits_of(method, bias, labels, draws)
    law = hits_law(setting, ALPHA, judged)
    assert min(tails(hits, law)) > 1e-4, (hits.mean() / judged, setting)
    # Hits are whole numbers: spread over their step, what the law says of them is uniform.
    below = np.append(0.0, law)[hits]
    spread = below + (law[hits] - below) * np.random.default_rng(0).random(hits.size)
    assert kstest(spread, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("bias", BIASED)
def test_the_law_would_notice_labels_that_are_no_random_sample(bias):
    """The same labels as calibration: what the law rules out happens at once."""
    labelled = BIASED[bias]
    others = np.setdiff1d(np.arange(Y.size), labelled)
    calibrated = Method(THR()).calibrate(GRAPH, P, Y, labelled)
    hits = np.array([calibrated.predict(others, ALPHA).contains(Y).sum()])
    assert tails(hits, hits_law(labelled.size, ALPHA, others.size))[0] < 1e-6
