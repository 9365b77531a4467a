"""The present sets of a living graph: what was chosen and learned, and the engine that keeps the sets up to date.

Methods that learn or choose are fitted on the reference labels alone, when the reference has grown by a quarter or on
request; in between, the choice and what was learned stay the same.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.errors import NapsetsWarning
from napsets.levels import Full, Level
from napsets.live.alarms import smoothed_p_value
from napsets.live.following import Following
from napsets.live.full_calibration import FullCalibration
from napsets.live.labelled_nodes import EvidenceCounts, counted_score
from napsets.live.settings import LiveSettings
from napsets.live.state import State
from napsets.localisers import Everyone, Reference
from napsets.methods.auto import FEWEST, MOST_SIZE_NODES, AutoMethod
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Choice
from napsets.methods.data import CalibrationData, Scored
from napsets.methods.method import Method
from napsets.methods.p_values import compared, in_order, p_values
from napsets.predictions import PredictionSets
from napsets.scores import Informed, Labelled, learns
from napsets.scores.base import BoundRows
from napsets.scores.evidence import evenly
from napsets.scores.exponents import Learned
from napsets.scores.informed import BoundInformed, evidence_of


@dataclass(frozen=True, eq=False)
class Fitted:
    """The last choice and fit, and the number of reference labels then."""

    method: Method  #: The chosen method, or the only one.
    learned: Learned | None = None  #: The parameters of an informed score.
    labels: int = 0  #: Reference labels then.
    choice: Choice | None = None  #: How the method was chosen; not known after a restart from a snapshot.


def _fit(method: Method | AutoMethod, state: State, counts: EvidenceCounts | None) -> Fitted:
    """Choose and fit on the present reference, with these counts of evidence, or without any on the whole graph."""
    reference = state.sizes[0]
    if isinstance(method, Method) and counts is not None:
        return Fitted(method, counts.fit(), reference)
    data, slots = state.batch()
    if isinstance(method, AutoMethod):
        if counts is not None:
            named = {field.name: getattr(data, field.name) for field in fields(data)}
            data = _SomeNodes(**named, counts=counts, slots=slots)
        calibrated = method.fit(data, followed=True)
        chosen, score, choice = calibrated.method, calibrated.score, calibrated.choice
    else:
        scored = data.scored_in_parts(method.score, method.seed, *data.parts(0, method.seed), level=method.level)
        chosen, score, choice = method, scored.bound, None
    informed = evidence_of(score)
    return Fitted(chosen, None if informed is None else informed.learned, reference, choice)


@dataclass(frozen=True, eq=False)
class _SomeNodes(CalibrationData):
    """Data of which informed scores are computed only for the nodes that a choice looks at."""

    counts: Any = None  #: The counts of labels around nodes.
    slots: Any = None  #: The slot of each node.

    @cached_property
    def _corrected(self) -> tuple[Labelled, Learned, npt.NDArray[Any]]:
        """The reference, what is learned from it, and the corrected probabilities: 0 of nodes not looked at."""
        nodes, learned = self.parts(0, 0)[0], self.counts.fit()
        others = np.delete(np.arange(self.truth.size), nodes)
        rows = np.sort(np.concatenate([nodes, others[evenly(others.size, MOST_SIZE_NODES)]]))
        near, far, around = self.counts.of_reference(self.slots[rows])
        fixed = self.counts.fixed(self.slots[rows], around, learned)
        probabilities = np.zeros(self.outputs.shape, self.outputs.dtype)  # of which only some rows are touched
        probabilities[rows] = self.counts.probabilities(learned, fixed, near, far)
        return Labelled(nodes, self.truth[nodes]), learned, probabilities

    def scored(self, score: Any, level: Level, seed: int) -> Scored:
        """Return the nodes scored; by an informed score, the reference and the nodes that sizes are measured on."""
        if counted_score(score) is None:
            return super().scored(score, level, seed)
        (known, learned, p), u = self._corrected, self.counts.state.nodes["u"][self.slots]
        bound = BoundInformed(BoundRows(score.base, p, u), self.outputs[:0], learned, known)
        nodes, labels = known.nodes, known.labels
        reference = Reference(nodes, bound.at(nodes, labels), u.size, self.graph, None, u, labels)
        return Scored(score, seed, u, bound, reference, nodes[:0], np.empty(0), labels, labels[:0], alone=bound)


class Uncalibrated:
    """The sets while there are too few labels: full ones."""

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings, self.state = settings, state

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return full sets."""
        return self.equal_sets(slots, True, alpha, np.inf if self.settings.keeps_apart else None)

    def equal_sets(self, slots: IntArray, full: bool, alpha: float, level: float | None) -> PredictionSets:
        """Return sets that rest on no label: all of them full, or all of them empty."""
        return PredictionSets.unchecked(
            nodes=slots,
            member=np.full((slots.size, int(self.state.classes or 0)), full),
            thresholds=np.full(slots.size, np.inf if full else -np.inf),
            support=np.zeros(slots.size, dtype=np.int64),
            effective_size=np.zeros(slots.size),
            alpha=alpha,
            class_names=self.settings.class_names,
            level=level,
        )

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[BoolArray, None]]:
        """Yield the set before each label; see `Calibration.judge`."""
        for place in range(slots.size):
            yield self.predict(slots[place : place + 1], alpha).member[0], None

    def p_value(self, slot: int, score: float | None, u: float) -> float:
        """Return the smoothed p-value of a label, which there is nothing to compare with."""
        return u

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate, which is 1."""
        return np.ones((slots.size, int(self.state.classes or 0)))

    def candidates(self, slots: IntArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the probability of every label, and scores of 0."""
        rows = self.state.nodes["outputs"][slots]
        return rows, np.zeros(rows.shape)


