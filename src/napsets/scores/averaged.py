"""Scores that are averaged over other nodes: DAPS and SNAPS, for any score.

`Diffused` (Zargarbashi et al., ICML 2023) averages over neighbours. `Similarity` (Song et al., NeurIPS 2024) averages
over neighbours and over nodes with similar features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    as_array,
    sealed,
)
from napsets.checks.values import check_count, check_share, check_threads
from napsets.errors import InvalidInputError
from napsets.features import Features, check_features
from napsets.graph import Graph
from napsets.scores.base import (
    SCORES,
    BoundLabels,
    BoundScore,
    Labelled,
    ScoresEveryLabel,
    bind,
    learns,
    make_score,
    of_labels,
    require_graph,
    uses_features,
)
from napsets.scores.evidence import means_around
from napsets.scores.rows import APS

_ROWS = 1 << 16  # nodes scored, or averaged, at a time


@SCORES.add("diffused")
@dataclass(frozen=True)
class Diffused:
    """Mix each node's scores with the mean of its neighbours': Ŝ = (1 − strength)·S + strength·mean S.

    Sets become smaller where neighbours are alike, and coverage less even. With a split quantile coverage stays exact,
    because all nodes are treated alike. A node without neighbours keeps its scores.

    Attributes
    ----------
    base : Score or str
        The score that is averaged.
    strength : float
        λ, from 0 to 1.
    steps : int
        How often the mean is taken.
    """

    base: Any = field(default_factory=APS)
    strength: float = 0.5
    steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "strength", check_share("strength", self.strength))
        object.__setattr__(self, "steps", check_count("steps", self.steps, maximum=1000))

    @property
    def learns(self) -> bool:
        """Whether the score underneath learns from labels."""
        return learns(self.base)

    @property
    def uses_features(self) -> bool:
        """Whether the score underneath compares nodes by their features."""
        return uses_features(self.base)

    def bind(
        self,
        outputs: AnyArray,
        u: FloatArray,
        graph: Graph | None,
        reference: Labelled,
        *,
        features: Features | None = None,
    ) -> BoundMatrix:
        """Return the diffused scores of all nodes."""
        inner, scores, graph = bind_around(self.base, outputs, u, graph, reference, features)
        alone = graph.degrees == 0
        for _ in range(self.steps):
            mixed = _mix(scores, graph.neighbour_means(scores), self.strength)
            mixed[alone] = scores[alone]
            scores = mixed
        return BoundMatrix(inner.probabilities, sealed(scores), inner)


def bind_around(
    score: object,
    outputs: AnyArray,
    u: FloatArray,
    graph: Graph | None,
    reference: Labelled,
    features: Features | None = None,
) -> tuple[ScoresEveryLabel, FloatArray, Graph]:
    """Bind the score to be averaged; return its scores of all nodes and labels, and the graph."""
    known = require_graph(graph)
    inner = of_labels(bind(score, outputs, u, known, reference, features=features))
    nodes = np.arange(len(outputs))
    parts = [inner.matrix(nodes[i : i + _ROWS]) for i in range(0, max(1, nodes.size), _ROWS)]  # to bound the memory
    return inner, np.concatenate(parts), known


@dataclass(frozen=True, eq=False)
class BoundMatrix(Sealed, BoundLabels):
    """A matrix with the scores of every node at every label."""

    probabilities: AnyArray
    scores: FloatArray
    inner: BoundScore | None = None  #: what they were made from, where that is still known

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        return self.scores[nodes, labels]

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        return self.scores[nodes]


def _mix(scores: FloatArray, means: FloatArray, strength: float) -> FloatArray:
    return (1.0 - strength) * scores + strength * means


#: Entries of a sparse table up to which it may be made dense, where that is faster.
_DENSE_ENTRIES = 1 << 28
#: How many entries of a dense product cost as much as one of a sparse product: measured on 13,752 rows × 767 columns.
_DENSE_SPEED = 100


@SCORES.add("similarity")
@dataclass(frozen=True)
class Similarity:
    """Mix each node's scores with those of its neighbours and of the nodes with the most similar features.

    Ŝ = (1 − near − similar)·S + near·(mean over neighbours) + similar·(mean over the k nodes with the largest cosine of
    features, weighted by it): SNAPS of Song et al., *Similarity-navigated conformal prediction for graph neural
    networks*, NeurIPS 2024. Features are those passed to `calibrate`, by default the model's probabilities. Sets become
    smaller where neighbours, or nodes that look alike, have the same label. A node without neighbours keeps S for that
    part; so does one without any node at a cosine above 0.

    *Guarantee*: with a split quantile coverage is exact in finite samples, because all nodes are treated alike and no
    label is looked at. *Cost*: nodes² × columns once, in blocks of bounded memory (`napsets.similar_nodes`), then
    (edges + k·nodes) × classes.

    Attributes
    ----------
    base : Score or str
        The score that is averaged.
    neighbours : int
        k, how many similar nodes count.
    similar, near : float
        λ and μ of the paper: the shares of similar nodes and of neighbours; together at most 1.
    """

    base: Any = field(default_factory=APS)
    neighbours: int = 20
    similar: float = 1 / 3
    near: float = 1 / 3
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "neighbours", check_count("neighbours", self.neighbours, maximum=10_000))
        for name in ("similar", "near"):
            object.__setattr__(self, name, check_share(name, getattr(self, name)))
        if self.similar + self.near > 1.0 + 1e-12:
            raise InvalidInputError(
                f"`similar` and `near` must be at most 1 together; got {self.similar:g} and {self.near:g}"
            )

    @property
    def learns(self) -> bool:
        """Whether the score that is averaged learns from labels."""
        return learns(self.base)

    def bind(
        self,
        outputs: AnyArray,
        u: FloatArray,
        graph: Graph | None,
        reference: Labelled,
        *,
        features: Features | None = None,
    ) -> BoundMatrix:
        """Return the mixed scores of all nodes; without features, nodes are compared by the model's probabilities."""
        inner, scores, graph = bind_around(self.base, outputs, u, graph, reference, features)
        mixed = (1.0 - self.near - self.similar) * scores + self.near * means_around(graph, scores)
        if self.similar:
            table = outputs if features is None else features
            mixed += self.similar * _similar_means(scores, *similar_nodes(table, self.neighbours))
        return BoundMatrix(inner.probabilities, sealed(mixed), inner)


