"""No neighbourhoods: all reference nodes count for every node, with equal weights or with weights of 1/degree.

`Everyone` is split conformal prediction; `InverseDegree` corrects for sampling along edges (EdgeEx of Zargarbashi and
Bojchevski, ICLR 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.layout import read_only
from napsets.localisers.base import LOCALISERS, Cut, LocalThresholds, Reference, graph_of
from napsets.localisers.weighed import WeighedLocal, in_pieces, running
from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, Question

_PIECE = 1 << 18  # nodes handled between two reports
_WEIGHED_PIECE = 1 << 14  # the same, where each node has a threshold of its own to look for


@LOCALISERS.add("everyone")
@dataclass(frozen=True)
class Everyone:
    """All reference nodes, near and far, have weight 1. Needs no graph."""

    proven: ClassVar[bool] = True

    def fit(self, reference: Reference) -> EveryoneLocal:
        """Return the localiser of these reference nodes."""
        return EveryoneLocal(reference)


@dataclass(frozen=True, eq=False)
class EveryoneLocal:
    """All of some reference nodes."""

    reference: Reference

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut: order statistics of the other reference scores."""
        scores, numbers = self.reference.by_score
        values, support = np.empty((len(cuts), nodes.size)), np.empty(nodes.size, dtype=np.int64)
        for rows in _pieces(nodes.size, progress):
            own = numbers[nodes[rows]].astype(np.int64)
            support[rows] = scores.size - (own < scores.size)
            for row, cut in zip(values, cuts, strict=True):
                row[rows] = _order_statistics(scores, own, support[rows], cut)
        return LocalThresholds(values, support, support.astype(np.float64))

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Return the share of the other reference scores that are strictly below each node's score."""
        known, numbers = self.reference.by_score
        ranks = np.empty(nodes.size)
        for rows in _pieces(nodes.size, progress):
            own = numbers[nodes[rows]].astype(np.int64)
            below = np.searchsorted(known, scores[rows], side="left")
            ranks[rows] = (below - (own < below)) / (1.0 + (known.size - (own < known.size)))
        return ranks


def _pieces(count: int, progress: Any) -> Iterator[slice]:
    """Yield some nodes at a time, and report how many are done."""
    for first in range(0, count, _PIECE):
        last = min(first + _PIECE, count)
        yield slice(first, last)
        if progress is not None:
            progress(last, count)


def _order_statistics(scores: FloatArray, own: IntArray, support: IntArray, cut: Cut) -> FloatArray:
    """Return, for each node, the smallest score of the others up to which there are as many as the cut needs."""
    # A node is among the reference nodes or is not: there are two sizes, and a number of scores needed for each.
    needed = np.array([needed_count(n, cut) for n in (scores.size - 1, scores.size)])
    wanted = needed[support - scores.size + 1] - 1
    reached = wanted < support
    # One further on, where the node's own score stands before it.
    wanted = np.where(own <= wanted, wanted + 1, wanted)
    values = np.full(own.size, np.inf)
    values[reached] = scores[np.maximum(wanted[reached], 0)]
    values[reached & (wanted < 0)] = -np.inf
    return values


def needed_count(size: int, cut: Cut) -> int:
    """Return the smallest count m, of `size` scores, that the cut accepts; more than `size` where none does."""
    if not cut.level <= 1.0:  # NaN among them
        return size + 1
    if cut.rule == "nominal":
        return int(np.ceil(cut.level * (1.0 + float(size)) * (1.0 - ROUNDING)))
    count = max(0, int(np.floor(cut.level * (1.0 + size))) - 1)  # a little low: the division decides
    while count <= size and not (
        count / (1.0 + size) >= cut.level if cut.rule == "at least" else count / (1.0 + size) > cut.level
    ):
        count += 1
    return count


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

    def answer(self, nodes: IntArray, question: Question, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""
        from napsets.kernels.weighed import background_answers

        # Where nothing weighs anything, any weight of the node itself avoids a division by 0.
        own = np.where((self._own[nodes] == 0) & (self._support(nodes) == 0), 1.0, self._own[nodes])
        owns, weights, squares = (read_only(array) for array in (self.numbers[nodes], own, self._sums[1]))

        def work(first: int, last: int) -> None:
            background_answers(first, last, owns, weights, squares, question, answers)

        in_pieces(work, nodes.size, threads, progress, piece=_WEIGHED_PIECE)
