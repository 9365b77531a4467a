"""Plans: every source once, in one of the known ways, and the way that fits."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import jobs as module
from napsets.kernels.jobs import plan
from napsets.kernels.layout import Layout
from oracles import STRATEGIES


def ring(size):
    return ns.Graph.from_edge_index([np.arange(size), np.roll(np.arange(size), 1)], size)


def chosen(graph, hops, sources=None, strategy=None, share=1.0):
    sources = np.arange(graph.num_nodes) if sources is None else sources
    calibration = np.arange(int(share * graph.num_nodes))
    return plan(Layout(graph, calibration, np.zeros(calibration.size)), sources, hops, strategy)


def test_the_strategies_tested_are_all_there_are():
    assert set(module.STRATEGIES) == set(STRATEGIES)


@pytest.mark.parametrize("size", [1, 5, 511, 512, 513, 2000])
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_batches_and_their_pieces_hold_every_source_once(size, strategy):
    batches = chosen(ring(size), 3, strategy=strategy)
    pieces = [piece for batch in batches for piece in batch.pieces()]
    assert [i for first, last in pieces for i in range(first, last)] == list(range(size))
    if strategy:
        assert {batch.strategy for batch in batches} == {strategy}


def test_small_neighbourhoods_of_a_large_graph_are_searched_sparsely():
    assert {batch.strategy for batch in chosen(ring(200_000), 2, np.arange(1000))} == {"sparse"}


def test_neighbourhoods_that_fill_the_graph_are_searched_together_where_memory_allows(monkeypatch):
    rng = np.random.default_rng(0)
    graph = ns.Graph.from_edge_index(rng.integers(3000, size=(2, 60_000)), 3000)
    assert {batch.strategy for batch in chosen(graph, 4, np.arange(512))} == {"deep"}
    assert "deep" not in {batch.strategy for batch in chosen(graph, 1, np.arange(512))}
    monkeypatch.setattr(module, "DEEP_BYTES", 1)
    assert "deep" not in {batch.strategy for batch in chosen(graph, 4, np.arange(512))}


def test_the_edges_that_a_search_reads_are_estimated_from_samples():
    assert [batch.touched for batch in chosen(ring(1000), 3)] == [10.0, 10.0]  # 2 · (1 + 2 + 2) edges a node


def test_few_calibration_nodes_make_a_search_one_source_at_a_time_cheaper():
    rng = np.random.default_rng(0)
    graph = ns.Graph.from_edge_index(rng.integers(3000, size=(2, 60_000)), 3000)
    many, few = (chosen(graph, 2, share=share)[0] for share in (1.0, 0.01))
    assert few.cost < many.cost
    assert few.touched == many.touched


def test_batches_between_dear_ones_are_dear_and_others_are_looked_at(monkeypatch):
    looked = []
    count = module.count_touched

    def spy(sample, *arguments):
        looked.append(int(sample[0]) // module.BATCH)
        return count(sample, *arguments)

    monkeypatch.setattr(module, "count_touched", spy)
    rng = np.random.default_rng(0)
    batches = 3 * module._STRIDE
    crowd, loners = 2 * module._STRIDE * module.BATCH, module._STRIDE * module.BATCH
    graph = ns.Graph.from_edge_index(rng.integers(crowd, size=(2, 20 * crowd)), crowd + loners)
    plans = chosen(graph, 4)
    assert [batch.strategy == "deep" for batch in plans] == [True] * (batches - 8) + [False] * 8
    assert sorted(looked) == [0, 8, *range(9, batches)]
