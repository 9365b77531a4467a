"""Counts by hop of what lies below a position: every strategy against searches over sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels.layout import Layout
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
    shape = data.draw(st.sampled_from([(3,), (nodes.size, 2)]))
    positions = np.array(data.draw(st.lists(st.integers(0, layout.size), min_size=3 * nodes.size + 3)))
    positions = positions[: np.prod(shape)].reshape(shape)
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)[:, layout.nodes[: layout.size]]
    expected = np.empty((nodes.size, hops, shape[-1]), dtype=int)
    for i, node in enumerate(nodes.tolist()):
        for p, position in enumerate(positions[i] if positions.ndim == 2 else positions):
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
    own = rng.integers(0, known + 1, size=(10, 3))
    for positions in (shared, own):
        expected = np.empty((10, 3, positions.shape[-1]), dtype=int)
        for i, node in enumerate(nodes.tolist()):
            distance = hops_from(neighbours, node)
            hop = np.array([distance.get(v, 0) for v in layout.nodes[:known].tolist()])
            places = np.broadcast_to(positions, (10, positions.shape[-1]))[i]
            expected[i] = [[(hop[:p] == k).sum() for p in places] for k in (1, 2, 3)]
        for strategy in EVERY_STRATEGY:
            assert np.array_equal(count_below(layout, nodes, positions, 3, strategy=strategy), expected), strategy


def test_labels_around_a_node_are_counted_by_class():
    rng = np.random.default_rng(0)
    size, classes = 700, 5
    ends = rng.integers(size, size=(2, 2000))
    graph, labels, known = ns.Graph.from_edge_index(ends, size), rng.integers(classes, size=size), np.arange(0, size, 2)
    layout = Layout(graph, known, labels[known])
    stops = np.searchsorted(layout.sorted_scores, np.arange(classes), side="right")
    nodes = np.arange(size)
    counts = np.diff(count_below(layout, nodes, stops, 2), axis=2, prepend=0)
    neighbours = adjacency_sets(ends.T.tolist(), size)
    for node in range(0, size, 17):
        distance = hops_from(neighbours, node)
        for k in (1, 2):
            around = [labels[v] for v in known.tolist() if distance.get(v) == k]
            assert counts[node, k - 1].tolist() == np.bincount(around, minlength=classes).tolist()


def test_no_hops_and_no_nodes_have_no_counts():
    layout = make_layout(ns.Graph.from_edge_index([[0], [1]], 2), [0.5], [0])
    assert count_below(layout, np.array([0, 1]), np.array([1]), 0).shape == (2, 0, 1)
    assert count_below(layout, np.array([], np.int64), np.array([1]), 2).shape == (0, 2, 1)
