"""All charts of a page (`charts`): methods and error rates, the map of neighbourhoods, and a node's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from napsets.report.chart_parts import (
    INTERVAL_TIPS,
    Columns,
    Looks,
    Measure,
    Row,
    Spec,
    coverage,
    drawn,
    layer,
    number_axis,
    reach,
    target_rule,
    tips,
)
from napsets.report.data import ReportData

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
    ends = [(balls[link["source"]], balls[link["target"]]) for link in links]
    lines = [{"x": start["x"], "y": start["y"], "x2": end["x"], "y2": end["y"]} for start, end in ends]
    now = [
        {"calculate": "datum[method]", "as": "covered"},
        {"calculate": f"datum[method + ' {size.field}']", "as": "size"},
        {"calculate": f"datum.covered - {target!r}", "as": "gap"},
    ]
    colours = [f"var(--step-{i})" for i in range(len(STEPS) + 1)]
    columns = [("nodes", "Nodes", ",d"), *about]
    area, steps = {"domainMin": 0, "range": [0, 4600]}, {"type": "threshold", "domain": STEPS, "range": colours}
    circles = {
        "x": x,
        "y": y,
        "size": {"field": "nodes", "type": "quantitative", "legend": None, "scale": area},
        "fill": {"field": "gap", "type": "quantitative", "legend": None, "scale": steps},
        "stroke": {"condition": {"test": "datum.ball === picked", "value": "var(--ink)"}, "value": "var(--card)"},
        "opacity": {"condition": {"test": "!datum.judged", "value": 0.55}, "value": 1},
        "tooltip": tips(*columns, ("covered", "Coverage", ".1%"), ("size", size.mean, size.form)),
    }
    spans = {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    layers: list[Spec] = [
        drawn("rule", spans, lines, color="var(--line)", strokeWidth=1),
        {"transform": now} | drawn("circle", circles, strokeWidth=1.5, cursor="pointer"),
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
    x = number_axis(
        "nodes", "Nodes in the neighbourhood", form="~s", domain=[0.9 * smallest, 1.1 * largest], type="log"
    )
    x["axis"]["grid"] = False
    columns = [("method", "Method", None), ("coverage", "Coverage", ".1%"), ("nodes", "Nodes", ",d")]
    base = {"x": x, "y": coverage(domain=domain), "color": looks.colour, "tooltip": tips(*columns, *about)}
    ends = {"x": x, "y": coverage("low", domain), "y2": {"field": "high"}}
    layers = [
        drawn("area", ends, band, color="var(--band)", opacity=1),
        target_rule(target, "y"),
        looks.dots(base, 55),
    ]
    return looks.chart(330, layers, rows)


def score_distribution(looks: Looks, low: float, high: float, *, mark: str) -> Spec:
    """Return the explorer's chart of scores; the page fills in a node's bars, marks and threshold."""
    x = number_axis("from", "Score", domain=[low, high], nice=False, padding=6)
    x["axis"]["offset"] = 10
    y = number_axis("mass", "Weight of calibration nodes", domainMin=0, domainMax={"expr": "top"}, nice=True)
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
    threshold = {"x": {"field": "threshold", "type": "quantitative"}}
    layers = [
        drawn("bar", bars, "bars", binSpacing=1, clip=True),
        drawn("point", labels, "labels", shape="triangle-up", filled=True, size=70, yOffset=7, clip=False),
        drawn("rule", threshold, "threshold", color="var(--target)", strokeWidth=2),
    ]
    return looks.chart(260, layers, params={"top": 1}) | {"datasets": {"bars": [], "labels": [], "threshold": []}}


#: The columns that hold the interval of a size.
ENDS = ("size_low", "size_high")
#: The smallest size that the front has on a page, the half of a mark, and the width of a letter, all in pixels.
_SMALLEST, _MARK, _LETTER = (250.0, 300.0), 9.0, 7.4
#: Where a name may stand beside its point, the best first.
_BESIDE = (
    (12, 4, "left"), (-12, 4, "right"), (12, -12, "left"), (12, 20, "left"), (-12, -12, "right"), (-12, 20, "right"),
    (0, -18, "center"), (0, 28, "center"), (0, -34, "center"), (0, 44, "center"),
)  # fmt: skip


def charts(data: ReportData) -> dict[str, Spec]:
    """Return every chart of the page by its name."""
    kind, target, looks = data.kind, 1.0 - data.alpha, Looks([method.title for method in data.shown])
    field = kind.curve_size.field
    # Rows have the interval of one measure of the size; another one is drawn without.
    marks = [row if kind.curve_size is kind.size else row | dict.fromkeys(ENDS, row[field]) for row in data.methods]
    specs = {
        "front": front(looks, data.front, kind.curve_size),
        "coverage": method_coverage(looks, data.methods, target),
        "size": method_size(looks, data.methods, kind.size),
        "tradeoff": tradeoff(looks, data.curve, marks, target, kind.curve_size),
        **kind.charts(data, looks, target),
        "curve": curve(looks, data.curve, kind.curve_size),
        "gap": gap(looks, data.curve, kind.curve_size, data.band),
        "scores": score_distribution(looks, *kind.score_range(data.explorer), mark=kind.score_mark),
    }
    if data.balls:
        sides = {"map-left": looks.titles[0]}
        if len(looks.titles) > 1:
            sides["map-right"] = looks.titles[data.explorer.focus]
        for place, title in sides.items():
            specs[place] = map_chart(looks, data.balls, data.links, target, title, kind.ball_columns, kind.ball_size)
        specs["funnel"] = funnel(looks, data.balls, data.alpha, kind.ball_columns[:1])
    return specs


def front(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return size against gap: the further left and down, the better; below the dashed line is chance."""
    chance = rows[0]["chance"]
    rows = [row for row in rows if not math.isnan(row["gap"]) and math.isfinite(row[size.field])]
    wide = size.reach(rows, "size_low", "size_high")
    # The interval of a median may have no end: it is drawn to the end of the axis.
    rows = [row | {"size_high": min(row["size_high"], wide[1])} for row in rows]
    x = number_axis(size.field, size.better, domain=wide)
    # Few groups have intervals that dwarf everything else: those are cut off at three times the largest distance.
    floor = 0.0 if math.isnan(chance) else chance
    most = 3.0 * max((row["gap"] for row in rows), default=floor)
    domain = [0.0, min(reach(rows, "gap_high", "gap", include=floor)[1], 1.1 * max(most, floor, 0.01))]
    y = number_axis("gap", "Distance from target (lower is more even)", form=".1%", domain=domain)
    columns = [
        ("method", "Method", None), (size.field, size.name, size.form), ("gap", "Distance from the target", ".1%"),
        ("gap_low", "95 % from", ".1%"), ("gap_high", "to", ".1%"), ("chance", "By chance", ".1%"),
        ("coverage", "Coverage", ".1%"),
    ]  # fmt: skip
    base = {"x": x, "y": y, "color": looks.colour, "tooltip": tips(*columns)}
    upright = base | {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}
    level = base | {"x": x | {"field": "size_low"}, "x2": {"field": "size_high"}}
    ring = drawn("point", {"x": x, "y": y}, filled=False, size=420, strokeWidth=2, color="var(--ink)")
    taken = {"transform": [{"filter": "datum.taken && indexof(shown, datum.method) >= 0"}]} | ring
    named = {"x": x, "y": y, "text": {"field": "method"}, "color": looks.colour}
    places = _names(rows, size.field, wide, domain)
    names = [
        layer("text", named, rows=[rows[m]], dx=dx, dy=dy, align=align, fontSize=12, fontWeight=600)
        for m, (dx, dy, align) in places.items()
    ]
    layers = [
        target_rule(chance, "y"),
        layer("rule", upright, strokeWidth=1.5, opacity=0.35, clip=True),
        layer("rule", level, strokeWidth=1.5, opacity=0.35),
        taken,
        looks.dots(base, 120),
        *names,
    ]
    return looks.chart(300, layers, rows)


