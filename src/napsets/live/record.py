"""The prequential record: each label judges the set that stood before it came; and points of it over time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.live.monitoring import Monitor, interval_from_counts
from napsets.live.state import Table

_LOG10 = math.log(10.0)


class Judgement(NamedTuple):
    """The judgement of a set by the label that arrived after it."""

    event: int  #: The number of the event.
    covered: bool  #: Whether the label was in the set.
    size: int  #: How many labels the set had.
    p_value: float  #: The smoothed p-value of the label; NaN for a label of the reference, which enters no test.
    delay: int  #: How many labels arrived since the node did.
    level: float  #: The level of the set.


_KINDS = (np.int64, bool, np.int64, np.float64, np.int64, np.float64)


class Record:
    """All judgements, in the order of the labels."""

    def __init__(self) -> None:
        columns = zip(Judgement._fields, _KINDS, strict=True)
        self._columns = Table(**{name: np.empty(0, dtype=kind) for name, kind in columns})

    def add(self, judgement: Judgement) -> None:
        """Enter one judgement."""
        self._columns.extend(1)
        for buffer, value in zip(self._columns.buffers.values(), judgement, strict=True):
            buffer[len(self) - 1] = value

    def __len__(self) -> int:
        return self._columns.size

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return one attribute of all judgements."""
        return self._columns[name]

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
        return {f"record_{name}": self._columns[name] for name in Judgement._fields}

    def take(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take the columns of a snapshot."""
        self._columns.take({name: arrays[f"record_{name}"].copy() for name in Judgement._fields})


class History:
    """At most so many points in time, evenly spread; half of them are dropped whenever there are too many."""

    def __init__(self, alpha: float, most: int = 400) -> None:
        self._monitor, self._most, self._stride = Monitor(alpha), most, 1
        self._sizes = 0.0
        self._points: list[tuple[float, ...]] = []

    def columns(self, record: Record) -> dict[str, list[float | None]]:
        """Return the points as columns, up to the last label of the record.

        They are how many labels had come (``judged``), the coverage until then with its interval (``coverage``,
        ``lower``, ``upper``), the average set size since the point before (``size``), the median label delay
        (``delay``), and the logarithms to base 10 of the two alarms' capitals (``exchangeability``, ``misses``).
        """
        for missed, size, p_value, delay in record.since(self._monitor.labels):
            self._monitor.step(missed, size, p_value, delay)
            self._sizes += size
            if self._monitor.labels % self._stride == 0:
                self._points.append(self._point())
                if len(self._points) > self._most:
                    self._points, self._stride = self._points[1::2], 2 * self._stride
        points = list(self._points)
        if self._monitor.labels and (not points or points[-1][0] < self._monitor.labels):
            points.append(self._point())
        table = np.array(points, dtype=np.float64).reshape(-1, 6)
        judged, misses, sizes, delays, exchangeability, coverage = table.T
        lower, upper = interval_from_counts(misses.astype(np.int64), judged.astype(np.int64))
        each: dict[str, Any] = {
            "judged": judged.astype(np.int64),
            "coverage": 1.0 - misses / np.maximum(judged, 1.0),
            "lower": lower,
            "upper": upper,
            "size": np.diff(sizes, prepend=0.0) / np.maximum(np.diff(judged, prepend=0.0), 1.0),
            "delay": delays,
            "exchangeability": exchangeability,
            "misses": coverage,
        }
        return {
            name: [None if math.isnan(value) else value for value in column.tolist()] for name, column in each.items()
        }

    def _point(self) -> tuple[float, ...]:
        monitor = self._monitor
        delay = math.nan if monitor.delay is None else monitor.delay
        capitals = (monitor.exchangeability.log_capital / _LOG10, monitor.coverage.log_capital / _LOG10)
        return (monitor.labels, monitor.misses, self._sizes, delay, *capitals)
