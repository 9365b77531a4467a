"""Evidence about a node beyond the model's own output: neighbours, similar nodes, and their labels.

The evidence of a node and a label y is a product of powers of factors, and a product of powers is a sum of logarithms:

    log w(y|v) = a·log P(y|v) + c·log P̄(y|v) + Σ_k b_k·log(1 + n_k(y) / (κ_k π_y)),

so that P'(y|v) = w(y|v) / Σ_z w(z|v). (The factor (Σ_y n_k(y) + κ_k) of the evidence is the same for all labels, and
falls out.) The n_k count labelled nodes with label y, never v itself: *near*, the neighbours; *alike*, the nodes with
the same prediction; *wide*, those that a random walk of up to twelve steps meets, W = Σ_k 0.9^k M^k O with M the mean
over neighbours and O a one for each reference node and its label; *similar_5* and *similar_25*, the 5 and the 25
reference nodes with the most similar features.

A reference node must not meet its own label: for walks the reference is cut into halves, and each half meets the labels
of the other half, which count twice.

A recalibration of the model adds a linear function of log P, log P̄ and the logarithm of 1 + degree to log w.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, FloatArray, IntArray
from napsets.graph import Graph
from napsets.scores.base import Labelled, require_graph
from napsets.scores.exponents import (
    PRIOR,
    Exponents,
    Learned,
    alike_table,
    conditional_logit,
    fit_recalibration,
    likelihood_gains,
    recalibrated,
    weighed,
)

#: A probability below it counts as this much: one confident mistake must not outweigh all evidence.
_LEAST = 1e-6
#: So many labels with the mean predicted shares are added to the reference labels for the shares of labels.
SHARES_PRIOR = 20.0
#: The most steps of a walk, and what each step is worth of the one before.
_WALK, WALK_WORTH = 12, 0.9
#: Stored edges × classes × steps of the walks, at most; in large graphs they take fewer steps, at least two.
_MOST_WALKED = 1 << 31
#: Reference nodes that the exponents are fitted on, at most: a handful of numbers needs no more.
_MOST_FITTED = 1 << 14
#: Nodes × classes whose evidence is weighed, or fitted, at a time: this bounds the memory, apart from a few matrices.
_ENTRIES, _FITTED_ENTRIES = 1 << 19, 1 << 21
#: Reference nodes × coefficients that a recalibration is fitted with: this bounds its time.
_RECALIBRATED_ENTRIES = 1 << 22
#: With so many classes that fewer reference nodes would be fitted on, nothing is recalibrated.
_FEWEST_RECALIBRATED = 500


class Evidence:
    """Evidence about every node and label beyond the model's own output, as logarithms of odds.

    The reference labels may be used for anything. `nearest` holds the reference nodes with the most similar features,
    where there are features (see `napsets.features`). What was `learned` from other reference labels may be passed.
    Takes O(edges × classes) time and O(nodes × classes) memory.
    """

    def __init__(
        self,
        outputs: AnyArray,
        graph: Graph | None,
        reference: Labelled,
        *,
        nearest: npt.NDArray[np.int32] | None = None,
        linear: FloatArray | None = None,
        learned: Learned | None = None,
    ) -> None:
        nodes, classes = outputs.shape
        self.label_of = np.full(nodes, -1, dtype=np.int64)
        self.label_of[reference.nodes] = reference.labels
        self.outputs, self.graph, self.reference, self.nearest = outputs, graph, reference, nearest
        self.linear = linear if learned is None else learned.linear
        self.predicted = outputs.argmax(axis=1)
        self.counts: dict[str, FloatArray] = {}
        self.degrees: IntArray | None = None
        if graph is not None:
            self.degrees = graph.degrees
            self.counts["near"] = neighbour_labels(graph, self.label_of, classes)
            walked = None if learned is None else learned.walked
            self.counts["wide"] = walk(graph, reference, classes) if walked is None else walked
        if learned is None:
            self.names = (*kinds(graph is not None, nearest is not None), *("linear",) * (linear is not None))
            self.shares: FloatArray = label_shares(outputs, reference.labels)
            self.table = alike_table(outputs, reference)
        else:
            self.names, self.shares, self.table = learned.kinds, learned.shares, learned.table

    @classmethod
    def of_rows(
        cls,
        outputs: AnyArray,
        neighbour_outputs: FloatArray,
        label_of: IntArray,
        degrees: IntArray,
        counts: dict[str, FloatArray],
        learned: Learned,
    ) -> Evidence:
        """Return the evidence of rows whose surroundings were counted elsewhere.

        Parameters
        ----------
        outputs, neighbour_outputs : arrays of shape (rows, classes)
            The outputs of the model, and their means over neighbours and neighbours' neighbours.
        label_of : array of integers
            The labels of rows that are in the reference, −1 elsewhere.
        degrees : array of integers
            The numbers of neighbours.
        counts : dict
            The counts of labels by kind of evidence, shape (rows, classes) each.
        learned : Learned
            What was learned before.
        """
        evidence = object.__new__(cls)
        evidence.outputs, evidence.graph, evidence.nearest, evidence.linear = outputs, None, None, None
        evidence.names, evidence.shares, evidence.table = learned.kinds, learned.shares, learned.table
        evidence.label_of, evidence.predicted, evidence.counts = label_of, outputs.argmax(axis=1), counts
        evidence.degrees = degrees
        evidence.__dict__["neighbour_outputs"] = neighbour_outputs
        return evidence

    @cached_property
    def neighbour_outputs(self) -> FloatArray:
        """The model's mean output for the neighbours and for their neighbours; its own output for isolated nodes."""
        graph = require_graph(self.graph)
        means = means_around(graph, self.outputs.astype(np.float64, copy=False))
        return 0.5 * (means + means_around(graph, means))

    def logs(self, name: str, rows: IntArray) -> FloatArray:
        """Return the logarithm of one factor, shape (rows, classes)."""
        if name in ("model", "around"):
            p = self.outputs if name == "model" else self.neighbour_outputs
            return log_floored(p[rows])
        if name == "linear":
            assert self.linear is not None
            return self.linear[rows]
        if name in self.counts:
            counts = self.counts[name][rows]
        else:
            counts = self._alike(rows) if name == "alike" else self._similar(rows, int(name.removeprefix("similar_")))
        return np.log1p(counts / (PRIOR[name] * self.shares))

    def features(self, rows: IntArray) -> FloatArray:
        """Return the logarithms of all factors, shape (rows, classes, factors)."""
        return np.stack([self.logs(name, rows) for name in self.names], axis=2)

    def _alike(self, rows: IntArray) -> FloatArray:
        """Count the labels of reference nodes with the same prediction, a node's own left out."""
        counts: FloatArray = self.table[self.predicted[rows]]
        known = np.flatnonzero(self.label_of[rows] >= 0)
        cells = known, self.label_of[rows[known]]
        counts[cells] = np.maximum(counts[cells] - 1.0, 0.0)
        return counts

    def _similar(self, rows: IntArray, count: int) -> FloatArray:
        """Count the labels of the reference nodes with the most similar features."""
        assert self.nearest is not None
        return similar_labels(self.nearest[rows, :count], self.label_of, self.outputs.shape[1])

    def recalibration_inputs(self, rows: IntArray) -> FloatArray:
        """Return the inputs of a recalibration: logarithms of outputs, of those around the node, and of its degree."""
        if self.degrees is None:
            return self.logs("model", rows)
        return np.column_stack([self.logs("model", rows), self.logs("around", rows), np.log1p(self.degrees[rows])])

    def fit(self, reference: Labelled | None = None) -> Learned:
        """Return the exponents and the recalibration under which the reference labels are most likely, near none."""
        reference = self.reference if reference is None else reference
        nodes, labels = reference.nodes, reference.labels
        kept = fitted_rows(nodes.size, self.outputs.shape[1])
        nodes, labels = nodes[kept], labels[kept]
        features, classes = self.features(nodes), self.outputs.shape[1]
        exponents, offsets = conditional_logit(features, labels), np.zeros((nodes.size, classes))
        most, recalibration = _RECALIBRATED_ENTRIES // (2 * classes * (classes + 1)), None
        if most >= _FEWEST_RECALIBRATED:
            inputs = self.recalibration_inputs(nodes)
            few = evenly(nodes.size, most)
            rows, truth = inputs[few], labels[few]
            start = np.zeros((inputs.shape[1] + 1, classes))
            # Fitted in turn, twice: that comes close to fitting both together.
            first = fit_recalibration(rows, truth, weighed(features[few], exponents), start)
            exponents = conditional_logit(features, labels, recalibrated(inputs, first))
            recalibration = fit_recalibration(rows, truth, weighed(features[few], exponents), first)
            offsets = recalibrated(inputs, recalibration)
        named = dict(zip(self.names, exponents.tolist(), strict=True))
        gains = likelihood_gains(features, labels, exponents, offsets)
        return Learned(
            self.names, Exponents(**named), gains, self.shares, self.table, recalibration, linear=self.linear
        )

    def recalibration(self, learned: Learned, rows: IntArray) -> FloatArray:
        """Return the term that the recalibration adds to log w; 0 without a recalibration."""
        if learned.recalibration is None:
            return np.zeros((rows.size, self.outputs.shape[1]))
        return recalibrated(self.recalibration_inputs(rows), learned.recalibration)

    def _weights(self, learned: Learned, rows: IntArray) -> FloatArray:
        """Return w(y|v) of some nodes, up to a factor per node."""
        total = self.recalibration(learned, rows)
        for name in self.names:
            exponent = getattr(learned.exponents, name)
            if exponent:
                total = total + exponent * self.logs(name, rows)
        weights: FloatArray = np.exp(total - total.max(axis=1, keepdims=True))
        return weights

    def probabilities(self, learned: Learned) -> AnyArray:
        """Return the corrected probabilities of all nodes, as wide as the model's."""
        out = np.empty_like(self.outputs)
        step = max(1, _ENTRIES // out.shape[1])
        for start in range(0, out.shape[0], step):
            rows = np.arange(start, min(start + step, out.shape[0]))
            weights = self._weights(learned, rows)
            out[rows] = weights / weights.sum(axis=1, keepdims=True)
        return out


def kinds(graph: bool, features: bool) -> tuple[str, ...]:
    """Return the kinds of evidence, with a graph or without, with features or without."""
    edges, similar = ("around", "near"), ("similar_5", "similar_25")
    return ("model", *edges * graph, "alike", *("wide",) * graph, *similar * features)


def similar_labels(nearest: npt.NDArray[np.int32], label_of: IntArray, classes: int) -> FloatArray:
    """Count the labels of the most similar reference nodes of each row; −1 marks missing ones."""
    row, place = np.nonzero(nearest >= 0)
    cells = row * classes + label_of[nearest[row, place]]
    return np.bincount(cells, minlength=len(nearest) * classes).reshape(-1, classes).astype(np.float64)


def neighbour_labels(graph: Graph, label_of: IntArray, classes: int) -> FloatArray:
    """Count the labels of each node's neighbours, shape (nodes, classes); −1 does not count."""
    from napsets.kernels import csr

    return csr.neighbour_labels(graph.indptr, graph.indices, label_of, classes)


def walk(graph: Graph, reference: Labelled, classes: int) -> FloatArray:
    """Return the labels that walks meet from every node; from a reference node, twice those of the other half of them.

    The halves alternate in the order of the reference.
    """
    half = np.arange(reference.nodes.size) % 2
    columns = reference.labels + classes * half
    scale = (WALK_WORTH / np.maximum(graph.degrees, 1))[:, None]
    met = np.zeros((graph.num_nodes, 2 * classes))
    for _ in range(max(2, min(_WALK, _MOST_WALKED // max(1, graph.num_edges * 2 * classes)))):
        met[reference.nodes, columns] += 1.0  # in place: a second table of this size would double the memory
        met = graph.neighbour_sums(met)
        met *= scale
    both: FloatArray = met[:, :classes] + met[:, classes:]
    for which in (0, 1):
        nodes = reference.nodes[half == which]
        both[nodes] = 2.0 * met[nodes, classes * (1 - which) : classes * (2 - which)]
    return both


def means_around(graph: Graph, values: AnyArray) -> FloatArray:
    """Return the mean of the neighbours' rows of `values`, and the own row of a node without neighbours."""
    means = graph.neighbour_means(values)
    alone = graph.degrees == 0
    means[alone] = values[alone]
    return means


def log_floored(p: AnyArray) -> FloatArray:
    """Return the logarithms of probabilities, of which very small ones count as a little more."""
    return np.log(np.maximum(p.astype(np.float64), _LEAST))


def label_shares(outputs: AnyArray, labels: IntArray) -> FloatArray:
    """Return the shares of labels in the reference, drawn a little towards the mean predictions."""
    counts = np.bincount(labels, minlength=outputs.shape[1]) + SHARES_PRIOR * outputs.mean(axis=0, dtype=np.float64)
    counts = np.maximum(counts, _LEAST * counts.sum())
    shares: FloatArray = counts / counts.sum()
    return shares


def fitted_rows(size: int, classes: int) -> IntArray:
    """Return the reference nodes, of this many, that the exponents are fitted on."""
    return evenly(size, max(100, min(_MOST_FITTED, _FITTED_ENTRIES // classes)))


def evenly(size: int, most: int) -> IntArray:
    """Return at most `most` evenly spaced indices below `size`."""
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)
