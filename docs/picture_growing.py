"""The picture of a graph that grows: coverage of new nodes while they arrive, at random or along edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
from scipy.special import softmax

import napsets as ns

ALPHA = 0.1
_DRAWS = 5
_FIRST, _LABELLED = 3000, 1500
_THEN = (4000, 5000, 7000, 9000, 11000, 13000)
COLOURS = {"old outputs": "#8a8a8a", "new outputs: NodeEx": "#00796b", "EdgeEx": "#e08214"}


def growing() -> alt.HConcatChart:
    """Return two panels, one for each way in which nodes arrive: means over five orders of arrival."""
    data = ns.datasets.load("amazon-computers", seed=0)
    rows = [row for seed in range(_DRAWS) for how in ("at random", "along edges") for row in _grown(data, how, seed)]
    return _panel(rows, "at random") | _panel(rows, "along edges")


def _grown(data: Any, how: str, seed: int) -> Iterator[dict[str, Any]]:
    order = _arrivals(data, how, seed)
    known = order[:_LABELLED]
    start = np.sort(np.concatenate([data.train, order[:_FIRST]]))
    then = np.zeros((data.num_nodes, 10))
    then[start] = _outputs(data, start)[1]
    for count in _THEN:
        present = np.sort(np.concatenate([data.train, order[:count]]))
        graph, now = _outputs(data, present)
        mixed = np.where(np.isin(present, start)[:, None], then[present], now)
        place = np.full(data.num_nodes, -1)
        place[present] = np.arange(present.size)
        labels = data.labels[present]
        weighted = ns.Method("aps", ns.CovariateShift(1.0 / np.maximum(graph.degrees, 1)))
        methods = ns.Method("aps"), ns.Method("aps"), weighted
        for name, method, p in zip(COLOURS, methods, (mixed, now, now), strict=True):
            calibrated = method.calibrate(graph, p, labels, place[known])
            sets = calibrated.predict(place[order[_FIRST:count]], alpha=ALPHA)
            yield {"how": how, "method": name, "arrived": count - _FIRST, "coverage": ns.coverage(sets, labels)}


def _arrivals(data: Any, how: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(np.arange(data.num_nodes), data.train)
    if how == "at random":
        return rng.permutation(others)
    ends = rng.permutation(data.graph.indices)
    met = ends[np.sort(np.unique(ends, return_index=True)[1])]
    met = met[np.isin(met, others)]
    return np.concatenate([met, np.setdiff1d(others, met)])  # nodes without edges come last


def _outputs(data: Any, present: Any) -> tuple[ns.Graph, Any]:
    """Return the graph of the present nodes, and the outputs of a nearest-centroid model on averaged features."""
    graph = data.graph.subgraph(present)
    x = np.asarray(data.features, dtype=np.float64)[present]
    x = x + graph.to_scipy() @ x / np.maximum(graph.degrees, 1)[:, None]
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    seen = np.flatnonzero(np.isin(present, data.train))
    centres = np.stack([x[seen][data.labels[present][seen] == y].mean(axis=0) for y in range(10)])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    return graph, softmax(20 * x @ centres.T, axis=1)


def _panel(rows: list[dict[str, Any]], how: str) -> alt.LayerChart:
    here = [row for row in rows if row["how"] == how]
    means = [
        {"method": name, "arrived": count, "coverage": _mean(here, name, count)}
        for name in COLOURS
        for count in sorted({row["arrived"] for row in here})
    ]
    lines = alt.Chart(alt.Data(values=means)).mark_line(point=True)
    lines = lines.encode(
        alt.X("arrived:Q", title="nodes that have arrived"),
        alt.Y("coverage:Q", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0.84, 1.0])),
        color=alt.Color("method:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), title=None),
    )
    target = alt.Chart(alt.Data(values=[{"coverage": 1 - ALPHA}])).mark_rule(strokeDash=[5, 4]).encode(y="coverage:Q")
    return (lines + target).properties(width=280, height=180, title=f"Nodes arrive {how}")


def _mean(rows: list[dict[str, Any]], name: str, count: int) -> float:
    return float(np.mean([row["coverage"] for row in rows if (row["method"], row["arrived"]) == (name, count)]))
