"""Importance weights, which undo a known shift between the labelled nodes and those to predict.

If labelled nodes come from P and the nodes to predict from Q, and w = dQ/dP is known up to a factor, then with
reference nodes that weigh w and a node to predict that weighs its own w, coverage is at least 1 − alpha in finite
samples (weighted exchangeability: Tibshirani, Foygel Barber, Candès and Ramdas, *Conformal prediction under covariate
shift*, NeurIPS 2019). Under *covariate shift* w is a function of what is known of a node (`CovariateShift`); under
*label shift* it is a function of the label, so that each candidate label has a threshold of its own (`LabelShift`;
Podkopaev and Ramdas, UAI 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, check_numbers
from napsets.checks.values import check_threads
from napsets.errors import InvalidInputError
from napsets.kernels.threads import Progress, stages
from napsets.localisers.base import LOCALISERS, Cut, LocalThresholds, Reference, pieces
from napsets.localisers.weights import NodeWeights
from napsets.quantile import LARGEST_WEIGHT


class _Sums:
    """Running sums of numbers by ascending score, for nodes that do not count for themselves."""

    def __init__(self, values: FloatArray) -> None:
        self.sums = np.append(0.0, np.cumsum(values))
        self.steps = np.append(np.diff(self.sums), 0.0)  # the last one for nodes that are not among them

    def before(self, position: IntArray | int, own: IntArray) -> FloatArray:
        """Return the sum of the numbers before a position, without a node's own."""
        before: FloatArray = self.sums[position] - np.where(own < position, self.steps[own], 0.0)
        return before


class ImportanceLocal:
    """Reference nodes with one weight each, for all nodes to predict, whose own weights are the same or `own`."""

    def __init__(self, localiser: _Shift, reference: Reference, weights: FloatArray, own: float | None = None) -> None:
        self.localiser, self.reference = localiser, reference
        self._weights = weights
        self._own = weights if own is None else np.full(weights.size, own)
        self._scores, numbers = reference.by_score
        self._numbers = np.minimum(numbers, self._scores.size).astype(np.int64)
        by_score = weights[reference.nodes_by_score]
        self._masses, self._squares = _Sums(by_score), _Sums(by_score**2)

    def _wholes(self, nodes: IntArray, support: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the mass of the other nodes, without and with the weight of the node itself."""
        total = self._masses.before(self._scores.size, self._numbers[nodes])
        # Where nothing weighs anything, any weight of the node itself avoids a division by 0.
        return total, np.where((self._own[nodes] == 0) & (support == 0), 1.0, self._own[nodes]) + total

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut; nodes of weight 0 without any mass around have none."""
        check_threads(threads)
        support, values = self._support(nodes), np.empty((len(cuts), nodes.size))
        size = np.zeros(nodes.size)
        for part in pieces(nodes.size, progress):
            own = self._numbers[nodes[part]]
            total, whole = self._wholes(nodes[part], support[part])
            square = self._squares.before(self._scores.size, own)
            np.divide(total**2, square, out=size[part], where=square > 0)
            for row, cut in zip(values, cuts, strict=True):
                row[part] = np.where(cut.accepts(total, whole), self._first(cut, own, whole), np.inf)
        values[:, (support == 0) & (self._own[nodes] == 0)] = np.inf
        return LocalThresholds(values, support, size)

    def _first(self, cut: Cut, own: IntArray, whole: FloatArray) -> FloatArray:
        """Return the first score at which the mass is enough, by halving; −∞ where none is needed."""
        low, high = np.full(own.size, -1), np.full(own.size, self._scores.size)
        while (high - low > 1).any():
            middle = np.maximum((low + high) >> 1, 0)
            enough = cut.accepts(self._masses.before(middle, own), whole)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        first: FloatArray = np.append(-np.inf, self._scores)[high]
        return first

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        ranks = np.empty(nodes.size)
        for part in pieces(nodes.size, progress):
            below = np.searchsorted(self._scores, scores[part], side="left")
            _, whole = self._wholes(nodes[part], self._support(nodes[part]))
            ranks[part] = self._masses.before(below, self._numbers[nodes[part]]) / whole
        return ranks

    def weights(self, node: int) -> NodeWeights:
        """Return the weight of each reference node for one node, from which its threshold is computed."""
        others, weights = self.reference.nodes_by_score, self._masses.steps[:-1]
        chosen = np.flatnonzero((weights > 0) & (others != node))
        return NodeWeights(others[chosen], weights[chosen] / (self._own[node] or 1.0), self._scores[chosen])

    def _support(self, nodes: IntArray) -> IntArray:
        """Return the number of reference nodes with weight for each node; it does not count for itself."""
        labelled = np.zeros(self._weights.size, dtype=np.int64)
        labelled[self.reference.nodes] = self._weights[self.reference.nodes] > 0
        support: IntArray = labelled.sum() - labelled[nodes]
        return support


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
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
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
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """Raise an error: a rank would depend on the candidate label."""
        raise InvalidInputError("`level` must be Nominal() with LabelShift, which needs no held-out labels")
