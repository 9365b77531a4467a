"""What users call: `calibrate` of a method; `predict`, `verdict` and `warnings` of what is calibrated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

from napsets.checks.arguments import ArrayLike
from napsets.checks.values import check_flag, check_progress, shown
from napsets.errors import InvalidInputError, NotCalibratedError, warn
from napsets.graph import check_graph
from napsets.methods.data import CalibrationData
from napsets.predictions import Predicted

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

Result = TypeVar("Result")

#: Whether sets are to have p-values, and which.
Wanted = bool | Literal["smoothed"]


def smoothing(wanted: Wanted) -> bool | None:
    """Return whether the p-values that sets are to have are smoothed; None where they are to have none."""
    if isinstance(wanted, str):
        if wanted != "smoothed":
            raise InvalidInputError(f"`p_values` must be True, False or 'smoothed'; got {shown(wanted)}")
        return True
    return False if check_flag("p_values", wanted) else None


class Calibrates(ABC, Generic[Result]):
    """What can be calibrated: a method, or a predictor that keeps one."""

    score: Any
    #: Whether there must be a graph.
    needs_graph: ClassVar[bool] = False

    @abstractmethod
    def fit(self, data: CalibrationData) -> Result:
        """Do what `calibrate` does with arguments that were checked."""

    def calibrate_rows(
        self, graph: Any, outputs: ArrayLike, truth: ArrayLike, calibration: ArrayLike, keys: ArrayLike | None = None
    ) -> Result:
        """Do what `calibrate` does for nodes that are known by their positions; keys only draw random numbers."""
        return self.fit(CalibrationData.check(graph, outputs, truth, calibration, ids=keys, score=self.score))

    def predict(self, *arguments: Any, **settings: Any) -> Any:
        """Say that a method never changes: what `calibrate` returns predicts."""
        raise NotCalibratedError(
            "a method never changes, and what calibrate(...) returns predicts: write calibrated = "
            "method.calibrate(...) and calibrated.predict(...)"
        )

    def calibrate(
        self,
        graph: Any,
        probabilities: ArrayLike,
        labels: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        logits: bool = False,
        progress: Any = None,
    ) -> Result:
        """Score the calibration nodes, and set the level.

        Arguments that are pandas objects are aligned by their index, and refused where their indexes differ.

        Parameters
        ----------
        graph : Graph or another library's
            The graph whose neighbourhoods count; in the paper, the one induced on the test nodes. A `Graph`, a PyTorch
            Geometric ``Data``, a NetworkX graph, a SciPy sparse matrix, a table of edges or an ``edge_index``. A
            NetworkX graph and a table name nodes by their ids.
        probabilities : array of shape (nodes, classes)
            Any model's probabilities; with a score of numbers, the model's outputs, one column for each that the score
            names. The column names of a frame become the class names, and an index that is not 0..n−1 the ids.
        labels : array of shape (nodes,)
            Integers, −1 where unknown, or the names of classes (`class_names`, or column names), None where unknown;
            with a score of numbers, the targets, NaN where unknown.
        calibration : array
            Whose labels may be used: a boolean mask, or nodes as in `predict`. None of them should have trained the
            model.
        ids : array of integers or strings, optional
            What the nodes are called elsewhere; by default 0..n−1. Nodes are named by their ids from here on, in
            `calibration`, in `predict`, in the sets and in tables, and each node's uniform number is drawn from its id.
            With ids that are integers, numbers are ids; positions are then passed as a boolean mask, or to `predict`
            as ``positions=``.
        class_names : sequence of str, optional
            What the classes are called, for the sets.
        logits : bool
            Whether `probabilities` are logits, which a softmax makes into probabilities.
        progress : bool or callable
            True for a line on the terminal, or a function that is called as ``progress(done, total)``.

        Returns
        -------
        Calibrated or the predictor itself
            What predicts: a method gives a `Calibrated`, a predictor itself.
        """
        if self.needs_graph and graph is None:
            check_graph(graph)
        data = CalibrationData.of(
            graph, probabilities, labels, calibration, ids=ids, class_names=class_names, score=self.score, logits=logits
        )
        return self.fit(replace(data, progress=check_progress(progress)))


class Predicts:
    """What has a calibration to predict with."""

    @abstractmethod
    def _present(self, caller: str) -> Calibrated:
        """Return the calibration as it is now, for one of the methods below."""

    def _rates(self, alpha: Any) -> Any:
        """Return the error rates, where none was given those that are usual."""
        return getattr(self, "alpha", 0.1) if alpha is None else alpha

    def _caveat(self) -> str | None:
        """Return what should be known of all sets that these settings make."""
        return None

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., alpha: float | None = ..., *, positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> Predicted: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., *, alpha: Sequence[float], positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None, alpha: Sequence[float], *, positions: ArrayLike | None = ...,
        allow_empty: bool | None = ..., p_values: Wanted = ..., threads: int | None = ..., progress: Any = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    def predict(
        self,
        nodes: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        positions: ArrayLike | None = None,
        allow_empty: bool | None = None,
        p_values: Wanted = False,
        threads: int | None = None,
        progress: Any = None,
    ) -> Predicted | list[Predicted]:
        """Return the prediction sets of `nodes`; with a score of numbers, their `PredictionIntervals`.

        Parameters
        ----------
        nodes : array, optional
            A boolean mask, or nodes by the ids that `calibrate` was given; without ids, their positions 0..n−1. By
            default all nodes that did not calibrate.
        alpha : float or sequence of floats, optional
            Error rate: a set misses the truth with probability at most about alpha. For several, a list of sets comes
            back, from one search. By default 0.1, or what a method that chooses was made for.
        positions : array, optional
            Nodes by their positions 0..n−1, whatever their ids.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        p_values : bool or "smoothed"
            Whether sets are to have the p-value of every label; see `Calibrated.p_values`.
        threads, progress
            As in `hop_thresholds`.
        """
        calibrated = self._present("predict")
        prediction = calibrated._predict(nodes, positions, self._rates(alpha), allow_empty, threads, progress)
        caveat = self._caveat()
        if caveat is not None:
            warn(caveat)
        valued: Predicted | list[Predicted] = calibrated.with_p_values(prediction, p_values)
        return valued

    @abstractmethod
    def verdict(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> Any:
        """Say what to expect of the sets of `nodes`, what is promised, and what to watch for, without any truth.

        It prints as three lines; see `napsets.evaluation.verdict_words.Verdict`. The parameters are those of `predict`.
        """

    def warnings(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> list[str]:
        """Return what to watch for, the gravest first: few labels, little support, labels unlike the other nodes."""
        return list(self.verdict(nodes, alpha).warnings)
