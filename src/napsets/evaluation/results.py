"""The results of a comparison: that of each method, and all of them side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napsets.checks.arguments import AnyArray, BoolArray, FloatArray, IntArray
from napsets.checks.values import Record, Values
from napsets.errors import Surface
from napsets.evaluation.judgement import Judgement
from napsets.evaluation.kinds import Kind, Strata, kind_of
from napsets.evaluation.metrics import mean_and_error
from napsets.evaluation.repeats import Table
from napsets.graph import Graph
from napsets.methods import Calibrated, CalibrationData
from napsets.predictions import Prediction

if TYPE_CHECKING:
    import altair

    from napsets.evaluation.verdict import Verdict


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MethodResult(Judgement):
    """One method among others: its prediction, what that is worth, and how it goes over error rates.

    Attributes
    ----------
    name : str
        Its name in the table of methods.
    title : str
        What tables and charts call it.
    calibrated : Calibrated
        The method, calibrated.
    prediction : PredictionSets or PredictionIntervals
        The sets, or intervals, of the nodes compared on.
    curves : mapping
        What there is at each of the comparison's `alphas`, by name: "coverage", and "size", the average size (of
        intervals, that of the finite ones, NaN where there is none); of intervals also "median", the median width of
        all, and "infinite", the share that are the whole line. Each can also be read as `curve_coverage` and so on.
    slope : float
        By how much the average size grows per unit of coverage near alpha: another draw of labels moves both.
    """

    name: str
    title: str
    calibrated: Calibrated
    prediction: Any
    curves: Mapping[str, FloatArray] = field(default_factory=dict)
    slope: float = 0.0

    def __getattr__(self, name: str) -> Any:
        curves = self.__dict__.get("curves", {})
        if name.startswith("curve_") and name[6:] in curves:
            return curves[name[6:]]
        return super().__getattr__(name)

    @property
    def sets(self) -> Any:
        """The prediction, where it is of sets."""
        return self.prediction

    #: The same, where it is of intervals.
    intervals = sets

    @property
    def sizes(self) -> AnyArray:
        """The number of labels in each set, or the width of each interval."""
        sizes: AnyArray = self.prediction.sizes
        return sizes

    @property
    def size(self) -> float:
        """The average number of labels in a set, or the average width of the finite intervals."""
        return self.measures[kind_of(type(self.prediction)).size]

    @property
    def hits(self) -> int:
        """Number of judged nodes that are covered."""
        return round(self.coverage * self.nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated method to one file; `napsets.load` reads it."""
        self.calibrated.save(path)

    def __repr__(self) -> str:
        error = 1.96 * self.coverage_se
        return f"MethodResult({self.name!r}: coverage {self.coverage:.3f} ± {error:.3f}, {self.prediction!r})"

    def same_as(self, other: MethodResult) -> bool:
        """Whether another method makes identical predictions."""
        same: bool = self.prediction.same_as(other.prediction)
        return same


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison(Table):
    """Methods side by side.

    Attributes
    ----------
    results : tuple of MethodResult
        One per method, in the order in which they were named.
    alpha, hops
        As in `compare`; of more than 64 hops, those that the graph has.
    partition : list of numpy.ndarray
        Neighbourhoods that PCCV compares.
    alphas : tuple of float
        Where the curves are.
    data : CalibrationData
        Graph, outputs, truth and calibration nodes, checked. The truth judged, too.
    settings : dict
        The settings of the methods that are named.
    ids : numpy.ndarray or None
        What the nodes are called; None for 0..n−1.
    strata : list of (low, high) or None
        Set sizes that SSCV groups; None for intervals.
    training : numpy.ndarray
        The nodes that the model was trained on, as far as they are known.
    """

    results: tuple[MethodResult, ...]
    alpha: float
    hops: int
    partition: list[IntArray]
    alphas: tuple[float, ...]
    data: CalibrationData
    settings: Values
    ids: AnyArray | None
    strata: Strata | None = None
    training: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def prediction(self) -> type[Prediction]:
        """The class of the predictions: `PredictionSets` or `PredictionIntervals`."""
        return self.data.prediction

    @property
    def kind(self) -> Kind:
        """The kind that evaluates these predictions."""
        return kind_of(self.prediction)

    @property
    def graph(self) -> Graph:
        """The graph."""
        assert self.data.graph is not None
        return self.data.graph

    @property
    def baseline(self) -> MethodResult:
        """The first method, with which the others are compared."""
        return self.results[0]

    @property
    def nodes(self) -> IntArray:
        """The nodes that judged, in the order in which they came."""
        nodes: IntArray = self.baseline.prediction.nodes
        return nodes

    @property
    def truth(self) -> AnyArray:
        """The truth that judged, one entry per node: labels, −1 where unknown, or numbers, NaN where unknown."""
        return self.data.truth

    #: The truth by the names that it has among arguments.
    labels = targets = truth

    @property
    def known(self) -> BoolArray:
        """Whether the truth of each node is known."""
        return self.prediction.known(self.truth)

    @property
    def unlabelled(self) -> IntArray:
        """The nodes whose truth is not known, except for those that the model was trained on."""
        labelled = np.union1d(np.concatenate([self.data.calibration, self.nodes]), self.training)
        return np.setdiff1d(np.flatnonzero(~self.known), labelled, assume_unique=True)

    @property
    def predicted(self) -> AnyArray:
        """The prediction of the model alone for each node: the most probable class, or its best guess."""
        return self.kind.predicted(self.settings["score"], self.data.outputs)

    @property
    def finite(self) -> BoolArray:
        """On which of the judged nodes the sizes of all methods are finite: where they can be compared.

        Methods that give most nodes the whole line are passed over: with them, hardly any node would be left.
        """
        return finite_together([result.sizes for result in self])

    def shared_sizes(self) -> list[tuple[float, float]]:
        """Return each method's average size at the nodes that are `finite`, with its standard error.

        It is infinite for a method that gives most nodes the whole line.
        """
        finite = self.finite
        return [mean_and_error(result.sizes[finite]) for result in self]

    def verdict(self, class_names: Sequence[str] | None = None, *, surface: Surface = "python") -> Verdict:
        """Return the verdict: the method to use, its gain over the baseline with intervals, and all warnings.

        See `napsets.evaluation.verdict`. Confidence intervals allow for other nodes and for another draw of labels.
        """
        from napsets.evaluation.verdict import judge_methods

        names = self.data.class_names if class_names is None else class_names
        return judge_methods(self, class_names=names, surface=surface)

    @property
    def best(self) -> MethodResult:
        """The method that the verdict takes; ``comparison.best.save(path)`` keeps it."""
        return self[self.verdict().method]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.results)

    def __getitem__(self, which: str | int) -> MethodResult:
        """Return the result of one method, by its name or by its place."""
        if not isinstance(which, str):
            return self.results[which]
        for result in self.results:
            if result.name == which:
                return result
        raise KeyError(f"{which!r}: compared were {', '.join(result.name for result in self)}")

    def rows(self) -> list[Record]:
        """Return one plain dictionary per method, for tables and JSON.

        Of intervals it also has `shared_width`, the mean width where all methods' are finite.
        """
        rows = [
            {"method": result.name, "title": result.title, "hops": self.hops, "alpha": self.alpha} | result.row()
            for result in self.results
        ]
        name = self.kind.shared
        if name is not None:
            share = float(self.finite.mean())
            for row, (size, error) in zip(rows, self.shared_sizes(), strict=True):
                row |= {name: size, f"{name}_se": error, "shared": share}
        return rows

    def plot(self) -> altair.LayerChart:
        """Draw coverage against size, a point per method with 95 % intervals, as an Altair chart (extra ``report``)."""
        points = [
            {
                "method": result.name,
                "size": result.size,
                "coverage": result.coverage,
                "low": result.coverage - 1.96 * result.coverage_se,
                "high": result.coverage + 1.96 * result.coverage_se,
            }
            for result in self
        ]
        target, base, coverage = self._chart(points, self.kind.size, [result.name for result in self])
        ends = base.mark_rule().encode(y="low:Q", y2="high:Q")
        dots = base.mark_point(filled=True, size=80).encode(y=coverage, tooltip=["method:N", "size:Q", "coverage:Q"])
        return (target + ends + dots).properties(width=420, height=280)

    def _table(self) -> list[list[str]]:
        """Return the cells of the table, with gaps where there are groups and the number of nodes without support."""
        over = [name for name, gap in self.baseline.gaps.items() if np.isfinite(gap.gap)][:2]
        lost = any(result.infinite for result in self)
        head = ["method", "coverage ± 1.96 se", "size", *(f"gap {name}" for name in over), *["no support"] * lost]
        best = self.best.name
        rows = [
            [
                ("→ " if result.name == best else "  ") + result.name,
                f"{result.coverage:.3f} ± {1.96 * result.coverage_se:.3f}",
                self.prediction.size_text(result.size),
                *(f"{result.gaps[name].gap:.3f}" for name in over),
                *[f"{result.infinite:,}"] * lost,
            ]
            for result in self
        ]
        return [head, *rows]

    @property
    def evidence(self) -> str:
        """The number of labels of evidence, and the methods that cannot learn from them; empty without evidence."""
        if self.data.evidence is None:
            return ""
        without = [result.title for result in self if not result.calibrated.scored.evidence]
        text = f"{self.data.evidence.size:,} more labels as evidence"
        return f"{text}, which {', '.join(without)} cannot learn from and ran without" if without else text

    @property
    def _heading(self) -> str:
        return (
            f"{len(self)} methods on {self.nodes.size:,} nodes at alpha = {self.alpha:g}, calibrated on "
            f"{self.data.calibration.size:,} labels{f', with {self.evidence}' if self.evidence else ''}"
        )


def finite_together(values: Sequence[AnyArray]) -> BoolArray:
    """Mark where the values of all methods are finite; methods with fewer than half finite values do not count.

    Examples
    --------
    >>> finite_together([np.array([1.0, 2.0]), np.array([np.inf, 3.0]), np.array([np.inf, np.inf])])
    array([False,  True])
    """
    finite = [np.isfinite(column) for column in values]
    together: BoolArray = np.all([column for column in finite if 2 * column.sum() >= column.size] or finite, axis=0)
    return together
