"""The numbers of a page as plain rows: methods, error rates, groups, neighbourhoods and sizes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.evaluation.gains import evenness, gaps_of
from napsets.evaluation.metrics import (
    GroupCoverage,
    finite_mean,
    groups_of_partition,
    mean_and_error,
    neighbourhood_partition,
    rows_of_parts,
)
from napsets.evaluation.results import Comparison, MethodResult
from napsets.levels import chance_band, coverage_band

#: A row of plain values, by the names of its columns.
Row = dict[str, Any]

#: The 97.5 % point of the normal distribution: intervals are 95 % ones.
Z = 1.959963984540054
#: Neighbourhoods with fewer nodes are not drawn; PCCV counts only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: Neighbourhoods that are drawn at most: the largest.
DRAWN_NEIGHBOURHOODS = 120
#: Set sizes that have a place of their own where classes are many.
MOST_SIZES = 12
#: Points of a curve of widths.
WIDTH_POINTS = 81
#: Widths are drawn on a logarithmic scale if the wide ones are this many times as wide as the narrow ones.
SKEWED = 20.0


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share."""
    if count == 0:
        return math.nan, math.nan
    share, weight = hits / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_ends(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean with its 95 % interval."""
    mean, error = mean_and_error(values)
    half = 0.0 if math.isnan(error) else Z * error
    return mean, mean - half, mean + half


def median_ends(values: FloatArray) -> tuple[float, float, float]:
    """Return the median with its 95 % interval, which lies between two of the ordered values."""
    ordered = np.sort(values)
    half, middle = Z * math.sqrt(ordered.size) / 2, (ordered.size - 1) / 2
    low, high = max(0, math.floor(middle - half)), min(ordered.size - 1, math.ceil(middle + half))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])


def method_rows(comparison: Comparison, titles: Sequence[str], covered: Sequence[BoolArray]) -> list[Row]:
    """Return the metrics of each method, its coverage with an interval, and its worst and best neighbourhood."""
    rows = []
    parts = rows_of_parts(comparison.baseline.prediction, comparison.partition)
    held = sum(part.size for part in comparison.partition) / comparison.nodes.size
    for title, result, row, hits in zip(titles, comparison, comparison.rows(), covered, strict=True):
        shares = [float(hits[part].mean()) for part in parts]
        low, high = wilson(float(hits.sum()), hits.size)
        own = {"coverage": float(hits.mean()), "low": low, "high": high, "method": title, "name": result.name}
        own |= {"neighbourhoods": len(shares), "in_neighbourhoods": held}
        rows.append(row | own | {"lowest": min(shares, default=math.nan), "highest": max(shares, default=math.nan)})
    return rows


def curve_rows(comparison: Comparison, titles: Sequence[str], curves: Sequence[tuple[str, str]]) -> list[Row]:
    """Return measured and target coverage of each method at each error rate.

    `curves` are more columns, each with the name of the curve that it holds.
    """
    rows = []
    for title, result in zip(titles, comparison, strict=True):
        for a, alpha in enumerate(comparison.alphas):
            share, target = float(result.curves["coverage"][a]), round(1.0 - alpha, 6)
            low, high = wilson(share * result.nodes, result.nodes)
            row = {"method": title, "alpha": alpha, "target": target, "coverage": share}
            row |= {column: float(result.curves[name][a]) for column, name in curves}
            rows.append(row | {"gap": share - target, "gap_low": low - target, "gap_high": high - target})
    return rows


def band_rows(result: MethodResult, alphas: Sequence[float]) -> list[Row]:
    """Return where coverage less the target lies in 95 of 100 draws, if a method keeps its promise."""
    labels, rows = result.calibrated.level_size, []
    for alpha in alphas:
        low, high = coverage_band(labels, alpha, result.nodes)
        target = round(1.0 - alpha, 6)
        rows.append({"target": target, "gap_low": low - target, "gap_high": high - target})
    return rows


def front_rows(
    comparison: Comparison, titles: Sequence[str], taken: str, size: str, ends: Sequence[tuple[float, float, float]]
) -> tuple[list[Row], str]:
    """Return size and gap of each method, over the groups that the verdict looks at, and these groups in words.

    `size` is the column of the sizes, `ends` those of each method with their intervals.
    """
    kind, gaps = gaps_of(comparison)
    count, rows = gaps[0].groups.size, []
    over = f"{count} {'neighbourhood' if kind == 'neighbourhood' else 'group'}{'s' * (count != 1)}"
    over += "" if kind == "neighbourhood" else " by degree"
    for title, result, gap, (middle, low, high) in zip(titles, comparison, gaps, ends, strict=True):
        spread = evenness(gap, replace(gap, coverage=np.full(gap.groups.size, 1.0 - comparison.alpha)))
        half = 0.0 if math.isnan(spread.low) else spread.high - spread.value
        row = {"method": title, "taken": result.name == taken, size: middle, "size_low": low, "size_high": high}
        row |= {"coverage": result.coverage, "gap": gap.under, "gap_low": max(0.0, gap.under - half)}
        rows.append(row | {"gap_high": gap.under + half, "chance": gap.chance / 2})
    return rows, f"{over} with {100 * gaps[0].share:.0f} % of the evaluation nodes"


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


def grouped_by(covered: BoolArray, sizes: FloatArray, groups: IntArray) -> GroupCoverage:
    """Return coverage and the mean finite size in each group 0, 1, … of the rows."""
    parts = [np.flatnonzero(groups == g) for g in range(int(groups.max()) + 1)]
    return GroupCoverage(
        list(range(len(parts))),
        np.array([part.size for part in parts]),
        np.array([covered[part].mean() for part in parts]),
        np.array([finite_mean(sizes[part]) for part in parts]),
    )


def range_names(ends: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return ranges of whole numbers in words."""
    return [str(low) if low == high else f"{low}–{high}" for low, high in ends]


def weakest_first(rows: list[Row], title: str, weak: Sequence[str]) -> list[Row]:
    """Return rows of classes in another order: those named as weak, those below the chance band, the rest.

    Each part starts with what the method of this title covers least.
    """
    keys = {
        row["order"]: (row["class"] not in weak, row["coverage"] >= row["chance_low"], row["coverage"], -row["nodes"])
        for row in rows
        if row["method"] == title
    }
    place = {group: p for p, group in enumerate(sorted(keys, key=lambda group: (*keys[group], group)))}
    return sorted((row | {"order": place[row["order"]]} for row in rows), key=lambda row: row["order"])


# -- neighbourhoods ----------------------------------------------------------------------------------------------------


def neighbourhood_rows(
    comparison: Comparison, titles: Sequence[str], covered: Sequence[BoolArray], size: str
) -> tuple[list[Row], int]:
    """Return one row per neighbourhood with each method's coverage, and its mean size behind the word `size`.

    The column `rows` has the places of its nodes among those judged. Also returns how many of these are in none.
    """
    graph, nodes = comparison.graph, comparison.nodes
    parts = neighbourhood_partition(graph, nodes, min_size=DRAWN_SIZE, seed=comparison.settings["seed"])
    ball = groups_of_partition(parts[:DRAWN_NEIGHBOURHOODS], graph.num_nodes)
    own, rows = ball[nodes], []
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], np.arange(min(len(parts), DRAWN_NEIGHBOURHOODS) + 1))
    for b, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        inside = np.sort(order[first:last])
        row: Row = {"ball": b, "nodes": int(inside.size), "judged": bool(inside.size >= JUDGED_SIZE), "rows": inside}
        for title, result, hits in zip(titles, comparison, covered, strict=True):
            row[title] = float(hits[inside].mean())
            row[f"{title} {size}"] = finite_mean(result.sizes[inside])
        rows.append(row)
    return rows, int((own < 0).sum())


