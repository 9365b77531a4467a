"""Validity, against the laws that theory gives: fixed seeds, a stated level, a computed p-value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, binomtest, chisquare, kstest, norm, ttest_1samp

import napsets as ns
from searches import hop_thresholds

#: Level of each test of fit: a right program fails one in a thousand, were seeds not fixed.
LEVEL = 1e-3
CLASSES = 5


def exchangeable(rng, size):
    """Return i.i.d. probabilities and labels; the model is overconfident and wrong about one class, as models are."""
    truth = rng.dirichlet(np.full(CLASSES, 0.7), size)
    labels = (rng.random((size, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=CLASSES - 1)
    model = truth**1.7 + 1e-3
    model[:, 0] *= 0.5
    return model / model.sum(axis=1, keepdims=True), labels


def fits(counts, pmf, draws):
    """The p-value of Pearson's test, bins joined from the left until each expects five draws."""
    observed, expected, o, e = [], [], 0.0, 0.0
    for count, share in zip(counts, pmf, strict=True):
        o, e = o + count, e + share * draws
        if e >= 5:
            observed.append(o)
            expected.append(e)
            o = e = 0.0
    observed[-1] += o
    expected[-1] += e
    return chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue


def copies(edges, size, count):
    """A graph of `count` graphs without an edge between them: what happens in one is independent of the others."""
    shifts = size * np.arange(count)
    ends = (np.reshape(edges, (2, 1, -1)) + shifts[:, None]).reshape(2, -1)
    return ns.Graph.from_edge_index(ends, size * count)


