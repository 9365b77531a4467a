"""The charts of methods, groups and error rates, made from rows."""

from __future__ import annotations

import math
from bisect import bisect_right

from napsets.report.data import ReportData
from napsets.report.encodings import (
    INTERVAL_TIPS,
    LOOKS,
    Looks,
    Spec,
    coverage,
    layer,
    number,
    reach,
    target_rule,
    tips,
)
from napsets.report.graph_charts import funnel, neighbourhood_map, score_distribution
from napsets.report.rows import Row, chance_band, wilson

__all__ = ["FIRST_CLASSES", "charts", "size_groups"]

#: Set sizes with fewer nodes are not drawn.
LEAST_NODES = 10
#: Classes that are drawn at first, and set sizes that have a place of their own where classes are many.
FIRST_CLASSES, MOST_SIZES = 20, 12
#: Marks that a chart of classes has room for, each on a line of its own; more of them stand closer together.
SPREAD_MARKS = 60
CHANCE_TIPS = [("chance_low", "By chance from", ".1%"), ("chance_high", "By chance to", ".1%")]
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
    sizes = size_groups(data.by_size, len(data.class_names), target)
    found = {
        "front": _front(looks, data.front),
        "coverage": _method_coverage(looks, data.methods, target),
        "size": _method_size(looks, data.methods),
        "tradeoff": _tradeoff(looks, data.curve, data.methods, target),
        "by-size": _by_size(looks, sizes, target),
        "by-class": _by_class(looks, data.by_class, target),
        "by-degree": _by_degree(looks, data.by_degree, target),
        "sizes": _sizes(looks, sizes),
        "curve": _curve(looks, data.curve),
        "gap": _gap(looks, data.curve),
        "scores": score_distribution(looks, data.explorer),
    }
    if data.balls:
        for place, title in zip(("map-left", "map-right"), looks.titles, strict=False):
            found[place] = neighbourhood_map(looks, data.balls, data.links, target, title)
        found["funnel"] = funnel(looks, data.balls, data.alpha)
    return found


def size_groups(rows: list[Row], num_classes: int, target: float) -> list[Row]:
    """Return rows of set sizes, ranges of them where classes are many, with where chance would put coverage.

    Full sets keep a place of their own: they say nothing.
    """
    starts = _size_starts(num_classes)
    found: dict[tuple[str, int], Row] = {}
    for row in rows:
        g = bisect_right(starts, row["size"]) - 1
        last = starts[g + 1] - 1 if g + 1 < len(starts) else num_classes
        name = str(starts[g]) if last == starts[g] else f"{starts[g]}–{last}"
        new = {"method": row["method"], "sizes": name, "order": g, "size": starts[g], "nodes": 0, "share": 0.0}
        group = found.setdefault((row["method"], g), new | {"hits": 0.0})
        group["nodes"] += row["nodes"]
        group["share"] += row["share"]
        group["hits"] += row["nodes"] * row["coverage"] if row["nodes"] else 0.0
    for row in found.values():
        count, hits = row["nodes"], row.pop("hits")
        low, high = wilson(hits, count)
        chance = chance_band(count, target) if count else (math.nan, math.nan)
        row |= {"coverage": hits / count if count else math.nan, "low": low, "high": high}
        row |= {"chance_low": chance[0], "chance_high": chance[1]}
    return list(found.values())


