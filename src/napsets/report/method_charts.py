"""The charts of methods and error rates that pages about sets and about intervals share, made from rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from napsets.report.rows import Row

__all__ = ["CHANCE_TIPS", "Measure", "curve", "front", "gap", "grouped", "method_coverage", "method_size", "ordinal"]
__all__ += ["tradeoff"]

#: Points are near where their names would meet, as shares of the width and the height of a chart.
_NEAR = (0.3, 0.06)
#: Where a name stands beside its point, in pixels: the first place that no near one has.
_HEIGHTS = (-10, 18, -24, 32)

CHANCE_TIPS = [("chance_low", "By chance from", ".1%"), ("chance_high", "By chance to", ".1%")]


@dataclass(frozen=True)
class Measure:
    """How large what a method makes is: the column of the rows, what it is called, and how it is written.

    Attributes
    ----------
    field : str
        The column.
    name, mean, title, better : str
        In the tooltip of the front, in other tooltips, on an axis, and on an axis where less is better.
    form : str
        Format of the number.
    include : float or None
        What an axis shows in any case; None for nothing.
    """

    field: str
    name: str
    mean: str
    title: str
    better: str
    form: str
    include: float | None = None

    def reach(self, rows: list[Row], *fields: str, include: float | None = None) -> list[float]:
        """Return the range of an axis."""
        known = [row for row in rows if math.isfinite(row[self.field])]
        first = include if include is not None else known[0][self.field] if known else 0.0
        return reach(known, *fields, include=first)


def front(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return size against gap: the further left and down, the better; below the dashed line is chance."""
    chance = rows[0]["chance"]
    rows = [row for row in rows if not math.isnan(row["gap"]) and math.isfinite(row[size.field])]
    wide = size.reach(rows, "size_low", "size_high", include=size.include)
    x = number(size.field, size.better, domain=wide)
    domain = [0.0, reach(rows, "gap_high", "gap", include=0.0)[1]]
    y = number("gap", "Coverage off the target (less is more even)", form=".1%", domain=domain)
    columns = [
        ("method", "Method", None), (size.field, size.name, size.form), ("gap", "Off the target", ".1%"),
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
    right = [row for row in told if row[size.field] > 0.5 * (wide[0] + wide[1])]
    left = [row for row in told if row not in right]
    text = {"fontSize": 12, "fontWeight": 600}
    heights = dict(zip((row["method"] for row in told), _heights(told, size.field, wide, domain), strict=True))
    names = [
        layer("text", named, rows=some, dx=dx, dy=dy, align=align, **text)
        for side, dx, align in ((left, 10, "left"), (right, -10, "right"))
        for dy in sorted({heights[row["method"]] for row in side})
        if (some := [row for row in side if heights[row["method"]] == dy])
    ]
    layers = [
        target_rule(chance, "y"),
        layer("rule", upright, strokeWidth=1.5, opacity=0.35),
        layer("rule", level, strokeWidth=1.5, opacity=0.35),
        taken,
        looks.dots(base, 120),
        *names,
    ]
    return looks.chart(300, layers, rows)


def _heights(rows: list[Row], field: str, wide: Sequence[float], high: Sequence[float]) -> list[int]:
    """Return how far above its point (below, if positive) each name stands, so that those of near points are apart."""
    spots = [((row[field] - wide[0]) / (wide[1] - wide[0]), row["gap"] / high[1]) for row in rows]
    found: list[int] = []
    for here, (x, y) in enumerate(spots):
        near = [abs(x - left) < _NEAR[0] and abs(y - up) < _NEAR[1] for left, up in spots[:here]]
        free = [dy for dy in _HEIGHTS if dy not in {dy for dy, close in zip(found, near, strict=True) if close}]
        found.append(free[0] if free else _HEIGHTS[-1])
    return found


def method_coverage(looks: Looks, rows: list[Row], target: float) -> Spec:
    """Return the coverage of each method, with its interval."""
    domain = reach(rows, "low", "high", include=target)
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*INTERVAL_TIPS)}
    bars = base | {"x": coverage("low", domain), "x2": {"field": "high"}}
    marks = base | {"x": coverage(domain=domain)}
    return looks.chart(_lines(looks), [target_rule(target, "x"), *_intervals(looks, bars, marks, 110)], rows)


