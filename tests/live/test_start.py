"""Starting from what users have: arrays or a PyTorch Geometric graph give the same living graph."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.live.state import draw_order

NODES = 120
RNG = np.random.default_rng(8)
P = RNG.dirichlet(np.ones(3), NODES)
Y = (P.cumsum(axis=1) > RNG.random((NODES, 1))).argmax(axis=1)
KNOWN = np.sort(RNG.choice(NODES, 80, replace=False))
TRUTH = np.where(np.isin(np.arange(NODES), KNOWN), Y, -1)
EDGES = RNG.integers(0, NODES, (2, 300))
METHODS = ["split", "naps-exact", "informed"]


def same(one, other):
    """Whether two living graphs say the same of every node without a label, and have judged alike."""
    assert one.status() == other.status()
    first, second = one.predict(), other.predict()
    assert first.ids.tolist() == second.ids.tolist()
    for name in ("member", "thresholds", "support", "level"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


@pytest.mark.parametrize("method", METHODS)
def test_labels_that_are_there_count_as_arrived_in_an_order_drawn_from_the_seed(method):
    live = ns.Live.start(EDGES, P, TRUTH, method=method, seed=3)
    by_hand = ns.Live(method, seed=3)
    by_hand.add_nodes(np.arange(NODES), P)
    graph = ns.Graph.from_edge_index(EDGES, NODES)
    source = np.repeat(np.arange(NODES), graph.degrees)
    once = source < graph.indices
    by_hand.add_edges(source[once], graph.indices[once])
    order = KNOWN[draw_order(3, KNOWN)]
    by_hand.add_labels(order, Y[order])
    same(live, by_hand)
    assert ns.Live.start(EDGES, P, TRUTH, method=method, seed=4).status() != live.status()


def test_a_mask_says_whose_labels_have_arrived():
    mask = np.isin(np.arange(NODES), KNOWN)
    same(ns.Live.start(EDGES, P, Y, mask, method="naps-exact"), ns.Live.start(EDGES, P, TRUTH, method="naps-exact"))


@pytest.mark.parametrize("method", METHODS)
def test_a_graph_of_pytorch_geometric_brings_its_labels(method):
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data").Data(
        edge_index=torch.tensor(EDGES), y=torch.tensor(TRUTH), num_nodes=NODES
    )
    same(ns.Live.start(data, P, method=method), ns.Live.start(EDGES, P, TRUTH, method=method))
