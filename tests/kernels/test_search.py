"""Searches on graphs of thousands of nodes: many words, many blocks, and every strategy."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.quantile import hop_quantile
from oracles import EVERY_STRATEGY, STRATEGIES, adjacency_sets, hops_from, same_bits
from searches import make_layout, search_thresholds

KINDS = ["sparse", "dense", "hubs", "rings", "directed"]


def edges_of(kind, size, rng):
    if kind in ("sparse", "directed"):
        return rng.integers(size, size=(2, 2 * size))
    if kind == "dense":
        return rng.integers(size, size=(2, 40 * size))
    if kind == "hubs":
        return np.stack([rng.integers(3, size=3 * size), rng.integers(size, size=3 * size)])
    ring = np.arange(size)
    return np.stack([ring, np.where(ring % 50 == 49, ring - 49, (ring + 1) % size)])


def large_world(kind, rng):
    """A graph too large for one word or one block, its neighbours as sets, who calibrates, and with which scores."""
    size = 3001
    edges = edges_of(kind, size, rng)
    directed = kind == "directed"
    calibration = rng.permutation(size)[:1777]
    scores = np.round(rng.random(calibration.size), 3)
    graph = ns.Graph.from_edge_index(edges, size, directed=directed)
    return graph, adjacency_sets(edges.T.tolist(), size, directed), calibration, scores


@pytest.fixture(scope="module", params=KINDS)
def world(request):
    return large_world(request.param, np.random.default_rng(KINDS.index(request.param)))


def slow_thresholds(neighbours, calibration, scores, node, weights, alpha):
    hop = hops_from(neighbours, node)
    hops = np.array([hop.get(v, 0) if v != node else 0 for v in calibration.tolist()])
    near = (hops >= 1) & (hops <= len(weights))
    return hop_quantile(scores[near], hops[near], np.asarray(weights), alpha), np.bincount(
        hops[near], minlength=len(weights) + 1
    )[1:]


@pytest.mark.parametrize("hops", [1, 2, 3, 6])
def test_thresholds_and_counts_equal_a_search_over_sets(world, hops):
    graph, neighbours, calibration, scores = world
    nodes = np.random.default_rng(hops).integers(graph.num_nodes, size=25)
    weights = 1.0 / np.arange(1, hops + 1)
    index = make_layout(graph, scores, calibration)
    expected = [
        [slow_thresholds(neighbours, calibration, scores, node, weights, alpha) for node in nodes.tolist()]
        for alpha in (0.1, 0.5)
    ]
    for strategy in STRATEGIES:
        thresholds = search_thresholds(index, nodes, weights, [0.1, 0.5], strategy=strategy)
        assert same_bits(thresholds.values[0], [[threshold for threshold, _ in row] for row in expected]), strategy
        assert thresholds.hop_counts.tolist() == [counts.tolist() for _, counts in expected[0]], strategy


def test_few_sources_are_searched_by_id_and_many_by_number_to_the_same_bits(world, monkeypatch):
    graph, _, calibration, scores = world
    nodes = np.random.default_rng(1).permutation(graph.num_nodes)[:40]
    for hops in (2, 4):  # one hop reads nothing but the sources' own rows, by id
        by_id, by_number = (make_layout(graph, scores, calibration) for _ in range(2))
        monkeypatch.setattr(by_id, "edges_read", lambda hops: 0.0)
        monkeypatch.setattr(by_number, "edges_read", lambda hops: 1e9)
        one, other = (
            search_thresholds(layout, nodes, np.ones(hops), [0.1, 0.5], strategy="dense")
            for layout in (by_id, by_number)
        )
        assert by_id.renumbered is None
        assert by_number.renumbered is not None
        assert same_bits(one.values, other.values)
        assert np.array_equal(one.hop_counts, other.hop_counts)


@pytest.mark.parametrize("directed", [False, True])
def test_a_search_along_a_long_path_gives_the_same_bits(directed):
    rng = np.random.default_rng(5)
    nodes, hops = 260, 64
    chain = np.stack([np.arange(nodes - 11), np.arange(1, nodes - 10)])  # the last nodes are isolated
    edges = np.hstack([chain, rng.integers(0, nodes - 10, (2, 4))])
    graph = ns.Graph.from_edge_index(edges, nodes, directed=directed)
    calibration = np.sort(rng.permutation(nodes)[:150])
    index = make_layout(graph, rng.integers(0, 30, 150) / 30, calibration)  # with ties
    weights = np.stack([np.ones(hops), 1.0 / np.arange(1, hops + 1), rng.random(hops) < 0.5])
    few, *others = (
        search_thresholds(index, np.arange(nodes), weights, [0.1, 0.5], threads=2, strategy=strategy)
        for strategy in EVERY_STRATEGY
    )
    for other in others:
        assert same_bits(other.values, few.values)
        assert np.array_equal(other.hop_counts, few.hop_counts)
