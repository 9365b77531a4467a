"""The page about coverage over time: what ``napsets evaluate --in-order`` found, in the report's style."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from napsets.report.html import as_json, check_place, filled, write_text
from napsets.report.rows import Row

#: The decimal logarithm of the capital at which an alarm is raised.
_RAISED = 2.0


def over_time_charts(result: Mapping[str, Any], alpha: float, noun: str = "set") -> dict[str, Row]:
    """Return the charts of what ``evaluate --in-order`` found (figures and ``over_time``) by their names."""
    import altair as alt

    from napsets.report.charts import Column, Spec, number, of_rows, reach, rule, share, spec, tips

    rows: list[Row] = [
        point | dict(zip(("low", "high"), point["coverage_interval"], strict=True)) for point in result["over_time"]
    ]
    window, size = result["window"], "Mean size" if noun == "set" else "Mean width"
    x = number(alt.X, "labels", "Labels so far", form="~s")

    def lines(fields: Sequence[str], title: str, *under: alt.Chart, include: float | None = None) -> Spec:
        domain = reach(rows, *fields, include=rows[0][fields[0]] if include is None else include)
        columns: list[Column] = [("labels", "Labels", ",d"), *((name, title, ".3~f") for name in fields)]
        layers = [
            of_rows()
            .mark_line(color=f"var(--method-{place})", strokeWidth=2, point=not place)
            .encode(x=x, y=number(alt.Y, name, title, domain=domain), tooltip=tips(*columns))
            for place, name in enumerate(fields)
        ]
        return spec(260, rows, *under, *layers)

    y = share(alt.Y, "coverage", reach(rows, "coverage", "recent_coverage", include=1.0 - alpha), 1.0 - alpha)
    tooltip = tips(
        ("labels", "Labels", ",d"), ("coverage", "Coverage", ".1%"), ("low", "95 % from", ".1%"), ("high", "to", ".1%"),
        ("recent_coverage", "Of the last labels", ".1%"), ("recent_size", "Mean size of these", ".3~f"),
    )  # fmt: skip
    dots = {"filled": True, "size": 16, "color": "var(--method-0)"}
    coverage = [
        # The interval is wide at first: it is cut where the axis ends.
        of_rows().mark_area(color="var(--band)", clip=True).encode(x=x, y=y.field("low"), y2="high"),
        rule(1.0 - alpha, "y"),
        of_rows().mark_line(color="var(--method-1)", opacity=0.7).encode(x=x, y=y.field("recent_coverage")),
        of_rows().mark_line(color="var(--method-0)", strokeWidth=2, point=dots).encode(x=x, y=y, tooltip=tooltip),
    ]
    # The evidence on coverage is not known for files that do not record how many labels set the level.
    known = [name for name in ("log10_coverage", "log10_exchangeability") if rows[-1][name] is not None]
    pictures = {
        "coverage": spec(260, rows, *coverage),
        "size": lines(["mean_size", "recent_size"], f"{size} so far, and of the last {window}"),
        "alarms": lines(known, "Evidence, powers of ten", rule(_RAISED, "y"), include=_RAISED),
    }
    if rows and rows[-1]["label_delay"] is not None:
        rows = [row for row in rows if row["label_delay"] is not None]
        pictures["delay"] = lines(["label_delay"], f"Median delay of the last {window} labels", include=0.0)
    return pictures


def write_over_time(
    path: str | os.PathLike[str],
    result: Mapping[str, Any],
    alpha: float,
    noun: str,
    figures: Sequence[tuple[str, str]],
) -> Path:
    """Write a page about coverage over time; `figures` stand beside the charts.

    The other parameters are those of `over_time_charts`.
    """
    check_place(path)
    specs = over_time_charts(result, alpha, noun)
    page = filled(
        "over_time.html.j2", title=f"{noun.capitalize()}s over time", noun=noun, window=result["window"], alpha=alpha,
        pictures=list(specs), figures=figures, specs=as_json(specs),
    )  # fmt: skip
    return write_text(path, page)
