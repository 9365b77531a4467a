"""The charts of methods, groups and error rates, made from rows."""

from __future__ import annotations

from napsets.report.data import ReportData, Row
from napsets.report.encodings import INTERVAL_TIPS, Looks, Spec, coverage, layer, number, reach, target_rule, tips
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
    looks = Looks([method.title for method in data.shown])
    found = {
        "coverage": _method_coverage(looks, data.methods, target),
        "size": _method_size(looks, data.methods),
        "tradeoff": _tradeoff(looks, data.curve, data.methods, target),
        "by-size": _by_size(looks, data.by_size, target),
        "by-class": _by_class(looks, data.by_class, target),
        "by-degree": _by_degree(looks, data.by_degree, target),
        "sizes": _sizes(looks, data.by_size),
        "curve": _curve(looks, data.curve),
        "gap": _gap(looks, data.curve),
        "scores": score_distribution(looks, data.explorer),
    }
    if data.balls:
        for place, title in zip(("map-left", "map-right"), looks.titles, strict=False):
            found[place] = neighbourhood_map(looks, data.balls, data.links, target, title)
        found["funnel"] = funnel(looks, data.balls, data.alpha)
    return found


def _method_coverage(looks: Looks, rows: list[Row], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*INTERVAL_TIPS)}
    bars = base | {"x": coverage("low", domain), "x2": {"field": "high"}}
    marks = base | {"x": coverage(domain=domain)}
    return looks.chart(_lines(looks), [target_rule(target, "x"), *_intervals(looks, bars, marks, 110)], rows)


def _method_size(looks: Looks, rows: list[Row]) -> Spec:
    domain = reach(rows, "size_low", "size_high", include=rows[0]["mean_size"])
    columns = [("method", "Method", None), ("mean_size", "Mean size", ".2f")]
    columns += [("size_low", "95 % from", ".2f"), ("size_high", "to", ".2f")]
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*columns)}
    bars = base | {"x": number("size_low", "Mean set size", domain=domain), "x2": {"field": "size_high"}}
    marks = base | {"x": number("mean_size", "Mean set size", domain=domain)}
    return looks.chart(_lines(looks), _intervals(looks, bars, marks, 110), rows)


def _lines(looks: Looks, each: float = 33.0) -> int:
    """Return the height of a chart with a line a method."""
    return round(each * max(2, len(looks.titles)))


def _intervals(looks: Looks, bars: Spec, marks: Spec, size: int) -> list[Spec]:
    return [layer("rule", bars, strokeWidth=2.5, opacity=0.45), looks.dots(marks, size)]


def _tradeoff(looks: Looks, curve: list[Row], methods: list[Row], target: float) -> Spec:
    domain = reach(curve, "coverage", include=target)
    x, y = number("mean_size", "Mean set size", domain=reach(curve, "mean_size", include=1.0)), coverage(domain=domain)
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("mean_size", "Mean size", ".2f")]
    base = {"x": x, "y": y, "color": looks.colour}
    told = base | {"tooltip": tips(*columns, ("coverage", "Coverage", ".1%"))}
    upright = base | {"y": coverage("low", domain), "y2": {"field": "high"}}
    level = base | {"x": x | {"field": "size_low"}, "x2": {"field": "size_high"}}
    layers = [
        target_rule(target, "y"),
        layer("line", base, strokeWidth=1.5, opacity=0.7),
        looks.dots(told, 22),
        layer("rule", upright, rows=methods, strokeWidth=2),
        layer("rule", level, rows=methods, strokeWidth=2),
        looks.dots(told, 130, rows=methods, stroke="var(--card)", strokeWidth=1.5),
    ]
    return looks.chart(300, layers, curve)


def _by_size(looks: Looks, rows: list[Row], target: float) -> Spec:
    # Empty sets never cover: a fact, not a finding. A handful of nodes tells nothing, and squeezes all others.
    rows = [row for row in rows if row["size"] > 0 and row["nodes"] >= LEAST_NODES]
    x: Spec = {"field": "size", "type": "ordinal", "title": "Labels in the set", "axis": {"labelAngle": 0}}
    return _grouped(looks, rows, x, tips(*INTERVAL_TIPS, ("size", "Set size", "d"), ("nodes", "Nodes", ",d")), target)


