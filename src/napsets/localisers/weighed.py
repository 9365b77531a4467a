"""What localisers share whose reference nodes weigh one by one, and whose node to predict need not weigh 1.

The threshold is the smallest reference score s with mass(s) ≥ (1 − α)(own + total): `own` is the weight of the node to
predict. Weights are the same up to a factor, so that `NodeWeights` shows them with own = 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_threads
from napsets.graph import Graph
from napsets.kernels.layout import read_only
from napsets.kernels.threads import run, stages
from napsets.localisers.base import RULES, Cut, LocalThresholds, Reference, graph_of
from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, WeighedQuery

#: Nodes handled between two looks at whether to stop, where they need no search.
_LARGE_PIECE = 1 << 14


@dataclass(frozen=True, eq=False)
class NodeWeights:
    """Who weighs how much for one node, which itself weighs 1."""

    nodes: IntArray  #: The reference nodes with weight, by score.
    #: The weight and the score of each.
    weights: FloatArray
    scores: FloatArray


class WeighedLocal(ABC):
    """Thresholds and ranks of weights that a kernel gathers for each node."""

    def __init__(self, localiser: Any, reference: Reference) -> None:
        self.localiser = localiser
        self.reference = reference

    @property
    def graph(self) -> Graph:
        """The graph around the reference nodes."""
        return graph_of(self.reference)

    @cached_property
    def numbers(self) -> IntArray:
        """Each node's place among the reference scores; of other nodes, at least how many there are."""
        return np.ascontiguousarray(self.reference.by_score[1], dtype=np.int64)

    @abstractmethod
    def background(self) -> tuple[FloatArray, float]:
        """Return running sums, by number, of what reference nodes weigh for everyone, and a factor."""

    @abstractmethod
    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""

    @abstractmethod
    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return numbers and weights beyond the background, and what the node itself weighs."""

    def unprepared(self) -> int:
        """Return how many nodes are to be looked at before the first can be answered for; none, once that is done."""
        return 0

    def prepare(self, threads: int, progress: Any) -> None:  # noqa: B027  (most have nothing to prepare)
        """Look at those."""

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut, from one search."""
        answers = self._answers(nodes, cuts, np.empty(0, dtype=np.int64), threads, progress)
        size = np.divide(answers.mass**2, answers.square, out=np.zeros(nodes.size), where=answers.square > 0)
        return LocalThresholds(np.ascontiguousarray(answers.values.T), answers.support, size)

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        positions = np.searchsorted(self.reference.by_score[0], scores, side="left").astype(np.int64)
        ranks: FloatArray = self._answers(nodes, [], positions, threads, progress).ranks
        return ranks

    def weights(self, node: int) -> NodeWeights:
        """Return the weight of each reference node for one node, from which its threshold is computed."""
        numbers, listed, own = self.listed(node)
        background_sums, background_weight = self.background()
        weights = background_weight * np.diff(background_sums)
        weights[numbers] += listed
        mine = self.numbers[node]
        if mine < weights.size:
            weights[mine] = 0.0
        chosen = np.flatnonzero(weights > 0)
        nodes, scores = self.reference.nodes_by_score[chosen], self.reference.by_score[0][chosen]
        return NodeWeights(nodes, weights[chosen] / (own or 1.0), scores)

    def _answers(
        self, nodes: IntArray, cuts: Sequence[Cut], positions: IntArray, threads: int | None, progress: Any
    ) -> Answer:
        from napsets.kernels.weighed import WeighedQuery, empty_answer

        workers = check_threads(threads)
        preparing, answering = stages(progress, (self.unprepared(), nodes.size), nodes.size)
        self.prepare(workers, preparing)
        background_sums, background_weight = self.background()
        question = WeighedQuery(
            read_only(self.reference.by_score[0]),
            read_only(background_sums),
            background_weight,
            read_only(np.array([cut.level for cut in cuts], dtype=np.float64)),
            read_only(np.array([RULES[cut.rule] for cut in cuts], dtype=np.int64)),
            ROUNDING,
            read_only(positions),
        )
        answers = empty_answer(nodes.size, len(cuts))
        if nodes.size:
            self.answer(nodes, question, answers, workers, answering)
        return answers


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


def in_pieces(work: Callable[[int, int], None], count: int, threads: int, progress: Any = None, *, piece: int) -> None:
    """Let threads call ``work(first, last)`` on pieces of this many items, each by one of them."""
    bounds = [(first, min(first + piece, count)) for first in range(0, count, piece)]
    pieces = ((last - first, lambda _, first=first, last=last: work(first, last)) for first, last in bounds)
    run(pieces, threads=max(1, min(threads, len(bounds))), total=count, progress=progress)


def lists_for(known: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the memory of one thread for a list of reference nodes: their numbers, the bits to sort them, sums."""
    return np.empty(known, dtype=np.int64), np.zeros(known // 64 + 1, dtype=np.uint64), np.zeros(known + 1)


def running(values: npt.NDArray[Any]) -> FloatArray:
    """Return running sums from 0, one more than there are values."""
    return np.append(0.0, np.cumsum(values, dtype=np.float64))
