"""What a localiser is: a way to let the threshold depend on the node.

A `Localiser` holds settings. `fit` gives it a `Reference` (labelled nodes with their scores, and the graph around
them) and returns a `Local`: for each node a monotone map from scores to the unit interval (`ranks`) and its
inverse (`thresholds`). For weights, the rank of a score is the share of weight strictly below it, and a threshold is
the weighted quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray, Sealed, sealed
from napsets.checks.values import Registry, check_kind
from napsets.errors import InvalidInputError
from napsets.graph import Direction, Graph
from napsets.kernels import endings
from napsets.localisers.neighbourhoods import CalibrationIndex
from napsets.predictions import NodeThresholds
from napsets.quantile import ROUNDING
from napsets.randomness import node_uniforms

#: Localisers by the name that files call them by.
LOCALISERS: Registry[Any] = Registry("LOCALISERS")


#: The rules of cuts, as kernels know them.
RULES = {"nominal": endings.NOMINAL, "at least": endings.AT_LEAST, "above": endings.ABOVE}


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

    def accepts(self, mass: FloatArray, whole: FloatArray | float) -> BoolArray:
        """Whether a mass is enough of the whole."""
        if self.rule == "nominal":
            return mass >= self.level * whole * (1.0 - ROUNDING)
        return mass / whole >= self.level if self.rule == "at least" else mass / whole > self.level


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
    """Labelled nodes and their scores at their labels, from which thresholds are computed.

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
    probabilities: npt.NDArray[Any] | None = None
    u: FloatArray | None = None
    labels: IntArray | None = None

    @cached_property
    def uniforms(self) -> FloatArray:
        """A uniform number for every node; by default those of 0..n−1 with seed 0."""
        return node_uniforms(np.arange(self.num_nodes)) if self.u is None else self.u

    @cached_property
    def index(self) -> CalibrationIndex:
        """The graph with its reference nodes numbered by score, made once for all localisers."""
        return CalibrationIndex.unchecked(graph_of(self), self.scores, self.nodes)

    @cached_property
    def _along(self) -> dict[Direction, Reference]:
        return {}

    def along(self, direction: Direction) -> Reference:
        """Return the same nodes and scores on the graph along a direction, made once; see `Graph.along`."""
        if self.graph is None or self.graph.along(direction) is self.graph:
            return self
        if direction not in self._along:
            self._along[direction] = replace(self, graph=self.graph.along(direction))
        return self._along[direction]

    @cached_property
    def predicted(self) -> IntArray | None:
        """The model's first choice for every node."""
        return None if self.probabilities is None else sealed(self.probabilities.argmax(axis=1))

    @cached_property
    def by_score(self) -> tuple[FloatArray, npt.NDArray[Any]]:
        """The scores in ascending order, and each node's place among them; of other nodes, how many there are."""
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


def check_reference(reference: object) -> Reference:
    """Return a reference, or say how to get one."""
    way = "Make one with Reference(nodes, scores, num_nodes, graph)."
    return check_kind("reference", reference, Reference, way=way)


def graph_of(reference: Reference) -> Graph:
    """Return the graph of a reference, for localisers that look at neighbourhoods."""
    if reference.graph is None:
        raise InvalidInputError("`graph` must be given to a method that looks at neighbourhoods; got None")
    return reference.graph


class Local(Protocol):
    """A localiser that knows its reference nodes."""

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Thresholds of the nodes at each cut, from one search; a node's own score never counts."""
        ...

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """For each node and a score of it: mass strictly below that score / (1 + total mass)."""
        ...


@runtime_checkable
class Localiser(Protocol):
    """The interface of a localiser. One whose thresholds cover at a nominal level also has ``proven = True``."""

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes."""
        ...
