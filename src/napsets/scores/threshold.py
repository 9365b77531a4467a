"""The threshold score: one minus the probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, check_probabilities
from napsets.scores.base import SCORES, RowScore, known_labels

__all__ = ["THR"]


@SCORES.add("thr")
@dataclass(frozen=True)
class THR(RowScore):
    """Threshold score (Sadinle et al., 2019): S(x, y) = 1 − p_y. The smallest sets on average; ignores u."""

    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes), in float64."""
        return 1.0 - check_probabilities(probabilities).astype(np.float64)

    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,)."""
        p = check_probabilities(probabilities)
        y = known_labels(labels, p)
        return 1.0 - p[np.arange(y.size), y].astype(np.float64)
