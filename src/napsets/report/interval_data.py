"""What the page about intervals shows, as plain rows: computed by pure functions, rendered elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray
from napsets.evaluation.interval_comparison import IntervalComparison, IntervalResult
from napsets.evaluation.metrics import GroupCoverage
from napsets.evaluation.promises import coverage_band, level_labels
from napsets.evaluation.verdict import Verdict
from napsets.evaluation.verdict_words import whose_finite, wide
from napsets.groups import by_quantiles
from napsets.report.interval_explorer import IntervalExplorer, interval_explorer
from napsets.report.record import record_of
from napsets.report.rows import (
    Row,
    Table,
    Z,
    check_curve,
    cover_rows,
    curve_rows,
    cut_balls,
    facts,
    finite_mean,
    front_rows,
    group_rows,
    node_names,
    range_names,
)
from napsets.report.shown import ShownMethod, focus, shown_methods

__all__ = ["IntervalReportData", "interval_page_data", "is_skewed", "width_rows"]

#: Points of the curve that says how many intervals are at most so wide.
WIDTH_POINTS = 81
#: Widths are drawn on a logarithmic scale where the wide ones are so many times as wide as the narrow ones.
SKEWED = 20.0


@dataclass(frozen=True, eq=False)
class IntervalReportData:
    """Everything that stands on the page.

    Attributes
    ----------
    title, facts, alpha, hops, comparison, verdict, shown, front, front_over, balls, links, left_out, record, tables
        As in `ReportData`.
    methods, curve : list of dict
        Rows: a method each, and a method and an alpha each.
    band : list of dict
        At each alpha, where chance puts the coverage of the method that the page is about, if it keeps its promise.
    widths : list of dict
        Rows of how many of a method's intervals are at most so wide.
    skewed : bool
        Whether widths want a logarithmic scale.
    by_width, by_prediction, by_degree : list of dict
        Rows: a method and a fifth of its intervals by their own width, of the nodes by the model's best guess, and by
        degree, each.
    shared : float
        The share of the judged nodes where the intervals of all methods are finite.
    shared_by : str
        Those methods in words: all, or all but those that make whole lines alone.
    explorer : IntervalExplorer
        Some nodes with all that explains their intervals.
    """

    title: str
    facts: list[tuple[str, str]]
    alpha: float
    hops: int
    comparison: IntervalComparison
    verdict: Verdict
    shown: list[ShownMethod]
    methods: list[Row]
    curve: list[Row]
    band: list[Row]
    widths: list[Row]
    skewed: bool
    by_width: list[Row]
    by_prediction: list[Row]
    by_degree: list[Row]
    front: list[Row]
    front_over: str
    shared: float
    shared_by: str
    balls: list[Row]
    links: list[Row]
    left_out: int
    explorer: IntervalExplorer
    record: Row
    tables: list[Table] = field(default_factory=list)


def interval_page_data(
    comparison: IntervalComparison,
    *,
    ids: ArrayLike | None = None,
    title: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    tables: Sequence[Table] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> IntervalReportData:
    """Compute the page's contents; the parameters are those of `page_data`."""
    found = comparison
    check_curve(found)
    shown, verdict = shown_methods(found), found.verdict()
    about = focus(found, verdict)
    front, front_over = front_rows(found, shown, verdict, found.shared_widths(), "shared_width")
    balls = cut_balls(found)
    nodes, sizes = found.nodes, [result.sizes for result in found]
    return IntervalReportData(
        title=title or (f"Prediction intervals for {dataset}" if dataset else "Prediction intervals on a graph"),
        facts=facts(found, dataset, model),
        alpha=found.alpha,
        hops=found.hops,
        comparison=found,
        verdict=verdict,
        shown=shown,
        methods=_method_rows(found, shown),
        curve=curve_rows(found, shown, {"median_width": "curve_median", "infinite_rate": "curve_infinite"}),
        band=_band(found, found.results[about]),
        widths=width_rows(shown, sizes),
        skewed=is_skewed(sizes),
        by_width=_by_width(found, shown),
        by_prediction=_by(found, shown, "prediction", found.predicted[nodes], _number_ranges),
        by_degree=_by(found, shown, "degree", found.graph.degrees[nodes], range_names),
        front=front,
        front_over=front_over,
        shared=float(found.finite.mean()),
        shared_by=whose_finite(dict(zip((one.title for one in shown), (r.infinite_rate for r in found), strict=True))),
        balls=balls.rows(found, shown, lambda inside: {"target": float(found.targets[nodes[inside]].mean())}, "width"),
        links=balls.links,
        left_out=balls.left_out,
        explorer=interval_explorer(found, names=node_names(found, ids), ball=balls.of_node, focus=about),
        record=record_of(found, {"task": "regression", **(settings or {})}, found.results[about].name),
        tables=list(tables or []),
    )


