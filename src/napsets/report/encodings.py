"""What the page's charts share: colours, scales, tooltips, and the frame of a Vega-Lite specification.

Every colour is a CSS variable of the page's style sheet, so that charts follow dark mode and print without being drawn
again. Every chart has the parameter `shown`, the methods to show, which the page sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from napsets.report.rows import Row

__all__ = ["INTERVAL_TIPS", "LOOKS", "Looks", "Spec", "coverage", "layer", "number", "reach", "target_rule", "tips"]

Spec = dict[str, Any]

#: How many methods have a colour and a shape of their own; further ones start again.
LOOKS = 8
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
#: Columns of the tooltip of any share with its interval.
INTERVAL_TIPS = [
    ("method", "Method", None),
    ("coverage", "Coverage", ".1%"),
    ("low", "95 % from", ".1%"),
    ("high", "to", ".1%"),
]


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


def layer(mark: str, encoding: Spec, *, rows: list[Row] | None = None, **style: Any) -> Spec:
    """Return a layer that draws the rows of the methods shown."""
    spec: Spec = {
        "transform": [{"filter": "indexof(shown, datum.method) >= 0"}],
        "mark": {"type": mark} | style,
        "encoding": encoding,
    }
    return spec if rows is None else spec | {"data": {"values": rows}}


def target_rule(value: float, channel: str) -> Spec:
    """Return the dashed line at the coverage asked for."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "var(--target)", "strokeWidth": 1.5},
        "encoding": {channel: {"datum": value}},
    }


def number(field: str, title: str, *, form: str | None = None, domain: list[float] | None = None, **scale: Any) -> Spec:
    """Return the encoding of a number on an axis that need not start at 0."""
    axis: Spec = {"tickCount": 6} | ({} if form is None else {"format": form})
    start: Spec = {} if scale.get("type") == "log" else {"zero": False}  # a logarithmic axis has no 0 to leave out
    wide = start | ({} if domain is None else {"domain": domain}) | scale
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, "scale": wide}


def coverage(field: str = "coverage", domain: list[float] | None = None, title: str = "Coverage") -> Spec:
    """Return the encoding of a share in percent, on an axis that ends at 100 % at the latest."""
    within = None if domain is None else [max(0.0, domain[0]), min(1.0, domain[1])]
    return number(field, title, form="%", domain=within)


def reach(rows: list[Row], *fields: str, include: float) -> list[float]:
    """Return the range that some columns and one more value take up, with a little room.

    Scales left to themselves overlook where a rule ends, jump when methods are hidden, and complain when all are.
    """
    ends = [include, *(row[field] for row in rows for field in fields if not math.isnan(row[field]))]
    room = 0.04 * (max(ends) - min(ends)) or 0.01
    return [min(ends) - room, max(ends) + room]


def tips(*columns: tuple[str, str, str | None]) -> list[Spec]:
    """Return a tooltip of (field, title, number format or None)."""
    return [
        {"field": field, "title": title} | ({"type": "nominal"} if form is None else _formatted(form))
        for field, title, form in columns
    ]


def _formatted(form: str) -> Spec:
    return {"type": "quantitative", "format": form}
