"""What evaluation does differently for sets of labels and for intervals of numbers, in one place.

A `Kind` says which metrics and which groups suit its predictions, what the model alone predicts, and which words a
verdict uses. `kind_of` returns the one that belongs to a class of predictions; nothing else in evaluation asks which
kind it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.errors import InvalidInputError, NapsetsError
from napsets.evaluation.groups import FIFTHS, Ease, ease_of_labels, ease_of_numbers, named_fifths
from napsets.evaluation.metrics import check_strata, mean, mean_and_error, size_violation
from napsets.graph import Graph
from napsets.groups import by_quantiles
from napsets.methods import METHODS, CalibrationData, make_method
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets
from napsets.scores import CQR, prediction_type

Strata = list[tuple[int, int]]


class Curve(ABC):
    """What a calibration curve shows of the sizes at one error rate, of nodes that come in parts."""

    @abstractmethod
    def add(self, sizes: npt.NDArray[Any]) -> None:
        """Add the sizes of some nodes."""

    @abstractmethod
    def values(self, nodes: int) -> dict[str, float]:
        """Return what the curve shows of this many nodes, by name."""


class Kind(ABC):
    """What differs between kinds of predictions."""

    #: The metrics that are one number, in the order of a row.
    metrics: ClassVar[tuple[str, ...]]
    #: The metric that methods are compared by: their size.
    size: ClassVar[str]
    #: What a calibration curve shows of sizes, by name.
    curves: ClassVar[tuple[str, ...]]
    #: The methods that are compared where none is named.
    compared: ClassVar[tuple[str, ...]]
    #: What sizes are called where all methods have a finite one; None where they always have.
    shared: ClassVar[str | None]
    #: What a node without enough support gets, and what too few labels lead to, in words.
    without_support: ClassVar[str]
    with_too_few: ClassVar[str]
    #: Who says which method to take where none was compared.
    adviser: ClassVar[str]

    @abstractmethod
    def check_strata(self, strata: Any, prediction: Prediction) -> Strata | None:
        """Return the ranges of sizes that SSCV compares, the usual ones for None; None where there is no SSCV."""

    @abstractmethod
    def check_methods(self, names: Sequence[str]) -> None:
        """Refuse methods of the table that cannot make such predictions."""

    @abstractmethod
    def measures(self, prediction: Any, covered: BoolArray, strata: Strata | None) -> dict[str, float]:
        """Return the metrics that only this kind has, by name."""

    @abstractmethod
    def own_groups(self, prediction: Any) -> dict[str, npt.NDArray[Any]]:
        """Return the groups of rows that follow from the prediction itself, by name."""

    @abstractmethod
    def groups(self, data: CalibrationData, score: Any, nodes: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return the groups of nodes over which evenness is always measured, except for neighbourhoods, by name."""

    @abstractmethod
    def predicted(self, score: Any, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what the model alone predicts of each node: a class, or a number."""

    @abstractmethod
    def predicted_groups(
        self, predicted: npt.NDArray[Any], nodes: IntArray, class_names: Sequence[str] | None
    ) -> tuple[str, IntArray, list[str]]:
        """Return what is predicted, the group of each node by it, and the groups as words that follow "nodes"."""

    @abstractmethod
    def eases(self, graph: Graph, predicted: npt.NDArray[Any], score: Any, outputs: npt.NDArray[Any]) -> Iterable[Ease]:
        """Return what says how easy each node is for the model."""

    @abstractmethod
    def accuracy(self, outputs: npt.NDArray[Any], truth: npt.NDArray[Any]) -> tuple[int, float] | None:
        """Return how often the model is right about these nodes, and how often its outputs promise it to be."""

    @abstractmethod
    def curve(self) -> Curve:
        """Return an empty point of a calibration curve."""

    @abstractmethod
    def endless(self, infinite: float, baseline: float = 0.0, median: float = math.nan) -> dict[str, Any]:
        """Return what a verdict says of predictions without a finite size: their share, and that of the baseline."""


class SetKind(Kind):
    """Sets of labels: their size is the number of labels, and it is always finite."""

    metrics = (
        "nodes", "coverage", "coverage_se", "mean_size", "mean_size_se", "size_given_coverage", "sscv", "pccv",
        "pccv_chance", "singleton_rate", "empty_rate", "full_rate", "infinite",
    )  # fmt: skip
    size = "mean_size"
    curves = ("size",)
    compared = ("split", "naps", "naps-exact", "informed", "auto", "thr")
    shared = None
    without_support = "get every label"
    with_too_few = "every set holds every label"
    adviser = "`napsets recommend` tries methods on these labels"

    def check_strata(self, strata: Any, prediction: Any) -> Strata:
        """Return the ranges of sizes that SSCV compares, by default `size_strata` of the number of classes."""
        return size_strata(prediction.num_classes) if strata is None else check_strata(strata)

    def check_methods(self, names: Sequence[str]) -> None:
        """Accept all: every method of the table makes sets."""

    def measures(self, prediction: PredictionSets, covered: BoolArray, strata: Strata | None) -> dict[str, float]:
        """Return sizes, SSCV and the shares of sets with one label, none and all."""
        sizes, count = prediction.sizes, len(prediction)
        return {
            "mean_size": mean(sizes),
            "mean_size_se": float(sizes.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
            "size_given_coverage": mean(sizes[covered]),
            "sscv": size_violation(sizes, covered, strata or [], prediction.alpha),
            "singleton_rate": mean(sizes == 1),
            "empty_rate": mean(sizes == 0),
            "full_rate": mean(sizes == prediction.num_classes),
        }

    def own_groups(self, prediction: PredictionSets) -> dict[str, npt.NDArray[Any]]:
        """Return none."""
        return {}

    def groups(self, data: CalibrationData, score: Any, nodes: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return classes, and fifths of the nodes by degree and by the model's confidence."""
        return {
            "class": data.truth,
            "degree": by_quantiles(_graph(data).degrees, FIFTHS, nodes),
            "confidence": by_quantiles(data.outputs.max(axis=1), FIFTHS, nodes),
        }

    def predicted(self, score: Any, outputs: npt.NDArray[Any]) -> IntArray:
        """Return the most probable class of each node."""
        return predicted_classes(outputs)

    def predicted_groups(
        self, predicted: npt.NDArray[Any], nodes: IntArray, class_names: Sequence[str] | None
    ) -> tuple[str, IntArray, list[str]]:
        """Return the predicted classes."""
        count = int(predicted[nodes].max()) + 1
        names = [f"class {y}" for y in range(count)] if class_names is None else class_names
        return "predicted class", predicted, [f"predicted to be {names[y]}" for y in range(count)]

    def eases(self, graph: Graph, predicted: npt.NDArray[Any], score: Any, outputs: npt.NDArray[Any]) -> Iterable[Ease]:
        """Return the top probability, and the share of neighbours that are predicted alike."""
        return ease_of_labels(graph, predicted, outputs)

    def accuracy(self, outputs: npt.NDArray[Any], truth: npt.NDArray[Any]) -> tuple[int, float]:
        """Return how many labels are the most probable ones, and the sum of the top probabilities."""
        return int((outputs.argmax(axis=1) == truth).sum()), float(outputs.max(axis=1).sum(dtype=np.float64))

    def curve(self) -> Curve:
        """Return a point that counts labels."""
        return _LabelCurve()

    def endless(self, infinite: float, baseline: float = 0.0, median: float = math.nan) -> dict[str, Any]:
        """Return nothing: every set has a size."""
        return {}


class IntervalKind(Kind):
    """Intervals of numbers: their size is the width, infinite where the interval is the whole line."""

    metrics = (
        "nodes", "coverage", "coverage_se", "mean_width", "mean_width_se", "median_width", "finite_width",
        "infinite_rate", "point_rate", "pccv", "pccv_chance", "infinite",
    )  # fmt: skip
    size = "finite_width"
    curves = ("size", "median", "infinite")
    compared = ("split", "naps", "naps-exact", "informed", "auto")
    shared = "shared_width"
    without_support = "get the whole line"
    with_too_few = "every interval is the whole line"
    adviser = "`napsets report --task regression` compares methods on half of the targets"

    def check_strata(self, strata: Any, prediction: Any) -> None:
        """Refuse ranges of sizes: widths are groups of their own."""
        if strata is not None:
            raise InvalidInputError("`strata` must be None for intervals: widths are compared in fifths")

    def check_methods(self, names: Sequence[str]) -> None:
        """Refuse methods that make sets of labels alone."""
        for name in names:
            if isinstance(name, str) and name in METHODS and not _makes_intervals(name):
                raise InvalidInputError(
                    f"`methods` must make intervals with a score of numbers; {name!r} looks at labels. Those that do: "
                    f"{', '.join(interval_methods())}."
                )

    def measures(self, prediction: PredictionIntervals, covered: BoolArray, strata: Strata | None) -> dict[str, float]:
        """Return widths, and the shares of intervals that are the whole line and a single point."""
        widths = prediction.widths
        finite = np.isfinite(widths)
        centre, error = mean_and_error(widths)
        return {
            "mean_width": centre,
            "mean_width_se": error,
            "median_width": float(np.median(widths)) if widths.size else math.nan,
            "finite_width": mean(widths[finite]),
            "infinite_rate": mean(~finite),
            "point_rate": mean(widths == 0.0),
        }

    def own_groups(self, prediction: PredictionIntervals) -> dict[str, npt.NDArray[Any]]:
        """Return fifths of the intervals by their own width, the widest last."""
        return {"width": groups_by_width(prediction.widths)}

    def groups(self, data: CalibrationData, score: Any, nodes: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return fifths of the nodes by degree and by the model's best guess."""
        return {
            "degree": by_quantiles(_graph(data).degrees, FIFTHS, nodes),
            "prediction": by_quantiles(self.predicted(score, data.outputs), FIFTHS, nodes),
        }

    def predicted(self, score: Any, outputs: npt.NDArray[Any]) -> FloatArray:
        """Return the model's own best guess: that of the score that no evidence has shifted."""
        base = getattr(score, "base", score)
        centre: FloatArray = base.centre(base.check(outputs))
        return centre

    def predicted_groups(
        self, predicted: npt.NDArray[Any], nodes: IntArray, class_names: Sequence[str] | None
    ) -> tuple[str, IntArray, list[str]]:
        """Return fifths by the number predicted."""
        return "prediction", *named_fifths(
            predicted, nodes, lambda some: f"predicted to have {some.min():.3g} to {some.max():.3g}"
        )

    def eases(self, graph: Graph, predicted: npt.NDArray[Any], score: Any, outputs: npt.NDArray[Any]) -> Iterable[Ease]:
        """Return how narrow the model's own interval is, where it gives one."""
        return ease_of_numbers(score, outputs)

    def accuracy(self, outputs: npt.NDArray[Any], truth: npt.NDArray[Any]) -> None:
        """Return None: outputs do not say how often they are right."""

    def curve(self) -> Curve:
        """Return a point that keeps widths."""
        return _WidthCurve()

    def endless(self, infinite: float, baseline: float = 0.0, median: float = math.nan) -> dict[str, Any]:
        """Return the median width, and the shares of whole lines."""
        return {"median": median, "infinite": infinite, "baseline_infinite": baseline}


class _LabelCurve(Curve):
    def __init__(self) -> None:
        self.labels = 0

    def add(self, sizes: npt.NDArray[Any]) -> None:
        self.labels += int(sizes.sum())

    def values(self, nodes: int) -> dict[str, float]:
        return {"size": self.labels / nodes}


class _WidthCurve(Curve):
    def __init__(self) -> None:
        self.parts: list[FloatArray] = []

    def add(self, sizes: npt.NDArray[Any]) -> None:
        self.parts.append(sizes)

    def values(self, nodes: int) -> dict[str, float]:
        widths = np.concatenate(self.parts)
        finite = np.isfinite(widths)
        return {"size": mean(widths[finite]), "median": float(np.median(widths)), "infinite": mean(~finite)}


SETS, INTERVALS = SetKind(), IntervalKind()
_KINDS: Mapping[type[Prediction], Kind] = {PredictionSets: SETS, PredictionIntervals: INTERVALS}


def kind_of(prediction: type[Prediction]) -> Kind:
    """Return what evaluation does for this class of predictions."""
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


def predicted_classes(outputs: Any, piece: int = 1 << 18) -> IntArray:
    """Return the most probable class of each node, some nodes at a time."""
    classes = np.empty(outputs.shape[0], dtype=np.int64)
    for start in range(0, classes.size, piece):
        classes[start : start + piece] = outputs[start : start + piece].argmax(axis=1)
    return classes


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


def _graph(data: CalibrationData) -> Graph:
    assert data.graph is not None
    return data.graph


def groups_by_width(widths: FloatArray) -> IntArray:
    """Return which fifth of the widths each one is in; those that differ in their last digits only are together."""
    largest = widths.max(where=np.isfinite(widths), initial=0.0)
    # Scaled by a power of two, which changes no digit, every width fits into 32 bits.
    return by_quantiles(np.ldexp(widths, -np.frexp(largest)[1]).astype(np.float32), FIFTHS)
