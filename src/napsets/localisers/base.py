"""The interface of localisers, which let the threshold depend on the node, and the simplest one.

A `Localiser` holds settings. `fit` gives it a `Reference` (labelled nodes with their scores, and the graph around
them) and returns a `Local`: for each node a monotone map from scores to the unit interval (`ranks`) and its
inverse (`thresholds`). For weights, the rank of a score is the share of weight strictly below it, and a threshold is
the weighted quantile.

The simplest localiser is here too: `Everyone`, which is split conformal prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from napsets.checks.arguments import AnyArray, BoolArray, FloatArray, IntArray, Sealed, sealed
from napsets.checks.compressed import Direction
from napsets.checks.values import Registry
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.kernels import layout
from napsets.kernels.layout import Layout
from napsets.kernels.threads import Progress
from napsets.predictions import NodeThresholds
from napsets.quantile import ROUNDING
from napsets.randomness import node_uniforms

#: Localisers by the name that files call them by.
LOCALISERS: Registry[Callable[..., Localiser]] = Registry("LOCALISERS")


#: The rules of cuts, as kernels know them.
RULES = {"nominal": layout.NOMINAL, "at least": layout.AT_LEAST, "above": layout.ABOVE}


class Cut(NamedTuple):
    """A level at which a threshold is computed.

    Attributes
    ----------
    level : float
        A share of the mass.
    rule : {"nominal", "at least", "above"}
        The smallest score s whose mass up to and including s is, of 1 + the total mass, at least `level` up to
        rounding ("nominal", as in `napsets.quantile`), at least `level` exactly, or more than `level`. With "at least",
        a level of 0 needs no score at all: −∞.
    """

    level: float
    rule: Literal["nominal", "at least", "above"] = "nominal"

    def accepts(self, mass: FloatArray | float, whole: FloatArray | float) -> BoolArray:
        """Whether a mass is enough of the whole."""
        if self.rule == "nominal":
            return np.asarray(mass >= self.level * whole * (1.0 - ROUNDING))
        return np.asarray(mass / whole >= self.level if self.rule == "at least" else mass / whole > self.level)


@dataclass(frozen=True, eq=False)
class LocalThresholds:
    """Thresholds of some nodes, and the reference nodes they are based on.

    Attributes
    ----------
    values : numpy.ndarray
        Shape (cuts, nodes); +∞ where the mass falls short.
    support : numpy.ndarray
        How many reference nodes have weight, shape (nodes,); (cuts, nodes) where that depends on the cut.
    effective_size : numpy.ndarray
        (Σw)²/Σw² of their weights, in the same shape.
    by_group : numpy.ndarray or None
        If groups of labels have their own thresholds: shape (cuts, nodes, groups); `values` then has the smallest
        and `support` the fewest.
    groups : numpy.ndarray or None
        Which of these groups each label is in.
    """

    values: FloatArray
    support: IntArray
    effective_size: FloatArray
    by_group: FloatArray | None = None
    groups: IntArray | None = None

    def at(self, row: int, alpha: float, *, level: float | None, allow_empty: bool) -> NodeThresholds:
        """Return the thresholds in one row, that is, at one error rate."""
        support, effective_size = self.rests_on(row)
        by_group = None if self.by_group is None else self.by_group[row]
        return NodeThresholds(
            alpha, self.values[row], support, effective_size, level, allow_empty, by_group, self.groups
        )

    def rests_on(self, row: int) -> tuple[IntArray, FloatArray]:
        """Return support and effective size of the thresholds in one row."""
        if self.support.ndim == 1:
            return self.support, self.effective_size
        return self.support[row], self.effective_size[row]


@dataclass(frozen=True, eq=False)
class Reference(Sealed):
    """Labelled nodes and their scores at their labels, from which thresholds are computed; its arrays become read-only.

    Attributes
    ----------
    nodes, scores : numpy.ndarray
        The reference nodes, and the score of each.
    num_nodes : int
        Number of nodes in the graph.
    graph : Graph or None
        The graph whose neighbourhoods count; localisers that ignore neighbours need none.
    probabilities : numpy.ndarray or None
        What the scores were computed from, for localisers that compare predictions.
    u : numpy.ndarray or None
        The uniform number of every node, for localisers that draw at random.
    labels : numpy.ndarray or None
        The label of each reference node, for localisers that weight labels.
    """

    nodes: IntArray
    scores: FloatArray
    num_nodes: int
    graph: Graph | None = None
    probabilities: AnyArray | None = None
    u: FloatArray | None = None
    labels: IntArray | None = None

    @cached_property
    def uniforms(self) -> FloatArray:
        """A uniform number per node; by default those of the ids 0..n−1 with seed 0."""
        return node_uniforms(np.arange(self.num_nodes)) if self.u is None else self.u

    @cached_property
    def index(self) -> Layout:
        """The graph with its reference nodes numbered by score, shared by all localisers."""
        return Layout(graph_of(self), self.nodes, self.scores)

    @cached_property
    def _along(self) -> dict[Direction, Reference]:
        return {}

    def along(self, direction: Direction) -> Reference:
        """Return the same reference on the graph along a direction (cached); see `Graph.along`."""
        if self.graph is None or not self.graph.directed or direction == "out":
            return self
        if direction not in self._along:
            self._along[direction] = replace(self, graph=self.graph.along(direction))
        return self._along[direction]

    @cached_property
    def predicted(self) -> IntArray | None:
        """The model's first choice for every node."""
        return None if self.probabilities is None else sealed(self.probabilities.argmax(axis=1))

    @cached_property
    def by_score(self) -> tuple[FloatArray, AnyArray]:
        """The scores in ascending order, and each node's place among them (the number of scores for other nodes)."""
        if self.graph is not None:
            return self.index.sorted_scores, self.index.numbers
        order = np.argsort(self.scores, kind="stable")
        numbers = np.full(self.num_nodes, self.nodes.size, dtype=np.int64)
        numbers[self.nodes[order]] = np.arange(self.nodes.size)
        return self.scores[order], numbers

    @cached_property
    def nodes_by_score(self) -> IntArray:
        """The reference nodes in ascending order of their scores, as `by_score` numbers them."""
        nodes = np.empty(self.nodes.size, dtype=np.int64)
        nodes[self.by_score[1][self.nodes]] = self.nodes
        return nodes