def _size_starts(num_classes: int) -> list[int]:
    """Return where ranges of set sizes start: each size by itself, or ever wider ranges."""
    if num_classes <= MOST_SIZES:
        return list(range(num_classes + 1))
    starts = list(range(6))
    while starts[-1] < num_classes:
        starts.append(min(num_classes, starts[-1] + max(1, starts[-1] // 2)))
    return starts


def _front(looks: Looks, rows: list[Row]) -> Spec:
    """Return size against gap: the further left and down, the better; below the dashed line is chance."""
    chance = rows[0]["chance"]
    rows = [row for row in rows if not math.isnan(row["gap"])]
    wide = reach(rows, "size_low", "size_high", include=1.0)
    x = number("mean_size", "Labels in a set (fewer is better)", domain=wide)
    domain = [0.0, reach(rows, "gap_high", "gap", include=0.0)[1]]
    y = number("gap", "Coverage off the target (less is more even)", form=".1%", domain=domain)
    columns = [
        ("method", "Method", None), ("mean_size", "Labels in a set", ".2f"), ("gap", "Off the target", ".1%"),
        ("gap_low", "95 % from", ".1%"), ("gap_high", "to", ".1%"), ("chance", "By chance", ".1%"),
        ("coverage", "Coverage", ".1%"),
    ]  # fmt: skip
    base = {"x": x, "y": y, "color": looks.colour, "tooltip": tips(*columns)}
    upright = base | {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}
    level = base | {"x": x | {"field": "size_low"}, "x2": {"field": "size_high"}}
    ring = {"type": "point", "filled": False, "size": 420, "strokeWidth": 2, "color": "var(--ink)"}
    taken: Spec = {
        "transform": [{"filter": "datum.taken && indexof(shown, datum.method) >= 0"}],
        "mark": ring,
        "encoding": {"x": x, "y": y},
    }
    # Names stand towards the middle, and of many methods only those that the verdict is about are named.
    named = {"x": x, "y": y, "text": {"field": "method"}, "color": looks.colour}
    told = [row for row in rows if len(rows) <= LOOKS or row["taken"] or row is rows[0]]
    right = [row for row in told if row["mean_size"] > 0.5 * (wide[0] + wide[1])]
    left = [row for row in told if row not in right]
    text = {"dy": -10, "fontSize": 12, "fontWeight": 600}
    layers = [
        target_rule(chance, "y"),
        layer("rule", upright, strokeWidth=1.5, opacity=0.35),
        layer("rule", level, strokeWidth=1.5, opacity=0.35),
        taken,
        looks.dots(base, 120),
        layer("text", named, rows=left, dx=10, align="left", **text),
        layer("text", named, rows=right, dx=-10, align="right", **text),
    ]
    return looks.chart(300, layers, rows)


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
    told = tips(*INTERVAL_TIPS, ("sizes", "Set size", None), ("nodes", "Nodes", ",d"), *CHANCE_TIPS)
    return _grouped(looks, rows, _set_sizes(rows), told, target)


def _set_sizes(rows: list[Row]) -> Spec:
    order = [name for _, name in sorted({(row["order"], row["sizes"]) for row in rows})]
    axis = {"labelAngle": 0}
    return {"field": "sizes", "type": "ordinal", "sort": order, "title": "Labels in the set", "axis": axis}


def _by_degree(looks: Looks, rows: list[Row], target: float) -> Spec:
    order = [degree for _, degree in sorted({(row["order"], row["degree"]) for row in rows})]
    x: Spec = {"field": "degree", "type": "ordinal", "sort": order, "title": "Neighbours of the node"}
    columns = [("degree", "Degree", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f"), *CHANCE_TIPS]
    return _grouped(looks, rows, x | {"axis": {"labelAngle": 0}}, tips(*INTERVAL_TIPS, *columns), target)


def _grouped(looks: Looks, rows: list[Row], x: Spec, told: list[Spec], target: float) -> Spec:
    domain = reach(rows, "coverage", "chance_low", "chance_high", include=target)
    place = {"x": x, "xOffset": looks.method | {"scale": {"paddingOuter": 0.4}}}
    base = place | {"color": looks.colour, "tooltip": told, "y": coverage(domain=domain)}
    # Of sets by size, groups differ between methods: each mark has its own band.
    bands = place | {"y": coverage("chance_low", domain), "y2": {"field": "chance_high"}, "tooltip": told}
    band = layer("rule", bands, color="var(--band)", strokeWidth=11)
    return looks.chart(300, [band, target_rule(target, "y"), looks.dots(base, 60)], rows)


def _by_class(looks: Looks, rows: list[Row], target: float) -> Spec:
    domain = reach(rows, "coverage", "chance_low", "chance_high", include=target)
    names = {row["order"]: row["class"] for row in rows}
    columns = [("class", "Class", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f"), *CHANCE_TIPS]
    # Classes stand on the axis by number: a name in an expression or as a key would mean something there.
    axis = {"labelExpr": "names[datum.value]", "labelLimit": 130}
    y: Spec = {"field": "order", "type": "ordinal", "title": None, "axis": axis}
    spread = len(looks.titles) * min(len(names), FIRST_CLASSES) <= SPREAD_MARKS
    step = max(22.0, 9.5 * len(looks.titles)) if spread else 22.0
    beside = {"y": y, "yOffset": looks.method | {"scale": {"paddingOuter": 0.3}}}
    base = beside | {"x": coverage(domain=domain), "color": looks.colour, "tooltip": tips(*INTERVAL_TIPS, *columns)}
    first = [row for row in rows if row["method"] == looks.titles[0]]
    band: Spec = {
        "data": {"values": [{name: row[name] for name in ("order", "chance_low", "chance_high")} for row in first]},
        "transform": [{"filter": "datum.order < limit"}],
        "mark": {"type": "rule", "color": "var(--band)", "strokeWidth": 0.9 * step},
        "encoding": {"y": y, "x": coverage("chance_low", domain), "x2": {"field": "chance_high"}},
    }
    marks = looks.dots(base, 50)
    marks["transform"] = [*marks["transform"], {"filter": "datum.order < limit"}]
    listed = [names.get(c, "") for c in range(max(names) + 1)]
    params = {"names": listed, "limit": FIRST_CLASSES}
    height = max(120, round(step * min(len(names), FIRST_CLASSES)))
    return looks.chart(height, [band, target_rule(target, "x"), marks], rows, params=params)


def _sizes(looks: Looks, rows: list[Row]) -> Spec:
    columns = [("method", "Method", None), ("sizes", "Set size", None), ("nodes", "Nodes", ",d")]
    encoding = {
        "x": _set_sizes(rows),
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