def _method_rows(found: IntervalComparison, shown: Sequence[ShownMethod]) -> list[Row]:
    rows = []
    for result, row in zip(found, cover_rows(found, shown), strict=True):
        width, error = row["shared_width"], row["shared_width_se"]
        room = 0.0 if math.isnan(error) else Z * error
        rows.append(
            row
            | {
                "size_low": width - room,
                "size_high": width + room,
                "points": int((result.sizes == 0.0).sum()),
                "narrow": float(np.quantile(result.sizes, 0.25, method="lower")),
                "broad": float(np.quantile(result.sizes, 0.75, method="lower")),
            }
        )
    return rows


def _band(found: IntervalComparison, result: IntervalResult) -> list[Row]:
    """Return where coverage less the target lies in 95 of 100 draws, if a method keeps its promise."""
    rows = []
    for alpha in found.alphas:
        low, high = coverage_band(level_labels(result.calibrated), alpha, result.nodes)
        target = round(1.0 - alpha, 6)
        rows.append({"target": target, "gap_low": low - target, "gap_high": high - target})
    return rows


def width_rows(shown: Sequence[ShownMethod], sizes: Sequence[FloatArray]) -> list[Row]:
    """Return which share of each method's intervals is at most so wide, at some widths; infinite ones at none."""
    rows = []
    for method, widths in zip(shown, sizes, strict=True):
        finite = np.sort(widths[np.isfinite(widths)])
        places = np.unique(np.linspace(0, finite.size - 1, min(WIDTH_POINTS, finite.size)).astype(np.int64))
        # Of equal widths the last place counts: so many are at most so wide.
        shares = np.searchsorted(finite, finite[places], side="right") / max(widths.size, 1)
        for width, share in zip(finite[places].tolist(), shares.tolist(), strict=True):
            rows.append({"method": method.title, "width": width, "share": share})
    return rows


def is_skewed(sizes: Sequence[FloatArray]) -> bool:
    """Return whether the widest twentieth of all finite intervals is many times as wide as the narrowest.

    Examples
    --------
    >>> is_skewed([np.array([1.0, 2.0, 3.0])]), is_skewed([np.array([0.01, 1.0, 100.0])])
    (False, True)
    """
    widths = np.concatenate([each[np.isfinite(each)] for each in sizes])
    if not widths.size or widths.min() <= 0.0:  # a point has no place on a logarithmic scale
        return False
    low, high = np.quantile(widths, [0.05, 0.95])
    return bool(high > SKEWED * low)


def _by(
    found: IntervalComparison,
    shown: Sequence[ShownMethod],
    name: str,
    values: npt.NDArray[Any],
    called: Callable[[Sequence[Any]], list[str]],
) -> list[Row]:
    """Return coverage in fifths of the judged nodes by a number that each has."""
    groups = by_quantiles(values, 5)
    count = int(groups.max()) + 1
    ends = [(values[groups == g].min(), values[groups == g].max()) for g in range(count)]
    grouped = [_coverage(found, result, groups, count) for result in found]
    return _as_width(group_rows(shown, grouped, found.alpha, name, called(ends)))


def _by_width(found: IntervalComparison, shown: Sequence[ShownMethod]) -> list[Row]:
    """Return coverage in fifths of each method's intervals by their own width, the narrowest first."""
    rows = []
    for method, result in zip(shown, found, strict=True):
        groups = by_quantiles(result.sizes.astype(np.float32), 5)
        count = int(groups.max()) + 1
        grouped = _coverage(found, result, groups, count)
        mine = _as_width(group_rows([method], [grouped], found.alpha, "fifth", [str(g + 1) for g in range(count)]))
        for row in mine:
            inside = result.sizes[groups == row["order"]]
            row |= {"from": wide(float(inside.min())), "to": wide(float(inside.max()))}
        rows += mine
    return rows


def _coverage(
    found: IntervalComparison, result: IntervalResult, groups: npt.NDArray[np.int64], count: int
) -> GroupCoverage:
    """Return coverage and the mean finite width in each group of the judged nodes."""
    covered = result.intervals.contains(found.targets)
    inside = [groups == g for g in range(count)]
    return GroupCoverage(
        list(range(count)),
        np.array([mine.sum() for mine in inside]),
        np.array([covered[mine].mean() for mine in inside]),
        np.array([finite_mean(result.sizes[mine]) for mine in inside]),
    )


def _as_width(rows: list[Row]) -> list[Row]:
    """Return rows whose size is called a width."""
    return [{("mean_width" if key == "mean_size" else key): value for key, value in row.items()} for row in rows]


def _number_ranges(ends: Sequence[Any]) -> list[str]:
    return [f"{wide(float(low))} to {wide(float(high))}" for low, high in ends]
