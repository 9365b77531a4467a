"""Hops beyond the graph give the same answer; more than 64 are refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.advice.threshold import hop_rings
from napsets.evaluation.comparison import compare
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 60
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)
CALIBRATION, NODES = np.arange(0, SIZE, 2), np.arange(1, SIZE, 2)

GRAPHS = {
    "a path": ns.Graph.from_networkx(nx.path_graph(SIZE)),
    "a one-way path": ns.Graph.from_edge_index([np.arange(SIZE - 1), np.arange(1, SIZE)], SIZE, directed=True),
    "a one-way ring": ns.Graph.from_edge_index([np.arange(SIZE), np.roll(np.arange(SIZE), -1)], SIZE, directed=True),
    "many pieces": ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 30)), SIZE),
    "one piece": ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 300)), SIZE),
    "no edges": ns.Graph.from_edge_index([[], []], SIZE),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("decay", ["uniform", "hyperbolic", lambda k: 0.99**k], ids=["uniform", "hyperbolic", "own"])
def test_more_hops_than_nodes_give_what_as_many_hops_as_nodes_give(name, decay):
    def predict(hops):
        naps = ns.NAPS(hops=hops, decay=decay).calibrate(GRAPHS[name], P, Y, calibration=CALIBRATION)
        return naps.predict(NODES, alpha=0.2)

    expected, prediction = predict(SIZE - 1), predict(64)
    assert same_bits(prediction.thresholds, expected.thresholds)
    assert np.array_equal(prediction.support, expected.support)
    assert same_bits(prediction.effective_size, expected.effective_size)


def test_everything_that_takes_hops_takes_64():
    graph = GRAPHS["one piece"]
    rings = hop_rings(graph, 0, 64)
    assert len(rings) == 64
    assert (
        sum(ring.size for ring in rings)
        == len(nx.node_connected_component(nx.from_scipy_sparse_array(graph.to_scipy()), 0)) - 1
    )
    seen = inspect_node(ns.NAPS(hops=64).calibrate(graph, P, Y, calibration=CALIBRATION), 1)
    assert seen.support == sum(row.calibration for row in seen.hops)
    results = compare(graph, P, Y, CALIBRATION, NODES, hops=64).results
    assert [r.coverage for r in results] == [
        r.coverage for r in compare(graph, P, Y, CALIBRATION, NODES, hops=SIZE).results
    ]
    whole = ns.neighbourhood_partition(graph, np.arange(SIZE), radius=64, min_size=2)
    assert [ball.size for ball in whole] == sorted(
        (len(c) for c in nx.connected_components(nx.from_scipy_sparse_array(graph.to_scipy())) if len(c) > 1),
        reverse=True,
    )


@pytest.mark.parametrize("hops", [65, 2**31, 10**20, 10**400])
@pytest.mark.parametrize(
    "use",
    [
        lambda hops: ns.NAPS(hops=hops),
        lambda hops: ns.hop_weights("uniform", hops),
        lambda hops: hop_rings(GRAPHS["a path"], 0, hops),
        lambda hops: compare(GRAPHS["a path"], P, Y, CALIBRATION, NODES, hops=hops),
        lambda hops: ns.neighbourhood_partition(GRAPHS["a path"], NODES, radius=hops),
    ],
    ids=["NAPS", "hop_weights", "hop_rings", "compare", "partition"],
)
def test_more_than_64_hops_are_refused(use, hops):
    with pytest.raises(ns.InvalidInputError, match=r"`(hops|radius)` must be at most 64; got"):
        use(hops)
