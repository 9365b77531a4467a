"""The charts of methods, groups and error rates, made from rows."""

from __future__ import annotations

from napsets.report.data import ReportData, Row
from napsets.report.encodings import (
    COLOUR,
    INTERVAL_TIPS,
    METHOD,
    NAMES,
    Spec,
    chart,
    coverage,
    dots,
    layer,
    number,
    reach,
    target_rule,
    tips,
)
from napsets.report.graph_charts import funnel, neighbourhood_map, score_distribution

__all__ = ["charts"]

#: Set sizes with fewer nodes are not drawn.
LEAST_NODES = 10
CURVE_TIPS = [
    ("method", "Method", None),
    ("alpha", "Alpha", ".3~f"),
    ("coverage", "Coverage", ".1%"),
    ("gap", "Minus target", "+.1%"),
    ("mean_size", "Mean size", ".2f"),
]


def charts(data: ReportData) -> dict[str, Spec]:
    """Return every chart of the page by its name."""
    target = 1.0 - data.alpha
    found = {
        "coverage": _method_coverage(data.methods, target),
        "size": _method_size(data.methods),
        "tradeoff": _tradeoff(data.curve, data.methods, target),
        "by-size": _by_size(data.by_size, target),
        "by-class": _by_class(data.by_class, target),
        "by-degree": _by_degree(data.by_degree, target),
        "sizes": _sizes(data.by_size),
        "curve": _curve(data.curve),
        "gap": _gap(data.curve),
        "scores": score_distribution(data.explorer),
    }
    if data.balls:
        found["map-left"] = neighbourhood_map(data.balls, data.links, target, NAMES[0])
        found["map-right"] = neighbourhood_map(data.balls, data.links, target, NAMES[1])
        found["funnel"] = funnel(data.balls, data.alpha)
    return found


def _method_coverage(rows: list[Row], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    base = {"y": METHOD | {"title": None}, "color": COLOUR, "tooltip": tips(*INTERVAL_TIPS)}
    bars = base | {"x": coverage("low", domain), "x2": {"field": "high"}}
    marks = base | {"x": coverage(domain=domain)}
    return chart(132, [target_rule(target, "x"), *_intervals(bars, marks, 110)], rows)


def _method_size(rows: list[Row]) -> Spec:
    domain = reach(rows, "size_low", "size_high", include=rows[0]["mean_size"])
    columns = [("method", "Method", None), ("mean_size", "Mean size", ".2f")]
    columns += [("size_low", "95 % from", ".2f"), ("size_high", "to", ".2f")]
    base = {"y": METHOD | {"title": None}, "color": COLOUR, "tooltip": tips(*columns)}
    bars = base | {"x": number("size_low", "Mean set size", domain=domain), "x2": {"field": "size_high"}}
    marks = base | {"x": number("mean_size", "Mean set size", domain=domain)}
    return chart(132, _intervals(bars, marks, 110), rows)


def _intervals(bars: Spec, marks: Spec, size: int) -> list[Spec]:
    return [layer("rule", bars, strokeWidth=2.5, opacity=0.45), dots(marks, size)]


def _tradeoff(curve: list[Row], methods: list[Row], target: float) -> Spec:
    domain = reach(curve, "coverage", include=target)
    x, y = number("mean_size", "Mean set size", domain=reach(curve, "mean_size", include=1.0)), coverage(domain=domain)
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("mean_size", "Mean size", ".2f")]
    base = {"x": x, "y": y, "color": COLOUR}
    told = base | {"tooltip": tips(*columns, ("coverage", "Coverage", ".1%"))}
    upright = base | {"y": coverage("low", domain), "y2": {"field": "high"}}
    level = base | {"x": x | {"field": "size_low"}, "x2": {"field": "size_high"}}
    layers = [
        target_rule(target, "y"),
        layer("line", base, strokeWidth=1.5, opacity=0.7),
        dots(told, 22),
        layer("rule", upright, rows=methods, strokeWidth=2),
        layer("rule", level, rows=methods, strokeWidth=2),
        dots(told, 130, rows=methods, stroke="var(--card)", strokeWidth=1.5),
    ]
    return chart(300, layers, curve)


