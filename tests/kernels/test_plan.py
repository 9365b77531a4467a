"""Plans: every source once, in one of the two ways, by a rule that looks at sizes alone."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import jobs as module
from napsets.kernels.jobs import BATCH, goes_deep, plan
from napsets.kernels.layout import Layout
from oracles import STRATEGIES


def ring(size):
    return ns.Graph.from_edge_index([np.arange(size), np.roll(np.arange(size), 1)], size)


def crowd():
    rng = np.random.default_rng(0)
    return ns.Graph.from_edge_index(rng.integers(3000, size=(2, 60_000)), 3000)


def layout_of(graph, share=1.0):
    calibration = np.arange(int(share * graph.num_nodes))
    return Layout(graph, calibration, np.zeros(calibration.size))


def test_the_strategies_tested_are_all_there_are():
    assert set(module.STRATEGIES) == set(STRATEGIES)


@pytest.mark.parametrize("size", [1, 5, 511, 512, 513, 2000])
@pytest.mark.parametrize("hops", [1, 2, 3, 6])
def test_batches_hold_every_source_once(size, hops):
    dense, deep = plan(layout_of(crowd()), size, hops)
    assert sorted(i for first, last in dense + deep for i in range(first, last)) == list(range(size))
    assert all(last - first <= BATCH for first, last in dense + deep)


def test_neighbourhoods_that_stay_small_are_searched_one_at_a_time():
    for hops in (1, 2, 5):
        assert plan(layout_of(ring(200_000)), 2000, hops)[1] == []


def test_neighbourhoods_that_fill_the_graph_are_searched_together_where_memory_allows(monkeypatch):
    layout = layout_of(crowd())
    assert plan(layout, 512, 4) == ([], [(0, 512)])
    assert plan(layout, 512, 1) == ([(0, 512)], [])
    # What is left over after whole batches is too little to be searched together.
    assert plan(layout, 1026, 4) == ([(1024, 1026)], [(0, 512), (512, 1024)])
    monkeypatch.setattr(module, "DEEP_BYTES", 1)
    assert plan(layout, 512, 4) == ([(0, 512)], [])


def test_more_sources_never_make_a_search_one_at_a_time_better():
    layout = layout_of(crowd())
    for hops in (2, 3, 4):
        rule = [goes_deep(layout, sources, hops) for sources in range(1, BATCH + 1)]
        assert rule == sorted(rule)


def test_the_edges_that_a_search_reads_follow_from_the_degrees():
    layout = layout_of(ring(1000))
    assert [layout.edges_read(hops) for hops in (1, 2, 3, 4)] == [2.0, 6.0, 10.0, 14.0]
    assert layout.edges_read(64) == 2.0 + 63 * 4.0
    star = ns.Graph.from_edge_index([np.zeros(10, np.int64), np.arange(1, 11)], 11)
    # A row has 20/11 edges on average, and a node met along an edge 5.5: the centre half of the times, or a leaf.
    assert layout_of(star).edges_read(2) == pytest.approx(20 / 11 * (1 + 5.5))
    assert layout_of(star).edges_read(5) == star.num_edges  # no more than there are
    assert layout_of(star, share=0.0).edges_read(2) == pytest.approx(20 / 11)
    assert layout_of(ns.Graph.from_edge_index([[], []], 5)).edges_read(3) == 0.0
