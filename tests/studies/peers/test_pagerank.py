"""PageRank weights against the linear system that defines them."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.localisers import Cut, Reference
from oracles import adjacency_sets, pagerank, weighed_threshold
from studies.peers.pagerank import PageRank

CUTS = [Cut(0.9), Cut(0.5), Cut(0.31, "at least"), Cut(0.31, "above")]


@pytest.mark.parametrize("pool", [0.0, 5.0])
@pytest.mark.parametrize("restart", [0.05, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_where_walks_end_without_those_that_end_at_the_start(directed, restart, pool):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 25))
        edges = [(int(a), int(b)) for a, b in rng.integers(size, size=(30, 2)) if a != b]
        graph = ns.Graph.from_edge_index(np.array(edges, dtype=np.int64).reshape(-1, 2).T, size, directed=directed)
        nodes = rng.permutation(size)[: int(rng.integers(1, size + 1))]
        scores = rng.choice([0.1, 0.2, 0.5, 0.7, 0.9], nodes.size)
        local = PageRank(restart, 20.0, pool, tolerance=1e-12).fit(Reference(nodes, scores, size, graph))
        neighbours, everyone = adjacency_sets(edges, size, directed), np.arange(size)
        thresholds, ranks = local.thresholds(everyone, CUTS), local.ranks(everyone, np.full(size, 0.5))
        for v in everyone:
            mass = pagerank(neighbours, v, restart)[nodes]
            mass[(nodes == v) | (mass < 1e-13)] = 0.0
            near = 20.0 * mass / mass.sum() if mass.sum() else mass
            weights = np.where(nodes == v, 0.0, near + pool / nodes.size)
            for c, cut in enumerate(CUTS):
                # Masses that reach a level but for rounding may fall on either side of it.
                levels = (cut.level * (1 + shift) for shift in (-1e-8, 0.0, 1e-8))
                assert thresholds.values[c, v] in {
                    weighed_threshold(scores, weights, 1.0, level, cut.rule) for level in levels
                }
            assert ranks[v] == pytest.approx(weights[scores < 0.5].sum() / (1 + weights.sum()), abs=1e-8)
            assert thresholds.support[v] == (weights > 0).sum()


@pytest.mark.parametrize("edges", [[[0, 1, 2], [1, 2, 0]], [[0, 0, 0], [1, 2, 3]]])
@pytest.mark.parametrize("tolerance", [0.2, 0.01, 1e-4])
def test_push_is_short_of_pagerank_by_no_more_than_it_says(edges, tolerance):
    graph = ns.Graph.from_edge_index(edges, 5)
    neighbours = adjacency_sets(list(zip(*edges, strict=True)), 5)
    rows = [sorted(row) for row in neighbours]
    for v in range(5):
        masses = PageRank(0.15, tolerance=tolerance).masses(rows, v)
        short = pagerank(neighbours, v, 0.15) - np.array([masses.get(u, 0.0) for u in range(5)])
        assert (short >= -1e-12).all()
        assert (short <= tolerance * graph.degrees + 1e-12).all()
