"""First lines with graphs of all kinds.

What a researcher writes without the manual works, or says in one sentence what to write instead. The file is typed
like a user's own strict project: mypy --strict and pyright read it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse as sp

import napsets as ns
from first_lines import A_WARNING_IS_AN_ERROR, GRAPH, IDS, KNOWN, NAMES, REST, SIZE, P, Y, frame

#: A guess that works says nothing.
pytestmark = A_WARNING_IS_AN_ERROR


def test_weights_that_would_be_lost_are_said() -> None:
    adjacency = GRAPH.to_scipy()
    ns.Graph.from_scipy(adjacency)
    ns.Graph.from_scipy(adjacency * 3.0)  # all edges alike: nothing is lost
    weights = sp.csr_array(adjacency.astype(float) * (1 + np.arange(SIZE) % 3))
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` has entries that differ.*weights_are='strengths'"):
        ns.Graph.from_scipy(weights, directed=True)
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` has entries that differ"):
        ns.NAPS(pool=10).calibrate(sp.csr_array(weights + weights.T), P, Y, KNOWN)
    ns.Graph.from_scipy(weights, directed=True, weights_are="ignored")


def test_a_direction_that_would_be_lost_is_said() -> None:
    one_way = sp.csr_array(sp.triu(GRAPH.to_scipy()))
    with pytest.warns(ns.NapsetsWarning, match="`adjacency` is not symmetric.*directed=True"):
        assert not ns.Graph.from_scipy(one_way).directed
    ns.Graph.from_scipy(one_way, directed=False)
    ns.Graph.from_scipy(one_way, directed=True)


def edges_named(names: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    entries = GRAPH.to_scipy().tocoo()
    return {"source": names[entries.coords[0]], "target": names[entries.coords[1]]}


def networkx_named(names: npt.NDArray[Any]) -> Any:
    """The graph with its nodes in another order than the rows."""
    graph = pytest.importorskip("networkx").Graph()
    graph.add_nodes_from(names[np.random.default_rng(3).permutation(SIZE)].tolist())
    graph.add_edges_from(zip(*(column.tolist() for column in edges_named(names).values()), strict=True))
    return graph


@pytest.mark.parametrize("ids", [IDS, IDS + 10_000, NAMES])
def test_graphs_that_name_their_nodes_are_joined_by_the_ids(ids: npt.NDArray[Any]) -> None:
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=ids).predict(ids[REST])
    for graph in (edges_named(ids), pd.DataFrame(edges_named(ids)), networkx_named(ids)):
        assert ns.NAPS(pool=10).calibrate(graph, P, Y, KNOWN, ids=ids).predict(ids[REST]).same_as(expected)
    indexed = ns.NAPS(pool=10).calibrate(pd.DataFrame(edges_named(NAMES)), frame(NAMES), Y, KNOWN)
    assert indexed.predict(NAMES[REST]).same_as(
        ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=NAMES).predict(NAMES[REST])
    )
    other = np.char.add("other-", NAMES) if ids is NAMES else ids + 20_000
    with pytest.raises(ns.InvalidInputError, match=r"`table\['source'\]` must hold ids of nodes; .* not among them"):
        ns.NAPS().calibrate(edges_named(ids), P, Y, KNOWN, ids=other)


def test_nodes_of_networkx_that_could_be_in_two_orders_are_refused() -> None:
    numbered = networkx_named(np.arange(SIZE))
    with pytest.raises(ns.InvalidInputError, match=r"row i could be node i as well as the i-th.*ids=range\(n\)"):
        ns.NAPS(pool=10).calibrate(numbered, P, Y, KNOWN)
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    by_number = ns.NAPS(pool=10).calibrate(numbered, P, Y, KNOWN, ids=np.arange(SIZE))
    by_index = ns.NAPS(pool=10).calibrate(numbered, frame().iloc[::-1], Y, KNOWN)
    assert by_number.predict(REST).same_as(expected)
    assert by_index.predict(REST).same_as(expected)


def test_the_nodes_of_a_networkx_graph_are_called_by_their_names() -> None:
    graph = networkx_named(NAMES)
    order = np.array([NAMES.tolist().index(name) for name in graph.nodes])
    naps = ns.NAPS(pool=10).calibrate(graph, P[order], Y[order], KNOWN[order])
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN, ids=NAMES).predict(NAMES[REST])
    assert naps.predict(NAMES[REST]).same_as(expected)


def test_a_sparse_tensor_is_a_graph() -> None:
    torch = pytest.importorskip("torch")
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    sparse = torch.tensor(GRAPH.to_scipy().toarray()).to_sparse_coo()
    assert ns.NAPS(pool=10).calibrate(sparse, P, Y, KNOWN).predict(REST).same_as(expected)


def test_masks_of_several_splits_say_how_to_take_one() -> None:
    with pytest.raises(ns.InvalidInputError, match=r"Take one split of them, mask\[:, 0\]"):
        ns.SplitConformal().calibrate(P, Y, np.stack([KNOWN] * 10, axis=1))


def pyg(**attributes: Any) -> Any:
    data = pytest.importorskip("torch_geometric.data").Data
    torch = pytest.importorskip("torch")
    row = np.repeat(np.arange(SIZE), GRAPH.degrees)
    index = torch.tensor(np.stack([row, GRAPH.indices.astype(np.int64)]))
    masks = {"train_mask": torch.tensor(np.arange(SIZE) % 3 == 0), "val_mask": torch.tensor(np.arange(SIZE) % 3 == 1)}
    return data(edge_index=index, num_nodes=SIZE, y=torch.tensor(Y), **masks, **attributes)


def test_a_data_of_pytorch_geometric_is_a_graph() -> None:
    torch = pytest.importorskip("torch")
    data = pyg()
    p = torch.tensor(P, dtype=torch.float32)
    auto = ns.Auto(alpha=0.1).calibrate(data, p, data.y, data.val_mask)
    others = ~(data.train_mask | data.val_mask)
    assert len(auto.predict(others)) == int(others.sum())
    with pytest.warns(ns.NapsetsWarning, match="234 of the 234 nodes to predict are in `train_mask`"):
        auto.predict(data.train_mask)
    with pytest.warns(ns.NapsetsWarning, match=r"`data\.edge_weight` has entries that differ"):
        ns.NAPS(pool=10).calibrate(pyg(edge_weight=torch.rand(GRAPH.num_edges)), p, data.y, data.val_mask)
    one_way = pyg()
    one_way.edge_index = one_way.edge_index[:, one_way.edge_index[0] < one_way.edge_index[1]]
    with pytest.warns(ns.NapsetsWarning, match=r"`data\.edge_index` is not symmetric"):
        ns.NAPS(pool=10).calibrate(one_way, p, data.y, data.val_mask)


def test_labels_that_trained_the_model_do_not_calibrate_in_silence() -> None:
    data = pyg()
    with pytest.warns(ns.NapsetsWarning, match=r"`calibration` holds 234 of the nodes of `train_mask`.*val_mask"):
        ns.Auto(alpha=0.1).calibrate(data, P, data.y, data.train_mask)
    with pytest.warns(ns.NapsetsWarning, match="nodes of `train_mask`"):
        ns.compare(data, P, data.y, data.train_mask, data.val_mask, methods=["split"])


def test_sets_of_a_model_are_those_of_auto() -> None:
    torch = pytest.importorskip("torch")

    class Known(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, data: Any) -> Any:
            return torch.log(torch.tensor(P))

    data = pyg()
    sets = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, alpha=0.2)
    auto = ns.Auto(alpha=0.2).calibrate(GRAPH, P, Y, np.asarray(data.val_mask))
    assert sets.same_as(auto.predict(np.asarray(data.train_mask)))
    named = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, method="daps")
    own = ns.gnn.predict_sets(Known(), data, data.val_mask, data.train_mask, method=ns.Auto(prefer="small"))
    assert len(named) == len(own) == len(sets)


def test_lengths_that_are_not_there_are_missed() -> None:
    with pytest.warns(ns.NapsetsWarning, match=r"the edges of `graph` have no lengths.*every edge counts as 1"):
        ns.make_method("naps-lengths").calibrate(GRAPH, P, Y, KNOWN)
    with pytest.warns(ns.NapsetsWarning, match="every edge counts as 1"):
        ns.Method(localiser=ns.PathLengths(2.0)).calibrate(GRAPH, P, Y, KNOWN)


def test_a_graph_of_igraph_is_a_graph() -> None:
    igraph = pytest.importorskip("igraph")
    theirs = igraph.Graph(n=SIZE, edges=np.stack(GRAPH.to_scipy().nonzero(), axis=1).tolist())
    assert ns.Graph.from_igraph(theirs) == GRAPH
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    assert ns.NAPS(pool=10).calibrate(theirs, P, Y, KNOWN).predict(REST).same_as(expected)
    far = igraph.Graph(n=3, edges=[(0, 1), (2, 1)], edge_attrs={"km": [2.0, 4.0]}, directed=True)
    one_way = ns.Graph.from_igraph(far, weight="km")
    assert one_way.directed
    assert one_way == ns.Graph.from_edge_index([[0, 2], [1, 1]], 3, directed=True, lengths=[2.0, 4.0])
    with pytest.raises(ns.InvalidInputError, match="`weight` must name an attribute of every edge; none has 'miles'"):
        ns.Graph.from_igraph(far, weight="miles")


#: Papers cite each other, and authors write them: 0 and 2 have an author in common, 1 and 2 another one.
CITES = np.array([[0, 1, 1], [1, 0, 2]])
WRITES = np.array([[0, 0, 1, 1], [0, 2, 1, 2]])
WRITTEN = [("paper", "by", "author"), ("author", "writes", "paper")]
JOINED = ns.Graph.from_edge_index([[0, 1, 0, 1], [1, 2, 2, 2]], 4)


def hetero(**stores: Any) -> Any:
    torch, data = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data").HeteroData()
    data["paper"].x, data["author"].x = torch.zeros(4, 1), torch.zeros(2, 1)
    data["paper", "cites", "paper"].edge_index = torch.tensor(CITES)
    data["author", "writes", "paper"].edge_index = torch.tensor(WRITES)
    data["paper", "by", "author"].edge_index = torch.tensor(WRITES[::-1].copy())
    return data


class DGLGraph:
    """A stand-in for DGL's graph of the same name, of which there is no wheel that runs with the torch of the tests.

    It has the attributes that are read, with DGL's names, arguments and values.
    """

    def __init__(self, edges: dict[tuple[str, str, str], Any], sizes: dict[str, int]) -> None:
        self._edges, self._sizes = edges, sizes
        self.ntypes, self.canonical_etypes = sorted(sizes), sorted(edges)

    def num_nodes(self, ntype: str | None = None) -> int:
        return sum(self._sizes.values()) if ntype is None else self._sizes[ntype]

    def edges(self, form: str = "uv", order: str = "eid", etype: Any = None) -> Any:
        torch = pytest.importorskip("torch")
        (only,) = self._edges if etype is None else [etype]
        return tuple(torch.tensor(ends) for ends in self._edges[only])


def test_a_graph_of_dgl_is_a_graph() -> None:
    theirs = DGLGraph({("_N", "_E", "_N"): np.stack(GRAPH.to_scipy().nonzero())}, {"_N": SIZE})
    expected = ns.NAPS(pool=10).calibrate(GRAPH, P, Y, KNOWN).predict(REST)
    assert ns.NAPS(pool=10).calibrate(theirs, P, Y, KNOWN).predict(REST).same_as(expected)
    typed = DGLGraph(
        {("paper", "cites", "paper"): CITES, ("author", "writes", "paper"): WRITES}, {"paper": 4, "author": 2}
    )
    with pytest.raises(ns.InvalidInputError, match="nodes of types author, paper and edges of 2 types"):
        ns.NAPS().calibrate(typed, P, Y, KNOWN)


def test_one_type_of_nodes_of_several_is_a_graph_with_the_edges_between_them() -> None:
    cited = ns.Graph.from_edge_index(CITES, 4)
    assert ns.Graph.from_pyg(hetero(), node_type="paper", directed=False) == cited
    with pytest.warns(ns.NapsetsWarning, match="`data` is not symmetric"):
        ns.Graph.from_pyg(hetero(), node_type="paper")


def test_metapaths_join_nodes_of_one_type() -> None:
    both = ns.Graph.from_pyg(hetero(), node_type="paper", metapaths=[WRITTEN], directed=False)
    assert both == JOINED
    transforms = pytest.importorskip("torch_geometric.transforms")
    added = transforms.AddMetaPaths([WRITTEN], drop_orig_edge_types=True)(hetero())
    assert ns.Graph.from_pyg(added, node_type="paper") == ns.Graph.from_edge_index([[0, 1], [2, 2]], 4)
    authors = ns.Graph.from_pyg(hetero(), node_type="author", metapaths=[WRITTEN[::-1]])
    assert authors == ns.Graph.from_edge_index([[0], [1]], 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ns.Graph.from_pyg(hetero()), r"has nodes of 2 types, paper, author.*from_pyg\(.*node_type='paper'\)"),
        (lambda: ns.NAPS().calibrate(hetero(), P, Y, KNOWN), r"from_pyg\(\.\.\., node_type='paper'\)"),
        (lambda: ns.Graph.from_pyg(hetero(), node_type="papers"), "`node_type` must be one of paper, author; got"),
        (lambda: ns.Graph.from_pyg(hetero(), node_type="author"), "no edges between nodes of type 'author'; pass meta"),
        (
            lambda: ns.Graph.from_pyg(hetero(), node_type="paper", metapaths=[[("paper", "rev", "author")]]),
            r"`metapaths` must hold edge types: .*; got \('paper', 'rev', 'author'\)",
        ),
        (
            lambda: ns.Graph.from_pyg(hetero(), node_type="paper", metapaths=[WRITTEN[::-1]]),
            "`metapaths` must start and end at 'paper', each step where the one before it ends",
        ),
        (lambda: ns.Graph.from_pyg(hetero(), weights_are="lengths"), "`weights_are` must be left out for a HeteroData"),
    ],
)  # fmt: skip
def test_what_several_types_of_nodes_need_is_said(make: Any, message: str) -> None:
    with pytest.raises(ns.InvalidInputError, match=message):
        make()


def test_batches_are_no_graph() -> None:
    loaders = pytest.importorskip("torch_geometric.loader")
    batches = [pyg(), pyg()]
    loader = loaders.NeighborLoader(pyg(), num_neighbors=[2], batch_size=10)
    for graph, message in [
        (batches, r"must be one graph; got a list of 2\. Join those .*Batch\.from_data_list"),
        (loader, "must hold all edges at once; a NeighborLoader gives them in batches.*Pass the graph"),
        (loaders.DataLoader(batches, batch_size=2), "must hold all edges at once; a DataLoader"),
    ]:
        with pytest.raises(ns.InvalidInputError, match=f"`graph` {message}"):
            ns.NAPS(pool=10).calibrate(graph, P, Y, KNOWN)
        with pytest.raises(ns.InvalidInputError, match=f"`data` {message}"):
            ns.Graph.from_pyg(graph)
