"""Graph: an immutable adjacency in compressed sparse rows, and its constructors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    IntArray,
    as_array,
    check_count,
    check_flag,
    check_index,
    check_integers,
    check_node,
    shown,
)
from napsets.checks.frozen import frozen, sealed
from napsets.checks.rows import check_rows, check_symmetry
from napsets.errors import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = ["Graph", "check_graph"]

_MOST_NODES = 1 << 40  # the rows of more could not be addressed
_MANY_NODES = 1 << 28  # rows of 2 GiB


P = ParamSpec("P")
T = TypeVar("T")


def _undirected_too(make: Callable[P, T]) -> Callable[P, T]:
    """Take ``undirected``, the first edition's word, for the opposite of ``directed``."""

    @wraps(make)
    def made(*args: P.args, **settings: P.kwargs) -> T:
        if "undirected" in settings:
            undirected = check_flag("undirected", settings.pop("undirected"))
            message = f"`undirected` is deprecated: say directed={not undirected} for undirected={undirected}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            settings["directed"] = not undirected
        return make(*args, **settings)

    return made


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph on the nodes 0..n−1, never changed once it is made.

    Make one with `from_edge_index`, `from_scipy`, `from_networkx`, `from_pyg` or `from_table`. Duplicate edges
    are merged and self-loops dropped. Edges are undirected unless ``directed=True``; then a node's neighbours
    are the targets of the edges that leave it.

    ``Graph(indptr, indices)`` takes compressed sparse rows as they are: ascending, without repeats, and with every
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
    """

    indptr: IntArray
    indices: npt.NDArray[Any]
    _: KW_ONLY
    directed: bool = False
    original_ids: IntArray | None = None

    def __post_init__(self) -> None:
        indptr = check_integers("indptr", self.indptr).astype(np.int64, copy=False)
        indices = check_integers("indices", self.indices)
        nodes = indptr.size - 1
        if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 0).any():
            raise InvalidInputError(
                f"`indptr` must ascend from 0 to the number of stored edges, {indices.size}; it does not"
            )
        if indices.size:
            low, high = int(indices.min()), int(indices.max())
            if low < 0 or high >= nodes:
                raise InvalidInputError(
                    f"`indices` must hold ids from 0 to {nodes - 1}; got {low if low < 0 else high}"
                )
        # One width for ids and for whatever is indexed by them, whatever width they came in.
        indices = np.ascontiguousarray(indices, dtype=_id_dtype(nodes))
        check_rows(indptr, indices)
        ids = self.original_ids
        if ids is not None:
            ids = check_integers("original_ids", ids)
            if ids.size != nodes:
                raise InvalidInputError(f"`original_ids` must have one entry a node, {nodes}; got {ids.size}")
        check_symmetry(indptr, indices, check_flag("directed", self.directed))
        self._keep(frozen(np.ascontiguousarray(indptr)), frozen(indices), ids if ids is None else frozen(ids))

    def _keep(self, indptr: IntArray, indices: npt.NDArray[Any], original_ids: IntArray | None) -> None:
        for name, array in (("indptr", indptr), ("indices", indices), ("original_ids", original_ids)):
            object.__setattr__(self, name, array)

    @classmethod
    def _made(
        cls, indptr: IntArray, indices: npt.NDArray[Any], directed: bool, original_ids: IntArray | None = None
    ) -> Graph:
        """Make a graph from arrays that are right by construction and nobody else holds, without a look at them."""
        graph = object.__new__(cls)
        object.__setattr__(graph, "directed", directed)
        graph._keep(sealed(indptr), sealed(indices), original_ids if original_ids is None else sealed(original_ids))
        return graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def undirected(self) -> bool:
        """Deprecated: the opposite of `directed`."""
        return not self.directed

    @property
    def num_edges(self) -> int:
        """Number of stored entries: an undirected edge counts twice, as in the paper's Table 1."""
        return int(self.indices.size)

    @property
    def degrees(self) -> IntArray:
        """Number of neighbours of each node."""
        return np.diff(self.indptr)

    def neighbours(self, node: int) -> npt.NDArray[Any]:
        """Neighbours of one node, ascending."""
        node = check_node("node", node, self.num_nodes)
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} stored edges, {kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return np.array_equal(self.indptr, other.indptr) and np.array_equal(self.indices, other.indices)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Seal the arrays in another process too: unpickled ones would be writeable."""
        return type(self)._made, (self.indptr, self.indices, self.directed, self.original_ids)

    # -- constructors ------------------------------------------------------------------------------------------

    @classmethod
    @_undirected_too
    def from_edge_index(cls, edge_index: ArrayLike, num_nodes: int | None = None, *, directed: bool = False) -> Graph:
        """Make a graph from a (2, m) array of sources and targets.

        Parameters
        ----------
        edge_index : array of shape (2, m)
            Integer ids. For an undirected graph an edge may stand in one direction or in both.
        num_nodes : int, optional
            Number of nodes; without it, the largest id plus one, which overlooks isolated nodes at the end.
        directed : bool
            Store every edge as given; by default in both directions.

        Examples
        --------
        >>> Graph.from_edge_index([[0, 1, 1], [1, 0, 2]], num_nodes=4)
        Graph(4 nodes, 4 stored edges, undirected)
        """
        array = check_integers("edge_index", edge_index, ndim=2)
        if array.shape[0] != 2:
            way = " Pass its transpose, .T, if it has one edge a row." if array.shape[1] == 2 else ""
            raise InvalidInputError(f"`edge_index` must have shape (2, edges); got {array.shape}.{way}")
        return cls._from_ends(array[0], array[1], num_nodes, directed, "edge_index")

    @classmethod
    @_undirected_too
    def from_scipy(cls, adjacency: scipy.sparse.sparray | scipy.sparse.spmatrix, *, directed: bool = False) -> Graph:
        """Make a graph from a square SciPy sparse matrix; every stored entry that is not 0 is an edge."""
        shape = getattr(adjacency, "shape", None)
        if not hasattr(adjacency, "tocoo") or shape is None or len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInputError(
                f"`adjacency` must be a square SciPy sparse matrix; got {type(adjacency).__name__} of shape {shape}. "
                f"Pass a dense one as scipy.sparse.csr_array(adjacency)."
            )
        coo = adjacency.tocoo()
        source, target = coo.row, coo.col
        if not (coo.data != 0).all():
            kept = coo.data != 0
            source, target = source[kept], target[kept]
        return cls._from_ends(source, target, int(shape[0]), directed, "adjacency")

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Graph:
        """Make a graph from a NetworkX graph; node i is the i-th of ``graph.nodes``, directed if that is."""
        if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
            raise InvalidInputError(f"`graph` must be a NetworkX graph; got {type(graph).__name__}")
        position = {node: i for i, node in enumerate(graph.nodes)}
        pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        return cls._from_ends(pairs[:, 0], pairs[:, 1], len(position), bool(graph.is_directed()), "graph")

    @classmethod
    @_undirected_too
    def from_pyg(cls, data: Any, *, directed: bool = False) -> Graph:
        """Make a graph from a PyTorch Geometric ``Data``, or from anything like it.

        It has ``edge_index`` and ``num_nodes``, or ``adj_t``: a sparse tensor of torch or of torch_sparse whose rows
        are the targets of edges.
        """
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None:
            transposed = getattr(data, "adj_t", None)
            if transposed is None:
                raise InvalidInputError(
                    f"`data` must have an `edge_index` or an `adj_t`; {type(data).__name__} has neither"
                )
            if hasattr(transposed, "to_sparse_coo"):  # torch's own
                target, source = transposed.to_sparse_coo().coalesce().indices()
                ends = (as_array("data.adj_t", source), as_array("data.adj_t", target))
                return cls._from_ends(*ends, int(transposed.shape[0]), directed, "data.adj_t")
            return cls.from_scipy(transposed.to_scipy().T, directed=directed)
        return cls.from_edge_index(edge_index, getattr(data, "num_nodes", None), directed=directed)

    @classmethod
    @_undirected_too
    def from_table(cls, table: Any, num_nodes: int | None = None, *, directed: bool = False) -> Graph:
        """Make a graph from a table with the columns ``source`` and ``target``, or with just two columns.

        Parameters
        ----------
        table : mapping of columns, or any object Arrow can read
            A dictionary of arrays, a pandas or Polars frame, a PyArrow table, a DuckDB result: anything with
            ``__arrow_c_stream__``. Ids are integers from 0.
        num_nodes, directed
            As in `from_edge_index`.
        """
        columns = _columns(table)
        names = list(columns)
        if {"source", "target"} <= set(names):
            names = ["source", "target"]
        elif len(names) != 2:
            raise InvalidInputError(
                f"`table` must have the columns source and target, or just two; got {', '.join(map(str, names))}"
            )
        source, target = (check_integers(f"table[{name!r}]", columns[name]) for name in names)
        return cls._from_ends(source, target, num_nodes, directed, "table")

    @classmethod
    def _from_ends(
        cls,
        source: npt.NDArray[Any],
        target: npt.NDArray[Any],
        num_nodes: int | None,
        directed: bool,
        name: str,
    ) -> Graph:
        if source.shape != target.shape:
            raise InvalidInputError(f"`{name}` must have as many sources as targets; got {source.size}, {target.size}")
        low = min(int(source.min()), int(target.min())) if source.size else 0
        high = max(int(source.max()), int(target.max())) if source.size else -1
        directed = check_flag("directed", directed)
        nodes = high + 1 if num_nodes is None else check_count("num_nodes", num_nodes, maximum=_MOST_NODES)
        # Ids that leave nearly all numbers out are no numbers from 0: their rows alone would fill the memory.
        if nodes > _MOST_NODES or (num_nodes is None and nodes > _MANY_NODES and nodes > 64 * source.size):
            raise InvalidInputError(_too_many(name, nodes))
        if low < 0 or high >= nodes:
            raise InvalidInputError(f"`{name}` must hold ids from 0 to {nodes - 1}; got {low if low < 0 else high}")
        try:
            return cls._made(*_compress(source, target, nodes, directed), directed)
        except MemoryError as error:
            raise InvalidInputError(_too_many(name, nodes)) from error

    # -- derived graphs ----------------------------------------------------------------------------------------

    def neighbour_sums(self, values: npt.NDArray[Any], *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """Return the sum of the neighbours' rows of `values`, shape (nodes, width); the same bits on any threads."""
        from napsets.kernels.neighbour_sums import neighbour_sums

        sums: npt.NDArray[np.float64] = neighbour_sums(self.indptr, self.indices, values, threads)
        return sums

    def neighbour_labels(self, labels: IntArray, num_classes: int) -> npt.NDArray[np.float64]:
        """Return how many neighbours of each node have each label, shape (nodes, classes); −1 counts for none."""
        from napsets.kernels.neighbour_sums import neighbour_labels

        counts: npt.NDArray[np.float64] = neighbour_labels(self.indptr, self.indices, labels, num_classes)
        return counts

    def neighbour_means(self, values: npt.NDArray[Any], *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """Return the mean of the neighbours' rows of `values`; 0 where there are no neighbours."""
        return self.neighbour_sums(values, threads=threads) / np.maximum(self.degrees, 1)[:, None]

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the subgraph induced on `nodes` (indices or a boolean mask), relabelled 0.. in their order.

        Its `original_ids` lead back to the ids of the graph that this chain of subgraphs started from.
        """
        from napsets.kernels import csr

        chosen = check_index("nodes", nodes, self.num_nodes, unique=True)
        position = np.full(self.num_nodes, -1, dtype=self.indices.dtype)
        position[chosen] = np.arange(chosen.size)
        offsets = csr.offsets_of_rows(self.indptr, self.indices, chosen, position)
        indices = np.empty(offsets[-1], dtype=_id_dtype(chosen.size))
        csr.subgraph(self.indptr, self.indices, chosen, position, offsets, indices)
        ids = chosen if self.original_ids is None else self.original_ids[chosen]
        return Graph._made(offsets, indices, self.directed, ids.copy())

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the adjacency as a SciPy CSR array of ones."""
        import scipy.sparse

        ones = np.ones(self.num_edges, dtype=np.int8)
        shape = (self.num_nodes, self.num_nodes)
        return scipy.sparse.csr_array((ones, self.indices, self.indptr), shape=shape)


Graph.__init__ = _undirected_too(Graph.__init__)  # type: ignore[method-assign]


def _compress(
    source: npt.NDArray[Any], target: npt.NDArray[Any], num_nodes: int, directed: bool
) -> tuple[IntArray, npt.NDArray[Any]]:
    from napsets.kernels import csr

    dtype = _id_dtype(num_nodes)
    if source.size <= csr.FEW_EDGES and dtype is np.int32:
        return csr.compress_few(source, target, num_nodes, not directed)
    source, target = _for_kernels(source, num_nodes), _for_kernels(target, num_nodes)
    buckets = np.empty(source.size, dtype=dtype)
    offsets = csr.bucket_by_column(source, target, num_nodes, not directed, buckets)
    del source, target  # they may be copies
    columns = np.empty(offsets[-1], dtype=dtype)
    rows = csr.rows_from_buckets(offsets, buckets, num_nodes, columns)
    del buckets, offsets
    kept = csr.deduplicate(rows, columns)
    if directed:
        return rows, columns if kept == columns.size else columns[:kept].copy()
    indices = np.empty(2 * kept, dtype=dtype)
    return csr.mirror(rows, columns, indices), indices


def _id_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64


def _for_kernels(ids: npt.NDArray[Any], num_nodes: int) -> npt.NDArray[Any]:
    """Bring ids to a layout that kernels are compiled for: as they are where they have one, else in a small copy."""
    if ids.dtype in (np.int32, np.int64) and ids.flags.c_contiguous:
        return ids
    return np.ascontiguousarray(ids, dtype=_id_dtype(num_nodes))


def _too_many(name: str, nodes: int) -> str:
    return (
        f"`{name}` must hold ids from 0 to the number of nodes less one; {shown(nodes)} nodes do not fit into memory. "
        f"Number the nodes from 0 first (numpy.unique(ids, return_inverse=True) does)."
    )


def as_graph(graph: Any, num_nodes: int | None = None) -> Graph:
    """Return a graph from whatever holds one, undirected unless it is a `Graph` or a NetworkX graph that is not.

    Parameters
    ----------
    graph : Graph or another library's
        A PyTorch Geometric ``Data`` (with ``edge_index`` or ``adj_t``), a NetworkX graph, a SciPy sparse matrix, a
        table with the columns ``source`` and ``target``, or an ``edge_index`` of shape (2, edges).
    num_nodes : int, optional
        How many nodes there are, for an ``edge_index`` or a table.

    Examples
    --------
    >>> as_graph([[0, 1], [1, 2]], num_nodes=4)
    Graph(4 nodes, 4 stored edges, undirected)
    """
    if isinstance(graph, Graph):
        return graph
    if getattr(graph, "edge_index", None) is not None or getattr(graph, "adj_t", None) is not None:
        return Graph.from_pyg(graph)
    if hasattr(graph, "tocoo"):
        return Graph.from_scipy(graph)
    if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        return Graph.from_networkx(graph)
    if hasattr(graph, "__arrow_c_stream__") or isinstance(graph, Mapping):
        return Graph.from_table(graph, num_nodes)
    if isinstance(graph, list | tuple) or hasattr(graph, "__array__"):
        return Graph.from_edge_index(graph, num_nodes)
    return check_graph(graph)


def check_graph(graph: object, name: str = "graph") -> Graph:
    """Return a graph, or say how to make one from what came."""
    if isinstance(graph, Graph):
        return graph
    kind = type(graph)
    if hasattr(graph, "tocoo"):
        way = "napsets.Graph.from_scipy(...)"
    elif hasattr(graph, "edge_index"):
        way = "napsets.Graph.from_pyg(...)"
    elif hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        way = "napsets.Graph.from_networkx(...)"
    elif hasattr(graph, "__dataframe__") or hasattr(graph, "__arrow_c_stream__") or isinstance(graph, Mapping):
        way = "napsets.Graph.from_table(...)"
    else:
        way = "napsets.Graph.from_edge_index(edge_index, num_nodes)"
    raise InvalidInputError(
        f"`{name}` must be a napsets.Graph; got {kind.__name__} of {kind.__module__}. Make one with {way}."
    )


def _columns(table: Any) -> Mapping[str, npt.NDArray[Any]]:
    if isinstance(table, Mapping):
        return {name: as_array(f"table[{name!r}]", column) for name, column in table.items()}
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "cli") from error
    try:
        arrow = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`table` must be a table that Arrow can read; got {type(table).__name__}") from error
    return {name: arrow.column(name).to_numpy() for name in arrow.column_names}
