"""Calibrated: a method with its calibration, which predicts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Protocol, TypeVar, overload

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, check_index, frozen, sealed
from napsets.checks.frames import find_nodes
from napsets.checks.values import Record, check_flag, check_kind, check_progress, check_rates, check_threads, shown
from napsets.errors import InvalidInputError, NapsetsError, NapsetsWarning, warn
from napsets.graph import Graph
from napsets.kernels.threads import Progress
from napsets.levels import FittedLevel, few_labels, high_alpha
from napsets.localisers import Local, LocalThresholds
from napsets.methods.data import Scored, known_to_model, on_training
from napsets.methods.new_nodes import check_new_rows, with_new_nodes
from napsets.methods.p_values import p_values
from napsets.methods.thresholds import find_thresholds, predict_in_parts
from napsets.predictions import NodeThresholds, Predicted, Prediction
from napsets.scores import BoundScore, prediction_type

if TYPE_CHECKING:
    from napsets.methods.grouped import Grouped
    from napsets.methods.method import Method

PredictionT = TypeVar("PredictionT", bound=Prediction)

#: Whether sets are to have p-values, and which.
Wanted = bool | Literal["smoothed"]
#: Methods of other libraries that users try, and what to write instead.
_ELSEWHERE = dict.fromkeys(("predict_set", "predict_sets", "predict_interval"), "predict(nodes)")
_ELSEWHERE |= dict.fromkeys(("fit", "conformalize", "calibrate"), "method.calibrate(…), which returns another one")


class Verdict(Protocol):
    """A verdict on predictions: a `napsets.evaluation.verdict.Verdict`, which prints as a few lines."""

    #: The name of the method in the table of methods.
    method: str
    alpha: float  #: The error rate.
    nodes: int  #: Predicted nodes.
    size: float  #: The average size of the predictions.
    labels: int  #: Labelled nodes.
    level_labels: int  #: Those of them that set the level.
    choice: str | None  #: What was chosen, and why, if the method was chosen.
    withdrawn: str  #: Why no coverage is promised; empty if it is.
    remedy: str  #: What to do about it, if other labels would help.
    warnings: tuple[str, ...]  #: What to watch for, the gravest first.

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict line by line."""
        ...

    def row(self) -> Record:
        """Return the verdict as plain values, for JSON."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated:
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
    choice : Choice
        How the method was chosen; None if it was not (see `napsets.methods.auto`).
    grouped : Grouped or None
        A calibration for each group, if coverage should hold in each.
    judges : numpy.ndarray or None
        Which of the level nodes set the level, if it is that of a group.
    """

    method: Method
    scored: Scored
    local: Local
    level: FittedLevel
    choice: Any = None
    grouped: Grouped | None = None
    judges: IntArray | None = None

    #: Makes verdicts; `napsets.evaluation.verdict`, a later package, enters its function here.
    foresee: ClassVar[Callable[[Calibrated, Prediction, str | None], Any] | None] = None

    def __repr__(self) -> str:
        labels, held_out = self.scored.calibration.size, self.scored.level_nodes.size
        level = f"level set on {held_out} of them" if self.is_exact else "level 1 − alpha"
        return f"Calibrated({self.method!r}, {labels} labels, {level})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name in _ELSEWHERE:
                raise AttributeError(f"a calibrated method has no {name}; write {_ELSEWHERE[name]}")
            raise AttributeError(f"'Calibrated' object has no attribute {name!r}")

    # -- what it is made of --------------------------------------------------------------------------------------------

    @property
    def score(self) -> BoundScore:
        """The bound score of every node."""
        return self.scored.bound

    @property
    def outputs(self) -> AnyArray:
        """The model's outputs for all nodes, before any correction."""
        return self.scored.data.outputs

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
        return self.method.level.holds_out_labels

    @property
    def is_proven(self) -> bool:
        """Whether coverage is a theorem for nodes labelled at random: an exact level, or weights that need none."""
        return self.is_exact or bool(getattr(self.method.localiser, "proven", False))

    @property
    def level_size(self) -> int:
        """Number of labels that set the level: those held out, or all where none is."""
        return int(self.scored.level_nodes.size if self.is_exact else self.scored.calibration.size)

    @property
    def prediction(self) -> type[Prediction]:
        """The kind of its predictions: `PredictionSets` or `PredictionIntervals`."""
        return prediction_type(self.method.score)

    @property
    def probabilities(self) -> AnyArray:
        """The probabilities that sets are made from, shape (nodes, classes), read-only.

        If the score corrects the model, as in `informed` and in what `auto` mostly chooses, these are the corrected
        probabilities; their largest entries are then point predictions that use the labels around a node, too.
        Otherwise they are the model's own. A calibration node's own label never changes its own row.
        """
        rows: AnyArray | None = self.score.probabilities
        if rows is None:
            raise InvalidInputError("`probabilities` must be asked of a method for labels; a score of numbers has none")
        return rows

    # -- predictions ---------------------------------------------------------------------------------------------------

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., alpha: float | None = ..., *, positions: ArrayLike | None = ...,
        probabilities: ArrayLike | None = ..., ids: ArrayLike | None = ..., allow_empty: bool | None = ...,
        p_values: Wanted = ..., threads: int | None = ..., progress: bool | Progress | None = ...,
    ) -> Predicted: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None = ..., *, alpha: Sequence[float], positions: ArrayLike | None = ...,
        probabilities: ArrayLike | None = ..., ids: ArrayLike | None = ..., allow_empty: bool | None = ...,
        p_values: Wanted = ..., threads: int | None = ..., progress: bool | Progress | None = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    @overload
    def predict(
        self, nodes: ArrayLike | None, alpha: Sequence[float], *, positions: ArrayLike | None = ...,
        probabilities: ArrayLike | None = ..., ids: ArrayLike | None = ..., allow_empty: bool | None = ...,
        p_values: Wanted = ..., threads: int | None = ..., progress: bool | Progress | None = ...,
    ) -> list[Predicted]: ...  # fmt: skip

    def predict(
        self,
        nodes: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        positions: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        allow_empty: bool | None = None,
        p_values: Wanted = False,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Any:
        """Return the prediction sets of `nodes`; with a score of numbers, their `PredictionIntervals`.

        Parameters
        ----------
        nodes : array, optional
            A boolean mask, or nodes by the ids that `calibrate` was given; without ids, their positions 0..n−1. By
            default all nodes that did not calibrate.
        alpha : float or sequence of floats, optional
            Error rate: a set misses the truth with probability at most about alpha. For several, a list of sets comes
            back, from one search. By default the method's own `alpha`, which is 0.1 unless it was given.
        positions : array, optional
            Nodes by their positions 0..n−1, whatever their ids.
        probabilities : array of shape (new nodes, classes), optional
            Rows of nodes that were not there at calibration, instead of `nodes`, for methods that use no graph. For
            others, `predict_new` takes the edges of new nodes.
        ids : array of integers or strings, optional
            The ids of these rows; by default numbers that continue those of the known nodes.
        allow_empty : bool, optional
            Overrides the setting of the same name.
        p_values : bool or "smoothed"
            Whether sets are to have the p-value of every label; see `p_values`.
        threads : int, optional
            Threads to use; by default all cores. The result does not depend on it.
        progress : bool or callable, optional
            Called as ``progress(done, total)`` in nodes.
        """
        if probabilities is not None or ids is not None:
            rows = check_new_rows(self, probabilities, nodes if positions is None else positions)
            options: Record = {
                "allow_empty": allow_empty,
                "p_values": p_values,
                "threads": threads,
                "progress": progress,
            }
            return self.predict_new(rows, None, alpha, ids=ids, **options)
        is_list, alphas = check_rates(self.method.alpha if alpha is None else alpha)
        check_threads(threads)
        rows = frozen(self.check_nodes(nodes, positions))
        labels = self.scored.level_nodes if self.is_exact else self.scored.calibration
        allowed = None if allow_empty is None else check_flag("allow_empty", allow_empty)
        thresholds = find_thresholds([self], rows, alphas, threads=threads, progress=check_progress(progress))[0]
        for caveat in (
            few_labels(labels.size, min(alphas)),
            None if is_list else high_alpha(alphas[0]),
            on_training(known_to_model(self.scored.data, rows), rows.size),
            None if self.grouped is None else self.grouped.caveat(rows, alphas),
        ):
            if caveat is not None:
                warn(caveat)
        at_rates = [self.thresholds_at(thresholds, row, rate, allowed) for row, rate in enumerate(alphas)]
        parts = zip(*(pieces[0] for _, pieces in predict_in_parts([self], [at_rates], rows)), strict=True)
        predictions = [self.name_rows(type(pieces[0]).concat(pieces)) for pieces in parts]
        return self.with_p_values(predictions if is_list else predictions[0], p_values)

    def predict_new(
        self,
        probabilities: ArrayLike,
        edges: ArrayLike | None = None,
        alpha: float | Sequence[float] | None = None,
        *,
        features: object = None,
        ids: ArrayLike | None = None,
        allow_empty: bool | None = None,
        p_values: Wanted = False,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Any:
        """Return the sets, or intervals, of nodes that were not there at calibration, in the order of their rows.

        They are those that a calibration on the same labels gives with the new nodes in the graph: new edges also
        bring nodes closer that were there before. The choice of an automatic method stays the same.

        Parameters
        ----------
        probabilities : array of shape (new nodes, classes)
            The model's probabilities for them; with a score of numbers, its outputs.
        edges : array of shape (2, edges), optional
            Their edges: 0..n−1 are the nodes that were there, n, n+1, … the new ones.
        features : array of shape (new nodes, columns) or SciPy sparse matrix, optional
            Their features, if the method was calibrated with features.
        ids : array of integers or strings, optional
            The names of the new nodes; by default n, n+1, …
        alpha, allow_empty, p_values, threads, progress
            As in `predict`.
        """
        grown = with_new_nodes(self, probabilities, edges, ids, features)
        nodes = np.arange(self.num_nodes, grown.num_nodes)
        return grown.predict(
            None, alpha, positions=nodes, allow_empty=allow_empty, p_values=p_values, threads=threads, progress=progress
        )

    def p_values(
        self, nodes: ArrayLike | None = None, *, positions: ArrayLike | None = None, smoothed: bool = False
    ) -> FloatArray:
        """Return the p-value of every label of some nodes: a label is in the set at alpha if its p-value exceeds alpha.

        Groups with too few labels for their own threshold are the exception: their sets are based on labels of other
        groups, their p-values are not. As in sets, a labelled node's own score is not counted at a nominal level; at an
        exact one, all held-out labels are counted for every node.

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
        smoothed = isinstance(wanted, str)
        if smoothed and wanted != "smoothed":
            raise InvalidInputError(f"`p_values` must be True, False or 'smoothed'; got {shown(wanted)}")
        if not smoothed and not check_flag("p_values", wanted):
            return prediction
        predictions = prediction if isinstance(prediction, list) else [prediction]
        values = sealed(p_values(self, predictions[0].nodes, smoothed=smoothed))
        valued = [replace(sets, p_values=values) for sets in predictions]
        return valued if isinstance(prediction, list) else valued[0]

    def thresholds_at(
        self, thresholds: LocalThresholds, row: int, alpha: float, allow_empty: bool | None = None
    ) -> NodeThresholds:
        """Return the thresholds of one error rate, with their level."""
        level = self.level.level(alpha) if self.is_exact and self.grouped is None else None
        allowed = self.method.allow_empty if allow_empty is None else allow_empty
        return thresholds.at(row, alpha, level=level, allow_empty=allowed)

    def name_rows(self, prediction: PredictionT) -> PredictionT:
        """Return a prediction of some nodes with the names of nodes and classes."""
        ids = self.scored.ids
        named = None if ids is None else ids[prediction.nodes]
        return prediction.with_names(self.num_nodes, named, self.scored.class_names)

    def check_nodes(self, nodes: ArrayLike | None, positions: ArrayLike | None = None) -> IntArray:
        """Return positions of nodes, by default of all that did not calibrate; warn where some of them did."""
        calibrates = np.zeros(self.num_nodes, dtype=bool)
        calibrates[self.scored.calibration] = True
        if nodes is None and positions is None:
            return np.flatnonzero(~calibrates)
        if positions is None:
            places = find_nodes("nodes", nodes, self.scored.ids, hint="positions=")
            rows = check_index("nodes", places, self.num_nodes)
        elif nodes is None:
            rows = check_index("positions", positions, self.num_nodes)
        else:
            raise InvalidInputError(f"`positions` must be left out where `nodes` are given; got {shown(positions)}")
        both = int(calibrates[rows].sum())
        if both:
            warn(
                f"`nodes` holds {both} {'labelled' if self.scored.evidence else 'calibration'} nodes; a node's own "
                "label is left out of its own set" + (", though it helped to set the level" if self.is_exact else "")
            )
        return rows

    # -- what to expect ------------------------------------------------------------------------------------------------

    def verdict(
        self, nodes: ArrayLike | None = None, alpha: float | None = None, *, name: str | None = None
    ) -> Verdict:
        """Return a verdict on the predictions of `nodes`: their expected size, the promise of coverage, and warnings.

        No truth is looked at. A verdict prints as a few lines.

        Parameters
        ----------
        nodes, alpha
            As in `predict`.
        name : str, optional
            The name of the method in the table of methods; by default the one that its settings have there.
        """
        if name is not None:
            check_kind("name", name, str, hint="It is the name of the method in the table of methods.")
        if Calibrated.foresee is None:
            raise NapsetsError("verdict() needs the package that makes verdicts: import napsets.evaluation.verdict")
        rate = check_rates(self.method.alpha if alpha is None else alpha)[1][0]
        with warnings.catch_warnings():  # their findings are among the verdict's warnings
            warnings.simplefilter("ignore", NapsetsWarning)
            prediction = self.predict(nodes, rate)
        verdict: Verdict = Calibrated.foresee(self, prediction, name)
        return verdict

    def warnings(self, nodes: ArrayLike | None = None, alpha: float | None = None) -> list[str]:
        """Return the warnings, the gravest first: few labels, little support, labels unlike the other nodes."""
        return list(self.verdict(nodes, alpha).warnings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated method to one file (NumPy arrays and JSON, no pickle); `napsets.load` reads it."""
        from napsets.methods.saving import save

        save(self, path)
