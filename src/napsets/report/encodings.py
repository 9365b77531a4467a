"""What the page's charts share: colours, scales, tooltips, and the frame of a Vega-Lite specification.

Every colour is a CSS variable of the page's style sheet, so that charts follow dark mode and print without being drawn
again. Every chart has the parameter `shown`, the methods to show, which the page sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from napsets.report.chart_data import Row

Spec = dict[str, Any]
#: Columns of a tooltip: field, title, number format or None.
Columns = Sequence[tuple[str, str, str | None]]

#: How many methods have a colour and a shape of their own; further ones start again.
LOOKS = 8
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
#: Marks of an axis, at most, in addition to the first.
_MOST_TICKS = 8
#: Columns of the tooltip of any share with its interval.
INTERVAL_TIPS = [
    ("method", "Method", None),
    ("coverage", "Coverage", ".1%"),
    ("low", "95 % from", ".1%"),
    ("high", "to", ".1%"),
]
CHANCE_TIPS = [("chance_low", "By chance from", ".1%"), ("chance_high", "By chance to", ".1%")]


@dataclass(frozen=True)
class Looks:
    """How methods look in all charts of a page: their order, colours and shapes."""

    titles: list[str]

    @property
    def method(self) -> Spec:
        """The encoding of a method as a place in order."""
        return {"field": "method", "type": "nominal", "sort": self.titles}

    @property
    def colour(self) -> Spec:
        """The encoding of a method as a colour."""
        return self._scale([f"var(--method-{i % LOOKS})" for i in range(len(self.titles))])

    @property
    def shape(self) -> Spec:
        """The encoding of a method as a shape."""
        return self._scale([SHAPES[i % LOOKS] for i in range(len(self.titles))])

    def _scale(self, values: list[str]) -> Spec:
        scale = {"domain": self.titles, "range": values}
        return {"field": "method", "type": "nominal", "scale": scale, "legend": None}

    def chart(
        self, height: int, layers: list[Spec], rows: list[Row] | None = None, params: dict[str, Any] | None = None
    ) -> Spec:
        """Return a chart as wide as its place on the page; `params` are more parameters that the page may set."""
        values = {"shown": self.titles} | (params or {})
        spec: Spec = {
            "width": "container",
            "height": height,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "params": [{"name": name, "value": value} for name, value in values.items()],
            "layer": layers,
        }
        return spec if rows is None else spec | {"data": {"values": rows}}

    def dots(self, encoding: Spec, size: int, *, rows: list[Row] | None = None, **style: Any) -> Spec:
        """Return a layer of marks, each method with its own shape."""
        return layer("point", encoding | {"shape": self.shape}, rows=rows, filled=True, size=size, **style)


@dataclass(frozen=True)
class Measure:
    """How large the predictions of a method are: the column of the rows, its names, and how it is written."""

    field: str  #: The column.
    #: In the tooltip of the front, in other tooltips, on an axis, and on an axis where less is better.
    name: str
    mean: str
    title: str
    better: str
    form: str  #: Format of the number.
    include: float | None = None  #: What an axis shows in any case; None for nothing.

    def reach(self, rows: list[Row], *fields: str, include: float | None = None) -> list[float]:
        """Return the range of an axis."""
        known = [row for row in rows if math.isfinite(row[self.field])]
        if include is None:
            include = known[0][self.field] if known else 0.0
        return reach(known, *fields, include=include)


def layer(mark: str, encoding: Spec, *, rows: list[Row] | None = None, **style: Any) -> Spec:
    """Return a layer that draws the rows of the methods shown."""
    spec: Spec = {
        "transform": [{"filter": "indexof(shown, datum.method) >= 0"}],
        "mark": {"type": mark} | style,
        "encoding": encoding,
    }
    return spec if rows is None else spec | {"data": {"values": rows}}


def target_rule(value: float, channel: str) -> Spec:
    """Return the dashed line at the target."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "var(--target)", "strokeWidth": 1.5},
        "encoding": {channel: {"datum": value}},
    }


def number_axis(
    field: str, title: str, *, form: str | None = None, domain: list[float] | None = None, **scale: Any
) -> Spec:
    """Return the encoding of a number on an axis that need not start at 0."""
    axis: Spec = {"tickCount": 6} | ({} if form is None else {"format": form})
    start: Spec = {} if scale.get("type") == "log" else {"zero": False}  # a logarithmic axis has no 0 to leave out
    wide = start | ({} if domain is None else {"domain": domain}) | scale
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, "scale": wide}


def coverage(
    field: str = "coverage", domain: list[float] | None = None, title: str = "Coverage", target: float | None = None
) -> Spec:
    """Return the encoding of a share in percent, on an axis that ends at 100 % at the latest and marks the target."""
    within = None if domain is None else [max(0.0, domain[0]), min(1.0, domain[1])]
    spec = number_axis(field, title, form=".1~%", domain=within)
    if within is not None and target is not None:
        spec["axis"] |= {"values": ticks(within, target)}
    return spec


def ticks(domain: Sequence[float], target: float) -> list[float]:
    """Return marks of an axis in even steps, the target among them.

    Examples
    --------
    >>> ticks([0.41, 1.0], 0.9), ticks([0.88, 0.95], 0.9)
    ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [0.88, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95])
    """
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


def tips(*columns: tuple[str, str, str | None]) -> list[Spec]:
    """Return a tooltip of (field, title, number format or None)."""
    return [
        {"field": field, "title": title}
        | ({"type": "nominal"} if form is None else {"type": "quantitative", "format": form})
        for field, title, form in columns
    ]


def ordinal(rows: list[Row], field: str, title: str) -> Spec:
    """Return the encoding of groups in their order, along a chart."""
    order = [name for _, name in sorted({(row["order"], row[field]) for row in rows})]
    return {"field": field, "type": "ordinal", "sort": order, "title": title, "axis": {"labelAngle": 0}}


def grouped(looks: Looks, rows: list[Row], x: Spec, tooltip: list[Spec], target: float) -> Spec:
    """Return coverage in groups, each mark over the band of chance of its group."""
    domain = reach(rows, "coverage", include=target)
    place = {"x": x, "xOffset": looks.method | {"scale": {"paddingOuter": 0.4}}}
    base = place | {"color": looks.colour, "tooltip": tooltip, "y": coverage(domain=domain, target=target)}
    # Of sets by size, groups differ between methods: each mark has its own band.
    bands = place | {
        "y": coverage("chance_low", domain, target=target),
        "y2": {"field": "chance_high"},
        "tooltip": tooltip,
    }
    band = layer("rule", bands, color="var(--band)", strokeWidth=11, clip=True)
    return looks.chart(300, [band, target_rule(target, "y"), looks.dots(base, 60)], rows)
