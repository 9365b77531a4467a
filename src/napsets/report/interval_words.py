"""The sentences and table cells of a page about intervals."""

from __future__ import annotations

import math

from napsets.evaluation.verdict_words import wide
from napsets.report.interval_data import IntervalReportData
from napsets.report.rows import Row
from napsets.report.words import PageWords, Pair, card, percent

__all__ = ["INTERVAL_WORDS", "interval_cards", "interval_table", "width_table"]

#: What the page's frame says of intervals.
INTERVAL_WORDS = PageWords(
    thing="interval",
    truths="targets",
    size="width",
    full="the whole line",
    gap="Coverage found minus coverage asked for, with 95 % bands. Shaded: where it lies in 95 of 100 draws if the "
    "method that the page is about keeps its promise.",
    scores="Weighted distribution of the calibration scores with the threshold and the score of the node's own target",
    sections=(
        ("methods", "Methods"),
        ("groups", "Groups"),
        ("neighbourhoods", "Neighbourhoods"),
        ("widths", "Widths"),
        ("calibration", "Calibration"),
    ),
    reasons={
        "random": "drawn at random",
        "too little support": "with too little support",
        "a single point": "whose interval is a single point",
        "widest intervals": "with the widest intervals",
    },
    ball=lambda ball: f"mean target {wide(ball['target'])}",
)


def interval_cards(data: IntervalReportData) -> list[Row]:
    """Return the headline numbers: a name, the value of the method that the page is about, what to hold beside it."""
    pair = Pair.of(data)
    base, local, beside = pair.base, pair.local, pair.beside
    # Where both means are finite, they say it all.
    whole = math.isfinite(local["mean_width"]) and math.isfinite(base["mean_width"])
    against = beside(wide(base["shared_width"])) if math.isfinite(base["shared_width"]) else ""
    where = f"where all are finite {wide(local['shared_width'])}{' against ' * bool(against)}{against}"
    whole = whole or not math.isfinite(local["shared_width"])
    half = f"half of the intervals from {wide(local['narrow'])} to {wide(local['broad'])} wide"
    endless = f"intervals of {local['nodes']:,} have no end, because too few calibration nodes are near"
    return [
        pair.coverage(data.alpha),
        card("Mean width", wide(local["mean_width"]), beside(wide(base["mean_width"])), "" if whole else where),
        *pair.worst(),
        card("Median width", wide(local["median_width"]), beside(wide(base["median_width"])), half),
        card("The whole line", f"{local['infinite']:,}", endless),
    ]


def interval_table(data: IntervalReportData) -> list[list[tuple[str, str]]]:
    """Return the comparison, one list a method, each cell with its note (an uncertainty, or nothing)."""
    return [
        [
            (row["method"], ""),
            (percent(row["coverage"]), f"± {100 * row['coverage_se']:.1f}"),
            (wide(row["mean_width"]), _error(row["mean_width_se"])),
            (wide(row["shared_width"]), _error(row["shared_width_se"])),
            (percent(row["infinite_rate"]), ""),
            *(
                (f"{row[f'gap_{kind}']:.3f}", f"chance {row[f'chance_{kind}']:.3f}")
                for kind in ("degree", "prediction")
            ),
            (percent(row["lowest"]), ""),
        ]
        for row in data.methods
    ]


def width_table(data: IntervalReportData) -> list[list[tuple[str, str]]]:
    """Return how wide intervals are and how many say nothing, one list a method."""
    return [
        [
            (row["method"], ""),
            *((wide(row[name]), "") for name in ("narrow", "median_width", "broad")),
            (f"{row['points']:,}", percent(row["point_rate"])),
            (f"{row['infinite']:,}", percent(row["infinite_rate"])),
        ]
        for row in data.methods
    ]


def _error(error: float) -> str:
    return "" if error != error else f"± {wide(error)}"
