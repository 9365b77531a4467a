"""What calibration starts from: checked arguments, and labelled nodes with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_array,
    as_column,
    check_index,
    check_labels,
    check_names,
    check_probabilities,
    check_scores,
)
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.errors import InvalidInputError
from napsets.graph import Graph, as_graph
from napsets.levels import Level
from napsets.localisers import Reference
from napsets.randomness import node_uniforms, split_order
from napsets.scores import BoundScore, Labelled, bind

__all__ = ["Given", "Scored"]


@dataclass(frozen=True, eq=False)
class Given:
    """What a user gives to be calibrated on, checked once for all methods that are to see it.

    Attributes
    ----------
    graph : Graph or None
        The graph whose neighbourhoods count.
    outputs : numpy.ndarray
        The model's probabilities, or what else its scores are made of, a row a node.
    labels : numpy.ndarray
        One a node, −1 where unknown; or targets of regression, NaN where unknown.
    calibration : numpy.ndarray
        Whose labels may be used.
    ids : numpy.ndarray
        What the nodes are called; their random numbers are drawn from it.
    class_names : tuple of str or None
        What the classes are called.
    """

    graph: Graph | None
    outputs: npt.NDArray[Any]
    labels: IntArray
    calibration: IntArray
    ids: npt.NDArray[Any]
    class_names: tuple[str, ...] | None = None
    _scored: dict[Any, Scored] = field(default_factory=dict, repr=False)

    @classmethod
    def check(
        cls,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Given:
        """Refuse arguments that cannot be calibrated on."""
        size = graph.num_nodes if isinstance(graph, Graph) else None
        p = check_probabilities(probabilities, num_nodes=size)
        if graph is not None and size is None:
            graph = as_graph(graph, p.shape[0])
            p = check_probabilities(probabilities, num_nodes=graph.num_nodes)
        y = check_labels(labels, size=p.shape[0], num_classes=p.shape[1])
        chosen = _known_nodes(calibration, y >= 0, "label")
        names = _names(ids, p.shape[0])
        called = check_names("class_names", class_names)
        if called is not None and len(called) != p.shape[1]:
            raise InvalidInputError(f"`class_names` must have one name a class, {p.shape[1]}; got {len(called)}")
        return cls(graph, p, y, chosen, names, None if called is None else tuple(called))

    @classmethod
    def of_targets(
        cls, graph: Any, outputs: ArrayLike, targets: ArrayLike, calibration: ArrayLike, ids: ArrayLike | None = None
    ) -> Given:
        """Refuse arguments that a score of numbers cannot be calibrated on; targets are NaN where unknown."""
        rows = as_array("outputs", outputs)
        if rows.ndim not in (1, 2) or rows.dtype.kind not in "fiu":
            raise InvalidInputError(f"`outputs` must be numbers, a row a node; got {rows.dtype} of shape {rows.shape}")
        if graph is not None:
            graph = as_graph(graph, rows.shape[0])
            if graph.num_nodes != rows.shape[0]:
                raise InvalidInputError(
                    f"`outputs` must have one row a node of the graph, {graph.num_nodes}; got {rows.shape[0]} rows"
                )
        y = as_array("targets", targets)
        if y.shape != (rows.shape[0],) or y.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"`targets` must be numbers, one a node, {rows.shape[0]}; got {y.dtype} of shape {y.shape}"
            )
        chosen = _known_nodes(calibration, np.isfinite(y), "target")
        names = _names(ids, rows.shape[0])
        return cls(graph, rows, y.astype(np.float64), chosen, names)

    def scored(self, score: Any, level: Level, seed: int) -> Scored:
        """Return the nodes scored, with as many as reference as the level wants; kept for the next who asks."""
        size = level.reference_size(self.calibration.size)
        key = (score, size, seed)
        try:
            return self._scored[key]
        except (KeyError, TypeError):  # a score of the user's own need not be hashable
            made = self._score(score, size, seed)
        with suppress(TypeError):
            self._scored[key] = made
        return made

    def _score(self, score: Any, size: int, seed: int) -> Scored:
        reference, apart = self.parts(size, seed)
        u = sealed(node_uniforms(self.ids, seed))
        bound = bind(score, self.outputs, u, self.graph, Labelled(reference, self.labels[reference]))
        return Scored(
            score,
            seed,
            u,
            bound,
            Reference(
                reference,
                _scores_at(score, bound, reference, self.labels[reference]),
                self.outputs.shape[0],
                self.graph,
                bound.probabilities,
                u,
            ),
            apart,
            _scores_at(score, bound, apart, self.labels[apart]) if apart.size else np.empty(0),
            self.labels[reference],
            self.labels[apart],
            self.ids if self.ids.dtype.kind in "UO" else None,
            self.class_names,
        )

    def parts(self, size: int, seed: int) -> tuple[IntArray, IntArray]:
        """Split the calibration nodes by (seed, id) alone: a reference part of that size, and those kept apart."""
        if size == self.calibration.size:
            return self.calibration, np.empty(0, dtype=np.int64)
        order = split_order(self.ids[self.calibration], seed)
        return self.calibration[np.sort(order[:size])], self.calibration[np.sort(order[size:])]


def _known_nodes(calibration: ArrayLike, known: npt.NDArray[np.bool_], what: str) -> IntArray:
    """Return the nodes to calibrate on, all of which must be known."""
    # In ascending order, so that no last digit depends on the order in which they came.
    chosen = np.sort(check_index("calibration", calibration, known.size, unique=True))
    if chosen.size == 0:
        raise InvalidInputError("`calibration` must hold at least one node; it is empty")
    unknown = ~known[chosen]
    if unknown.any():
        node = int(chosen[unknown.argmax()])
        raise InvalidInputError(
            f"`calibration` must hold nodes whose {what} is known; {unknown.sum()} are not, node {node} first"
        )
    return chosen


def _names(ids: ArrayLike | None, size: int) -> npt.NDArray[Any]:
    """Return what the nodes are called: their numbers, where nothing is said."""
    names = np.arange(size) if ids is None else as_column("ids", ids)
    if names.shape != (size,):
        raise InvalidInputError(f"`ids` must have one entry a node, {size}; got shape {names.shape}")
    return names


def _scores_at(score: Any, bound: BoundScore, nodes: IntArray, labels: IntArray) -> FloatArray:
    """Return the scores of nodes at their labels; a score of the user's own may give anything."""
    try:
        return check_scores("scores", bound.at(nodes, labels), size=nodes.size)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"`score` must give one number for each node and label; with {type(score).__name__}, {error}"
        ) from error


