"""Thresholds of neighbourhoods by hop, asked of the search itself: from arrays, without a method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napsets.kernels.layout import Layout, Reach
from napsets.kernels.search import find_thresholds
from napsets.localisers.hops import Sizes, Weighting
from napsets.quantile import ROUNDING


@dataclass(frozen=True)
class Found:
    """Thresholds of shape (decays, alphas, nodes), calibration nodes by hop, and the weights by hop of each decay."""

    values: np.ndarray
    hop_counts: np.ndarray
    weights: np.ndarray

    def _of_each(self, size):
        sizes = Sizes(self.hop_counts, np.zeros(len(self.hop_counts), dtype=np.int64))
        return np.stack([getattr(sizes, size)(Weighting(row)) for row in self.weights])

    @property
    def support(self):
        """Calibration nodes with weight, shape (decays, nodes)."""
        return self._of_each("support")

    @property
    def effective_size(self):
        """(Σw)²/Σw², shape (decays, nodes)."""
        return self._of_each("effective_size")


def make_layout(graph, scores, calibration) -> Layout:
    """Number the calibration nodes of a graph by score."""
    return Layout(graph, np.array(calibration, dtype=np.int64), np.array(scores, dtype=np.float64) + 0.0)


def search_thresholds(layout, nodes, weights, alpha, **options) -> Found:
    """Search around some nodes once, for one or several rows of weights and one or several alphas."""
    rows, reach = np.atleast_2d(np.asarray(weights, dtype=np.float64)), Reach(1.0 - np.atleast_1d(alpha), ROUNDING)
    values, counts = find_thresholds(layout, np.asarray(nodes, dtype=np.int64), rows, reach, **options)
    return Found(np.ascontiguousarray(values.transpose(1, 2, 0)), counts, rows)


def hop_thresholds(graph, scores, calibration, nodes, weights, alpha=0.1, **options) -> np.ndarray:
    """Return the threshold of each node for one row of weights and one alpha."""
    return search_thresholds(make_layout(graph, scores, calibration), nodes, weights, alpha, **options).values[0, 0]
