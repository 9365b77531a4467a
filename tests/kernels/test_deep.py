"""The bit-parallel search: each of its steps against sets and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import csr, deep, jobs
from napsets.kernels.layout import pack
from oracles import adjacency_sets, hops_from, same_bits
from searches import make_layout, search_thresholds

SOURCES = 64 * deep.WORDS


def bits(rows):
    """Rows of words as a boolean matrix, one column a source."""
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(bool)


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def world(request):
    rng = np.random.default_rng(4)
    size = 300
    edges = rng.integers(size, size=(2, 500))
    return ns.Graph.from_edge_index(edges, size, directed=request.param), adjacency_sets(
        edges.T.tolist(), size, request.param
    )


def reached(neighbours, sources, hops):
    expected = np.zeros((len(neighbours), SOURCES), bool)
    for j, source in enumerate(sources.tolist()):
        for v, k in hops_from(neighbours, source).items():
            expected[v, j] = k <= hops
    return expected


def test_the_start_holds_each_source_and_its_neighbours(world):
    graph, neighbours = world
    sources = np.random.default_rng(0).permutation(graph.num_nodes)[:200]
    reach, ring = (np.full((graph.num_nodes, deep.WORDS), 99, np.uint64) for _ in range(2))
    deep.start(sources, graph.indptr, graph.indices, reach, ring)
    assert np.array_equal(bits(reach), reached(neighbours, sources, 0))
    assert np.array_equal(bits(ring), reached(neighbours, sources, 1))


def test_pushing_and_pulling_walk_one_hop(world):
    graph, neighbours = world
    sources = np.random.default_rng(1).permutation(graph.num_nodes)[:130]
    before, after = (np.empty((graph.num_nodes, deep.WORDS), np.uint64) for _ in range(2))
    deep.start(sources, graph.indptr, graph.indices, before, after)
    pushed, pulled = after.copy(), np.full_like(after, 99)
    everyone = pack(np.arange(SOURCES) < sources.size)
    wanted = np.random.default_rng(2).random(graph.num_nodes) < 0.8
    for first, last in ((0, 100), (100, 101), (101, 300)):
        deep.push(first, last, graph.indptr, graph.indices, after, pushed)
        deep.pull(first, last, graph.reverse.indptr, graph.reverse.indices, everyone, wanted, after, pulled)
    assert np.array_equal(bits(pushed), reached(neighbours, sources, 2))
    assert np.array_equal(pulled[wanted], pushed[wanted])
    assert (pulled[~wanted] == 99).all()
    filled = bits(after).any(axis=1)
    assert deep.active_edges(0, 300, graph.indptr, after) == graph.degrees[filled].sum()


@pytest.mark.parametrize("count", [1, 64, 700])
def test_a_transpose_gives_each_source_the_calibrators_that_appeared(count):
    rng = np.random.default_rng(count)
    nodes, words = 900, 16
    before = rng.integers(2**63, size=(nodes, deep.WORDS), dtype=np.uint64)
    after = before | rng.integers(2**63, size=(nodes, deep.WORDS), dtype=np.uint64)
    order = rng.permutation(nodes)
    vectors = np.full((SOURCES, 2, words), 7, np.uint64)
    for first, last in ((0, 5), (5, words)):
        deep.transpose(first, last, order, count, before, after, 1, vectors)
    new = bits(after) & ~bits(before)
    expected = np.zeros((SOURCES, words * 64), bool)
    expected[:, :count] = new[order[:count]].T
    assert np.array_equal(bits(np.ascontiguousarray(vectors[:, 1])), expected)
    assert (vectors[:, 0] == 7).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_small_ranges_and_little_memory_change_no_bit(world, threads, monkeypatch):
    graph, _ = world
    scores = np.random.default_rng(2).random(graph.num_nodes)
    some = np.flatnonzero(np.random.default_rng(3).random(graph.num_nodes) < 0.3)
    index = make_layout(graph, scores[some], some)
    every = np.arange(graph.num_nodes)
    walked = search_thresholds(index, every, np.ones(5), 0.1, strategy="dense")
    monkeypatch.setattr(csr, "RANGE_EDGES", 37)
    monkeypatch.setattr(jobs, "DEEP_BYTES", 1)
    swum = search_thresholds(index, every, np.ones(5), 0.1, strategy="deep", threads=threads)
    assert same_bits(swum.values, walked.values)
    assert np.array_equal(swum.hop_counts, walked.hop_counts)


@pytest.mark.parametrize("threads", [1, 3])
def test_all_threads_of_a_batch_pull_along_either_kind_of_edges(world, threads, monkeypatch):
    graph, _ = world
    pulled, pushed = [], []
    monkeypatch.setattr(csr, "LEAST_EDGES", 50)
    monkeypatch.setattr(
        deep, "pull", lambda first, last, *rest, pull=deep.pull: (pulled.append(first), pull(first, last, *rest))
    )
    monkeypatch.setattr(
        deep, "push", lambda first, last, *rest, push=deep.push: (pushed.append(first), push(first, last, *rest))
    )
    index = make_layout(graph, np.arange(300.0), np.arange(300))
    swum = search_thresholds(index, np.arange(300), np.ones(6), 0.1, strategy="deep", threads=threads)
    assert not pushed
    assert len(set(pulled)) >= threads
    assert same_bits(swum.values, search_thresholds(index, np.arange(300), np.ones(6), 0.1).values)
