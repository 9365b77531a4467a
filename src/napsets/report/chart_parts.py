"""What charts are made of, whatever is predicted: rows, and colours, scales, tooltips and the frame of a specification.

Every colour is a CSS variable of the page's style sheet, so that charts follow dark mode and print without being drawn
again. Every chart has the parameter `shown`, the methods to show, which the page sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray
from napsets.evaluation.judgement import evenness, gaps_of
from napsets.evaluation.metrics import GroupCoverage, mean_and_error, rows_of_parts
from napsets.evaluation.results import MethodResult
from napsets.evaluation.verdict_words import level_labels
from napsets.levels import chance_band, coverage_band

if TYPE_CHECKING:
    from napsets.report.page import Page

Row = dict[str, Any]
Table = tuple[str, Sequence[Mapping[str, Any]]]
#: A value and the ends of its 95 % interval.
Ends = tuple[float, float, float]

#: The 97.5 % point of the normal distribution: intervals are 95 % ones.
Z = 1.959963984540054


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share."""
    if count == 0:
        return math.nan, math.nan
    share, weight = hits / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_ends(values: npt.NDArray[Any]) -> Ends:
    """Return the mean with its 95 % interval."""
    mean, error = mean_and_error(values)
    room = 0.0 if math.isnan(error) else Z * error
    return mean, mean - room, mean + room


def median_ends(values: npt.NDArray[Any]) -> Ends:
    """Return the median with its 95 % interval, which lies between two of the ordered values."""
    ordered = np.sort(values)
    half, middle = Z * math.sqrt(ordered.size) / 2, (ordered.size - 1) / 2
    low, high = max(0, math.floor(middle - half)), min(ordered.size - 1, math.ceil(middle + half))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])


def share_row(covered: BoolArray) -> Row:
    """Return coverage with its 95 % interval."""
    low, high = wilson(float(covered.sum()), covered.size)
    return {"coverage": float(covered.mean()) if covered.size else math.nan, "low": low, "high": high}


def method_rows(page: Page) -> list[Row]:
    """Return the metrics of each method, its coverage with an interval, and its worst and best neighbourhood."""
    comparison, rows = page.comparison, []
    parts = rows_of_parts(comparison.baseline.prediction, comparison.partition)
    held = sum(part.size for part in comparison.partition) / comparison.nodes.size
    for title, result, row, hits in zip(page.titles, comparison, comparison.rows(), page.covered, strict=True):
        shares = [float(hits[part].mean()) for part in parts]
        neighbourhoods = {
            "neighbourhoods": len(shares),
            "in_neighbourhoods": held,
            "lowest": min(shares, default=math.nan),
            "highest": max(shares, default=math.nan),
        }
        own = share_row(hits) | {"method": title, "name": result.name} | neighbourhoods
        rows.append(row | own | page.method_columns(result, hits, row))
    return rows


def curve_rows(page: Page) -> list[Row]:
    """Return measured and target coverage of each method at each error rate, and the sizes that the page shows."""
    rows = []
    for title, result in zip(page.titles, page.comparison, strict=True):
        curves = {"size": result.curve_size, **result.curves}
        for a, alpha in enumerate(page.comparison.alphas):
            share = float(result.curve_coverage[a])
            low, high = wilson(share * result.nodes, result.nodes)
            target = round(1.0 - alpha, 6)
            rows.append(
                {"method": title, "alpha": alpha, "target": target, "coverage": share}
                | {column: float(curves[name][a]) for column, name in page.curves.items()}
                | {"gap": share - target, "gap_low": low - target, "gap_high": high - target}
            )
    return rows


def band_rows(result: MethodResult, alphas: Sequence[float]) -> list[Row]:
    """Return where coverage less the target lies in 95 of 100 draws, if a method keeps its promise."""
    labels, rows = level_labels(result.calibrated), []
    for alpha in alphas:
        low, high = coverage_band(labels, alpha, result.nodes)
        target = round(1.0 - alpha, 6)
        rows.append({"target": target, "gap_low": low - target, "gap_high": high - target})
    return rows


def front_rows(page: Page, taken: str) -> tuple[list[Row], str]:
    """Return size and gap of each method, over the groups that the verdict looks at, and what those are in words."""
    comparison, rows = page.comparison, []
    kind, gaps = gaps_of(comparison)
    count = gaps[0].groups.size
    over = f"{count} {'neighbourhood' if kind == 'neighbourhood' else 'group'}{'s' * (count != 1)}"
    over += "" if kind == "neighbourhood" else " by degree"
    over += f" with {100 * gaps[0].share:.0f} % of the evaluation nodes"
    for title, result, gap in zip(page.titles, comparison, gaps, strict=True):
        spread = evenness(gap, replace(gap, coverage=np.full(gap.groups.size, 1.0 - comparison.alpha)))
        half = 0.0 if math.isnan(spread.low) else spread.high - spread.value
        size, low, high = page.size_ends(result.sizes)
        rows.append(
            {
                "method": title,
                "taken": result.name == taken,
                page.curve_size.field: size,
                "size_low": low,
                "size_high": high,
                "coverage": result.coverage,
                "gap": gap.gap,
                "gap_low": max(0.0, gap.gap - half),
                "gap_high": gap.gap + half,
                "chance": gap.chance,
                "excess": gap.excess,
            }
        )
    return rows, over


