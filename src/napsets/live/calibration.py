"""Sets of a living graph as it is now: those of a batch calibration of the present state, with its own split."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import NapsetsWarning
from napsets.live.alarms import smoothed_p_value
from napsets.live.settings import LiveSettings
from napsets.live.state import Batch, State
from napsets.methods.auto import AutoMethod
from napsets.methods.calibrated import Calibrated
from napsets.methods.choice import Choice
from napsets.methods.method import Method
from napsets.predictions import PredictionSets
from napsets.scores import Labelled, learns
from napsets.scores.exponents import Learned
from napsets.scores.informed import evidence_of

__all__ = ["BatchCalibration"]

#: By how much the reference must have grown for a new choice and new exponents.
_GROWTH = 1.25


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was chosen and fitted last, and on how many reference labels.

    Attributes
    ----------
    method : Method
        What was chosen, or the only method there is.
    learned : Learned or None
        What an informed score learned.
    labels : int
        Reference labels then.
    choice : Choice or None
        How the method was chosen; not known any more after a restart from a snapshot.
    """

    method: Method
    learned: Learned | None = None
    labels: int = 0
    choice: Choice | None = None


class BatchCalibration:
    """A calibration of the whole present state, made anew after every change: the specification of all others.

    Methods that learn or choose do so when the reference has grown by a quarter, or when asked; in between, the choice
    and what was learned stay as they are.
    """

    #: A label's p-value is that among the labels held out once it is one of them: then it is evidence for them too.
    judges_after = True

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings, self.state = settings, state
        method: Any = settings.method
        self.learns = isinstance(method, AutoMethod) or learns(method.score)
        self.fitted = None if self.learns else Fitted(method)
        self._present: tuple[Batch, Calibrated | None] | None = None

    # -- what happens --------------------------------------------------------------------------------------------------

    def changed(self, *_: object) -> None:
        """Forget the calibration: the state is another."""
        self._present = None

    load = grow = leave = touch = see_outputs = changed

    def enter(self, *_: object) -> None:
        """Let a label count; where the reference has grown by a quarter, choose and fit anew."""
        self.changed()
        reference = self.state.sizes[0]
        if self.learns and reference and (self.fitted is None or reference >= _GROWTH * max(self.fitted.labels, 1)):
            self.refit()

    def refit(self) -> None:
        """Choose and fit anew, on the reference as it is."""
        if not self.learns or not self.state.sizes[0]:
            return
        self.changed()
        batch, method = self.state.batch(), self.settings.method
        parts = batch.reference, batch.level_nodes
        if isinstance(method, AutoMethod):
            calibrated = method.fit(replace(batch.data, split=parts))
            chosen, score, choice = calibrated.method, calibrated.score, calibrated.choice
        else:
            scored = batch.data.scored_in_parts(method.score, method.seed, *parts, level=method.level)
            chosen, score, choice = method, scored.bound, None
        informed = evidence_of(score)
        learned = None if informed is None else informed.learned
        self.fitted = Fitted(chosen, learned, batch.reference.size, choice)

    # -- what is asked -------------------------------------------------------------------------------------------------

    def present(self) -> tuple[Batch, Calibrated | None]:
        """Return the present state and its calibration; None while there are too few labels to calibrate on."""
        if self._present is None:
            self._present = self._calibrate(self.state.batch())
        return self._present

    def _calibrate(self, batch: Batch) -> tuple[Batch, Calibrated | None]:
        fitted = self.fitted
        if fitted is None:
            return batch, None
        method, parts = fitted.method, (batch.reference, batch.level_nodes)
        if not method.level.keeps_apart:
            parts = batch.data.calibration, batch.level_nodes[:0]
        elif not parts[1].size and self.learns:
            return batch, None
        if not parts[0].size:
            return batch, None
        scored = batch.data.scored_in_parts(
            method.score, method.seed, *parts, level=method.level, learned=fitted.learned
        )
        return batch, replace(method.on(scored), choice=fitted.choice)

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        batch, calibrated = self.present()
        nodes = np.searchsorted(batch.slots, slots)
        if calibrated is None:
            shape = (nodes.size, batch.data.outputs.shape[1])
            return PredictionSets.unchecked(
                nodes=slots,
                member=np.ones(shape, dtype=bool),
                thresholds=np.full(nodes.size, np.inf),
                support=np.zeros(nodes.size, dtype=np.int64),
                effective_size=np.zeros(nodes.size),
                alpha=alpha,
                class_names=self.settings.class_names,
                level=np.inf if self.settings.keeps_apart else None,
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            sets: PredictionSets = calibrated.predict(positions=nodes, alpha=alpha)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[bool, int, float]]:
        """Yield, label by label, what it says of the set that stands before it comes: covered, size, and nothing else.

        Each label must have entered before the next is asked for.
        """
        for slot, label in zip(slots.tolist(), labels.tolist(), strict=True):
            member = self.predict(np.array([slot]), alpha).member[0]
            yield bool(member[label]), int(member.sum()), 0.0

    def p_value(self, slot: int, _: float, u: float) -> float:
        """Return the smoothed p-value of a label that has just entered, among the others that set the level."""
        batch, calibrated = self.present()
        if calibrated is None:
            return u
        node, scored = np.searchsorted(batch.slots, slot), calibrated.scored
        if calibrated.is_exact:
            own, scores = scored.level_nodes == node, scored.level_scores
            shares = calibrated.local.ranks(scored.level_nodes, scores)
        else:
            own, scores = scored.reference.nodes == node, scored.reference.scores
            shares = np.zeros(scores.size)
        if not own.any():
            return u
        tied = shares == shares[own]
        greater = (shares > shares[own]) | (tied & (scores > scores[own]))
        equal = tied & (scores == scores[own])
        return smoothed_p_value(int(greater.sum()), int(equal.sum()) - 1, scores.size - 1, u)

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        batch, calibrated = self.present()
        if calibrated is None:
            return np.ones((slots.size, batch.data.outputs.shape[1]))
        nodes, classes = np.searchsorted(batch.slots, slots), batch.data.outputs.shape[1]
        if not calibrated.is_exact:
            scores = calibrated.score.matrix(nodes).reshape(-1) + 0.0
            local: FloatArray = 1.0 - calibrated.local.ranks(np.repeat(nodes, classes), scores)
            return local.reshape(nodes.size, classes)
        # The smallest j of n + 1 at which a candidate is left out of the set at alpha = j / (n + 1), by halving.
        size = calibrated.scored.level_nodes.size
        low, high = np.zeros((nodes.size, classes), dtype=np.int64), np.full((nodes.size, classes), size + 1)
        while (high - low > 1).any():
            middle = (low + high) // 2
            inside = np.ones(low.shape, dtype=bool)
            for j in np.unique(middle[high - low > 1]).tolist():
                rows = np.flatnonzero((middle == j).any(axis=1))
                inside[rows] = np.where(
                    middle[rows] == j, self.predict(slots[rows], j / (size + 1)).member, inside[rows]
                )
            open_ = high - low > 1
            low, high = np.where(open_ & inside, middle, low), np.where(open_ & ~inside, middle, high)
        return high / (size + 1)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was chosen and learned, for a snapshot."""
        if not self.learns or self.fitted is None:
            return {}
        exponents, tables = (None, {}) if self.fitted.learned is None else self.fitted.learned.parts()
        text = json.dumps([self.fitted.method.describe(), exponents, self.fitted.labels])
        return tables | {"fitted": np.frombuffer(text.encode(), dtype=np.uint8)}

    def take(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take what was chosen and learned from a snapshot."""
        if "fitted" in arrays and self.state.outputs is not None:
            described, exponents, labels = json.loads(arrays["fitted"].tobytes())
            none = Labelled(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            rows = self.state.outputs.values[:1]
            learned = None if exponents is None else Learned.from_parts(exponents, arrays, none, rows)
            self.fitted = Fitted(Method.from_description(described), learned, labels)
