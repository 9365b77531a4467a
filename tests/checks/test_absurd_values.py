"""Absurd values: what the error says is possible; `test_fuzz_surface` tries such values for every argument."""

from __future__ import annotations

import math

import numpy as np
import pytest

import napsets as ns
from napsets.datasets.dataset import random_split
from napsets.datasets.synthetic import dcsbm_graph, sbm_graph
from napsets.evaluation.comparison import compare

SIZE = 12
RNG = np.random.default_rng(0)
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 20)), SIZE)
P = RNG.dirichlet(np.ones(3), SIZE)
Y = RNG.integers(3, size=SIZE)
CALIBRATION, NODES = np.arange(6), np.arange(6, 12)
NAPS = ns.NAPS().calibrate(GRAPH, P, Y, CALIBRATION)
MESSAGES = {
    "alpha": (lambda: NAPS.predict(NODES, 10**400), "`alpha` must be a number between 0 and 1; got 1000"),
    "an id of 2^45": (
        lambda: ns.Graph.from_edge_index([[0], [2**45]]),
        "`edge_index` must hold ids from 0 to the number of nodes less one; 35184372088833 nodes do not fit into "
        r"memory. Number the nodes from 0 first \(numpy.unique",
    ),
    "an id of 2^63-1": (lambda: ns.Graph.from_edge_index([[0], [2**63 - 1]]), "do not fit into memory"),
    "an id beyond": (
        lambda: ns.Graph.from_edge_index(np.array([[0], [2**63]], np.uint64)),
        r"`edge_index` must hold integers below 2\^63; got 9223372036854775808",
    ),
    "num_nodes": (
        lambda: ns.Graph.from_edge_index([[0], [1]], 2**70),
        "`num_nodes` must be at most 1,099,511,627,776; got 1180591620717411303424",
    ),
    "a few ids far apart": (lambda: ns.Graph.from_edge_index([[0], [2**30]]), "do not fit into memory"),
    "two nodes": (lambda: GRAPH.neighbours([0, 1]), "`node` must be one node; got 2. Pass one at a time"),
    "a seed": (
        lambda: ns.neighbourhood_partition(GRAPH, NODES, seed=-1),
        r"`seed` must be at least 0 and below 2\^64; got -1",
    ),
    "NaN counts": (
        lambda: ns.coverage_gap_bound([1.0], [math.nan], [0.1]),
        "`hop_counts` must be finite, from 0 to 9.22337e\\+18; got nan",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_message_says_what_is_possible(name):
    action, message = MESSAGES[name]
    with pytest.raises(ns.InvalidInputError, match=message):
        action()


def test_ids_of_any_integer_type_make_the_same_graph():
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    for dtype in (np.int8, np.uint16, np.uint32, np.uint64, np.int64):
        assert ns.Graph.from_edge_index(edges.astype(dtype)) == ns.Graph.from_edge_index(edges)


def test_tensors_without_data_are_refused_and_narrow_ones_taken():
    torch = pytest.importorskip("torch")
    with pytest.raises(
        ns.InvalidInputError, match="`probabilities` must be an array; got Tensor: Cannot copy out of meta"
    ):
        ns.SplitConformal().calibrate(torch.empty(SIZE, 3, device="meta"), Y, CALIBRATION)
    with pytest.raises(ns.InvalidInputError, match="`ids` must be an array; got Tensor"):
        ns.SplitConformal().calibrate(P, Y, CALIBRATION, ids=torch.empty(SIZE, device="meta"))
    rows = torch.full((SIZE, 4), 0.25, dtype=torch.bfloat16)
    one, other = (ns.SplitConformal().calibrate(p, Y, CALIBRATION) for p in (rows, np.full((SIZE, 4), 0.25)))
    assert np.array_equal(one.predict(NODES, 0.3).member, other.predict(NODES, 0.3).member)


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "abc", None])
def test_every_seed_is_checked_alike(seed):
    for use in (
        lambda: ns.NAPS(seed=seed),
        lambda: ns.node_uniforms([1], seed),
        lambda: ns.neighbourhood_partition(GRAPH, NODES, seed=seed),
        lambda: compare(GRAPH, P, Y, CALIBRATION, NODES, seed=seed),
        lambda: random_split(10, (0.5, 0.2, 0.3), seed),
        lambda: sbm_graph(5, 0.1, 0.1, seed),
        lambda: dcsbm_graph(20, 3, 2, seed=seed),
        lambda: ns.datasets.load("sbm", block_size=5, seed=seed),
    ):
        with pytest.raises(ns.InvalidInputError, match=r"`seed` must be (an integer|at least 0 and below)"):
            use()
    assert ns.node_uniforms([1], 2**64 - 1) is not None
