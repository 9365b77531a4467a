"""Metrics on sets small enough to count by hand."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

import napsets as ns

# Node:      3        5        0        7        8        2
MEMBER = [[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1], [0, 1, 0], [1, 0, 0]]
NODES = np.array([3, 5, 0, 7, 8, 2])
LABELS = np.array([2, -1, 1, 0, -1, 1, -1, 1, 1, -1])  # covered: 3, 0, 7, 8; not: 5, 2


def make(member=MEMBER, nodes=NODES, alpha=0.25):
    n = len(nodes)
    member = np.array(member, bool).reshape(n, 3)
    return ns.PredictionSets(np.asarray(nodes), member, np.ones(n), np.ones(n, int), np.ones(n), alpha, num_nodes=10)


NONE = make(np.zeros((0, 3)), np.array([], int))


def test_shares_and_sizes():
    sets = make()
    assert ns.coverage(sets, LABELS) == 4 / 6
    assert ns.mean_size(sets) == 8 / 6
    assert ns.size_given_coverage(sets, LABELS) == 7 / 4
    assert ns.singleton_rate(sets) == 3 / 6
    assert ns.empty_rate(sets) == 1 / 6
    assert ns.full_rate(sets) == 1 / 6


def test_every_metric_takes_one_label_a_set_where_that_is_said():
    own, star = LABELS[NODES], ns.Graph.from_networkx(nx.star_graph(9))
    for metric, more in [
        (ns.coverage, ()),
        (ns.size_given_coverage, ()),
        (ns.sscv, ([(0, 1), (2, 3)],)),
        (ns.pccv, ([[3, 0, 7, 8], [5, 2]],)),
    ]:
        assert metric(make(), own, *more, per="set") == metric(make(), LABELS, *more)
        with pytest.raises(ns.InvalidInputError, match="one entry per node of the graph, 10"):
            metric(make(), own, *more)
    for metric, more in [(ns.coverage_by_class, ()), (ns.coverage_by_degree, (star,))]:
        assert (
            metric(make(), own, *more, per="set").coverage.tolist() == metric(make(), LABELS, *more).coverage.tolist()
        )
        with pytest.raises(ns.InvalidInputError, match="one entry per node of the graph, 10"):
            metric(make(), own, *more)


def test_without_sets_or_without_covered_ones_there_is_no_average():
    for value in (
        ns.coverage(NONE, LABELS),
        ns.mean_size(NONE),
        ns.empty_rate(NONE),
        ns.size_given_coverage(NONE, LABELS),
    ):
        assert math.isnan(value)
    assert math.isnan(ns.size_given_coverage(make([[0, 0, 0]], [3]), LABELS))


def test_sscv_is_the_worst_stratum_of_sizes():
    # sizes 0..1: nodes 3, 5, 8, 2, covered 2 of 4; sizes 2..3: nodes 0 and 7, both covered.
    assert ns.sscv(make(), LABELS, strata=[(0, 1), (2, 3)]) == pytest.approx(0.25)
    assert ns.sscv(make(alpha=0.5), LABELS, strata=[(0, 1), (2, 3)]) == pytest.approx(0.5)  # too much counts too
    assert ns.sscv(make(), LABELS, strata=[(2, 3), (0, 1), (4, 9)]) == pytest.approx(0.25)  # nobody in the last


def test_sscv_says_which_sets_no_stratum_holds():
    with pytest.warns(ns.NapsetsWarning, match="`strata` leaves out the sizes of 4 sets") as caught:
        assert ns.sscv(make(), LABELS, strata=[(2, 3)]) == pytest.approx(0.25)
    assert caught[0].filename == __file__
    with pytest.warns(ns.NapsetsWarning, match="6 sets"):
        assert math.isnan(ns.sscv(make(), LABELS, strata=[]))


def test_pccv_is_the_worst_part_of_the_nodes():
    assert ns.pccv(make(), LABELS, [[3, 0, 7, 8], [5, 2]]) == 0.75
    assert ns.pccv(make(), LABELS, [[3, 5], [0, 7]]) == 0.25
    assert ns.pccv(make(), LABELS, [[], [8]]) == 0.25
    assert math.isnan(ns.pccv(make(), LABELS, []))


def test_a_part_may_be_a_mask():
    mask = np.zeros(10, bool)
    mask[[5, 2]] = True
    assert ns.pccv(make(), LABELS, [mask]) == 0.75
    mask[4] = True
    with pytest.raises(ns.InvalidInputError, match="`partition` must hold nodes that have a set; node 4 has none"):
        ns.pccv(make(), LABELS, [mask])


def test_coverage_by_class():
    table = ns.coverage_by_class(make(), LABELS)
    assert table.group == [0, 1, 2]
    assert table.count.tolist() == [1, 4, 1]
    assert table.coverage.tolist() == [1.0, 0.5, 1.0]
    assert table.mean_size.tolist() == [1.0, 1.0, 3.0]
    lone = ns.coverage_by_class(make([[0, 1, 0]], [8]), LABELS)
    assert np.isnan(lone.coverage[[0, 2]]).all()
    assert lone.count.tolist() == [0, 1, 0]


@pytest.fixture
def star():
    """Node 0 has degree 5, nodes 2, 3, 5, 7 and 8 have degree 1; and 2-3 makes those two have 2."""
    return ns.Graph.from_edge_index([[0, 0, 0, 0, 0, 2], [2, 3, 5, 7, 8, 3]], 10)


def test_coverage_by_degree_with_bounds(star):
    table = ns.coverage_by_degree(make(), LABELS, star, bins=[1, 2, 4])
    assert table.group == [(1, 1), (2, 3), (4, 5)]
    assert table.count.tolist() == [3, 2, 1]
    assert table.coverage.tolist() == [2 / 3, 0.5, 1.0]
    assert ns.coverage_by_degree(make(), LABELS, star, bins=[2]).count.tolist() == [3]  # lower degrees are left out


@pytest.mark.parametrize("bins", [1, 3, np.int64(3), 50])
def test_coverage_by_degree_with_a_number_of_groups_holds_every_node(star, bins):
    table = ns.coverage_by_degree(make(), LABELS, star, bins=bins)
    assert table.count.sum() == 6
    assert len(table.group) <= bins
    assert (table.count > 0).all()
    assert table.group[0][0] == 1
    assert table.group[-1][1] == 5


def test_a_partition_is_disjoint_balls_the_largest_first():
    theirs = nx.random_geometric_graph(500, 0.06, seed=2)
    graph = ns.Graph.from_networkx(theirs)
    nodes = np.arange(0, 500, 2)
    parts = ns.neighbourhood_partition(graph, nodes, radius=2, min_size=1, seed=4)
    assert sorted(np.concatenate(parts).tolist()) == nodes.tolist()
    assert [p.size for p in parts] == sorted((p.size for p in parts), reverse=True)
    induced = theirs.subgraph(nodes.tolist())
    for part in parts:
        assert (np.diff(part) > 0).all()
        # Some root reaches every node of the ball within two hops of the induced subgraph.
        reach = [set(nx.ego_graph(induced, root, 2)) for root in part.tolist()]
        assert any(set(part.tolist()) <= ball for ball in reach)


def test_small_balls_are_left_out_and_seeds_decide():
    graph = ns.Graph.from_networkx(nx.random_geometric_graph(500, 0.06, seed=2))
    every = np.arange(500)
    balls = ns.neighbourhood_partition(graph, every, min_size=12, seed=1)
    assert balls
    assert min(ball.size for ball in balls) >= 12
    again = ns.neighbourhood_partition(graph, np.ones(500, bool), min_size=12, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(balls, again, strict=True))
    shuffled = ns.neighbourhood_partition(graph, every[::-1], min_size=12, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(balls, shuffled, strict=True))
    other = ns.neighbourhood_partition(graph, every, min_size=12, seed=2)
    assert [b.tolist() for b in balls] != [b.tolist() for b in other]
    assert ns.neighbourhood_partition(graph, []) == []
    assert all(ball.size == 1 for ball in ns.neighbourhood_partition(graph, every, radius=0, min_size=0))


def test_roots_are_drawn_uniformly_from_what_is_left():
    # On a path of three, radius 1: the middle comes first in a third of the draws, and then there is one ball.
    from scipy.stats import binomtest

    path = ns.Graph.from_edge_index([[0, 1], [1, 2]], 3)
    draws = 3000
    whole = sum(len(ns.neighbourhood_partition(path, [0, 1, 2], 1, 1, seed)) == 1 for seed in range(draws))
    assert binomtest(whole, draws, 1 / 3).pvalue > 1e-4
