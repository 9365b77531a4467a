"""The charts of a page, made with Altair: the same functions for sets and for intervals.

Every colour is a CSS variable of the page's style sheet, so that charts follow dark mode and print without being drawn
again. Every chart has the parameter `shown`, the methods to show, which the page sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napsets.errors import imported
from napsets.report.rows import Row

if TYPE_CHECKING:
    import altair as alt
else:
    alt = imported("altair", "report")

#: A specification of Vega-Lite, as the page's script reads it.
Spec = dict[str, Any]
#: A column of a tooltip: field, title, and the format of a number (None for text).
Column = tuple[str, str, str | None]

#: How many methods have a colour and a shape of their own; further ones start again.
LOOKS = 8
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
#: Hops that have a colour of their own in a node's scores.
HOP_COLOURS = 7
#: Groups that a chart shows at first; a button shows the others.
FIRST_GROUPS = 20
#: Marks of an axis, at most, in addition to the first.
_MOST_TICKS = 8
#: Marks of groups that have a line of their own; more of them stand closer together.
_SPREAD_MARKS = 60
_INTERVAL_TIPS: list[Column] = [
    ("method", "Method", None), ("coverage", "Coverage", ".1%"), ("low", "95 % from", ".1%"), ("high", "to", ".1%"),
]  # fmt: skip
_CHANCE_TIPS: list[Column] = [
    ("chance_low", "By chance from", ".1%"), ("chance_high", "By chance to", ".1%"), ("nodes", "Nodes", ",d"),
]  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """How large the predictions of a method are: the column of the rows, its name, and the format of its number."""

    field: str
    name: str
    form: str
    include: float | None = None  #: What an axis shows in any case; None for nothing.


@dataclass(frozen=True)
class Looks:
    """How methods look in all charts of a page: their order, colours and shapes."""

    titles: list[str]

    def encode(self, chart: alt.Chart, *, shape: bool = True) -> alt.Chart:
        """Give a chart the colours and shapes of the methods, with a legend, and leave out the methods not shown."""
        legend = alt.Legend(title=None, orient="bottom", columns=3, symbolOpacity=1, labelLimit=110)
        colours = [f"var(--method-{i % LOOKS})" for i in range(len(self.titles))]
        channels = {"color": alt.Color("method:N").scale(domain=self.titles, range=colours).legend(legend)}
        if shape:
            shapes = [SHAPES[i % LOOKS] for i in range(len(self.titles))]
            channels["shape"] = alt.Shape("method:N").scale(domain=self.titles, range=shapes).legend(legend)
        return chart.transform_filter("indexof(shown, datum.method) >= 0").encode(**channels)

    def dots(self, chart: alt.Chart, size: int, *columns: Column, **style: Any) -> alt.Chart:
        """Return a chart with a mark per row, each method with its own shape, and a tooltip."""
        return self.encode(chart.mark_point(filled=True, size=size, **style)).encode(tooltip=tips(*columns))

    def spec(self, height: int, rows: list[Row], *layers: alt.Chart, **params: Any) -> Spec:
        """Return the specification of layers over the rows; `params` are parameters that the page may set."""
        return spec(height, rows, *layers, shown=self.titles, **params)


def spec(height: int, rows: list[Row], *layers: alt.Chart, **params: Any) -> Spec:
    """Return the specification of a chart that is as wide as its place on the page."""
    declared = [alt.param(name=name, value=value) for name, value in params.items()]
    chart = alt.layer(*layers).properties(width="container", height=height).add_params(*declared)
    made: Spec = chart.to_dict(validate=False)
    del made["config"], made["$schema"]
    fit = {"type": "fit-x", "contains": "padding"}
    return made | {"autosize": fit, "datasets": made.get("datasets", {}) | {"rows": rows}}


def of_rows() -> alt.Chart:
    """Return a chart of the specification's rows."""
    return alt.Chart(alt.NamedData("rows"))


def of(rows: list[Row]) -> alt.Chart:
    """Return a chart of rows of its own."""
    return alt.Chart(alt.Data(values=rows))


def tips(*columns: Column) -> list[alt.Tooltip]:
    """Return the columns of a tooltip."""
    return [
        alt.Tooltip(f"{field}:N", title=title) if form is None else alt.Tooltip(f"{field}:Q", title=title, format=form)
        for field, title, form in columns
    ]


def number(channel: type[alt.X], field: str, title: str, *, form: str | None = None, **scale: Any) -> alt.X:
    """Return the encoding of a number on an axis that need not start at 0."""
    axis = {"tickCount": 6} | ({} if form is None else {"format": form})
    if scale.get("type") != "log":  # a logarithmic axis has no 0 to leave out
        scale = {"zero": False} | scale
    return channel(field=field, type="quantitative").title(title).axis(**axis).scale(**scale)


