"""What users call: `calibrate` of a method, `predict` of what was calibrated, and both of a predictor.

A predictor keeps settings and a calibration together, as scikit-learn's estimators do.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

import numpy as np

from napsets.checks.arguments import ArrayLike
from napsets.checks.values import check_kind, check_progress, check_rates, choose, shown
from napsets.errors import FileFormatError, InvalidInputError, NapsetsWarning, NotCalibratedError, warn
from napsets.graph import check_graph
from napsets.levels import Exact
from napsets.methods.data import CalibrationData, model_outputs, with_new_nodes
from napsets.predictions import Predicted

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated
    from napsets.methods.saving import Saved

Result = TypeVar("Result")
Self = TypeVar("Self", bound="Predictor[Any]")
#: Whether sets are to have p-values, and which.
Wanted = bool | Literal["smoothed"]


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


@dataclass(eq=False)
class Predictor(Predicts, Calibrates[Result]):
    """Settings and a calibration kept together."""

    calibrated_: Calibrated | None = field(default=None, init=False, repr=False)
    #: The method that was calibrated; of an automatic one the method that chose, None where a file does not say it.
    _calibrated_with: Any = field(default=None, init=False, repr=False)
    #: The settings that were checked last, and the method that they make.
    _checked: tuple[list[Any], Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.to_method()

    @abstractmethod
    def _method(self) -> Any:
        """Return the method that the settings make, which checks them."""

    def to_method(self) -> Any:
        """Return the method that the settings make as they are now: a `Method`, of an `Auto` one that chooses."""
        settings = list(self.get_params().values())
        if self._checked is not None and all(map(is_, settings, self._checked[0])):
            return self._checked[1]
        method = self._method()
        self.score, self.seed, self.allow_empty = method.score, method.seed, method.allow_empty
        self.by = method.groups
        self._checked = list(self.get_params().values()), method
        return method

    def fit(self, data: CalibrationData) -> Result:
        """Calibrate with arguments that were checked, and return this object."""
        method = self.to_method()
        self.calibrated_, self._calibrated_with = method.fit(data), method
        return self  # type: ignore[return-value]

    def calibrated(self, caller: str = "predict") -> Calibrated:
        """Return the calibration with the settings as they are now, or say that there is none."""
        method = self.to_method()
        if self.calibrated_ is None:
            raise NotCalibratedError(f"{type(self).__name__}.{caller}() needs calibrate(...) to be called first")
        if self._calibrated_with is None or method == self._calibrated_with:
            return self.calibrated_
        changed = [f"`{name}`" for name in self._scored_otherwise(method)]
        if changed:
            raise NotCalibratedError(
                f"{type(self).__name__}.{caller}() needs calibrate(...) to be called again: {' and '.join(changed)} "
                f"{'was' if len(changed) == 1 else 'were'} changed after it"
            )
        self.calibrated_, self._calibrated_with = method.on(self.calibrated_.scored), method
        return self.calibrated_

    _present = calibrated

    def _scored_otherwise(self, method: Any) -> list[str]:
        """Return the settings that were changed in such a way that nodes must be scored again."""
        scored: Any = self.calibrated_.scored  # type: ignore[union-attr]
        changed = [name for name in ("score", "seed") if getattr(method, name) != getattr(scored, name)]
        if method.level.reference_size(scored.calibration.size) != scored.reference.nodes.size:
            # Other predictors hold labels out for scores and groups that learn.
            changed += ["exact"] if hasattr(self, "exact") else [] if changed else ["by"]
        return changed

    # -- as scikit-learn's tools expect it -----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; there are no estimators inside that `deep` would look into."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self) if attribute.init}

    def set_params(self: Self, **params: Any) -> Self:
        """Change settings by name, all of them or, where one cannot be, none; return this object."""
        choices = self.get_params()
        for name in params:
            choose("params", name, choices)
        type(self)(**(choices | params))  # refuses what cannot be
        for name, value in params.items():
            setattr(self, name, value)
        self.to_method()
        return self

    def __sklearn_clone__(self: Self) -> Self:
        """Return the same settings without the calibration, for ``sklearn.base.clone``."""
        return type(self)(**self.get_params())

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated predictor to one file (NumPy arrays and JSON, no pickle), whole or not at all."""
        from napsets.methods.auto import AutoMethod
        from napsets.methods.saving import save

        calibrated = self.calibrated("save")
        auto = self._calibrated_with if isinstance(self._calibrated_with, AutoMethod) else None
        save(calibrated, path, kind=type(self).__name__, auto=auto)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a predictor that `save` wrote."""
        from napsets.methods.saving import read_saved

        saved = read_saved(path)
        if saved.kind != cls.__name__:
            raise InvalidInputError(f"`path` must hold a {cls.__name__}; {os.fspath(path)} holds a {saved.kind}")
        return cls._from_saved(saved, path)

    @classmethod
    def _from_saved(cls: type[Self], saved: Saved, path: str | os.PathLike[str]) -> Self:
        method = saved.calibrated.method
        settings = vars(method) | vars(method.localiser) | {
            "by": method.groups,
            "exact": isinstance(method.level, Exact),
            "fallback": getattr(method.level, "fallback", "full"),
        }  # fmt: skip
        predictor = cls(**{attribute.name: settings[attribute.name] for attribute in fields(cls) if attribute.init})
        if predictor.to_method() != method:
            raise FileFormatError(
                f"`path` must hold settings that a {cls.__name__} can have; {os.fspath(path)} holds {shown(method)}"
            )
        predictor.calibrated_, predictor._calibrated_with = saved.calibrated, method
        return predictor
