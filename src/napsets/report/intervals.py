"""The parts of a page about intervals of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from napsets.checks.text import percent, shown_name
from napsets.errors import InvalidInputError
from napsets.evaluation.kinds import groups_by_width
from napsets.evaluation.sentences import compared_methods
from napsets.predictions import PredictionIntervals
from napsets.report.charts import Column, Measure
from napsets.report.parts import Grouping, Parts, Shown, Table, fifths, typical
from napsets.report.rows import Row, Z, group_rows, grouped_by, is_skewed, median_ends, range_names, up_to_rows

#: How sentences write widths and targets, and how charts do.
wide = PredictionIntervals.size_text
FORM = ".3~g"


def interval_parts(shown: Shown, names: Sequence[str] | None) -> Parts:
    """Return the parts of a page that are about intervals."""
    if names is not None:
        raise InvalidInputError(f"`class_names` must be left out of a page about intervals; got {len(names)} names")
    comparison, titles, words = shown.comparison, shown.titles, shown.words
    sizes = [result.sizes for result in comparison]
    endless = dict(zip(titles, (result.infinite_rate for result in comparison), strict=True))
    shared, whose = float(comparison.finite.mean()), compared_methods(endless)
    mean: Column = ("mean_width", "Mean width", FORM)
    ends: list[Column] = [("from", "Widths from", None), ("to", "to", None)]
    of_width = _by_width(shown)
    prediction = fifths(
        shown, "prediction", comparison.predicted[comparison.nodes],
        lambda low, high: f"{wide(float(low))} to {wide(float(high))}",
        [("prediction", "The model's best guess", None), mean],
    )  # fmt: skip
    degree = fifths(
        shown, "degree", comparison.graph.degrees[comparison.nodes], lambda low, high: range_names([(low, high)])[0],
        [("degree", "Neighbours", None), mean],
    )  # fmt: skip
    return Parts(
        class_names=[],
        size=Measure("median_width", "Median width", FORM),
        ball_size=Measure("width", "Mean width", FORM),
        ends=[median_ends(values) for values in sizes],
        curves=[("median_width", "median"), ("infinite_rate", "infinite")],
        groupings=[
            prediction,
            degree,
            Grouping("by-width", "fifth", of_width, [("fifth", "Fifth", None), mean, *ends]),
        ],
        up_to=up_to_rows(titles, sizes, "width"),
        up_to_measure=Measure("width", "Width of an interval", FORM),
        skewed=is_skewed(sizes),
        about=(("target", "Mean value", FORM), lambda inside: float(shown.truth[inside].mean())),
        columns=_columns(shown),
        table=lambda rows: Table(
            [
                ("Method", ""),
                (
                    "Coverage",
                    f"share of intervals that contain the true {words.label}, ± 1.96 standard errors in points",
                ),
                ("Average width", "infinite where one interval is, ± 1.96 standard errors"),
                (
                    "Width where all are finite",
                    f"average width on the {percent(shared)} of the evaluation {words.nodes} where the intervals of "
                    f"{whose} are finite, ± 1.96 standard errors",
                ),
                ("Whole line", "share of intervals without ends"),
                ("Gap by degree", "mean distance from the target over fifths by degree; what chance alone gives"),
                ("By prediction", "the same over fifths by the model's best guess"),
                ("Lowest neighbourhood", "coverage of the neighbourhood covered least"),
            ],
            [
                [
                    (row["method"], ""),
                    (percent(row["coverage"]), f"± {100 * Z * row['coverage_se']:.1f}"),
                    (wide(row["mean_width"]), _error(row["mean_width_se"])),
                    (wide(row["shared_width"]), _error(row["shared_width_se"])),
                    (percent(row["infinite_rate"]), ""),
                    (f"{row['gap_degree']:.3f}", f"chance {row['chance_degree']:.3f}"),
                    (f"{row['gap_prediction']:.3f}", f"chance {row['chance_prediction']:.3f}"),
                    (percent(row["lowest"]), ""),
                ]
                for row in rows
            ],
        ),
        sizes=lambda rows: Table(
            [(name, "") for name in ("Method", "Lower quartile", "Median", "Upper quartile", "Points", "Whole line")],
            [
                [
                    (row["method"], ""),
                    *((wide(row[name]), "") for name in ("narrow", "median_width", "broad")),
                    (f"{row['points']:,}", percent(row["point_rate"])),
                    (f"{row['infinite']:,}", percent(row["infinite_rate"])),
                ]
                for row in rows
            ],
        ),
        cards=lambda focus, base: _cards(shown, focus, base),
        result=_result(shown),
        done=f"A model gave {words.each_node} a number, or a range of numbers. From these, napsets made an interval "
        f"for each {words.node}.",
        example=_example(shown),
        extremes=("a single point", "widest intervals"),
        details={"by_prediction": prediction.rows, "by_degree": degree.rows, "by_width": of_width, "shared": shared},
    )


def _by_width(shown: Shown) -> list[Row]:
    """Return coverage in fifths of each method's intervals by their own width, the narrowest first."""
    rows = []
    for title, result, hits in zip(shown.titles, shown.comparison, shown.covered(), strict=True):
        groups = groups_by_width(result.sizes)
        coverage = grouped_by(hits, result.sizes, groups)
        names = [str(g + 1) for g in range(coverage.count.size)]
        for row in group_rows([title], [coverage], shown.comparison.alpha, "fifth", names, "mean_width"):
            inside = result.sizes[groups == row["order"]]
            rows.append(row | {"from": wide(float(inside.min())), "to": wide(float(inside.max()))})
    return rows


