"""Graph: every constructor gives the same immutable rows."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.graph import as_graph
from oracles import adjacency_sets, rows_of
from searches import hop_thresholds
from strategies import edge_lists

EDGES = [(0, 1), (1, 0), (1, 2), (1, 2), (3, 3), (2, 4)]  # both directions, a repeat, a self-loop; 3 and 5 are isolated
SIZE = 6
ROWS = ([0, 1, 3, 5, 5, 6, 6], [1, 0, 2, 1, 4, 2])
DIRECTED_ROWS = ([0, 1, 3, 4, 4, 4, 4], [1, 0, 2, 4])
INDEX = np.array(EDGES).T


def rows(graph):
    return graph.indptr.tolist(), graph.indices.tolist()


COLUMNS = {"source": INDEX[0], "target": INDEX[1]}


def arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def duckdb_table(columns):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("edges", arrow(columns))
    return connection.sql("select source, target from edges").arrow()


TABLES = {
    "dict": lambda: COLUMNS,
    "lists": lambda: {name: column.tolist() for name, column in COLUMNS.items()},
    "any two columns": lambda: {"from": INDEX[0], "to": INDEX[1]},
    "with a weight": lambda: {"weight": np.ones(len(EDGES)), **COLUMNS},
    "small integers": lambda: {"source": INDEX[0].astype(np.uint8), "target": INDEX[1].astype(np.int16)},
    "arrow": lambda: arrow(COLUMNS),
    "chunked arrow": lambda: pytest.importorskip("pyarrow").concat_tables([arrow(COLUMNS)[:2], arrow(COLUMNS)[2:]]),
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(COLUMNS),
    "pandas with an index": lambda: pytest.importorskip("pandas").DataFrame(COLUMNS, index=list("abcdef")),
    "polars": lambda: pytest.importorskip("polars").DataFrame(COLUMNS),
    "duckdb": lambda: duckdb_table(COLUMNS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_any_table_gives_the_graph(kind):
    assert rows(ns.Graph.from_table(TABLES[kind](), SIZE)) == ROWS
    assert rows(ns.Graph.from_table(TABLES[kind](), SIZE, directed=True)) == DIRECTED_ROWS


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_an_edge_index_of_any_width_and_layout_gives_the_graph(dtype):
    for index in (INDEX, np.array(EDGES, order="F").T, np.ascontiguousarray(INDEX)[:, ::1], INDEX[:, ::-1]):
        graph = ns.Graph.from_edge_index(index.astype(dtype), SIZE)
        assert rows(graph) == ROWS
        assert graph.indices.dtype == np.int32


@pytest.mark.parametrize("kind", [sp.coo_array, sp.csr_array, sp.csc_matrix, sp.lil_matrix, sp.dok_array])
def test_a_scipy_matrix_of_any_kind_gives_the_graph(kind):
    matrix = kind(sp.coo_array((np.ones(len(EDGES)), tuple(INDEX)), shape=(SIZE, SIZE)))
    assert rows(ns.Graph.from_scipy(matrix)) == ROWS
    assert rows(ns.Graph.from_scipy(matrix, directed=True)) == DIRECTED_ROWS


def test_entries_of_a_scipy_matrix_that_are_zero_are_no_edges():
    matrix = sp.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert rows(ns.Graph.from_scipy(matrix)) == ([0, 1, 2, 2], [1, 0])


def test_scipy_gets_back_what_it_gave():
    matrix = ns.Graph.from_edge_index(INDEX, SIZE).to_scipy()
    theirs = nx.Graph()
    theirs.add_nodes_from(range(SIZE))
    theirs.add_edges_from((u, v) for u, v in EDGES if u != v)
    assert np.array_equal(matrix.toarray(), nx.to_numpy_array(theirs))
    assert rows(ns.Graph.from_scipy(matrix)) == ROWS


def test_networkx_graphs_keep_the_order_of_their_nodes_and_their_direction():
    theirs = nx.Graph()
    theirs.add_nodes_from("fedcba")
    theirs.add_edges_from([("a", "b"), ("b", "b"), ("f", "a")])
    assert rows(ns.Graph.from_networkx(theirs)) == ([0, 1, 1, 1, 1, 2, 4], [5, 5, 0, 4])
    directed = ns.Graph.from_networkx(nx.MultiDiGraph([(0, 1), (0, 1), (2, 0)]))
    assert rows(directed) == ([0, 1, 1, 2], [1, 0])
    assert directed.directed


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), edge_lists(n))), st.booleans())
def test_the_rows_are_the_sorted_sets_of_neighbours(sized, directed):
    size, edges = sized
    graph = ns.Graph.from_edge_index(np.array(edges, np.int64).reshape(-1, 2).T, size, directed=directed)
    neighbours = adjacency_sets(edges, size, directed)
    assert rows(graph) == rows_of(neighbours)
    assert graph.degrees.tolist() == [len(row) for row in neighbours]
    assert [graph.neighbours(v).tolist() for v in range(size)] == [sorted(row) for row in neighbours]
    assert graph.indptr.dtype == np.int64


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), edge_lists(n), st.permutations(range(n)))), st.data())
def test_a_subgraph_is_networkx_subgraph_with_a_map_back(sized, data):
    size, edges, order = sized
    nodes = order[: data.draw(st.integers(0, size))]
    whole = ns.Graph.from_edge_index(np.array(edges, np.int64).reshape(-1, 2).T, size)
    part = whole.subgraph(nodes)
    theirs = nx.Graph(e for e in edges if e[0] != e[1])
    theirs.add_nodes_from(range(size))
    kept_edges = {(part.original_ids[u], part.original_ids[v]) for u in range(len(nodes)) for v in part.neighbours(u)}
    assert kept_edges == {pair for u, v in theirs.subgraph(nodes).edges for pair in ((u, v), (v, u))}
    assert all((np.diff(part.neighbours(u)) > 0).all() for u in range(len(nodes)))
    again = part.subgraph(range(len(nodes) // 2))
    assert again.original_ids.tolist() == list(nodes[: len(nodes) // 2])


def test_a_subgraph_by_mask_keeps_the_order_of_ids():
    part = ns.Graph.from_edge_index(INDEX, SIZE).subgraph([True, True, True, False, False, True])
    assert part.original_ids.tolist() == [0, 1, 2, 5]
    assert rows(part) == ([0, 1, 3, 4, 4], [1, 0, 2, 1])


def test_a_graph_cannot_be_changed():
    graph = ns.Graph.from_edge_index(INDEX, SIZE)
    with pytest.raises(ValueError, match="read-only"):
        graph.indices[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        graph.indptr[0] = 3
    with pytest.raises(AttributeError):
        graph.indices = np.array([1])
    with pytest.raises(TypeError):
        hash(graph)


def test_edges_are_counted_as_stored_and_shown():
    graph = ns.Graph.from_edge_index(INDEX, SIZE)
    assert (graph.num_nodes, graph.num_edges) == (6, 6)
    assert repr(graph) == "Graph(6 nodes, 6 stored edges, undirected)"
    assert repr(ns.Graph.from_edge_index(INDEX, SIZE, directed=True)) == "Graph(6 nodes, 4 stored edges, directed)"


def test_graphs_are_equal_if_their_rows_are():
    graph = ns.Graph.from_edge_index(INDEX, SIZE)
    assert graph == ns.Graph.from_edge_index(INDEX[::-1], SIZE)
    assert graph == ns.Graph(graph.indptr, graph.indices)
    assert graph != ns.Graph.from_edge_index(INDEX, SIZE + 1)
    assert graph != "a graph"


@pytest.mark.parametrize("size", [0, 1, 5])
def test_graphs_without_edges_are_graphs(size):
    graph = ns.Graph.from_edge_index([[], []], size)
    assert (graph.num_nodes, graph.num_edges) == (size, 0)
    assert graph.subgraph([]).num_nodes == 0
    assert ns.Graph.from_networkx(nx.empty_graph(size)) == graph


def test_without_a_number_of_nodes_the_largest_id_counts():
    assert ns.Graph.from_edge_index(INDEX).num_nodes == 5
    assert ns.Graph.from_edge_index([[], []]).num_nodes == 0


def test_narrow_ids_of_a_large_graph_are_widened():
    # 300 nodes do not fit the type of the ids that happen to occur.
    graph = ns.Graph(np.r_[0, np.ones(300, np.int64)], np.array([1], np.int8), directed=True)
    assert graph.indices.dtype == np.int32
    thresholds = hop_thresholds(graph, np.arange(300.0), np.arange(300), [0, 299], [1.0], alpha=0.5)
    assert thresholds.tolist() == [1.0, np.inf]
    assert graph.subgraph(np.arange(300)[::-1]).neighbours(299).tolist() == [298]


@given(
    lists=st.lists(st.lists(st.integers(0, 7), max_size=5), min_size=8, max_size=8),
    tidy=st.booleans(),
    at_once=st.integers(1, 6),
)
def test_rows_are_checked_alike_however_many_edges_at_once(lists, tidy, at_once):
    from napsets.checks import compressed as module

    if tidy:
        lists = [sorted(set(row) - {u}) for u, row in enumerate(lists)]
    bad = [u for u, row in enumerate(lists) if row != sorted(set(row) - {u})]
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([v for row in lists for v in row], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHECKED_AT_ONCE", at_once)
        if bad:
            with pytest.raises(ns.InvalidInputError, match=f"row {bad[0]} does not"):
                ns.Graph(indptr, indices, directed=True)
        else:
            assert rows(ns.Graph(indptr, indices, directed=True)) == (indptr.tolist(), indices.tolist())


# -- rows as they are ----------------------------------------------------------------------------------------------


@given(
    size=st.integers(1, 9), pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25)
)  # fmt: skip
def test_rows_are_taken_for_undirected_just_where_they_equal_their_transpose(size, pairs):
    edges = np.array([(u % size, v % size) for u, v in pairs], dtype=np.int64).reshape(-1, 2).T
    rows_of = ns.Graph.from_edge_index(edges, size, directed=True)
    adjacency = rows_of.to_scipy().toarray()
    if (adjacency == adjacency.T).all():
        assert ns.Graph(rows_of.indptr, rows_of.indices) == rows_of
        return
    with pytest.raises(ns.InvalidInputError, match="has no reverse edge") as error:
        ns.Graph(rows_of.indptr, rows_of.indices)
    u, v = (int(text) for text in re.search(r"(\d+) → (\d+)", str(error.value)).groups())
    assert adjacency[u, v] == 1
    assert adjacency[v, u] == 0


def test_graphs_that_are_symmetric_by_construction_are_not_looked_through_again(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("looked through")

    monkeypatch.setattr("napsets.checks.compressed._check_both_ways", refuse)
    graph = ns.Graph.from_edge_index(INDEX, SIZE)
    pickle.loads(pickle.dumps(graph.subgraph([0, 1])))
    with pytest.raises(AssertionError, match="looked through"):
        ns.Graph(graph.indptr, graph.indices)


def test_whether_edges_go_both_ways_is_said_with_true_or_false():
    for make in (ns.Graph, lambda indptr, indices, **how: ns.Graph.from_edge_index([[0], [1]], **how)):
        with pytest.raises(ns.InvalidInputError, match="`directed` must be True or False; got 'no'"):
            make([0, 0], [], directed="no")


def holders():
    torch = pytest.importorskip("torch")
    both = np.concatenate([INDEX, INDEX[::-1]], axis=1)
    ones = torch.ones(both.shape[1])
    transposed = torch.sparse_coo_tensor(torch.from_numpy(both[::-1].copy()), ones, (SIZE, SIZE))
    matrix = sp.coo_array((np.ones(len(EDGES)), INDEX), shape=(SIZE, SIZE))
    ordered = nx.Graph()
    ordered.add_nodes_from(range(SIZE))
    ordered.add_edges_from(EDGES)
    return {
        "itself": ns.Graph.from_edge_index(INDEX, SIZE),
        "edge_index": INDEX,
        "list": INDEX.tolist(),
        "tensor": torch.from_numpy(INDEX.copy()),
        "Data": SimpleNamespace(edge_index=torch.from_numpy(INDEX.copy()), num_nodes=SIZE),
        "adj_t": SimpleNamespace(edge_index=None, adj_t=transposed, num_nodes=SIZE),
        "adj_t by rows": SimpleNamespace(adj_t=transposed.coalesce().to_sparse_csr()),
        "SparseTensor": SimpleNamespace(adj_t=SimpleNamespace(to_scipy=lambda: matrix.T)),
        "scipy": matrix.tocsr(),
        "networkx": ordered,
        "table": {"source": INDEX[0], "target": INDEX[1]},
    }


HOLDERS = ["itself", "edge_index", "list", "tensor", "Data", "adj_t", "adj_t by rows", "SparseTensor", "scipy"]


@pytest.mark.parametrize("kind", [*HOLDERS, "networkx", "table"])
def test_whatever_holds_a_graph_is_taken_for_one(kind):
    graph = as_graph(holders()[kind], num_nodes=SIZE)
    assert rows(graph) == ROWS


def test_what_holds_no_graph_is_refused():
    with pytest.raises(ns.InvalidInputError, match=r"`graph` must be a napsets\.Graph; got str"):
        as_graph("edges.csv")
    with pytest.raises(ns.InvalidInputError, match=r"`edge_index` must have shape \(2, edges\)"):
        as_graph(np.ones((5, 5), dtype=int), num_nodes=5)
