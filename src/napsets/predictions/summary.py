"""A prediction in a few numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, TypeVar

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
    def row(self) -> dict[str, Any]:
        """Return the numbers by name, for JSON."""
