"""What only a page about sets of labels shows: set sizes, classes, and the labels of a node."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.advice.evidence import EvidenceExplainer
from napsets.checks.arguments import BoolArray, IntArray
from napsets.checks.text import percent, shown_name
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import coverage_by_class, coverage_by_degree
from napsets.evaluation.results import MethodResult, finite_together
from napsets.levels import chance_band
from napsets.report.chart_parts import (
    Columns,
    Looks,
    Measure,
    Row,
    Spec,
    Z,
    by_group,
    group_rows,
    mean_ends,
    range_names,
    share_row,
    wilson,
)
from napsets.report.charts import FIRST_CLASSES, by_class, set_sizes
from napsets.report.data import PageKind
from napsets.report.explorer import VOICES, Explorer, VoiceColumn, each_once
from napsets.report.summary import Headline, Vocabulary, card, number, quoted, size_range
from napsets.scores.informed import BoundInformed, evidence_of

if TYPE_CHECKING:
    from napsets.report.data import ReportData

#: Set sizes with fewer nodes are not drawn.
LEAST_NODES = 10
#: Set sizes that have a place of their own where classes are many.
MOST_SIZES = 12


class SetsPage(PageKind):
    """A page about sets of labels."""

    #: The beginning of the title, and what the truth about a node is called on the first screen.
    heading = "Prediction sets"
    label = "class"
    #: What a prediction is called there, and what is said of its size.
    noun, short, shorter, longer = "list", "short", "shorter", "longer"
    #: How size is drawn: of methods, over error rates and beside evenness, and in a neighbourhood.
    size = Measure(
        "mean_size", "Labels in a set", "Mean size", "Mean set size", "Labels in a set (fewer is better)", ".2f", 1.0
    )
    curve_size = size
    ball_size = replace(size, field="size")
    #: Sizes over error rates: the column of a row, and the name of the curve of a result.
    curves: ClassVar[Mapping[str, str]] = {"mean_size": "size"}
    #: The columns of tooltips that say more about a neighbourhood.
    ball_columns: ClassVar[Columns] = [("class", "Mostly", None), ("class_share", "of it", ".0%")]
    #: What the marks below a node's scores are.
    score_mark = "Label"
    #: What an empty prediction and the largest ones are called among the reasons to explore a node.
    extremes = ("empty set", "largest sets")
    #: The size over all judged nodes, in the unit of `curve_size`, with its interval.
    size_ends = staticmethod(mean_ends)
    first_classes = FIRST_CLASSES

    class_names: list[str]

    @property
    def graph_fact(self) -> str:
        """What else is said of the graph."""
        return f", {len(self.class_names)} classes"

    def check_names(self, names: Sequence[str] | None) -> list[str]:
        count = self.comparison.data.outputs.shape[1]
        if names is None:
            return [f"class {y}" for y in range(count)]
        if len(names) != count:
            raise InvalidInputError(f"`class_names` must have one name per class, {count}; got {len(names)}")
        return [shown_name(name) for name in names]

    # -- rows ----------------------------------------------------------------------------------------------------------

    @cached_property
    def supported(self) -> BoolArray:
        """On which of the judged nodes the thresholds of all methods are finite, except for those that have none."""
        return finite_together([result.prediction.thresholds for result in self.comparison])

    def method_columns(self, result: MethodResult, covered: BoolArray, row: Row) -> Row:
        """Return further columns of a method's row."""
        sets: Any = result.prediction
        summary, supported = sets.summary(), self.supported
        # A method that has support nowhere is passed over, and has no size where it has.
        own = supported & np.isfinite(sets.thresholds)
        return {
            "size_low": result.mean_size - Z * result.mean_size_se,
            "size_high": result.mean_size + Z * result.mean_size_se,
            "empty": summary.empty,
            "singletons": summary.singletons,
            "full": summary.full,
            "supported": int(supported.sum()),
            "supported_coverage": float(covered[own].mean()) if own.any() else math.nan,
            "supported_size": float(sets.sizes[own].mean()) if own.any() else math.nan,
        }

    def rows(self, place: int, weak: Sequence[str]) -> dict[str, Any]:
        """Return the rows of groups, `by_degree` among them, and what else only this kind of page shows.

        Where groups have no order of their own, those that the verdict names as weak come first, then the worst of the
        method at that place.
        """
        truth, graph, alpha = self.comparison.truth, self.comparison.graph, self.comparison.alpha
        by_class = [coverage_by_class(result.prediction, truth) for result in self.comparison]
        by_degree = [coverage_by_degree(result.prediction, truth, graph) for result in self.comparison]
        degrees: Any = by_degree[0].group
        classes = group_rows(self.titles, by_class, alpha, "class", self.class_names, "mean_size")
        return {
            "class_names": self.class_names,
            "by_size": self._size_rows(),
            "by_class": _weakest_first(classes, self.titles[place], weak),
            "by_degree": group_rows(self.titles, by_degree, alpha, "degree", range_names(degrees), "mean_size"),
        }

    def _size_rows(self) -> list[Row]:
        rows = []
        for title, result, covered in zip(self.titles, self.comparison, self.covered, strict=True):
            for size in range(len(self.class_names) + 1):
                inside = result.sizes == size
                if inside.any() or size <= int(result.sizes.max()):
                    row = {"method": title, "size": size, "nodes": int(inside.sum()), "share": float(inside.mean())}
                    rows.append(row | share_row(covered[inside]))
        return rows

    def ball_row(self, inside: BoolArray) -> Row:
        """Return what is said of the judged nodes in a neighbourhood."""
        labels = self.comparison.truth[self.comparison.nodes[inside]]
        counts = np.bincount(labels, minlength=len(self.class_names))
        return {"class": self.class_names[int(counts.argmax())], "class_share": float(counts.max() / counts.sum())}

    def ball_text(self, ball: Row) -> str:
        """Return the same in a few words."""
        return f"mostly {ball['class']}"

    # -- the first screen ----------------------------------------------------------------------------------------------

    def in_words(self, prediction: Any, words: Vocabulary) -> tuple[str, str]:
        """Return what is true of a covered node, as a clause; and what was done for each node, as a sentence."""
        most, average = size_range(prediction.sizes), prediction.size_text(float(prediction.sizes.mean()))
        often = "usually" if prediction.sizes.max(initial=0) > 1 else "at most"
        many = f"{most} {words.labels}" if most != "1" else f"{often} 1 {words.label}"
        listed = f"{many} ({average} on average, out of {len(self.class_names)})"
        return (
            f"the true {words.label} is in a list of {listed}",
            f"A model gave {words.each_node} a probability for each {words.label}. From these, napsets made a list of "
            f"likely {words.labels} for each {words.node}, called a prediction set below.",
        )

    def example(self, prediction: Any, names: npt.NDArray[Any], words: Vocabulary) -> str:
        """Return one node and what is predicted for it, as a sentence."""
        truth = self.comparison.truth[prediction.nodes]
        usual = max(2, round(float(np.median(prediction.sizes))))
        fits = prediction.covers(truth) & (prediction.sizes > 0)
        if not fits.any():
            return ""
        row = int(np.flatnonzero(fits)[np.abs(prediction.sizes[fits] - usual).argmin()])
        longer = prediction.sizes[row] > 1 and size_range(prediction.sizes) == "1"
        listed = quoted([self.class_names[y] for y in np.flatnonzero(prediction.member[row])])
        name, true = shown_name(str(names[prediction.nodes[row]])), self.class_names[int(truth[row])]
        start = "Some lists are longer:" if longer else "For example,"
        return f"{start} {words.node} {name} gets {listed}; the true {words.label} is “{true}”."

    # -- the explorer --------------------------------------------------------------------------------------------------

    def evidence(self, bounds: Sequence[Any]) -> tuple[IntArray, list[Any]]:
        """Return for each bound score which evidence it rests on (−1 for none), and the explainer of each."""
        places, informed = each_once([evidence_of(bound) for bound in bounds], _evidence_key)
        return places, [EvidenceExplainer(bound, self.comparison.graph) for bound in informed]

    @property
    def voice_columns(self) -> Mapping[str, VoiceColumn]:
        """What the explorer shows of each labelled node that is evidence, by the name of the array."""
        return {"voice_odds": VoiceColumn("odds", fill=1.0)}

    def node_bytes(self, scored: int, evidence: int) -> int:
        """Return how many bytes a node takes in the page in addition to what it takes on all pages."""
        classes = len(self.class_names)
        own = (16 * scored + len(self.methods)) * classes
        return own + evidence * (VOICES * 16 + 4) + 4 * classes * bool(evidence)

    def explained(self, rows: IntArray, neighbours: IntArray, calibrates: BoolArray, bounds: Sequence[Any]) -> Row:
        """Return what explains the predictions of some rows, and what the neighbours that calibrate are.

        `label` is the true label of each of the m nodes; `probabilities` and `scores`, shape (s, m, classes), what the
        score is made of and the score of each label; `member` the sets, shape (methods, m, classes);
        `neighbour_label` the label of every neighbour, −1 where it never calibrates; `model`, shape (m, classes), the
        model's own probabilities, without rows where no method changes them.
        """
        comparison, nodes = self.comparison, self.comparison.nodes[rows]
        changed = any(evidence_of(bound) is not None for bound in bounds)
        return {
            "label": comparison.truth[nodes],
            "probabilities": np.stack([bound.probabilities[nodes].astype(np.float64) for bound in bounds]),
            "scores": np.stack([bound.matrix(nodes) for bound in bounds]),
            "member": np.stack([result.prediction.member[rows] for result in comparison]),
            "neighbour_label": np.where(calibrates, comparison.truth[neighbours], -1),
            "model": comparison.data.outputs[nodes if changed else nodes[:0]].astype(np.float32),
            "classes": self.class_names,
        }

    def score_range(self, explorer: Explorer) -> tuple[float, float]:
        """Return the range of the scores that a page shows."""
        scores, edges = explorer.scores, explorer.edges
        return float(min(scores.min(), edges.min())), float(max(scores.max(), edges.max()))

    # -- charts and tables ---------------------------------------------------------------------------------------------

    def charts(self, data: ReportData, looks: Looks, target: float) -> dict[str, Spec]:
        """Return the charts that only this kind of page has, and that of degrees."""
        sizes = size_groups(data.by_size, len(self.class_names), target)
        # Empty sets never cover: a fact, not a finding. A handful of nodes tells nothing, and squeezes all others.
        telling = [row for row in sizes if row["size"] > 0 and row["nodes"] >= LEAST_NODES]
        of_size = [("sizes", "Set size", None), ("nodes", "Nodes", ",d")]
        of_degree = [("degree", "Degree", None), ("nodes", "Nodes", ",d"), ("mean_size", "Mean size", ".2f")]
        return {
            "by-size": by_group(looks, telling, "sizes", "Labels in the set", target, *of_size),
            "by-class": by_class(looks, data.by_class, target),
            "by-degree": by_group(looks, data.by_degree, "degree", "Neighbours of the node", target, *of_degree),
            "sizes": set_sizes(looks, sizes),
        }

    def size_cards(self, headline: Headline) -> tuple[list[Row], list[Row]]:
        base, focus, beside = headline.base, headline.focus, headline.beside
        supported = f"{number(focus['supported_size'])} where all methods have support"
        average = card(
            "Average set size",
            number(focus["mean_size"]),
            beside(f"{number(base['mean_size'])}; {supported}") or supported,
            beside(number(base["supported_size"])),
        )
        little = f"of {focus['nodes']:,} nodes get every label, because there are too few calibration nodes near them"
        return [average], [
            card("Sets of one label", percent(focus["singleton_rate"]), beside(percent(base["singleton_rate"]))),
            card("Too little support", f"{focus['infinite']:,}", little),
        ]

    def method_cells(self, row: Row) -> list[tuple[str, str]]:
        return [
            (number(row["mean_size"]), f"± {number(row['mean_size_se'])}"),
            (number(row["size_given_coverage"]), ""),
            (number(row["supported_size"]), ""),
            (number(row["sscv"], 3), ""),
            (number(row["pccv"], 3), "" if math.isnan(row["pccv"]) else f"chance {number(row['pccv_chance'], 3)}"),
        ]

    def size_cells(self, row: Row) -> list[tuple[str, str]]:
        return [
            (f"{row['empty']:,}", percent(row["empty_rate"])),
            (f"{row['singletons']:,}", percent(row["singleton_rate"])),
            (f"{row['full']:,}", percent(row["full_rate"])),
            (f"{row['infinite']:,}", percent(row["infinite"] / row["nodes"])),
        ]


