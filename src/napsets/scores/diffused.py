"""Scores that are averaged over neighbours: DAPS (Zargarbashi et al., ICML 2023) for any score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, check_count, check_probabilities, check_scores, check_share
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.scores.base import BOUND, SCORES, BoundScore, Labelled, bind, learns, make_score
from napsets.scores.ranks import APS

__all__ = ["Diffused"]

_ROWS = 1 << 16  # nodes scored at a time


@SCORES.add("diffused")
@dataclass(frozen=True)
class Diffused:
    """Mix each node's scores with the mean of its neighbours': Ŝ = (1 − strength)·S + strength·mean S.

    Sets become smaller where neighbours are alike, and coverage less even. With a split quantile coverage stays exact,
    because all nodes are treated alike. A node without neighbours keeps its scores.

    Attributes
    ----------
    base : Score or str
        The score that is averaged.
    strength : float
        λ, from 0 to 1.
    steps : int
        How often the mean is taken.
    """

    base: Any = field(default_factory=APS)
    strength: float = 0.5
    steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "strength", check_share("strength", self.strength))
        object.__setattr__(self, "steps", check_count("steps", self.steps, maximum=1000))

    @property
    def learns(self) -> bool:
        """Whether the score underneath learns from labels."""
        return learns(self.base)

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None = None
    ) -> BoundScore:
        """Return the diffused scores of all nodes."""
        if graph is None:
            raise InvalidInputError("`graph` must be given to a score that looks at neighbours; got None")
        inner = bind(self.base, outputs, u, graph, reference)
        scores = matrix_of(inner, outputs.shape[0])
        alone = graph.degrees == 0
        for _ in range(self.steps):
            mean = graph.neighbour_means(scores)
            mixed = (1.0 - self.strength) * scores + self.strength * mean
            mixed[alone] = scores[alone]
            scores = mixed
        return BoundMatrix(inner.probabilities, sealed(scores), inner)


def matrix_of(bound: BoundScore, size: int) -> FloatArray:
    """Return the scores of all nodes at every label, made some nodes at a time."""
    nodes = np.arange(size)
    return np.concatenate([bound.matrix(nodes[i : i + _ROWS]) for i in range(0, max(1, size), _ROWS)])


@BOUND.add("matrix")
@dataclass(frozen=True, eq=False)
class BoundMatrix(Sealed):
    """Scores of every node at every label, as they are."""

    probabilities: npt.NDArray[Any]
    scores: FloatArray
    inner: BoundScore | None = None  #: what they were made from, where that is still known

    def __post_init__(self) -> None:
        for name in ("probabilities", "scores"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        found: FloatArray = self.scores[nodes, labels]
        return found

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        found: FloatArray = self.scores[nodes]
        return found

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        return {"name": "matrix"}, {"probabilities": self.probabilities, "score_matrix": self.scores}

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundMatrix:
        """Put together what `parts` gave, checking it."""
        p, scores = check_probabilities(arrays["probabilities"]), arrays["score_matrix"]
        check_scores("score_matrix", scores.reshape(-1))
        if scores.shape != p.shape:
            raise InvalidInputError(
                f"`score_matrix` must have the shape of `probabilities`, {p.shape}; got {scores.shape}"
            )
        return cls(p, scores)
