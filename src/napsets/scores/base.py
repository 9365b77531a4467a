"""What a score is: a way to say how badly each label fits each node (small is good).

A `Score` holds settings and knows no data. `bind` gives it the model's outputs for all nodes at once, their uniform
numbers, the graph and, for scores that learn, labels that then calibrate nothing; what comes back is a `BoundScore`,
which can be asked about any nodes. Most scores look at a node's own row of probabilities and at nothing else: they
subclass `RowScore` and write two methods on rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_array,
    check_labels,
    check_probabilities,
    check_scores,
    shown,
)
from napsets.checks.frozen import Sealed, frozen
from napsets.checks.names import Table, choose
from napsets.errors import InvalidInputError
from napsets.graph import Graph

__all__ = ["SCORES", "BoundRows", "BoundScore", "Labelled", "RowScore", "Score", "learns", "make_score"]


@dataclass(frozen=True, eq=False)
class Labelled(Sealed):
    """Nodes whose labels may be looked at.

    Attributes
    ----------
    nodes, labels : numpy.ndarray
        The nodes, and the label of each.
    """

    nodes: IntArray
    labels: IntArray

    def __post_init__(self) -> None:
        for name in ("nodes", "labels"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


class BoundScore(Protocol):
    """A score that knows the model's outputs: what localisers, levels and sets ask."""

    @property
    def probabilities(self) -> npt.NDArray[Any]:
        """What the scores are made of, a row a node; a score may have changed what the model said."""
        ...

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels, shape (nodes,)."""
        ...

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label, shape (nodes, classes); the same bits as `at`."""
        ...


@runtime_checkable
class Score(Protocol):
    """What a method asks of a score. One that learns from reference labels also says ``learns = True``."""

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None
    ) -> BoundScore:
        """Return the score of these nodes: a row of outputs and a uniform number each."""
        ...


class RowScore(ABC):
    """A score that sees a node's own row of probabilities and nothing of the graph."""

    @abstractmethod
    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes)."""

    @abstractmethod
    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,); the same bits as ``matrix(...)[i, labels[i]]``."""

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None = None, reference: Labelled | None = None
    ) -> BoundScore:
        """Return the score of these nodes; graph and reference labels are not looked at."""
        return BoundRows(self, outputs, u)


#: Bound scores by the name that files call them by.
BOUND: Table[Any] = Table()


@BOUND.add("rows")
@dataclass(frozen=True, eq=False)
class BoundRows(Sealed):
    """Rows of probabilities, the nodes' uniform numbers, and the score that looks at both."""

    score: Any  #: with the methods `matrix` and `at` of a `RowScore`
    probabilities: npt.NDArray[Any]
    u: FloatArray

    def __post_init__(self) -> None:
        for name in ("probabilities", "u"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        found: FloatArray = self.score.at(self.probabilities[nodes], labels, self.u[nodes])
        return found

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        rows = self.probabilities[nodes]
        found = as_array("score", self.score.matrix(rows, self.u[nodes]))
        if found.shape != rows.shape or found.dtype.kind not in "fiub" or np.isnan(found).any():
            what = "NaN" if found.shape == rows.shape else f"shape {found.shape}"
            raise InvalidInputError(
                f"`score` must give a number for each node and label, shape {rows.shape}; "
                f"{type(self.score).__name__}.matrix gave {what if found.dtype.kind in 'fiub' else found.dtype}"
            )
        return found.astype(np.float64, copy=False)

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        described = {"name": BOUND.name_of(type(self)), "score": SCORES.describe("score", self.score)}
        return described, {"probabilities": self.probabilities, "u": self.u}

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundRows:
        """Put together what `parts` gave, checking it."""
        p, u = check_probabilities(arrays["probabilities"]), check_scores("u", arrays["u"])
        if u.size != p.shape[0]:
            raise InvalidInputError(f"`u` must have one entry a node, {p.shape[0]}; got {u.size}")
        if u.size and not (u.min() >= 0 and u.max() <= 1):
            raise InvalidInputError(f"`u` must lie in [0, 1]; got values from {u.min():g} to {u.max():g}")
        return cls(SCORES.rebuild("score", described["score"]), p, u)


@dataclass(frozen=True)
class _Rows:
    """A foreign object with the methods `matrix` and `at`, as a score."""

    score: Any

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None = None, reference: Labelled | None = None
    ) -> BoundScore:
        return BoundRows(self.score, outputs, u)


#: Scores by the name that settings, files and the command line call them by.
SCORES: Table[Any] = Table()


def make_score(score: object) -> Any:
    """Return a score from itself or from its name, with its usual settings.

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


def bind(
    score: Any, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None
) -> BoundScore:
    """Bind any score that `make_score` takes, also one that has only the methods `matrix` and `at`."""
    bound: BoundScore = (score if isinstance(score, Score) else _Rows(score)).bind(outputs, u, graph, reference)
    return bound


def learns(score: object) -> bool:
    """Return whether a score learns from labels, which then may calibrate nothing but through an exact level."""
    return bool(getattr(score, "learns", False))


def known_labels(labels: ArrayLike, p: npt.NDArray[Any]) -> IntArray:
    """Return labels that can be scored: one a row, none of them unknown."""
    y = check_labels(labels, size=p.shape[0], num_classes=p.shape[1])
    if (y < 0).any():
        raise InvalidInputError(f"`labels` must be known to be scored; entry {int((y < 0).argmax())} is −1")
    return y