def group_rows(
    titles: Sequence[str], coverages: Sequence[GroupCoverage], alpha: float, field: str, names: Sequence[str], size: str
) -> list[Row]:
    """Return coverage of each method in each group that has nodes, and where chance would put it.

    The name of a group stands in the column `field`, the mean size in it in the column `size`.
    """
    rows = []
    bands: dict[int, tuple[float, float]] = {}
    for title, grouped in zip(titles, coverages, strict=True):
        for g, name in enumerate(names):
            count, share = int(grouped.count[g]), float(grouped.coverage[g])
            if count == 0:
                continue
            low, high = wilson(share * count, count)
            if count not in bands:
                bands[count] = chance_band(count, 1.0 - alpha)
            row = {"method": title, field: name, "order": g, "nodes": count, "coverage": share, "low": low}
            row |= {"high": high, "chance_low": bands[count][0], "chance_high": bands[count][1]}
            rows.append(row | {size: float(grouped.mean_size[g])})
    return rows


def range_names(ends: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return ranges of whole numbers in words."""
    return [str(low) if low == high else f"{low}–{high}" for low, high in ends]


# -- specifications of Vega-Lite ---------------------------------------------------------------------------------------

Spec = dict[str, Any]
#: A column of a tooltip: field, title, number format or None.
Column = tuple[str, str, str | None]
Columns = Sequence[Column]

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

    def chart(self, height: int, layers: list[Spec], rows: list[Row] | None = None, **params: Any) -> Spec:
        """Return a chart as wide as its place on the page; `params` are more parameters that the page may set."""
        values = {"shown": self.titles} | params
        return frame(height, layers, rows) | {"params": [{"name": name, "value": values[name]} for name in values]}

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


def frame(height: int, layers: list[Spec], rows: list[Row] | None = None) -> Spec:
    """Return a chart as wide as its place on the page."""
    fit = {"type": "fit-x", "contains": "padding"}
    spec: Spec = {"width": "container", "height": height, "autosize": fit, "layer": layers}
    return spec if rows is None else spec | {"data": {"values": rows}}


def drawn(mark: str, encoding: Spec, rows: list[Row] | str | None = None, **style: Any) -> Spec:
    """Return a layer that draws the chart's rows or its own; a name stands for rows that the page fills in."""
    spec: Spec = {"mark": {"type": mark} | style, "encoding": encoding}
    if rows is None:
        return spec
    return spec | {"data": {"name": rows} if isinstance(rows, str) else {"values": rows}}


def layer(mark: str, encoding: Spec, *, rows: list[Row] | None = None, **style: Any) -> Spec:
    """Return a layer that draws the rows of the methods shown."""
    return {"transform": [{"filter": "indexof(shown, datum.method) >= 0"}]} | drawn(mark, encoding, rows, **style)


def between(encoding: Spec, channel: str, low: str, high: str) -> Spec:
    """Return the encoding of a span from one column to another, where a mark would be at its value."""
    return encoding | {channel: encoding[channel] | {"field": low}, f"{channel}2": {"field": high}}


def target_rule(value: float, channel: str) -> Spec:
    """Return the dashed line at the target."""
    return drawn("rule", {channel: {"datum": value}}, [{}], strokeDash=[4, 4], color="var(--target)", strokeWidth=1.5)


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


def tips(*columns: Column) -> list[Spec]:
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


def by_group(looks: Looks, rows: list[Row], field: str, title: str, target: float, *columns: Column) -> Spec:
    """Return coverage in groups, each mark over the band of chance of its group."""
    domain, tooltip = reach(rows, "coverage", include=target), tips(*INTERVAL_TIPS, *columns, *CHANCE_TIPS)
    place = {"x": ordinal(rows, field, title), "xOffset": looks.method | {"scale": {"paddingOuter": 0.4}}}
    marks = place | {"tooltip": tooltip, "y": coverage(domain=domain, target=target)}
    # Of sets by size, groups differ between methods: each mark has its own band.
    bands = between(marks, "y", "chance_low", "chance_high")
    band = layer("rule", bands, color="var(--band)", strokeWidth=11, clip=True)
    return looks.chart(300, [band, target_rule(target, "y"), looks.dots(marks | {"color": looks.colour}, 60)], rows)
