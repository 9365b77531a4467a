"""All charts of a page (`charts`): methods and error rates, the map of neighbourhoods, and a node's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from napsets.report.chart_parts import (
    CHANCE_TIPS,
    INTERVAL_TIPS,
    Columns,
    Looks,
    Measure,
    Row,
    Spec,
    between,
    coverage,
    drawn,
    layer,
    number_axis,
    ordinal,
    reach,
    target_rule,
    tips,
)

if TYPE_CHECKING:
    from napsets.report.data import ReportData
    from napsets.report.explorer import Explorer

#: Coverage minus target, where the colours of the map change.
STEPS = [-0.1, -0.05, -0.02, 0.02, 0.05]
#: Hops that have a colour of their own in a node's scores.
HOP_COLOURS = 7
#: The axis of error rates.
_TARGETS = coverage("target", [0.49, 1.0], title="Target, 1 − alpha")


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
    return looks.chart(330, layers, balls, method=method, picked=-1)


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
    axes = {"x": x, "y": coverage(domain=domain)}
    area = drawn("area", between(axes, "y", "low", "high"), band, color="var(--band)", opacity=1)
    dots = looks.dots(axes | {"color": looks.colour, "tooltip": tips(*columns, *about)}, 55)
    return looks.chart(330, [area, target_rule(target, "y"), dots], rows)


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
    return looks.chart(260, layers, top=1) | {"datasets": {"bars": [], "labels": [], "threshold": []}}


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
    field, size, rows = kind.curve_size.field, kind.size, data.methods
    axis = coverage(domain=reach(rows, "low", "high", include=target), target=target)
    sizes = number_axis(size.field, size.title, domain=size.reach(rows, *ENDS))
    of_size = [("method", "Method", None), (size.field, size.mean, size.form)]
    of_size += [(ENDS[0], "95 % from", size.form), (ENDS[1], "to", size.form)]
    # Rows have the interval of one measure of the size; another one is drawn without.
    marks = [row if kind.curve_size is size else row | dict.fromkeys(ENDS, row[field]) for row in rows]
    specs = {
        "front": front(looks, data.front, kind.curve_size),
        "coverage": by_method(looks, rows, axis, ("low", "high"), INTERVAL_TIPS, target),
        "size": by_method(looks, rows, sizes, ENDS, of_size),
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
    wide = size.reach(rows, *ENDS)
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
        layer("rule", between(base, "y", "gap_low", "gap_high"), strokeWidth=1.5, opacity=0.35, clip=True),
        layer("rule", between(base, "x", *ENDS), strokeWidth=1.5, opacity=0.35),
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
        (x, y), long = spots[m], _LETTER * len(rows[m]["method"])
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


def by_method(
    looks: Looks, rows: list[Row], x: Spec, ends: tuple[str, str], columns: Columns, target: float | None = None
) -> Spec:
    """Return a number of each method, with its interval, one line per method."""
    marks = {"y": looks.method | {"title": None}, "color": looks.colour, "tooltip": tips(*columns), "x": x}
    layers = [layer("rule", between(marks, "x", *ends), strokeWidth=2.5, opacity=0.45), looks.dots(marks, 110)]
    rule = [] if target is None else [target_rule(target, "x")]
    return looks.chart(33 * max(2, len(looks.titles)), [*rule, *layers], rows)


def tradeoff(looks: Looks, curve: list[Row], methods: list[Row], target: float, size: Measure) -> Spec:
    """Return coverage against size over error rates, and at the report's own with intervals."""
    domain = reach(curve, "coverage", include=target)
    curve = [row for row in curve if math.isfinite(row[size.field])]
    wide = size.reach(curve, size.field, include=size.include)
    x, y = number_axis(size.field, size.title, domain=wide), coverage(domain=domain, target=target)
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), (size.field, size.mean, size.form)]
    base = {"x": x, "y": y, "color": looks.colour}
    marks = base | {"tooltip": tips(*columns, ("coverage", "Coverage", ".1%"))}
    layers = [
        target_rule(target, "y"),
        layer("line", base, strokeWidth=1.5, opacity=0.7),
        looks.dots(marks, 22),
        layer("rule", between(base, "y", "low", "high"), rows=methods, strokeWidth=2),
        layer("rule", between(base, "x", *ENDS), rows=methods, strokeWidth=2),
        looks.dots(marks, 130, rows=methods, stroke="var(--card)", strokeWidth=1.5),
    ]
    return looks.chart(300, layers, curve)


