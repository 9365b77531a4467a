"""Diffusion as strong as the graph bears: DAPS with its strength tuned on labels that then calibrate nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, check_alpha, check_list, check_share
from napsets.checks.frozen import sealed
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.quantile import weighted_quantile
from napsets.scores.base import SCORES, Labelled, bind, make_score
from napsets.scores.diffused import BoundMatrix, matrix_of
from napsets.scores.ranks import APS

__all__ = ["TunedDiffused"]

#: Nodes outside the reference on which sizes are compared, at the most.
_SIZED = 20_000
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@SCORES.add("tuned-diffused")
@dataclass(frozen=True)
class TunedDiffused:
    """`Diffused` with the strength that makes the smallest sets, as Zargarbashi et al. (ICML 2023) tune DAPS.

    For each strength, the reference scores give a threshold, and the sets of the other nodes a mean size, empty sets
    counted as what they are. The strength with the smallest is taken, of equals the weakest; 0, no diffusion, is among
    them, because diffusion costs where neighbours differ. Reference labels have then been used, and set no level.

    *Guarantee*: with an exact level, 1 − alpha in finite samples: which nodes are kept apart plays no part in the
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
        object.__setattr__(self, "strengths", tuple(sorted({check_share("strengths", each) for each in tried})))

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None
    ) -> BoundMatrix:
        """Return the scores diffused with the strength that reference labels choose."""
        if graph is None:
            raise InvalidInputError("`graph` must be given to a score that looks at neighbours; got None")
        if reference is None:
            raise InvalidInputError("`reference` must be given to a score that learns from labels; got None")
        inner = bind(self.base, outputs, u, graph, reference)
        scores = matrix_of(inner, outputs.shape[0])
        means = graph.neighbour_means(scores)
        alone = graph.degrees == 0
        means[alone] = scores[alone]
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
