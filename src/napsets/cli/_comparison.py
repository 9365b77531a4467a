"""The tables that set methods side by side, by their sets or by their intervals."""

from __future__ import annotations

from typing import Any

from napsets.cli._output import number, table
from napsets.evaluation.verdict_words import whose_finite, wide

__all__ = ["comparison_table", "interval_comparison_table"]


def comparison_table(rows: list[dict[str, Any]]) -> Any:
    """Make a table from `Comparison.rows()`."""
    cells = [
        (
            row["title"],
            f"{100 * row['coverage']:.1f}±{row['coverage_se']:.1%}",
            f"{row['mean_size']:.2f}±{row['mean_size_se']:.2f}",
            number(row["size_given_coverage"], 2),
            number(row["sscv"], 3),
            number(row["pccv"], 3),
            *(f"{row[name]:.1%}" for name in ("singleton_rate", "empty_rate", "full_rate")),
        )
        for row in rows
    ]
    columns = ["method", "coverage", "mean size", "size|cov", "SSCV", "PCCV", "one", "empty", "full"]
    return table(_title(rows), columns, cells)


def interval_comparison_table(rows: list[dict[str, Any]]) -> Any:
    """Make a table from `IntervalComparison.rows()`."""
    cells = [
        (
            row["title"],
            f"{100 * row['coverage']:.1f}±{row['coverage_se']:.1%}",
            wide(row["mean_width"]),
            f"{wide(row['shared_width'])}±{wide(row['shared_width_se'])}",
            wide(row["median_width"]),
            f"{row['infinite_rate']:.1%}",
            *(number(row[f"gap_{kind}"], 3) for kind in ("degree", "prediction")),
            number(row["pccv"], 3),
        )
        for row in rows
    ]
    columns = ["method", "coverage", "mean width", "where finite", "median", "whole line"]
    columns += ["gap: degree", "prediction", "PCCV"]
    title = _title(rows)
    if rows[0]["shared"] < 1.0:
        whose = whose_finite({row["title"]: row["infinite_rate"] for row in rows})
        title += f"; the intervals of {whose} are finite on {rows[0]['shared']:.1%} of the nodes"
    return table(title, columns, cells)


def _title(rows: list[dict[str, Any]]) -> str:
    title = f"{rows[0]['nodes']:,} nodes at alpha = {rows[0]['alpha']:g}, {rows[0]['hops']} hops"
    if rows[0]["pccv_chance"] == rows[0]["pccv_chance"]:  # known; the same for all methods
        title += f"; by chance PCCV would be {number(rows[0]['pccv_chance'], 3)}"
    return title
