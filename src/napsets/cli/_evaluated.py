"""What ``napsets evaluate`` says of sets and of intervals alike."""

from __future__ import annotations

from typing import Any

from napsets.cli._output import number, percent, table

__all__ = ["caveats", "coverage_table", "gap_tables", "pccv_rows"]

#: What groups may be by, in the order of the table.
_KINDS = ("class", "degree", "neighbourhood", "width", "group")
#: PCCV is the worst of so many averages; over fewer, or over a smaller share of the nodes, it says little of the rest.
_MANY_NEIGHBOURHOODS = 10
_MOST_NODES = 0.5


def caveats(result: dict[str, Any], *, radius: int, min_size: int) -> list[str]:
    """Say where PCCV is missing or means little, and why."""
    count, share = result.get("neighbourhoods"), result.get("share_in_neighbourhoods", 1.0)
    if count is None or (count >= _MANY_NEIGHBOURHOODS and share >= _MOST_NODES):
        return []
    what = "PCCV is not known" if count == 0 else "PCCV means little"
    return [
        f"{what}: {count} neighbourhood{'s' * (count != 1)} of radius {radius} with at least {min_size} judged "
        f"nodes hold{'s' * (count == 1)} {percent(share)} of those nodes. Judge more nodes, or count smaller "
        f"neighbourhoods (--min-size {max(min_size // 3, 1)})"
    ]


def pccv_rows(result: dict[str, Any], what: str) -> list[tuple[str, str]]:
    """Return PCCV beside chance, where there is a graph."""
    if "pccv" not in result:
        return []
    held = percent(result["share_in_neighbourhoods"])
    return [
        (f"PCCV ({result['neighbourhoods']} neighbourhoods, {held} of the nodes)", number(result["pccv"])),
        (f"PCCV by chance, if every {what} covered as asked for", number(result["pccv_chance"])),
    ]


def gap_tables(result: dict[str, Any]) -> list[Any]:
    """Return how far coverage is from what was asked for within groups, beside what chance gives."""
    names = ("gap", "chance", "under", "over", "worst", "worst_chance")
    rows = [
        (kind, *(number(result[f"{name}_{kind}"]) for name in names), percent(result[f"share_{kind}"]))
        for kind in _KINDS
        if f"gap_{kind}" in result
    ]
    columns = ["groups by", "gap", "by chance", "under", "over", "worst", "by chance", "of the nodes"]
    return [table("Mean |coverage − asked for| over groups", columns, rows)] if rows else []


def coverage_table(kind: str, rows: list[dict[str, Any]], size: str | None = None) -> Any:
    """Return coverage by group, with the mean size or width where it is known."""
    columns = [kind, "nodes", "coverage", *([] if size is None else [size.replace("_", " ")])]
    shown = [
        (
            row["group"],
            number(row.get("nodes", row.get("count"))),
            percent(row["coverage"]),
            *([] if size is None else [number(row[size], 3)]),
        )
        for row in rows
    ]
    return table(f"Coverage by {kind}", columns, shown)