def _by_size(rows: list[Row], target: float) -> Spec:
    # Empty sets never cover: a fact, not a finding. A handful of nodes tells nothing, and squeezes all others.
    rows = [row for row in rows if row["size"] > 0 and row["nodes"] >= LEAST_NODES]
    x: Spec = {"field": "size", "type": "ordinal", "title": "Labels in the set", "axis": {"labelAngle": 0}}
    return _grouped(rows, x, tips(*INTERVAL_TIPS, ("size", "Set size", "d"), ("nodes", "Nodes", ",d")), target)


def _by_degree(rows: list[Row], target: float) -> Spec:
    order = [row["degree"] for row in rows if row["method"] == NAMES[0]]
    x: Spec = {"field": "degree", "type": "ordinal", "sort": order, "title": "Neighbours of the node"}
    columns = [("degree", "Degree", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f")]
    return _grouped(rows, x | {"axis": {"labelAngle": 0}}, tips(*INTERVAL_TIPS, *columns), target)


def _grouped(rows: list[Row], x: Spec, told: list[Spec], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    base = {"x": x, "xOffset": METHOD | {"scale": {"paddingOuter": 0.4}}, "color": COLOUR, "tooltip": told}
    bars = base | {"y": coverage("low", domain), "y2": {"field": "high"}}
    return chart(300, [*_intervals(bars, base | {"y": coverage(domain=domain)}, 60), target_rule(target, "y")], rows)


def _by_class(rows: list[Row], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    names = {row["order"]: row["class"] for row in rows}
    columns = [("class", "Class", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f")]
    # Classes stand on the axis by number: a name in an expression or as a key would mean something there.
    axis = {"labelExpr": "names[datum.value]", "labelLimit": 130}
    y = {"field": "order", "type": "ordinal", "title": None, "axis": axis}
    beside = {"y": y, "yOffset": METHOD | {"scale": {"paddingOuter": 0.3}}}
    base = beside | {"color": COLOUR, "tooltip": tips(*INTERVAL_TIPS, *columns)}
    bars = base | {"x": coverage("low", domain), "x2": {"field": "high"}}
    layers = [*_intervals(bars, base | {"x": coverage(domain=domain)}, 50), target_rule(target, "x")]
    listed = [names.get(y, "") for y in range(max(names) + 1)]
    return chart(max(160, 38 * len(names)), layers, rows, params={"names": listed})


def _sizes(rows: list[Row]) -> Spec:
    columns = [
        ("method", "Method", None),
        ("size", "Set size", "d"),
        ("nodes", "Nodes", ",d"),
        ("share", "Share", ".1%"),
    ]
    encoding = {
        "x": {"field": "size", "type": "ordinal", "title": "Labels in the set", "axis": {"labelAngle": 0}},
        "xOffset": METHOD,
        "y": number("share", "Share of nodes", form="%", domain=[0.0, max(row["share"] for row in rows)], nice=True),
        "color": COLOUR,
        "tooltip": tips(*columns, ("share", "Share", ".1%")),
    }
    return chart(260, [layer("bar", encoding, cornerRadiusEnd=2)], rows)


def _curve(rows: list[Row]) -> Spec:
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = coverage("coverage", reach(rows, "coverage", include=0.5), title="Coverage found")
    ends = {"values": [{"target": share, "coverage": share} for share in (0.5, 0.99)]}
    diagonal = {"type": "line", "strokeDash": [4, 4], "color": "var(--target)", "strokeWidth": 1.5}
    base = {"x": x, "y": y, "color": COLOUR}
    layers = [
        {"data": ends, "mark": diagonal, "encoding": {"x": x, "y": y}},
        layer("line", base, strokeWidth=1.5),
        dots(base | {"tooltip": tips(*CURVE_TIPS)}, 34),
    ]
    return chart(300, layers, rows)


def _gap(rows: list[Row]) -> Spec:
    domain = reach(rows, "gap_low", "gap_high", include=0.0)
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = number("gap", "Found minus asked for", form="+.0%", domain=domain)
    base = {"x": x, "y": y, "color": COLOUR}
    layers = [
        target_rule(0.0, "y"),
        layer("area", base | {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}, opacity=0.12),
        layer("line", base, strokeWidth=1.5),
        dots(base | {"tooltip": tips(*CURVE_TIPS)}, 34),
    ]
    return chart(300, layers, rows)
