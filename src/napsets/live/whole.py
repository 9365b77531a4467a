"""Sets of a living graph that are calibrated again after every change: the specification of the other engines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import NapsetsWarning
from napsets.live.alarms import smoothed_p_value
from napsets.live.fitted import Fitted
from napsets.live.state import Batch, State
from napsets.methods.calibrated import Calibrated
from napsets.methods.p_values import p_values
from napsets.predictions import PredictionSets


class Whole:
    """A calibration of the whole present state, repeated after every change.

    Parameters
    ----------
    fitted : Fitted
        What was chosen and learned.
    state : State
        The state; it reports every change.
    """

    #: The p-value of a label is computed once it is among the labels held out: then it is evidence for them too.
    judges_after = True

    def __init__(self, fitted: Fitted, state: State) -> None:
        self.fitted, self.state = fitted, state
        self._present: tuple[Batch, Calibrated] | None = None

    def changed(self, *_: object) -> None:
        """Forget the calibration: the state has changed."""
        self._present = None

    load = grow = enter = leave = touch = see_outputs = changed

    # -- results -------------------------------------------------------------------------------------------------

    def present(self) -> tuple[Batch, Calibrated]:
        """Return the present state and its calibration; there must be a label of the reference."""
        if self._present is None:
            batch, method = self.state.batch(), self.fitted.method
            parts = batch.reference, batch.level_nodes
            if not method.level.keeps_apart:
                parts = batch.data.calibration, batch.level_nodes[:0]
            scored = batch.data.scored_in_parts(
                method.score, method.seed, *parts, level=method.level, learned=self.fitted.learned
            )
            self._present = batch, replace(method.on(scored), choice=self.fitted.choice)
        return self._present

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        batch, calibrated = self.present()
        nodes = np.searchsorted(batch.slots, slots)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NapsetsWarning)
            sets: PredictionSets = calibrated.predict(positions=nodes, alpha=alpha)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[bool, int, None]]:
        """Yield for each label whether the set before it covered it, and the size of that set.

        Each label must have entered before the next is requested.
        """
        for slot, label in zip(slots.tolist(), labels.tolist(), strict=True):
            member = self.predict(np.array([slot]), alpha).member[0]
            yield bool(member[label]), int(member.sum()), None

    def p_value(self, slot: int, _: float | None, u: float) -> float:
        """Return the smoothed p-value of a label that has just entered, among the others that set the level."""
        batch, calibrated = self.present()
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

    def candidates(self, slots: IntArray) -> tuple[Any, FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        batch, calibrated = self.present()
        nodes = np.searchsorted(batch.slots, slots)
        return calibrated.score.probabilities[nodes], calibrated.score.matrix(nodes)

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha.

        So the label of a node that is held out counts here, as it does for the level of the node's set.
        """
        batch, calibrated = self.present()
        nodes, classes = np.searchsorted(batch.slots, slots), batch.data.outputs.shape[1]
        if calibrated.full is not None:
            return p_values(calibrated, nodes)
        scores = calibrated.score.matrix(nodes).reshape(-1) + 0.0
        values: FloatArray = calibrated.local.ranks(np.repeat(nodes, classes), scores)
        if calibrated.is_exact:
            level: Any = calibrated.level
            known, wanted = _in_order(level.shares, level.scores), _in_order(values, scores)
            values = (known.size - np.searchsorted(np.sort(known), wanted) + 1) / (known.size + 1)
        else:
            values = 1.0 - values
        return values.reshape(nodes.size, classes)


def _in_order(shares: FloatArray, scores: FloatArray) -> npt.NDArray[np.complex128]:
    """Return numbers that are ordered by share, and then by score."""
    pairs = np.empty(shares.size, dtype=np.complex128)
    pairs.real, pairs.imag = shares, scores
    return pairs
