"""What only a page about intervals of numbers shows: widths, best guesses, and a node's number line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.advice.evidence import IntervalEvidenceExplainer
from napsets.advice.inspection import inspect_row
from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.checks.text import percent, shown_name
from napsets.errors import InvalidInputError
from napsets.evaluation.kinds import groups_by_width
from napsets.evaluation.metrics import GroupCoverage, finite_mean
from napsets.evaluation.results import MethodResult
from napsets.evaluation.verdict_words import whose_finite
from napsets.groups import by_quantiles
from napsets.predictions import PredictionIntervals
from napsets.report.chart_parts import (
    Column,
    Columns,
    Looks,
    Measure,
    Row,
    Spec,
    Z,
    by_group,
    group_rows,
    median_ends,
    range_names,
)
from napsets.report.charts import FORM, number_line, width_shares
from napsets.report.data import PageKind
from napsets.report.explorer import VOICES, Explorer, VoiceColumn, each_once
from napsets.report.summary import Headline, Vocabulary, card
from napsets.scores.informed_intervals import BoundInformedIntervals

if TYPE_CHECKING:
    from napsets.report.data import ReportData

#: Points of the curve that shows which share of the intervals is at most of a given width.
WIDTH_POINTS = 81
#: Widths are drawn on a logarithmic scale where the wide ones are this many times as wide as the narrow ones.
SKEWED = 20.0
#: Bytes of the sentence that says where a threshold comes from, about.
SENTENCE = 220
#: How sentences write widths and targets.
wide = PredictionIntervals.size_text


class IntervalsPage(PageKind):
    """A page about intervals of numbers."""

    heading = "Prediction intervals"
    label = "value"
    noun, short, shorter, longer = "interval", "narrow", "narrower", "wider"
    size = Measure(
        "shared_width", "Width", "Mean width", "Mean width where all are finite", "Width (narrower is better)", FORM
    )
    curve_size = Measure(
        "median_width", "Median width", "Median width", "Median width", "Median width (narrower is better)", FORM
    )
    ball_size = replace(size, field="width")
    curves: ClassVar[Mapping[str, str]] = {"median_width": "median", "infinite_rate": "infinite"}
    ball_columns: ClassVar[Columns] = [("target", "Mean target", FORM)]
    score_mark = "Target"
    extremes = ("a single point", "widest intervals")
    size_ends = staticmethod(median_ends)
    recorded: ClassVar[Mapping[str, str]] = {"task": "regression"}

    @property
    def graph_fact(self) -> str:
        return ""

    def check_names(self, names: Sequence[str] | None) -> None:
        if names is not None:
            raise InvalidInputError(f"`class_names` must be left out of a page about intervals; got {len(names)} names")

    @property
    def columns(self) -> list[str]:
        """What the model's outputs are: lower and upper, or prediction and maybe spread."""
        score: Any = self.comparison.baseline.calibrated.score
        return list(score.score.columns)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def method_columns(self, result: MethodResult, covered: BoolArray, row: Row) -> Row:
        width, error = row["shared_width"], row["shared_width_se"]
        room = 0.0 if math.isnan(error) else Z * error
        return {
            "size_low": width - room,
            "size_high": width + room,
            "points": int((result.sizes == 0.0).sum()),
            "narrow": float(np.quantile(result.sizes, 0.25, method="lower")),
            "broad": float(np.quantile(result.sizes, 0.75, method="lower")),
        }

    def rows(self, place: int, weak: Sequence[str]) -> dict[str, Any]:
        """Return widths and coverage in fifths of the nodes, and where intervals can be compared.

        `widths` holds how many of a method's intervals are at most so wide, and `skewed` whether that wants a
        logarithmic scale; `by_width` a method's fifths by its own width, `by_prediction` and `by_degree` fifths of the
        nodes. `shared` is the share of the judged nodes where the intervals of all methods are finite, `shared_by` who
        those methods are, in words: all, or all but those that make whole lines alone.
        """
        comparison, nodes = self.comparison, self.comparison.nodes
        sizes = [result.sizes for result in comparison]
        endless = dict(zip(self.titles, (result.infinite_rate for result in comparison), strict=True))
        return {
            "widths": width_rows(self.titles, sizes),
            "skewed": is_skewed(sizes),
            "by_width": self._by_width(),
            "by_prediction": self._fifths("prediction", comparison.predicted[nodes], _number_ranges),
            "by_degree": self._fifths("degree", comparison.graph.degrees[nodes], range_names),
            "shared": float(comparison.finite.mean()),
            "shared_by": whose_finite(endless),
        }

    def _fifths(self, field: str, values: npt.NDArray[Any], names: Callable[[Sequence[Any]], list[str]]) -> list[Row]:
        """Return coverage in fifths of the judged nodes by a number that each has."""
        groups = by_quantiles(values, 5)
        ends = [(values[groups == g].min(), values[groups == g].max()) for g in range(int(groups.max()) + 1)]
        coverages = [
            _by_group(hits, result, groups) for hits, result in zip(self.covered, self.comparison, strict=True)
        ]
        return group_rows(self.titles, coverages, self.comparison.alpha, field, names(ends), "mean_width")

    def _by_width(self) -> list[Row]:
        """Return coverage in fifths of each method's intervals by their own width, the narrowest first."""
        rows = []
        for title, result, hits in zip(self.titles, self.comparison, self.covered, strict=True):
            groups = groups_by_width(result.sizes)
            coverage = _by_group(hits, result, groups)
            names = [str(g + 1) for g in range(coverage.count.size)]
            for row in group_rows([title], [coverage], self.comparison.alpha, "fifth", names, "mean_width"):
                inside = result.sizes[groups == row["order"]]
                rows.append(row | {"from": wide(float(inside.min())), "to": wide(float(inside.max()))})
        return rows

    def ball_row(self, inside: BoolArray) -> Row:
        return {"target": float(self.comparison.truth[self.comparison.nodes[inside]].mean())}

    def ball_text(self, ball: Row) -> str:
        return f"mean target {wide(ball['target'])}"

    # -- the first screen ----------------------------------------------------------------------------------------------

    def in_words(self, prediction: Any, words: Vocabulary) -> tuple[str, str]:
        widths = prediction.widths[np.isfinite(prediction.widths)]
        width = f"of width {prediction.size_text(float(widths.mean()))} on average" if widths.size else ""
        return (
            f"the true value lies in an interval {width or 'without ends: every interval is the whole line'}",
            f"A model gave {words.each_node} a number, or a range of numbers. From these, napsets made an interval for "
            f"each {words.node}.",
        )

    def example(self, prediction: Any, names: npt.NDArray[Any], words: Vocabulary) -> str:
        truth = self.comparison.truth[prediction.nodes]
        fits = prediction.covers(truth) & np.isfinite(prediction.widths)
        if not fits.any():
            return ""
        rows = np.flatnonzero(fits)
        row = int(rows[np.abs(prediction.widths[rows] - np.median(prediction.widths[rows])).argmin()])
        ends = f"{prediction.lower[row]:.3g} to {prediction.upper[row]:.3g}"
        name = shown_name(str(names[prediction.nodes[row]]))
        return f"For example, {words.node} {name} gets {ends}; the true value is {truth[row]:.3g}."

    # -- the explorer --------------------------------------------------------------------------------------------------

    def evidence(self, bounds: Sequence[Any]) -> tuple[IntArray, list[Any]]:
        informed = [bound if isinstance(bound, BoundInformedIntervals) else None for bound in bounds]
        places, once = each_once(informed, id)
        return places, [IntervalEvidenceExplainer(bound, self.comparison.graph) for bound in once]

    @property
    def voice_columns(self) -> Mapping[str, VoiceColumn]:
        shifts = VoiceColumn("shifts", shape=(len(self.columns),))
        return {"voice_residual": VoiceColumn("residual"), "voice_shifts": shifts}

    def node_bytes(self, scored: int, evidence: int) -> int:
        columns = len(self.columns)
        own = len(self.methods) * (SENTENCE + 16) + 8 * (scored + 1) * (columns + 1)
        return own + evidence * VOICES * (16 + 4 * columns)

    def explained(self, rows: IntArray, neighbours: IntArray, calibrates: BoolArray, bounds: Sequence[Any]) -> Row:
        """Return what explains intervals.

        `columns` are the names of the model's outputs; `target` is the true target of each of the m nodes; `lower` and
        `upper` are the intervals, shape (methods, m), and `threshold_text` says where each threshold comes from;
        `model`, shape (m, columns), is what the model itself said, `outputs`, shape (s, m, columns), what intervals are
        made of, which targets around a node may have shifted; `scores`, shape (s, m), the score of the true target;
        `neighbour_target` the target of every neighbour, NaN where it never calibrates.
        """
        comparison, nodes = self.comparison, self.comparison.nodes[rows]
        target = comparison.truth[nodes]
        return {
            "columns": self.columns,
            "target": target,
            "lower": np.stack([result.prediction.lower[rows] for result in comparison]),
            "upper": np.stack([result.prediction.upper[rows] for result in comparison]),
            "threshold_text": [
                [inspect_row(result.calibrated, result.prediction, int(row)).reason() for row in rows]
                for result in comparison
            ],
            "model": bounds[0].score.check(comparison.data.outputs)[nodes],
            "outputs": np.stack([bound.outputs[nodes] for bound in bounds]),
            "scores": np.stack([bound.at(nodes, target) for bound in bounds]),
            "neighbour_target": np.where(calibrates, comparison.truth[neighbours], np.nan),
        }

    def score_range(self, explorer: Explorer) -> tuple[float, float]:
        return float(explorer.edges.min()), float(explorer.edges.max())

    # -- charts and tables ---------------------------------------------------------------------------------------------

    def charts(self, data: ReportData, looks: Looks, target: float) -> dict[str, Spec]:
        def by(rows: list[Row], field: str, title: str, *further: Column) -> Spec:
            columns = [(field, title.split(",")[0], None), ("nodes", "Nodes", ",d"), ("mean_width", "Mean width", FORM)]
            return by_group(looks, rows, field, title, target, *columns, *further)

        ends: list[Column] = [("from", "Widths from", None), ("to", "to", None)]
        return {
            "by-width": by(data.by_width, "fifth", "Fifth of the intervals, the narrowest first", *ends),
            "by-prediction": by(data.by_prediction, "prediction", "The model's best guess"),
            "by-degree": by(data.by_degree, "degree", "Neighbours of the node"),
            "widths": width_shares(looks, data.widths, skewed=data.skewed),
            "line": number_line(looks, data.explorer, data.hops),
        }

    def size_cards(self, headline: Headline) -> tuple[list[Row], list[Row]]:
        base, focus, beside = headline.base, headline.focus, headline.beside
        # Where both means are finite, no further note is needed.
        enough = math.isfinite(focus["mean_width"]) and math.isfinite(base["mean_width"])
        enough = enough or not math.isfinite(focus["shared_width"])
        against = beside(wide(base["shared_width"])) if math.isfinite(base["shared_width"]) else ""
        shared = f"where all are finite {wide(focus['shared_width'])}{' compared with ' * bool(against)}{against}"
        half = f"half of the intervals from {wide(focus['narrow'])} to {wide(focus['broad'])} wide"
        endless = f"intervals of {focus['nodes']:,} have no end, because too few calibration nodes are near"
        mean = card("Mean width", wide(focus["mean_width"]), beside(wide(base["mean_width"])), "" if enough else shared)
        return [mean], [
            card("Median width", wide(focus["median_width"]), beside(wide(base["median_width"])), half),
            card("The whole line", f"{focus['infinite']:,}", endless),
        ]

    def method_cells(self, row: Row) -> list[tuple[str, str]]:
        return [
            (wide(row["mean_width"]), _error(row["mean_width_se"])),
            (wide(row["shared_width"]), _error(row["shared_width_se"])),
            (percent(row["infinite_rate"]), ""),
            (f"{row['gap_degree']:.3f}", f"chance {row['chance_degree']:.3f}"),
            (f"{row['gap_prediction']:.3f}", f"chance {row['chance_prediction']:.3f}"),
        ]

    def size_cells(self, row: Row) -> list[tuple[str, str]]:
        return [
            *((wide(row[name]), "") for name in ("narrow", "median_width", "broad")),
            (f"{row['points']:,}", percent(row["point_rate"])),
            (f"{row['infinite']:,}", percent(row["infinite_rate"])),
        ]


