"""The paper's formulas against enumeration, NetworkX and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest

import napsets as ns
from napsets.advice.theory import measure_homophily
from napsets.levels import fewest_ranks


def test_homophily_is_the_mean_share_of_like_neighbours():
    theirs = nx.gnm_random_graph(100, 180, seed=0)
    labels = np.random.default_rng(0).integers(3, size=100)
    shares = [np.mean([labels[w] == labels[v] for w in theirs[v]]) if theirs[v] else 0.0 for v in theirs]
    assert ns.node_homophily(ns.Graph.from_networkx(theirs), labels) == pytest.approx(np.mean(shares), rel=1e-14)


def test_unknown_labels_are_left_out_of_homophily():
    path = ns.Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], 5)
    assert ns.node_homophily(path, [0, 0, -1, 1, -1]) == pytest.approx((1 + 1 + 0) / 3)
    assert math.isnan(ns.node_homophily(path, [-1] * 5))


def test_expected_homophily_is_that_of_shuffled_labels():
    labels = np.array([0, 0, 0, 1, 1, 2])
    assert ns.expected_homophily(labels) == pytest.approx((9 + 4 + 1) / 36)
    assert ns.expected_homophily([-1, 2, 2]) == 1.0
    assert math.isnan(ns.expected_homophily([-1, -1]))
    # Two nodes drawn with replacement agree so often; without replacement, as a shuffle has it, a little less.
    graph = ns.Graph.from_edge_index([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], 6)
    shuffles = {ns.node_homophily(graph, p) for p in set(permutations(labels.tolist()))}
    assert min(shuffles) < ns.expected_homophily(labels) < max(shuffles)


def test_homophily_by_class_beside_that_of_all():
    theirs = nx.gnm_random_graph(100, 120, seed=1)
    graph, labels = ns.Graph.from_networkx(theirs), np.random.default_rng(1).integers(-1, 3, size=100)
    shares = {}
    for v in theirs:
        known = [labels[w] == labels[v] for w in theirs[v] if labels[w] >= 0]
        if labels[v] >= 0 and known:
            shares[v] = np.mean(known)
    homophily = measure_homophily(graph, labels, num_classes=4)
    assert homophily.labelled == (labels >= 0).sum()
    assert homophily.unmet == homophily.labelled - len(shares) > 0
    assert homophily.mean == ns.node_homophily(graph, labels)
    assert homophily.where_met == pytest.approx(np.mean(list(shares.values())), rel=1e-14)
    assert homophily.expected == ns.expected_homophily(labels)
    assert homophily.class_counts.tolist() == [*np.bincount(labels[labels >= 0]), 0]
    np.testing.assert_allclose(homophily.class_expected, homophily.class_counts / homophily.labelled)
    means = [np.mean([share for v, share in shares.items() if labels[v] == y]) for y in range(3)]
    np.testing.assert_allclose(homophily.class_means, [*means, np.nan])
    assert measure_homophily(graph, labels).class_counts.size == 3
    with pytest.raises(ns.InvalidInputError, match="`labels` must be below `num_classes`, 2; got 2"):
        measure_homophily(graph, labels, num_classes=2)


@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.2, 0.1, 0.05, 0.01, 1 / 3, 0.999])
def test_the_fewest_labels_just_reach_a_finite_threshold(alpha):
    needed = fewest_ranks(alpha)
    assert np.isfinite(ns.weighted_quantile(np.arange(needed), np.ones(needed), alpha))
    assert needed == 1 or np.isinf(ns.weighted_quantile(np.arange(needed - 1), np.ones(needed - 1), alpha))


def weighted_gap_bound(weights, tv):
    """The paper's bound for any weights (`eq:gapbound`): Σ w_i·tv_i / (1 + Σ w_i)."""
    return float(np.dot(weights, tv) / (1.0 + sum(weights)))


def test_the_gap_bound_by_hop_is_that_of_its_nodes():
    weights, counts, tv = [1.0, 0.5], [3, 4], [0.2, 0.6]
    each = weighted_gap_bound([1.0] * 3 + [0.5] * 4, [0.2] * 3 + [0.6] * 4)
    assert ns.coverage_gap_bound(weights, counts, tv) == pytest.approx(each)
    assert isinstance(ns.coverage_gap_bound(weights, counts, tv), float)
    many = ns.coverage_gap_bound(weights, [[3, 4], [0, 0]], tv)
    assert many.tolist() == pytest.approx([each, 0.0])
    # With all weights 1 it is Σ d / (1 + |N|).
    assert ns.coverage_gap_bound([1, 1], [3, 4], [0.2, 0.6]) == pytest.approx((3 * 0.2 + 4 * 0.6) / 8)


def test_a_pool_of_nothing_changes_no_bit():
    rng = np.random.default_rng(2)
    weights, counts, tv = rng.random(3), rng.integers(50, size=(20, 3)), rng.random((20, 3))
    plain = ns.coverage_gap_bound(weights, counts, tv)
    mass = counts * weights
    assert np.array_equal(plain, np.sum(mass * tv, axis=-1) / (1.0 + np.sum(mass, axis=-1)))
    assert np.array_equal(ns.coverage_gap_bound(weights, counts, tv, pool=0, rest_count=7, rest_tv=0.5), plain)


