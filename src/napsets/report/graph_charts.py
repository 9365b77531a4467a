"""The charts that need the graph: the map of neighbourhoods, the funnel beside it, and a node's scores."""

from __future__ import annotations

import math

from napsets.report.chart_data import Row
from napsets.report.encodings import Columns, Looks, Measure, Spec, coverage, number, reach, target_rule, tips

__all__ = ["funnel", "map_chart", "score_distribution"]

#: Coverage minus target, where the colours of the map change.
STEPS = [-0.1, -0.05, -0.02, 0.02, 0.05]
#: Hops that have a colour of their own in a node's scores.
HOP_COLOURS = 7


def map_chart(
    looks: Looks, balls: list[Row], links: list[Row], target: float, method: str, about: Columns, size: Measure
) -> Spec:
    """Return the map of neighbourhoods for one method; the page may change the parameters `method` and `picked`.

    Tooltips show the columns `about` and the mean size, whose field is the word behind a method in the rows.
    """
    x, y = ({"field": axis, "type": "quantitative", "axis": None, "scale": {"domain": [-0.04, 1.04]}} for axis in "xy")
    lines = [
        {
            "x": balls[link["source"]]["x"],
            "y": balls[link["source"]]["y"],
            "x2": balls[link["target"]]["x"],
            "y2": balls[link["target"]]["y"],
        }
        for link in links
    ]
    now = [
        {"calculate": "datum[method]", "as": "covered"},
        {"calculate": f"datum[method + ' {size.field}']", "as": "size"},
        {"calculate": f"datum.covered - {target!r}", "as": "gap"},
    ]
    colours = [f"var(--step-{i})" for i in range(len(STEPS) + 1)]
    columns = [("nodes", "Nodes", ",d"), *about]
    circles = {
        "x": x,
        "y": y,
        "size": {
            "field": "nodes",
            "type": "quantitative",
            "legend": None,
            "scale": {"domainMin": 0, "range": [0, 4600]},
        },
        "fill": {
            "field": "gap",
            "type": "quantitative",
            "legend": None,
            "scale": {"type": "threshold", "domain": STEPS, "range": colours},
        },
        "stroke": {"condition": {"test": "datum.ball === picked", "value": "var(--ink)"}, "value": "var(--card)"},
        "opacity": {"condition": {"test": "!datum.judged", "value": 0.55}, "value": 1},
        "tooltip": tips(*columns, ("covered", "Coverage", ".1%"), ("size", size.mean, size.form)),
    }
    layers: list[Spec] = [
        {
            "data": {"values": lines},
            "mark": {"type": "rule", "color": "var(--line)", "strokeWidth": 1},
            "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
        },
        {"transform": now, "mark": {"type": "circle", "strokeWidth": 1.5, "cursor": "pointer"}, "encoding": circles},
    ]
    return looks.chart(330, layers, balls, params={"method": method, "picked": -1})


def funnel(looks: Looks, balls: list[Row], alpha: float, about: Columns) -> Spec:
    """Return coverage against size of the neighbourhoods, over the band where chance alone would put 95 % of them."""
    target = 1.0 - alpha
    smallest, largest = (float(end([ball["nodes"] for ball in balls])) for end in (min, max))
    sizes = [smallest * (largest / smallest) ** (i / 60) for i in range(61)]
    half = [1.96 * math.sqrt(alpha * target / size) for size in sizes]
    band = [
        {"nodes": size, "low": max(0.0, target - h), "high": min(1.0, target + h)}
        for size, h in zip(sizes, half, strict=True)
    ]
    rows = [
        {"method": name, "coverage": ball[name], "nodes": ball["nodes"]} | {field: ball[field] for field, *_ in about}
        for ball in balls
        for name in looks.titles
    ]
    low, high = reach(rows, "coverage", include=target)
    domain = [min(low, band[0]["low"]), max(high, band[0]["high"])]
    x = number("nodes", "Nodes in the neighbourhood", form="~s", domain=[0.9 * smallest, 1.1 * largest], type="log")
    x["axis"]["grid"] = False
    columns = [("method", "Method", None), ("coverage", "Coverage", ".1%"), ("nodes", "Nodes", ",d")]
    base = {
        "x": x,
        "y": coverage(domain=domain),
        "color": looks.colour,
        "tooltip": tips(*columns, *about),
    }
    layers: list[Spec] = [
        {
            "data": {"values": band},
            "mark": {"type": "area", "color": "var(--band)", "opacity": 1},
            "encoding": {"x": x, "y": coverage("low", domain), "y2": {"field": "high"}},
        },
        target_rule(target, "y"),
        looks.dots(base, 55),
    ]
    return looks.chart(330, layers, rows)


def score_distribution(looks: Looks, low: float, high: float, *, mark: str) -> Spec:
    """Return the explorer's chart of scores; the page fills in a node's bars, marks and threshold."""
    x = number("from", "Score", domain=[low, high], nice=False, padding=6)
    x["axis"]["offset"] = 10
    y = number("mass", "Weight of calibration nodes", domainMin=0, domainMax={"expr": "top"}, nice=True)
    groups = [*(f"hop {k}" for k in range(1, HOP_COLOURS + 1)), "later hops", "all calibration nodes"]
    colours = {"domain": groups, "range": [f"var(--hop-{k})" for k in range(len(groups))]}
    columns = [("group", "At", None), ("from", "Score from", ".3f"), ("to", "to", ".3f")]
    bars = {
        "x": x | {"bin": {"binned": True}},
        "x2": {"field": "to"},
        "y": y,
        "color": {"field": "group", "type": "nominal", "legend": None, "scale": colours},
        "order": {"field": "group"},
        "tooltip": tips(*columns, ("count", "Nodes", ",d"), ("mass", "Weight", ".2f")),
    }
    labels = {
        "x": {"field": "score", "type": "quantitative"},
        "y": {"datum": 0},
        "color": {"condition": {"test": "datum.inside", "value": "var(--good)"}, "value": "var(--muted)"},
        "tooltip": tips(("name", mark, None), ("score", "Score", ".4f"), ("verdict", "", None)),
    }
    triangle = {"type": "point", "shape": "triangle-up", "filled": True, "size": 70, "yOffset": 7, "clip": False}
    rule = {"type": "rule", "color": "var(--target)", "strokeWidth": 2}
    layers: list[Spec] = [
        {"data": {"name": "bars"}, "mark": {"type": "bar", "binSpacing": 1, "clip": True}, "encoding": bars},
        {"data": {"name": "labels"}, "mark": triangle, "encoding": labels},
        {
            "data": {"name": "threshold"},
            "mark": rule,
            "encoding": {"x": {"field": "threshold", "type": "quantitative"}},
        },
    ]
    return looks.chart(260, layers, params={"top": 1}) | {"datasets": {"bars": [], "labels": [], "threshold": []}}
