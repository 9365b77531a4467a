"""Gaps of coverage over groups: by hand, by closed form, by simulation."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import napsets as ns
from napsets.evaluation.gaps import binomial_deviation, worst_deviation
from oracles import enumerated_worst_deviation


def make(covered, alpha=0.25, nodes=None, num_nodes=None):
    """Sets of two classes whose true label is 0: each contains it or not, as told."""
    covered = np.asarray(covered, bool)
    n = covered.size
    member = np.column_stack([covered, np.ones(n, bool)])
    nodes = np.arange(n) if nodes is None else np.asarray(nodes)
    size = n if num_nodes is None else num_nodes
    return ns.PredictionSets(nodes, member, np.ones(n), np.ones(n, int), np.ones(n), alpha, num_nodes=size)


# Group 0 covers 4 of 4, group 1 covers 1 of 2, and one node is in none.
SETS = make([1, 1, 1, 1, 1, 0, 0])
LABELS = np.zeros(7, int)
GROUPS = np.array([0, 0, 0, 0, 1, 1, -1])


def test_gaps_are_means_over_groups():
    gap = ns.coverage_gap(SETS, LABELS, GROUPS)
    assert gap.groups.tolist() == [0, 1]
    assert gap.sizes.tolist() == [4, 2]
    assert gap.coverage.tolist() == [1.0, 0.5]
    assert gap.gap == 0.25
    assert (gap.under, gap.over) == (0.125, 0.125)
    assert gap.share == 6 / 7
    # E|X/4 − 3/4| and E|X/2 − 3/4|, counted out.
    four = sum(math.comb(4, k) * 0.75**k * 0.25 ** (4 - k) * abs(k / 4 - 0.75) for k in range(5))
    two = sum(math.comb(2, k) * 0.75**k * 0.25 ** (2 - k) * abs(k / 2 - 0.75) for k in range(3))
    assert gap.chance == pytest.approx((four + two) / 2)
    assert gap.excess == gap.gap - gap.chance
    assert "2 groups" in str(gap)


def test_groups_may_have_names_and_one_entry_a_set():
    named = np.array(["a", "a", "a", "a", "b", "b", ""])
    order = np.array([6, 4, 2, 0, 5, 3, 1])
    sets = make(np.array([1, 1, 1, 1, 1, 0, 0])[order], nodes=order + 2, num_nodes=9)
    for groups in (named, named.astype(object), named.tolist()):
        by_node = ns.coverage_gap(sets, np.zeros(9, int), ["", "", *groups])
        by_set = ns.coverage_gap(sets, LABELS, np.array(groups)[order], per="set")
        for gap in (by_node, by_set):
            assert gap.groups.tolist() == ["a", "b"]
            assert gap.coverage.tolist() == [1.0, 0.5]


def test_without_groups_there_is_no_gap():
    gap = ns.coverage_gap(SETS, LABELS, np.full(7, -1))
    assert gap.share == 0
    assert all(math.isnan(value) for value in (gap.gap, gap.chance, gap.excess, gap.under, gap.over))
    none = make(np.zeros(0), num_nodes=7)
    assert math.isnan(ns.coverage_gap(none, LABELS, GROUPS).share)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
def test_the_closed_form_is_the_mean_absolute_deviation(n, p):
    k = np.arange(n + 1)
    counted = float((stats.binom.pmf(k, n, p) * np.abs(k - n * p)).sum())
    assert binomial_deviation(n, p) == pytest.approx(counted, rel=1e-7, abs=1e-12)


def test_the_closed_form_at_its_ends():
    assert binomial_deviation(0, 0.5) == 0
    assert binomial_deviation(5, 1.0) == 0
    assert binomial_deviation(10**7, 0.9) == pytest.approx(math.sqrt(10**7 * 0.09 * 2 / math.pi), rel=1e-3)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.floats(0.02, 0.98))
def test_the_worst_group_by_chance_is_that_of_all_outcomes_counted_out(sizes, p):
    assert worst_deviation(np.array(sizes), p) == pytest.approx(enumerated_worst_deviation(sizes, p), rel=1e-9)


def test_the_worst_of_one_group_is_its_mean_deviation():
    for n, p in ((1, 0.3), (30, 0.9), (5000, 0.95)):
        assert worst_deviation(np.array([n]), p) == pytest.approx(binomial_deviation(n, p) / n, rel=1e-9)
    assert math.isnan(worst_deviation(np.array([], int), 0.9))
    assert math.isnan(worst_deviation(np.array([0]), 0.9))
    assert worst_deviation(np.array([5]), 1.0) == 0.0


def test_the_worst_group_by_chance_is_the_mean_of_what_simulation_gives():
    """Four thousand draws of forty groups: the mean lies within four of its standard errors."""
    rng, sizes = np.random.default_rng(3), np.repeat([30, 45, 200, 1000], 10)
    worst = np.abs(rng.binomial(sizes, 0.9, size=(4000, 40)) / sizes - 0.9).max(axis=1)
    assert abs(stats.ttest_1samp(worst, worst_deviation(sizes, 0.9)).statistic) < 4


def test_the_worst_group_is_pccv_beside_what_chance_gives():
    gap = ns.coverage_gap(SETS, LABELS, GROUPS)
    assert gap.worst == ns.pccv(SETS, LABELS, [np.arange(4), np.array([4, 5])]) == 0.25
    assert gap.worst_chance == pytest.approx(enumerated_worst_deviation([4, 2], 0.75))
    assert math.isnan(ns.coverage_gap(SETS, LABELS, np.full(7, -1)).worst)


def test_where_coverage_is_even_the_excess_is_zero_on_average_and_each_side_half_of_the_gap():
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.repeat(np.arange(5), [4, 9, 30, 60, 97]))
    gaps = [ns.coverage_gap(make(rng.random(200) < 0.9, alpha=0.1), np.zeros(200, int), groups) for _ in range(2000)]
    for side in ([gap.under for gap in gaps], [gap.over for gap in gaps]):
        assert abs(stats.ttest_1samp(side, gaps[0].chance / 2).statistic) < 4
    assert abs(stats.ttest_1samp([gap.excess for gap in gaps], 0.0).statistic) < 4


def test_groups_that_are_too_short_or_of_another_kind_are_refused():
    with pytest.raises(ns.InvalidInputError, match="`groups` must have one entry per node of the graph, 7; got 6"):
        ns.coverage_gap(SETS, LABELS, GROUPS[:6])
    with pytest.raises(ns.InvalidInputError, match="`groups` must have one entry per set, 7; got 8"):
        ns.coverage_gap(SETS, LABELS, np.zeros(8, int), per="set")
    with pytest.raises(ns.InvalidInputError, match="`groups` must hold integers"):
        ns.coverage_gap(SETS, LABELS, np.zeros(7))
    with pytest.raises(ns.InvalidInputError, match="`groups` must have 1 dimension"):
        ns.coverage_gap(SETS, LABELS, np.full((7, 2), "a"))
    with pytest.raises(ns.InvalidInputError, match="`sets` must be"):
        ns.coverage_gap([[0]], LABELS, GROUPS)
    with pytest.raises(ns.InvalidInputError, match="`per` must be one of"):
        ns.coverage_gap(SETS, LABELS, GROUPS, per="row")


def test_groups_by_quantiles_are_of_about_equal_size_and_keep_ties_together():
    star = ns.Graph.from_networkx(nx.star_graph(9))
    assert ns.groups_by_degree(star, bins=10).tolist() == [1] + [0] * 9
    assert ns.groups_by_degree(star, bins=5).tolist() == [0] * 10  # every fifth of them begins with a leaf
    p = np.linspace(0.5, 1.0, 100)
    confident = np.column_stack([p, 1 - p])
    groups = ns.groups_by_confidence(confident, bins=4)
    assert np.bincount(groups).tolist() == [25] * 4
    assert (np.diff(groups) >= 0).all()
    half = ns.groups_by_confidence(confident, bins=2, nodes=np.arange(50, 100))
    assert np.bincount(half + 1).tolist() == [50, 25, 25]
    assert ns.groups_by_confidence(confident, bins=2, nodes=[]).tolist() == [-1] * 100
    with pytest.raises(ns.InvalidInputError, match="`bins` must be"):
        ns.groups_by_degree(star, bins=0)


def test_groups_by_class_and_by_neighbourhood():
    assert ns.groups_by_class([2, -1, 0]).tolist() == [2, -1, 0]
    graph = ns.Graph.from_networkx(nx.disjoint_union(nx.complete_graph(40), nx.complete_graph(10)))
    groups = ns.groups_by_neighbourhood(graph, np.arange(50), radius=1, min_size=30)
    assert groups.tolist() == [0] * 40 + [-1] * 10
    both = ns.groups_by_neighbourhood(graph, np.arange(5, 50), radius=1, min_size=5)
    assert both.tolist() == [-1] * 5 + [0] * 35 + [1] * 10