class Whole(Uncalibrated):
    """A calibration of the whole present state, repeated after every change, once something is chosen and learned."""

    #: A label enters before its p-value is computed: it is evidence for the others held out.
    enters_first = True

    def __init__(self, settings: LiveSettings, state: State, fitted: Fitted | None) -> None:
        super().__init__(settings, state)
        self.fitted = fitted
        self._present: tuple[IntArray, Calibrated] | None = None

    def changed(self, *_: object) -> None:
        """Forget the calibration: the state has changed."""
        self._present = None

    grow = enter = leave = see_edges = see_outputs = changed

    # -- results -------------------------------------------------------------------------------------------------

    def present(self) -> tuple[IntArray, Calibrated]:
        """Return the slots that hold a node, and their calibration; there must be a label of the reference."""
        if self._present is None:
            assert self.fitted is not None
            (data, slots), method = self.state.batch(), self.fitted.method
            parts = data.parts(0 if method.level.keeps_apart else data.calibration.size, method.seed)
            scored = data.scored_in_parts(
                method.score, method.seed, *parts, level=method.level, learned=self.fitted.learned
            )
            self._present = slots, replace(method.on(scored), choice=self.fitted.choice)
        return self._present

    def _nodes(self, slots: IntArray) -> tuple[IntArray, Calibrated]:
        """Return which nodes of the present calibration the slots are, and the calibration."""
        present, calibrated = self.present()
        return np.searchsorted(present, slots), calibrated

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        nodes, calibrated = self._nodes(slots)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            sets: PredictionSets = calibrated.predict(positions=nodes, alpha=alpha)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def p_value(self, slot: int, _: float | None, u: float) -> float:
        """Return the smoothed p-value of a label that has just entered, among the others that set the level."""
        node, calibrated = self._nodes(np.array([slot]))
        label = self.state.nodes["labels"][slot]
        above, equal, count = (int(column[0, label]) for column in compared(calibrated, node))
        return smoothed_p_value(above, equal, count, u)

    def candidates(self, slots: IntArray) -> tuple[Any, FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        nodes, calibrated = self._nodes(slots)
        return calibrated.score.probabilities[nodes], calibrated.score.matrix(nodes)

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha.

        So the label of a node that is held out counts here, as it does for the level of the node's set.
        """
        nodes, calibrated = self._nodes(slots)
        if calibrated.full is not None:
            return p_values(calibrated, nodes)
        matrix = calibrated.score.matrix(nodes)
        scores = matrix.reshape(-1) + 0.0
        ranks: FloatArray = calibrated.local.ranks(np.repeat(nodes, matrix.shape[1]), scores)
        if calibrated.is_exact:
            level: Any = calibrated.level
            known, wanted = in_order(level.shares, level.scores), in_order(ranks, scores)
            values = (known.size - np.searchsorted(known, wanted) + 1) / (known.size + 1)
        else:
            values = 1.0 - ranks
        return values.reshape(matrix.shape)


#: How much larger the reference must be for a new choice and new exponents.
_GROWTH = 1.25


class Calibration:
    """A fitted method, and an engine that keeps its sets up to date."""

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings, self.state = settings, state
        method: Any = settings.method
        self.learns = isinstance(method, AutoMethod) or learns(method.score)
        self.fitted: Fitted | None = None
        #: Is told of every change: a `Following`, `FullCalibration` or `Whole`.
        self.engine: Any = Whole(settings, state, None)
        self.uncalibrated = Uncalibrated(settings, state)
        if not self.learns:
            self._continue_with(Fitted(method), None)

    # -- changes; all others go to the engine directly -----------------------------------------------------------------

    def enter(self, slot: int, score: float | None = None) -> None:
        """Count a label; if the reference has grown by a quarter, choose and fit again."""
        self.engine.enter(slot, score)
        if self.learns and (self.fitted is None or self.state.sizes[0] >= _GROWTH * max(self.fitted.labels, 1)):
            self.refit()

    def refit(self) -> None:
        """Choose and fit again, on the present reference."""
        if self.learns and self.state.sizes[0]:
            counts = self._evidence_counts()
            self._continue_with(_fit(self.settings.method, self.state, counts), counts)

    def _evidence_counts(self) -> EvidenceCounts | None:
        """Return the counts of labels around nodes, if the method can be fitted by them."""
        method: Any = self.settings.method
        if isinstance(self.engine, FullCalibration):
            return self.engine.counts
        if isinstance(method, AutoMethod):
            score = Informed() if sum(self.state.sizes) >= FEWEST else None
        else:
            score = counted_score(method.score)
        return None if self.settings.directed or score is None else EvidenceCounts(self.state, score.hops)

    def _continue_with(self, fitted: Fitted, counts: EvidenceCounts | None) -> None:
        """Continue with another choice, or other exponents; an engine takes over all present labels."""
        self.fitted = fitted
        method, directed = fitted.method, self.settings.directed
        score = counted_score(method.score)
        if not learns(method.score) and (isinstance(method.localiser, Everyone) or not directed):
            self.engine = Following(method, self.state)
        elif not directed and isinstance(method.level, Full) and score is not None:
            assert fitted.learned is not None
            counts = EvidenceCounts(self.state, score.hops) if counts is None else counts
            self.engine = FullCalibration(method, counts, fitted.learned)
        else:
            self.engine = Whole(self.settings, self.state, fitted)

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Any:
        """What gives results now: the engine, unless there are too few labels for it."""
        fitted, sizes = self.fitted, self.state.sizes
        if isinstance(self.engine, Following):  # which needs none
            return self.engine
        enough = fitted is not None and (all(sizes) if fitted.method.level.keeps_apart else any(sizes))
        return self.engine if enough else self.uncalibrated

    def present(self) -> tuple[IntArray, Calibrated] | None:
        """Return the slots that hold a node, and their batch calibration; None while there are too few labels."""
        fitted, sizes = self.fitted, self.state.sizes
        if fitted is None or self.current is self.uncalibrated:
            return None
        if not (sizes[0] if fitted.method.level.keeps_apart else sum(sizes)):
            return None
        whole = self.engine if isinstance(self.engine, Whole) else Whole(self.settings, self.state, fitted)
        return whole.present()

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[BoolArray, float | None]]:
        """Yield the set that stood before each label, as a row of `member`, and the label's score.

        The score is None where the engine does not need it. Each label must have entered before the next is requested.
        """
        place = 0
        while place < slots.size:
            engine = self.current
            for judgement in engine.judge(slots[place:], labels[place:], alpha):
                yield judgement
                place += 1
                if self.current is not engine:  # another choice was made, or there are enough labels now
                    break

    def score_at(self, slot: int, label: int) -> float | None:
        """Return the score of a node at a label; None where the engine does not need it."""
        if isinstance(self.engine, Following):
            return float(self.engine.scores(np.array([slot]), np.array([label]))[0])
        return None

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was chosen and learned, for a snapshot."""
        fitted = self.fitted
        if not self.learns or fitted is None:
            return {}
        exponents, tables = (None, {}) if fitted.learned is None else fitted.learned.parts()
        text = json.dumps([fitted.method.describe(), exponents, fitted.labels])
        return tables | {"fitted": np.frombuffer(text.encode(), dtype=np.uint8)}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take what was chosen and learned from a snapshot, for a state that was restored."""
        fitted, nodes = self.fitted, self.state.nodes
        if "fitted" in arrays and nodes.size:
            described, exponents, labels = json.loads(arrays["fitted"].tobytes())
            none = Labelled(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            learned = None if exponents is None else Learned.from_parts(exponents, arrays, none, nodes["outputs"][:1])
            fitted = Fitted(Method.from_description(described), learned, labels)
        if fitted is not None:
            self._continue_with(fitted, None)
