"""Edges with lengths and edges with a direction: what a graph makes of them, by every constructor."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels import threads
from oracles import shortest_edges
from strategies import edge_lists

#: Both directions with two lengths, a repeat, a self-loop; 3 is isolated.
EDGES = [(0, 1), (1, 0), (1, 2), (1, 2), (3, 3), (2, 4)]
LENGTHS = [3.0, 2.0, 0.5, 0.25, 9.0, 4.0]
SIZE = 5
INDEX = np.array(EDGES).T


def edges_of(graph):
    """The stored edges as a dictionary from (source, target) to length."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return dict(zip(zip(source.tolist(), graph.indices.tolist(), strict=True), graph.lengths.tolist(), strict=True))


@pytest.fixture(params=["by NumPy", "by kernels"])
def either_way(request, monkeypatch):
    if request.param == "by kernels":
        monkeypatch.setattr(threads, "SMALL", -1)


sized = st.integers(1, 12).flatmap(
    lambda n: edge_lists(n).flatmap(
        lambda edges: st.tuples(
            st.just(n),
            st.just(edges),
            st.lists(st.sampled_from([0.1, 0.5, 1.0, 7.0]), min_size=len(edges), max_size=len(edges)),
        )
    )
)


@pytest.mark.parametrize("few", [True, False], ids=["by NumPy", "by kernels"])
@pytest.mark.parametrize("directed", [False, True])
@given(case=sized)
def test_of_several_edges_between_two_nodes_the_shortest_is_kept(few, directed, case):
    size, edges, lengths = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "SMALL", 1 << 19 if few else -1)
        index = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        graph = ns.Graph.from_edge_index(index, size, directed=directed, lengths=lengths)
        expected = shortest_edges(edges, lengths, directed)
        assert edges_of(graph) == expected
        assert graph == ns.Graph(graph.indptr, graph.indices, directed=directed, lengths=graph.lengths)
        back = graph.reverse
        assert edges_of(back) == {(v, u): length for (u, v), length in expected.items()}
        assert edges_of(graph.both_ways) == shortest_edges(edges, lengths, False)
        assert (back.directed, graph.both_ways.directed) == (directed, False)
        order = np.random.default_rng(size).permutation(size)[: size // 2 + 1]
        place = {int(v): i for i, v in enumerate(order)}
        kept = {(place[u], place[v]): w for (u, v), w in expected.items() if u in place and v in place}
        assert edges_of(graph.subgraph(order)) == kept


MADE = {
    "edge index": lambda **how: ns.Graph.from_edge_index(INDEX, SIZE, lengths=LENGTHS, **how),
    "strengths": lambda **how: ns.Graph.from_edge_index(INDEX, SIZE, strengths=1 / np.array(LENGTHS), **how),
    "table": lambda **how: ns.Graph.from_table(
        {"source": INDEX[0], "target": INDEX[1], "weight": LENGTHS}, SIZE, weights_are="lengths", **how
    ),
    "pyg": lambda **how: ns.Graph.from_pyg(
        SimpleNamespace(edge_index=INDEX, num_nodes=SIZE, edge_weight=LENGTHS), weights_are="lengths", **how
    ),
    "pyg attributes": lambda **how: ns.Graph.from_pyg(
        SimpleNamespace(edge_index=INDEX, num_nodes=SIZE, edge_attr=np.array(LENGTHS)[:, None]),
        weights_are="lengths",
        **how,
    ),
    "scipy": lambda **how: ns.Graph.from_scipy(
        sp.coo_array((LENGTHS, (INDEX[0], INDEX[1])), shape=(SIZE, SIZE)), weights_are="lengths", **how
    ),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("directed", [False, True])
def test_every_constructor_takes_lengths(kind, directed, either_way):
    assert edges_of(MADE[kind](directed=directed)) == shortest_edges(EDGES, LENGTHS, directed)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_a_networkx_graph_has_the_lengths_of_its_attribute(kind):
    graph = kind()
    graph.add_nodes_from("abcde")
    graph.add_weighted_edges_from([("a", "b", 2.0), ("c", "b", 4.0)])
    directed = kind is not nx.Graph
    expected = shortest_edges([(0, 1), (2, 1)], [2.0, 4.0], directed)
    assert edges_of(ns.Graph.from_networkx(graph, weight="weight")) == expected
    strong = ns.Graph.from_networkx(graph, weight="weight", weights_are="strengths")
    assert edges_of(strong) == {pair: 1 / length for pair, length in expected.items()}
    assert ns.Graph.from_networkx(graph).lengths is None
    with pytest.raises(ns.InvalidInputError, match="`weight` must name an attribute of every edge; some have no 'far'"):
        ns.Graph.from_networkx(graph, weight="far")


def test_weights_do_not_count_until_it_is_said_what_they_are():
    table = {"source": [0], "target": [1], "weight": [3.0]}
    assert ns.Graph.from_table(table).lengths is None
    assert ns.Graph.from_scipy(sp.csr_array([[0, 3.0], [0, 0]])).lengths is None
    assert ns.Graph.from_table(table, weights_are="strengths").lengths.tolist() == [1 / 3, 1 / 3]


def test_a_stored_zero_of_a_matrix_is_no_edge():
    matrix = sp.coo_array(([0.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert edges_of(ns.Graph.from_scipy(matrix, weights_are="lengths")) == {(1, 2): 2.0, (2, 1): 2.0}


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1.0, -2.0], r"`lengths` must be positive, from 1e-100 to 1e\+100; entry 1 is -2"),
        ([np.nan, 1.0], "entry 0 is nan"),
        ([1.0, np.inf], "entry 1 is inf"),
        ([0.0, 1.0], "entry 0 is 0 .an edge of length 0 would make its two ends the same node"),
        ([1.0], r"`lengths` must have one entry per edge, 2; got shape \(1,\)"),
        (["a", "b"], "`lengths` must hold numbers; got dtype <U1"),
        ([[1.0, 2.0]], r"got shape \(1, 2\)"),
    ],
)
def test_what_is_no_length_is_refused(lengths, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        ns.Graph.from_edge_index([[0, 1], [1, 2]], 3, lengths=lengths)


def test_what_is_no_strength_is_refused():
    with pytest.raises(ns.InvalidInputError, match=r"`strengths` must .*a strength of 0 is not an edge: leave it out"):
        ns.Graph.from_edge_index([[0], [1]], 2, strengths=[0.0])
    with pytest.raises(ns.InvalidInputError, match="`strengths` must be left out where `lengths` are given"):
        ns.Graph.from_edge_index([[0], [1]], 2, lengths=[1.0], strengths=[1.0])
    with pytest.raises(ns.InvalidInputError, match="`weights_are` must be one of lengths, strengths; got 'length'"):
        ns.Graph.from_table({"source": [0], "target": [1], "weight": [1.0]}, weights_are="length")
    with pytest.raises(ns.InvalidInputError, match="`table` must have the column weight; it has source, target"):
        ns.Graph.from_table({"source": [0], "target": [1]}, weights_are="lengths")
    with pytest.raises(ns.InvalidInputError, match="`data` must have an `edge_weight`"):
        ns.Graph.from_pyg(SimpleNamespace(edge_index=INDEX), weights_are="lengths")


def test_the_extremes_of_strengths_are_lengths_that_rows_may_have():
    graph = ns.Graph.from_edge_index([[0, 1], [1, 2]], 3, strengths=[1e-100, 1e100])
    assert ns.Graph(graph.indptr, graph.indices, lengths=graph.lengths) == graph


def test_rows_with_two_lengths_for_one_undirected_edge_are_refused(either_way):
    rows = {"indptr": [0, 1, 2], "indices": [1, 0]}
    with pytest.raises(ns.InvalidInputError, match=r"`lengths` must be the same both ways .* 0 → 1 is not as long"):
        ns.Graph(**rows, lengths=[1.0, 2.0])
    assert ns.Graph(**rows, lengths=[1.0, 2.0], directed=True).lengths.tolist() == [1.0, 2.0]


def test_lengths_are_kept_from_being_written_to_and_go_to_other_processes():
    given_ = np.array([1.0, 1.0])
    graph = ns.Graph([0, 1, 2], [1, 0], lengths=given_)
    given_[:] = 5.0
    again = pickle.loads(pickle.dumps(graph))
    for one in (graph, again):
        assert one.lengths.tolist() == [1.0, 1.0]
        assert not one.lengths.flags.writeable
    assert graph == again
    assert graph != ns.Graph([0, 1, 2], [1, 0])
    assert graph != ns.Graph([0, 1, 2], [1, 0], lengths=[2.0, 2.0])
    assert repr(graph) == "Graph(2 nodes, 2 stored edges, undirected, with lengths)"


def test_lengths_come_back_as_a_matrix():
    graph = ns.Graph.from_edge_index(INDEX, SIZE, directed=True, lengths=LENGTHS)
    matrix = graph.to_scipy(lengths=True).tocoo()
    entries = dict(zip(zip(matrix.row.tolist(), matrix.col.tolist(), strict=True), matrix.data.tolist(), strict=True))
    assert entries == edges_of(graph)
    with pytest.raises(ns.InvalidInputError, match="`lengths` must be False for a graph whose edges have none"):
        ns.Graph.from_edge_index(INDEX, SIZE).to_scipy(lengths=True)


def test_along_a_direction_neighbours_are_targets_sources_or_both():
    graph = ns.Graph.from_edge_index([[0, 1, 3], [1, 2, 1]], 4, directed=True)
    neighbours = {way: graph.along(way).neighbours(1).tolist() for way in ("out", "in", "both")}
    assert neighbours == {"out": [2], "in": [0, 3], "both": [0, 2, 3]}
    with pytest.raises(ns.InvalidInputError, match="`direction` must be one of out, in, both; got 'inn'"):
        graph.along("inn")


def test_an_undirected_graph_is_the_same_along_all_directions():
    graph = ns.Graph.from_edge_index(INDEX, SIZE, lengths=LENGTHS)
    assert graph.along("in") is graph.along("both") is graph.along("out") is graph


def test_other_directions_are_made_once():
    graph = ns.Graph.from_edge_index(INDEX, SIZE, directed=True, lengths=LENGTHS)
    assert graph.reverse is graph.reverse
    assert graph.both_ways is graph.both_ways
