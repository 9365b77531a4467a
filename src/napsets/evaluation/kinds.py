"""The differences between evaluating sets of labels and intervals of numbers, in one place.

A `Kind` says which metrics and which groups suit its predictions, what the model alone predicts and how easy each node
is for it, and which words a verdict uses. What a member of both is for is said in `SetKind`. `kind_of` returns the one
that belongs to a class of predictions; nothing else in evaluation asks which kind it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import AnyArray, BoolArray, FloatArray, IntArray
from napsets.checks.values import Record
from napsets.errors import InvalidInputError, NapsetsError
from napsets.evaluation.metrics import FIFTHS, check_strata, mean, mean_and_error, size_violation
from napsets.graph import Graph
from napsets.groups import by_quantiles
from napsets.methods import METHODS, CalibrationData, make_method
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import CQR, prediction_type

Strata = list[tuple[int, int]]
#: Nodes whose neighbours are compared at a time.
_PIECE = 1 << 18


@dataclass(frozen=True)
class Respect:
    """Something in which nodes are compared that is visible without their labels."""

    what: str  #: What it is.
    values: AnyArray  #: What it is for each node.
    groups: IntArray  #: The group of each node.
    names: Sequence[str]  #: What the groups are called, as words behind "nodes".
    ease: str = ""  #: What the average value is called, where it is larger for nodes that are easier for the model.


class SetKind:
    """Sets of labels: their size is the number of labels, and it is always finite."""

    #: The metrics that are one number, in the order of a row.
    metrics: ClassVar[tuple[str, ...]] = (
        "nodes", "coverage", "coverage_se", "mean_size", "mean_size_se", "size_given_coverage", "sscv", "pccv",
        "pccv_chance", "singleton_rate", "empty_rate", "full_rate", "infinite",
    )  # fmt: skip
    #: The metric that methods are compared by: their size.
    size = "mean_size"
    #: What a calibration curve shows of sizes, by name.
    curves: ClassVar[tuple[str, ...]] = ("size",)
    #: The methods that are compared where none is named.
    compared: ClassVar[tuple[str, ...]] = ("split", "naps", "naps-exact", "informed", "auto", "thr")
    #: The name of a size averaged over the nodes where all methods have a finite one; None if sizes are always finite.
    shared = None

    def check_strata(self, strata: object, prediction: Any) -> Strata:
        """Return the ranges of sizes that SSCV compares, the usual ones for None; None where there is no SSCV."""
        return size_strata(prediction.num_classes) if strata is None else check_strata(strata)

    def check_methods(self, names: Sequence[str]) -> None:
        """Reject methods of the table that cannot make such predictions; all of them make sets."""

    def measures(self, prediction: Any, covered: BoolArray, strata: Strata | None) -> dict[str, float]:
        """Return the metrics that only this kind has, by name."""
        sizes = prediction.sizes
        mean_size, error = mean_and_error(sizes)
        return {
            "mean_size": mean_size,
            "mean_size_se": error,
            "size_given_coverage": mean(sizes[covered]),
            "sscv": size_violation(sizes, covered, strata or [], prediction.alpha),
            "singleton_rate": mean(sizes == 1),
            "empty_rate": mean(sizes == 0),
            "full_rate": mean(sizes == prediction.num_classes),
        }

    def own_groups(self, prediction: Any) -> dict[str, AnyArray]:
        """Return the groups of rows that follow from the prediction itself, by name."""
        return {}

    def groups(self, graph: Graph, data: CalibrationData, score: object, nodes: IntArray) -> dict[str, AnyArray]:
        """Return the groups of nodes over which evenness is always measured, except for neighbourhoods, by name."""
        return {
            "class": data.truth,
            "degree": by_quantiles(graph.degrees, FIFTHS, nodes),
            "confidence": by_quantiles(data.outputs.max(axis=1), FIFTHS, nodes),
        }

    def predicted(self, score: object, outputs: AnyArray) -> IntArray:
        """Return the prediction of the model alone for each node: a class, or a number."""
        classes: IntArray = outputs.argmax(axis=1)
        return classes

    def respects(
        self,
        graph: Graph,
        predicted: AnyArray,
        outputs: AnyArray | None,
        score: object,
        nodes: IntArray,
        class_names: Sequence[str] | None,
    ) -> Iterator[Respect]:
        """Yield what some nodes are compared in, besides their degree: the prediction, and how easy each node is."""
        count = int(predicted[nodes].max()) + 1
        names = [f"class {y}" for y in range(count)] if class_names is None else class_names
        yield Respect("predicted class", predicted, predicted, [f"predicted to be {names[y]}" for y in range(count)])
        if outputs is None:
            return
        yield by_fifths(
            "confidence",
            outputs.max(axis=1).astype(np.float64),
            nodes,
            lambda values: f"with a top probability of {values.min():.2f} to {values.max():.2f}",
            ease="the average top probability",
        )
        yield by_fifths(
            "agreement with neighbours",
            agreement(graph, predicted),
            nodes,
            lambda values: (
                f"that agree with {100 * values.min():.0f} to {100 * values.max():.0f} % of their neighbours"
            ),
            ease="the average share of neighbours with the same predicted label",
        )

    def accuracy(self, outputs: AnyArray, truth: AnyArray) -> tuple[int, float]:
        """Return the number of labels predicted correctly, and the number that the outputs expect; None for numbers."""
        return int((outputs.argmax(axis=1) == truth).sum()), float(outputs.max(axis=1).sum(dtype=np.float64))

    def curve_part(self, sizes: AnyArray) -> AnyArray:
        """Reduce the sizes of some nodes to what a point of a calibration curve needs."""
        return np.array([sizes.sum()])

    def curve_point(self, kept: AnyArray, nodes: int) -> dict[str, float]:
        """Return the values of a point of the curve, by name, from the reduced sizes of all of this many nodes."""
        return {"size": int(kept.sum()) / nodes}

    def infinite_shares(self, infinite: float, baseline: float = 0.0, median: float = math.nan) -> Record:
        """Return the shares of infinite predictions, and the median size, by name; nothing if all sizes are finite."""
        return {}


class IntervalKind:
    """Intervals of numbers: their size is the width, infinite where the interval is the whole line."""

    metrics: ClassVar[tuple[str, ...]] = (
        "nodes", "coverage", "coverage_se", "mean_width", "mean_width_se", "median_width", "finite_width",
        "infinite_rate", "point_rate", "pccv", "pccv_chance", "infinite",
    )  # fmt: skip
    size = "finite_width"
    curves: ClassVar[tuple[str, ...]] = ("size", "median", "infinite")
    compared: ClassVar[tuple[str, ...]] = ("split", "naps", "naps-exact", "informed", "auto")
    shared = "shared_width"

    def check_strata(self, strata: object, prediction: Prediction) -> None:
        if strata is not None:
            raise InvalidInputError("`strata` must be None for intervals: widths are compared in fifths")

    def check_methods(self, names: Sequence[str]) -> None:
        for name in names:
            if isinstance(name, str) and name in METHODS and not _makes_intervals(name):
                raise InvalidInputError(
                    f"`methods` must make intervals with a score of numbers; {name!r} looks at labels. Those that do: "
                    f"{', '.join(interval_methods())}."
                )

    def measures(self, prediction: Any, covered: BoolArray, strata: Strata | None) -> dict[str, float]:
        widths = prediction.widths
        finite = np.isfinite(widths)
        mean_width, error = mean_and_error(widths)
        return {
            "mean_width": mean_width,
            "mean_width_se": error,
            "median_width": float(np.median(widths)) if widths.size else math.nan,
            "finite_width": mean(widths[finite]),
            "infinite_rate": mean(~finite),
            "point_rate": mean(widths == 0.0),
        }

    def own_groups(self, prediction: Any) -> dict[str, AnyArray]:
        return {"width": groups_by_width(prediction.widths)}

    def groups(self, graph: Graph, data: CalibrationData, score: object, nodes: IntArray) -> dict[str, AnyArray]:
        return {
            "degree": by_quantiles(graph.degrees, FIFTHS, nodes),
            "prediction": by_quantiles(self.predicted(score, data.outputs), FIFTHS, nodes),
        }

    def predicted(self, score: Any, outputs: AnyArray) -> FloatArray:
        base = getattr(score, "base", score)
        centre: FloatArray = base.centre(base.check(outputs))
        return centre

    def respects(
        self,
        graph: Graph,
        predicted: AnyArray,
        outputs: AnyArray | None,
        score: Any,
        nodes: IntArray,
        class_names: Sequence[str] | None,
    ) -> Iterator[Respect]:
        yield by_fifths(
            "prediction", predicted, nodes, lambda values: f"predicted to have {values.min():.3g} to {values.max():.3g}"
        )
        if outputs is None:
            return
        base = getattr(score, "base", score)
        last, checked = base.columns[-1], base.check(outputs)
        if last in ("upper", "spread"):  # the narrower the model's own interval, the easier
            width = np.abs(checked[:, 1] - checked[:, 0]) if last == "upper" else checked[:, 1]
            yield by_fifths(
                "confidence",
                -width,
                nodes,
                lambda values: f"with a width of {-values.max():.3g} to {-values.min():.3g}",
                ease="the average width that the model gives",
            )

    def accuracy(self, outputs: AnyArray, truth: AnyArray) -> None:
        return None

    def curve_part(self, sizes: AnyArray) -> AnyArray:
        return sizes

    def curve_point(self, kept: AnyArray, nodes: int) -> dict[str, float]:
        finite = np.isfinite(kept)
        return {"size": mean(kept[finite]), "median": float(np.median(kept)), "infinite": mean(~finite)}

    def infinite_shares(self, infinite: float, baseline: float = 0.0, median: float = math.nan) -> Record:
        return {"median": median, "infinite": infinite, "baseline_infinite": baseline}


Kind = SetKind | IntervalKind
SETS, INTERVALS = SetKind(), IntervalKind()
_KINDS: Mapping[type[Prediction], Kind] = {PredictionSets: SETS, PredictionIntervals: INTERVALS}


def kind_of(prediction: type[Prediction]) -> Kind:
    """Return the kind that evaluates this class of predictions."""
    return _KINDS[prediction]


def size_strata(num_classes: int) -> Strata:
    """Return the default strata of set sizes: 0–1, 2–3 and 4 or more, as the paper has them for ten classes.

    Examples
    --------
    >>> size_strata(10), size_strata(3)
    ([(0, 1), (2, 3), (4, 10)], [(0, 1), (2, 3)])
    """
    ends = [(0, min(1, num_classes)), (2, min(3, num_classes)), (4, num_classes)]
    return [(low, high) for low, high in ends if low <= high]


def interval_methods() -> list[str]:
    """Return the names of the methods that make intervals; the others need labels.

    Examples
    --------
    >>> [name for name in interval_methods() if name.startswith("naps")]
    ['naps', 'naps-h', 'naps-g', 'naps-exact', 'naps-lengths']
    """
    return [name for name in METHODS if _makes_intervals(name)]


def _makes_intervals(name: str) -> bool:
    try:
        return prediction_type(make_method(name, score=CQR()).score) is PredictionIntervals
    except NapsetsError:
        return False


def groups_by_width(widths: FloatArray) -> IntArray:
    """Group widths into fifths; those that differ in their last digits only are together."""
    largest = widths.max(where=np.isfinite(widths), initial=0.0)
    # Scaled by a power of two, which changes no digit, every width fits into 32 bits.
    return by_quantiles(np.ldexp(widths, -np.frexp(largest)[1]).astype(np.float32), FIFTHS)


def by_fifths(what: str, values: AnyArray, nodes: IntArray, name: Callable[[AnyArray], str], ease: str = "") -> Respect:
    """Cut nodes into fifths by a value that each has; `name` says what a group is called, given its values."""
    groups = by_quantiles(values, FIFTHS, nodes)
    chosen = groups[nodes]
    names = [name(values[nodes[chosen == g]]) for g in range(int(chosen.max()) + 1)]
    return Respect(what, values, groups, names, ease)


def agreement(graph: Graph, predicted: AnyArray) -> FloatArray:
    """Return the share of each node's neighbours with the same predicted class; 0 without neighbours.

    In NumPy: a verdict on few nodes would wait longer for kernels to be loaded.

    Examples
    --------
    >>> triangle = Graph.from_edge_index([[0, 1, 2], [1, 2, 0]], num_nodes=4)
    >>> agreement(triangle, np.array([0, 0, 1, 1])).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    shares = np.zeros(graph.num_nodes, dtype=np.float64)
    for start in range(0, graph.num_nodes, _PIECE):
        ends = graph.indptr[start : start + _PIECE + 1]
        degrees = np.diff(ends)
        row = np.repeat(np.arange(degrees.size), degrees)
        alike = predicted[graph.indices[ends[0] : ends[-1]]] == predicted[start + row]
        shares[start : start + _PIECE] = np.bincount(row[alike], minlength=degrees.size) / np.maximum(degrees, 1)
    return shares
