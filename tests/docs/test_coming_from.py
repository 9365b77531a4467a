"""The two ports of the page "Coming from MAPIE or TorchCP" give the sets that the formulas of those libraries give."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns

ALPHAS = [0.05, 0.1, 0.2]


@pytest.fixture(scope="module")
def world():
    """A graph without isolated nodes, probabilities, labels, calibration nodes and new nodes."""
    data = ns.datasets.dcsbm(600, mean_degree=8, num_classes=5, num_features=4, seed=0)
    joined = np.flatnonzero(data.graph.degrees > 0)
    graph, labels = data.graph.subgraph(joined), data.labels[joined]
    noise = np.random.default_rng(0).dirichlet(np.ones(5), labels.size)
    probabilities = 0.4 * np.eye(5)[labels] + 0.6 * noise
    calibration, new = np.split(np.random.default_rng(1).permutation(labels.size), [250])
    return graph, probabilities, labels, calibration, new


@pytest.mark.parametrize("alpha", ALPHAS)
def test_thr_gives_the_sets_of_mapies_lac(world, alpha):
    _, p, labels, calibration, new = world
    # MAPIE: the scores are 1 - p at the label; their quantile is taken at (n + 1)(1 - alpha) / n, rounded up.
    scores = 1 - p[calibration, labels[calibration]]
    n = scores.size
    quantile = np.quantile(scores, (n + 1) * (1 - alpha) / n, method="higher")
    member = (1 - p[new]) - quantile <= np.finfo(np.float64).eps
    sets = ns.SplitConformal("thr").calibrate(p, labels, calibration).predict(new, alpha=alpha)
    assert np.array_equal(sets.member, member)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_diffused_aps_gives_the_sets_of_torchcps_daps(world, alpha):
    graph, p, labels, calibration, new = world
    # TorchCP: cumulative sums of the sorted probabilities, mixed with their mean over the neighbours.
    order = np.argsort(-p, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    aps = np.empty_like(sums)
    np.put_along_axis(aps, order, sums, axis=1)
    adjacency = graph.to_scipy().toarray()
    mixed = 0.5 * (adjacency @ aps) / adjacency.sum(axis=1, keepdims=True) + 0.5 * aps
    scores = np.sort(mixed[calibration, labels[calibration]])
    threshold = scores[int(np.ceil((scores.size + 1) * (1 - alpha))) - 1]
    score = ns.Diffused(ns.APS(randomized=False), strength=0.5)
    sets = ns.SplitConformal(score).calibrate(p, labels, calibration, graph=graph).predict(new, alpha=alpha)
    # Scores that differ by rounding only may fall on either side of the threshold.
    decided = np.abs(mixed[new] - threshold) > 1e-12
    assert decided.mean() > 0.999
    assert np.array_equal(sets.member[decided], (mixed[new] <= threshold)[decided])
