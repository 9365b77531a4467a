"""The rows that charts and tables of a page are made from, whatever is predicted: computed here, drawn elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray
from napsets.evaluation.cautions import level_labels
from napsets.evaluation.judgement import evenness, gaps_of
from napsets.evaluation.metrics import GroupCoverage, mean_and_error, rows_of_parts
from napsets.evaluation.results import Comparison, MethodResult
from napsets.evaluation.verdict_words import Verdict
from napsets.levels import chance_band, coverage_band

Row = dict[str, Any]
Table = tuple[str, Sequence[Mapping[str, Any]]]
#: A value and the ends of its 95 % interval.
Ends = tuple[float, float, float]

#: The 97.5 % point of the normal distribution: intervals are 95 % ones.
Z = 1.959963984540054


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(90, 100)]
    [0.826, 0.945]
    """
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
    """Return the median with its 95 % interval, which lies between two of the ordered values.

    Examples
    --------
    >>> median_ends(np.arange(101.0))
    (50.0, 40.0, 60.0)
    >>> median_ends(np.array([1.0, 2.0, np.inf]))
    (2.0, 1.0, inf)
    """
    ordered = np.sort(values)
    half, middle = Z * math.sqrt(ordered.size) / 2, (ordered.size - 1) / 2
    low, high = max(0, math.floor(middle - half)), min(ordered.size - 1, math.ceil(middle + half))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])


def share_row(covered: BoolArray) -> Row:
    """Return coverage with its 95 % interval."""
    low, high = wilson(float(covered.sum()), covered.size)
    return {"coverage": float(covered.mean()) if covered.size else math.nan, "low": low, "high": high}


def method_rows(comparison: Comparison, titles: Sequence[str], covered: Sequence[BoolArray]) -> list[Row]:
    """Return the metrics of each method, its coverage with an interval, and its worst and best neighbourhood."""
    parts = rows_of_parts(comparison.baseline.prediction, comparison.partition)
    held = sum(part.size for part in comparison.partition) / comparison.nodes.size
    rows = []
    for title, result, row, hits in zip(titles, comparison, comparison.rows(), covered, strict=True):
        shares = [float(hits[part].mean()) for part in parts]
        neighbourhoods = {
            "neighbourhoods": len(shares),
            "in_neighbourhoods": held,
            "lowest": min(shares, default=math.nan),
            "highest": max(shares, default=math.nan),
        }
        rows.append(row | share_row(hits) | {"method": title, "name": result.name} | neighbourhoods)
    return rows


def curve_rows(comparison: Comparison, titles: Sequence[str], sizes: Mapping[str, str]) -> list[Row]:
    """Return measured and target coverage of each method at each error rate, and some of its curves by column."""
    rows = []
    for title, result in zip(titles, comparison, strict=True):
        curves = {"size": result.curve_size, **result.curves}
        for a, alpha in enumerate(comparison.alphas):
            share = float(result.curve_coverage[a])
            low, high = wilson(share * result.nodes, result.nodes)
            target = round(1.0 - alpha, 6)
            rows.append(
                {"method": title, "alpha": alpha, "target": target, "coverage": share}
                | {column: float(curves[name][a]) for column, name in sizes.items()}
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


def front_rows(
    comparison: Comparison, titles: Sequence[str], verdict: Verdict, field: str, sizes: Sequence[Ends]
) -> tuple[list[Row], str]:
    """Return size and gap of each method, over the groups that the verdict looks at, and what those are in words.

    The sizes, with the ends of their 95 % intervals, stand in the columns `field`, `size_low` and `size_high`.
    """
    kind, gaps = gaps_of(comparison)
    count = gaps[0].groups.size
    over = f"{count} {'neighbourhood' if kind == 'neighbourhood' else 'group'}{'s' * (count != 1)}"
    over += "" if kind == "neighbourhood" else " by degree"
    over += f" with {100 * gaps[0].share:.0f} % of the evaluation nodes"
    rows = []
    for title, result, gap, (size, low, high) in zip(titles, comparison, gaps, sizes, strict=True):
        spread = evenness(gap, replace(gap, coverage=np.full(gap.groups.size, 1.0 - comparison.alpha)))
        half = 0.0 if math.isnan(spread.low) else spread.high - spread.value
        rows.append(
            {
                "method": title,
                "taken": result.name == verdict.method,
                field: size,
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
    """Return ranges of whole numbers in words.

    Examples
    --------
    >>> range_names([(0, 0), (1, 4)])
    ['0', '1–4']
    """
    return [str(low) if low == high else f"{low}–{high}" for low, high in ends]
