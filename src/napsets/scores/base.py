"""The interface of scores, which measure how badly each label fits each node (small fits well).

A `Score` holds settings and knows no data. `bind` gives it the model's outputs for all nodes at once, their uniform
numbers, the graph and, for scores that learn, labels that then calibrate nothing; what comes back is a `BoundScore`,
which gives the scores of any nodes. Most scores look at a node's own row of probabilities and at nothing else: they
subclass `RowScore` and write two methods on rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    as_column,
    check_known,
    check_probabilities,
)
from napsets.checks.values import Registry, choose, shown
from napsets.errors import InvalidInputError
from napsets.features import Features
from napsets.graph import Graph
from napsets.predictions import NodeThresholds, Prediction, PredictionSets


@dataclass(frozen=True, eq=False)
class Labelled(Sealed):
    """Nodes with known labels, from which a score may learn."""

    #: The nodes, and the label of each.
    nodes: IntArray
    labels: IntArray


class BoundScore(Protocol):
    """A score together with the model's outputs, as localisers, levels and predictions use it."""

    @property
    def probabilities(self) -> AnyArray | None:
        """The probabilities that are scored, one row per node, possibly corrected; None for scores of numbers."""
        ...

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        ...

    @property
    def num_labels(self) -> int:
        """The number of labels; 0 if the truth is a number."""
        ...

    def at(self, nodes: IntArray, truth: AnyArray) -> FloatArray:
        """Scores of the nodes at their truth, shape (nodes,)."""
        ...

    def predict(self, nodes: IntArray, thresholds: Sequence[NodeThresholds]) -> list[Prediction]:
        """Return the prediction (sets or intervals) for each of several thresholds of the same nodes."""
        ...

    def size_at(self, nodes: IntArray) -> Callable[[float], float]:
        """Return the average size of the nodes' predictions as a function of one threshold for all of them."""
        ...


class ScoresEveryLabel(BoundScore, Protocol):
    """A bound score of labels, which has a score for every label."""

    @property
    def probabilities(self) -> AnyArray:
        """The probabilities that are scored, one row per node, possibly corrected."""
        ...

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the nodes at every label, shape (nodes, classes)."""
        ...


class BoundLabels(ABC):
    """A bound score of labels: it has probabilities and a `matrix` of scores, and predicts sets."""

    probabilities: AnyArray

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(self.probabilities.shape[0])

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return int(self.probabilities.shape[1])

    @abstractmethod
    def at(self, nodes: IntArray, truth: IntArray) -> FloatArray:
        """Scores of the nodes at their labels, shape (nodes,)."""

    @abstractmethod
    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the nodes at every label, shape (nodes, classes), identical to those of `at`."""

    def predict(self, nodes: IntArray, thresholds: Sequence[NodeThresholds]) -> list[Prediction]:
        """Return the sets for each of several thresholds, from one matrix of scores."""
        matrix = self.matrix(nodes)
        may_be_empty = all(node_thresholds.allow_empty for node_thresholds in thresholds)
        top = None if may_be_empty else self.top_labels(matrix, nodes)
        return [PredictionSets.of_scores(nodes, matrix, node_thresholds, top) for node_thresholds in thresholds]

    def top_labels(self, matrix: FloatArray, nodes: IntArray) -> IntArray:
        """Return the labels that replace empty sets.

        They are those with the smallest score: the first to enter as sets grow, unless labels have thresholds of their
        own, so that sets stay nested. Of several, the most probable one.
        """
        smallest = matrix == matrix.min(axis=1, keepdims=True)
        labels: IntArray = np.where(smallest, self.probabilities[nodes], -1.0).argmax(axis=1)
        return labels

    def size_at(self, nodes: IntArray) -> Callable[[float], float]:
        """Return the mean size of the nodes' sets as a function of one threshold for all of them."""
        entries = np.sort(self.matrix(nodes), axis=None)
        return lambda threshold: float(np.searchsorted(entries, threshold, side="right")) / max(nodes.size, 1)


class BoundAround(BoundLabels):
    """A bound score around another, `inner`, to which it delegates by default."""

    inner: Any

    @property
    def probabilities(self) -> AnyArray:  # type: ignore[override]
        """The probabilities of the inner score, one row per node."""
        rows: AnyArray = self.inner.probabilities
        return rows

    def at(self, nodes: IntArray, truth: IntArray) -> FloatArray:
        """Scores of the nodes at their labels."""
        scores: FloatArray = self.inner.at(nodes, truth)
        return scores

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        scores: FloatArray = self.inner.matrix(nodes)
        return scores


@runtime_checkable
class Score(Protocol):
    """The interface of a score. One that learns from reference labels also has ``learns = True``."""

    def bind(self, outputs: AnyArray, u: FloatArray, graph: Graph | None, reference: Labelled) -> BoundScore:
        """Bind the score to the nodes: a row of outputs and a uniform number per node."""
        ...


class RowScore(ABC):
    """A score that uses only a node's own row of probabilities."""

    @abstractmethod
    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes)."""

    @abstractmethod
    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,), identical to ``matrix(...)[i, labels[i]]``."""

    def bind(
        self, outputs: AnyArray, u: FloatArray, graph: Graph | None = None, reference: Labelled | None = None
    ) -> BoundScore:
        """Bind the score to the nodes; graph and reference labels are ignored."""
        return BoundRows(self, outputs, u)