def graph_of(reference: Reference) -> Graph:
    """Return the graph of a reference, or raise if it has none."""
    if reference.graph is None:
        raise InvalidInputError("`graph` must be given to a method that looks at neighbourhoods; got None")
    return reference.graph


class Local(Protocol):
    """A localiser that knows its reference nodes."""

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Thresholds of the nodes at each cut, from one search; a node's own score never counts."""
        ...

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """For each node and its score: mass strictly below that score / (1 + total mass)."""
        ...


@runtime_checkable
class Localiser(Protocol):
    """The interface of a localiser. One whose thresholds cover at a nominal level also has ``proven = True``."""

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes."""
        ...


# -- all reference nodes alike ---------------------------------------------------------------------------------------

_PIECE = 1 << 18  # nodes handled between two reports


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
    """Thresholds from all reference nodes, each with weight 1."""

    reference: Reference

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut: order statistics of the other reference scores."""
        scores, numbers = self.reference.by_score
        values, support = np.empty((len(cuts), nodes.size)), np.empty(nodes.size, dtype=np.int64)
        for rows in pieces(nodes.size, progress):
            own = numbers[nodes[rows]].astype(np.int64)
            support[rows] = scores.size - (own < scores.size)
            for row, cut in zip(values, cuts, strict=True):
                row[rows] = _order_statistics(scores, own, support[rows], cut)
        return LocalThresholds(values, support, support.astype(np.float64))

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """Return the share of the other reference scores that are strictly below each node's score."""
        known, numbers = self.reference.by_score
        ranks = np.empty(nodes.size)
        for rows in pieces(nodes.size, progress):
            own = numbers[nodes[rows]].astype(np.int64)
            below = np.searchsorted(known, scores[rows], side="left")
            ranks[rows] = (below - (own < below)) / (1.0 + (known.size - (own < known.size)))
        return ranks


def pieces(count: int, progress: Progress | None) -> Iterator[slice]:
    """Yield slices of nodes; report progress after each."""
    for first in range(0, count, _PIECE):
        last = min(first + _PIECE, count)
        yield slice(first, last)
        if progress is not None:
            progress(last, count)


def _order_statistics(scores: FloatArray, own: IntArray, support: IntArray, cut: Cut) -> FloatArray:
    """For each node, the order statistic of the other reference scores that a cut asks for."""
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
    """Return the smallest number m of `size` scores that the cut accepts, or `size` + 1 if it accepts none."""
    if not cut.level <= 1.0:  # NaN among them
        return size + 1
    if cut.rule == "nominal":
        return int(np.ceil(cut.level * (1.0 + float(size)) * (1.0 - ROUNDING)))
    count = max(0, int(np.floor(cut.level * (1.0 + size))) - 1)  # a little low: the division decides
    while count <= size and not cut.accepts(count, 1.0 + size):
        count += 1
    return count