def _by_degree(looks: Looks, rows: list[Row], target: float) -> Spec:
    order = [degree for _, degree in sorted({(row["order"], row["degree"]) for row in rows})]
    x: Spec = {"field": "degree", "type": "ordinal", "sort": order, "title": "Neighbours of the node"}
    columns = [("degree", "Degree", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f")]
    return _grouped(looks, rows, x | {"axis": {"labelAngle": 0}}, tips(*INTERVAL_TIPS, *columns), target)


def _grouped(looks: Looks, rows: list[Row], x: Spec, told: list[Spec], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    base = {"x": x, "xOffset": looks.method | {"scale": {"paddingOuter": 0.4}}, "color": looks.colour, "tooltip": told}
    bars = base | {"y": coverage("low", domain), "y2": {"field": "high"}}
    return looks.chart(
        300, [*_intervals(looks, bars, base | {"y": coverage(domain=domain)}, 60), target_rule(target, "y")], rows
    )


def _by_class(looks: Looks, rows: list[Row], target: float) -> Spec:
    domain = reach(rows, "low", "high", include=target)
    names = {row["order"]: row["class"] for row in rows}
    columns = [("class", "Class", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f")]
    # Classes stand on the axis by number: a name in an expression or as a key would mean something there.
    axis = {"labelExpr": "names[datum.value]", "labelLimit": 130}
    y = {"field": "order", "type": "ordinal", "title": None, "axis": axis}
    beside = {"y": y, "yOffset": looks.method | {"scale": {"paddingOuter": 0.3}}}
    base = beside | {"color": looks.colour, "tooltip": tips(*INTERVAL_TIPS, *columns)}
    bars = base | {"x": coverage("low", domain), "x2": {"field": "high"}}
    layers = [*_intervals(looks, bars, base | {"x": coverage(domain=domain)}, 50), target_rule(target, "x")]
    listed = [names.get(y, "") for y in range(max(names) + 1)]
    return looks.chart(max(160, _lines(looks, 9.5) * len(names)), layers, rows, params={"names": listed})


def _sizes(looks: Looks, rows: list[Row]) -> Spec:
    columns = [
        ("method", "Method", None),
        ("size", "Set size", "d"),
        ("nodes", "Nodes", ",d"),
        ("share", "Share", ".1%"),
    ]
    encoding = {
        "x": {"field": "size", "type": "ordinal", "title": "Labels in the set", "axis": {"labelAngle": 0}},
        "xOffset": looks.method,
        "y": number("share", "Share of nodes", form="%", domain=[0.0, max(row["share"] for row in rows)], nice=True),
        "color": looks.colour,
        "tooltip": tips(*columns, ("share", "Share", ".1%")),
    }
    return looks.chart(260, [layer("bar", encoding, cornerRadiusEnd=2)], rows)


def _curve(looks: Looks, rows: list[Row]) -> Spec:
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = coverage("coverage", reach(rows, "coverage", include=0.5), title="Coverage found")
    ends = {"values": [{"target": share, "coverage": share} for share in (0.5, 0.99)]}
    diagonal = {"type": "line", "strokeDash": [4, 4], "color": "var(--target)", "strokeWidth": 1.5}
    base = {"x": x, "y": y, "color": looks.colour}
    layers = [
        {"data": ends, "mark": diagonal, "encoding": {"x": x, "y": y}},
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": tips(*CURVE_TIPS)}, 34),
    ]
    return looks.chart(300, layers, rows)


def _gap(looks: Looks, rows: list[Row]) -> Spec:
    domain = reach(rows, "gap_low", "gap_high", include=0.0)
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = number("gap", "Found minus asked for", form="+.0%", domain=domain)
    base = {"x": x, "y": y, "color": looks.colour}
    layers = [
        target_rule(0.0, "y"),
        layer("area", base | {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}, opacity=0.12),
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": tips(*CURVE_TIPS)}, 34),
    ]
    return looks.chart(300, layers, rows)