def width_rows(titles: Sequence[str], sizes: Sequence[FloatArray]) -> list[Row]:
    """Return, for some widths, which share of each method's intervals is at most that wide; infinite ones never are."""
    rows = []
    for title, widths in zip(titles, sizes, strict=True):
        finite = np.sort(widths[np.isfinite(widths)])
        places = np.unique(np.linspace(0, finite.size - 1, min(WIDTH_POINTS, finite.size)).astype(np.int64))
        # Of equal widths, the last place is used: count every interval up to this width.
        shares = np.searchsorted(finite, finite[places], side="right") / max(widths.size, 1)
        for width, share in zip(finite[places].tolist(), shares.tolist(), strict=True):
            rows.append({"method": title, "width": width, "share": share})
    return rows


def is_skewed(sizes: Sequence[FloatArray]) -> bool:
    """Return whether the widest twentieth of all finite intervals is many times as wide as the narrowest."""
    widths = np.concatenate([own[np.isfinite(own)] for own in sizes])
    if not widths.size or widths.min() <= 0.0:  # a point has no place on a logarithmic scale
        return False
    low, high = np.quantile(widths, [0.05, 0.95])
    return bool(high > SKEWED * low)


def _by_group(covered: BoolArray, result: MethodResult, groups: IntArray) -> GroupCoverage:
    """Return coverage and the mean finite width in each group of the judged nodes."""
    groups_of_rows = [np.flatnonzero(groups == g) for g in range(int(groups.max()) + 1)]
    return GroupCoverage(
        list(range(len(groups_of_rows))),
        np.array([rows.size for rows in groups_of_rows]),
        np.array([covered[rows].mean() for rows in groups_of_rows]),
        np.array([finite_mean(result.sizes[rows]) for rows in groups_of_rows]),
    )


def _number_ranges(ends: Sequence[Any]) -> list[str]:
    return [f"{wide(float(low))} to {wide(float(high))}" for low, high in ends]


def _error(error: float) -> str:
    return "" if error != error else f"± {wide(error)}"
