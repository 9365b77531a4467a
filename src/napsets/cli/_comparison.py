"""The table that sets methods side by side."""

from __future__ import annotations

from typing import Any

from napsets.cli._output import number, table

__all__ = ["comparison_table"]


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
    title = f"{rows[0]['nodes']:,} nodes at alpha = {rows[0]['alpha']:g}, {rows[0]['hops']} hops"
    if rows[0]["pccv_chance"] == rows[0]["pccv_chance"]:  # known; the same for all methods
        title += f"; by chance PCCV would be {number(rows[0]['pccv_chance'], 3)}"
    return table(title, columns, cells)
