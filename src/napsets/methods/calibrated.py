"""Calibrated: a method with its calibration, which does not change afterwards, and what users call of it.

It predicts for one alpha or for several from one search.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeVar, overload

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_index, frozen, sealed
from napsets.checks.frames import find_nodes
from napsets.checks.values import (
    check_alpha,
    check_flag,
    check_kind,
    check_list,
    check_progress,
    check_threads,
    is_several,
    shown,
)
from napsets.errors import InvalidInputError, NapsetsWarning, warn
from napsets.graph import Graph
from napsets.levels import FittedLevel, Full, few_labels
from napsets.localisers import Local, LocalThresholds
from napsets.methods.data import Scored, model_outputs, with_new_nodes
from napsets.methods.p_values import p_values
from napsets.methods.thresholds import Grouped, find_thresholds, predict_in_parts
from napsets.predictions import NodeThresholds, Predicted, Prediction
from napsets.scores import prediction_type

PredictionT = TypeVar("PredictionT", bound=Prediction)
#: Whether sets are to have p-values, and which.
Wanted = bool | Literal["smoothed"]


def smoothing(wanted: Wanted) -> bool | None:
    """Return whether the p-values that sets are to have are smoothed; None where they are to have none."""
    if isinstance(wanted, str):
        if wanted != "smoothed":
            raise InvalidInputError(f"`p_values` must be True, False or 'smoothed'; got {shown(wanted)}")
        return True
    return False if check_flag("p_values", wanted) else None


class Predicts:
    """What has a calibration to predict with."""

    _name: ClassVar[str] = ""  #: what the method is called in the table of methods, where it has one name

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

    def predict_new(
        self,
        probabilities: ArrayLike,
        edges: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        ids: ArrayLike | None = None,
        allow_empty: bool | None = None,
        threads: int | None = None,
        progress: Any = None,
    ) -> Any:
        """Return the sets, or intervals, of nodes that were not there at calibration, in the order of their rows.

        They are those that a calibration on the same labels gives with the new nodes in the graph: new edges also
        bring nodes closer that were there before. The choice of an automatic method stays the same.

        Parameters
        ----------
        probabilities : array of shape (new nodes, classes)
            What the model says of them; with a score of numbers, its outputs.
        edges : array of shape (2, edges), optional
            Their edges: 0..n−1 are the nodes that were there, n, n+1, … the new ones.
        ids : array of integers or strings, optional
            What the new nodes are called; by default n, n+1, …
        alpha, allow_empty, threads, progress
            As in `predict`.
        """
        calibrated = self._present("predict_new")
        grown = with_new_nodes(calibrated, probabilities, edges, ids)
        nodes = np.arange(calibrated.num_nodes, grown.num_nodes)
        return grown._predict(None, nodes, self._rates(alpha), allow_empty, threads, progress)

    def verdict(self, nodes: ArrayLike | None = None, alpha: float | None = None, *, name: str | None = None) -> Any:
        """Say what to expect of the predictions of `nodes`, what is promised, and what to watch for, without any truth.

        It prints as three lines; see `napsets.evaluation.verdict_words.Verdict`.

        Parameters
        ----------
        nodes, alpha
            As in `predict`.
        name : str, optional
            What the method is called in the table of methods.
        """
        calibrated = self._present("verdict")
        if name is None:
            name = self._name or ("auto" if calibrated.choice is not None else "method")
        check_kind("name", name, str, way="It is what the method is called in the table of methods.")
        rate = check_rates(self._rates(alpha))[1][0]
        with warnings.catch_warnings():  # what they would say is among the verdict's warnings
            warnings.simplefilter("ignore", NapsetsWarning)
            prediction = calibrated._predict(nodes, None, rate, None, None, None)
        outputs, summary = model_outputs(calibrated), prediction.summary()
        # Evaluation comes after methods on the road of data: it is called by name, and only here.
        return import_module("napsets.evaluation.verdict").foresee(
            calibrated,
            name,
            alpha=rate,
            nodes=prediction.nodes,
            size=summary.size,
            infinite=summary.infinite,
            outputs=calibrated.score.probabilities if outputs is None else outputs,
            class_names=calibrated.scored.class_names,
        )

    def warnings(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> list[str]:
        """Return what to watch for, the gravest first: few labels, little support, labels unlike the other nodes."""
        return list(self.verdict(nodes, alpha).warnings)


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated(Predicts):
    """A calibrated method. It is immutable.

    Attributes
    ----------
    method : Method
        Its settings.
    scored : Scored
        The nodes and their scores.
    local : Local
        The localiser of the reference nodes.
    level : FittedLevel
        The level that the held-out labels gave.
    choice : Choice or None
        How the method was chosen, where it was (see `napsets.methods.auto`).
    grouped : Grouped or None
        A calibration for each group, if coverage should hold in each.
    judges : numpy.ndarray or None
        Which of the level nodes set the level, where it is that of a group.
    """

    method: Any
    scored: Scored
    local: Local
    level: FittedLevel
    choice: Any = None
    grouped: Grouped | None = None
    judges: IntArray | None = None

    @cached_property
    def full(self) -> Any:
        """What makes a threshold per candidate, or per end, where held-out labels are evidence too; or None."""
        if not isinstance(self.method.level, Full):  # most need none of the code for it
            return None
        from napsets.methods.full_intervals import bag_level

        return bag_level(self)

    def __repr__(self) -> str:
        labels, held_out = self.scored.calibration.size, self.scored.level_nodes.size
        level = f"level set on {held_out} of them" if self.is_exact else "level 1 − alpha"
        return f"Calibrated({self.method!r}, {labels} labels, {level})"

    @property
    def score(self) -> Any:
        """The bound score of every node."""
        return self.scored.bound

    @property
    def graph(self) -> Graph | None:
        """The graph whose neighbourhoods count."""
        return self.scored.reference.graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.scored.reference.num_nodes

    @property
    def is_exact(self) -> bool:
        """Whether labels were held out to set the level."""
        return bool(self.method.level.keeps_apart)

    @property
    def prediction(self) -> type[Prediction]:
        """What it gives: `PredictionSets` or `PredictionIntervals`."""
        return prediction_type(self.method.score)

    def _present(self, caller: str) -> Calibrated:
        return self

    def _rates(self, alpha: Any) -> Any:
        return getattr(self.choice, "alpha", 0.1) if alpha is None else alpha

    def _predict(
        self,
        nodes: ArrayLike | None,
        positions: ArrayLike | None,
        alpha: float | Sequence[float],
        allow_empty: bool | None,
        threads: int | None,
        progress: Any,
    ) -> Any:
        several, alphas = check_rates(alpha)
        check_threads(threads)
        rows = frozen(self.check_nodes(nodes, positions))
        labels = self.scored.level_nodes if self.is_exact else self.scored.calibration
        caution = few_labels(labels.size, min(alphas))
        if caution is not None:
            warn(caution)
        allowed = None if allow_empty is None else check_flag("allow_empty", allow_empty)
        thresholds = find_thresholds([self], rows, alphas, threads=threads, progress=check_progress(progress))[0]
        caveat = None if self.grouped is None else self.grouped.caveat(rows, alphas)
        if caveat is not None:
            warn(caveat)
        at_rates = [self.thresholds_at(thresholds, row, rate, allowed) for row, rate in enumerate(alphas)]
        parts: list[list[Prediction]] = [[] for _ in alphas]
        for _, some in predict_in_parts([self], [at_rates], rows):
            for row, part in enumerate(some[0]):
                parts[row].append(part)
        predictions = [self.name_rows(type(some[0]).concat(some)) for some in parts]
        return predictions if several else predictions[0]

    def p_values(
        self, nodes: ArrayLike | None = None, *, positions: ArrayLike | None = None, smoothed: bool = False
    ) -> FloatArray:
        """Return the p-value of every label of some nodes: a label is in the set at alpha if its p-value exceeds alpha.

        Groups with too few labels for their own threshold are the exception: their sets are based on labels of other
        groups, their p-values are not.

        Parameters
        ----------
        nodes, positions
            As in `predict`.
        smoothed : bool
            Whether ties are broken at random: then p-values are uniform, and no longer those of the sets.
        """
        rows = self.check_nodes(nodes, positions)
        return sealed(p_values(self, rows, smoothed=check_flag("smoothed", smoothed)))

    def with_p_values(self, prediction: Any, wanted: Wanted = True) -> Any:
        """Return sets, or a list of sets of the same nodes, with the p-value of every label if requested."""
        smoothed = smoothing(wanted)
        if smoothed is None:
            return prediction
        several = prediction if isinstance(prediction, list) else [prediction]
        values = sealed(p_values(self, several[0].nodes, smoothed=smoothed))
        valued = [replace(sets, p_values=values) for sets in several]
        return valued if isinstance(prediction, list) else valued[0]

    def thresholds_at(
        self, thresholds: LocalThresholds, row: int, alpha: float, allow_empty: bool | None = None
    ) -> NodeThresholds:
        """Return the thresholds of one error rate, with the level that they were taken at."""
        level = self.level.level(alpha) if self.is_exact and self.grouped is None else None
        allowed = self.method.allow_empty if allow_empty is None else allow_empty
        return thresholds.at(row, alpha, level=level, allow_empty=allowed)

    def name_rows(self, prediction: PredictionT) -> PredictionT:
        """Return a prediction of some nodes with what nodes and classes are called."""
        ids = self.scored.ids
        named = None if ids is None else ids[prediction.nodes]
        return prediction.with_names(self.num_nodes, named, self.scored.class_names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated method to one file (NumPy arrays and JSON, no pickle); `napsets.load` reads it."""
        from napsets.methods.saving import save

        save(self, path)

    def check_nodes(self, nodes: ArrayLike | None, positions: ArrayLike | None = None) -> IntArray:
        """Return positions of nodes, by default of all that did not calibrate; warn where some of them did."""
        calibrates = np.zeros(self.num_nodes, dtype=bool)
        calibrates[self.scored.calibration] = True
        if nodes is None and positions is None:
            return np.flatnonzero(~calibrates)
        if positions is None:
            places = find_nodes("nodes", nodes, self.scored.ids, way="positions=")
            rows = check_index("nodes", places, self.num_nodes)
        elif nodes is None:
            rows = check_index("positions", positions, self.num_nodes)
        else:
            raise InvalidInputError(f"`positions` must be left out where `nodes` are given; got {shown(positions)}")
        both = int(calibrates[rows].sum())
        if both:
            warn(
                f"`nodes` holds {both} calibration nodes; a node's own label is left out of its own set"
                + (", though it helped to set the level" if self.is_exact else "")
            )
        return rows


def check_rates(alpha: Any) -> tuple[bool, list[float]]:
    """Return whether several error rates were given, and the rates one by one."""
    if not is_several(alpha):
        return False, [check_alpha(alpha)]
    rates = check_list("alpha", alpha, "error rates")
    if not rates:
        raise InvalidInputError("`alpha` must hold at least one error rate; it is empty")
    for rate in rates:
        if is_several(rate):
            raise InvalidInputError(f"`alpha` must be a number or a list of numbers; got {shown(rate)} in a list")
    return True, [check_alpha(rate) for rate in rates]
