"""The parts of a page that depend on its kind of prediction, as values that `sets` and `intervals` compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, IntArray
from napsets.evaluation.results import Comparison
from napsets.groups import by_quantiles
from napsets.report.charts import Column, Measure
from napsets.report.rows import Row, group_rows, grouped_by
from napsets.report.words import Words

#: A cell of a table with the note beneath it.
Cell = tuple[str, str]


@dataclass(frozen=True)
class Shown:
    """A comparison as a page shows it.

    Attributes
    ----------
    comparison : Comparison
        The comparison.
    titles : list of str
        What charts call the methods; no two are the same.
    words : Words
        What nodes and their labels are called.
    place, taken : int
        The place of the method that the page is about, and of the one that the verdict takes.
    weak : list of str
        The classes that the verdict names as covered too little.
    names : numpy.ndarray
        What the nodes are called.
    """

    comparison: Comparison
    titles: list[str]
    words: Words
    place: int
    taken: int
    weak: Sequence[str]
    names: npt.NDArray[Any]

    @property
    def truth(self) -> npt.NDArray[Any]:
        """The truth about the judged nodes."""
        return self.comparison.truth[self.comparison.nodes]

    @property
    def prediction(self) -> Any:
        """What the method that the verdict takes predicts."""
        return self.comparison.results[self.taken].prediction

    def covered(self) -> list[BoolArray]:
        """Return the judged nodes that each method covers, as masks."""
        return [result.prediction.contains_own(self.truth) for result in self.comparison]


@dataclass(frozen=True)
class Grouping:
    """Coverage in groups of the judged nodes: a chart's name, the column of the groups' names, and the rows."""

    name: str
    field: str
    rows: list[Row]
    columns: list[Column]


@dataclass(frozen=True)
class Table:
    """A table of all methods: for each column its head and what that means, and one list of cells per method."""

    head: list[Cell]
    rows: list[list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a page shows of sets, or of intervals.

    Attributes
    ----------
    class_names : list of str
        What the classes are called; empty for intervals.
    size, ball_size : Measure
        How sizes over all judged nodes are measured, and those in a neighbourhood.
    ends : list of (size, low, high)
        The size of each method with its 95 % interval.
    curves : list of (column, curve)
        Columns of sizes over error rates, each with the name of the curve that it holds.
    groupings : list of Grouping
        Coverage by class or prediction, by degree, and by size.
    up_to, up_to_measure, skewed
        Which share of a method's predictions is at most how large, and whether that is drawn on a logarithmic axis.
    about : (column, callable)
        What is said of the judged nodes in a neighbourhood.
    columns : list of dict
        Further columns of each method's row.
    table, sizes : callable
        Make the tables of methods and of sizes from the methods' rows.
    cards : callable
        Makes the headline numbers (name, value, notes) from the rows of the method and of the baseline.
    result, done, example : str
        How large the predictions are; what was done for each node; one node and its prediction.
    extremes : (str, str)
        What an empty prediction and the largest ones are called among the reasons to explore a node.
    details : dict
        Other rows, for tests and programs.
    """

    class_names: list[str]
    size: Measure
    ball_size: Measure
    ends: list[tuple[float, float, float]]
    curves: list[tuple[str, str]]
    groupings: list[Grouping]
    up_to: list[Row]
    up_to_measure: Measure
    skewed: bool = False
    about: tuple[Column, Callable[[IntArray], object]]
    columns: list[Row]
    table: Callable[[list[Row]], Table]
    sizes: Callable[[list[Row]], Table]
    cards: Callable[[Row, Row], list[tuple[str, str, list[str]]]]
    result: str
    done: str
    example: str
    extremes: tuple[str, str]
    details: dict[str, Any] = field(default_factory=dict)


def fifths(
    shown: Shown, name: str, values: npt.NDArray[Any], ends_name: Callable[[Any, Any], str], columns: list[Column]
) -> Grouping:
    """Return coverage in fifths of the judged nodes by a number that each has."""
    groups = by_quantiles(values, 5)
    ends = [(values[groups == g].min(), values[groups == g].max()) for g in range(int(groups.max()) + 1)]
    coverages = [
        grouped_by(hits, result.sizes, groups) for hits, result in zip(shown.covered(), shown.comparison, strict=True)
    ]
    names = [ends_name(low, high) for low, high in ends]
    rows = group_rows(shown.titles, coverages, shown.comparison.alpha, name, names, "mean_width")
    return Grouping(f"by-{name}", name, rows, columns)


def typical(values: npt.NDArray[Any], fits: BoolArray, wanted: float) -> int | None:
    """Return the place of the value nearest to a wanted one, among those that fit; None where none does."""
    rows = np.flatnonzero(fits)
    return int(rows[np.abs(values[rows] - wanted).argmin()]) if rows.size else None