def _nobody() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Scored(Sealed):
    """Labelled nodes with their scores: those that thresholds are made of, and those kept apart for the level.

    Attributes
    ----------
    score : Score
        What they were scored with.
    seed : int
        Seed of the uniform numbers and of the split.
    u : numpy.ndarray
        The uniform number of every node.
    bound : BoundScore
        The score of every node.
    reference : Reference
        Nodes, scores and graph.
    apart, apart_scores : numpy.ndarray
        The nodes kept apart, and the score of each at its label.
    labels, apart_labels : numpy.ndarray
        The labels of the reference nodes and of those kept apart; empty where they are not known any more: a file
        keeps them only for methods that judge labels by groups.
    ids : numpy.ndarray or None
        What all nodes are called, where it is by names.
    class_names : tuple of str or None
        What the classes are called.
    """

    score: Any
    seed: int
    u: FloatArray
    bound: BoundScore
    reference: Reference
    apart: IntArray
    apart_scores: FloatArray
    labels: IntArray = field(default_factory=_nobody)
    apart_labels: IntArray = field(default_factory=_nobody)
    ids: npt.NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("u", "apart", "apart_scores", "labels", "apart_labels"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @cached_property
    def calibration(self) -> IntArray:
        """All labelled nodes, in ascending order."""
        return sealed(np.sort(np.concatenate([self.reference.nodes, self.apart])))