def method_size(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return the mean size of each method, with its interval."""
    domain = size.reach(rows, "size_low", "size_high")
    columns = [("method", "Method", None), (size.field, size.mean, size.form)]
    columns += [("size_low", "95 % from", size.form), ("size_high", "to", size.form)]
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*columns)}
    bars = base | {"x": number("size_low", size.title, domain=domain), "x2": {"field": "size_high"}}
    marks = base | {"x": number(size.field, size.title, domain=domain)}
    return looks.chart(_lines(looks), _intervals(looks, bars, marks, 110), rows)


def _lines(looks: Looks, each: float = 33.0) -> int:
    """Return the height of a chart with a line a method."""
    return round(each * max(2, len(looks.titles)))


def _intervals(looks: Looks, bars: Spec, marks: Spec, size: int) -> list[Spec]:
    return [layer("rule", bars, strokeWidth=2.5, opacity=0.45), looks.dots(marks, size)]


def tradeoff(looks: Looks, curve: list[Row], methods: list[Row], target: float, size: Measure) -> Spec:
    """Return coverage against size over error rates, and at the one asked for with intervals."""
    domain = reach(curve, "coverage", include=target)
    curve = [row for row in curve if math.isfinite(row[size.field])]
    wide = size.reach(curve, size.field, include=size.include)
    x, y = number(size.field, size.title, domain=wide), coverage(domain=domain)
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), (size.field, size.mean, size.form)]
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


def ordinal(rows: list[Row], field: str, title: str) -> Spec:
    """Return the encoding of groups in their order, along a chart."""
    order = [name for _, name in sorted({(row["order"], row[field]) for row in rows})]
    return {"field": field, "type": "ordinal", "sort": order, "title": title, "axis": {"labelAngle": 0}}


def grouped(looks: Looks, rows: list[Row], x: Spec, told: list[Spec], target: float) -> Spec:
    """Return coverage in groups, each mark over the band of chance of its group."""
    domain = reach(rows, "coverage", "chance_low", "chance_high", include=target)
    place = {"x": x, "xOffset": looks.method | {"scale": {"paddingOuter": 0.4}}}
    base = place | {"color": looks.colour, "tooltip": told, "y": coverage(domain=domain)}
    # Of sets by size, groups differ between methods: each mark has its own band.
    bands = place | {"y": coverage("chance_low", domain), "y2": {"field": "chance_high"}, "tooltip": told}
    band = layer("rule", bands, color="var(--band)", strokeWidth=11)
    return looks.chart(300, [band, target_rule(target, "y"), looks.dots(base, 60)], rows)


def curve(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return coverage found against coverage asked for."""
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = coverage("coverage", reach(rows, "coverage", include=0.5), title="Coverage found")
    ends = {"values": [{"target": share, "coverage": share} for share in (0.5, 0.99)]}
    diagonal = {"type": "line", "strokeDash": [4, 4], "color": "var(--target)", "strokeWidth": 1.5}
    base = {"x": x, "y": y, "color": looks.colour}
    layers = [
        {"data": ends, "mark": diagonal, "encoding": {"x": x, "y": y}},
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": _curve_tips(size)}, 34),
    ]
    return looks.chart(300, layers, rows)


def gap(looks: Looks, rows: list[Row], size: Measure, band: list[Row] | None = None) -> Spec:
    """Return coverage found less coverage asked for, over a band of chance where one is given."""
    domain = reach([*rows, *(band or [])], "gap_low", "gap_high", include=0.0)
    x = coverage("target", [0.49, 1.0], title="Coverage asked for, 1 − alpha")
    y = number("gap", "Found minus asked for", form="+.0%", domain=domain)
    base = {"x": x, "y": y, "color": looks.colour}
    ends = {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}
    shade: Spec = {
        "data": {"values": band},
        "mark": {"type": "area", "color": "var(--band)"},
        "encoding": {"x": x} | ends,
    }
    layers = [
        *([] if band is None else [shade]),
        target_rule(0.0, "y"),
        layer("area", base | ends, opacity=0.12),
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": _curve_tips(size)}, 34),
    ]
    return looks.chart(300, layers, rows)


def _curve_tips(size: Measure) -> list[Spec]:
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("coverage", "Coverage", ".1%")]
    return tips(*columns, ("gap", "Minus target", "+.1%"), (size.field, size.mean, size.form))
