"""A localiser with the user's own weights of one node for another.

They are what a localiser is made of, and no theorem stands behind them at a nominal level; with an exact one, coverage
holds for any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, IntArray, as_array, check_numbers
from napsets.checks.values import check_number
from napsets.errors import InvalidInputError
from napsets.kernels.threads import Progress
from napsets.localisers.base import LOCALISERS, Cut, LocalThresholds, Reference
from napsets.quantile import LARGEST_WEIGHT

if TYPE_CHECKING:
    import scipy.sparse

#: Nodes between two reports.
_REPORTED = 256
#: The arrays of a sparse matrix.
_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True, eq=False)
class NodeWeights:
    """The weights of the reference nodes for one node (own weight 1)."""

    nodes: IntArray  #: The reference nodes with weight, by score.
    #: The weight and the score of each.
    weights: FloatArray
    scores: FloatArray


@LOCALISERS.add("weights")
@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """Weight reference nodes by the user's own matrix, or function of a node.

    The threshold of node v is the smallest reference score s with Σ_{s_i ≤ s} w(v, i) ≥ (1 − α)(own + Σ w(v, i)). A
    node never counts for itself.

    *Guarantee*: with a nominal level the gap bound that any fixed weights have, and no more; with an exact level,
    1 − alpha in finite samples. *Cost*: a sort of each node's weights, in Python.

    Parameters
    ----------
    weights : sparse matrix or array of shape (nodes, nodes), or callable
        ``weights[v, i]``, or ``weights(v, reference)`` with the weights of the reference nodes, whose positions it is
        called with. Finite and not negative. A matrix is kept as a SciPy sparse one, and saved with the method; a
        function cannot be saved.
    own : float
        What the node to predict weighs itself: large is careful.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, napsets as ns
    >>> near = ns.Weights(lambda node, reference: np.exp(-np.abs(reference - node) / 10))
    >>> ns.Method("aps", near, ns.Exact()).localiser.own
    1.0
    """

    weights: Any = field(metadata={"array": True})
    own: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "own", float(check_number("own", self.own, largest=LARGEST_WEIGHT)))
        if hasattr(self.weights, "tocsr") or (
            not callable(self.weights) and as_array("weights", self.weights).ndim == 2
        ):
            object.__setattr__(self, "weights", _square(self.weights))
        elif not callable(self.weights):
            raise InvalidInputError(
                f"`weights` must be a square matrix, sparse or not, or a function of (node, reference); got "
                f"{type(self.weights).__name__}. Pass one weight per node, for a shift, as CovariateShift(ratios)."
            )

    def __repr__(self) -> str:
        if callable(self.weights):
            return f"Weights({getattr(self.weights, '__qualname__', self.weights)}, own={self.own:g})"
        return f"Weights({self.weights.nnz:,} weights of {self.weights.shape[0]:,} nodes, own={self.own:g})"

    def arrays(self) -> dict[str, AnyArray]:
        """Return the matrix as arrays, to be saved."""
        return {f"weights_{name}": getattr(self.weights, name) for name in _PARTS}

    @staticmethod
    def matrix_of(arrays: Mapping[str, AnyArray]) -> scipy.sparse.csr_array | None:
        """Rebuild the matrix from `arrays`; None if there is none."""
        import scipy.sparse

        parts: Any = tuple(arrays.get(f"weights_{name}") for name in _PARTS)
        if parts[0] is None:
            return None
        matrix: scipy.sparse.csr_array = scipy.sparse.csr_array(parts, shape=(parts[2].size - 1,) * 2)
        matrix.check_format(full_check=True)
        return matrix

    def fit(self, reference: Reference) -> WeightsLocal:
        """Return the localiser of these reference nodes."""
        shape = getattr(self.weights, "shape", None)
        if shape is not None and shape[0] != reference.num_nodes:
            raise InvalidInputError(f"`weights` must have one row per node, {reference.num_nodes}; got shape {shape}")
        return WeightsLocal(self, reference)


def _square(weights: Any) -> scipy.sparse.csr_array:
    """Check a square matrix of weights, and copy it to CSR without duplicates."""
    import scipy.sparse

    sparse = weights if hasattr(weights, "tocsr") else as_array("weights", weights)
    if sparse.ndim != 2 or sparse.shape[0] != sparse.shape[1]:
        raise InvalidInputError(f"`weights` must be a square matrix; got shape {sparse.shape}")
    if not hasattr(sparse, "tocsr"):
        sparse = check_numbers("weights", sparse, largest=LARGEST_WEIGHT)
    matrix = scipy.sparse.csr_array(sparse, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    check_numbers("weights", matrix.data, largest=LARGEST_WEIGHT)
    return matrix


@dataclass(frozen=True, eq=False)
class WeightsLocal:
    """Thresholds of known reference nodes with the user's weights."""

    localiser: Weights
    reference: Reference

    @cached_property
    def _place(self) -> IntArray:
        """The place of each node among the reference nodes; −1 for other nodes."""
        place = np.full(self.reference.num_nodes, -1, dtype=np.int64)
        place[self.reference.nodes] = np.arange(self.reference.nodes.size)
        return place

    def _weighed(self, node: int) -> NodeWeights:
        """Return the reference nodes with a positive weight for a node, and these weights."""
        weights = self.localiser.weights
        if callable(weights):
            values = as_array("weights", weights(node, self.reference.nodes))
            if values.shape != self.reference.nodes.shape:
                raise InvalidInputError(
                    f"`weights` must return one weight per reference node, {self.reference.nodes.size}; got shape "
                    f"{values.shape} for node {node}"
                )
            places, values = np.arange(values.size), check_numbers("weights", values, largest=LARGEST_WEIGHT)
        else:
            row = slice(weights.indptr[node], weights.indptr[node + 1])
            places, values = self._place[weights.indices[row]], weights.data[row]
        kept = (places >= 0) & (values > 0) & (self.reference.nodes[places] != node)
        places, values = places[kept], values[kept]
        # The heaviest of equal scores first: the order in which nodes are numbered cannot change a bit.
        order = np.lexsort((-values, self.reference.scores[places]))
        chosen = places[order]
        return NodeWeights(self.reference.nodes[chosen], values[order], self.reference.scores[chosen])

    def _masses(self, nodes: IntArray, progress: Progress | None) -> Iterator[tuple[int, NodeWeights, FloatArray]]:
        """Yield, for each node, the reference nodes with weight and the running sums of their weights."""
        for row, node in enumerate(nodes.tolist()):
            weighed = self._weighed(node)
            yield row, weighed, np.cumsum(weighed.weights)
            if progress is not None and ((row + 1) % _REPORTED == 0 or row + 1 == nodes.size):
                progress(row + 1, nodes.size)

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut."""
        values, support = np.full((len(cuts), nodes.size), np.inf), np.zeros(nodes.size, dtype=np.int64)
        size = np.zeros(nodes.size)
        for row, weighed, mass in self._masses(nodes, progress):
            support[row] = mass.size
            if mass.size:
                scaled = weighed.weights / weighed.weights.max()  # squares of tiny weights would be 0
                size[row] = scaled.sum() ** 2 / (scaled**2).sum()
            sums, steps = np.append(0.0, mass), np.append(-np.inf, weighed.scores)
            whole = self.localiser.own + float(sums[-1])
            for c, cut in enumerate(cuts):
                reached = cut.accepts(sums, whole) if whole else np.zeros(1, dtype=bool)
                if reached[-1]:
                    values[c, row] = steps[reached.argmax()]
        return LocalThresholds(values, support, size)

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        ranks = np.zeros(nodes.size)
        for row, weighed, mass in self._masses(nodes, progress):
            below = int(np.searchsorted(weighed.scores, scores[row], side="left"))
            if below:
                ranks[row] = mass[below - 1] / (self.localiser.own + mass[-1])
        return ranks

    def weights(self, node: int) -> NodeWeights:
        """Return the weight of each reference node for one node, whose own weight is 1."""
        weighed = self._weighed(node)
        return replace(weighed, weights=weighed.weights / (self.localiser.own or 1.0))
