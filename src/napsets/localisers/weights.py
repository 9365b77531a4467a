"""Weights that the user knows: of one node for another, or of a population that differs from the labelled one.

*Weights of one's own* (`Weights`) say how much each reference node counts for each node. They are what a localiser is
made of, and no theorem stands behind them at a nominal level; with an exact one, coverage holds for any.

*Importance weights* undo a known shift. If labelled nodes come from P and the nodes to predict from Q, and w = dQ/dP is
known up to a factor, then with reference nodes that weigh w and a node to predict that weighs its own w, coverage is at
least 1 − alpha in finite samples (weighted exchangeability: Tibshirani, Foygel Barber, Candès and Ramdas, *Conformal
prediction under covariate shift*, NeurIPS 2019). Under *covariate shift* w is a function of what is known of a node
(`CovariateShift`); under *label shift* it is a function of the label, so that each candidate label has a threshold of
its own (`LabelShift`; Podkopaev and Ramdas, UAI 2021). Where nodes were labelled along edges, w is 1/degree
(`InverseDegree`; EdgeEx of Zargarbashi and Bojchevski, ICLR 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, as_array, check_numbers
from napsets.checks.values import check_number
from napsets.errors import InvalidInputError
from napsets.kernels.layout import read_only
from napsets.kernels.threads import stages
from napsets.localisers.base import LOCALISERS, Cut, LocalThresholds, Reference, graph_of
from napsets.localisers.weighed import NodeWeights, WeighedLocal, in_pieces, running
from napsets.quantile import LARGEST_WEIGHT

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, WeighedQuery

#: Nodes between two reports.
_REPORTED = 256
#: Nodes handled between two looks at whether to stop.
_LARGE_PIECE = 1 << 14
#: What a sparse matrix is made of.
_PARTS = ("data", "indices", "indptr")


@LOCALISERS.add("weights")
@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """Reference nodes weigh what the user says, for each node on its own.

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

    def arrays(self) -> dict[str, Any]:
        """Return the matrix as arrays, for a file."""
        return {f"weights_{name}": getattr(self.weights, name) for name in _PARTS}

    @staticmethod
    def matrix_of(arrays: Mapping[str, Any]) -> Any:
        """Return the matrix that `arrays` wrote; None where it wrote none."""
        import scipy.sparse

        parts: Any = tuple(arrays.get(f"weights_{name}") for name in _PARTS)
        if parts[0] is None:
            return None
        matrix: Any = scipy.sparse.csr_array(parts, shape=(parts[2].size - 1,) * 2)
        matrix.check_format(full_check=True)
        return matrix

    def fit(self, reference: Reference) -> WeightsLocal:
        """Return the localiser of these reference nodes."""
        shape = getattr(self.weights, "shape", None)
        if shape is not None and shape[0] != reference.num_nodes:
            raise InvalidInputError(f"`weights` must have one row per node, {reference.num_nodes}; got shape {shape}")
        return WeightsLocal(self, reference)


def _square(weights: Any) -> Any:
    """Return a square matrix as a sparse one of our own, without repeats; refuse weights that cannot be."""
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
    """The user's own weights of known reference nodes."""

    localiser: Weights
    reference: Reference

    @cached_property
    def _place(self) -> IntArray:
        """Where each node stands among the reference nodes; −1 for others."""
        place = np.full(self.reference.num_nodes, -1, dtype=np.int64)
        place[self.reference.nodes] = np.arange(self.reference.nodes.size)
        return place

    def _weighed(self, node: int) -> NodeWeights:
        """Return the reference nodes that weigh something for a node, and how much."""
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

    def _masses(self, nodes: IntArray, progress: Any) -> Iterator[tuple[int, NodeWeights, FloatArray]]:
        """Yield, for each node, what weighs something and the running sums of the weights."""
        for row, node in enumerate(nodes.tolist()):
            weighed = self._weighed(node)
            yield row, weighed, np.cumsum(weighed.weights)
            if progress is not None and ((row + 1) % _REPORTED == 0 or row + 1 == nodes.size):
                progress(row + 1, nodes.size)

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
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
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
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


