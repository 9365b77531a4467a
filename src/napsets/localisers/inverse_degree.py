"""Weights that undo sampling by edges: EdgeEx (Zargarbashi and Bojchevski, ICLR 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import InvalidInputError
from napsets.localisers.base import LOCALISERS, NO_GRAPH, Reference
from napsets.localisers.weighed import WeighedLocal, in_pieces, running

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, Question

__all__ = ["InverseDegree"]


@LOCALISERS.add("inverse-degree")
@dataclass(frozen=True)
class InverseDegree:
    """Every reference node weighs one over its degree, and so does the node to predict.

    In a graph that grows edge by edge, nodes come to be known through their edges: one with twice the degree is
    labelled twice as soon, and labelled nodes are no fair sample of all nodes. Weights of 1/degree undo that (EdgeEx of
    Zargarbashi and Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024). Degrees are those of the
    graph as it is now, over which the model's outputs, too, are to be recomputed. A node without edges weighs 1.

    *Guarantee*: 1 − alpha for a node drawn uniformly, if labelled nodes were drawn in proportion to their degrees
    (weighted exchangeability with 1/degree as the ratio). Released code divides weights by their largest and lets the
    node to predict weigh 1 instead of its own 1/degree, which promises nothing. *Cost*: a sort of the scores, then
    log n a node.
    """

    def fit(self, reference: Reference) -> _Local:
        """Return the localiser of these reference nodes."""
        if reference.graph is None:
            raise InvalidInputError(NO_GRAPH)
        return _Local(self, reference)


class _Local(WeighedLocal):
    @cached_property
    def _each(self) -> FloatArray:
        """One over the degree of every node."""
        found: FloatArray = 1.0 / np.maximum(self.graph.degrees, 1)
        return found

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Running sums, by number, of the reference nodes' weights and of their squares."""
        index = self.reference.index
        weights = self._each[index.nodes[: index.calibration.size]]
        return running(weights), running(weights**2)

    def background(self) -> tuple[FloatArray, float]:
        return self._sums[0], 1.0

    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        return np.empty(0, dtype=np.int64), np.empty(0), float(self._each[node])

    def answer(self, nodes: IntArray, question: Question, found: Answer, threads: int, progress: Any) -> None:
        from napsets.kernels._jit import read_only
        from napsets.kernels.weighed import background_answers

        owns, weights, squares = (read_only(each) for each in (self.numbers[nodes], self._each[nodes], self._sums[1]))

        def work(first: int, last: int) -> None:
            background_answers(first, last, owns, weights, squares, question, found)

        in_pieces(work, nodes.size, threads, progress, piece=1 << 14)