def size_groups(rows: list[Row], num_classes: int, target: float) -> list[Row]:
    """Return rows of set sizes, ranges of them where classes are many, with where chance would put coverage.

    Full sets keep a place of their own, because they are uninformative.
    """
    starts = _size_starts(num_classes)
    groups: dict[tuple[str, int], Row] = {}
    for row in rows:
        g = bisect_right(starts, row["size"]) - 1
        last = starts[g + 1] - 1 if g + 1 < len(starts) else num_classes
        name = range_names([(starts[g], last)])[0]
        new = {"method": row["method"], "sizes": name, "order": g, "size": starts[g], "nodes": 0, "share": 0.0}
        group = groups.setdefault((row["method"], g), new | {"hits": 0.0})
        group["nodes"] += row["nodes"]
        group["share"] += row["share"]
        group["hits"] += row["nodes"] * row["coverage"] if row["nodes"] else 0.0
    for row in groups.values():
        count, hits = row["nodes"], row.pop("hits")
        low, high = wilson(hits, count)
        chance = chance_band(count, target) if count else (math.nan, math.nan)
        row |= {"coverage": hits / count if count else math.nan, "low": low, "high": high}
        row |= {"chance_low": chance[0], "chance_high": chance[1]}
    return list(groups.values())


def _size_starts(num_classes: int) -> list[int]:
    """Return where ranges of set sizes start: each size by itself, or ever wider ranges."""
    if num_classes <= MOST_SIZES:
        return list(range(num_classes + 1))
    starts = list(range(6))
    while starts[-1] < num_classes:
        starts.append(min(num_classes, starts[-1] + max(1, starts[-1] // 2)))
    return starts


def _weakest_first(rows: list[Row], title: str, weak: Sequence[str]) -> list[Row]:
    """Return rows with their groups in another order: those named as weak, those below the chance band, the rest.

    Each part starts with what the method covers least.
    """
    keys = {
        row["order"]: (row["class"] not in weak, row["coverage"] >= row["chance_low"], row["coverage"], -row["nodes"])
        for row in rows
        if row["method"] == title
    }
    place = {group: p for p, group in enumerate(sorted(keys, key=lambda group: (*keys[group], group)))}
    return sorted((row | {"order": place[row["order"]]} for row in rows), key=lambda row: row["order"])


def _evidence_key(bound: BoundInformed) -> tuple[Any, ...]:
    return bound.exponents, bound.reference.nodes.tobytes()
