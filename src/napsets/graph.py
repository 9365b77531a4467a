"""Graph: an immutable adjacency in compressed sparse rows, and its constructors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    check_index,
    check_integers,
    check_node,
    check_table,
    frozen,
    sealed,
)
from napsets.checks.compressed import Direction, WeightsAre, WeightsMean, check_compressed, check_direction, id_dtype
from napsets.checks.values import check_flag
from napsets.edges import EdgeList, compress
from napsets.errors import InvalidInputError
from napsets.kernels.threads import Progress
from napsets.other_graphs import Metapaths, constructor_hint

if TYPE_CHECKING:
    import networkx
    import scipy.sparse


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An immutable graph on the nodes 0..n−1.

    Create one with `from_edge_index`, `from_scipy`, `from_networkx`, `from_igraph`, `from_pyg`, `from_table` or
    `from_features`. Duplicate edges are merged and self-loops dropped. Edges are undirected unless
    ``directed=True``; then a node's neighbours are the targets of the edges that leave it. Edges may have lengths; of
    several between two nodes the shortest is kept, in an undirected graph for both directions.

    ``Graph(indptr, indices)`` takes compressed sparse rows: ascending, without duplicates, and with every
    edge in both rows unless ``directed=True``. Arrays that their owner could still write to are copied.

    Attributes
    ----------
    indptr : numpy.ndarray
        int64 offsets of shape ``(num_nodes + 1,)``.
    indices : numpy.ndarray
        Neighbours of node i at ``indices[indptr[i]:indptr[i + 1]]``, ascending, without i; int32 while ids fit.
    directed : bool
        Whether edges go one way; if not, every edge is stored in both directions.
    original_ids : numpy.ndarray or None
        For a subgraph: the id that each node had in the graph it was taken from.
    lengths : numpy.ndarray or None
        The length of each entry of `indices`, float64 and positive; None if edges have no lengths.
    """

    indptr: IntArray
    indices: AnyArray
    _: KW_ONLY
    directed: bool = False
    original_ids: IntArray | None = None
    lengths: FloatArray | None = None

    def __post_init__(self) -> None:
        check_flag("directed", self.directed)
        indptr, indices, lengths = check_compressed(self.indptr, self.indices, self.directed, self.lengths)
        ids, nodes = self.original_ids, indptr.size - 1
        if ids is not None:
            ids = check_integers("original_ids", ids)
            if ids.size != nodes:
                raise InvalidInputError(f"`original_ids` must have one entry per node, {nodes}; got {ids.size}")
            ids = frozen(ids)
        self._keep(indptr=frozen(indptr), indices=frozen(indices), original_ids=ids, lengths=lengths)

    def _keep(self, **arrays: AnyArray | None) -> None:
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @classmethod
    def _from_rows(
        cls,
        indptr: IntArray,
        indices: AnyArray,
        directed: bool,
        original_ids: IntArray | None = None,
        lengths: FloatArray | None = None,
    ) -> Graph:
        """Make a graph of arrays that are valid by construction and not shared, without checks."""
        graph = object.__new__(cls)
        object.__setattr__(graph, "directed", directed)
        arrays = {"indptr": indptr, "indices": indices, "original_ids": original_ids, "lengths": lengths}
        graph._keep(**{name: None if array is None else sealed(array) for name, array in arrays.items()})
        return graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of stored entries: an undirected edge counts twice, as in the paper's Table 1."""
        return self.indices.size

    @property
    def degrees(self) -> IntArray:
        """Number of neighbours of each node."""
        return np.diff(self.indptr)

    def neighbours(self, node: int) -> AnyArray:
        """Neighbours of one node, ascending."""
        node = check_node("node", node, self.num_nodes)
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        more = "" if self.lengths is None else ", with lengths"
        return f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} stored edges, {kind}{more})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return all(np.array_equal(vars(self)[name], vars(other)[name]) for name in ("indptr", "indices", "lengths"))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[object, ...]]:
        """Seal the arrays in another process too: unpickled ones would be writeable."""
        return type(self)._from_rows, (self.indptr, self.indices, self.directed, self.original_ids, self.lengths)

    # -- constructors ------------------------------------------------------------------------------------------

    @classmethod
    def from_edge_index(
        cls,
        edge_index: ArrayLike,
        num_nodes: int | None = None,
        *,
        directed: bool = False,
        lengths: ArrayLike | None = None,
        strengths: ArrayLike | None = None,
    ) -> Graph:
        """Make a graph from a (2, m) array of sources and targets.

        Parameters
        ----------
        edge_index : array of shape (2, m)
            Integer ids. For an undirected graph an edge may be listed in one direction or in both.
        num_nodes : int, optional
            Number of nodes. By default the largest id plus one, which misses isolated nodes at the end.
        directed : bool
            Store every edge in its own direction only; by default in both.
        lengths, strengths : array of shape (m,), optional
            The length of each edge, or its strength, which gives the length 1 / strength. Must be positive: a length
            of 0 would make its two ends the same node, and a strength of 0 means no edge.

        Examples
        --------
        >>> Graph.from_edge_index([[0, 1, 1], [1, 0, 2]], num_nodes=4)
        Graph(4 nodes, 4 stored edges, undirected)
        >>> Graph.from_edge_index([[0, 1], [1, 0]], num_nodes=2, lengths=[3, 2]).lengths
        array([2., 2.])
        """
        return cls._from_edges(EdgeList.from_index(edge_index, num_nodes, lengths, strengths), directed)

    @classmethod
    def from_scipy(
        cls,
        adjacency: scipy.sparse.sparray | scipy.sparse.spmatrix,
        *,
        directed: bool | None = None,
        weights_are: WeightsMean | None = None,
    ) -> Graph:
        """Make a graph from a square SciPy sparse matrix: an entry in row u, column v that is not 0 is an edge u → v.

        Parameters
        ----------
        adjacency : sparse matrix or array
            The matrix.
        directed : bool, optional
            As in `from_edge_index`. By default edges go both ways, with a warning where the matrix is not symmetric.
        weights_are : {"lengths", "strengths", "ignored"}, optional
            The meaning of the entries. By default they are not used, with a warning if they differ.
        """
        return cls._from_edges(EdgeList.from_scipy(adjacency, weights_are), directed)

    @classmethod
    def from_networkx(
        cls, graph: networkx.Graph, *, weight: str | None = None, weights_are: WeightsAre = "lengths"
    ) -> Graph:
        """Make a graph from a NetworkX graph; node i is the i-th of ``graph.nodes``, directed if that is.

        Parameters
        ----------
        graph : networkx.Graph
            Any of its kinds.
        weight : str, optional
            The edge attribute with the lengths, as in NetworkX's own shortest paths; all edges need it. By default
            edges have no lengths.
        weights_are : {"lengths", "strengths"}
            The meaning of that attribute.
        """
        return cls._from_edges(EdgeList.from_networkx(graph, weight, weights_are))

    @classmethod
    def from_igraph(cls, graph: Any, *, weight: str | None = None, weights_are: WeightsAre = "lengths") -> Graph:
        """Make a graph from an igraph graph; node i is vertex i, directed if that is.

        Parameters
        ----------
        graph : igraph.Graph
            The graph.
        weight, weights_are
            As in `from_networkx`.
        """
        return cls._from_edges(EdgeList.from_igraph(graph, weight, weights_are))

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        node_type: str | None = None,
        metapaths: Metapaths = (),
        directed: bool | None = None,
        weights_are: WeightsMean | None = None,
    ) -> Graph:
        """Make a graph from a ``Data`` or ``HeteroData`` of PyTorch Geometric, or from anything like them.

        A ``Data`` has ``edge_index`` and ``num_nodes``, or ``adj_t``: a sparse tensor of torch or of torch_sparse whose
        rows are the targets of edges.

        Parameters
        ----------
        data : Data or HeteroData
            The graph.
        node_type : str, optional
            The nodes of a ``HeteroData`` that are to be predicted. The graph has the edges between them.
        metapaths : sequence of sequences of edge types, optional
            Paths that join two of these nodes by an edge, as in ``torch_geometric.transforms.AddMetaPaths``:
            ``[[("paper", "to", "author"), ("author", "to", "paper")]]`` joins papers with a common author.
        directed, weights_are
            As in `from_scipy`. With `weights_are`, ``edge_weight`` counts, or ``edge_attr`` if it has one number per
            edge, or the entries of ``adj_t``.
        """
        return cls._from_edges(EdgeList.from_pyg(data, weights_are, node_type, metapaths), directed)

    @classmethod
    def from_table(
        cls,
        table: Any,
        num_nodes: int | None = None,
        *,
        directed: bool = False,
        weights_are: WeightsAre | None = None,
    ) -> Graph:
        """Make a graph from a table with the columns ``source`` and ``target``, or with just two columns.

        Parameters
        ----------
        table : mapping of columns, or any object Arrow can read
            A dictionary of arrays, a pandas or Polars frame, a PyArrow table, a DuckDB result: anything with
            ``__arrow_c_stream__``. Ids are integers from 0.
        num_nodes, directed
            As in `from_edge_index`.
        weights_are : {"lengths", "strengths"}, optional
            The meaning of the column ``weight``; by default that column is not used.
        """
        return cls._from_edges(EdgeList.from_table(table, num_nodes, weights_are), directed)

    @classmethod
    def from_features(
        cls,
        features: ArrayLike | scipy.sparse.sparray,
        k: int = 10,
        *,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Graph:
        """Make an undirected graph that joins every node to the k nodes with the most similar features.

        Features are an array or a SciPy sparse matrix with one row of numbers per node. Similarity is the cosine, of
        which only values above 0 count (see `napsets.features`). The search is exact, in nodes² × columns operations.
        """
        return cls._from_edges(EdgeList.from_features(features, k, threads, progress), False)

    @classmethod
    def _from_edges(cls, edges: EdgeList, directed: bool | None = None) -> Graph:
        one_way = edges.directed if directed is None else check_flag("directed", directed)
        indptr, indices, lengths = edges.rows(one_way)
        if directed is None:
            edges.warn_of_direction(indices.size)
        return cls._from_rows(indptr, indices, one_way, lengths=lengths)

    # -- derived graphs ----------------------------------------------------------------------------------------

    @cached_property
    def reverse(self) -> Graph:
        """The graph whose edges go the other way, made once; an undirected graph is its own."""
        if not self.directed:
            return self
        from napsets.kernels.csr import reversed_rows

        indptr, indices, lengths = reversed_rows(self.indptr, self.indices, self.lengths)
        return Graph._from_rows(indptr, indices, True, self.original_ids, lengths)

    @cached_property
    def both_ways(self) -> Graph:
        """The undirected graph that has every edge in both directions, made once; an undirected graph is its own."""
        if not self.directed:
            return self
        source = np.repeat(np.arange(self.num_nodes, dtype=self.indices.dtype), self.degrees)
        indptr, indices, lengths = compress(source, self.indices, self.num_nodes, False, self.lengths)
        return Graph._from_rows(indptr, indices, False, self.original_ids, lengths)

    def along(self, direction: Direction) -> Graph:
        """Return the graph whose neighbours lie along a direction.

        Parameters
        ----------
        direction : {"out", "in", "both"}
            Along the edges (this graph), against them (`reverse`), or `both_ways`; the same in an undirected graph.
        """
        check_direction(direction)
        return self if direction == "out" else self.reverse if direction == "in" else self.both_ways

    def neighbour_sums(self, values: AnyArray) -> FloatArray:
        """Return the sum of the neighbours' rows of `values`, shape (nodes, width)."""
        from napsets.kernels.csr import neighbour_sums

        return neighbour_sums(self.indptr, self.indices, check_table("values", values, self.num_nodes))

    def neighbour_means(self, values: AnyArray) -> FloatArray:
        """Return the mean of the neighbours' rows of `values`; 0 where there are no neighbours."""
        return self.neighbour_sums(values) / np.maximum(self.degrees, 1)[:, None]

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the subgraph induced on `nodes` (indices or a boolean mask), relabelled 0.. in their order.

        Its `original_ids` lead back to the graph that this chain of subgraphs started from.
        """
        from napsets.kernels.csr import subgraph

        chosen = check_index("nodes", nodes, self.num_nodes, unique=True)
        offsets, indices, lengths = subgraph(self.indptr, self.indices, chosen, self.lengths)
        indices = indices.astype(id_dtype(chosen.size), copy=False)
        ids = chosen if self.original_ids is None else self.original_ids[chosen]
        return Graph._from_rows(offsets, indices, self.directed, ids.copy(), lengths)

    def to_scipy(self, *, lengths: bool = False) -> scipy.sparse.csr_array:
        """Return the adjacency as a SciPy CSR array of ones, or of the edges' lengths."""
        import scipy.sparse

        values: AnyArray = np.ones(self.num_edges, dtype=np.int8)
        if check_flag("lengths", lengths):
            if self.lengths is None:
                raise InvalidInputError("`lengths` must be False for a graph whose edges have none")
            values = self.lengths
        shape = (self.num_nodes, self.num_nodes)
        return scipy.sparse.csr_array((values, self.indices, self.indptr), shape=shape)


def as_graph(graph: object, num_nodes: int | None = None, ids: AnyArray | None = None) -> Graph:
    """Convert any supported object to a graph, undirected unless it is a directed `Graph` or NetworkX graph.

    Parameters
    ----------
    graph : Graph or another library's
        A PyTorch Geometric ``Data`` (with ``edge_index`` or ``adj_t``), an igraph or NetworkX graph, a SciPy sparse
        matrix or a sparse tensor, a table with the columns ``source`` and ``target``, or an ``edge_index`` of shape
        (2, edges).
    num_nodes : int, optional
        How many nodes there are, for an ``edge_index`` or a table.
    ids : array, optional
        What the nodes are called, in the order of their positions: a NetworkX graph and a table name them so.

    Examples
    --------
    >>> as_graph([[0, 1], [1, 2]], num_nodes=4)
    Graph(4 nodes, 4 stored edges, undirected)
    """
    if isinstance(graph, Graph):
        return graph
    edges = EdgeList.from_any(graph, num_nodes, ids)
    return check_graph(graph) if edges is None else Graph._from_edges(edges)


def check_graph(graph: object) -> Graph:
    """Return `graph`, or raise with the constructor to use."""
    if isinstance(graph, Graph):
        return graph
    kind, hint = type(graph), constructor_hint(graph)
    raise InvalidInputError(
        f"`graph` must be a napsets.Graph; got {kind.__name__} of {kind.__module__}. Make one with {hint}."
    )
