"""Counts by hop of what lies below a position: every strategy against searches over sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels.search import count_below
from oracles import EVERY_STRATEGY, adjacency_sets, hops_from, scipy_distances
from searches import make_layout
from strategies import cases


@settings(max_examples=60)
@given(case=cases(), data=st.data())
def test_every_strategy_counts_what_shortest_paths_count(case, data):
    layout = make_layout(case.graph, case.scores, case.calibration)
    hops = len(case.weights)
    nodes = np.array(data.draw(st.lists(st.integers(0, case.num_nodes - 1), min_size=1, max_size=8)))
    drawn = data.draw(st.lists(st.integers(0, layout.size), min_size=2 * nodes.size, max_size=2 * nodes.size))
    positions = np.array(drawn).reshape(nodes.size, 2)
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)[:, layout.nodes[: layout.size]]
    expected = np.empty((nodes.size, hops, 2), dtype=int)
    for i, node in enumerate(nodes.tolist()):
        for p, position in enumerate(positions[i]):
            expected[i, :, p] = [(distance[node, :position] == k).sum() for k in range(1, hops + 1)]
    for strategy in EVERY_STRATEGY:
        counts = count_below(layout, nodes, positions, hops, threads=1, strategy=strategy)
        assert np.array_equal(counts, expected), strategy


@pytest.mark.parametrize("edges", [1, 2, 30])
@pytest.mark.parametrize("known", [1024, 1777])
def test_counts_in_many_words(edges, known):
    rng = np.random.default_rng(edges)
    size = 2500
    ends = rng.integers(size, size=(2, edges * size))
    layout = make_layout(ns.Graph.from_edge_index(ends, size), rng.random(known), rng.permutation(size)[:known])
    neighbours = adjacency_sets(ends.T.tolist(), size)
    nodes = rng.integers(size, size=10)
    shared = np.array([0, known, 1, 63, 64, 65, 511, 512, 513, 1000, 1023, 1024])
    positions = np.hstack([np.tile(shared, (10, 1)), rng.integers(0, known + 1, size=(10, 3))])
    expected = np.empty((10, 3, positions.shape[-1]), dtype=int)
    for i, node in enumerate(nodes.tolist()):
        distance = hops_from(neighbours, node)
        hop = np.array([distance.get(v, 0) for v in layout.nodes[:known].tolist()])
        expected[i] = [[(hop[:p] == k).sum() for p in positions[i]] for k in (1, 2, 3)]
    for strategy in EVERY_STRATEGY:
        assert np.array_equal(count_below(layout, nodes, positions, 3, strategy=strategy), expected), strategy


def test_no_hops_and_no_nodes_have_no_counts():
    layout = make_layout(ns.Graph.from_edge_index([[0], [1]], 2), [0.5], [0])
    assert count_below(layout, np.array([0, 1]), np.ones((2, 1), np.int64), 0).shape == (2, 0, 1)
    assert count_below(layout, np.array([], np.int64), np.empty((0, 1), np.int64), 2).shape == (0, 2, 1)
