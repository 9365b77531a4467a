"""Hops beyond the graph: the same answer, at once; and absurd ones are refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.advice.recommendation import recommend
from napsets.advice.threshold import hop_rings
from napsets.evaluation.comparison import compare
from napsets.localisers import base
from napsets.localisers.base import useful_hops
from oracles import same_bits

RNG = np.random.default_rng(0)
SIZE = 300
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)
CALIBRATION, NODES = np.arange(0, SIZE, 2), np.arange(1, SIZE, 2)

GRAPHS = {
    "a path": ns.Graph.from_networkx(nx.path_graph(SIZE)),
    "a one-way path": ns.Graph.from_edge_index([np.arange(SIZE - 1), np.arange(1, SIZE)], SIZE, directed=True),
    "a one-way ring": ns.Graph.from_edge_index([np.arange(SIZE), np.roll(np.arange(SIZE), -1)], SIZE, directed=True),
    "many pieces": ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 150)), SIZE),
    "one piece": ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 1500)), SIZE),
    "no edges": ns.Graph.from_edge_index([[], []], SIZE),
}
DEEP = [10**6, 10**9, 2**31 - 1]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("decay", ["uniform", "hyperbolic", lambda k: 0.99**k], ids=["uniform", "hyperbolic", "own"])
def test_more_hops_than_nodes_give_what_as_many_hops_as_nodes_give(name, decay):
    def predict(hops):
        naps = ns.NAPS(hops=hops, decay=decay).calibrate(GRAPHS[name], P, Y, calibration=CALIBRATION)
        return naps.predict(NODES, alpha=0.2)

    expected = predict(SIZE - 1)
    for hops in DEEP:
        prediction = predict(hops)
        assert same_bits(prediction.thresholds, expected.thresholds)
        assert np.array_equal(prediction.support, expected.support)
        assert same_bits(prediction.effective_size, expected.effective_size)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_depth_reaches_every_node_and_is_not_far_beyond(name):
    graph = GRAPHS[name]
    kind = nx.DiGraph if graph.directed else nx.Graph
    lengths = dict(nx.all_pairs_shortest_path_length(nx.from_scipy_sparse_array(graph.to_scipy(), create_using=kind)))
    furthest = max(max(ends.values()) for ends in lengths.values())
    hops = useful_hops(graph, np.arange(SIZE), 10**9)
    assert furthest <= hops <= (furthest if graph.directed else 2 * furthest)


def test_few_hops_are_walked_as_asked_for():
    assert useful_hops(GRAPHS["no edges"], NODES, 64) == 64
    assert useful_hops(GRAPHS["no edges"], NODES, 65) == 0


def test_long_rows_of_weights_are_cut_where_the_graph_ends():
    index = ns.CalibrationIndex(GRAPHS["many pieces"], Y / 3, np.arange(SIZE))
    thresholds = ns.neighbourhood_thresholds(index, NODES, np.ones((2, 10**6)), [0.1, 0.2])
    expected = ns.neighbourhood_thresholds(index, NODES, np.ones((2, 60)), [0.1, 0.2])
    assert same_bits(thresholds.values, expected.values)
    assert thresholds.hop_counts.shape[1] == thresholds.weights.shape[1] < 100
    assert thresholds.hop_counts.sum() == expected.hop_counts.sum()


def test_what_cannot_be_held_is_refused_with_what_it_would_take(monkeypatch):
    monkeypatch.setattr(base, "_MOST_BYTES", 1 << 16)
    naps = ns.NAPS(hops=10**9).calibrate(GRAPHS["a path"], P, Y, calibration=CALIBRATION)
    with pytest.raises(ns.InvalidInputError, match="`hops` must be fewer: this graph is up to 299 hops deep"):
        naps.predict(NODES)


@pytest.mark.parametrize("hops", DEEP)
def test_everything_that_takes_hops_ends_where_the_graph_does(hops):
    graph = GRAPHS["one piece"]
    rings = hop_rings(graph, 0, hops)
    assert (
        sum(ring.size for ring in rings)
        == len(nx.node_connected_component(nx.from_scipy_sparse_array(graph.to_scipy()), 0)) - 1
    )
    seen = inspect_node(ns.NAPS(hops=hops).calibrate(graph, P, Y, calibration=CALIBRATION), 1)
    assert seen.support == sum(row.calibration for row in seen.hops)
    results = compare(graph, P, Y, CALIBRATION, NODES, hops=hops).results
    assert [r.coverage for r in results] == [
        r.coverage for r in compare(graph, P, Y, CALIBRATION, NODES, hops=64).results
    ]
    whole = ns.neighbourhood_partition(graph, np.arange(SIZE), radius=hops, min_size=2)
    assert [ball.size for ball in whole] == sorted(
        (len(c) for c in nx.connected_components(nx.from_scipy_sparse_array(graph.to_scipy())) if len(c) > 1),
        reverse=True,
    )
    labels = np.where(np.arange(SIZE) % 2, -1, Y)
    recommendation = recommend(graph, labels, max_hops=hops)
    assert recommendation.best.hops <= 64
    assert len(recommendation.agreement) < 64


@pytest.mark.parametrize("hops", [2**31, 10**20, 10**400])
@pytest.mark.parametrize(
    "use",
    [
        lambda hops: ns.NAPS(hops=hops),
        lambda hops: ns.hop_weights("uniform", hops),
        lambda hops: hop_rings(GRAPHS["a path"], 0, hops),
        lambda hops: compare(GRAPHS["a path"], P, Y, CALIBRATION, NODES, hops=hops),
        lambda hops: recommend(GRAPHS["a path"], Y, max_hops=hops),
        lambda hops: ns.neighbourhood_partition(GRAPHS["a path"], NODES, radius=hops),
    ],
    ids=["NAPS", "hop_weights", "hop_rings", "compare", "recommend", "partition"],
)
def test_absurd_hops_are_refused(use, hops):
    with pytest.raises(ns.InvalidInputError, match=r"`(hops|max_hops|radius)` must be at most 2,147,483,647; got"):
        use(hops)


def test_weights_that_cannot_be_held_are_refused():
    with pytest.raises(ns.InvalidInputError, match="`hops` must be at most 10,000,000 for all weights to be held"):
        ns.hop_weights("uniform", 10**9)


def test_recommending_among_very_many_depths_is_refused():
    with pytest.raises(
        ns.InvalidInputError, match="`max_hops` must be at most 256 for a graph as deep as this; got 1000"
    ):
        recommend(GRAPHS["a path"], Y, max_hops=1000)