def share(channel: type[alt.X], field: str, domain: list[float], target: float, title: str = "Coverage") -> alt.X:
    """Return the encoding of a share in percent, on an axis that ends at 100 % at the latest and marks the target."""
    within = [max(0.0, domain[0]), min(1.0, domain[1])]
    axis = alt.Axis(format=".1~%", values=ticks(within, target))
    return channel(field=field, type="quantitative").title(title).axis(axis).scale(domain=within, zero=False)


def ticks(domain: Sequence[float], target: float) -> list[float]:
    """Return marks of an axis in even steps, the target among them."""
    low, high = domain
    step = next((step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / step <= _MOST_TICKS), 0.25)
    first, last = math.ceil((low - target) / step - 1e-9), math.floor((high - target) / step + 1e-9)
    return [round(target + k * step, 6) for k in range(first, last + 1)]


def reach(rows: list[Row], *fields: str, include: float) -> list[float]:
    """Return the range that some columns and one more value take up, with a little room.

    Scales left to themselves overlook where a rule ends, jump when methods are hidden, and complain when all are.
    """
    ends = [include, *(row[field] for row in rows for field in fields if math.isfinite(row[field]))]
    room = 0.04 * (max(ends) - min(ends)) or 0.01
    return [min(ends) - room, max(ends) + room]


def size_reach(rows: list[Row], measure: Measure, *fields: str) -> list[float]:
    """Return the range of an axis of sizes."""
    known = [row for row in rows if math.isfinite(row[measure.field])]
    include = measure.include if measure.include is not None else known[0][measure.field] if known else 0.0
    return reach(known, *fields, include=include)


def rule(value: float, channel: str) -> alt.Chart:
    """Return a dashed line, at the target for instance."""
    line = of([{}]).mark_rule(strokeDash=[4, 4], color="var(--target)", strokeWidth=1.5)
    return line.encode(**{channel: alt.datum(value)})


# -- all methods -------------------------------------------------------------------------------------------------------


