"""Medians and spreads of rows that belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Spread:
    """The median of some figures, and how far they reach."""

    values: list[float]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def text(self, show: Callable[[float], str]) -> str:
        """Return the median, and the smallest and largest in brackets where there is more than one figure."""
        if len(self.values) == 1:
            return show(self.middle)
        return f"{show(self.middle)} ({show(self.low)} to {show(self.high)})"


@dataclass(frozen=True)
class Group:
    """Rows with the same key."""

    key: dict[str, Any]
    rows: list[dict[str, Any]]


def grouped(rows: list[dict[str, Any]], *names: str) -> list[Group]:
    """Put rows together that agree on some columns, in the order in which they first come."""
    groups: dict[tuple[Any, ...], Group] = {}
    for row in rows:
        key = {name: row.get(name) for name in names}
        groups.setdefault(tuple(key.values()), Group(key, [])).rows.append(row)
    return list(groups.values())


def per_round(group: Group, column: str) -> Spread:
    """Return the spread of a column."""
    return Spread([row[column] for row in group.rows])


def quotient(group: Group, base: Group, column: str) -> Spread:
    """Return the spread of the ratios of a column's cost a node, each to the base's in the same round.

    What ran in fewer rounds than the base is compared with the base's median: no one round of it is its own.
    """
    bases = {row["round"]: row[column] / row["sources"] for row in base.rows}
    if len(group.rows) < len(base.rows):
        bases = dict.fromkeys(bases, median(bases.values()))
    return Spread([row[column] / row["sources"] / bases[row["round"]] for row in group.rows if row["round"] in bases])
