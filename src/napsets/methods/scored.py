"""Scored: labelled nodes with their scores, which thresholds and levels are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.localisers import Reference

__all__ = ["Scored"]


def _no_nodes() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Scored(Sealed):
    """Labelled nodes with their scores: those that thresholds are made of, and those held out for the level.

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
    level_nodes, level_scores : numpy.ndarray
        The nodes held out for the level, and the score of each at its truth.
    labels, level_labels : numpy.ndarray
        The truth of the reference nodes and of the level nodes; empty where it is not known any more: a file keeps it
        only for methods that have groups.
    ids : numpy.ndarray or None
        What the user calls all nodes, where they have names of their own.
    class_names : tuple of str or None
        What the classes are called.
    alone : BoundScore or None
        The score with the evidence of the reference alone, where the held-out labels are evidence too in `bound`;
        None where it is not known any more, as in a method from a file.
    """

    score: Any
    seed: int
    u: FloatArray
    bound: Any
    reference: Reference
    level_nodes: IntArray
    level_scores: FloatArray
    labels: npt.NDArray[Any] = field(default_factory=_no_nodes)
    level_labels: npt.NDArray[Any] = field(default_factory=_no_nodes)
    ids: npt.NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None
    alone: Any = None

    def __post_init__(self) -> None:
        for name in ("u", "level_nodes", "level_scores", "labels", "level_labels"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.ids is not None:
            object.__setattr__(self, "ids", frozen(self.ids))

    def without_bag(self) -> Scored:
        """Return the same nodes with the held-out labels silent: as an exact level that is not full has them."""
        if self.alone is None or self.alone is self.bound:
            return self
        scores = self.alone.at(self.level_nodes, self.level_labels)
        return replace(self, bound=self.alone, level_scores=scores)

    @cached_property
    def calibration(self) -> IntArray:
        """All labelled nodes, in ascending order."""
        return sealed(np.sort(np.concatenate([self.reference.nodes, self.level_nodes])))
