"""The prequential record: each label judges the set that stood before it came."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.live.monitoring import Monitor
from napsets.live.nodes import Column


class Judgement(NamedTuple):
    """The judgement of a set by the label that arrived after it.

    Attributes
    ----------
    event : int
        The number of the event.
    covered : bool
        Whether the label was in the set.
    size : int
        How many labels the set had.
    p_value : float
        The smoothed p-value of the label; NaN for a label of the reference, which enters no test.
    delay : int
        How many labels arrived since the node did.
    level : float
        The level of the set.
    """

    event: int
    covered: bool
    size: int
    p_value: float
    delay: int
    level: float


_KINDS = (np.int64, bool, np.int64, np.float64, np.int64, np.float64)


class Record:
    """All judgements, in the order of the labels."""

    def __init__(self) -> None:
        self._columns = {
            name: Column(np.empty(0, dtype=kind)) for name, kind in zip(Judgement._fields, _KINDS, strict=True)
        }

    def add(self, judgement: Judgement) -> None:
        """Enter one judgement."""
        for column, value in zip(self._columns.values(), judgement, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return int(self._columns["event"].size)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return one attribute of all judgements."""
        return self._columns[name].values

    def since(self, labels: int) -> Iterator[tuple[bool, int, float | None, int]]:
        """Yield the judgements after the first `labels`, as arguments of `Monitor.step`."""
        columns = (self.column(name)[labels:].tolist() for name in ("covered", "size", "p_value", "delay"))
        for covered, size, p_value, delay in zip(*columns, strict=True):
            yield not covered, size, None if math.isnan(p_value) else p_value, delay

    def catch_up(self, monitor: Monitor) -> Monitor:
        """Pass the labels that a monitor has not seen yet to it, and return it."""
        for judgement in self.since(monitor.labels):
            monitor.step(*judgement)
        return monitor

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns, for a snapshot."""
        return {f"record_{name}": column.values for name, column in self._columns.items()}

    def take(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take the columns of a snapshot."""
        for name in self._columns:
            self._columns[name] = Column(arrays[f"record_{name}"].copy())
