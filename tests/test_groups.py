"""Groups of labels and of nodes: who is judged together."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.errors import InvalidInputError
from napsets.groups import GROUPS, Grouping, by_quantiles, make_groups
from napsets.localisers import Reference

RNG = np.random.default_rng(0)


def reference(scores, graph=None, size=None):
    scores = np.asarray(scores, dtype=float)
    return Reference(np.arange(scores.size), scores, size or scores.size, graph)


def two_cliques(size=6):
    inside = [(a, b) for a in range(size) for b in range(a)]
    edges = np.array(inside + [(a + size, b + size) for a, b in inside]).T
    return ns.Graph.from_edge_index(edges, num_nodes=2 * size)


def test_by_class_every_label_is_a_group_of_its_own():
    groups = ns.ByClass().fit(reference([0.1, 0.2]), np.array([0, 2]), 4)
    assert groups.of == "label"
    assert groups.groups.tolist() == [0, 1, 2, 3]


def test_by_degree_the_loners_are_group_0_and_equal_degrees_stay_together():
    star = ns.Graph.from_edge_index([[0, 0, 0], [1, 2, 3]], num_nodes=5)
    groups = ns.ByDegree(bins=5).fit(reference(np.zeros(5), star), np.zeros(5, dtype=int), 2)
    assert groups.of == "node"
    assert groups.groups.tolist() == [2, 1, 1, 1, 0]


def test_two_cliques_are_two_communities_whatever_the_seed():
    graph = two_cliques()
    for seed in (0, 1, 2**64 - 1):
        groups = ns.ByCommunity(seed=seed).fit(reference(np.zeros(12), graph), np.zeros(12, dtype=int), 2).groups
        assert len(set(groups[:6])) == len(set(groups[6:])) == 1
        assert groups[0] != groups[6]


def test_without_edges_every_node_is_a_community():
    graph = ns.Graph.from_edge_index(np.empty((2, 0), dtype=int), num_nodes=3)
    assert ns.ByCommunity().fit(reference(np.zeros(3), graph), np.zeros(3, dtype=int), 2).groups.tolist() == [0, 1, 2]


@pytest.mark.parametrize("by", [ns.ByDegree(), ns.ByCommunity()])
def test_groups_by_the_graph_ask_for_one(by):
    with pytest.raises(InvalidInputError, match="`graph` must be given to group nodes"):
        by.fit(reference([0.1]), np.array([0]), 2)


def test_groups_of_ones_own_are_numbered_by_name_and_nameless_nodes_are_in_none():
    groups = ns.ByGroup(np.array(["b", "", "a", "b"])).fit(reference(np.zeros(4)), np.zeros(4, dtype=int), 2)
    assert groups.groups.tolist() == [1, -1, 0, 1]
    groups = ns.ByGroup([7, -1, 3, 7]).fit(reference(np.zeros(4)), np.zeros(4, dtype=int), 2)
    assert groups.groups.tolist() == [1, -1, 0, 1]


def test_groups_of_ones_own_must_be_as_many_as_nodes():
    with pytest.raises(InvalidInputError, match="`groups` must have one entry per node, 4; got 3"):
        ns.ByGroup([0, 1, 2]).fit(reference(np.zeros(4)), np.zeros(4, dtype=int), 2)


def test_arrays_of_groups_are_equal_where_their_entries_are():
    assert ns.ByGroup([0, 1]) == ns.ByGroup(np.array([0, 1]))
    assert hash(ns.ByGroup([0, 1])) == hash(ns.ByGroup([0, 1]))
    assert ns.ByGroup([0, 1]) != ns.ByGroup([0, 2])
    assert repr(ns.ByGroup([0, 1, 1])) == "ByGroup(2 groups of 3 nodes)"


def test_clusters_put_classes_with_alike_scores_together_and_leave_rare_ones_out():
    # Classes 0 and 2 have low scores, 1 and 3 high ones; class 4 has too few nodes for a quantile.
    labels = np.repeat(np.arange(5), [200, 200, 200, 200, 9])
    low = np.isin(labels, [0, 2])
    scores = np.where(low, RNG.uniform(0.0, 0.4, labels.size), RNG.uniform(0.5, 1.0, labels.size))
    groups = ns.Clustered(clusters=2).fit(reference(scores), labels, 6).groups
    assert groups[0] == groups[2] != groups[1] == groups[3]
    assert groups[4] == groups[5] == -1


@pytest.mark.parametrize("clusters", [1, 3, 100, None])
def test_clusters_are_numbered_without_gaps_and_the_same_for_the_same_seed(clusters):
    labels = RNG.integers(8, size=900)
    scores = RNG.random(900) ** (1 + labels)
    one, other = (ns.Clustered(clusters, seed=5).fit(reference(scores), labels, 8).groups for _ in range(2))
    assert np.array_equal(one, other)
    assert set(one.tolist()) == set(range(one.max() + 1))
    assert one.max() < (clusters or 8)


def test_clusters_do_not_change_where_scores_are_stretched():
    # Quantiles of ranks, not of scores: any increasing function of the score gives the same clusters.
    labels = RNG.integers(6, size=600)
    scores = RNG.random(600) ** (1 + labels % 3)
    plain = ns.Clustered(3).fit(reference(scores), labels, 6).groups
    assert np.array_equal(ns.Clustered(3).fit(reference(np.exp(9 * scores)), labels, 6).groups, plain)


def test_quantile_groups_are_about_equal_in_size_and_ordered():
    values = RNG.permutation(100)
    groups = by_quantiles(values, 4)
    assert np.bincount(groups).tolist() == [25, 25, 25, 25]
    assert np.array_equal(groups, values // 25)
    assert by_quantiles(np.zeros(3), 4).tolist() == [0, 0, 0]
    assert by_quantiles(np.empty(0), 4).size == 0


def test_a_grouping_knows_whom_labels_and_nodes_belong_to():
    nodes, labels = np.array([3, 1]), np.array([0, 1])
    assert Grouping("label", np.array([5, 7])).of_labelled(nodes, labels).tolist() == [5, 7]
    assert Grouping("node", np.array([0, 2, 4, 6])).of_labelled(nodes, labels).tolist() == [6, 2]
    assert Grouping("node", np.array([-1, -1])).count == 0


def test_groups_go_by_their_names():
    assert {name: type(make_groups(name)) for name in GROUPS if name != "group"} == {
        "class": ns.ByClass, "clusters": ns.Clustered, "degree": ns.ByDegree, "community": ns.ByCommunity,
    }  # fmt: skip
    assert make_groups(None) is None
    assert make_groups(ns.ByClass()) == ns.ByClass()


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("klass", r"`by` must be one of .*did you mean 'class'"),
        ("group", r"`by` must be an array with the group of each node"),
        (ns.ByClass, r"got the class ByClass \(write ByClass\(\)\)"),
        ([0.5, 1.0], r"`groups` must hold integers"),
        ([[0, 1]], r"`groups` must (have 1 dimension|be one-dimensional)"),
    ],
)
def test_what_is_no_grouping_is_refused(by, message):
    with pytest.raises(InvalidInputError, match=message):
        make_groups(by)


@pytest.mark.parametrize(
    "make",
    [lambda: ns.ByDegree(0), lambda: ns.Clustered(0), lambda: ns.Clustered(seed=-1), lambda: ns.ByCommunity(-1.0)],
)
def test_settings_that_cannot_be_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()


def test_missing_names_are_no_group_and_yes_or_no_is_two():
    pandas = pytest.importorskip("pandas")
    assert ns.ByGroup(pandas.Series(["a", None, "b"])).groups.tolist() == ["a", "", "b"]
    assert ns.ByGroup([True, False]).groups.tolist() == [1, 0]
    with pytest.raises(InvalidInputError, match="integers or names, one per node; got 3 among names"):
        ns.ByGroup(np.array(["a", 3], dtype=object))
    with pytest.raises(InvalidInputError, match="numbers from 0, or −1 for none; got -5"):
        ns.ByGroup([-5, 0])
    assert hash(ns.ByGroup(np.arange(3))) == hash(ns.ByGroup(np.arange(3, dtype=np.int32)))