def curve(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return measured coverage against the target."""
    y = coverage("coverage", reach(rows, "coverage", include=0.5), title="Measured coverage")
    ends = [{"target": share, "coverage": share} for share in (0.5, 0.99)]
    axes = {"x": _TARGETS, "y": y}
    equal = drawn("line", axes, ends, strokeDash=[4, 4], color="var(--target)", strokeWidth=1.5)
    return _over_rates(looks, rows, axes, size, equal)


def gap(looks: Looks, rows: list[Row], size: Measure, band: list[Row]) -> Spec:
    """Return measured coverage less the target, over the band where a method that keeps its promise lies."""
    domain = reach([*rows, *band], "gap_low", "gap_high", include=0.0)
    axes = {"x": _TARGETS, "y": number_axis("gap", "Measured minus target", form="+.0%", domain=domain)}
    ends = between(axes, "y", "gap_low", "gap_high")
    own = layer("area", ends | {"color": looks.colour}, opacity=0.12)
    return _over_rates(
        looks, rows, axes, size, drawn("area", ends, band, color="var(--band)"), target_rule(0.0, "y"), own
    )


def _over_rates(looks: Looks, rows: list[Row], axes: Spec, size: Measure, *under: Spec) -> Spec:
    """Return a line per method over the error rates, on top of other layers."""
    columns = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("coverage", "Coverage", ".1%")]
    tooltip = tips(*columns, ("gap", "Minus target", "+.1%"), (size.field, size.mean, size.form))
    base = axes | {"color": looks.colour}
    dots = looks.dots(base | {"tooltip": tooltip}, 34)
    return looks.chart(300, [*under, layer("line", base, strokeWidth=1.5), dots], rows)


# -- of sets, and of intervals -----------------------------------------------------------------------------------------

#: Classes that are drawn at first.
FIRST_CLASSES = 20
#: Marks that a chart of classes has room for, each on a line of its own; more of them stand closer together.
SPREAD_MARKS = 60
#: Hops whose labelled nodes have a line of their own on a node's number line.
LINE_HOPS = 3
#: How charts write widths and targets.
FORM = ".3~g"


def by_class(looks: Looks, rows: list[Row], target: float) -> Spec:
    """Return coverage by class, the first ones of `rows` at first; the page may change the parameter `limit`."""
    domain = reach(rows, "coverage", include=target)
    names = {row["order"]: row["class"] for row in rows}
    columns = [("class", "Class", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f"), *CHANCE_TIPS]
    # Classes stand on the axis by number: a name in an expression or as a key would mean something there.
    axis = {"labelExpr": "names[datum.value]", "labelLimit": 130}
    y: Spec = {"field": "order", "type": "ordinal", "title": None, "axis": axis}
    spread = len(looks.titles) * min(len(names), FIRST_CLASSES) <= SPREAD_MARKS
    step = max(22.0, 9.5 * len(looks.titles)) if spread else 22.0
    axes = {"y": y, "x": coverage(domain=domain, target=target)}
    beside = {"yOffset": looks.method | {"scale": {"paddingOuter": 0.3}}, "color": looks.colour}
    base = axes | beside | {"tooltip": tips(*INTERVAL_TIPS, *columns)}
    first = [row for row in rows if row["method"] == looks.titles[0]]
    chance = [{name: row[name] for name in ("order", "chance_low", "chance_high")} for row in first]
    ends = between(axes, "x", "chance_low", "chance_high")
    band = drawn("rule", ends, chance, color="var(--band)", strokeWidth=0.9 * step, clip=True)
    band["transform"] = [{"filter": "datum.order < limit"}]
    marks = looks.dots(base, 50)
    marks["transform"] = [*marks["transform"], {"filter": "datum.order < limit"}]
    listed = [names.get(c, "") for c in range(max(names) + 1)]
    height = max(120, round(step * min(len(names), FIRST_CLASSES)))
    return looks.chart(height, [band, target_rule(target, "x"), marks], rows, names=listed, limit=FIRST_CLASSES)


def set_sizes(looks: Looks, rows: list[Row]) -> Spec:
    """Return how many sets have each size."""
    columns = [("method", "Method", None), ("sizes", "Set size", None), ("nodes", "Nodes", ",d")]
    top = max(row["share"] for row in rows)
    encoding = {
        "x": ordinal(rows, "sizes", "Labels in the set"),
        "xOffset": looks.method,
        "y": number_axis("share", "Share of nodes", form="%", domain=[0.0, top], nice=True),
        "color": looks.colour,
        "tooltip": tips(*columns, ("share", "Share", ".1%")),
    }
    return looks.chart(260, [layer("bar", encoding, cornerRadiusEnd=2)], rows)


def width_shares(looks: Looks, rows: list[Row], *, skewed: bool) -> Spec:
    """Return the share of intervals up to each width; where some are the whole line, it ends below 100 %."""
    scale = {"type": "log"} if skewed else {}
    ends = [row["width"] for row in rows] or [1.0]
    domain = [min(ends), max(ends)] if skewed else reach(rows, "width", include=ends[0])
    x = number_axis("width", "Width of an interval", domain=domain, **scale)
    y = number_axis("share", "Intervals up to this width", form="%", domain=[0.0, 1.0])
    base = {"x": x, "y": y, "color": looks.colour}
    columns = [("method", "Method", None), ("width", "Width", FORM), ("share", "At most", ".1%")]
    dots = looks.dots(base | {"tooltip": tips(*columns)}, 14, opacity=0.6)
    return looks.chart(300, [layer("line", base, strokeWidth=2, interpolate="step-after"), dots], rows)


def number_line(looks: Looks, explorer: Explorer, hops: int) -> Spec:
    """Return the explorer's number line; the page fills in a node's interval, the model's outputs, and targets."""
    informed = ["With evidence"] if explorer.sentences else []
    lines = ["Interval", "Model", *informed, *(f"Targets at hop {k}" for k in range(1, min(hops, LINE_HOPS) + 1))]
    axis = {"labelLimit": 120}
    y: Spec = {"field": "line", "type": "nominal", "title": None, "scale": {"domain": lines}, "axis": axis}
    x = number_axis("from", "Target", nice=False)
    x["scale"]["domain"] = [{"expr": "low"}, {"expr": "high"}]
    tooltip = tips(("line", "", None), ("text", "", None))
    colours = {"domain": ["covers", "misses", "model"], "range": ["var(--good)", "var(--bad)", "var(--muted)"]}
    colour = {"field": "kind", "type": "nominal", "legend": None, "scale": colours}
    spans = {"y": y, "x": x, "x2": {"field": "to"}, "color": colour, "tooltip": tooltip}
    points = {"y": y, "x": x | {"field": "value"}, "tooltip": tooltip}
    truth, dashed = {"x": x | {"field": "value"}}, {"strokeDash": [4, 4], "strokeWidth": 2, "color": "var(--target)"}
    layers = [
        drawn("rule", spans, "spans", strokeWidth=9, clip=True),
        drawn("point", points, "points", filled=True, size=55, opacity=0.55, color="var(--hop-0)", clip=True),
        drawn("rule", truth, "truth", clip=True, **dashed),
    ]
    empty: Spec = {"datasets": {"spans": [], "points": [], "truth": []}}
    return looks.chart(34 * len(lines), layers, low=0, high=1) | empty
