"""One threshold for all: every reference node counts alike for every node, as in split conformal prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.localisers.base import LOCALISERS, Cut, LocalThresholds, Reference
from napsets.quantile import ROUNDING

__all__ = ["Everyone"]


@LOCALISERS.add("everyone")
@dataclass(frozen=True)
class Everyone:
    """All reference nodes, near and far, weigh 1. Needs no graph."""

    proven: ClassVar[bool] = True

    def fit(self, reference: Reference) -> _Everyone:
        """Return the localiser of these reference nodes."""
        return _Everyone(reference)


@dataclass(frozen=True, eq=False)
class _Everyone:
    reference: Reference

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        scores, places = self.reference.by_score
        own = places[nodes].astype(np.int64)
        support = scores.size - (own < scores.size).astype(np.int64)
        values = np.stack([_order_statistics(scores, own, support, cut) for cut in cuts])
        return LocalThresholds(values, support, support.astype(np.float64))

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        known, places = self.reference.by_score
        own = places[nodes].astype(np.int64)
        support = known.size - (own < known.size).astype(np.int64)
        below = np.searchsorted(known, scores, side="left")
        return (below - (own < below)) / (1.0 + support)


def _order_statistics(scores: FloatArray, own: IntArray, support: IntArray, cut: Cut) -> FloatArray:
    """Return, for each node, the smallest score of the others up to which there are as many as the cut asks for."""
    # A node is among the reference nodes or is not: there are two sizes, and a number of scores needed for each.
    needed = np.array([_needed(n, cut) for n in (scores.size - 1, scores.size)])
    wanted = needed[support - scores.size + 1] - 1
    reached = wanted < support
    # One further on, where the node's own score stands before it.
    wanted = np.where(own <= wanted, wanted + 1, wanted)
    values = np.full(own.size, np.inf)
    values[reached] = scores[np.maximum(wanted[reached], 0)]
    values[reached & (wanted < 0)] = -np.inf
    return values


def _needed(size: int, cut: Cut) -> int:
    """Return the smallest count m, of `size` scores, that the cut accepts; more than `size` where none does."""
    if not cut.level <= 1.0:  # NaN among them
        return size + 1
    if cut.rule == "nominal":
        return int(np.ceil(cut.level * (1.0 + float(size)) * (1.0 - ROUNDING)))
    count = max(0, int(np.floor(cut.level * (1.0 + size))) - 1)  # a little low: the division decides
    while count <= size and not (
        count / (1.0 + size) >= cut.level if cut.rule == "at least" else count / (1.0 + size) > cut.level
    ):
        count += 1
    return count
