"""Calibrated: a method with its calibration, which does not change afterwards; its thresholds and predictions.

Several calibrated methods on the same nodes share what they can: the search where they have the same reference nodes,
the scores where they have the same score. One search serves several alphas.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, check_index, frozen, sealed
from napsets.checks.frames import find_nodes
from napsets.checks.values import check_flag, check_progress, check_rates, check_threads, shown
from napsets.errors import InvalidInputError, warn
from napsets.graph import Graph
from napsets.kernels.threads import stages
from napsets.levels import FittedLevel, Full, few_labels
from napsets.localisers import AroundLocal, Local, LocalThresholds, share_search
from napsets.methods.data import Scored
from napsets.methods.p_values import p_values
from napsets.methods.predictor import Predicts, Wanted
from napsets.predictions import NodeThresholds, Prediction
from napsets.scores import prediction_type

if TYPE_CHECKING:
    from napsets.methods.grouped import Grouped

PredictionT = TypeVar("PredictionT", bound=Prediction)

#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20


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
        parts = zip(*(some[0] for _, some in predict_in_parts([self], [at_rates], rows)), strict=True)
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
        smoothed = isinstance(wanted, str)
        if smoothed and wanted != "smoothed":
            raise InvalidInputError(f"`p_values` must be True, False or 'smoothed'; got {shown(wanted)}")
        if not smoothed and not check_flag("p_values", wanted):
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


# -- several methods on the same nodes --------------------------------------------------------------------------------


def predict_in_parts(
    calibrated: Sequence[Any], thresholds: Sequence[Sequence[NodeThresholds]], nodes: IntArray
) -> Iterator[tuple[slice, dict[int, list[Prediction]]]]:
    """Turn the thresholds of each method at each error rate into predictions, some nodes at a time.

    Methods of one score share its matrix, and no more of it is held than a part. Yields which rows, and by the place of
    each method that shares a score its predictions at each error rate.
    """
    by_score: dict[int, list[int]] = {}
    for place, method in enumerate(calibrated):
        by_score.setdefault(id(method.score), []).append(place)
    for places in by_score.values():
        score = calibrated[places[0]].score
        step = max(1, _CHUNK_ENTRIES // max(1, score.num_labels))
        for start in range(0, max(nodes.size, 1), step):
            rows = slice(start, min(start + step, nodes.size))
            wanted = [node_thresholds[rows] for place in places for node_thresholds in thresholds[place]]
            predictions = iter(score.predict(nodes[rows], wanted))
            yield rows, {place: [next(predictions) for _ in thresholds[place]] for place in places}


def find_thresholds(
    calibrated: Sequence[Any],
    nodes: IntArray,
    alphas: Sequence[float],
    *,
    labels: Sequence[IntArray] | None = None,
    threads: int | None = None,
    progress: Any = None,
) -> list[LocalThresholds]:
    """Return the thresholds of several calibrated methods, shape (alphas, nodes) each.

    Weightings of the same scored nodes share one search. If every candidate has its own threshold, only those of
    some `labels` of each method may be computed.
    """
    cuts = [method.level.cuts(alphas) for method in calibrated]
    searches: dict[Any, list[int]] = {}
    for i, method in enumerate(calibrated):
        shared = isinstance(method.local, AroundLocal) and method.grouped is None and method.full is None
        searches.setdefault((type(method.local), id(method.local.reference)) if shared else i, []).append(i)
    thresholds: dict[int, LocalThresholds] = {}
    reports = stages(progress, [1] * len(searches), nodes.size)
    for (key, places), report in zip(searches.items(), reports, strict=True):
        first = calibrated[places[0]]
        if first.grouped is not None:
            thresholds[key] = first.grouped.thresholds(nodes, alphas, threads, report)
        elif first.full is not None:
            some = None if labels is None else labels[key]
            thresholds[key] = first.full.local_thresholds(nodes, alphas, some, threads, report)
        else:
            if isinstance(key, tuple):
                locals_ = [calibrated[i].local for i in places]
                local = share_search(locals_, nodes, [cuts[i] for i in places], threads=threads, progress=report)
            else:
                own = first.local.thresholds(nodes, cuts[key], threads=threads, progress=report)
                local = [_check_local(first, own, (len(cuts[key]), nodes.size))]
            for i, node_thresholds in zip(places, local, strict=True):
                thresholds[i] = calibrated[i].level.thresholds(node_thresholds, nodes, alphas)
        if report is not None:
            report(1, 1)
    return [thresholds[i] for i in range(len(calibrated))]


def _check_local(calibrated: Any, thresholds: object, shape: tuple[int, int]) -> LocalThresholds:
    """Return the thresholds that a local gave; a localiser of the user's own may give anything."""
    if not isinstance(thresholds, LocalThresholds) or np.shape(thresholds.values) != shape:
        local = isinstance(thresholds, LocalThresholds)
        got = f"values of shape {np.shape(thresholds.values)}" if local else shown(thresholds)  # type: ignore[attr-defined]
        raise InvalidInputError(
            f"`localiser` must give LocalThresholds with values of shape {shape}, one row per cut and one column per "
            f"node; {type(calibrated.method.localiser).__name__} gave {got}"
        )
    return thresholds
