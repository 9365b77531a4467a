"""Which hops and decay NAPS could use on a graph, and what each choice costs; see `napsets.advice.recommendation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.advice.theory import gap_bound
from napsets.checks.arguments import FloatArray, IntArray
from napsets.evaluation.metrics import mean, mean_and_error
from napsets.graph import Graph
from napsets.localisers.decay import DECAYS, hop_weights
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.quantile import ROUNDING, effective_size


@dataclass(frozen=True)
class HopsCandidate:
    """One choice of hops and decay.

    Attributes
    ----------
    hops, decay
        The choice.
    bound : float
        Mean of the coverage-gap bound, where the distance in total variation is 1 for nodes with different labels,
        otherwise 0.
    bound_se : float
        Its standard error over the labelled nodes that were looked at.
    slack : float
        Mean of 1 / (1 + Σw): how far coverage may be above 1−α because there are few calibration nodes.
    spread : float
        Mean of √(α(1−α) / (1 + effective size)): how far it fluctuates with the sample.
    effective_size : float
        Mean effective size of the neighbourhoods of the nodes to predict.
    short : int
        How many of those nodes lack support: they would get every label.
    short_share : float
        The same as a share.
    """

    hops: int
    decay: str
    bound: float
    bound_se: float
    slack: float
    spread: float
    effective_size: float
    short: int
    short_share: float

    @property
    def cost(self) -> float:
        """Bound, slack and spread together; a node without support counts as 1."""
        if np.isnan(self.bound):
            return 1.0
        return (1.0 - self.short_share) * (self.bound + self.slack + self.spread) + self.short_share


class Candidates:
    """Every choice of hops and decay, with sums over the nodes to predict."""

    def __init__(self, alpha: float, max_hops: int) -> None:
        self.alpha = alpha
        self.weights = {(k, decay): hop_weights(decay, k) for k in range(1, max_hops + 1) for decay in DECAYS}
        self.short = dict.fromkeys(self.weights, 0)
        self.size = dict.fromkeys(self.weights, 0.0)
        self.nodes = 0

    def add(self, counts: IntArray) -> None:
        """Count calibration nodes by hop of some more nodes to predict, shape (nodes, hops)."""
        self.nodes += counts.shape[0]
        for key, weights in self.weights.items():
            mass, size = _mass_and_size(counts, weights)
            self.short[key] += int(self._lacks(mass).sum())
            self.size[key] += float(size.sum())

    def _lacks(self, mass: FloatArray) -> Any:
        # The largest score gathers all of the mass: the threshold is finite just where that is enough.
        return mass < (1.0 - self.alpha) * (1.0 + mass) * (1.0 - ROUNDING)

    def all(self, total: IntArray, same: IntArray) -> tuple[HopsCandidate, ...]:
        """Return all choices, given what `label_counts` returns of labelled nodes."""
        return tuple(
            self._candidate(hops, decay, total, same) for hops, decay in self.weights if hops > 1 or decay == "uniform"
        )

    def _candidate(self, hops: int, decay: str, total: IntArray, same: IntArray) -> HopsCandidate:
        key = hops, decay
        weights, counts = self.weights[key], total[:, :hops]
        other = np.divide(counts - same[:, :hops], counts, out=np.zeros(counts.shape), where=counts > 0)
        mass, size = _mass_and_size(counts, weights)
        held = ~self._lacks(mass)
        bound, bound_se = mean_and_error(gap_bound(weights, counts, other)[held])
        return HopsCandidate(
            hops=hops,
            decay=decay,
            bound=bound,
            bound_se=bound_se,
            slack=mean(1.0 / (1.0 + mass[held])),
            spread=mean(np.sqrt(self.alpha * (1.0 - self.alpha) / (1.0 + size[held]))),
            effective_size=self.size[key] / self.nodes,
            short=self.short[key],
            short_share=self.short[key] / self.nodes,
        )


def label_counts(
    graph: Graph, labels: IntArray, calibration: IntArray, nodes: IntArray, hops: int
) -> tuple[IntArray, IntArray]:
    """Return, by hop, how many calibration nodes are around each node, and how many of those have its label."""
    total = hop_counts(CalibrationIndex(graph, np.zeros(calibration.size), calibration), nodes, hops)
    same = np.zeros_like(total)
    for label in np.unique(labels[nodes]):
        alike = calibration[labels[calibration] == label]
        rows = labels[nodes] == label
        same[rows] = hop_counts(CalibrationIndex(graph, np.zeros(alike.size), alike), nodes[rows], hops)
    return total, same


def hop_counts(index: CalibrationIndex, nodes: IntArray, hops: int) -> IntArray:
    """Return how many calibration nodes are around each node, by hop."""
    return neighbourhood_thresholds(index, nodes, np.ones(hops), 0.5).hop_counts


def _mass_and_size(counts: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    near = counts[:, : weights.size]
    return near.astype(np.float64) @ weights, effective_size(weights[None], near)[0]
