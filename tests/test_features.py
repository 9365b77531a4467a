"""Nodes with similar features, against a search through all pairs in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets import features as room
from napsets.features import check_features, nearest_nodes, nearest_reference
from napsets.kernels import similar


def search_all_pairs(table, reference, u, count):
    """The cosines of each node's nearest reference nodes, and the nodes, of equal ones those with the smaller u."""
    lengths, results = np.array([math.sqrt(math.fsum(row * row)) for row in table]), []
    for v, row in enumerate(table):
        cosines = []
        for i in sorted((i for i in reference.tolist() if i != v), key=lambda i: u[i]):
            dot = math.fsum(row * table[i])
            if dot > 1e-9:
                cosines.append((-round(dot / (lengths[v] * lengths[i]), 12), i))
        cosines.sort(key=lambda pair: pair[0])
        results.append(cosines[:count])
    return results


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 24), st.integers(1, 4), st.integers(1, 6), st.booleans(), st.booleans())
def test_the_nearest_nodes_are_those_of_a_search_through_all_pairs(seed, nodes, width, count, sparse, compiled):
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 4, size=(nodes, width)) * 2 ** rng.integers(0, 2, size=(nodes, 1))  # with equal directions
    reference = np.sort(rng.permutation(nodes)[: rng.integers(1, nodes + 1)])
    u = ns.node_uniforms(np.arange(nodes), seed)
    features = check_features("features", sp.csr_array(table) if sparse else table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "worth_compiling", lambda size: compiled)
        found = nearest_reference(features, reference, u, count)
    filled = (table != 0).sum(axis=0)
    table = table * (1 + np.log((1 + nodes) / (1 + filled)))
    assert found.shape == (nodes, min(count, reference.size))
    for v, expected in enumerate(search_all_pairs(table, reference, u, count)):
        near = found[v][found[v] >= 0]
        lengths = np.linalg.norm(table[near], axis=1) * np.linalg.norm(table[v])
        assert v not in near
        # Equal cosines may differ in their last bit.
        np.testing.assert_allclose(table[near] @ table[v] / lengths, [-c for c, _ in expected], atol=1e-11)
        if np.unique([c for c, _ in expected]).size == len(expected):
            assert near.tolist()[:-1] == [i for _, i in expected][:-1]


WIDE = np.random.default_rng(0).normal(size=(1500, 250)).astype(np.float32)
U = ns.node_uniforms(np.arange(1500), 3)
REFERENCE = np.flatnonzero(U < 0.5)


@pytest.mark.parametrize("width", [1, 40, 250])
def test_paths_threads_parts_and_the_order_of_rows_change_no_bit(width):
    close = (1.0 + 1e-3 * WIDE[:, :width]).astype(np.float32)  # cosines that single precision confuses
    features = check_features("features", close)
    expected = nearest_reference(features, REFERENCE, U, 25, threads=1)
    assert np.array_equal(expected, nearest_reference(features, REFERENCE, U, 25, threads=3))
    assert not (expected == np.arange(1500)[:, None]).any()
    few = np.array([1400, 7, 1, 2])
    assert np.array_equal(nearest_reference(features, REFERENCE, U, 25, nodes=few), expected[few])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "worth_compiling", lambda size: False)
        assert np.array_equal(nearest_reference(features, REFERENCE, U, 25, nodes=few), expected[few])
    order = np.random.default_rng(1).permutation(1500)  # row i holds what was node order[i]
    places = np.argsort(order)
    moved = nearest_reference(check_features("features", close[order]), np.sort(places[REFERENCE]), U[order], 25)
    assert np.array_equal(order[moved], expected[order])


def test_constant_features_and_one_column_give_the_first_in_the_order_of_the_hash():
    first = REFERENCE[np.argsort(U[REFERENCE])]
    for table in (np.ones((1500, 3)), np.arange(1, 1501)[:, None]):
        found = nearest_reference(check_features("features", table), REFERENCE, U, 25)
        assert all(np.array_equal(found[v], first[first != v][:25]) for v in range(0, 1500, 50))
    assert (nearest_reference(check_features("features", np.zeros((1500, 3))), REFERENCE, U, 25) == -1).all()


def test_only_a_part_of_many_reference_nodes_is_searched(monkeypatch):
    monkeypatch.setattr(room, "MOST_SEARCHED", 40)
    found = nearest_reference(check_features("features", WIDE), REFERENCE, U, 25)
    assert set(np.unique(found)) <= {-1, *REFERENCE[np.argsort(U[REFERENCE])][:40].tolist()}


def test_a_hundred_thousand_sparse_columns_are_reduced_and_keep_the_nearest():
    rng = np.random.default_rng(0)
    topics = rng.integers(20, size=600)
    words = [rng.choice(60, size=20, replace=False) + 5000 * topic for topic in topics]
    rows = np.repeat(np.arange(600), 20)
    table = sp.csr_array((np.ones(rows.size), (rows, np.concatenate(words))), shape=(600, 100_000))
    u = ns.node_uniforms(np.arange(600))
    found = nearest_reference(check_features("features", table), np.arange(300), u, 5)
    same = topics[np.maximum(found, 0)] == topics[:, None]
    assert same[found >= 0].mean() > 0.95


def test_wide_features_are_compared_along_their_largest_directions():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(800, 20)) @ rng.normal(size=(20, 300))  # of rank 20: nothing is lost
    found = nearest_reference(check_features("features", table), np.arange(400), U[:800], 5)
    cosines = table @ table[:400].T / np.outer(np.linalg.norm(table, axis=1), np.linalg.norm(table[:400], axis=1))
    cosines[np.arange(400), np.arange(400)] = -1
    np.testing.assert_allclose(
        np.take_along_axis(cosines, found.astype(np.int64), 1), np.sort(cosines, axis=1)[:, :-6:-1], atol=1e-5
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0], r"`features` must be a table of numbers, one row per node; got shape \(2,\)"),
        ([["a"]], "`features` must be a table of numbers"),
        ([[0.0], [np.nan]], "the row of node 1 has a NaN or infinite entry"),
        (sp.csr_array([[0.0, 1.0], [0.0, 0.0], [2.0, np.inf]]), "the row of node 2 has a NaN or infinite entry"),
        ([[0.0], [1e39]], "`features` must be finite numbers of single precision; the row of node 1"),
    ],
)
def test_features_that_cannot_be_are_rejected_by_name(value, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        check_features("features", value)


def test_features_are_a_copy_in_single_precision_and_rows_must_match():
    mine = WIDE.copy()
    kept = check_features("features", mine)
    mine[:] = 0
    assert np.array_equal(kept, WIDE)
    assert not kept.flags.writeable
    with pytest.raises(ns.InvalidInputError, match="`features` must have one row per node, 3; got 1500"):
        check_features("features", WIDE, 3)
    with pytest.raises(ns.InvalidInputError, match="the row of node b"):
        check_features("features", [[1.0], [np.inf]], 2, ["a", "b"])


def test_a_graph_of_features_joins_each_node_to_the_nearest():
    table = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0], [0.0, 0.0]])
    assert ns.Graph.from_features(table, k=1) == ns.Graph.from_edge_index([[0, 2], [1, 3]], 5)
    seen = []
    graph = ns.Graph.from_features(sp.csr_array(WIDE), k=4, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1500, 1500)
    nearest = nearest_nodes(check_features("features", WIDE), 4)
    assert all(set(nearest[v]) <= set(graph.neighbours(v)) for v in range(1500))
    assert graph.degrees.min() >= 4
    with pytest.raises(ns.InvalidInputError, match="`k` must be at least 1"):
        ns.Graph.from_features(table, k=0)