def each_node(weights, counts, tv, pool, rest_count, rest_tv):
    """The weight and the total variation distance of every single calibration node."""
    n = sum(counts) + rest_count
    w = [weights[k] for k, count in enumerate(counts) for _ in range(count)] + [0.0] * rest_count
    d = [tv[k] for k, count in enumerate(counts) for _ in range(count)] + [rest_tv] * rest_count
    return [one + pool / n for one in w], d


@pytest.mark.parametrize("seed", range(20))
def test_the_pooled_gap_bound_is_the_sum_over_all_nodes(seed):
    rng = np.random.default_rng(seed)
    weights, counts, tv = rng.random(3).tolist(), rng.integers(6, size=3).tolist(), rng.random(3).tolist()
    pool, rest_count, rest_tv = float(rng.choice([0.5, 10.0, 300.0])), int(rng.integers(1, 40)), float(rng.random())
    w, d = each_node(weights, counts, tv, pool, rest_count, rest_tv)
    most = max(1.0, *w)
    expected = (most - 1 + sum(a * b for a, b in zip(w, d, strict=True))) / (most + sum(w))
    bound = ns.coverage_gap_bound(weights, counts, tv, pool=pool, rest_count=rest_count, rest_tv=rest_tv)
    assert isinstance(bound, float)
    assert bound == pytest.approx(expected, rel=1e-12)
    if most == 1.0:  # then it is the paper's
        assert bound == pytest.approx(weighted_gap_bound(w, d), rel=1e-12)
    many = ns.coverage_gap_bound(
        weights, [counts, [0, 0, 0]], tv, pool=pool, rest_count=[rest_count, 0], rest_tv=rest_tv
    )
    assert many.tolist() == pytest.approx([expected, 0.0], rel=1e-12)


def test_pooled_gap_bounds_in_closed_form():
    # Pooled like split conformal prediction, all nodes weigh 1: the mean distance, times n/(n+1).
    assert ns.coverage_gap_bound([], [], [], pool=9, rest_count=9, rest_tv=0.2) == pytest.approx(9 * 0.2 / 10)
    # Half a unit a hop and a pool of 5 among 10: all weights are at most 1.
    bound = ns.coverage_gap_bound([0.5], [4], [0.1], pool=5, rest_count=6, rest_tv=0.3)
    assert bound == pytest.approx((4 * 1.0 * 0.1 + 6 * 0.5 * 0.3) / (1 + 4 + 3))
    # Neighbours at 1 + 5/10: half a unit is paid for what they weigh beyond the node itself.
    bound = ns.coverage_gap_bound([1.0], [4], [0.1], pool=5, rest_count=6, rest_tv=0.3)
    assert bound == pytest.approx((0.5 + 4 * 1.5 * 0.1 + 6 * 0.5 * 0.3) / (1.5 + 6 + 3))
    # What is not known of the rest counts as the worst.
    worst = ns.coverage_gap_bound([1.0], [4], [0.1], pool=5, rest_count=6)
    assert worst == ns.coverage_gap_bound([1.0], [4], [0.1], pool=5, rest_count=6, rest_tv=1.0) > bound
    # A large pool of unlike nodes has nearly their distance; a small one hardly changes anything.
    assert ns.coverage_gap_bound([1.0], [4], [0.1], pool=1e6, rest_count=10**7, rest_tv=0.3) == pytest.approx(0.3, 1e-4)
    tiny = ns.coverage_gap_bound([1.0], [4], [0.1], pool=1e-9, rest_count=10**7)
    assert tiny == pytest.approx(ns.coverage_gap_bound([1.0], [4], [0.1]), rel=1e-6)


def covered_share(weights, alpha):
    """The exact coverage of a weighted quantile where scores are exchangeable: all orders are equally likely."""
    orders = list(permutations(range(len(weights) + 1)))
    hit = [order[-1] <= ns.weighted_quantile(np.array(order[:-1], dtype=float), weights, alpha) for order in orders]
    return np.mean(hit)


