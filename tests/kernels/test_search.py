"""Searches on graphs of thousands of nodes: many words, many blocks, every strategy and splits."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels.shallow import count_touched
from napsets.quantile import hop_quantile
from oracles import STRATEGIES, adjacency_sets, hops_from, same_bits

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


def slow_thresholds(neighbours, calibration, scores, node, weights, alpha, used=None):
    hop = hops_from(neighbours, node)
    hops = np.array([hop.get(v, 0) if v != node else 0 for v in calibration.tolist()])
    near = (hops >= 1) & (hops <= len(weights))
    if used is not None:
        near &= used
    return hop_quantile(scores[near], hops[near], np.asarray(weights), alpha), np.bincount(
        hops[near], minlength=len(weights) + 1
    )[1:]


@pytest.mark.parametrize("hops", [1, 2, 3, 6])
def test_thresholds_and_counts_equal_a_search_over_sets(world, hops):
    graph, neighbours, calibration, scores = world
    nodes = np.random.default_rng(hops).integers(graph.num_nodes, size=25)
    weights = 1.0 / np.arange(1, hops + 1)
    index = ns.CalibrationIndex(graph, scores, calibration)
    expected = [
        [slow_thresholds(neighbours, calibration, scores, node, weights, alpha) for node in nodes.tolist()]
        for alpha in (0.1, 0.5)
    ]
    for strategy in STRATEGIES:
        thresholds = ns.neighbourhood_thresholds(index, nodes, weights, [0.1, 0.5], strategy=strategy)
        assert same_bits(thresholds.values[0], [[threshold for threshold, _ in row] for row in expected]), strategy
        assert thresholds.hop_counts.tolist() == [counts.tolist() for _, counts in expected[0]], strategy


def test_splits_equal_a_search_over_sets_that_ignores_the_others(world):
    graph, neighbours, calibration, scores = world
    rng = np.random.default_rng(5)
    splits = rng.random((4, calibration.size)) < [[0.9], [0.5], [0.05], [0.0]]
    nodes = [rng.integers(graph.num_nodes, size=6) for _ in splits]
    index = ns.CalibrationIndex(graph, scores, calibration)
    expected = [
        [slow_thresholds(neighbours, calibration, scores, v, [1.0, 0.25], 0.2, used) for v in part.tolist()]
        for used, part in zip(splits, nodes, strict=True)
    ]
    for strategy in STRATEGIES:
        thresholds = ns.split_thresholds(index, splits, nodes, [1.0, 0.25], 0.2, strategy=strategy)
        for result, part in zip(thresholds, expected, strict=True):
            assert same_bits(result.values[0, 0], [threshold for threshold, _ in part]), strategy
            assert result.hop_counts.tolist() == [counts.tolist() for _, counts in part], strategy


@pytest.mark.parametrize("hops", [2, 5])
def test_all_strategies_agree_on_any_number_of_threads(world, hops):
    graph, _, calibration, scores = world
    index = ns.CalibrationIndex(graph, scores, calibration)
    every = np.arange(0, graph.num_nodes, 5)
    weights = np.stack([np.ones(hops), 0.5 ** np.arange(1, hops + 1)])
    results = [
        ns.neighbourhood_thresholds(index, every, weights, [0.1, 0.3], strategy=strategy, threads=threads)
        for strategy in (*STRATEGIES, None)
        for threads in (1, 3)
    ]
    for other in results[1:]:
        assert same_bits(other.values, results[0].values)
        assert np.array_equal(other.hop_counts, results[0].hop_counts)


def test_more_hops_than_the_graph_is_deep_change_only_the_columns_of_zeros(world):
    graph, _, calibration, scores = world
    index = ns.CalibrationIndex(graph, scores, calibration)
    nodes = np.arange(0, graph.num_nodes, 97)
    for strategy in STRATEGIES:
        deep = ns.neighbourhood_thresholds(index, nodes, np.ones(70), 0.1, strategy=strategy)
        deeper = ns.neighbourhood_thresholds(index, nodes, np.ones(90), 0.1, strategy=strategy)
        reached = deeper.hop_counts[:, 70:].sum()
        assert reached == 0
        assert same_bits(deep.values, deeper.values)


def test_edges_that_a_search_reads_are_counted(world):
    graph, neighbours, _, _ = world
    sources = np.arange(0, graph.num_nodes, 301)
    stamps, queue = np.zeros(graph.num_nodes, np.int64), np.empty(graph.num_nodes + 1, graph.indices.dtype)
    expected = []
    for i, source in enumerate(sources.tolist()):
        hop = hops_from(neighbours, source)
        expected.append(sum(len(neighbours[v]) for v, k in hop.items() if k <= 1))
        every = [graph.indptr, graph.indices, 2, graph.num_edges, stamps, queue, i, (graph.num_nodes, 0), 1.0]
        assert count_touched(sources[i : i + 1], *every) == (expected[-1], expected[-1])
    together = [graph.indptr, graph.indices, 2, sum(expected), stamps, queue, sources.size, (graph.num_nodes, 0), 1.0]
    assert count_touched(sources, *together) == (sum(expected), sum(expected))


def test_the_row_of_a_hub_counts_as_the_work_of_a_vector(world):
    graph, neighbours, _, _ = world
    stamps, queue = np.zeros(graph.num_nodes, np.int64), np.empty(graph.num_nodes + 1, graph.indices.dtype)
    source, least = int(np.argmax(graph.degrees)), int(np.sort(graph.degrees)[-20])
    near = [len(neighbours[v]) for v, k in hops_from(neighbours, source).items() if k <= 1]
    work = sum(1 if degree >= least else degree for degree in near)
    assert work < sum(near)
    counts = count_touched(np.array([source]), graph.indptr, graph.indices, 2, 2**40, stamps, queue, 0, (least, 1), 1.0)
    assert counts == (sum(near), work)


def test_counting_edges_stops_soon_after_the_limit(world):
    graph, _, _, _ = world
    stamps, queue = np.zeros(graph.num_nodes, np.int64), np.empty(graph.num_nodes + 1, graph.indices.dtype)
    nodes = np.arange(graph.num_nodes)
    counts = count_touched(nodes, graph.indptr, graph.indices, 3, 100, stamps, queue, 0, (graph.num_nodes, 0), 1.0)[1]
    assert 100 < counts <= 100 + graph.degrees.max()


@pytest.mark.parametrize("directed", [False, True])
def test_a_very_far_search_gives_the_bits_of_the_others(directed):
    rng = np.random.default_rng(5)
    nodes, hops = 260, 90
    chain = np.stack([np.arange(nodes - 11), np.arange(1, nodes - 10)])  # the last nodes are isolated
    edges = np.hstack([chain, rng.integers(0, nodes - 10, (2, 4))])
    graph = ns.Graph.from_edge_index(edges, nodes, directed=directed)
    calibration = np.sort(rng.permutation(nodes)[:150])
    index = ns.CalibrationIndex(graph, rng.integers(0, 30, 150) / 30, calibration)  # with ties
    weights = np.stack([np.ones(hops), 1.0 / np.arange(1, hops + 1), rng.random(hops) < 0.5])
    splits = rng.random((3, 150)) < 0.7
    parts = [np.arange(s, nodes, 2) for s in (0, 1, 0)]
    for dense, other in zip(
        ns.split_thresholds(index, splits, parts, weights, [0.1, 0.5], strategy="dense"),
        ns.split_thresholds(index, splits, parts, weights, [0.1, 0.5], threads=2),
        strict=True,
    ):
        assert same_bits(other.values, dense.values)
        assert np.array_equal(other.hop_counts, dense.hop_counts)
