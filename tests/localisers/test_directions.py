"""Directed graphs: hops along edges, against them, or both ways, by every way of searching."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.localisers import Cut, Hops, Reference
from oracles import STRATEGIES, adjacency_sets, float_hop_threshold, hops_from, same_bits
from searches import make_layout, search_thresholds
from strategies import cases

DIRECTIONS = ("out", "in", "both")


def neighbours_along(edges, size, direction):
    """Adjacency sets along a direction of a directed graph, from the edge list."""
    ways = {"out": edges, "in": [(v, u) for u, v in edges], "both": [*edges, *((v, u) for u, v in edges)]}
    return adjacency_sets(ways[direction], size, directed=True)


@pytest.mark.parametrize("direction", DIRECTIONS)
@settings(max_examples=50)
@given(case=cases(), threads=st.integers(1, 3))
def test_thresholds_rest_on_the_nodes_that_the_direction_leads_to(direction, case, threads):
    size = case.num_nodes
    pairs = np.array(case.edges, dtype=np.int64).reshape(-1, 2)
    graph = ns.Graph.from_edge_index(pairs.T, size, directed=True)
    weights = [float(w) for w in case.weights]
    reference = Reference(np.array(case.calibration), np.array(case.scores), size, graph)
    local = Hops(len(weights), weights, direction=direction).fit(reference)
    alpha = float(case.alpha)
    thresholds = local.thresholds(np.arange(size), [Cut(1.0 - alpha)], threads=threads).values[0]
    around = neighbours_along(case.edges, size, direction)
    expected = []
    for node in range(size):
        hop = hops_from(around, node)
        distance = {v: hop.get(v, np.inf) for v in case.calibration}
        expected.append(float_hop_threshold(distance, case.calibration, case.scores, node, weights, alpha))
    assert np.array_equal(thresholds, expected)
    for strategy in STRATEGIES:
        index = make_layout(graph.along(direction), case.scores, case.calibration)
        swum = search_thresholds(index, np.arange(size), weights, alpha, strategy=strategy, threads=threads)
        assert np.array_equal(swum.values[0, 0], expected)


@pytest.fixture
def one_way(world):
    source = np.repeat(np.arange(world.graph.num_nodes), world.graph.degrees)
    kept = np.random.default_rng(0).random(source.size) < 0.5
    return ns.Graph.from_edge_index([source[kept], world.graph.indices[kept]], world.graph.num_nodes, directed=True)


def predict(graph, world, **how):
    naps = ns.NAPS(**how).calibrate(graph, world.probabilities, world.labels, world.calibration)
    return naps.predict(world.rest, alpha=0.2)


@pytest.mark.parametrize("exact", [False, True])
def test_a_direction_is_the_graph_along_it(world, one_way, exact):
    how = {"exact": exact, "pool": 5, "alike": 3}
    source = np.repeat(np.arange(one_way.num_nodes), one_way.degrees)
    turned = ns.Graph.from_edge_index([one_way.indices, source], one_way.num_nodes, directed=True)
    either = ns.Graph.from_edge_index([one_way.indices, source], one_way.num_nodes)
    for direction, graph in (("out", one_way), ("in", turned), ("both", either)):
        prediction = predict(one_way, world, direction=direction, **how)
        assert same_bits(prediction.thresholds, predict(graph, world, **how).thresholds)
    assert not same_bits(
        predict(one_way, world, direction="in", **how).thresholds, predict(one_way, world, **how).thresholds
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_inspection_walks_the_same_way(world, one_way, direction):
    naps = ns.NAPS(direction=direction).calibrate(one_way, world.probabilities, world.labels, world.calibration)
    seen = inspect_node(naps, int(world.rest[0]), alpha=0.2)
    assert sum(row.calibration for row in seen.hops) == seen.support
    near = one_way.along(direction).neighbours(int(world.rest[0]))
    assert seen.hops[0].nodes == near.size


def test_a_direction_that_is_none_is_refused():
    with pytest.raises(ns.InvalidInputError, match="`direction` must be one of out, in, both; got 'up'"):
        ns.NAPS(direction="up")
    with pytest.raises(ns.InvalidInputError, match="`direction` must be one of out, in, both; got None"):
        Hops(direction=None)


def test_a_direction_is_spoken_of_only_where_it_is_unusual():
    assert repr(Hops(3)) == "Hops(hops=3, decay='uniform', pool=0.0, alike=0.0)"
    assert repr(Hops(3, direction="in")) == "Hops(hops=3, decay='uniform', pool=0.0, alike=0.0, direction='in')"
