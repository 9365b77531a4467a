"""PageRank weights without the node's own mass: the probability that a short random walk ends at a reference node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_number
from napsets.errors import InvalidInputError
from napsets.kernels.layout import read_only
from napsets.localisers.base import LOCALISERS, Reference, graph_of
from napsets.localisers.weighed import WeighedLocal, in_pieces, lists_for
from napsets.quantile import LARGEST_WEIGHT

if TYPE_CHECKING:
    from napsets.kernels.weighed import Answer, WeighedQuery


@LOCALISERS.add("pagerank")
@dataclass(frozen=True)
class PageRank:
    """Weight reference nodes by personalised PageRank: the probability that a walk from the node ends there.

    A walk from the node to predict ends at each step with probability `restart`, and otherwise moves to a neighbour.
    Most walks end where they began; that mass is removed, because thresholds would otherwise be infinite nearly
    everywhere. The weights of the reference nodes are scaled to the sum `worth`; in addition each of all n of them gets
    pool/n. The weight falls smoothly with distance, and hubs do not make all nodes neighbours of each other. A walk
    that cannot move stays where it is; in a directed graph it follows edges from source to target.

    *Guarantee*: with a nominal level, the gap bound that any fixed weights have, and no more; with an exact level,
    1 − alpha in finite samples. *Cost*: by forward push (Andersen, Chung and Lang, 2006), 1 / (restart × tolerance)
    edges per node at most, whatever the size of the graph.

    Attributes
    ----------
    restart : float
        Probability that a walk ends at a step, above 0 and at most 1. Large values are local.
    worth : float
        The reference nodes that walks end at together count as much as this many neighbours.
    pool : float
        All reference nodes together, near or far, count as much as this many neighbours.
    tolerance : float
        Mass that may be left unpushed per neighbour of a node; small values reach further and cost more.
    """

    restart: float = 0.15
    worth: float = 20.0
    pool: float = 0.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("restart", "tolerance", "worth", "pool"):
            largest = 1.0 if name in _LEAST else LARGEST_WEIGHT
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), largest=largest)))
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise InvalidInputError(f"`{name}` must be at least {least:g}; got {getattr(self, name):g}")

    def fit(self, reference: Reference) -> PageRankLocal:
        """Return the localiser of these reference nodes."""
        graph_of(reference)
        return PageRankLocal(self, reference)


#: With less, a walk from one node could go over all edges of a large graph many times.
_LEAST = {"restart": 1e-3, "tolerance": 1e-12}


class PageRankLocal(WeighedLocal):
    """PageRank weights of known reference nodes."""

    @cached_property
    def _behind(self) -> FloatArray:
        return np.arange(self.reference.nodes.size + 1, dtype=np.float64)

    def background(self) -> tuple[FloatArray, float]:
        """Return the running counts of reference nodes, and what each gets of the pool."""
        return self._behind, self.localiser.pool / self.reference.nodes.size

    def _room(self) -> tuple[Any, ...]:
        """Return the memory of one thread: clear masses and flags, a queue, and a list of touched nodes."""
        size, kind = self.graph.num_nodes, self.graph.indices.dtype
        queue, touched = np.empty((2, size), dtype=kind)
        return np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int8), queue, touched

    def _walk(self) -> tuple[Any, ...]:
        setting = self.localiser
        return read_only(self.graph.indptr), read_only(self.graph.indices), setting.restart, setting.tolerance

    def listed(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return the reference nodes that walks from the node end at."""
        from napsets.kernels.weighed import push

        room = self._room()
        push(node, *self._walk(), *room)
        room[0][node] = 0.0
        mass = room[0][self.reference.nodes_by_score]
        numbers = np.flatnonzero(mass > 0)
        total = float(mass[numbers].sum())
        return numbers, self.localiser.worth * (mass[numbers] / total) if total else mass[numbers], 1.0

    def answer(self, nodes: IntArray, question: WeighedQuery, answers: Answer, threads: int, progress: Any) -> None:
        """Write the requested results of the nodes."""
        from napsets.kernels.weighed import pagerank_answers

        known = question.scores.size
        by_number = read_only(self.reference.index.nodes)
        fixed = (read_only(nodes), self._walk(), self.localiser.worth, self.numbers, by_number, question, answers)

        def work(first: int, last: int) -> None:
            pagerank_answers(first, last, *fixed, (*self._room(), *lists_for(known)))

        in_pieces(work, nodes.size, threads, progress, piece=max(512, self.graph.num_nodes // 64))