class CheckedRows(RowScore):
    """A score of rows that checks its arguments; subclasses implement `_matrix` and `_at` on checked rows."""

    @abstractmethod
    def _matrix(self, p: AnyArray, u: Any) -> FloatArray:
        """Scores of every label."""

    @abstractmethod
    def _at(self, p: AnyArray, y: IntArray, u: Any) -> FloatArray:
        """Scores of the given labels."""

    def _uniforms(self, u: Any, size: int) -> Any:
        """Check the uniform number of each row; scores without randomness accept anything."""
        return u

    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes), in float64."""
        p = check_probabilities(probabilities)
        return self._matrix(p, self._uniforms(u, p.shape[0]))

    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,), identical to ``matrix(...)[i, labels[i]]``."""
        p = check_probabilities(probabilities)
        return self._at(p, known_labels(labels, p), self._uniforms(u, p.shape[0]))


def score_rows(score: Any, name: Literal["matrix", "at"], rows: AnyArray, *arguments: Any) -> FloatArray:
    """Call a method of a score on rows that were checked.

    A `CheckedRows` does not check them again. What a score of the user's own returns is checked here.
    """
    if getattr(type(score), name, None) is getattr(CheckedRows, name):
        values: FloatArray = getattr(score, f"_{name}")(rows, *arguments)
        return values
    scores = as_column("score", getattr(score, name)(rows, *arguments))
    shape = rows.shape if name == "matrix" else rows.shape[:1]
    numbers = scores.dtype.kind in "fiub"
    if scores.shape != shape or not numbers or np.isnan(scores).any():
        what = scores.dtype if not numbers else "NaN" if scores.shape == shape else f"shape {scores.shape}"
        raise InvalidInputError(
            f"`score` must give a number for each node and label, shape {shape}; {type(score).__name__}.{name} gave "
            f"{what}"
        )
    return scores.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class BoundRows(Sealed, BoundLabels):
    """A score of rows with the nodes' probabilities and uniform numbers."""

    score: Any  #: with the methods `matrix` and `at` of a `RowScore`
    probabilities: AnyArray
    u: FloatArray

    def at(self, nodes: IntArray, truth: IntArray) -> FloatArray:
        """Scores of the nodes at their labels."""
        return score_rows(self.score, "at", self.probabilities[nodes], truth, self.u[nodes])

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        return score_rows(self.score, "matrix", self.probabilities[nodes], self.u[nodes])


#: Scores by the name that settings, files and the command line call them by.
SCORES: Registry[Callable[..., Score]] = Registry("SCORES")


def make_score(score: object) -> Any:
    """Return a score; a name stands for the score with its default settings.

    Examples
    --------
    >>> make_score("raps")
    RAPS(penalty=0.01, free_ranks=2, randomized=True)
    """
    if isinstance(score, str):
        return choose("score", score, SCORES)()
    fits = isinstance(score, Score) or all(callable(getattr(score, name, None)) for name in ("matrix", "at"))
    if isinstance(score, type) or not fits:
        hint = f" (write {score.__name__}() with brackets)" if isinstance(score, type) else ""
        raise InvalidInputError(
            f"`score` must be one of {', '.join(SCORES)}, or have the methods matrix and at; got {shown(score)}{hint}"
        )
    return score


def score_name(score: object) -> str:
    """Return the registered name of a score with default settings, otherwise its repr."""
    name = SCORES.name_of(type(score))
    try:
        return name if name is not None and score == SCORES[name]() else repr(score)
    except TypeError:  # a score that is nothing without settings
        return repr(score)


def bind(
    score: Any,
    outputs: AnyArray,
    u: FloatArray,
    graph: Graph | None,
    reference: Labelled,
    learned: object = None,
    features: Features | None = None,
) -> BoundScore:
    """Bind any score that `make_score` accepts, including one with only the methods `matrix` and `at`.

    An informed score, or one around it, also takes what was `learned` before instead of learning from the reference,
    and the `features` of the nodes.
    """
    rows_alone = not isinstance(score, Score)
    further = {} if learned is None else {"learned": learned}
    if features is not None and uses_features(score):
        further["features"] = features
    bound: Any = BoundRows(score, outputs, u) if rows_alone else score.bind(outputs, u, graph, reference, **further)
    return bound if hasattr(bound, "predict") else _ForeignLabels(bound)


@dataclass(frozen=True, eq=False)
class _ForeignLabels(BoundAround):
    """A user's bound score with `probabilities`, `at` and `matrix`, which makes sets of them."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def of_labels(bound: BoundScore) -> ScoresEveryLabel:
    """Narrow a bound score to one of labels, or raise for a score of numbers."""
    if not bound.num_labels:
        raise InvalidInputError("`score` must be one of labels; a score of numbers has no list of candidates")
    return cast(ScoresEveryLabel, bound)


def prediction_type(score: object) -> type[Prediction]:
    """Return the prediction class of a score (`PredictionSets` by default).

    A score that wraps another names what it makes itself, so that it cannot wrap one of another kind.
    """
    prediction: type[Prediction] = getattr(score, "prediction", PredictionSets)
    inner = getattr(score, "base", None)
    if inner is not None and (wrapped := prediction_type(inner)) is not prediction:
        raise InvalidInputError(
            f"`score` must wrap one that makes {prediction.noun}s; {type(score).__name__} looks at "
            f"{prediction.truth_name}, and {type(inner).__name__} makes {wrapped.noun}s"
        )
    return prediction


def learns(score: object) -> bool:
    """Whether a score learns from labels, so that it needs an exact level."""
    return bool(getattr(score, "learns", False))


def uses_features(score: object) -> bool:
    """Whether a score, or the score inside it, compares nodes by their features."""
    return bool(getattr(score, "uses_features", False))


def known_labels(labels: ArrayLike, p: AnyArray) -> IntArray:
    """Check labels to be scored: one per row, all known."""
    return check_known(labels, size=p.shape[0], num_classes=p.shape[1])


def require_graph(graph: Graph | None) -> Graph:
    """Return the graph, or raise that the score needs one."""
    if graph is None:
        raise InvalidInputError("`graph` must be given to a score that looks at neighbours; got None")
    return graph
