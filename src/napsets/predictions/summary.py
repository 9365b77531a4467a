"""A prediction in a few numbers: how large sets or intervals are, and how many lack support."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from napsets.checks.arguments import IntArray, Sealed, frozen
from napsets.checks.values import Record

Self = TypeVar("Self", bound="Summary")


class Summary(ABC):
    """A prediction in a few numbers; the summaries of two parts of the same work add up (``+``)."""

    infinite: int
    unreached: int

    def __add__(self: Self, other: Self) -> Self:
        names = [column.name for column in fields(self)]  # type: ignore[arg-type]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Rows of the prediction."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The average size: labels per set, or the width of the finite intervals; NaN where there is none."""

    @abstractmethod
    def row(self) -> Record:
        """Return the numbers by name, for JSON."""


@dataclass(frozen=True, eq=False)
class SetsSummary(Sealed, Summary):
    """Sets in numbers; the summaries of two pieces of the same work add up (``+``).

    Attributes
    ----------
    size_counts : numpy.ndarray
        How many sets have 0, 1, …, classes labels.
    infinite : int
        Nodes with too little support: their threshold is +∞, and their set is full.
    unreached : int
        Nodes whose threshold rests on no calibration node at all.
    """

    size_counts: IntArray
    infinite: int
    unreached: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_counts", frozen(self.size_counts))

    @property
    def nodes(self) -> int:
        """Number of sets."""
        return int(self.size_counts.sum())

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.size_counts.size - 1

    @property
    def mean_size(self) -> float:
        """Average number of labels in a set; NaN where there is none."""
        labels = float(self.size_counts @ np.arange(self.size_counts.size))
        return labels / self.nodes if self.nodes else math.nan

    @property
    def size(self) -> float:
        """Average number of labels in a set."""
        return self.mean_size

    @property
    def empty(self) -> int:
        """Sets without any label."""
        return int(self.size_counts[0])

    @property
    def singletons(self) -> int:
        """Sets of one label."""
        return int(self.size_counts[1:2].sum())

    @property
    def full(self) -> int:
        """Sets with every label."""
        return int(self.size_counts[-1])

    def row(self) -> Record:
        """Return the numbers by name, for JSON."""
        nodes = max(self.nodes, 1)
        return {
            "nodes": self.nodes,
            "classes": self.num_classes,
            "mean_size": self.mean_size,
            "empty_rate": self.empty / nodes,
            "singleton_rate": self.singletons / nodes,
            "full_rate": self.full / nodes,
            "infinite": self.infinite,
            "unreached": self.unreached,
        }


@dataclass(frozen=True)
class IntervalsSummary(Summary):
    """Intervals in numbers; the summaries of two parts of the same work add up (``+``).

    Attributes
    ----------
    nodes : int
        Number of intervals.
    finite : int
        Intervals of finite width, and the sum of their widths.
    total_width : float
        The sum of the finite widths.
    infinite, unreached : int
        As in `SetsSummary`.
    """

    nodes: int = 0
    finite: int = 0
    total_width: float = 0.0
    infinite: int = 0
    unreached: int = 0

    @property
    def size(self) -> float:
        """The average width of the finite intervals; NaN where there is none."""
        return self.total_width / self.finite if self.finite else math.nan

    def row(self) -> Record:
        """Return the numbers by name, for JSON."""
        return {"nodes": self.nodes, "mean_width": self.size if self.finite else math.inf, "infinite": self.infinite}
