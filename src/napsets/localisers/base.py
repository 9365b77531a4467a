"""What a localiser is: a way to let the threshold depend on the node.

A `Localiser` holds settings. `fit` gives it a `Reference` (labelled nodes with their scores, and the graph around
them); what comes back is a `Local`: for each node a monotone map from scores to the unit interval (`ranks`) and its
inverse (`thresholds`). Of a weighting, the rank of a score is the share of weight strictly below it, and a threshold is
the weighted quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.checks.names import Table
from napsets.errors import InvalidInputError
from napsets.graph import Direction, Graph
from napsets.localisers.neighbourhoods import CalibrationIndex
from napsets.randomness import node_uniforms

__all__ = ["LOCALISERS", "Cut", "Local", "LocalThresholds", "Localiser", "Reference"]

#: What is said where a graph is missing.
NO_GRAPH = "`graph` must be given to a method that looks at neighbourhoods; got None"

#: Localisers by the name that files call them by.
LOCALISERS: Table[Any] = Table()


class Cut(NamedTuple):
    """Where a threshold is asked for.

    Attributes
    ----------
    level : float
        A share of the mass.
    rule : {"nominal", "at least", "above"}
        The smallest score s whose mass up to and including s is, of 1 + the total mass, at least `level` with rounding
        forgiven ("nominal", as in `napsets.quantile`), at least `level` exactly, or more than `level`. A level of 0
        that is to be reached "at least" needs no score at all: −∞.
    """

    level: float
    rule: Literal["nominal", "at least", "above"] = "nominal"


@dataclass(frozen=True, eq=False)
class LocalThresholds:
    """Thresholds of some nodes, and what they rest on.

    Attributes
    ----------
    values : numpy.ndarray
        Shape (cuts, nodes); +∞ where the mass falls short.
    support : numpy.ndarray
        How many reference nodes have weight, shape (nodes,); (cuts, nodes) where that depends on the cut.
    effective_size : numpy.ndarray
        (Σw)²/Σw² of their weights, in the same shape.
    by_group : numpy.ndarray or None
        Where groups of labels have thresholds of their own: shape (cuts, nodes, groups); `values` then has the smallest
        and `support` the fewest.
    groups : numpy.ndarray or None
        Which of these groups each label is in.
    """

    values: FloatArray
    support: IntArray
    effective_size: FloatArray
    by_group: FloatArray | None = None
    groups: IntArray | None = None

    def of_labels(self, row: int, nodes: slice) -> FloatArray:
        """Return the thresholds of some nodes in one row: of shape (nodes,), or (nodes, labels) by groups of labels."""
        if self.by_group is None or self.groups is None:
            one: FloatArray = self.values[row, nodes]
            return one
        each: FloatArray = self.by_group[row, nodes][:, self.groups]
        return each

    def rests_on(self, row: int) -> tuple[IntArray, FloatArray]:
        """Return support and effective size of the thresholds in one row."""
        if self.support.ndim == 1:
            return self.support, self.effective_size
        return self.support[row], self.effective_size[row]


@dataclass(frozen=True, eq=False)
class Reference(Sealed):
    """Labelled nodes and their scores at their labels: what thresholds are made of.

    Attributes
    ----------
    nodes, scores : numpy.ndarray
        The reference nodes, and the score of each.
    num_nodes : int
        Nodes in all.
    graph : Graph or None
        The graph whose neighbourhoods count; localisers that know of no neighbours need none.
    probabilities : numpy.ndarray or None
        What the scores were made of, for localisers that ask who looks alike.
    u : numpy.ndarray or None
        The uniform number of every node, for localisers that draw at random.
    """

    nodes: IntArray
    scores: FloatArray
    num_nodes: int
    graph: Graph | None = None
    probabilities: npt.NDArray[Any] | None = None
    u: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("nodes", "scores"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @cached_property
    def uniforms(self) -> FloatArray:
        """A uniform number for every node; where none were given, those of 0..n−1 with seed 0."""
        return node_uniforms(np.arange(self.num_nodes)) if self.u is None else self.u

    @cached_property
    def index(self) -> CalibrationIndex:
        """The graph with its reference nodes numbered by score, made once for all localisers."""
        if self.graph is None:
            raise InvalidInputError(NO_GRAPH)
        return CalibrationIndex(self.graph, self.scores, self.nodes)

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
        order = np.argsort(self.scores)
        places = np.full(self.num_nodes, self.nodes.size, dtype=np.int64)
        places[self.nodes[order]] = np.arange(self.nodes.size)
        return self.scores[order], places


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
    """What a method asks of a localiser. One whose thresholds cover at a nominal level also says ``proven = True``."""

    def fit(self, reference: Reference) -> Local:
        """Return the localiser of these reference nodes."""
        ...
