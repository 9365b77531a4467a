"""Full conformal prediction kept up to date: every label is evidence, and a change touches only those who hear it.

What the labels around a labelled node are counted as is kept by an `Ear`; here its score at its own label is. Scores
that changed are replaced in an ordered list, from which the threshold of a candidate is read off with the scores that
it would change left out and their new values put in (`napsets.methods.full` says why that is exact).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.kernels.first_use import compiling_now
from napsets.levels import rank_place
from napsets.live.alarms import smoothed_p_value
from napsets.live.ear import Ear
from napsets.live.nodes import Column
from napsets.methods.method import Method
from napsets.predictions import NodeThresholds, PredictionSets
from napsets.predictions.thresholds import members
from napsets.scores import ByLabel, Informed
from napsets.scores.base import BoundRows, unchecked_form
from napsets.scores.by_label import SHRINK, SLOPE
from napsets.scores.evidence import label_weights, normalised
from napsets.scores.exponents import Learned

__all__ = ["Hearing"]

Array = npt.NDArray[Any]

#: Entries of scores × candidates × classes that are held at a time.
_CHUNK_ENTRIES = 1 << 20
#: Nodes whose thresholds are found at a time: their listeners share one matrix of scores.
_CHUNK = 256
#: More places than can move, around the threshold; and how many are looked at, at the least.
_MARGIN, _LEAST_REACH = 2, 64


class Hearing:
    """The calibration of an informed score at a full level, kept up to date.

    Parameters
    ----------
    method : Method
        With the score `Informed` of a node's own row, or that ranked by label; `Everyone` and `Full`.
    ear : Ear
        What has counted the labels of the present state.
    learned : Learned
        What the reference has taught.
    """

    #: A label's p-value is that among the labels held out once it is one of them: then it is evidence for them too.
    judges_after = True

    def __init__(self, method: Method, ear: Ear, learned: Learned) -> None:
        score: Any = method.score
        self.method, self.ear, self.state, self.learned = method, ear, ear.state, learned
        self.mix = float(score.mix) if isinstance(score, ByLabel) else -1.0
        self._base = (score.base if isinstance(score, ByLabel) else score).base
        #: By entry: the part of the evidence that no label held out changes, and the score; NaN where it is in no list.
        self._fixed, self._raw = Column(np.empty((0, ear.classes))), Column(np.empty(0))
        #: The slot that was judged last since anything changed, and what is known of it.
        self._judged: tuple[Any, ...] | None
        self._guess = 0.5
        self._begin()

    @staticmethod
    def suits(score: Any) -> bool:
        """Return whether a score can be kept up to date here."""
        informed = score.base if isinstance(score, ByLabel) else score
        return isinstance(informed, Informed) and informed.hears and not informed.wide

    def _begin(self) -> None:
        """Forget all scores."""
        from napsets.kernels.ordered import OrderedPairs

        size, classes = self.ear.slots.size, self.ear.classes
        self._fixed.size = self._raw.size = 0
        self._fixed.extend(np.zeros((size, classes)))
        self._raw.extend(np.full(size, np.nan))
        self._held_out, self._known, self._known_by = OrderedPairs(), OrderedPairs(), OrderedPairs()
        self._sizes, self._known_sizes = np.zeros(classes, dtype=np.int64), np.zeros(classes, dtype=np.int64)
        self._fix(np.flatnonzero(~self.ear.recount.values))
        self.ear.rescore.values[:] = True
        self._changed()

    # -- what happens --------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._fresh, self._judged = False, None
        self._windows: dict[int, tuple[int, FloatArray, int]] = {}

    def load(self) -> None:
        """Take over a state with all its labels."""
        self.ear.load()
        self._begin()

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        self.ear.grow(count)

    def enter(self, slot: int, _: float | None = None) -> None:
        """Let a node's label count, which it has got."""
        ear = self.ear
        judged = self._judged if self._fresh and not self.state.is_reference.values[slot] else None
        self._changed()
        ear.enter(slot)
        self._fixed.extend(np.zeros((1, ear.classes)))
        self._raw.append(np.nan)
        if judged is not None and judged[0] == slot:  # all that is known of it is what its set was made of
            for column, row in zip((ear.near, ear.far, ear.around, self._fixed), judged[1:], strict=True):
                column.values[-1] = row
            ear.recount.values[-1] = False

    def leave(self, slot: int) -> None:
        """Let a node's label, which it still has, count no more."""
        self._changed()
        self._drop(self.ear.entry_of.values[slot : slot + 1])
        entry = self.ear.leave(slot)
        for column in (self._fixed, self._raw):
            column.values[entry] = column.values[-1]
            column.size -= 1

    def touch(self, *ends: IntArray) -> None:
        """Note that edges at some slots have come or gone, or are about to go."""
        self._changed()
        self.ear.touch(*ends)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that the model says something else of nodes; labelled ones leave before, and enter after."""
        self._changed()
        self.ear.see_outputs(slots)

    def _refresh(self) -> None:
        """Bring all scores to where they are now."""
        if self._fresh:
            return
        if self.ear.later:
            self.load()
        self._fix(self.ear.catch_up())
        rows = np.flatnonzero(self.ear.rescore.values)
        if rows.size:
            self._drop(rows)
            self._score(rows)
            self.ear.rescore.values[rows] = False
        self._fresh = True

    def _fix(self, rows: IntArray) -> None:
        if rows.size:
            self._fixed.values[rows] = self.ear.fixed(rows, self.learned)

    def _score(self, rows: IntArray) -> None:
        """Score entries that are in no list, and enter them."""
        ear = self.ear
        step = max(1, _CHUNK_ENTRIES // ear.classes)
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            slots = ear.slots.values[some]
            tables = (column.values[some] for column in (self._fixed, ear.near, ear.far))
            probabilities = ear.probabilities(self.learned, *tables)
            self._raw.values[some] = self._at(probabilities, ear.labels(slots), self.state.u.values[slots])
        self._list(rows, add=True)

    def _at(self, probabilities: Array, labels: IntArray, u: FloatArray) -> FloatArray:
        scores: FloatArray = self._form("at", probabilities)(probabilities, labels, u) + 0.0
        return scores

    def _form(self, name: str, probabilities: Array) -> Any:
        """Return a method of the score without its checks, where there is such a form."""
        unchecked = unchecked_form(self._base, name, probabilities)
        return getattr(self._base, name) if unchecked is None else partial(unchecked, self._base)

    def _drop(self, rows: IntArray) -> None:
        """Take entries out of the lists of scores, where they are in one."""
        self._list(rows[~np.isnan(self._raw.values[rows])], add=False)
        self._raw.values[rows] = np.nan

    def _list(self, rows: IntArray, *, add: bool) -> None:
        """Enter scores in the lists, or take them out."""
        codes, scores = self.ear.code.values[self.ear.slots.values[rows]], self._raw.values[rows]
        known = codes > 0
        mine, others = np.flatnonzero(known), np.flatnonzero(~known)
        lists = [(self._known, np.zeros(mine.size), mine)]
        if self.mix < 0.0:
            lists.append((self._held_out, np.zeros(others.size), others))
        else:
            labels, sign = np.abs(codes) - 1.0, 1 if add else -1
            both = (self._known_by, self._known_sizes, mine), (self._held_out, self._sizes, others)
            for pairs, sizes, which in both:
                lists.append((pairs, labels[which], which))
                sizes += sign * np.bincount(labels[which].astype(np.int64), minlength=sizes.size)
        for pairs, groups, which in lists:
            if which.size:
                (pairs.add_all if add else pairs.remove_all)(groups, scores[which])

    def _ranking(self) -> Any:
        from napsets.kernels.hearing import Ranking

        sizes = before = self._known_sizes
        if self.mix >= 0.0:
            before = np.cumsum(sizes) - sizes
        blocks = self._known.blocks, self._known_by.blocks
        return Ranking(*blocks, sizes, before, self._known.size, self.mix, SHRINK, SLOPE)

    def _ranked(self, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return scores of nodes with these labels as they are ranked; the shapes of both are the same."""
        from napsets.kernels import hearing

        if self.mix < 0.0:
            return scores
        values = np.empty(scores.size)
        hearing.rank_scores(np.ravel(labels), np.ravel(scores), self._ranking(), values)
        return values.reshape(scores.shape)

    # -- thresholds ----------------------------------------------------------------------------------------------------

    def _around_place(self, place: int, reach: int) -> tuple[FloatArray, int]:
        """Return the scores held out around a place, from 0, and how many are below them."""
        from napsets.kernels import hearing

        window = self._windows.get(place)
        if window is None or window[0] < reach:
            reach = max(2 * reach, _LEAST_REACH)
            values, below = hearing.scores_between(
                place - reach, place + reach, self._held_out.blocks, self._group_sizes(), self._ranking(), self._guess
            )
            self._guess = float(values[min(max(place - below, 0), values.size - 1)])
            window = self._windows[place] = (reach, values, below)
        return window[1], window[2]

    def _group_sizes(self) -> IntArray:
        return self._sizes if self.mix >= 0.0 else np.array([self._held_out.size])

    def _changes(self, slots: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return, for each slot, the scores that its label changes and what each candidate makes of them.

        A slot's own score, where it is held out, is left out and replaced by none.
        """
        ear = self.ear
        starts, entries, near, far = ear.hearers(slots)
        row = np.repeat(np.arange(slots.size), np.diff(starts))
        codes = ear.code.values[slots].astype(np.int64)
        new = self._with_candidates(entries, near, far, np.maximum(-codes, 0)[row])
        own = np.flatnonzero(codes < 0)
        if own.size:
            entries = np.insert(entries, starts[own], ear.entry_of.values[slots[own]])
            new = np.insert(new, starts[own], np.nan, axis=0)
            starts = starts + np.searchsorted(own, np.arange(slots.size + 1), side="left")
        labels = ear.labels(ear.slots.values[entries])
        old = self._ranked(labels, self._raw.values[entries])
        changed = self._ranked(np.repeat(labels, new.shape[1]), new.reshape(-1)).reshape(new.shape)
        return starts, old, changed

    def _with_candidates(self, entries: IntArray, near: FloatArray, far: FloatArray, before: IntArray) -> FloatArray:
        """Return the scores of entries if a node beside them had each label, shape (entries, classes).

        ``before`` is 1 + the label that the node has already, which candidates stand in for; 0 where it has none.
        """
        ear, classes = self.ear, self.ear.classes
        scores, every = np.empty((entries.size, classes)), np.arange(classes)
        step = max(1, _CHUNK_ENTRIES // (classes * classes))
        for start in range(0, entries.size, step):
            some = slice(start, start + step)
            rows = entries[some]
            fixed, heard, passed = (column.values[rows] for column in (self._fixed, ear.near, ear.far))
            known = np.flatnonzero(before[some])
            if known.size:  # the label that is there is silent while others stand in for it
                heard[known, before[some][known] - 1] -= near[some][known]
                passed[known, before[some][known] - 1] -= far[some][known]
            added = label_weights(self.learned, fixed, heard + near[some][:, None], passed + far[some][:, None])
            changed = np.repeat(label_weights(self.learned, fixed, heard, passed)[:, None, :], classes, axis=1)
            changed[:, every, every] = added
            probabilities = normalised(changed.reshape(-1, classes)).astype(self.state.outputs.values.dtype)  # type: ignore[union-attr]
            slots = ear.slots.values[rows]
            labels, u = (np.repeat(each, classes) for each in (ear.labels(slots), self.state.u.values[slots]))
            scores[some] = self._at(probabilities, labels, u).reshape(rows.size, classes)
        return scores

    def _thresholds(self, slots: IntArray, alpha: float) -> FloatArray:
        """Return the threshold of each candidate, shape (slots, classes)."""
        from napsets.kernels import hearing

        size = self._held_out.size
        own = self.ear.code.values[slots] < 0
        needed = np.array([rank_place(size - mine, alpha) for mine in (0, 1)])[own.astype(np.int64)]
        thresholds = np.full((slots.size, self.ear.classes), np.inf)
        rows = np.flatnonzero(needed <= size - own)
        for start in range(0, rows.size, _CHUNK):
            some = rows[start : start + _CHUNK]
            starts, old, changed = self._changes(slots[some])
            values = np.empty((some.size, changed.shape[1]))
            places = needed[some] - 1
            middle = int(places[0])
            reach = int(np.diff(starts).max()) + int(np.abs(places - middle).max()) + _MARGIN
            around, below = self._around_place(middle, reach)
            hearing.select_changed(around, below, size, places, starts, old, changed, values)
            thresholds[some] = values
        return thresholds

    def _level(self, alpha: float) -> float:
        """Return the share of reference scores below the threshold that the labels held out give."""
        from napsets.kernels import hearing

        place = rank_place(self._held_out.size, alpha)
        if place > self._held_out.size:
            return np.inf
        values, below = self._around_place(place - 1, 0)
        threshold = values[[place - 1 - below]]
        if self.mix < 0.0:
            return self._known.count(0.0, float(threshold[0])) / (1.0 + self._known.size)
        counts = np.empty((2, 1), dtype=np.int64)
        hearing.count_ranked(threshold, self._known_by.blocks, self._known_sizes, self._ranking(), *counts)
        return float(counts[0, 0]) / (1.0 + self._known.size)

    # -- what is asked -------------------------------------------------------------------------------------------------

    def candidates(self, slots: IntArray) -> tuple[Array, FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        self._refresh()
        scores, _, probabilities = self._matrix(slots)
        return probabilities, scores

    def _matrix(self, slots: IntArray) -> tuple[FloatArray, IntArray | None, Array]:
        """Return the scores of every label, which labels stand in for empty sets, if any, and the probabilities."""
        evidence, rows = self.ear.evidence(slots, self.learned), np.arange(slots.size)
        counts = evidence.count("near", rows), evidence.count("far", rows)
        fixed = evidence.fixed(self.learned.exponents, rows)
        self._judged = (int(slots[0]), *counts, evidence.around, fixed) if slots.size == 1 else None
        probabilities, u = self.ear.probabilities(self.learned, fixed, *counts), self.state.u.values[slots]
        matrix = self._form("matrix", probabilities)(probabilities, u)
        ranked = self._ranked(np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape), matrix)
        top = None if self.method.allow_empty else BoundRows(self._base, probabilities, u).top_labels(ranked, rows)
        return ranked, top, probabilities

    @compiling_now()  # there will be many calls, each too small to be worth compiling for
    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        self._refresh()
        thresholds = self._thresholds(slots, alpha)
        support = self._held_out.size - (self.ear.code.values[slots] < 0).astype(np.int64)
        level = self._level(alpha)
        step = max(1, _CHUNK_ENTRIES // thresholds.shape[1])
        parts: list[Any] = []
        for start in range(0, max(slots.size, 1), step):
            some = slice(start, min(start + step, slots.size))
            matrix, top, _ = self._matrix(slots[some])
            at = NodeThresholds(
                alpha, thresholds[some].min(axis=1), support[some], support[some].astype(np.float64), level,
                self.method.allow_empty, thresholds[some], np.arange(thresholds.shape[1]),
            )  # fmt: skip
            parts.append(PredictionSets.of_scores(slots[some], matrix, at, top))
        return PredictionSets.concat(parts)

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[bool, int, float]]:
        """Yield, label by label, what it says of the set that stands before it comes: covered, size, nothing else.

        Each label must have entered before the next is asked for.
        """
        for place, label in enumerate(labels.tolist()):
            member = self._member(slots[place : place + 1], alpha)
            yield bool(member[label]), int(member.sum()), 0.0

    @compiling_now()
    def _member(self, slot: IntArray, alpha: float) -> BoolArray:
        """Return which labels are in the set of one slot."""
        self._refresh()
        matrix, top, _ = self._matrix(slot)
        member: BoolArray = members(matrix, self._thresholds(slot, alpha), top_labels=top)[0]
        return member

    def _compared(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return how many scores held out are below each value, and up to it."""
        from napsets.kernels import hearing

        below, up_to = np.empty((2, values.size), dtype=np.int64)
        hearing.count_ranked(values, self._held_out.blocks, self._group_sizes(), self._ranking(), below, up_to)
        return below, up_to

    @compiling_now()
    def p_value(self, slot: int, _: float, u: float) -> float:
        """Return the smoothed p-value of a label held out that has just entered, among the others."""
        self._refresh()
        entry, size = self.ear.entry_of.values[slot : slot + 1], self._held_out.size
        below, up_to = self._compared(self._ranked(self.state.labels.values[slot : slot + 1], self._raw.values[entry]))
        return smoothed_p_value(size - int(up_to[0]), int(up_to[0] - below[0]) - 1, size - 1, u)

    @compiling_now()
    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        self._refresh()
        p_values = np.empty((slots.size, self.ear.classes))
        for place in range(slots.size):
            slot = slots[place : place + 1]
            scores = self._matrix(slot)[0][0]
            _, old, changed = self._changes(slot)
            below, _ = self._compared(scores)
            # A score that is left out, or comes in its stead, below a candidate.
            below = below - (old[:, None] < scores).sum(axis=0) + (changed < scores).sum(axis=0)
            size = self._held_out.size - int(self.ear.code.values[slot[0]] < 0)
            p_values[place] = (size - below + 1) / (size + 1)
        return p_values