def _names(
    rows: list[Row], field: str, wide: Sequence[float], high: Sequence[float]
) -> dict[int, tuple[int, int, str]]:
    """Return where names stand beside their points, by row: on no other name and on no other point.

    A place off all lines is preferred: off the dashed line of chance and the intervals. The recommended method and the
    baseline come first; a name without a free place is left out, and is in the legend and the tooltip alone.
    """
    width, height = _SMALLEST

    def across(size: float) -> float:
        return width * (size - wide[0]) / (wide[1] - wide[0])

    def down(gap: float) -> float:
        return height * (1.0 - (gap - high[0]) / (high[1] - high[0]))

    spots = [(across(row[field]), down(row["gap"])) for row in rows]
    boxes = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in spots]
    chance = down(rows[0]["chance"]) if rows else 0.0
    lines = [(0.0, chance - 1.0, width, chance + 1.0)]
    for row, (x, y) in zip(rows, spots, strict=True):
        lines.append((x - 1.0, down(row["gap_high"]), x + 1.0, down(row["gap_low"])))
        lines.append((across(row["size_low"]), y - 1.0, across(row["size_high"]), y + 1.0))
    places: dict[int, tuple[int, int, str]] = {}
    for m in sorted(range(len(rows)), key=lambda m: (not rows[m]["taken"], m)):
        x, y = spots[m]
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        long = _LETTER * len(rows[m]["method"])
        free = {}
        for dx, dy, align in _BESIDE:
            left = x + dx - (long if align == "right" else 0.5 * long if align == "center" else 0.0)
            box = (left, y + dy - 11.0, left + long, y + dy + 4.0)
            inside = box[0] >= -4.0 and box[2] <= width + 4.0 and box[1] >= 0.0 and box[3] <= height
            if inside and not any(_overlap(box, other) for k, other in enumerate(boxes) if k != m):
                free[dx, dy, align] = box
        if free:
            best = min(free, key=lambda place: sum(_overlap(free[place], line) for line in lines))
            places[m] = best
            boxes.append(free[best])
    return places


