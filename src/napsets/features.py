"""Features of nodes, and the reference nodes with the most similar ones: evidence without a graph, or beside one.

Features are any numbers that describe nodes: measurements, counts of words, the embeddings of a model. Two nodes are as
similar as the cosine of their features. For every node the nearest reference nodes are searched, all of them up to
20,000, of more a random part that is a function of (seed, id). A reference node is never its own neighbour, so that
what its neighbours say of it is leave-one-out.

Columns are weighted first by 1 + log((1 + n)/(1 + nonzero entries)), as words are (tf-idf): a column that is 0 for
nearly all nodes says more about the others. The weight is 1 where no entry is 0, as in embeddings. More than 100
columns are then reduced to the 100 directions along which unit rows are largest (truncated singular value
decomposition). Weights and directions are those of all nodes, of more than 20,000 of a random part that is a function
of (seed, id). No label is looked at, and all nodes are treated alike.

*Bits.* The search gives the neighbours of the definition, to the bit, on any number of threads: single precision only
nominates. The directions are computed by BLAS and LAPACK, whose last digits may depend on the processor and on their
number of threads, so that of two reference nodes whose similarities differ by less than some 10⁻¹² either may come
first. Features of up to 100 columns are not reduced and have no such caveat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, FloatArray, IntArray, Sealed, as_array, frozen, sealed
from napsets.checks.values import shown
from napsets.errors import InvalidInputError
from napsets.kernels.threads import Progress
from napsets.randomness import node_uniforms

#: Columns that are compared; of more, so many directions.
COLUMNS = 100
#: Reference nodes that are searched, and nodes that directions are computed from, at most.
MOST_SEARCHED = MOST_TYPICAL = 20_000
#: Directions that are computed in addition, and rounds of the subspace iteration.
_SPARE, _ROUNDS = 16, 4

if TYPE_CHECKING:
    import scipy.sparse

#: A dense table, or compressed sparse rows, in single precision.
Features: TypeAlias = "npt.NDArray[np.float32] | scipy.sparse.csr_array"


def check_features(name: str, value: object, rows: int | None = None, ids: AnyArray | None = None) -> Features:
    """Return features as a read-only table in single precision, dense or in compressed sparse rows.

    Parameters
    ----------
    name : str
        The argument, for messages.
    value : array of shape (nodes, columns) or SciPy sparse matrix
        The features.
    rows : int, optional
        How many rows there must be.
    ids : array, optional
        What the nodes are called, for messages.
    """
    sparse = hasattr(value, "tocsr")
    table: Any = value if sparse else as_array(name, value)
    if len(table.shape) != 2 or table.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` must be a table of numbers, one row per node; got shape {shown(table.shape)}, {table.dtype}"
        )
    if rows is not None and table.shape[0] != rows:
        raise InvalidInputError(f"`{name}` must have one row per node, {rows}; got {table.shape[0]}")
    with np.errstate(over="ignore"):  # what single precision cannot hold becomes infinite, and is rejected
        if sparse:
            from scipy.sparse import csr_array

            kept: Any = csr_array(table, dtype=np.float32, copy=True)
            kept.sum_duplicates()
            kept.eliminate_zeros()
            arrays = [kept.data, kept.indices, kept.indptr]
        else:
            kept = np.ascontiguousarray(table, dtype=np.float32)
            kept = frozen(kept) if np.may_share_memory(kept, table) else kept
            arrays = [kept]
    data: npt.NDArray[np.float32] = arrays[0]
    if not np.isfinite(data.sum(dtype=np.float64)):  # most tables need no second look
        bad = np.flatnonzero(~np.isfinite(data.ravel()))
        if bad.size:
            row = int(np.searchsorted(kept.indptr, bad[0], "right")) - 1 if sparse else int(bad[0] // kept.shape[1])
            node = row if ids is None else ids[row]
            raise InvalidInputError(
                f"`{name}` must be finite numbers of single precision; the row of node {node} has a NaN or infinite "
                f"entry"
            )
    for array in arrays:
        sealed(array)
    checked: Features = kept
    return checked


@dataclass(frozen=True, eq=False)
class Directions(Sealed):
    """Features of any kind as rows of a few numbers in double precision: weighted columns, or directions of them."""

    weights: FloatArray  #: one per column; those of `columns` where features are sparse and reduced
    vectors: FloatArray | None = None  #: the weighted directions, one per column; None where nothing is reduced
    columns: IntArray | None = None  #: the columns of sparse features that `vectors` belong to, the others being 0

    @classmethod
    def typical(cls, features: Features, u: FloatArray) -> Directions:
        """Return the directions of all nodes, of more than 20,000 of a part drawn by their uniform numbers `u`."""
        return cls.of(features[np.argsort(u, kind="stable")[:MOST_TYPICAL]])

    @classmethod
    def of(cls, features: Features) -> Directions:
        """Return the weights of columns, and the directions along which features with many columns are largest."""
        size, width = features.shape
        dense = isinstance(features, np.ndarray)
        if isinstance(features, np.ndarray):
            filled = np.count_nonzero(features, axis=0)
        else:
            filled = np.bincount(features.indices, minlength=width)
        weights: FloatArray = 1.0 + np.log((1.0 + size) / (1.0 + filled))
        if width <= COLUMNS:
            return cls(weights)
        columns = None
        if not dense:
            columns = np.flatnonzero(filled)
            features, weights = features[:, columns], weights[columns]
        table = _unit_rows(features, weights)
        kept = min(COLUMNS, *table.shape)
        basis = np.random.default_rng(0).standard_normal((table.shape[0], min(kept + _SPARE, *table.shape)))
        basis = table.T @ basis
        for _ in range(_ROUNDS if kept else 0):
            basis = table.T @ (table @ np.linalg.qr(basis)[0])
        basis = np.linalg.qr(basis)[0] if kept else basis
        image = table @ basis
        largest = np.linalg.eigh(image.T @ image)[1][:, ::-1][:, :kept] if kept else np.zeros((basis.shape[1], 0))
        return cls(weights, np.ascontiguousarray(weights[:, None] * (basis @ largest)), columns)

    def rows(self, features: Features) -> FloatArray:
        """Return rows of features along the directions; no row depends on the others, to the bit."""
        if self.vectors is None:
            table = features if isinstance(features, np.ndarray) else features.toarray()
            weighted: FloatArray = table * self.weights
            return weighted
        if self.columns is not None:
            sums: FloatArray = features[:, self.columns].astype(np.float64) @ self.vectors
            return sums
        from napsets.kernels.similar import along

        assert isinstance(features, np.ndarray)
        return along(features, self.vectors)


def _unit_rows(features: Features, weights: FloatArray) -> Any:
    """Return weighted rows in double precision, each divided by its length."""
    if isinstance(features, np.ndarray):
        dense = features * weights
        return dense / np.maximum(np.sqrt((dense**2).sum(axis=1)), 1e-300)[:, None]
    table: Any = features.astype(np.float64)
    table.data *= weights[table.indices]
    owner = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    squares = np.bincount(owner, weights=table.data**2, minlength=table.shape[0])
    table.data /= np.maximum(np.sqrt(squares), 1e-300)[owner]
    return table


def nearest_reference(
    features: Features,
    reference: IntArray,
    u: FloatArray,
    count: int,
    directions: Directions | None = None,
    *,
    nodes: IntArray | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> npt.NDArray[np.int32]:
    """Return the reference nodes nearest to each node, the nearest first, shape (nodes, at most `count`).

    Parameters
    ----------
    features : table
        What `check_features` returned, one row per node.
    reference : array of integers
        The reference nodes.
    u : array
        The uniform number of every node, a function of (seed, id): it decides which of more than 20,000 reference
        nodes are searched, and which of equally similar ones come first.
    count : int
        The number of nodes that are searched for; −1 stands where fewer have a cosine above 0.
    directions : Directions, optional
        Those of an earlier fit; by default the typical ones of these features.
    nodes : array of integers, optional
        The nodes whose neighbours are searched; by default all.
    """
    searched = reference[np.argsort(u[reference], kind="stable")[:MOST_SEARCHED]]
    directions = Directions.typical(features, u) if directions is None else directions
    return _nearest(features, searched, directions, count, nodes, threads, progress)


def nearest_nodes(
    features: Features, count: int, *, threads: int | None = None, progress: Progress | None = None
) -> npt.NDArray[np.int32]:
    """Return the nodes nearest to each node; of equally similar ones those with the smaller number come first."""
    nodes = np.arange(features.shape[0])
    directions = Directions.typical(features, node_uniforms(nodes))
    return _nearest(features, nodes, directions, count, None, threads, progress)


def _nearest(
    features: Features,
    searched: IntArray,
    directions: Directions,
    count: int,
    nodes: IntArray | None,
    threads: int | None,
    progress: Progress | None,
) -> npt.NDArray[np.int32]:
    """Return the searched nodes nearest to each node, along some directions."""
    from napsets.kernels.similar import nearest_rows

    place = np.full(features.shape[0], -1, dtype=np.int64)
    place[searched] = np.arange(searched.size)

    def read(first: int, last: int) -> FloatArray:
        return directions.rows(features[first:last] if nodes is None else features[nodes[first:last]])

    places, _ = nearest_rows(
        read, directions.rows(features[searched]), place if nodes is None else place[nodes], count,
        threads=threads, progress=progress,
    )  # fmt: skip
    if not searched.size:
        return places
    return np.where(places >= 0, searched.astype(np.int32)[places], np.int32(-1))
