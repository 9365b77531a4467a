"""Metrics for Prometheus: figures of a living graph, and counts and times of requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Figures = Mapping[str, Any]

#: Upper ends of the histogram's buckets, in seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
#: What requests are counted by; other names could fill the memory.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

#: Figures of a status that are metrics, and those of its judged sets: name there, name of the metric, and help.
_FIGURES = (
    ("nodes", "nodes", "Nodes in the graph."),
    ("edges", "edges", "Edges in the graph."),
    ("labels", "labels", "Labels known now."),
    ("events", "events_total", "Events in the log."),
)
_JUDGED = (
    ("labels", "judged_total", "Labels that judged the set that stood before they came."),
    ("coverage", "coverage", "Share of those labels that were in the set."),
    ("recent_coverage", "recent_coverage", "The same in the last window."),
    ("mean_size", "set_size", "Average size of those sets."),
    ("label_delay", "label_delay", "Median label delay in the last window, in labels."),
)


class _OfStatus:
    """A collector of the figures of one status."""

    def __init__(self, status: Figures) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        judged = self._status["judged"]
        for source, figures in ((self._status, _FIGURES), (judged, _JUDGED)):
            for key, name, text in figures:
                if source.get(key) is not None:
                    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                    yield kind(f"napsets_{name}", text, value=source[key])
        alarms = GaugeMetricFamily("napsets_alarm", "Whether an alarm has rung.", labels=["name"])
        for name, alarm in judged["alarms"].items():
            alarms.add_metric([name], float(alarm["rang"] is not None))
        yield alarms


def status_text(status: Figures) -> bytes:
    """Return the figures of a status as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(_OfStatus(status))
    return generate_latest(registry)


class Requests:
    """Counts and times of the requests of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._counts = Counter("napsets_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "napsets_request_seconds", "Time until the answer began.", buckets=_BUCKETS, registry=self._registry
        )

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._counts.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.observe(seconds)

    def text(self) -> bytes:
        """Return the counts as Prometheus reads them."""
        return generate_latest(self._registry)