@pytest.mark.parametrize("method", ["split", "naps"])
@pytest.mark.parametrize(("calibrators", "alpha"), [(99, 0.1), (50, 0.25), (20, 0.1)])
def test_coverage_over_many_draws_follows_the_beta_binomial_law(method, calibrators, alpha):
    # Given calibration, coverage is Beta(k, n+1−k) with k = ⌈(n+1)(1−α)⌉, so that of m tested nodes a
    # BetaBinomial(m, k, n+1−k) number is covered. Whatever the model; it is in the order of the scores alone.
    draws, tested = 1500, 40
    rng = np.random.default_rng(calibrators)
    size = calibrators + tested
    counts = np.zeros(tested + 1)
    if method == "split":
        for draw in range(draws):
            p, y = exchangeable(rng, size)
            predictor = ns.SplitConformal(seed=draw).calibrate(p, y, calibration=np.arange(calibrators))
            counts[predictor.predict(np.arange(calibrators, size), alpha).contains(y).sum()] += 1
    else:
        # Every tested node is a neighbour of every calibrator: one hop is all of the calibration set.
        pairs, together = np.divmod(np.arange(calibrators * tested), tested), 100
        graph = copies([pairs[0], calibrators + pairs[1]], size, together)
        calibrates = np.arange(graph.num_nodes) % size < calibrators
        for seed in range(draws // together):
            p, y = exchangeable(rng, graph.num_nodes)
            naps = ns.NAPS(hops=1, seed=seed).calibrate(graph, p, y, calibration=calibrates)
            covered = naps.predict(~calibrates, alpha).contains(y).reshape(together, tested)
            np.add.at(counts, covered.sum(axis=1), 1)
    k = math.ceil(round((calibrators + 1) * (1 - alpha), 9))
    law = betabinom.pmf(np.arange(tested + 1), tested, k, calibrators + 1 - k)
    assert fits(counts, law, draws) > LEVEL
    # The test has the power to tell k from its neighbours: what an off-by-one in the quantile would give.
    for wrong in (k - 1, k + 1):
        if 0 < wrong <= calibrators:
            other = betabinom.pmf(np.arange(tested + 1), tested, wrong, calibrators + 1 - wrong)
            assert fits(counts, other, draws) < LEVEL


def test_coverage_given_calibration_is_beta_distributed():
    # With uniform scores the coverage of a threshold is the threshold itself: no tested nodes are needed.
    n, alpha, draws = 60, 0.2, 4000
    rng = np.random.default_rng(8)
    stars = copies([np.zeros(n, int), np.arange(1, n + 1)], n + 1, draws)
    hubs, leaves = np.split(np.arange((n + 1) * draws).reshape(draws, n + 1), [1], axis=1)
    k = math.ceil(round((n + 1) * (1 - alpha), 9))
    coverage = hop_thresholds(stars, rng.random(n * draws), leaves.ravel(), hubs.ravel(), [1.0], alpha)
    assert kstest(coverage, beta(k, n + 1 - k).cdf).pvalue > LEVEL
    for wrong in (k - 1, k + 1):
        assert kstest(coverage, beta(wrong, n + 1 - wrong).cdf).pvalue < LEVEL


def test_each_size_of_neighbourhood_has_the_coverage_that_its_order_statistic_gives():
    # Many stars in one graph: the hub of a star with n leaves is covered with probability ⌈(n+1)(1−α)⌉/(n+1)
    # exactly, 1 where that is not reached; hubs are independent.
    alpha, draws, copies = 0.1, 60, 12
    leaves = np.repeat(np.arange(0, 32), copies)
    hubs = np.cumsum(np.r_[0, leaves[:-1] + 1])
    size = int(leaves.sum() + leaves.size)
    owner = np.repeat(hubs, leaves)
    others = np.setdiff1d(np.arange(size), hubs)
    graph = ns.Graph.from_edge_index([owner, others], size)
    rng = np.random.default_rng(3)
    covered = np.zeros(leaves.size)
    for draw in range(draws):
        p, y = exchangeable(rng, size)
        sets = ns.NAPS(hops=2, seed=draw).calibrate(graph, p, y, calibration=others).predict(hubs, alpha)
        assert np.array_equal(sets.support, leaves)
        covered += sets.contains(y)
    for n in range(32):
        place = math.ceil(round((n + 1) * (1 - alpha), 9))
        hit, trials = int(covered[leaves == n].sum()), draws * copies
        if place > n:
            assert hit == trials
        else:
            assert binomtest(hit, trials, place / (n + 1)).pvalue > LEVEL / 32  # 32 looks at one level


@pytest.mark.parametrize("decay", ["hyperbolic", "geometric", lambda k: float(k)])
def test_any_decay_covers_at_least_as_often_as_asked_on_exchangeable_data(decay):
    # Weights that do not look at the data cost nothing where the data are exchangeable.
    alpha, draws, size = 0.2, 400, 300
    rng = np.random.default_rng(5)
    graph = copies(rng.integers(size, size=(2, 900)), size, draws)
    p, y = exchangeable(rng, size * draws)
    tested = np.arange(0, size * draws, size)  # one node per copy, so that draws are independent
    calibration = np.setdiff1d(np.arange(size * draws), tested)
    sets = ns.NAPS(hops=3, decay=decay).calibrate(graph, p, y, calibration=calibration).predict(tested, alpha)
    assert (sets.support > 10).all()
    assert binom.cdf(sets.contains(y).sum(), draws, 1 - alpha) > LEVEL


def block_violations(rng, n, p_in, p_out, draws, alpha, hops=1):
    """Worst |coverage − (1−α)| of the two blocks in each draw's mean, for NAPS and for global calibration.

    Nodes of the second block have labels that the model hardly knows; only the edges tell the blocks apart.
    """
    size = 2 * n
    block = np.repeat([0, 1], n)
    upper = np.triu_indices(size, 1)
    share = np.where(block[upper[0]] == block[upper[1]], p_in, p_out)
    covered = {"naps": np.empty((draws, 2)), "global": np.empty((draws, 2))}
    for draw in range(draws):
        keep = rng.random(share.size) < share
        graph = ns.Graph.from_edge_index([upper[0][keep], upper[1][keep]], size)
        p, y = exchangeable(rng, size)
        y = np.where((block == 1) & (rng.random(size) < 0.6), rng.integers(CLASSES, size=size), y)
        tested = rng.random(size) < 0.3
        naps = ns.NAPS(hops=hops, seed=draw).calibrate(graph, p, y, calibration=~tested)
        split = ns.SplitConformal(seed=draw).calibrate(p, y, calibration=~tested)
        for name, predictor in (("naps", naps), ("global", split)):
            sets = predictor.predict(tested, alpha)
            hit = sets.contains(y)
            covered[name][draw] = [hit[block[sets.nodes] == b].mean() for b in (0, 1)]
    return covered


def test_naps_has_the_smaller_worst_block_violation_where_lemma_1_says_so():
    n, p_in, p_out, alpha, draws = 250, 0.4, 0.04, 0.1, 80
    verdict = ns.sbm_favours_naps(n, p_in, p_out)
    assert verdict.favours_naps
    covered = block_violations(np.random.default_rng(11), n, p_in, p_out, draws, alpha)
    gaps = {name: np.abs(values - (1 - alpha)).max(axis=1) for name, values in covered.items()}
    # Draws are independent: a one-sided t-test that global calibration's worst block is worse, draw by draw.
    assert ttest_1samp(gaps["global"] - gaps["naps"], 0, alternative="greater").pvalue < LEVEL
    # And of the coverages averaged over draws, where noise no longer hides a bias, with the tolerance that the
    # number of draws gives: z standard errors of the difference.
    mean = {name: values.mean(axis=0) for name, values in covered.items()}
    error = {name: values.std(axis=0, ddof=1) / math.sqrt(draws) for name, values in covered.items()}
    worst = {name: np.abs(mean[name] - (1 - alpha)).max() for name in mean}
    tolerance = norm.isf(LEVEL) * math.hypot(*(error[name].max() for name in error))
    assert worst["naps"] < worst["global"] - tolerance
    # Global calibration is honest on average and wrong in both blocks: too much in one, too little in the other.
    assert mean["global"][0] - norm.isf(LEVEL) * error["global"][0] > 1 - alpha
    assert mean["global"][1] + norm.isf(LEVEL) * error["global"][1] < 1 - alpha


def test_where_neighbours_are_strangers_lemma_1_does_not_favour_naps_and_rightly():
    n, p_in, p_out, alpha, draws = 250, 0.02, 0.4, 0.1, 40
    assert not ns.sbm_favours_naps(n, p_in, p_out).favours_naps
    covered = block_violations(np.random.default_rng(12), n, p_in, p_out, draws, alpha)
    gaps = {name: np.abs(values - (1 - alpha)).max(axis=1) for name, values in covered.items()}
    assert ttest_1samp(gaps["naps"] - gaps["global"], 0, alternative="greater").pvalue < LEVEL