class ImportanceLocal(WeighedLocal):
    """Reference nodes with one weight each, whatever the node to predict, which has its own weight, or `own`."""

    def __init__(self, localiser: Any, reference: Reference, weights: FloatArray, own: float | None = None) -> None:
        super().__init__(localiser, reference)
        self._weights = weights
        self._own = weights if own is None else np.full(weights.size, own)

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Running sums, by number, of the reference nodes' weights and of their squares."""
        weights = self._weights[self.reference.nodes_by_score]
        return running(weights), running(weights**2)

    def background(self) -> tuple[FloatArray, float]:
        """Return the running sums of the weights."""
        return self._sums[0], 1.0

    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return nothing beyond the background, and what the node itself weighs."""
        return np.empty(0, dtype=np.int64), np.empty(0), float(self._own[node])

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut; nodes of weight 0 without any mass around have none."""
        shared = super().thresholds(nodes, cuts, threads=threads, progress=progress)
        support = self._support(nodes)
        values = np.where((support == 0) & (self._own[nodes] == 0), np.inf, shared.values)
        return LocalThresholds(values, support, shared.effective_size)

    def _support(self, nodes: IntArray) -> IntArray:
        """Return how many reference nodes weigh something for each node; it does not count for itself."""
        labelled = np.zeros(self._weights.size, dtype=np.int64)
        labelled[self.reference.nodes] = self._weights[self.reference.nodes] > 0
        support: IntArray = labelled.sum() - labelled[nodes]
        return support

    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""
        from napsets.kernels.weighed import background_answers

        # Where nothing weighs anything, any weight of the node itself avoids a division by 0.
        own = np.where((self._own[nodes] == 0) & (self._support(nodes) == 0), 1.0, self._own[nodes])
        owns, weights, squares = (read_only(array) for array in (self.numbers[nodes], own, self._sums[1]))

        def work(first: int, last: int) -> None:
            background_answers(first, last, owns, weights, squares, question, answers)

        in_pieces(work, nodes.size, threads, progress, piece=_LARGE_PIECE)


@dataclass(frozen=True)
class _Shift:
    """Importance weights, none negative and not all 0."""

    ratios: Any
    #: Its thresholds cover at a nominal level in the population that the ratios describe.
    shifted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ratios = check_numbers("ratios", self.ratios, largest=LARGEST_WEIGHT)
        if ratios.ndim != 1 or not ratios.size or not ratios.any():
            raise InvalidInputError(f"`ratios` must be one number each, not all of them 0; got shape {ratios.shape}")
        object.__setattr__(self, "ratios", tuple(ratios.tolist()))


@LOCALISERS.add("inverse-degree")
@dataclass(frozen=True)
class InverseDegree:
    """The weight of every reference node, and of the node to predict, is one over its degree.

    In a graph that grows edge by edge, nodes are discovered through their edges: a node with twice the degree is
    labelled twice as soon, and the labelled nodes are not a random sample. Weights of 1/degree correct for that (EdgeEx
    of Zargarbashi and Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024). Degrees are those of the
    current graph, on which the model's outputs should be recomputed too. The weight of a node without edges is 1.

    *Guarantee*: 1 − alpha for a node drawn uniformly, if labelled nodes were drawn in proportion to their degrees
    (weighted exchangeability with 1/degree as the ratio). The released code divides weights by their largest and gives
    the node to predict the weight 1 instead of its own 1/degree, which has no guarantee. *Cost*: sorting the scores,
    then log n per node.
    """

    def fit(self, reference: Reference) -> ImportanceLocal:
        """Return the localiser of these reference nodes."""
        return ImportanceLocal(self, reference, 1.0 / np.maximum(graph_of(reference).degrees, 1))


