"""The page's sentences and table cells: numbers made readable, and no claim that the numbers do not make."""

from __future__ import annotations

import math
from typing import Any

from napsets.report.data import ReportData, Row

__all__ = ["cards", "cell", "headline", "method_table", "percent", "summary_table"]


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, an en dash where there is none.

    Examples
    --------
    >>> percent(0.9012)
    '90.1 %'
    """
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def number(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals, an en dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def cell(value: Any) -> str:
    """Return what stands in a cell of a table given by the user."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value, 3)
    return str(value)


def headline(data: ReportData) -> str:
    """Return the result in one sentence, APS beside NAPS."""
    aps, naps = data.methods[0], data.methods[1]
    return (
        f"Asked to contain the true label {percent(1 - data.alpha, 0)} of the time, NAPS sets do so for "
        f"{percent(naps['coverage'])} of {naps['nodes']:,} nodes with {number(naps['mean_size'])} labels on average; "
        f"APS, which ignores the graph, for {percent(aps['coverage'])} with {number(aps['mean_size'])}."
    )


def cards(data: ReportData) -> list[Row]:
    """Return the headline numbers: a name, NAPS's value, and what to hold beside it."""
    aps, naps = data.methods[0], data.methods[1]
    target = 1 - data.alpha
    found = [
        _card("Coverage", percent(naps["coverage"]), f"target {percent(target, 0)}, APS {percent(aps['coverage'])}"),
        _card(
            "Labels in a set",
            number(naps["mean_size"]),
            f"APS {number(aps['mean_size'])}; where NAPS has support {number(naps['supported_size'])}, "
            f"APS {number(aps['supported_size'])}",
        ),
        _card(
            "One label only",
            percent(naps["singleton_rate"]),
            f"APS {percent(aps['singleton_rate'])}",
        ),
        _card(
            "Too little support",
            f"{naps['infinite']:,}",
            f"nodes of {naps['nodes']:,} get every label, because too few calibration nodes are near",
        ),
    ]
    if naps["neighbourhoods"]:
        worst = _card(
            "Worst neighbourhood",
            percent(naps["lowest"]),
            f"of its nodes covered, APS {percent(aps['lowest'])}; {naps['neighbourhoods']} neighbourhoods compared",
        )
        found.insert(2, worst)
    return found


def _card(name: str, value: str, note: str) -> Row:
    return {"name": name, "value": value, "note": note}


def method_table(data: ReportData) -> list[list[tuple[str, str]]]:
    """Return the comparison, one list a method, each cell with its note (an uncertainty, or nothing)."""
    return [
        [
            (row["method"], ""),
            (percent(row["coverage"]), f"± {100 * row['coverage_se']:.1f}"),
            (number(row["mean_size"]), f"± {number(row['mean_size_se'])}"),
            (number(row["size_given_coverage"]), ""),
            (number(row["supported_size"]), ""),
            (number(row["sscv"], 3), ""),
            (number(row["pccv"], 3), ""),
            (percent(row["lowest"]), ""),
        ]
        for row in data.methods
    ]


def summary_table(data: ReportData) -> list[list[tuple[str, str]]]:
    """Return empty, one-label and full sets and missing support, counted, one list a method."""
    return [
        [
            (row["method"], ""),
            (f"{row['empty']:,}", percent(row["empty_rate"])),
            (f"{row['singletons']:,}", percent(row["singleton_rate"])),
            (f"{row['full']:,}", percent(row["full_rate"])),
            (f"{row['infinite']:,}", percent(row["infinite"] / row["nodes"])),
        ]
        for row in data.methods
    ]
