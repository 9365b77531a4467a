"""How predictions did over time: a page with coverage, size, alarms and the delay of labels, in the report's style."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napsets.errors import MissingDependencyError
from napsets.files.places import replacing
from napsets.report.chart_data import Row
from napsets.report.encodings import Spec, coverage, number_axis, reach, target_rule, tips
from napsets.report.page import ASSETS, check_place, library
from napsets.report.record import as_json

#: The decimal logarithm of the capital at which an alarm rings.
_RINGS = 2.0
_TIPS = tips(
    ("labels", "Labels", ",d"), ("coverage", "Coverage", ".1%"), ("low", "95 % from", ".1%"), ("high", "to", ".1%"),
    ("recent_coverage", "Of the last labels", ".1%"), ("recent_size", "Mean size of these", ".3~f"),
)  # fmt: skip


def over_time_charts(result: dict[str, Any], alpha: float, noun: str = "set") -> dict[str, Spec]:
    """Return the charts by their names.

    Parameters
    ----------
    result : dict
        What ``evaluate --in-order`` found: figures and ``over_time``, points in time.
    alpha : float
        The error rate that is promised.
    noun : str
        What the predictions are called: set or interval.
    """
    rows: list[Row] = []
    for point in result["over_time"]:
        low, high = point["coverage_interval"]
        rows.append(point | {"low": low, "high": high})
    window, size = result["window"], "Mean size" if noun == "set" else "Mean width"
    x = number_axis("labels", "Labels so far", form="~s")
    share = coverage("coverage", reach(rows, "coverage", "recent_coverage", include=1.0 - alpha), target=1.0 - alpha)
    # The interval is wide at first: it is cut where the axis ends.
    ends = {"y": share | {"field": "low"}, "y2": {"field": "high"}}
    charts = {
        "coverage": [
            _drawn("area", {"x": x, **ends}, color="var(--band)", clip=True),
            target_rule(1.0 - alpha, "y"),
            _drawn("line", {"x": x, "y": share | {"field": "recent_coverage"}}, color="var(--method-1)", opacity=0.7),
            _drawn("line", {"x": x, "y": share, "tooltip": _TIPS}, color="var(--method-0)", strokeWidth=2, point=True),
        ],
        "size": _lines(x, rows, ("mean_size", "recent_size"), f"{size} so far, and of the last {window}"),
        "alarms": [
            target_rule(_RINGS, "y"),
            *_lines(x, rows, ("log10_coverage", "log10_exchangeability"), "Evidence, powers of ten", _RINGS),
        ],
    }
    if rows and rows[-1]["label_delay"] is not None:
        known = [row for row in rows if row["label_delay"] is not None]
        charts["delay"] = _lines(x, known, ("label_delay",), f"Median delay of the last {window} labels", include=0.0)
    return {name: _chart(layers, rows) for name, layers in charts.items()}


def _lines(x: Spec, rows: list[Row], fields: tuple[str, ...], title: str, include: float | None = None) -> list[Spec]:
    """Return one line for each of some columns."""
    domain = reach(rows, *fields, include=rows[0][fields[0]] if include is None else include)
    return [
        _drawn(
            "line",
            {
                "x": x,
                "y": number_axis(field, title, domain=domain),
                "tooltip": tips(("labels", "Labels", ",d"), (field, title, ".3~f")),
            },
            color=f"var(--method-{place})", strokeWidth=2, point=place == 0,
        )
        for place, field in enumerate(fields)
    ]  # fmt: skip


def _drawn(mark: str, encoding: Spec, **style: Any) -> Spec:
    if style.get("point"):
        style["point"] = {"filled": True, "size": 16, "color": style["color"]}
    return {"mark": {"type": mark} | style, "encoding": encoding}


def _chart(layers: list[Spec], rows: list[Row]) -> Spec:
    fit = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": 260, "autosize": fit, "layer": layers, "data": {"values": rows}}


#: What each picture shows: a heading, and a sentence or two.
_WORDS = {
    "coverage": (
        "Coverage",
        "The line with dots is the share of {noun}s so far that contain their label; the shaded interval holds at all "
        "times together with 95 % confidence. The plain line is the share among the last {window}. The dashed line is "
        "the target.",
    ),
    "size": ("Size", "The line with dots is the mean {size} so far, the plain line that of the last {window} {noun}s."),
    "alarms": (
        "Alarms",
        "The line with dots is the evidence that {noun}s miss more often than {alpha:.3g} of the time, the plain line "
        "the evidence that the order of the labels matters. An alarm is raised where a line reaches 2, the dashed "
        "line. A false alarm has a chance of at most 1 %, over all time.",
    ),
    "delay": (
        "Delay of labels",
        "How many labels came between a {noun} and its own label: the median over the last {window}.",
    ),
}


def write_over_time(
    path: str | os.PathLike[str],
    result: dict[str, Any],
    alpha: float,
    noun: str,
    figures: Sequence[tuple[str, str]],
) -> Path:
    """Write the page.

    Parameters
    ----------
    path : str or path
        Where to, ending in .html.
    result, alpha, noun
        As in `over_time_charts`.
    figures : sequence of pairs of str
        The figures that stand beside the pictures: what each is, and its value.
    """
    check_place(path)
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError("jinja2", "report") from error
    charts = over_time_charts(result, alpha, noun)
    size = "size" if noun == "set" else "width"
    words = {
        name: (title, text.format(noun=noun, window=result["window"], size=size, alpha=alpha))
        for name, (title, text) in _WORDS.items()
        if name in charts
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("over_time.html.j2").render(
        title=f"{noun.capitalize()}s over time",
        words=words,
        figures=figures,
        specs=as_json(charts),
        style=(ASSETS / "report.css").read_text(encoding="utf-8"),
        library=library(),
    )
    with replacing(Path(path)) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)
