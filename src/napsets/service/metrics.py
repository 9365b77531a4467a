"""Counts and times of requests, and all figures as Prometheus reads them."""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

#: Upper ends of the histogram's buckets, in seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
#: Slow requests that are remembered, and for how many seconds.
_SLOWEST, _REMEMBERED = 10, 3600.0

#: Figures of a status that are metrics: their name there, what they are called, their type and their help.
_FIGURES = (
    ("nodes", "nodes", "gauge", "Nodes in the graph."),
    ("edges", "edges", "gauge", "Edges in the graph."),
    ("labels", "labels", "gauge", "Labels known now."),
    ("events", "events_total", "counter", "Events in the log."),
)
#: The same of what labels said of the sets that stood before they came.
_JUDGED = (
    ("labels", "judged_total", "counter", "Labels that judged the set that stood before they came."),
    ("coverage", "coverage", "gauge", "Share of those labels that were in the set."),
    ("recent_coverage", "recent_coverage", "gauge", "The same in the last window."),
    ("mean_size", "set_size", "gauge", "Average size of those sets."),
    ("label_delay", "label_delay", "gauge", "Median label delay in the last window, in labels."),
)


class Requests:
    """What requests there were: how many of each kind, how long they took, and the slowest of the last hour."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0
        #: Seconds, when by a clock that never jumps, when by the clock on the wall, method, route, status.
        self._slowest: list[tuple[float, float, float, str, str, int]] = []
        self._lock = Lock()

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        with self._lock:
            self.counts[method, route, status] += 1
            self._buckets[bisect_left(_BUCKETS, seconds)] += 1
            self._seconds += seconds
            if len(self._slowest) < _SLOWEST or seconds > self._slowest[-1][0] or not self._is_recent(self._slowest[0]):
                entry = (seconds, time.monotonic(), time.time(), method, route, status)
                self._slowest = heapq.nlargest(_SLOWEST, [entry, *filter(self._is_recent, self._slowest)])

    @staticmethod
    def _is_recent(entry: tuple[float, float, float, str, str, int]) -> bool:
        return time.monotonic() - entry[1] < _REMEMBERED

    def slowest(self) -> list[dict[str, Any]]:
        """Return the slowest requests of the last hour, slowest first."""
        with self._lock:
            return [
                {"milliseconds": round(1000 * seconds, 3), "at": round(at, 3), "method": method, "route": route,
                 "status": status}
                for seconds, _, at, method, route, status in filter(self._is_recent, self._slowest)
            ]  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Yield the figures as Prometheus reads them."""
        with self._lock:
            yield from _head("requests_total", "counter", "Requests by method, route and status.")
            for (method, route, status), count in sorted(self.counts.items()):
                yield f'napsets_requests_total{{method="{method}",route="{_escaped(route)}",status="{status}"}} {count}'
            yield from _head("request_seconds", "histogram", "How long requests took.")
            total = 0
            for end, count in zip((*_BUCKETS, math.inf), self._buckets, strict=True):
                total += count
                yield f'napsets_request_seconds_bucket{{le="{"+Inf" if math.isinf(end) else end}"}} {total}'
            yield f"napsets_request_seconds_sum {self._seconds!r}"
            yield f"napsets_request_seconds_count {total}"


def prometheus_text(status: Mapping[str, Any], requests: Requests | None = None) -> str:
    """Return a status, and requests where there were some, in Prometheus' text format.

    Examples
    --------
    >>> print(prometheus_text({"nodes": 3, "judged": {"alarms": {"coverage": {"rang": 9}}}}))
    # HELP napsets_nodes Nodes in the graph.
    # TYPE napsets_nodes gauge
    napsets_nodes 3
    # HELP napsets_alarm Whether an alarm has rung.
    # TYPE napsets_alarm gauge
    napsets_alarm{name="coverage"} 1
    <BLANKLINE>
    """
    lines: list[str] = []
    judged = status.get("judged", {})
    for source, figures in ((status, _FIGURES), (judged, _JUDGED)):
        for key, name, kind, text in figures:
            if source.get(key) is not None:
                lines += [*_head(name, kind, text), f"napsets_{name} {source[key]!r}"]
    lines += _head("alarm", "gauge", "Whether an alarm has rung.")
    for name, alarm in judged.get("alarms", {}).items():
        lines.append(f'napsets_alarm{{name="{_escaped(name)}"}} {int(alarm["rang"] is not None)}')
    if requests is not None:
        lines += requests.lines()
    return "\n".join([*lines, ""])


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP napsets_{name} {text}", f"# TYPE napsets_{name} {kind}"]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
