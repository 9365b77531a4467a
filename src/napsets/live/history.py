"""How the sets of a living graph have done over time: a few hundred points, however many labels there are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napsets.live.monitoring import Monitor, interval_from_counts
from napsets.live.record import Record

_LOG10 = math.log(10.0)


class History:
    """Points in time, evenly spread; half of them are dropped whenever there are too many.

    Parameters
    ----------
    alpha : float
        The error rate that the sets promise.
    most : int
        How many points there are at the most.
    """

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
