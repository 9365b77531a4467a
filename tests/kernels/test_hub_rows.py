"""Rows of hubs as vectors: the right bits, for the right nodes, within their room, and no other result."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.kernels import layout as module
from napsets.kernels.layout import Layout, least_hub_degree
from oracles import same_bits
from searches import make_layout, search_thresholds


def crowd(nodes=700, edges=9000, seed=0):
    """A graph whose degrees differ widely."""
    rng = np.random.default_rng(seed)
    ends = (rng.random((2, edges)) ** 3 * nodes).astype(np.int64)
    return ns.Graph.from_edge_index(ends, nodes)


def test_a_vector_has_the_bits_of_a_hubs_neighbours_and_other_rows_stay():
    graph = crowd()
    layout = Layout(graph, np.arange(300), np.arange(300.0))  # whose numbers are the nodes
    ends, last_ends, vectors = layout.hub_rows
    hubs = np.flatnonzero(ends < 0)
    assert 5 < hubs.size < graph.num_nodes / 2
    assert hubs.tolist() == np.flatnonzero(graph.degrees >= least_hub_degree(graph.degrees)).tolist()
    flags = np.unpackbits(vectors.view(np.uint8), axis=1, bitorder="little")
    for hub in hubs.tolist():
        assert np.flatnonzero(flags[~ends[hub]]).tolist() == graph.neighbours(hub).tolist()
    others = np.setdiff1d(np.arange(graph.num_nodes), hubs)
    assert (ends[others] == layout.stops[others]).all()
    assert (last_ends[others] == layout.renumber()[1][others]).all()
    assert (last_ends[hubs] == ends[hubs]).all()


def test_the_best_connected_nodes_are_taken_as_far_as_there_is_room(monkeypatch):
    degrees = crowd().degrees
    words = -(-degrees.size // 64)
    wanted = int((degrees >= least_hub_degree(degrees)).sum())
    for room in (0, 1, 7, 20, wanted - 1):
        monkeypatch.setattr(module, "HUB_BYTES", room * words * 8)
        least = least_hub_degree(degrees)
        next_ones = degrees[degrees < least].max()
        assert (degrees >= least).sum() <= room < (degrees >= next_ones).sum()


def test_a_node_is_no_hub_where_marking_its_edges_is_faster():
    assert least_hub_degree(np.full(64 * 1000, 249)) > 249
    assert least_hub_degree(np.append(np.full(64 * 1000 - 1, 2), 251)) == 251


@pytest.mark.parametrize("hops", [2, 3, 4])
@pytest.mark.parametrize("directed", [False, True])
def test_thresholds_are_the_same_with_vectors_and_without(hops, directed, monkeypatch):
    rng = np.random.default_rng(hops)
    ends = (rng.random((2, 5000)) ** 3 * 900).astype(np.int64)
    graph = ns.Graph.from_edge_index(ends, 900, directed=directed)
    calibration = rng.permutation(900)[:300]
    scores = np.round(rng.random(300), 2)

    def thresholds():
        index = make_layout(graph, scores, calibration)
        return search_thresholds(index, np.arange(900), np.ones(hops), [0.1, 0.4], strategy="dense"), index

    with_vectors, index = thresholds()
    assert index.hub_rows.vectors.shape[0] > 10
    monkeypatch.setattr(module, "HUB_BYTES", 0)
    without, index = thresholds()
    assert index.hub_rows.vectors.shape[0] == 0
    assert same_bits(with_vectors.values, without.values)
    assert (with_vectors.hop_counts == without.hop_counts).all()