# -- sizes -------------------------------------------------------------------------------------------------------------


def set_size_rows(
    titles: Sequence[str], comparison: Comparison, covered: Sequence[BoolArray], num_classes: int
) -> list[Row]:
    """Count the sets of each size for each method, and those of them that contain the truth."""
    rows = []
    for title, result, hits in zip(titles, comparison, covered, strict=True):
        for size in range(num_classes + 1):
            inside = result.sizes == size
            if inside.any() or size <= int(result.sizes.max()):
                low, high = wilson(float(hits[inside].sum()), int(inside.sum()))
                share = float(hits[inside].mean()) if inside.any() else math.nan
                row = {"method": title, "size": size, "nodes": int(inside.sum()), "share": float(inside.mean())}
                rows.append(row | {"coverage": share, "low": low, "high": high})
    return rows


def set_size_groups(rows: list[Row], num_classes: int, target: float) -> list[Row]:
    """Return rows of set sizes, ranges of them where classes are many, with where chance would put coverage.

    Full sets keep a place of their own, because they are uninformative.
    """
    starts = list(range(num_classes + 1)) if num_classes <= MOST_SIZES else list(range(6))
    while starts[-1] < num_classes:
        starts.append(min(num_classes, starts[-1] + max(1, starts[-1] // 2)))
    groups: dict[tuple[str, int], Row] = {}
    for row in rows:
        g = bisect_right(starts, row["size"]) - 1
        last = starts[g + 1] - 1 if g + 1 < len(starts) else num_classes
        new = {"method": row["method"], "sizes": range_names([(starts[g], last)])[0], "order": g, "size": starts[g]}
        group = groups.setdefault((row["method"], g), new | {"nodes": 0, "hits": 0.0})
        group["nodes"] += row["nodes"]
        group["hits"] += row["nodes"] * row["coverage"] if row["nodes"] else 0.0
    for group in groups.values():
        count, hits = group["nodes"], group.pop("hits")
        (low, high), chance = wilson(hits, count), chance_band(count, target) if count else (math.nan, math.nan)
        group |= {"coverage": hits / count if count else math.nan, "low": low, "high": high}
        group |= {"chance_low": chance[0], "chance_high": chance[1]}
    return list(groups.values())


def up_to_rows(titles: Sequence[str], sizes: Sequence[npt.NDArray[Any]], field: str) -> list[Row]:
    """Return, for some sizes, the share of each method's predictions up to that size; infinite ones never are."""
    rows = []
    for title, values in zip(titles, sizes, strict=True):
        finite = np.sort(values[np.isfinite(values)])
        places = np.unique(np.linspace(0, finite.size - 1, min(WIDTH_POINTS, finite.size)).astype(np.int64))
        if finite.dtype.kind in "iu":  # sizes of sets, each of which has its step
            places = np.searchsorted(finite, np.unique(finite))
        # Of equal sizes, the last place is used: count every prediction up to this size.
        shares = np.searchsorted(finite, finite[places], side="right") / max(values.size, 1)
        for value, share in zip(finite[places].tolist(), shares.tolist(), strict=True):
            rows.append({"method": title, field: value, "share": share})
    return rows


def is_skewed(sizes: Sequence[FloatArray]) -> bool:
    """Return whether the widest twentieth of all finite intervals is many times as wide as the narrowest."""
    widths = np.concatenate([own[np.isfinite(own)] for own in sizes])
    if not widths.size or widths.min() <= 0.0:  # a point has no place on a logarithmic scale
        return False
    low, high = np.quantile(widths, [0.05, 0.95])
    return bool(high > SKEWED * low)
