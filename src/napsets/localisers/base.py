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

from napsets.checks.arguments import (
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Sealed,
    as_array,
    check_index,
    check_integers,
    check_scores,
    frozen,
    sealed,
)
from napsets.checks.values import Registry, check_count, check_kind, check_list, choose, shown
from napsets.errors import InvalidInputError
from napsets.graph import Direction, Graph, check_graph
from napsets.kernels import endings
from napsets.localisers.neighbourhoods import CalibrationIndex
from napsets.predictions import NodeThresholds
from napsets.quantile import ROUNDING
from napsets.randomness import node_uniforms

#: What is said where a graph is missing.
NO_GRAPH = "`graph` must be given to a method that looks at neighbourhoods; got None"

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

    def __post_init__(self) -> None:
        size = check_count("num_nodes", self.num_nodes)
        if self.graph is not None and check_graph(self.graph).num_nodes != size:
            raise InvalidInputError(
                f"`num_nodes` must be the number of nodes of the graph, {self.graph.num_nodes}; got {size}"
            )
        nodes = check_index("nodes", self.nodes, size, unique=True)
        scores = check_scores("scores", self.scores, size=nodes.size, each="reference node")
        for name, array in (("nodes", nodes), ("scores", scores)):
            object.__setattr__(self, name, frozen(array))
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", frozen(check_rows_of(self.probabilities, size)))
        if self.u is not None:
            uniforms = check_scores("u", self.u, size=size, each="node")
            object.__setattr__(self, "u", frozen(uniforms))
        if self.labels is not None:
            labels = check_integers("labels", self.labels)
            if labels.shape != nodes.shape or labels.min(initial=0) < 0:
                raise InvalidInputError(f"`labels` must be known, one per reference node, {nodes.size}")
            object.__setattr__(self, "labels", frozen(labels))

    def check_nodes(self, nodes: ArrayLike) -> IntArray:
        """Return node indices in the form that kernels take, without a warning about what looks like a mask."""
        return check_index("nodes", nodes, self.num_nodes, quiet=True)

    def check_ranked(self, nodes: ArrayLike, scores: ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return node indices, and one score per node."""
        chosen = self.check_nodes(nodes)
        return chosen, check_scores("scores", scores, size=chosen.size, each="node")

    @cached_property
    def uniforms(self) -> FloatArray:
        """A uniform number for every node; by default those of 0..n−1 with seed 0."""
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


def check_rows_of(probabilities: object, size: int) -> npt.NDArray[Any]:
    """Return rows that say which labels are likely, one per node, as they are."""
    rows = as_array("probabilities", probabilities)
    if rows.ndim != 2 or rows.shape[0] != size or not rows.shape[1] or rows.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`probabilities` must be a table of numbers with one row per node, {size}; got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    return rows


def check_reference(reference: object) -> Reference:
    """Return a reference, or say how to get one."""
    way = "Make one with Reference(nodes, scores, num_nodes, graph)."
    return check_kind("reference", reference, Reference, way=way)


def with_graph(reference: object) -> Reference:
    """Return a reference that has a graph, for localisers that look at neighbourhoods."""
    known = check_reference(reference)
    if known.graph is None:
        raise InvalidInputError(NO_GRAPH)
    return known


def check_cuts(cuts: object) -> list[Cut]:
    """Return the cuts, or refuse what is not a list of cuts."""
    listed = check_list("cuts", cuts, "Cut(level, rule)")
    for cut in listed:
        if not isinstance(cut, Cut) or not isinstance(cut.level, float | int | np.floating | np.integer):
            raise InvalidInputError(f"`cuts` must be a list of Cut(level, rule); got {shown(cut)} among them")
        choose("cuts", cut.rule, RULES)
    return listed


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
