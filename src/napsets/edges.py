"""Edges as other libraries hold them, and the compressed sparse rows that they become.

Each library's graph turns into an `EdgeList`: two columns of node ids, and the lengths of the edges if they have any.
`EdgeList.rows` checks the ids and sorts the edges into rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, as_array, as_column, check_integers
from napsets.checks.compressed import (
    WeightsAre,
    WeightsMean,
    check_lengths,
    check_weights_are,
    id_dtype,
    lengths_from,
    weights_mean,
)
from napsets.checks.frames import find_rows
from napsets.checks.values import Record, check_count, check_list, check_progress, check_threads, plain, shown
from napsets.errors import InvalidInputError, imported, warn
from napsets.features import check_features, nearest_nodes
from napsets.kernels.threads import Progress
from napsets.other_graphs import PATHS, Metapaths, check_whole, is_dgl, is_hetero, is_igraph, typed_edges

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

_MOST_NODES = 1 << 40  # the rows of more could not be addressed
_MANY_NODES = 1 << 28  # rows of 2 GiB


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges as two columns of node ids."""

    name: str  #: the argument that they came in, for messages
    #: Integers of any width, not yet checked.
    source: AnyArray
    target: AnyArray
    num_nodes: int | None = None  #: number of nodes; None for the largest id plus one
    lengths: FloatArray | None = None  #: the length of each edge, float64
    directed: bool = False  #: whether they come from a directed graph
    #: Whether such a holder of graphs has an undirected edge in both directions, so that a single one has a
    #: direction.
    both_ways: bool = False

    def warn_of_direction(self, stored: int) -> None:
        """Warn that directions are lost, if an undirected graph of these edges has more entries than edges."""
        if self.both_ways and np.count_nonzero(self.source != self.target) < stored:
            warn(
                f"`{self.name}` is not symmetric: it has edges without a reverse edge, which are followed both ways. "
                f"Make the graph with directed=True to follow them one way, or with directed=False if it is undirected"
            )

    def rows(self, directed: bool) -> tuple[IntArray, AnyArray, FloatArray | None]:
        """Return the edges as compressed sparse rows (see `compress`), or an error that names a bad id."""
        name, source, target = self.name, self.source, self.target
        if source.shape != target.shape:
            raise InvalidInputError(f"`{name}` must have as many sources as targets; got {source.size}, {target.size}")
        low = min(int(source.min()), int(target.min())) if source.size else 0
        high = max(int(source.max()), int(target.max())) if source.size else -1
        nodes = high + 1 if self.num_nodes is None else check_count("num_nodes", self.num_nodes, maximum=_MOST_NODES)
        # Ids that leave nearly all numbers out are not numbers from 0: their rows alone would fill the memory.
        if nodes > _MOST_NODES or (self.num_nodes is None and nodes > _MANY_NODES and nodes > 64 * source.size):
            raise InvalidInputError(_too_many(name, nodes))
        if low < 0 or high >= nodes:
            raise InvalidInputError(f"`{name}` must hold ids from 0 to {nodes - 1}; got {low if low < 0 else high}")
        try:
            return compress(source, target, nodes, directed, self.lengths)
        except MemoryError as error:
            raise InvalidInputError(_too_many(name, nodes)) from error

    @classmethod
    def from_index(
        cls,
        edge_index: ArrayLike,
        num_nodes: int | None = None,
        lengths: ArrayLike | None = None,
        strengths: ArrayLike | None = None,
    ) -> EdgeList:
        """Return the edges of a (2, m) array of sources and targets; see `Graph.from_edge_index`."""
        array = check_integers("edge_index", edge_index, ndim=2)
        if array.shape[0] != 2:
            hint = " Pass its transpose, .T, if it has one edge per row." if array.shape[1] == 2 else ""
            raise InvalidInputError(f"`edge_index` must have shape (2, edges); got {array.shape}.{hint}")
        return cls("edge_index", array[0], array[1], num_nodes, lengths_from(lengths, strengths, array.shape[1]))

    @classmethod
    def from_features(cls, features: object, k: int, threads: int | None, progress: bool | Progress | None) -> EdgeList:
        """Return the edges from each node to those with the most similar features; see `Graph.from_features`."""
        table, neighbours = check_features("features", features), check_count("k", k, minimum=1)
        nearest = nearest_nodes(table, neighbours, threads=check_threads(threads), progress=check_progress(progress))
        source, target = np.repeat(np.arange(nearest.shape[0]), nearest.shape[1]), nearest.ravel()
        return cls("features", source[target >= 0], target[target >= 0], nearest.shape[0])

    @classmethod
    def from_scipy(
        cls, adjacency: scipy.sparse.sparray | scipy.sparse.spmatrix, weights_are: WeightsMean | None = None
    ) -> EdgeList:
        """Return the edges of a square SciPy sparse matrix; see `Graph.from_scipy`."""
        shape = getattr(adjacency, "shape", None)
        if not hasattr(adjacency, "tocoo") or shape is None or len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInputError(
                f"`adjacency` must be a square SciPy sparse matrix; got {type(adjacency).__name__} of shape {shape}. "
                f"Pass a dense one as scipy.sparse.csr_array(adjacency)."
            )
        coo = adjacency.tocoo()
        source, target, values = coo.row, coo.col, coo.data
        if not (values != 0).all():
            kept = values != 0
            source, target, values = source[kept], target[kept], values[kept]
        meaning = weights_mean("adjacency", weights_are, values)
        lengths = None if meaning is None else check_lengths("adjacency", values, values.size, weights_are=meaning)
        return cls("adjacency", source, target, int(shape[0]), lengths, both_ways=True)

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        weight: str | None = None,
        weights_are: WeightsAre = "lengths",
        ids: AnyArray | None = None,
    ) -> EdgeList:
        """Return the edges of a NetworkX graph, numbered as `ids` or else as its nodes; see `Graph.from_networkx`."""
        if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
            raise InvalidInputError(f"`graph` must be a NetworkX graph; got {type(graph).__name__}")
        position = {node: i for i, node in enumerate(graph.nodes if ids is None else ids.tolist())}
        pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        lengths = None
        if weight is not None:
            values = [value for _, _, value in graph.edges(data=weight)]
            if any(value is None for value in values):
                raise InvalidInputError(f"`weight` must name an attribute of every edge; some have no {shown(weight)}")
            meaning = check_weights_are(weights_are) or "lengths"
            lengths = check_lengths("weight", np.array(values or np.empty(0)), len(values), weights_are=meaning)
        return cls("graph", pairs[:, 0], pairs[:, 1], len(position), lengths, bool(graph.is_directed()))

    @classmethod
    def from_igraph(cls, graph: Any, weight: str | None = None, weights_are: WeightsAre = "lengths") -> EdgeList:
        """Return the edges of an igraph graph; see `Graph.from_igraph`."""
        if not is_igraph(graph):
            raise InvalidInputError(f"`graph` must be an igraph graph; got {type(graph).__name__}")
        pairs = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
        lengths = None
        if weight is not None:
            if weight not in graph.es.attributes():
                raise InvalidInputError(f"`weight` must name an attribute of every edge; none has {shown(weight)}")
            meaning = check_weights_are(weights_are) or "lengths"
            lengths = check_lengths("weight", np.array(graph.es[weight]), pairs.shape[0], weights_are=meaning)
        return cls("graph", pairs[:, 0], pairs[:, 1], graph.vcount(), lengths, bool(graph.is_directed()))

    @classmethod
    def from_dgl(cls, graph: Any) -> EdgeList:
        """Return the edges of a DGL graph with nodes and edges of one type."""
        if len(graph.ntypes) != 1 or len(graph.canonical_etypes) != 1:
            raise InvalidInputError(
                f"`graph` has nodes of types {', '.join(graph.ntypes)} and edges of {len(graph.canonical_etypes)} "
                f"types: take the edges that count with napsets.Graph.from_edge_index(torch.stack(graph.edges("
                f"etype=...)), graph.num_nodes(...))"
            )
        source, target = (check_integers("graph.edges()", ends) for ends in graph.edges())
        return cls("graph", source, target, graph.num_nodes(), both_ways=True)

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        weights_are: WeightsMean | None = None,
        node_type: str | None = None,
        metapaths: Metapaths = (),
    ) -> EdgeList:
        """Return the edges of a PyTorch Geometric ``Data`` or ``HeteroData``; see `Graph.from_pyg`."""
        check_whole("data", data)
        if is_hetero(data):
            if weights_are is not None:
                raise InvalidInputError("`weights_are` must be left out for a HeteroData, whose edges have no lengths")
            return cls("data", *typed_edges(data, node_type, metapaths), both_ways=True)
        if node_type is not None or check_list("metapaths", metapaths, PATHS):
            raise InvalidInputError("`node_type` and `metapaths` must be left out where all nodes have the same type")
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None:
            return cls._from_transposed(data, weights_are)
        # Unless weights_are is given, edge attributes are features, not weights.
        names = ("edge_weight",) if weights_are is None else ("edge_weight", "edge_attr")
        name = next((name for name in names if getattr(data, name, None) is not None), None)
        values = np.empty(0) if name is None else as_array(f"data.{name}", getattr(data, name))
        weights: Record = {}
        meaning = weights_mean(f"data.{name}", weights_are, values)
        if meaning is not None:
            if name is None:
                raise InvalidInputError(f"`data` must have an `edge_weight`; {type(data).__name__} has none")
            weights[meaning] = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        edges = cls.from_index(edge_index, getattr(data, "num_nodes", None), **weights)
        return replace(edges, name="data.edge_index", both_ways=True)

    @classmethod
    def _from_transposed(cls, data: Any, weights_are: WeightsMean | None) -> EdgeList:
        """Return the edges of ``data.adj_t``, whose rows are the targets."""
        transposed = getattr(data, "adj_t", None)
        if transposed is None:
            raise InvalidInputError(
                f"`data` must have an `edge_index` or an `adj_t`; {type(data).__name__} has neither"
            )
        if not hasattr(transposed, "to_sparse_coo"):  # torch_sparse's, not torch's own
            return replace(cls.from_scipy(transposed.to_scipy().T, weights_are), name="data.adj_t")
        edges = cls._from_tensor("data.adj_t", transposed, weights_are)
        return replace(edges, source=edges.target, target=edges.source)

    @classmethod
    def _from_tensor(cls, name: str, matrix: Any, weights_are: WeightsMean | None) -> EdgeList:
        """Return the edges of a sparse tensor of torch, whose rows are the sources."""
        entries = matrix.to_sparse_coo().coalesce()
        source, target = (as_array(name, ends) for ends in entries.indices())
        values, lengths = as_array(name, entries.values()), None
        meaning = weights_mean(name, weights_are, values)
        if meaning is not None:
            lengths = check_lengths(name, values, source.size, weights_are=meaning)
        return cls(name, source, target, int(matrix.shape[0]), lengths, both_ways=True)

    @classmethod
    def from_table(
        cls,
        table: Any,
        num_nodes: int | None = None,
        weights_are: WeightsAre | None = None,
        ids: AnyArray | None = None,
    ) -> EdgeList:
        """Return the edges of a table, whose ends are ids if `ids` are given; see `Graph.from_table`."""
        meaning = check_weights_are(weights_are)
        columns = _columns(table)
        names = list(columns)
        if {"source", "target"} <= set(names):
            names = ["source", "target"]
        elif len(names) != 2:
            raise InvalidInputError(
                f"`table` must have the columns source and target, or just two; got {', '.join(map(str, names))}"
            )
        source, target = (_ends(f"table[{name!r}]", columns[name], ids) for name in names)
        lengths = None
        if meaning is not None:
            if "weight" not in columns:
                raise InvalidInputError(f"`table` must have the column weight; it has {', '.join(map(str, columns))}")
            lengths = check_lengths("table['weight']", columns["weight"], source.size, weights_are=meaning)
        return cls("table", source, target, num_nodes, lengths)

    @classmethod
    def from_any(cls, graph: Any, num_nodes: int | None = None, ids: AnyArray | None = None) -> EdgeList | None:
        """Return the edges of any supported graph object, None if it is not supported; see `as_graph`."""
        check_whole("graph", graph)
        if str(getattr(graph, "layout", "")).startswith("torch.sparse"):
            return cls._from_tensor("graph", graph, None)
        if is_dgl(graph):
            return cls.from_dgl(graph)
        if is_igraph(graph):
            return cls.from_igraph(graph)
        if is_hetero(graph):
            return cls.from_pyg(graph)
        if getattr(graph, "edge_index", None) is not None or getattr(graph, "adj_t", None) is not None:
            return cls.from_pyg(graph)
        if hasattr(graph, "tocoo"):
            return cls.from_scipy(graph)
        if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
            return cls.from_networkx(graph, ids=_known_to(graph, ids))
        if hasattr(graph, "__arrow_c_stream__") or isinstance(graph, Mapping):
            return cls.from_table(graph, num_nodes, ids=ids)
        if isinstance(graph, list | tuple) or hasattr(graph, "__array__"):
            return cls.from_index(graph, num_nodes)
        return None


