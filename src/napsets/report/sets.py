"""The parts of a page about sets of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from napsets.checks.text import percent, shown_name
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import coverage_by_class, coverage_by_degree
from napsets.evaluation.results import finite_together
from napsets.predictions import PredictionSets
from napsets.report.charts import Column, Measure
from napsets.report.parts import Grouping, Parts, Shown, Table, typical
from napsets.report.rows import (
    Row,
    Z,
    group_rows,
    mean_ends,
    range_names,
    set_size_groups,
    set_size_rows,
    up_to_rows,
    weakest_first,
)
from napsets.report.words import number, quoted, sizes_text

#: Set sizes with fewer nodes are not drawn.
LEAST_NODES = 10


def set_parts(shown: Shown, classes: list[str]) -> Parts:
    """Return the parts of a page that are about sets."""
    comparison, titles, words, covered = shown.comparison, shown.titles, shown.words, shown.covered()
    target = 1.0 - comparison.alpha
    by_class = [coverage_by_class(result.prediction, comparison.truth) for result in comparison]
    by_degree = [coverage_by_degree(result.prediction, comparison.truth, comparison.graph) for result in comparison]
    degrees = range_names([pair for pair in by_degree[0].group if isinstance(pair, tuple)])
    of_class = group_rows(titles, by_class, comparison.alpha, "class", classes, "mean_size")
    of_class = weakest_first(of_class, titles[shown.place], shown.weak)
    of_degree = group_rows(titles, by_degree, comparison.alpha, "degree", degrees, "mean_size")
    of_size = set_size_rows(titles, comparison, covered, len(classes))
    sizes = set_size_groups(of_size, len(classes), target)
    mean: Column = ("mean_size", "Mean size", ".2f")
    in_set = f"{words.Labels} in a set"
    return Parts(
        class_names=classes,
        size=Measure("mean_size", in_set, ".2f", 1.0),
        ball_size=Measure("size", "Mean size", ".2f"),
        ends=[mean_ends(result.sizes) for result in comparison],
        curves=[("mean_size", "size")],
        groupings=[
            Grouping("by-class", "class", of_class, [("class", words.Label, None), mean]),
            Grouping("by-degree", "degree", of_degree, [("degree", "Neighbours", None), mean]),
            # Empty sets never cover: a fact, not a finding. A handful of nodes tells nothing, and squeezes all others.
            Grouping(
                "by-size",
                "sizes",
                [row for row in sizes if row["size"] > 0 and row["nodes"] >= LEAST_NODES],
                [("sizes", "Set size", None)],
            ),
        ],
        up_to=up_to_rows(titles, [result.sizes for result in comparison], "size"),
        up_to_measure=Measure("size", in_set, "d", 0.0),
        about=(("class", "Mostly", None), lambda inside: classes[int(np.bincount(shown.truth[inside]).argmax())]),
        columns=_columns(shown),
        table=lambda rows: Table(
            [
                ("Method", ""),
                ("Coverage", f"share of sets that contain the true {words.label}, ± 1.96 standard errors in points"),
                ("Average size", f"{words.labels} per set, ± 1.96 standard errors"),
                ("Size if covered", f"average size of the sets that contain the true {words.label}"),
                (
                    "Size where supported",
                    f"average size on the {words.nodes} where all methods have a finite threshold, except methods that "
                    f"seldom have one",
                ),
                ("SSCV", "worst distance from the target among sets of similar size"),
                (
                    "PCCV",
                    "worst distance from the target among neighbourhoods, compared with what chance alone gives on "
                    "average",
                ),
                ("Lowest neighbourhood", "coverage of the neighbourhood covered least"),
            ],
            [
                [
                    (row["method"], ""),
                    (percent(row["coverage"]), f"± {100 * Z * row['coverage_se']:.1f}"),
                    (number(row["mean_size"]), f"± {number(Z * row['mean_size_se'])}"),
                    (number(row["size_given_coverage"]), ""),
                    (number(row["supported_size"]), ""),
                    (number(row["sscv"], 3), ""),
                    (
                        number(row["pccv"], 3),
                        "" if math.isnan(row["pccv"]) else f"chance {number(row['pccv_chance'], 3)}",
                    ),
                    (percent(row["lowest"]), ""),
                ]
                for row in rows
            ],
        ),
        sizes=lambda rows: Table(
            [(name, "") for name in ("Method", "Empty", f"One {words.label}", "Full", "Too little support")],
            [
                [
                    (row["method"], ""),
                    (f"{row['empty']:,}", percent(row["empty_rate"])),
                    (f"{row['singletons']:,}", percent(row["singleton_rate"])),
                    (f"{row['full']:,}", percent(row["full_rate"])),
                    (f"{row['infinite']:,}", percent(row["infinite"] / row["nodes"])),
                ]
                for row in rows
            ],
        ),
        cards=lambda focus, base: _cards(shown, focus, base),
        result=f"{sizes_text(shown.prediction.sizes, words)} {_average(shown, len(classes))}",
        done=f"A model gave {words.each_node} a probability for each {words.label}. From these, napsets made a list of "
        f"likely {words.labels} for each {words.node}, called a prediction set below.",
        example=_example(shown, classes),
        extremes=("empty set", "largest sets"),
        details={"by_size": of_size, "by_class": of_class, "by_degree": of_degree},
    )


def class_names_of(names: Sequence[str] | None, count: int) -> list[str]:
    """Return the names of the classes on the page."""
    if names is None:
        return [f"class {y}" for y in range(count)]
    if len(names) != count:
        raise InvalidInputError(f"`class_names` must have one name per class, {count}; got {len(names)}")
    return [shown_name(name) for name in names]


def _columns(shown: Shown) -> list[Row]:
    """Return counts of sets that are empty, single and full, and sizes where all methods have support."""
    supported = finite_together([result.prediction.thresholds for result in shown.comparison])
    rows = []
    for result, covered in zip(shown.comparison, shown.covered(), strict=True):
        sets = result.prediction
        summary = sets.summary()
        # A method that has support nowhere is passed over, and has no size where it has.
        own = supported & np.isfinite(sets.thresholds)
        rows.append(
            {
                "size_low": result.mean_size - Z * result.mean_size_se,
                "size_high": result.mean_size + Z * result.mean_size_se,
                "empty": summary.empty,
                "singletons": summary.singletons,
                "full": summary.full,
                "supported": int(supported.sum()),
                "supported_coverage": float(covered[own].mean()) if own.any() else math.nan,
                "supported_size": float(sets.sizes[own].mean()) if own.any() else math.nan,
            }
        )
    return rows


def _cards(shown: Shown, focus: Row, base: Row) -> list[tuple[str, str, list[str]]]:
    def beside(value: str) -> str:
        return "" if base is focus else f"{base['method']} {value}"

    supported = f"{number(focus['supported_size'])} where all methods have support"
    average = f"{number(base['mean_size'])}; {supported}"
    return [
        (
            "Average set size",
            number(focus["mean_size"]),
            [beside(average) or supported, beside(number(base["supported_size"]))],
        ),
        (
            f"Sets of one {shown.words.label}",
            percent(focus["singleton_rate"]),
            [beside(percent(base["singleton_rate"]))],
        ),
        (
            "Too little support",
            f"{focus['infinite']:,}",
            [
                f"of {focus['nodes']:,} {shown.words.nodes} get every {shown.words.label}, because there are too few "
                f"calibration {shown.words.nodes} near them"
            ],
        ),
    ]


def _average(shown: Shown, classes: int) -> str:
    size = PredictionSets.size_text(float(shown.prediction.sizes.mean()))
    return f"On average a {shown.words.item} has {size} of the {classes} {shown.words.labels}."


def _example(shown: Shown, classes: Sequence[str]) -> str:
    sets: PredictionSets = shown.prediction
    usual = max(2, round(float(np.median(sets.sizes))))
    row = typical(sets.sizes, sets.contains_own(shown.truth) & (sets.sizes > 0), usual)
    if row is None:
        return ""
    longer = sets.sizes[row] > 1 and float(np.quantile(sets.sizes, 0.9)) <= 1.0
    listed = quoted([classes[y] for y in np.flatnonzero(sets.member[row]).tolist()])
    name, true = shown_name(str(shown.names[sets.nodes[row]])), classes[int(shown.truth[row])]
    start = "Some lists are longer:" if longer else "For example,"
    return f"{start} {shown.words.node} {name} gets {listed}; the true {shown.words.label} is “{true}”."
