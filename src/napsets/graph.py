"""Graph: an immutable adjacency in compressed sparse rows, and its constructors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
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
from napsets.checks.lengths import WeightsAre, check_lengths, check_weights_are, lengths_from
from napsets.checks.names import choose
from napsets.checks.rows import check_rows, check_symmetry
from napsets.errors import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = ["Direction", "Graph", "check_direction", "check_graph"]

#: Which way edges are followed: as they are, the other way, or both.
Direction = Literal["out", "in", "both"]

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
    are the targets of the edges that leave it. Edges may have lengths; of several between two nodes the shortest is
    kept, in an undirected graph for both directions.

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
    lengths : numpy.ndarray or None
        The length of each entry of `indices`, float64 and positive; None where edges have none.
    """

    indptr: IntArray
    indices: npt.NDArray[Any]
    _: KW_ONLY
    directed: bool = False
    original_ids: IntArray | None = None
    lengths: FloatArray | None = None

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
        lengths = self.lengths
        if lengths is not None:
            lengths = check_lengths("lengths", lengths, indices.size)
            _check_both_ways(indptr, indices, lengths, self.directed)
        self._keep(
            frozen(np.ascontiguousarray(indptr)),
            frozen(indices),
            ids if ids is None else frozen(ids),
            lengths if lengths is None else sealed(lengths),  # a copy already
        )

    def _keep(
        self,
        indptr: IntArray,
        indices: npt.NDArray[Any],
        original_ids: IntArray | None,
        lengths: FloatArray | None,
    ) -> None:
        arrays = {"indptr": indptr, "indices": indices, "original_ids": original_ids, "lengths": lengths}
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @classmethod
    def _made(
        cls,
        indptr: IntArray,
        indices: npt.NDArray[Any],
        directed: bool,
        original_ids: IntArray | None = None,
        lengths: FloatArray | None = None,
    ) -> Graph:
        """Make a graph from arrays that are right by construction and nobody else holds, without a look at them."""
        graph = object.__new__(cls)
        object.__setattr__(graph, "directed", directed)
        ids = None if original_ids is None else sealed(original_ids)
        graph._keep(sealed(indptr), sealed(indices), ids, None if lengths is None else sealed(lengths))
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

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays: rows, lengths, ids, and those of the same graph along other directions, once made."""
        arrays = (self.indptr, self.indices, self.original_ids, self.lengths)
        others: list[Graph] = [vars(self).get(name, self) for name in ("reverse", "both_ways")]
        return sum(int(array.nbytes) for array in arrays if array is not None) + sum(
            other.nbytes for other in others if other is not self
        )

    def neighbours(self, node: int) -> npt.NDArray[Any]:
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
        if (self.lengths is None) != (other.lengths is None):
            return False
        names = ("indptr", "indices") if self.lengths is None else ("indptr", "indices", "lengths")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Seal the arrays in another process too: unpickled ones would be writeable."""
        return type(self)._made, (self.indptr, self.indices, self.directed, self.original_ids, self.lengths)

    # -- constructors ------------------------------------------------------------------------------------------

    @classmethod
    @_undirected_too
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
            Integer ids. For an undirected graph an edge may stand in one direction or in both.
        num_nodes : int, optional
            Number of nodes; without it, the largest id plus one, which overlooks isolated nodes at the end.
        directed : bool
            Store every edge as given; by default in both directions.
        lengths, strengths : array of shape (m,), optional
            How long each edge is, or how strong: then its length is 1 / strength. Positive; an edge of length 0 would
            make its two ends one node, and a strength of 0 is no edge, so both are refused.

        Examples
        --------
        >>> Graph.from_edge_index([[0, 1, 1], [1, 0, 2]], num_nodes=4)
        Graph(4 nodes, 4 stored edges, undirected)
        >>> Graph.from_edge_index([[0, 1], [1, 0]], num_nodes=2, lengths=[3, 2]).lengths
        array([2., 2.])
        """
        array = check_integers("edge_index", edge_index, ndim=2)
        if array.shape[0] != 2:
            way = " Pass its transpose, .T, if it has one edge a row." if array.shape[1] == 2 else ""
            raise InvalidInputError(f"`edge_index` must have shape (2, edges); got {array.shape}.{way}")
        long = lengths_from(lengths, strengths, array.shape[1])
        return cls._from_ends(array[0], array[1], num_nodes, directed, "edge_index", long)

    @classmethod
    @_undirected_too
    def from_scipy(
        cls,
        adjacency: scipy.sparse.sparray | scipy.sparse.spmatrix,
        *,
        directed: bool = False,
        weights_are: WeightsAre | None = None,
    ) -> Graph:
        """Make a graph from a square SciPy sparse matrix; every stored entry that is not 0 is an edge.

        Parameters
        ----------
        adjacency : sparse matrix or array
            Row u, column v stands for the edge from u to v.
        directed : bool
            As in `from_edge_index`.
        weights_are : {"lengths", "strengths"}, optional
            What the entries say of the edges; by default nothing but that they are there.
        """
        shape = getattr(adjacency, "shape", None)
        if not hasattr(adjacency, "tocoo") or shape is None or len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInputError(
                f"`adjacency` must be a square SciPy sparse matrix; got {type(adjacency).__name__} of shape {shape}. "
                f"Pass a dense one as scipy.sparse.csr_array(adjacency)."
            )
        meaning = check_weights_are(weights_are)
        coo = adjacency.tocoo()
        source, target, values = coo.row, coo.col, coo.data
        if not (values != 0).all():
            kept = values != 0
            source, target, values = source[kept], target[kept], values[kept]
        long = None if meaning is None else check_lengths("adjacency", values, values.size, weights_are=meaning)
        return cls._from_ends(source, target, int(shape[0]), directed, "adjacency", long)

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
            The attribute that says how long edges are, as NetworkX's own shortest paths have it; all edges need it. By
            default edges have no lengths.
        weights_are : {"lengths", "strengths"}
            What that attribute says.
        """
        if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
            raise InvalidInputError(f"`graph` must be a NetworkX graph; got {type(graph).__name__}")
        position = {node: i for i, node in enumerate(graph.nodes)}
        pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        long = None
        if weight is not None:
            values = [value for _, _, value in graph.edges(data=weight)]
            if any(value is None for value in values):
                raise InvalidInputError(f"`weight` must name an attribute of every edge; some have no {shown(weight)}")
            meaning = check_weights_are(weights_are) or "lengths"
            long = check_lengths("weight", np.array(values or np.empty(0)), len(values), weights_are=meaning)
        return cls._from_ends(pairs[:, 0], pairs[:, 1], len(position), bool(graph.is_directed()), "graph", long)

    @classmethod
    @_undirected_too
    def from_pyg(cls, data: Any, *, directed: bool = False, weights_are: WeightsAre | None = None) -> Graph:
        """Make a graph from a PyTorch Geometric ``Data``, or from anything like it.

        It has ``edge_index`` and ``num_nodes``, or ``adj_t``: a sparse tensor of torch or of torch_sparse whose rows
        are the targets of edges. Where `weights_are` says what they are, ``edge_weight`` (or ``edge_attr``, if it has
        one number an edge) counts, or the entries of ``adj_t``.
        """
        edge_index, meaning = getattr(data, "edge_index", None), check_weights_are(weights_are)
        if edge_index is None:
            transposed = getattr(data, "adj_t", None)
            if transposed is None:
                raise InvalidInputError(
                    f"`data` must have an `edge_index` or an `adj_t`; {type(data).__name__} has neither"
                )
            if hasattr(transposed, "to_sparse_coo"):  # torch's own
                entries = transposed.to_sparse_coo().coalesce()
                target, source = (as_array("data.adj_t", ends) for ends in entries.indices())
                long = None
                if meaning is not None:
                    long = check_lengths("data.adj_t", entries.values(), source.size, weights_are=meaning)
                return cls._from_ends(source, target, int(transposed.shape[0]), directed, "data.adj_t", long)
            return cls.from_scipy(transposed.to_scipy().T, directed=directed, weights_are=meaning)
        given: dict[str, Any] = {}
        if meaning is not None:
            names = [name for name in ("edge_weight", "edge_attr") if getattr(data, name, None) is not None]
            if not names:
                raise InvalidInputError(f"`data` must have an `edge_weight`; {type(data).__name__} has none")
            values = as_array(f"data.{names[0]}", getattr(data, names[0]))
            given[meaning] = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        return cls.from_edge_index(edge_index, getattr(data, "num_nodes", None), directed=directed, **given)

    @classmethod
    @_undirected_too
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
            What the column ``weight`` says of the edges; without it, that column does not count.
        """
        meaning = check_weights_are(weights_are)
        columns = _columns(table)
        names = list(columns)
        if {"source", "target"} <= set(names):
            names = ["source", "target"]
        elif len(names) != 2:
            raise InvalidInputError(
                f"`table` must have the columns source and target, or just two; got {', '.join(map(str, names))}"
            )
        source, target = (check_integers(f"table[{name!r}]", columns[name]) for name in names)
        long = None
        if meaning is not None:
            if "weight" not in columns:
                raise InvalidInputError(f"`table` must have the column weight; it has {', '.join(map(str, columns))}")
            long = check_lengths("table['weight']", columns["weight"], source.size, weights_are=meaning)
        return cls._from_ends(source, target, num_nodes, directed, "table", long)

    @classmethod
    def _from_ends(
        cls,
        source: npt.NDArray[Any],
        target: npt.NDArray[Any],
        num_nodes: int | None,
        directed: bool,
        name: str,
        lengths: FloatArray | None = None,
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
            indptr, indices, long = _compress(source, target, nodes, directed, lengths)
            return cls._made(indptr, indices, directed, lengths=long)
        except MemoryError as error:
            raise InvalidInputError(_too_many(name, nodes)) from error

    # -- derived graphs ----------------------------------------------------------------------------------------

    @cached_property
    def reverse(self) -> Graph:
        """The graph whose edges go the other way, made once; an undirected graph is its own."""
        if not self.directed:
            return self
        from napsets.kernels.csr import reversed_rows

        indptr, indices, lengths = reversed_rows(self.indptr, self.indices, self.lengths)
        return Graph._made(indptr, indices, True, self.original_ids, lengths)

    @cached_property
    def both_ways(self) -> Graph:
        """The undirected graph that has every edge in both directions, made once; an undirected graph is its own."""
        if not self.directed:
            return self
        source = np.repeat(np.arange(self.num_nodes, dtype=self.indices.dtype), self.degrees)
        indptr, indices, lengths = _compress(source, self.indices, self.num_nodes, False, self.lengths)
        return Graph._made(indptr, indices, False, self.original_ids, lengths)

    def along(self, direction: Direction) -> Graph:
        """Return the graph in which neighbours are found along a direction.

        Parameters
        ----------
        direction : {"out", "in", "both"}
            Along the edges as they are (this graph), against them (`reverse`), or both ways (`both_ways`). In an
            undirected graph all three are the same.
        """
        check_direction(direction)
        return self if direction == "out" else self.reverse if direction == "in" else self.both_ways

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
        lengths = None if self.lengths is None else np.empty(offsets[-1])
        csr.subgraph(self.indptr, self.indices, chosen, position, offsets, indices, self.lengths, lengths)
        ids = chosen if self.original_ids is None else self.original_ids[chosen]
        return Graph._made(offsets, indices, self.directed, ids.copy(), lengths)

    def to_scipy(self, *, lengths: bool = False) -> scipy.sparse.csr_array:
        """Return the adjacency as a SciPy CSR array of ones, or of the edges' lengths."""
        import scipy.sparse

        values: npt.NDArray[Any] = np.ones(self.num_edges, dtype=np.int8)
        if check_flag("lengths", lengths):
            if self.lengths is None:
                raise InvalidInputError("`lengths` must be False for a graph whose edges have none")
            values = self.lengths
        shape = (self.num_nodes, self.num_nodes)
        return scipy.sparse.csr_array((values, self.indices, self.indptr), shape=shape)


