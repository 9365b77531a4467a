"""Metrics for Prometheus: figures of a living graph, and counts and times of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: Upper ends of the histogram's buckets, in seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

#: Methods that requests are counted by; other names could fill the memory.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

#: The metrics of a status, and those of the sets that labels judged: the figure, and its help.
_FIGURES = {
    "nodes": "Nodes in the graph.",
    "edges": "Edges in the graph.",
    "labels": "Labels known now.",
    "events": "Events in the log.",
}
_JUDGED = {
    "judged": "Labels that judged the set that stood before they came.",
    "coverage": "Share of those labels that were in the set.",
    "recent_coverage": "The same in the last window.",
    "mean_size": "Average size of those sets.",
    "label_delay": "Median label delay in the last window, in labels.",
}


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._counts = Counter("napsets_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "napsets_request_seconds", "Time until the answer began.", buckets=_BUCKETS, registry=self._registry
        )
        self._gauges = {
            name: Gauge(f"napsets_{name}", text, registry=self._registry) for name, text in (_FIGURES | _JUDGED).items()
        }
        self._alarms = Gauge("napsets_alarm", "Whether an alarm was raised.", ["name"], registry=self._registry)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._counts.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.observe(seconds)

    def text(self, status: Mapping[str, Any]) -> bytes:
        """Return the metrics with the figures of a status as Prometheus reads them."""
        judged = status["judged"] | {"judged": status["judged"]["labels"]}
        for name, gauge in self._gauges.items():
            value = judged[name] if name in _JUDGED else status[name]
            gauge.set(float("nan") if value is None else value)
        for name, alarm in judged["alarms"].items():
            self._alarms.labels(name).set(alarm["rang"] is not None)
        return generate_latest(self._registry)