def _columns(shown: Shown) -> list[Row]:
    """Return the interval of the shared width, and quartiles of the widths."""
    rows = []
    for result, (width, error) in zip(shown.comparison, shown.comparison.shared_sizes(), strict=True):
        room = 0.0 if math.isnan(error) else Z * error
        rows.append(
            {
                "size_low": width - room,
                "size_high": width + room,
                "points": int((result.sizes == 0.0).sum()),
                "narrow": float(np.quantile(result.sizes, 0.25, method="lower")),
                "broad": float(np.quantile(result.sizes, 0.75, method="lower")),
            }
        )
    return rows


def _cards(shown: Shown, focus: Row, base: Row) -> list[tuple[str, str, list[str]]]:
    def beside(value: str) -> str:
        return "" if base is focus else f"{base['method']} {value}"

    # Where both means are finite, no further note is needed.
    enough = math.isfinite(focus["mean_width"]) and math.isfinite(base["mean_width"])
    enough = enough or not math.isfinite(focus["shared_width"])
    against = beside(wide(base["shared_width"])) if math.isfinite(base["shared_width"]) else ""
    shared = f"where all are finite {wide(focus['shared_width'])}{' compared with ' * bool(against)}{against}"
    half = f"half of the intervals from {wide(focus['narrow'])} to {wide(focus['broad'])} wide"
    endless = f"intervals of {focus['nodes']:,} have no end, because too few calibration {shown.words.nodes} are near"
    return [
        ("Mean width", wide(focus["mean_width"]), [beside(wide(base["mean_width"])), "" if enough else shared]),
        ("Median width", wide(focus["median_width"]), [beside(wide(base["median_width"])), half]),
        ("The whole line", f"{focus['infinite']:,}", [endless]),
    ]


def _result(shown: Shown) -> str:
    intervals: PredictionIntervals = shown.prediction
    endless = float(np.isinf(intervals.widths).mean())
    half = float(np.quantile(intervals.widths, 0.5, method="higher"))
    if math.isinf(half):
        return f"{round(100 * endless)} of 100 intervals are the whole line."
    lines = f" {round(100 * endless)} of 100 are the whole line." if endless >= 0.005 else ""
    average = intervals.size_text(float(intervals.widths[np.isfinite(intervals.widths)].mean()))
    text = f"Half of the intervals are at most {intervals.size_text(half)} wide"
    return f"{text}; {'those that end' if lines else 'they'} are {average} wide on average.{lines}"


def _example(shown: Shown) -> str:
    intervals: PredictionIntervals = shown.prediction
    fits = intervals.contains_own(shown.truth) & np.isfinite(intervals.widths)
    row = typical(intervals.widths, fits, float(np.median(intervals.widths[fits])) if fits.any() else 0.0)
    if row is None:
        return ""
    ends = f"{intervals.lower[row]:.3g} to {intervals.upper[row]:.3g}"
    name, words = shown_name(str(shown.names[intervals.nodes[row]])), shown.words
    return f"For example, {words.node} {name} gets {ends}; the true {words.label} is {shown.truth[row]:.3g}."


def _error(error: float) -> str:
    return "" if math.isnan(error) else f"± {wide(Z * error)}"
