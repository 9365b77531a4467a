"""The charts of a page about intervals, made from rows."""

from __future__ import annotations

from dataclasses import replace

from napsets.report import method_charts as common
from napsets.report.encodings import INTERVAL_TIPS, Looks, Spec, layer, number, reach, tips
from napsets.report.graph_charts import funnel, neighbourhood_map, score_distribution
from napsets.report.interval_data import IntervalReportData
from napsets.report.interval_explorer import IntervalExplorer
from napsets.report.method_charts import CHANCE_TIPS, Measure, grouped, ordinal
from napsets.report.rows import Row

__all__ = ["interval_charts", "line_rows"]

#: Hops whose labelled nodes have a line of their own on a node's number line.
LINE_HOPS = 3

FORM = ".3~g"
WIDTH = Measure(
    "shared_width", "Width", "Mean width", "Mean width where all are finite", "Width (narrower is better)", FORM
)
MEDIAN = Measure("median_width", "Median width", "Median width", "Median width", "Median width", FORM)
TARGET = ("target", "Mean target", FORM)


def interval_charts(data: IntervalReportData) -> dict[str, Spec]:
    """Return every chart of the page by its name."""
    target = 1.0 - data.alpha
    looks = Looks([method.title for method in data.shown])
    found = {
        "front": common.front(looks, data.front, WIDTH),
        "coverage": common.method_coverage(looks, data.methods, target),
        "size": common.method_size(looks, data.methods, WIDTH),
        "tradeoff": common.tradeoff(looks, data.curve, _medians(data.methods), target, MEDIAN),
        "by-width": _by(looks, data.by_width, "fifth", "Fifth of the intervals, the narrowest first", target),
        "by-prediction": _by(looks, data.by_prediction, "prediction", "The model's best guess", target),
        "by-degree": _by(looks, data.by_degree, "degree", "Neighbours of the node", target),
        "widths": _widths(looks, data.widths, skewed=data.skewed),
        "curve": common.curve(looks, data.curve, MEDIAN),
        "gap": common.gap(looks, data.curve, MEDIAN, data.band),
        "line": number_line(looks, data.explorer, data.hops),
        "scores": score_distribution(looks, *data.explorer.score_range, mark="Target"),
    }
    if data.balls:
        size = replace(WIDTH, field="width")
        for place, title in zip(("map-left", "map-right"), looks.titles, strict=False):
            found[place] = neighbourhood_map(looks, data.balls, data.links, target, title, about=[TARGET], size=size)
        found["funnel"] = funnel(looks, data.balls, data.alpha, about=[TARGET])
    return found


def _medians(methods: list[Row]) -> list[Row]:
    """Return the rows of methods with the middle half of their widths in place of an interval of the mean."""
    return [row | {"size_low": row["median_width"], "size_high": row["median_width"]} for row in methods]


def _by(looks: Looks, rows: list[Row], field: str, title: str, target: float) -> Spec:
    columns = [(field, title.split(",")[0], None), ("nodes", "Nodes", ",d"), ("mean_width", "Mean width", FORM)]
    if field == "fifth":
        columns += [("from", "Widths from", None), ("to", "to", None)]
    return grouped(looks, rows, ordinal(rows, field, title), tips(*INTERVAL_TIPS, *columns, *CHANCE_TIPS), target)


def _widths(looks: Looks, rows: list[Row], *, skewed: bool) -> Spec:
    """Return the share of intervals that are at most so wide; where some are the whole line, it ends below 100 %."""
    scale = {"type": "log"} if skewed else {}
    ends = [row["width"] for row in rows] or [1.0]
    domain = [min(ends), max(ends)] if skewed else reach(rows, "width", include=ends[0])
    x = number("width", "Width of an interval", domain=domain, **scale)
    y = number("share", "Intervals at most so wide", form="%", domain=[0.0, 1.0])
    base = {"x": x, "y": y, "color": looks.colour}
    told = base | {"tooltip": tips(("method", "Method", None), ("width", "Width", FORM), ("share", "At most", ".1%"))}
    return looks.chart(
        300, [layer("line", base, strokeWidth=2, interpolate="step-after"), looks.dots(told, 14, opacity=0.6)], rows
    )


def line_rows(found: IntervalExplorer, hops: int) -> list[str]:
    """Return the lines of a node's number line, from the top."""
    informed = ["With evidence"] if found.sentences else []
    near = [f"Targets at hop {k}" for k in range(1, min(hops, LINE_HOPS) + 1)]
    return ["Interval", "Model", *informed, *near]


def number_line(looks: Looks, found: IntervalExplorer, hops: int) -> Spec:
    """Return the explorer's number line; the page fills in a node's interval, the model's word, and targets."""
    lines = line_rows(found, hops)
    y: Spec = {
        "field": "line",
        "type": "nominal",
        "title": None,
        "scale": {"domain": lines},
        "axis": {"labelLimit": 120},
    }
    x = number("from", "Target", nice=False)
    x["scale"]["domain"] = [{"expr": "low"}, {"expr": "high"}]
    told = tips(("line", "", None), ("text", "", None))
    colours = {"domain": ["covers", "misses", "model"], "range": ["var(--good)", "var(--bad)", "var(--muted)"]}
    colour = {"field": "kind", "type": "nominal", "legend": None, "scale": colours}
    spans = {"y": y, "x": x, "x2": {"field": "to"}, "color": colour, "tooltip": told}
    points = {"y": y, "x": x | {"field": "value"}, "tooltip": told}
    layers: list[Spec] = [
        {"data": {"name": "spans"}, "mark": {"type": "rule", "strokeWidth": 9, "clip": True}, "encoding": spans},
        {
            "data": {"name": "points"},
            "mark": {
                "type": "point",
                "filled": True,
                "size": 55,
                "opacity": 0.55,
                "color": "var(--hop-0)",
                "clip": True,
            },
            "encoding": points,
        },
        {
            "data": {"name": "truth"},
            "mark": {"type": "rule", "strokeDash": [4, 4], "strokeWidth": 2, "color": "var(--target)", "clip": True},
            "encoding": {"x": x | {"field": "value"}},
        },
    ]
    empty: Spec = {"datasets": {"spans": [], "points": [], "truth": []}}
    return looks.chart(34 * len(lines), layers, params={"low": 0, "high": 1}) | empty
