"""What the labels around a node say of its label, counted so that no order of adding can change a bit.

The evidence of a node and a label y is a product of powers of factors, and a product of powers is a sum of logarithms:

    log w(y|v) = a·log P(y|v) + c·log P̄(y|v) + Σ_k b_k·log(1 + n_k(y) / (κ_k π_y)),

so that P'(y|v) = w(y|v) / Σ_z w(z|v). (The factor (Σ_y n_k(y) + κ_k) of the evidence is the same for all labels, and
falls out.) The n_k count labelled nodes with label y, never v itself: *near*, the neighbours; *far*, the neighbours'
neighbours, of which each neighbour passes on its share; *alike*, those with the same prediction; *wide*, what a random
walk of up to twelve steps meets. Near and far count every label that may be evidence, the others the reference labels
alone.

A recalibration of the model adds a linear function of log P, log P̄ and the logarithm of 1 + degree to log w.

Shares are multiples of 2⁻³⁰, so that their sums are exact: a label that is added, taken out or left out gives the bits
that counting again would give. Through a *crowded* node, one with over `CROWD` reference neighbours, the reference
labels alone are passed on: they are enough to know its surroundings by, and the labels that one candidate can change
stay few, whatever hubs there are.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.graph import Graph
from napsets.scores.base import Labelled
from napsets.scores.exponents import (
    PRIOR,
    Exponents,
    Learned,
    alike_table,
    conditional_logit,
    fit_recalibration,
    log_likelihoods,
    recalibrated,
    weighed,
)

#: A probability below it counts as this much: one confident mistake must not outweigh all evidence.
_LEAST = 1e-6
#: So many labels with the mean predicted shares are added to the reference labels for the shares of labels.
SHARES_PRIOR = 20.0
#: From this many reference neighbours on, a node passes on no other labels than theirs.
CROWD = 64
#: What shares that nodes pass on are multiples of.
_UNIT = 2.0**-30
#: How far a walk goes that meets wide evidence, and what each step is worth of the one before.
_WALK, _WORTH = 12, 0.9
#: Standard errors by which wide evidence must gain.
_ERRORS = 2.0
#: Reference nodes that the exponents are fitted on, at most: a handful of numbers needs no more.
_MOST_FITTED = 1 << 14
#: Nodes × classes whose evidence is weighed, or fitted, at a time: this bounds the memory, apart from a few matrices.
_ENTRIES, _FITTED_ENTRIES = 1 << 19, 1 << 21
#: Reference nodes × coefficients that a recalibration is fitted with: this bounds its time.
_RECALIBRATED_ENTRIES = 1 << 22
#: With so many classes that fewer reference nodes would be fitted on, nothing is recalibrated.
_FEWEST_RECALIBRATED = 500


class Evidence:
    """What is known of every node and label in addition to the model's own word, as logarithms of odds.

    The reference labels may be used for anything; labelled nodes up to `hops` (0, 1 or 2) away are counted, and with
    `wide` what random walks meet. What was `learned` from other reference labels may be passed. Takes O(edges ×
    classes) time and O(nodes × classes) memory.
    """

    def __init__(
        self,
        outputs: npt.NDArray[Any],
        graph: Graph,
        reference: Labelled,
        hops: int,
        *,
        wide: bool = False,
        learned: Learned | None = None,
    ) -> None:
        self.outputs, self.graph, self.reference = outputs, graph, reference
        nodes, classes = outputs.shape
        self.names = ("model", "around", *("near", "far")[:hops], "alike", *("wide",) * wide)
        if learned is None:
            self.shares: FloatArray = label_shares(outputs, reference.labels)
            self.table = alike_table(outputs, reference)
        else:
            self.shares, self.table = learned.shares, learned.table
        self.label_of = np.full(nodes, -1, dtype=np.int64)
        self.label_of[reference.nodes] = reference.labels
        self.predicted = outputs.argmax(axis=1)
        self.degrees: IntArray = graph.degrees
        self.counts: dict[str, FloatArray] = {}
        if hops >= 1:
            self.counts["near"] = graph.neighbour_labels(self.label_of, classes)
        if hops == 2:
            #: The share of each label around it that a node passes on; of labels beyond the reference, nothing where
            #: the reference is a crowd.
            self.passed_shares = passed_shares(graph)
            self.held_out_shares = np.where(self.counts["near"].sum(axis=1) > CROWD, 0.0, self.passed_shares)
            self.counts["far"] = self._passed_on(self.counts["near"], reference, self.passed_shares)

    @classmethod
    def of_rows(
        cls,
        outputs: npt.NDArray[Any],
        neighbour_outputs: FloatArray,
        label_of: IntArray,
        degrees: IntArray,
        counts: dict[str, FloatArray],
        learned: Learned,
    ) -> Evidence:
        """Return the evidence of some nodes, whose surroundings were counted elsewhere: outputs around them and labels.

        `label_of` has their labels where they are in the reference, −1 elsewhere; `counts` those near, and far, as far
        as they are looked at.
        """
        some = object.__new__(cls)
        some.outputs = outputs
        some.names = ("model", "around", *counts, "alike")
        some.shares, some.table = learned.shares, learned.table
        some.label_of, some.predicted, some.counts = label_of, outputs.argmax(axis=1), counts
        some.degrees = degrees
        some.__dict__["neighbour_outputs"] = neighbour_outputs
        return some

    @cached_property
    def neighbour_outputs(self) -> FloatArray:
        """The model's mean output for the neighbours and for their neighbours; its own output for isolated nodes."""
        means = means_around(self.graph, self.outputs.astype(np.float64, copy=False))
        return 0.5 * (means + means_around(self.graph, means))

    def _passed_on(self, near: FloatArray, labelled: Labelled, parts: FloatArray) -> FloatArray:
        """Return what neighbours pass on of the labels around them, a node's own left out."""
        passed = self.graph._neighbour_sums(parts[:, None] * near)
        # What a node's own label comes back as, over each neighbour that has an edge back to it.
        passed[labelled.nodes, labelled.labels] -= sums_over_way_back(self.graph, parts)[labelled.nodes]
        return passed

    def with_bag(self, bag: Labelled) -> Evidence:
        """Return the evidence with the labels of more nodes, which change nothing but the counts near and far."""
        evidence = copy(self)
        labels = np.full(self.label_of.size, -1, dtype=np.int64)
        labels[bag.nodes] = bag.labels
        counts = dict(self.counts)
        if "near" in counts:
            near = self.graph.neighbour_labels(labels, self.outputs.shape[1])
            if "far" in counts:
                counts["far"] = counts["far"] + self._passed_on(near, bag, self.held_out_shares)
            counts["near"] = counts["near"] + near
        evidence.counts = counts
        return evidence

    @cached_property
    def _walked(self) -> FloatArray:
        """The labels that a walk meets from every node; from a reference node, those of the other half of them."""
        nodes, classes = self.outputs.shape
        now = np.zeros((nodes, 2 * classes))
        half = np.arange(self.reference.nodes.size) % 2
        now[self.reference.nodes, self.reference.labels + classes * half] = 1.0
        total = np.zeros_like(now)
        for step in range(_WALK):
            now = self.graph._neighbour_sums(now) / np.maximum(self.degrees, 1)[:, None]
            total += _WORTH ** (step + 1) * now
        met: FloatArray = total[:, :classes] + total[:, classes:]
        for which in (0, 1):
            mine = self.reference.nodes[half == which]
            met[mine] = 2.0 * total[mine, classes * (1 - which) : classes * (2 - which)]
        return met

    def logs(self, name: str, rows: IntArray) -> FloatArray:
        """Return the logarithm of one factor, shape (rows, classes)."""
        if name in ("model", "around"):
            p = self.outputs if name == "model" else self.neighbour_outputs
            return log_floored(p[rows])
        counted = self._walked if name == "wide" else self.counts.get(name)
        counts = self._alike(rows) if counted is None else counted[rows]
        return np.log1p(counts / (PRIOR[name] * self.shares))

    def features(self, rows: IntArray) -> FloatArray:
        """Return the logarithms of all factors, shape (rows, classes, factors)."""
        return np.stack([self.logs(name, rows) for name in self.names], axis=2)

    def _alike(self, rows: IntArray) -> FloatArray:
        """Count the labels of reference nodes with the same prediction, a node's own left out."""
        counts: FloatArray = self.table[self.predicted[rows]]
        known = np.flatnonzero(self.label_of[rows] >= 0)
        own = known, self.label_of[rows[known]]
        counts[own] = np.maximum(counts[own] - 1.0, 0.0)
        return counts

    def fit(self, reference: Labelled | None = None) -> Learned:
        """Return the exponents and the recalibration under which the reference labels are most likely, near none."""
        reference = self.reference if reference is None else reference
        nodes, labels = reference.nodes, reference.labels
        kept = fitted_rows(nodes.size, self.outputs.shape[1])
        nodes, labels = nodes[kept], labels[kept]
        features, classes = self.features(nodes), self.outputs.shape[1]
        exponents = conditional_logit(features, labels)
        most, recalibration = _RECALIBRATED_ENTRIES // (2 * classes * (classes + 1)), None
        if most >= _FEWEST_RECALIBRATED:
            inputs = recalibration_inputs(features[:, :, 0], features[:, :, 1], self.degrees[nodes])
            few = evenly(nodes.size, most)
            some, truth = inputs[few], labels[few]
            start = np.zeros((inputs.shape[1] + 1, classes))
            # Fitted in turn, twice: that comes close to fitting both together.
            first = fit_recalibration(some, truth, weighed(features[few], exponents), start)
            exponents = conditional_logit(features, labels, recalibrated(inputs, first))
            recalibration = fit_recalibration(some, truth, weighed(features[few], exponents), first)
        named = dict(zip(self.names, exponents.tolist(), strict=True))
        return Learned(Exponents(**named), self.shares, self.table, recalibration)

    def recalibration(self, learned: Learned, rows: IntArray) -> FloatArray:
        """Return what the recalibration adds to log w; nothing where there is none."""
        if learned.recalibration is None:
            return np.zeros((rows.size, self.outputs.shape[1]))
        inputs = recalibration_inputs(self.logs("model", rows), self.logs("around", rows), self.degrees[rows])
        return recalibrated(inputs, learned.recalibration)

    def wide_helps(self) -> bool:
        """Return whether wide evidence makes the reference labels clearly likelier, by cross-validation among them."""
        nodes, labels = self.reference.nodes, self.reference.labels
        features = self.features(nodes)
        halves = np.arange(nodes.size) % 2
        gains = np.empty(nodes.size)
        for which in (0, 1):
            mine = halves == which
            # Exponents of one half judge the other, with the last factor, which is the wide one, and without.
            more, less = (
                log_likelihoods(part[mine], labels[mine], conditional_logit(part[~mine], labels[~mine]))
                for part in (features, features[:, :, :-1])
            )
            gains[mine] = more - less
        return bool(gains.mean() > _ERRORS * gains.std() / np.sqrt(nodes.size))

    def fixed(self, learned: Learned, rows: IntArray) -> FloatArray:
        """Return the part of log w that no label outside the reference changes, less its largest value."""
        exponents = learned.exponents
        model, around = self.logs("model", rows), self.logs("around", rows)
        total = exponents.model * model + exponents.around * around
        for name in self.names[2:]:
            if name not in ("near", "far") and getattr(exponents, name):
                total = total + getattr(exponents, name) * self.logs(name, rows)
        if learned.recalibration is not None:
            total = total + recalibrated(recalibration_inputs(model, around, self.degrees[rows]), learned.recalibration)
        logs: FloatArray = total - total.max(axis=1, keepdims=True)
        return logs

    def count(self, name: str, rows: IntArray) -> FloatArray:
        """Return the labels counted near or far; zeros where they are not looked at."""
        return self.counts[name][rows] if name in self.counts else np.zeros((rows.size, self.outputs.shape[1]))

    def probabilities(self, learned: Learned) -> npt.NDArray[Any]:
        """Return the corrected probabilities of all nodes, as wide as the model's."""
        out = np.empty_like(self.outputs)
        step = max(1, _ENTRIES // out.shape[1])
        for start in range(0, out.shape[0], step):
            rows = np.arange(start, min(start + step, out.shape[0]))
            counts = self.count("near", rows), self.count("far", rows)
            out[rows] = normalised(label_weights(learned, self.fixed(learned, rows), *counts))
        return out


def means_around(graph: Graph, values: npt.NDArray[Any]) -> FloatArray:
    """Return the mean of the neighbours' rows of `values`, and the own row of a node without neighbours."""
    means = graph.neighbour_means(values)
    alone = graph.degrees == 0
    means[alone] = values[alone]
    return means


def log_floored(p: npt.NDArray[Any]) -> FloatArray:
    """Return the logarithms of probabilities, of which very small ones count as a little more."""
    return np.log(np.maximum(p.astype(np.float64), _LEAST))


def label_shares(outputs: npt.NDArray[Any], labels: IntArray) -> FloatArray:
    """Return the shares of labels in the reference, drawn a little towards the mean predictions."""
    counts = np.bincount(labels, minlength=outputs.shape[1]) + SHARES_PRIOR * outputs.mean(axis=0, dtype=np.float64)
    counts = np.maximum(counts, _LEAST * counts.sum())
    shares: FloatArray = counts / counts.sum()
    return shares


def recalibration_inputs(model: FloatArray, around: FloatArray, degrees: IntArray) -> FloatArray:
    """Return what a recalibration looks at: the logarithms of what the model says, there and around, and of degrees."""
    return np.column_stack([model, around, np.log1p(degrees)])


def fitted_rows(size: int, classes: int) -> IntArray:
    """Return which of this many reference nodes the exponents are fitted on."""
    return evenly(size, max(100, min(_MOST_FITTED, _FITTED_ENTRIES // classes)))


def evenly(size: int, most: int) -> IntArray:
    """Return at most this many of 0..size, evenly spread: no more are needed to learn, or to judge, by."""
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)


def passed_shares(graph: Graph) -> FloatArray:
    """Return, for each node, the share of each label around it that it passes on: one over its degree, rounded down."""
    return np.floor(1.0 / (_UNIT * np.maximum(graph.degrees, 1))) * _UNIT


def label_weights(
    learned: Learned, fixed: FloatArray, near: FloatArray, far: FloatArray, labels: IntArray | None = None
) -> FloatArray:
    """Return w(y|v), entry by entry: what is `fixed` of nodes and labels, times the labels counted near and far.

    Where an entry is not of the label of its column, `labels` says of which.
    """
    exponents, shares = learned.exponents, learned.shares if labels is None else learned.shares[labels]
    total = fixed
    for name, counts in (("near", near), ("far", far)):
        exponent = getattr(exponents, name)
        if exponent:
            total = total + exponent * np.log1p(counts / (PRIOR[name] * shares))
    return np.exp(total)


def normalised(weights: FloatArray) -> FloatArray:
    """Return rows that sum to 1."""
    rows: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return rows


def sums_over_way_back(graph: Graph, values: FloatArray) -> FloatArray:
    """Return, for each node, the sum of the values of its neighbours that have it as a neighbour too."""
    if not graph.directed:
        return graph._neighbour_sums(values[:, None])[:, 0]
    one_way = graph.to_scipy()
    sums: FloatArray = one_way.multiply(one_way.T).tocsr() @ values
    return sums