def similar_nodes(
    features: ArrayLike | Any, neighbours: int = 20, *, threads: int | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the nodes with the largest cosine of features, and the cosines.

    The search is exact; ties go to the smaller node number; the result does not depend on the number of threads. Only
    cosines above 0 count.

    Parameters
    ----------
    features : array of shape (nodes, columns) or SciPy sparse matrix
        One row per node.
    neighbours : int
        How many to return at most.
    threads : int, optional
        Threads to use; by default all cores.

    Returns
    -------
    tuple of numpy.ndarray
        Nodes and cosines of shape (nodes, neighbours), the most similar first; −1 and 0 where there are fewer.

    Examples
    --------
    >>> nodes, cosines = similar_nodes([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]], neighbours=1)
    >>> nodes[:, 0].tolist(), cosines[:, 0].round(2).tolist()
    ([1, 0, 3, 0], [1.0, 1.0, 0.71, 0.71])
    """
    from napsets.kernels.similar import nearest_rows, similar_sparse

    check_features("features", features)
    values = _double(features)
    count = min(check_count("neighbours", neighbours), max(values.shape[0] - 1, 0))
    threads = check_threads(threads)
    if not isinstance(values, np.ndarray):
        by_column = np.bincount(values.indices, minlength=values.shape[1]).astype(np.float64)
        entries = float(values.shape[0]) * values.shape[1]
        if entries > _DENSE_ENTRIES or _DENSE_SPEED * float(by_column @ by_column) <= entries * values.shape[0]:
            offsets, columns = values.indptr.astype(np.int64), values.indices.astype(np.int64)
            return similar_sparse(offsets, columns, values.data, values.shape[1], count, threads)
        values = values.toarray()
    rows: FloatArray = values
    numbers, cosines = nearest_rows(
        lambda first, last: rows[first:last], rows, np.arange(len(rows)), count, threads=threads, cosines=True
    )
    return numbers.astype(np.int64), cosines


def _double(features: Any) -> Any:
    """Return features that were checked in double precision, as a dense table or in compressed sparse rows."""
    if not hasattr(features, "tocsr"):
        return as_array("features", features).astype(np.float64, copy=False)
    from scipy.sparse import csr_array

    rows = csr_array(features, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _similar_means(scores: FloatArray, nodes: IntArray, cosines: FloatArray) -> FloatArray:
    """Return the similarity-weighted means of similar nodes' scores; a node without similar nodes keeps its own."""
    means = scores.copy()
    for first in range(0, scores.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        mixed, total = np.zeros(scores[rows].shape), np.zeros(scores[rows].shape[0])
        for k in range(nodes.shape[1]):  # one after the other: no sum depends on how many nodes there are
            mixed += cosines[rows, k, None] * scores[nodes[rows, k]]
            total += cosines[rows, k]
        met = total > 0
        means[rows][met] = mixed[met] / total[met, None]
    return means