@pytest.mark.parametrize("pool", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("near", [1, 2, 4])
def test_the_pooled_bound_holds_where_neighbours_weigh_more_than_the_node(near, pool):
    n = 4
    w, _ = each_node([1.0], [near], [0.0], pool, n - near, 0.0)
    bound = ns.coverage_gap_bound([1.0], [near], [0.0], pool=pool, rest_count=n - near, rest_tv=0.0)
    assert max(w) > 1
    # Coverage is worst where the needed weight is reached exactly: by some of the nodes.
    reached = [sum(some) / (1 + sum(w)) for k in range(1, n + 1) for some in combinations(w, k)]
    assert max(share - covered_share(w, 1 - share) for share in reached) <= bound


def test_one_neighbour_that_weighs_more_than_the_node_costs_coverage():
    # Two exchangeable scores, one of them with weight 2: at α = 1/3 the threshold is that score, which covers half of
    # the time, though all distances are 0. The paper's formula says no gap, but is for weights of at most 1.
    assert covered_share([2.0], 1 / 3) == 0.5
    assert weighted_gap_bound([2.0], [0.0]) == 0.0
    assert ns.coverage_gap_bound([1.0], [1], [0.0], pool=1) == pytest.approx(1 / 4)
    assert 1 / 4 >= 2 / 3 - 1 / 2


def test_what_a_pooled_bound_is_given_must_fit():
    with pytest.raises(ns.InvalidInputError, match="`pool` must be finite"):
        ns.coverage_gap_bound([1.0], [4], [0.1], pool=-1)
    with pytest.raises(ns.InvalidInputError, match="`rest_count` must be finite"):
        ns.coverage_gap_bound([1.0], [4], [0.1], pool=1, rest_count=-2)
    with pytest.raises(ns.InvalidInputError, match="`rest_tv` must be finite"):
        ns.coverage_gap_bound([1.0], [4], [0.1], pool=1, rest_count=2, rest_tv=1.5)
    with pytest.raises(ns.InvalidInputError, match="`rest_count` and `rest_tv` must have one entry per node"):
        ns.coverage_gap_bound([1.0], [[4], [5]], [0.1], pool=1, rest_count=[1, 2, 3])


def exact_lemma(n, p_in, p_out):
    def binomial(size, p):
        return [math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(size + 1)]

    return sum(
        a * b * Fraction(j, i + j + 1)
        for i, a in enumerate(binomial(n - 1, p_in))
        for j, b in enumerate(binomial(n, p_out))
    )


@pytest.mark.parametrize("n", [1, 2, 3, 10, 30])
@pytest.mark.parametrize(
    ("p_in", "p_out"),
    [(0, 0), (0, 1), (1, 0), (1, 1), ("1/2", "1/10"), ("1/10", "1/2"), ("1/100", "1/3"), ("1/7", "1/7")],
)
def test_lemma_1_is_the_sum_over_both_binomials(n, p_in, p_out):
    p_in, p_out = Fraction(p_in), Fraction(p_out)
    verdict = ns.sbm_favours_naps(n, float(p_in), float(p_out))
    expected = exact_lemma(n, p_in, p_out)
    assert verdict.exact == pytest.approx(float(expected), rel=1e-12, abs=1e-15)
    assert verdict.favours_naps == (expected < Fraction(1, 2))
    assert verdict.mean_field == pytest.approx(float(n * p_out / (n * p_out + (n - 1) * p_in + 1)), rel=1e-14)


@pytest.mark.parametrize("n", [20_000, 50_000])
@pytest.mark.parametrize(("p_in", "p_out"), [(0.01, 0.001), (0.001, 0.01), (0.5, 0.49), (1e-5, 1e-5)])
def test_lemma_1_is_stable_for_large_blocks(n, p_in, p_out):
    # E[j / (i + j + 1)] over independent binomials, by a third road: E over j of j·∫₀¹ t^j·E[t^i] dt.
    from scipy.integrate import quad

    def integrand(t):
        inside = math.exp((n - 1) * math.log1p(-p_in * (1 - t)))
        return inside * n * p_out * t * math.exp((n - 1) * math.log1p(-p_out * (1 - t)))

    # All of the mass is within about 1/(n·p) of t = 1.
    width = min(1.0, 60 / (n * (p_in + p_out)))
    expected, _ = quad(integrand, 1 - width, 1, epsabs=0, epsrel=1e-11, limit=500)
    assert ns.sbm_favours_naps(n, p_in, p_out).exact == pytest.approx(expected, rel=1e-8)


def test_lemma_1_at_the_edge_between_the_regimes():
    assert ns.sbm_favours_naps(1000, 0.05, 0.01).favours_naps
    assert not ns.sbm_favours_naps(1000, 0.01, 0.05).favours_naps
    assert ns.sbm_favours_naps(1000, 0.05, 0.05).favours_naps  # the +1 of the test point tips it
    assert ns.sbm_favours_naps(1000, 0.0, 0.0).exact == 0.0


@pytest.mark.parametrize("n", [10**9, 2**53])
@pytest.mark.parametrize(("p_in", "p_out"), [(0.5, 0.4), (1e-9, 3e-9), (1.0, 1e-3), (0.3, 0.3), (0.4, 0.5), (0.0, 1.0)])
def test_lemma_1_is_decided_for_blocks_of_any_size(n, p_in, p_out):
    verdict = ns.sbm_favours_naps(n, p_in, p_out)
    if n * min(p_in + p_out, 1) > 1e6:  # then counts hardly deviate from their means
        assert verdict.exact == pytest.approx(verdict.mean_field, rel=1e-6)
    else:  # Poisson counts: the share of one kind in a sum of both, where there are any
        total = n * (p_in + p_out)
        assert verdict.exact == pytest.approx(3 / 4 * (1 - (1 - math.exp(-total)) / total), rel=1e-8)
    assert verdict.favours_naps == (p_in >= p_out)
