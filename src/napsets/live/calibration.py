"""The present sets of a living graph, however they are kept up to date, and when methods are fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import NapsetsWarning
from napsets.levels import Full
from napsets.live.alarms import smoothed_p_value
from napsets.live.evidence_counts import EvidenceCounts
from napsets.live.fitted import Fitted, fit
from napsets.live.following import Following
from napsets.live.full_calibration import FullCalibration
from napsets.live.settings import LiveSettings
from napsets.live.state import Batch, State
from napsets.localisers import Everyone
from napsets.methods.auto import FEWEST, AutoMethod
from napsets.methods.calibrated import Calibrated
from napsets.methods.p_values import p_values
from napsets.predictions import PredictionSets
from napsets.scores import ByLabel, Informed, learns


class Whole:
    """A calibration of the whole present state, repeated after every change.

    Without anything chosen and learned (`fitted` is None) there are no results.
    """

    #: The p-value of a label is computed once it is among the labels held out: then it is evidence for them too.
    judges_after = True

    def __init__(self, fitted: Fitted | None, state: State) -> None:
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
            assert self.fitted is not None
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


#: How much larger the reference must be for a new choice and new exponents.
_GROWTH = 1.25


class Calibration:
    """A fitted method, and an engine that keeps its sets up to date.

    Methods that learn or choose are fitted when the reference has grown by a quarter, or on request; in between, the
    choice and what was learned stay the same.
    """

    def __init__(self, settings: LiveSettings, state: State) -> None:
        self.settings, self.state = settings, state
        method: Any = settings.method
        self.learns = isinstance(method, AutoMethod) or learns(method.score)
        self.fitted: Fitted | None = None
        #: Keeps the sets up to date, and is told of every change: a `Following`, `FullCalibration` or `Whole`.
        self.engine: Any = Whole(None, state)
        if not self.learns:
            self._go_on(Fitted(method), None)

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
            self._go_on(fit(self.settings.method, self.state, counts), counts)

    def _evidence_counts(self) -> EvidenceCounts | None:
        """Return the counts of labels around nodes, if the method can be fitted by them."""
        method: Any = self.settings.method
        if isinstance(self.engine, FullCalibration):
            return self.engine.counts
        chooses = isinstance(method, AutoMethod)
        suits = sum(self.state.sizes) >= FEWEST if chooses else FullCalibration.suits(method.score)
        if self.settings.directed or not suits:
            return None
        return self._count_evidence(None if chooses else method.score)

    def _count_evidence(self, score: Any) -> EvidenceCounts:
        informed = Informed() if score is None else score.base if isinstance(score, ByLabel) else score
        counts = EvidenceCounts(self.state, informed.hops)
        counts.load()
        return counts

    def _go_on(self, fitted: Fitted, counts: EvidenceCounts | None) -> None:
        """Continue with another choice, or other exponents; an engine takes over all present labels."""
        self.fitted = fitted
        method, directed = fitted.method, self.settings.directed
        if not learns(method.score) and (isinstance(method.localiser, Everyone) or not directed):
            self.engine = Following(method, self.state)
            self.engine.load()
        elif not directed and isinstance(method.level, Full) and FullCalibration.suits(method.score):
            assert fitted.learned is not None
            counts = self._count_evidence(method.score) if counts is None else counts
            self.engine = FullCalibration(method, counts, fitted.learned)
        else:
            self.engine = Whole(fitted, self.state)

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def _is_ready(self) -> bool:
        """Whether there are labels to calibrate on; `Following` needs none."""
        if isinstance(self.engine, Following) and not self.learns:
            return True
        reference, held_out = self.state.sizes
        if self.fitted is None:
            return False
        return bool(reference and held_out) if self.fitted.method.level.keeps_apart else bool(reference + held_out)

    def present(self) -> tuple[Batch, Calibrated] | None:
        """Return the present state and its batch calibration; None while there are too few labels."""
        if self.fitted is None or not self._is_ready or not sum(self.state.sizes):
            return None
        if self.fitted.method.level.keeps_apart and not self.state.sizes[0]:
            return None
        return (self.engine if isinstance(self.engine, Whole) else Whole(self.fitted, self.state)).present()

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        if self._is_ready:
            sets: PredictionSets = self.engine.predict(slots, alpha)
            return sets
        return self.alike_sets(slots, True, alpha, np.inf if self.settings.keeps_apart else None)

    def alike_sets(self, slots: IntArray, full: bool, alpha: float, level: float | None) -> PredictionSets:
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

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[bool, int, float | None]]:
        """Yield for each label whether the set that stood before it covered it, the size of that set, and its score.

        The score is None where the engine does not need it. Each label must have entered before the next is requested.
        """
        place = 0
        while place < slots.size:
            if not self._is_ready:
                yield True, int(self.state.classes or 0), None
                place += 1
                continue
            engine = self.engine
            for judgement in engine.judge(slots[place:], labels[place:], alpha):
                yield judgement
                place += 1
                if self.engine is not engine:  # another choice was made
                    break

    def score_at(self, slot: int, label: int) -> float | None:
        """Return the score of a node at a label; None where the engine does not need it."""
        if isinstance(self.engine, Following):
            return float(self.engine.scores(np.array([slot]), np.array([label]))[0])
        return None

    def p_value(self, slot: int, score: float | None, u: float) -> float:
        """Return the smoothed p-value of a node's label among those that set the level."""
        return float(self.engine.p_value(slot, score, u)) if self._is_ready else u

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        if not self._is_ready:
            return np.ones((slots.size, int(self.state.classes or 0)))
        values: FloatArray = self.engine.p_values(slots)
        return values

    def candidates(self, slots: IntArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes); without labels, scores of 0."""
        if self._is_ready:
            probabilities, scores = self.engine.candidates(slots)
            return probabilities, scores
        rows = self.state.nodes["outputs"][slots]
        return rows, np.zeros(rows.shape)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was chosen and learned, for a snapshot."""
        return {} if not self.learns or self.fitted is None else self.fitted.arrays()

    def take(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take what was chosen and learned from a snapshot, for a state that was restored."""
        if "fitted" in arrays and self.state.nodes.size:
            self._go_on(Fitted.from_arrays(arrays, self.state.nodes["outputs"][:1]), None)
        else:
            self.engine.load()