Graph.__init__ = _undirected_too(Graph.__init__)  # type: ignore[method-assign]


def _compress(
    source: npt.NDArray[Any],
    target: npt.NDArray[Any],
    num_nodes: int,
    directed: bool,
    lengths: FloatArray | None = None,
) -> tuple[IntArray, npt.NDArray[Any], FloatArray | None]:
    from napsets.kernels import csr

    dtype = _id_dtype(num_nodes)
    if source.size <= csr.FEW_EDGES and dtype is np.int32:
        return csr.compress_few(source, target, num_nodes, not directed, lengths)

    def room(size: int) -> FloatArray | None:
        return None if lengths is None else np.empty(size)

    source, target = _for_kernels(source, num_nodes), _for_kernels(target, num_nodes)
    buckets, in_buckets = np.empty(source.size, dtype=dtype), room(source.size)
    offsets = csr.bucket_by_column(source, target, num_nodes, not directed, buckets, lengths, in_buckets)
    del source, target  # they may be copies
    columns, long = np.empty(offsets[-1], dtype=dtype), room(offsets[-1])
    rows = csr.rows_from_buckets(offsets, buckets, num_nodes, columns, in_buckets, long)
    del buckets, offsets, in_buckets
    kept = csr.deduplicate(rows, columns, long)
    if directed:
        if kept < columns.size:
            columns, long = columns[:kept].copy(), None if long is None else long[:kept].copy()
        return rows, columns, long
    indices, twice = np.empty(2 * kept, dtype=dtype), room(2 * kept)
    return csr.mirror(rows, columns, indices, long, twice), indices, twice


def _check_both_ways(indptr: IntArray, indices: npt.NDArray[Any], lengths: FloatArray, directed: bool) -> None:
    """Refuse lengths of an undirected graph that differ between an edge and its way back."""
    if directed:
        return
    from napsets.kernels.csr import reversed_rows

    back = reversed_rows(indptr, indices, lengths)[2]
    strange = lengths != back
    if strange.any():
        entry = int(strange.argmax())
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        raise InvalidInputError(
            f"`lengths` must be the same both ways in an undirected graph; {row} → {indices[entry]} is not as long as "
            f"its way back. Pass directed=True, or make the graph with Graph.from_edge_index, which keeps the shorter."
        )


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


def check_direction(direction: object) -> Direction:
    """Return a direction, or list the three there are."""
    found: Direction = choose("direction", direction, {name: name for name in get_args(Direction)})
    return found


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