def _ends(name: str, column: AnyArray, ids: AnyArray | None) -> AnyArray:
    """Return the positions of nodes that a column of a table names; without ids of its type, numbers are positions."""
    text = (
        column.dtype.kind in "UO"
        and column.ndim == 1
        and column.size > 0
        and all(isinstance(item, str) for item in column.tolist())
    )
    if not text and (ids is None or ids.dtype.kind not in "iu"):
        return check_integers(name, column)
    if ids is None:
        raise InvalidInputError(
            f"`{name}` must hold integers from 0, or be names that calibrate(...) is given as ids= or as the index of "
            f"`probabilities`; got {shown(column[0])}"
        )
    rows = find_rows(ids, column if text else check_integers(name, column))
    lost = rows < 0
    if lost.any():
        first = shown(plain(column[lost][0]))
        raise InvalidInputError(f"`{name}` must hold ids of nodes; {int(lost.sum())} are not among them, {first} first")
    return rows


def _known_to(graph: networkx.Graph, ids: AnyArray | None) -> AnyArray | None:
    """Return the names of all nodes by position, for a NetworkX graph whose nodes are among `ids`, or count them."""
    if ids is None:
        return None
    known, names = set(ids.tolist()), list(graph.nodes)
    lost = [name for name in names if name not in known]
    if not lost:
        return ids
    if all(isinstance(name, int) and 0 <= name < ids.size for name in names):
        return np.arange(ids.size)
    raise InvalidInputError(
        f"`ids` must name the nodes of `graph`; {len(lost)} of these are not among them, {shown(lost[0])} first"
    )


