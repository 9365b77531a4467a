"""The charts of a page about sets, made from rows."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace

from napsets.report import method_charts as common
from napsets.report.data import ReportData
from napsets.report.encodings import INTERVAL_TIPS, Looks, Spec, coverage, layer, number, reach, target_rule, tips
from napsets.report.graph_charts import funnel, neighbourhood_map, score_distribution
from napsets.report.method_charts import CHANCE_TIPS, Measure, grouped, ordinal
from napsets.report.rows import Row, chance_band, wilson

__all__ = ["FIRST_CLASSES", "charts", "size_groups"]

#: Set sizes with fewer nodes are not drawn.
LEAST_NODES = 10
#: Classes that are drawn at first, and set sizes that have a place of their own where classes are many.
FIRST_CLASSES, MOST_SIZES = 20, 12
#: Marks that a chart of classes has room for, each on a line of its own; more of them stand closer together.
SPREAD_MARKS = 60

FEWER = "Labels in a set (fewer is better)"
SIZE = Measure("mean_size", "Labels in a set", "Mean size", "Mean set size", FEWER, ".2f", 1.0)
#: The size in a neighbourhood, and what else is said of one.
IN_BALL = replace(SIZE, field="size")
MOSTLY = ("class", "Mostly", None)


def charts(data: ReportData) -> dict[str, Spec]:
    """Return every chart of the page by its name."""
    target = 1.0 - data.alpha
    looks = Looks([method.title for method in data.shown])
    sizes = size_groups(data.by_size, len(data.class_names), target)
    found = {
        "front": common.front(looks, data.front, SIZE),
        "coverage": common.method_coverage(looks, data.methods, target),
        "size": common.method_size(looks, data.methods, SIZE),
        "tradeoff": common.tradeoff(looks, data.curve, data.methods, target, SIZE),
        "by-size": _by_size(looks, sizes, target),
        "by-class": _by_class(looks, data.by_class, target),
        "by-degree": _by_degree(looks, data.by_degree, target),
        "sizes": _sizes(looks, sizes),
        "curve": common.curve(looks, data.curve, SIZE),
        "gap": common.gap(looks, data.curve, SIZE),
        "scores": score_distribution(looks, *data.explorer.score_range, mark="Label"),
    }
    if data.balls:
        for place, title in zip(("map-left", "map-right"), looks.titles, strict=False):
            found[place] = neighbourhood_map(
                looks,
                data.balls,
                data.links,
                target,
                title,
                about=[MOSTLY, ("class_share", "of it", ".0%")],
                size=IN_BALL,
            )
        found["funnel"] = funnel(looks, data.balls, data.alpha, about=[MOSTLY])
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


def _by_size(looks: Looks, rows: list[Row], target: float) -> Spec:
    # Empty sets never cover: a fact, not a finding. A handful of nodes tells nothing, and squeezes all others.
    rows = [row for row in rows if row["size"] > 0 and row["nodes"] >= LEAST_NODES]
    told = tips(*INTERVAL_TIPS, ("sizes", "Set size", None), ("nodes", "Nodes", ",d"), *CHANCE_TIPS)
    return grouped(looks, rows, ordinal(rows, "sizes", "Labels in the set"), told, target)


def _by_degree(looks: Looks, rows: list[Row], target: float) -> Spec:
    columns = [("degree", "Degree", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f"), *CHANCE_TIPS]
    x = ordinal(rows, "degree", "Neighbours of the node")
    return grouped(looks, rows, x, tips(*INTERVAL_TIPS, *columns), target)


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
        "x": ordinal(rows, "sizes", "Labels in the set"),
        "xOffset": looks.method,
        "y": number("share", "Share of nodes", form="%", domain=[0.0, max(row["share"] for row in rows)], nice=True),
        "color": looks.colour,
        "tooltip": tips(*columns, ("share", "Share", ".1%")),
    }
    return looks.chart(260, [layer("bar", encoding, cornerRadiusEnd=2)], rows)
