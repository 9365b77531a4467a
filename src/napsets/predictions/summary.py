"""A prediction in a few numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Summary"]


class Summary(ABC):
    """A prediction in a few numbers; the summaries of two parts of the same work add up (``+``).

    Attributes
    ----------
    nodes : int
        Rows of the prediction.
    infinite : int
        Nodes with too little support: their threshold is +∞.
    unreached : int
        Nodes whose threshold rests on no calibration node at all.
    """

    infinite: int
    unreached: int

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Rows of the prediction."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The average size: labels per set, or the width of the finite intervals; NaN where there is none."""

    @abstractmethod
    def row(self) -> dict[str, Any]:
        """Return the numbers by name, for JSON."""
