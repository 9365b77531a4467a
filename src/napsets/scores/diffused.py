"""Scores that are averaged over neighbours: DAPS (Zargarbashi et al., ICML 2023) for any score.

`Diffused` averages with a strength that is set, `TunedDiffused` with one that is tuned on labels which then calibrate
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, Sealed, check_probabilities, check_scores, sealed
from napsets.checks.values import check_alpha, check_count, check_list, check_share
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.quantile import weighted_quantile
from napsets.scores.base import (
    BOUND,
    SCORES,
    BoundLabels,
    BoundScore,
    Labelled,
    bind,
    learns,
    make_score,
    require_graph,
)
from napsets.scores.evidence import means_around
from napsets.scores.rows import APS

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

    def bind(self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled) -> BoundMatrix:
        """Return the diffused scores of all nodes."""
        inner, scores, graph = bind_around(self.base, outputs, u, graph, reference)
        alone = graph.degrees == 0
        for _ in range(self.steps):
            mixed = _mix(scores, graph.neighbour_means(scores), self.strength)
            mixed[alone] = scores[alone]
            scores = mixed
        return BoundMatrix(inner.probabilities, sealed(scores), inner)


def bind_around(
    score: Any, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled
) -> tuple[Any, FloatArray, Graph]:
    """Bind a score that is to be averaged over neighbours; return its scores of all nodes and labels, and the graph."""
    known = require_graph(graph)
    inner = bind(score, outputs, u, known, reference)
    nodes = np.arange(len(outputs))
    parts = [inner.matrix(nodes[i : i + _ROWS]) for i in range(0, max(1, nodes.size), _ROWS)]  # to bound the memory
    return inner, np.concatenate(parts), known


@BOUND.add("matrix")
@dataclass(frozen=True, eq=False)
class BoundMatrix(Sealed, BoundLabels):
    """Scores of every node at every label, as they are."""

    probabilities: npt.NDArray[Any]
    scores: FloatArray
    inner: BoundScore | None = None  #: what they were made from, where that is still known

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        scores: FloatArray = self.scores[nodes, labels]
        return scores

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        scores: FloatArray = self.scores[nodes]
        return scores

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


#: Nodes outside the reference on which sizes are compared, at most.
_SIZED = 20_000
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@SCORES.add("tuned-diffused")
@dataclass(frozen=True)
class TunedDiffused:
    """`Diffused` with the strength that makes the smallest sets, as Zargarbashi et al. (ICML 2023) tune DAPS.

    For each strength, the reference scores give a threshold, and the sets of the other nodes a mean size, empty sets
    counted as what they are. The strength with the smallest is taken, of equals the weakest; 0, no diffusion, is among
    them, because diffusion costs where neighbours differ. Reference labels have then been used, and set no level.

    *Guarantee*: with an exact level, 1 − alpha in finite samples: which nodes are held out plays no part in the
    choice. *Cost*: one sum over neighbours, edges × classes, and a sort of scores for each strength.

    Attributes
    ----------
    base : Score or str
        The score that is averaged.
    alpha : float
        The error rate that sizes are compared at.
    strengths : tuple of float
        What is tried, from 0 to 1 each.
    """

    base: Any = field(default_factory=APS)
    alpha: float = 0.1
    strengths: tuple[float, ...] = STRENGTHS
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        tried = check_list("strengths", self.strengths, "numbers from 0 to 1")
        if not tried:
            raise InvalidInputError("`strengths` must hold at least one number from 0 to 1; it is empty")
        object.__setattr__(self, "strengths", tuple(sorted({check_share("strengths", strength) for strength in tried})))

    def bind(self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled) -> BoundMatrix:
        """Return the scores diffused with the strength that reference labels choose."""
        inner, scores, graph = bind_around(self.base, outputs, u, graph, reference)
        means = means_around(graph, scores)
        strength = self._choose(scores, means, reference)
        return BoundMatrix(inner.probabilities, sealed(_mix(scores, means, strength)), inner)

    def _choose(self, scores: FloatArray, means: FloatArray, reference: Labelled) -> float:
        """Return the strength with the smallest sets; of equals the weakest."""
        rest = np.ones(scores.shape[0], dtype=bool)
        rest[reference.nodes] = False
        others = np.flatnonzero(rest)
        others = others[np.linspace(0, others.size - 1, min(others.size, _SIZED)).astype(np.int64)]
        known = reference.nodes, reference.labels
        sizes = [
            _mean_size(_mix(scores[known], means[known], strength), _mix(scores[others], means[others], strength), self)
            for strength in self.strengths
        ]
        return self.strengths[sizes.index(min(sizes))]


def _mix(scores: FloatArray, means: FloatArray, strength: float) -> FloatArray:
    mixed: FloatArray = (1.0 - strength) * scores + strength * means
    return mixed


def _mean_size(known: FloatArray, others: FloatArray, setting: TunedDiffused) -> float:
    """Return the mean size of sets at the threshold that known scores give."""
    threshold = weighted_quantile(known, np.ones(known.size), setting.alpha)
    return int(np.count_nonzero(others <= threshold)) / max(len(others), 1)