@LOCALISERS.add("covariate-shift")
@dataclass(frozen=True)
class CovariateShift(_Shift):
    """Importance weights for nodes to predict that come from another population than the labelled ones. No graph.

    Every reference node weighs its ratio dQ/dP, and so does the node to predict: P the law of what is known of labelled
    nodes (features, degree, region), Q that of the nodes to predict, with the same law of labels given it.

    *Guarantee*: at least 1 − alpha for a node drawn from Q, in finite samples, if labelled nodes were drawn from P and
    the ratios are right up to a factor. With ratios that were estimated it holds as far as these are right. *Cost*: a
    sort of the scores, then log n per node. Look at `effective_size`: with few labels that weigh much, sets are large.

    Parameters
    ----------
    ratios : array of shape (nodes,)
        dQ/dP of every node of the graph, labelled or not, up to a factor.

    Examples
    --------
    >>> import numpy as np, napsets as ns
    >>> rural = np.arange(1000) % 4 == 0  # a quarter of all nodes, half of those to predict
    >>> shifted = ns.Method("aps", ns.CovariateShift(np.where(rural, 0.5 / 0.25, 0.5 / 0.75)))
    """

    def __repr__(self) -> str:
        return f"CovariateShift({len(self.ratios):,} ratios from {min(self.ratios):g} to {max(self.ratios):g})"

    def fit(self, reference: Reference) -> ImportanceLocal:
        """Return the localiser of these reference nodes."""
        if len(self.ratios) != reference.num_nodes:
            raise InvalidInputError(
                f"`ratios` must have one entry per node, {reference.num_nodes}; got {len(self.ratios)}"
            )
        return ImportanceLocal(self, reference, np.array(self.ratios))


@LOCALISERS.add("label-shift")
@dataclass(frozen=True)
class LabelShift(_Shift):
    """Importance weights for a population in which classes are more or less common than among labelled nodes. No graph.

    A reference node of label y weighs ratios[y] = Q(y)/P(y), and a node to predict weighs the ratio of the candidate
    label, so that each label has a threshold of its own. What a node of a class looks like must not have changed.

    *Guarantee*: at least 1 − alpha for a node drawn from Q, in finite samples, if labelled nodes were drawn from P and
    the ratios are right up to a factor. *Cost*: a sort of the scores, then log n per node and label.

    Parameters
    ----------
    ratios : array of shape (classes,)
        The share of each class in the new population over its share among the labelled nodes, up to a factor.

    Examples
    --------
    >>> import napsets as ns
    >>> rarer = ns.Method("aps", ns.LabelShift([0.9 / 0.5, 0.1 / 0.5]))
    """

    #: It needs labels, and has a threshold for each.
    by_label: ClassVar[bool] = True

    def fit(self, reference: Reference) -> LabelShiftLocal:
        """Return the localiser of these reference nodes."""
        if reference.labels is None or reference.probabilities is None:
            raise InvalidInputError("`localiser` must not be LabelShift where there are no labels; got targets")
        classes = reference.probabilities.shape[1]
        if len(self.ratios) != classes:
            raise InvalidInputError(f"`ratios` must have one entry per class, {classes}; got {len(self.ratios)}")
        return LabelShiftLocal(self, reference)


@dataclass(frozen=True, eq=False)
class LabelShiftLocal:
    """Importance weights by label of known reference nodes."""

    localiser: LabelShift
    reference: Reference

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes for each label, at each cut."""
        ratios = np.array(self.localiser.ratios)
        distinct, groups = np.unique(ratios, return_inverse=True)
        weights = np.zeros(self.reference.num_nodes)
        weights[self.reference.nodes] = ratios[self.reference.labels]
        reports = stages(progress, [1] * distinct.size, nodes.size)
        parts = [
            ImportanceLocal(self.localiser, self.reference, weights, own=ratio).thresholds(
                nodes, cuts, threads=threads, progress=report
            )
            for ratio, report in zip(distinct.tolist(), reports, strict=True)
        ]
        by_group = np.stack([part.values for part in parts], axis=2)
        return LocalThresholds(
            by_group.min(axis=2), parts[0].support, parts[0].effective_size, by_group, groups.astype(np.int64)
        )

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Refuse: a rank would depend on the label that is asked about."""
        raise InvalidInputError("`level` must be Nominal() with LabelShift, which needs no held-out labels")