def front(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return size against gap: the further left and down, the better; below the dashed line is chance."""
    chance = rows[0]["chance"]
    rows = [row for row in rows if not math.isnan(row["gap"]) and math.isfinite(row[size.field])]
    wide = size_reach(rows, size, "size_low", "size_high")
    # The interval of a median may have no end: it is drawn to the end of the axis.
    rows = [row | {"size_high": min(row["size_high"], wide[1])} for row in rows]
    # Few groups have intervals that dwarf everything else: those are cut off at three times the largest distance.
    floor = 0.0 if math.isnan(chance) else chance
    most = 3.0 * max((row["gap"] for row in rows), default=floor)
    high = min(reach(rows, "gap_high", "gap", include=floor)[1], 1.1 * max(most, floor, 0.01))
    x = number(alt.X, size.field, f"{size.name} (less is better)", domain=wide)
    title = "Points short of the target (less is more even)"
    y = number(alt.Y, "gap", title, form=".1%", domain=[0.0, high])
    base = of_rows().encode(x=x, y=y)
    columns: list[Column] = [
        ("method", "Method", None), (size.field, size.name, size.form), ("gap", "Short of the target", ".1%"),
        ("gap_low", "95 % from", ".1%"), ("gap_high", "to", ".1%"), ("chance", "By chance", ".1%"),
        ("coverage", "Coverage", ".1%"),
    ]  # fmt: skip
    ring = base.mark_point(filled=False, size=420, strokeWidth=2, color="var(--ink)")
    layers = [
        looks.encode(base.mark_rule(strokeWidth=1.5, opacity=0.35, clip=True), shape=False).encode(
            y=y.field("gap_low"), y2="gap_high"
        ),
        looks.encode(base.mark_rule(strokeWidth=1.5, opacity=0.35), shape=False).encode(
            x=x.field("size_low"), x2="size_high"
        ),
        ring.transform_filter("datum.taken && indexof(shown, datum.method) >= 0"),
        looks.dots(base, 120, *columns),
    ]
    return looks.spec(300, rows, *([] if math.isnan(chance) else [rule(chance, "y")]), *layers)


def tradeoff(looks: Looks, curve: list[Row], target: float, size: Measure) -> Spec:
    """Return coverage against size over error rates."""
    domain = reach(curve, "coverage", include=target)
    curve = [row for row in curve if math.isfinite(row[size.field])]
    x = number(alt.X, size.field, size.name, domain=size_reach(curve, size, size.field))
    base = of_rows().encode(x=x, y=share(alt.Y, "coverage", domain, target), order="alpha:Q")
    columns: list[Column] = [("method", "Method", None), ("alpha", "Alpha", ".3~f"), (size.field, size.name, size.form)]
    line = looks.encode(base.mark_line(strokeWidth=1.5, opacity=0.7), shape=False)
    return looks.spec(
        300, curve, rule(target, "y"), line, looks.dots(base, 30, *columns, ("coverage", "Coverage", ".1%"))
    )


def gap(looks: Looks, rows: list[Row], size: Measure, band: list[Row]) -> Spec:
    """Return measured coverage less the target, over the band where a method that keeps its promise lies."""
    domain = reach([*rows, *band], "gap_low", "gap_high", include=0.0)
    x = share(alt.X, "target", [0.49, 1.0], 0.9, "Target, 1 − alpha")
    y = number(alt.Y, "gap", "Measured minus target", form="+.0%", domain=domain)
    ends = {"x": x, "y": y.field("gap_low"), "y2": "gap_high"}
    base = of_rows().encode(x=x, y=y)
    columns: list[Column] = [
        ("method", "Method", None), ("alpha", "Alpha", ".3~f"), ("coverage", "Coverage", ".1%"),
        ("gap", "Minus target", "+.1%"), (size.field, size.name, size.form),
    ]  # fmt: skip
    return looks.spec(
        300,
        rows,
        of(band).mark_area(color="var(--band)").encode(**ends),
        rule(0.0, "y"),
        looks.encode(of_rows().mark_area(opacity=0.12), shape=False).encode(**ends),
        looks.encode(base.mark_line(strokeWidth=1.5), shape=False),
        looks.dots(base, 34, *columns),
    )


def with_labels(looks: Looks, rows: list[Row], size: Measure) -> Spec:
    """Return the size with parts of the calibration labels, with 95 % intervals; each mark has twice as many labels."""
    longest = 1.5 * max(row["size"] for row in rows)  # intervals of few labels can be far longer
    domain = reach(rows, "size", "low", include=min(longest, max(row["high"] for row in rows)))
    axis = alt.Axis(values=[row["labels"] for row in rows], format=",d")
    ends = [rows[0]["labels"] / 1.1, rows[-1]["labels"] * 1.1]
    x = alt.X("labels:Q", title="Calibration labels", axis=axis).scale(type="log", domain=ends)
    y = number(alt.Y, "size", size.name, form=size.form, domain=domain)
    columns: list[Column] = [
        ("method", "Method", None), ("labels", "Labels", ",d"), ("level_labels", "… that set the level", ",d"),
        ("size", size.name, size.form), ("low", "95 % from", size.form), ("high", "to", size.form),
    ]  # fmt: skip
    base = of_rows().encode(x=x, y=y)
    bars = of_rows().mark_rule(strokeWidth=1.5, clip=True).encode(x=x, y=y.field("low"), y2="high")
    return looks.spec(260, rows, looks.encode(bars, shape=False), looks.dots(base, 60, *columns))


def up_to(looks: Looks, rows: list[Row], size: Measure, *, skewed: bool) -> Spec:
    """Return the share of predictions up to each size; where some are endless, it ends below 100 %."""
    ends = [row[size.field] for row in rows] or [1.0]
    domain = [min(ends), max(ends)] if skewed else reach(rows, size.field, include=ends[0])
    x = number(alt.X, size.field, size.name, domain=domain, **({"type": "log"} if skewed else {}))
    base = of_rows().encode(x=x, y=number(alt.Y, "share", "Share up to this", form="%", domain=[0.0, 1.0]))
    columns: list[Column] = [
        ("method", "Method", None),
        (size.field, size.name, size.form),
        ("share", "At most", ".1%"),
    ]
    line = looks.encode(base.mark_line(strokeWidth=2, interpolate="step-after"), shape=False)
    return looks.spec(300, rows, line, looks.dots(base, 14, *columns, opacity=0.6))


def by_group(looks: Looks, rows: list[Row], field: str, target: float, *columns: Column) -> Spec:
    """Return coverage in groups, one below the other, each mark over the band of chance of its group.

    The page may change the parameter `limit`, how many groups are shown.
    """
    names = {row["order"]: row[field] for row in rows}
    listed = [names.get(g, "") for g in range(max(names, default=0) + 1)]
    few, methods = min(len(names), FIRST_GROUPS), len(looks.titles)
    step = max(22.0, 9.5 * methods) if methods * few <= _SPREAD_MARKS else 22.0
    x = share(alt.X, "coverage", reach(rows, "coverage", include=target), target)
    # Groups stand on the axis by number: a name in an expression or as a key would mean something there.
    axis = alt.Axis(labelExpr="names[datum.value]", labelLimit=130)
    offset = alt.YOffset("method:N").sort(looks.titles).scale(paddingOuter=0.3)
    base = of_rows().transform_filter("datum.order < limit").encode(y=alt.Y("order:O").title(None).axis(axis))
    base = base.encode(yOffset=offset)
    band = base.mark_bar(color="var(--band)", clip=True).transform_filter("indexof(shown, datum.method) >= 0")
    dots = looks.dots(base.encode(x=x), 50, *_INTERVAL_TIPS, *columns, *_CHANCE_TIPS)
    height = max(120, round(step * few))
    return looks.spec(
        height, rows, band.encode(x=x.field("chance_low"), x2="chance_high"), rule(target, "x"), dots,
        names=listed, limit=FIRST_GROUPS,
    )  # fmt: skip


def funnel(looks: Looks, balls: list[Row], alpha: float, about: Column) -> Spec:
    """Return coverage against size of the neighbourhoods, over the band where chance alone would put 95 % of them."""
    target = 1.0 - alpha
    smallest, largest = (float(end(ball["nodes"] for ball in balls)) for end in (min, max))
    sizes = [smallest * (largest / smallest) ** (i / 60) for i in range(61)]
    half = [1.96 * math.sqrt(alpha * target / size) for size in sizes]
    band = [
        {"nodes": size, "low": max(0.0, target - h), "high": min(1.0, target + h)}
        for size, h in zip(sizes, half, strict=True)
    ]
    rows = [
        {"method": name, "coverage": ball[name], "nodes": ball["nodes"], about[0]: ball[about[0]]}
        for ball in balls
        for name in looks.titles
    ]
    low, high = reach(rows, "coverage", include=target)
    y = share(alt.Y, "coverage", [min(low, band[0]["low"]), max(high, band[0]["high"])], target)
    x = number(
        alt.X, "nodes", "Nodes in the neighbourhood", form="~s", domain=[0.9 * smallest, 1.1 * largest], type="log"
    )
    columns: list[Column] = [("method", "Method", None), ("coverage", "Coverage", ".1%"), ("nodes", "Nodes", ",d")]
    area = of(band).mark_area(color="var(--band)", opacity=1).encode(x=x, y=y.field("low"), y2="high")
    return looks.spec(330, rows, area, rule(target, "y"), looks.dots(of_rows().encode(x=x, y=y), 55, *columns, about))


def scores(mark: str) -> Spec:
    """Return the explorer's chart of scores; the page fills in a node's bars, marks and threshold."""
    domain = [{"expr": "low"}, {"expr": "high"}]
    x = number(alt.X, "from", "Score", domain=domain, nice=False, padding=6).bin("binned")
    y = number(alt.Y, "mass", "Weight of calibration nodes", domainMin=0, domainMax={"expr": "top"}, nice=True)
    groups = [*(f"hop {k}" for k in range(1, HOP_COLOURS + 1)), "later hops", "all calibration nodes"]
    colour = alt.Color("group:N").legend(None).scale(domain=groups, range=[f"var(--hop-{k})" for k in range(9)])
    columns: list[Column] = [
        ("group", "At", None), ("from", "Score from", ".3f"), ("to", "to", ".3f"), ("count", "Nodes", ",d"),
        ("mass", "Weight", ".2f"),
    ]  # fmt: skip
    inside = alt.condition("datum.inside", alt.value("var(--good)"), alt.value("var(--muted)"))
    bars = alt.Chart(alt.NamedData("bars")).mark_bar(binSpacing=1, clip=True)
    labels = alt.Chart(alt.NamedData("labels")).mark_point(
        shape="triangle-up", filled=True, size=70, yOffset=7, clip=False
    )
    threshold = alt.Chart(alt.NamedData("threshold")).mark_rule(color="var(--target)", strokeWidth=2)
    made = spec(
        240,
        [],
        bars.encode(x=x, x2="to", y=y, color=colour, order="group:O", tooltip=tips(*columns)),
        labels.encode(
            x="score:Q", y=alt.datum(0), color=inside,
            tooltip=tips(("name", mark, None), ("score", "Score", ".4f"), ("verdict", "", None)),
        ),
        threshold.encode(x="threshold:Q"),
        top=1, low=0, high=1,
    )  # fmt: skip
    return made | {"datasets": {"bars": [], "labels": [], "threshold": []}}