def _overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def method_coverage(looks: Looks, rows: list[Row], target: float) -> Spec:
    """Return the coverage of each method, with its interval."""
    domain = reach(rows, "low", "high", include=target)
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*INTERVAL_TIPS)}
    bars = base | {"x": coverage("low", domain, target=target), "x2": {"field": "high"}}
    marks = base | {"x": coverage(domain=domain, target=target)}
    return looks.chart(_lines(looks), [target_rule(target, "x"), *_intervals(looks, bars, marks, 110)], rows)


def method_size(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return the mean size of each method, with its interval."""
    domain = size.reach(rows, "size_low", "size_high")
    columns = [("method", "Method", None), (size.field, size.mean, size.form)]
    columns += [("size_low", "95 % from", size.form), ("size_high", "to", size.form)]
    base = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*columns)}
    bars = base | {"x": number_axis("size_low", size.title, domain=domain), "x2": {"field": "size_high"}}
    marks = base | {"x": number_axis(size.field, size.title, domain=domain)}
    return looks.chart(_lines(looks), _intervals(looks, bars, marks, 110), rows)


def _lines(looks: Looks, height: float = 33.0) -> int:
    """Return the height of a chart with one line per method."""
    return round(height * max(2, len(looks.titles)))


def _intervals(looks: Looks, bars: Spec, marks: Spec, size: int) -> list[Spec]:
    return [layer("rule", bars, strokeWidth=2.5, opacity=0.45), looks.dots(marks, size)]


def tradeoff(looks: Looks, curve: list[Row], methods: list[Row], target: float, size: Measure) -> Spec:
    """Return coverage against size over error rates, and at the report's own with intervals."""
    domain = reach(curve, "coverage", include=target)
    curve = [row for row in curve if math.isfinite(row[size.field])]
    wide = size.reach(curve, size.field, include=size.include)
    x, y = number_axis(size.field, size.title, domain=wide), coverage(domain=domain, target=target)
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), (size.field, size.mean, size.form)]
    base = {"x": x, "y": y, "color": looks.colour}
    marks = base | {"tooltip": tips(*columns, ("coverage", "Coverage", ".1%"))}
    upright = base | {"y": coverage("low", domain, target=target), "y2": {"field": "high"}}
    level = base | {"x": x | {"field": "size_low"}, "x2": {"field": "size_high"}}
    layers = [
        target_rule(target, "y"),
        layer("line", base, strokeWidth=1.5, opacity=0.7),
        looks.dots(marks, 22),
        layer("rule", upright, rows=methods, strokeWidth=2),
        layer("rule", level, rows=methods, strokeWidth=2),
        looks.dots(marks, 130, rows=methods, stroke="var(--card)", strokeWidth=1.5),
    ]
    return looks.chart(300, layers, curve)


def curve(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return measured coverage against the target."""
    x = coverage("target", [0.49, 1.0], title="Target, 1 − alpha")
    y = coverage("coverage", reach(rows, "coverage", include=0.5), title="Measured coverage")
    ends = [{"target": share, "coverage": share} for share in (0.5, 0.99)]
    base = {"x": x, "y": y, "color": looks.colour}
    layers = [
        drawn("line", {"x": x, "y": y}, ends, strokeDash=[4, 4], color="var(--target)", strokeWidth=1.5),
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": _curve_tips(size)}, 34),
    ]
    return looks.chart(300, layers, rows)


def gap(looks: Looks, rows: list[Row], size: Measure, band: list[Row]) -> Spec:
    """Return measured coverage less the target, over the band where a method that keeps its promise lies."""
    domain = reach([*rows, *band], "gap_low", "gap_high", include=0.0)
    x = coverage("target", [0.49, 1.0], title="Target, 1 − alpha")
    y = number_axis("gap", "Measured minus target", form="+.0%", domain=domain)
    base = {"x": x, "y": y, "color": looks.colour}
    ends = {"y": y | {"field": "gap_low"}, "y2": {"field": "gap_high"}}
    layers = [
        drawn("area", {"x": x} | ends, band, color="var(--band)"),
        target_rule(0.0, "y"),
        layer("area", base | ends, opacity=0.12),
        layer("line", base, strokeWidth=1.5),
        looks.dots(base | {"tooltip": _curve_tips(size)}, 34),
    ]
    return looks.chart(300, layers, rows)


def _curve_tips(size: Measure) -> list[Spec]:
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("coverage", "Coverage", ".1%")]
    return tips(*columns, ("gap", "Minus target", "+.1%"), (size.field, size.mean, size.form))