def node_names(graph: Any) -> AnyArray | None:
    """Return the node names of a NetworkX graph, in the order of the nodes 0..n−1; None for other graphs."""
    if not (hasattr(graph, "is_directed") and hasattr(graph, "nodes") and hasattr(graph, "edges")):
        return None
    names = np.empty(len(graph.nodes), dtype=object)
    names[:] = list(graph.nodes)
    whole = all(isinstance(name, int) for name in names)
    return names.astype(np.int64) if whole else names


def _too_many(name: str, nodes: int) -> str:
    return (
        f"`{name}` must hold ids from 0 to the number of nodes less one; {shown(nodes)} nodes do not fit into memory. "
        f"Number the nodes from 0 first (numpy.unique(ids, return_inverse=True) does)."
    )


def _columns(table: Any) -> Mapping[str, AnyArray]:
    if isinstance(table, Mapping):
        return {name: as_column(f"table[{name!r}]", column) for name, column in table.items()}
    pa = imported("pyarrow", "cli")
    try:
        arrow = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`table` must be a table that Arrow can read; got {type(table).__name__}") from error
    return {name: arrow.column(name).to_numpy() for name in arrow.column_names}


# -- compressed sparse rows --------------------------------------------------------------------------------------------


def compress(
    source: AnyArray,
    target: AnyArray,
    num_nodes: int,
    directed: bool,
    lengths: FloatArray | None = None,
) -> tuple[IntArray, AnyArray, FloatArray | None]:
    """Return offsets, columns and lengths of rows that ascend, without repeats and self-loops; the shortest is kept."""
    from napsets.kernels import csr

    return csr.compress(source, target, num_nodes, directed, lengths, id_dtype(num_nodes))
