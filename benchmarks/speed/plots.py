"""The same rows as pictures: time against depth, against nodes and against threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speed.summary import grouped
from napsets.files.paths import replacing

NAMES = {
    "floor": "bare traversal in C",
    "napsets": "napsets",
    "networkx": "NetworkX and root finding",
    "sparse products": "SciPy products and cumulative sums",
    "torchcp": "TorchCP's NAPS predictor",
}
_COLOURS = ["#7f7f7f", "#d1495b", "#edae49", "#30638e", "#6a4c93"]


def write_plots(sections: dict[str, Any], graphs: dict[str, Any], folder: Path) -> None:
    """Write an SVG for each plot whose rows are there."""
    if "depth" in sections:
        rows = sections["depth"]["rows"]
        most = max(row["threads"] for row in rows)
        points = _points(rows, graphs)
        best = [p for p in points if p["threads"] == most or p["task"] not in ("floor", "napsets")]
        _save(_lines(best, "hops:O", "hops", "seconds for all nodes"), folder / "speed-depth.svg")
        own = [p for p in points if p["task"] in ("floor", "napsets")]
        chart = _lines(own, "threads:O", "threads", "seconds for all nodes", facet=True)
        _save(chart, folder / "speed-threads.svg")
    if "nodes" in sections:
        points = _points(sections["nodes"]["rows"], graphs)
        _save(_lines(points, "nodes:Q", "nodes", "seconds for all nodes, 2 hops"), folder / "speed-nodes.svg")


def _points(rows: list[dict[str, Any]], graphs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return median, smallest and largest time for all nodes, by contender and setting."""
    points = []
    for group in grouped(rows, "graph", "hops", "task", "threads"):
        nodes = graphs[group.key["graph"]]["nodes"]
        times = sorted(row["seconds"] * nodes / row["sources"] for row in group.rows)
        point = {"nodes": nodes, "low": times[0], "time": times[len(times) // 2], "high": times[-1]}
        points.append({**group.key, **point, "contender": NAMES[group.key["task"]]})
    return points


def _lines(points: list[dict[str, Any]], x: str, x_title: str, y_title: str, *, facet: bool = False) -> Any:
    import altair as alt

    names = [name for task, name in NAMES.items() if any(p["task"] == task for p in points)]
    logarithmic = alt.Scale(type="log", nice=False)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X(x, title=x_title, axis=alt.Axis(labelAngle=0), **({"scale": logarithmic} if x.endswith("Q") else {})),
        color=alt.Color(
            "contender:N",
            title=None,
            scale=alt.Scale(domain=names, range=_COLOURS[: len(names)]),
            legend=alt.Legend(labelLimit=0),
        ),
    )
    middle = base.mark_line(point=True).encode(
        y=alt.Y("time:Q", title=y_title, scale=logarithmic, axis=alt.Axis(tickCount=6))
    )
    spread = base.mark_rule().encode(y="low:Q", y2="high:Q")
    layers = (middle + spread).properties(width=160 if facet else 420, height=280)
    return layers.facet(column=alt.Column("hops:O", title="hops")) if facet else layers


def _save(chart: Any, path: Path) -> None:
    with replacing(path) as draft:
        chart.save(str(draft))
