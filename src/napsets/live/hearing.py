"""Full conformal prediction kept up to date: every label is evidence, and a change touches only those who hear it.

Each labelled node has an entry: what the labels around it are counted as, and its score at its own label. Entries of
the reference hear the reference, those held out hear everyone. When a label comes or goes, the counts of those within
two hops move by exact amounts; when an edge does, those beside it are counted anew. Scores that changed are replaced in
an ordered list, from which the threshold of a candidate is read off with the scores that it would change left out and
their new values put in (`napsets.methods.full` says why that is exact).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.first_use import compiling_now
from napsets.levels import rank_place
from napsets.live.alarms import smoothed_p_value
from napsets.live.nodes import Column
from napsets.live.state import State
from napsets.methods.method import Method
from napsets.predictions import NodeThresholds, PredictionSets
from napsets.predictions.thresholds import members
from napsets.scores import ByLabel, Informed, Labelled
from napsets.scores.base import BoundRows, unchecked_form
from napsets.scores.by_label import SHRINK, SLOPE
from napsets.scores.evidence import CROWD, Evidence, fitted_rows, label_shares, label_weights, normalised
from napsets.scores.exponents import Exponents, Learned, alike_table

__all__ = ["Hearing"]

Array = npt.NDArray[Any]

#: Entries of scores × candidates × classes that are held at a time.
_CHUNK_ENTRIES = 1 << 20
#: Nodes whose thresholds are found at a time: their listeners share one matrix of scores.
_CHUNK = 256
#: More places than can move, around the threshold.
_MARGIN = 2


Method_ = TypeVar("Method_", bound=Callable[..., Any])


def _compiled(method: Method_) -> Method_:
    """Let kernels rank labels from the first: there will be many small calls, each too small to be worth compiling."""

    @wraps(method)
    def compiled(*arguments: Any) -> Any:
        with compiling_now():
            return method(*arguments)

    return cast("Method_", compiled)


class Hearing:
    """The calibration of an informed score at a full level, kept up to date.

    Parameters
    ----------
    method : Method
        With the score `Informed` of a node's own row, or that ranked by label; `Everyone` and `Full`.
    state : State
        Whose changes it is told of. Its graph is undirected.
    """

    #: A label's p-value is that among the labels held out once it is one of them: then it is evidence for them too.
    judges_after = True

    def __init__(self, method: Method, state: State) -> None:
        from napsets.kernels.ordered import OrderedPairs

        self.method, self.state = method, state
        self.take_score(method)
        classes = int(state.classes or 1)
        self._learned: Learned | None = None
        whole, wide = np.empty(0, dtype=np.int64), np.empty((0, classes))
        flags = np.empty(0, dtype=bool)
        # By slot.
        self._code, self._crowd = (Column(np.empty(0, dtype=np.int32)) for _ in range(2))
        self._entry_of, self._means, self._stale = Column(whole), Column(wide), Column(flags)
        # By entry.
        self._slots, self._near, self._far, self._around = Column(whole), Column(wide), Column(wide), Column(wide)
        self._fixed, self._raw, self._recount, self._rescore = (
            Column(wide), Column(np.empty(0)), Column(flags), Column(flags),
        )  # fmt: skip
        self._scratch = [Column(kind) for kind in (whole, whole, np.empty(0), np.empty(0))]
        self._ordered, self._held_out, self._known = OrderedPairs, OrderedPairs(), OrderedPairs()
        self._known_by = OrderedPairs()
        self._sizes, self._known_sizes = np.zeros(classes, dtype=np.int64), np.zeros(classes, dtype=np.int64)
        self._guess = 0.5
        self._fresh = False
        self._later = False
        #: The slot that was judged last, and what is known of it.
        self._judged: tuple[Any, ...] | None = None
        self._windows: dict[int, tuple[int, int, FloatArray, int]] = {}

    def take_score(self, method: Method) -> None:
        """Take the score of a method: another base, ranked by label or not."""
        self.method = method
        score: Any = method.score
        self.mix = float(score.mix) if isinstance(score, ByLabel) else -1.0
        self.informed: Informed = score.base if isinstance(score, ByLabel) else score

    @staticmethod
    def suits(score: Any) -> bool:
        """Return whether a score can be kept up to date here."""
        informed = score.base if isinstance(score, ByLabel) else score
        return isinstance(informed, Informed) and informed.hears and not informed.wide

    # -- what happens --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        for column in (self._code, self._crowd):
            column.extend(np.zeros(count, dtype=np.int32))
        self._entry_of.extend(np.full(count, -1))
        self._stale.extend(np.ones(count, dtype=bool))
        self._means.extend(np.empty((count, self._means.values.shape[1])))

    def load(self) -> None:
        """Take over a state with all its labels."""
        from napsets.kernels import hearing

        state = self.state
        if self._code.size < state.labels.size:
            self.grow(state.labels.size - self._code.size)
        slots = state.labelled()
        labels, reference = state.labels.values[slots], state.is_reference.values[slots]
        self._code.values[:] = 0
        self._code.values[slots] = np.where(reference, labels + 1, -(labels + 1))
        self._crowd.values[:] = 0
        hearing.count_crowds(slots[reference], self._rows(), self._crowd.values)
        self._stale.values[:] = True
        self._entry_of.values[:] = -1
        self._entry_of.values[slots] = np.arange(slots.size)
        for column in self._entries():
            column.size = 0
        self._extend(slots)
        self._clear_scores()
        self._fresh = self._later = False

    def _entries(self) -> list[Column]:
        scored = [self._slots, self._near, self._far, self._around, self._fixed, self._raw]
        return [*scored, self._recount, self._rescore, *self._scratch]

    def _extend(self, slots: IntArray) -> None:
        """Enter slots whose counts are not known yet."""
        count, classes = slots.size, self._near.values.shape[1]
        self._slots.extend(slots)
        for column in (self._near, self._far, self._around, self._fixed):
            column.extend(np.zeros((count, classes)))
        self._raw.extend(np.full(count, np.nan))
        for column in (self._recount, self._rescore):
            column.extend(np.ones(count, dtype=bool))
        for column in self._scratch:
            column.extend(np.zeros(count, dtype=column.values.dtype))

    def enter(self, slot: int, _: float | None = None) -> None:
        """Let a node's label count, which it has got."""
        label, reference = int(self.state.labels.values[slot]), bool(self.state.is_reference.values[slot])
        judged = None if reference or not self._fresh else self._judged
        self._speak(slot, label, 1, reference)
        self._code.values[slot] = label + 1 if reference else -(label + 1)
        self._entry_of.values[slot] = self._slots.size
        self._extend(np.array([slot]))
        if judged is not None and judged[0] == slot:  # all that is known of it is what its set was made of
            for column, row in zip((self._near, self._far, self._around, self._fixed), judged[1:], strict=True):
                column.values[-1] = row
            self._recount.values[-1] = False

    def leave(self, slot: int) -> None:
        """Let a node's label, which it still has, count no more."""
        label, reference = int(self.state.labels.values[slot]), bool(self.state.is_reference.values[slot])
        entry, last = int(self._entry_of.values[slot]), self._slots.size - 1
        self._drop(np.array([entry]))
        self._code.values[slot] = 0
        self._entry_of.values[self._slots.values[last]] = entry
        self._entry_of.values[slot] = -1
        for column in self._entries():
            column.values[entry] = column.values[last]
            column.size = last
        self._speak(slot, label, -1, reference)

    def _speak(self, slot: int, label: int, sign: int, reference: bool) -> None:
        from napsets.kernels import hearing

        self._fresh = False
        if not self._later:
            hearing.shift_label(
                slot, label, sign, reference, self._rows(), self._speakers(), self._counts(), self._room()
            )

    def touch(self, *ends: IntArray) -> None:
        """Note that edges at some slots have come or gone, or are about to go."""
        from napsets.kernels import hearing

        self._fresh = False
        if self._later or sum(slots.size for slots in ends) > self._slots.size + (1 << 12):
            self._later = True  # everything is counted anew when something is asked
        else:
            slots = np.unique(np.concatenate(ends))
            hearing.see_edges(slots, self._rows(), self._speakers(), self._counts(), self._stale.values)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that the model says something else of nodes; labelled ones leave before, and enter after."""
        from napsets.kernels import hearing

        self._fresh = False
        if not self._later:
            hearing.see_outputs(slots, self._rows(), self._speakers(), self._counts(), self._stale.values)

    # -- as kernels see it ---------------------------------------------------------------------------------------------

    def _rows(self) -> Any:
        from napsets.kernels.following import Rows

        adjacency = self.state.adjacency
        return Rows(adjacency.starts.values, adjacency.sizes.values, adjacency.columns)

    def _speakers(self) -> Any:
        from napsets.kernels.hearing import Speakers

        return Speakers(self._code.values, self._crowd.values, self._entry_of.values, CROWD)

    def _counts(self) -> Any:
        from napsets.kernels.hearing import Entries

        return Entries(self._near.values, self._far.values, self._recount.values, self._rescore.values)

    def _room(self) -> Any:
        from napsets.kernels.hearing import Scratch

        return Scratch(*(column.values for column in self._scratch))

    def _ranking(self) -> Any:
        from napsets.kernels.hearing import Ranking

        sizes, before = self._known_sizes, self._known_sizes
        if self.mix >= 0.0:
            before = np.cumsum(sizes) - sizes
        return Ranking(
            self._known.blocks, self._known_by.blocks, sizes, before, self._known.size, self.mix, SHRINK, SLOPE
        )

    # -- evidence and scores -------------------------------------------------------------------------------------------

    def evidence(self, slots: IntArray, all_speak: npt.NDArray[np.bool_] | None = None) -> Evidence:
        """Return what is known of some nodes; only by the labels of the reference where not all speak."""
        near, far = (np.empty((slots.size, self._near.values.shape[1])) for _ in range(2))
        around = np.empty(near.shape)
        self._count(slots, np.ones(slots.size, dtype=bool) if all_speak is None else all_speak, near, far, around)
        return self._evidence(slots, around, {"near": near, "far": far})

    def _count(
        self, slots: IntArray, all_speak: npt.NDArray[np.bool_], near: FloatArray, far: FloatArray, around: FloatArray
    ) -> None:
        from napsets.kernels import hearing

        rows, outputs = self._rows(), self.state.outputs.values  # type: ignore[union-attr]
        hearing.count_labels(slots, all_speak, rows, self._speakers(), near, far)
        hearing.means_around(slots, rows, outputs, self._means.values, self._stale.values, around)

    def _evidence(self, slots: IntArray, around: FloatArray, counts: dict[str, FloatArray]) -> Evidence:
        kept = dict(list(counts.items())[: self.informed.hops])
        label_of = np.maximum(self._code.values[slots], 0).astype(np.int64) - 1
        outputs = self.state.outputs.values[slots]  # type: ignore[union-attr]
        return Evidence.of_rows(outputs, around, label_of, kept, self._taught())

    def _taught(self) -> Learned:
        if self._learned is None:
            raise RuntimeError("nothing was learned yet")
        return self._learned

    def fit(self) -> Learned:
        """Return what the reference teaches now; what was learned before stays until `learn` is called."""
        self._catch_up()
        state, before = self.state, self._learned
        outputs: Array = state.outputs.values  # type: ignore[union-attr]
        slots = np.flatnonzero(self._code.values > 0)
        labels = self._code.values[slots].astype(np.int64) - 1
        present = outputs if state.present == outputs.shape[0] else outputs[state.labels.values > -2]
        shares, table = label_shares(present, labels), alike_table(outputs, Labelled(slots, labels))
        some = slots[fitted_rows(slots.size, outputs.shape[1])]
        self._learned = Learned(Exponents(), shares, table)
        try:
            taught = Labelled(np.arange(some.size), self._code.values[some].astype(np.int64) - 1)
            return self.evidence(some, np.zeros(some.size, dtype=bool)).fit(taught)
        finally:
            self._learned = before

    def learn(self, learned: Learned) -> None:
        """Go on with what was learned."""
        self._learned = learned
        self._clear_scores()
        rows = np.arange(self._slots.size)
        counted = rows[~self._recount.values]
        self._fix(counted)
        self._rescore.values[:] = True

    def _clear_scores(self) -> None:
        self._held_out, self._known, self._known_by = self._ordered(), self._ordered(), self._ordered()
        self._sizes[:], self._known_sizes[:], self._raw.values[:] = 0, 0, np.nan
        self._fresh = False

    def _fix(self, rows: IntArray) -> None:
        """Take the part of the evidence that no label changes anew, for some entries."""
        if rows.size:
            evidence = self._evidence(self._slots.values[rows], self._around.values[rows], {})
            self._fixed.values[rows] = evidence.fixed(self._taught().exponents, np.arange(rows.size))

    def _probabilities(self, fixed: FloatArray, near: FloatArray, far: FloatArray) -> Array:
        """Return corrected probabilities, as wide as the model's."""
        weights = label_weights(self._taught(), fixed, near, far)
        return normalised(weights).astype(self.state.outputs.values.dtype)  # type: ignore[union-attr]

    def _scores_at(self, probabilities: Array, labels: IntArray, u: FloatArray) -> FloatArray:
        scores: FloatArray = self._form("at", probabilities)(probabilities, labels, u) + 0.0
        return scores

    def _form(self, name: str, probabilities: Array) -> Any:
        """Return a method of the score without its checks, where there is such a form."""
        score = self.informed.base
        unchecked = unchecked_form(score, name, probabilities)
        return getattr(score, name) if unchecked is None else partial(unchecked, score)

    def _catch_up(self) -> None:
        """Count anew what cannot be kept up to date one by one."""
        if self._later:
            self.load()

    def _refresh(self) -> None:
        """Bring all scores to where they are now."""
        if self._fresh:
            return
        self._catch_up()
        stale = np.flatnonzero(self._recount.values)
        if stale.size:
            slots = self._slots.values[stale]
            around = np.empty((stale.size, self._near.values.shape[1]))
            near, far = np.empty_like(around), np.empty_like(around)
            self._count(slots, self._code.values[slots] < 0, near, far, around)
            for column, values in ((self._near, near), (self._far, far), (self._around, around)):
                column.values[stale] = values
            self._fix(stale)
            self._recount.values[stale] = False
            self._rescore.values[stale] = True
        rows = np.flatnonzero(self._rescore.values)
        if rows.size:
            self._drop(rows)
            self._score(rows)
            self._rescore.values[rows] = False
        self._windows.clear()
        self._fresh = True

    def _score(self, rows: IntArray) -> None:
        """Score entries that are in no list, and enter them."""
        step = max(1, _CHUNK_ENTRIES // self._near.values.shape[1])
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            slots = self._slots.values[some]
            tables = (column.values[some] for column in (self._fixed, self._near, self._far))
            labels = np.abs(self._code.values[slots].astype(np.int64)) - 1
            self._raw.values[some] = self._scores_at(self._probabilities(*tables), labels, self.state.u.values[slots])
        self._list(rows, add=True)

    def _drop(self, rows: IntArray) -> None:
        """Take entries out of the lists of scores, where they are in one."""
        self._list(rows[~np.isnan(self._raw.values[rows])], add=False)
        self._raw.values[rows] = np.nan

    def _list(self, rows: IntArray, *, add: bool) -> None:
        """Enter scores in the lists, or take them out."""
        codes, scores = self._code.values[self._slots.values[rows]], self._raw.values[rows]
        known = codes > 0
        mine, others = np.flatnonzero(known), np.flatnonzero(~known)
        lists = [(self._known, np.zeros(mine.size), mine)]
        if self.mix < 0.0:
            lists.append((self._held_out, np.zeros(others.size), others))
        else:
            labels, sign = np.abs(codes) - 1.0, 1 if add else -1
            for pairs, sizes, which in (
                (self._known_by, self._known_sizes, mine), (self._held_out, self._sizes, others)
            ):  # fmt: skip
                lists.append((pairs, labels[which], which))
                sizes += sign * np.bincount(labels[which].astype(np.int64), minlength=sizes.size)
        for pairs, groups, which in lists:
            if which.size:
                (pairs.add_all if add else pairs.remove_all)(groups, scores[which])

    # -- thresholds ----------------------------------------------------------------------------------------------------

    def _ranked(self, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return scores of nodes with these labels as they are ranked; the shapes of both are the same."""
        from napsets.kernels import hearing

        if self.mix < 0.0:
            return scores
        values = np.empty(scores.size)
        hearing.rank_scores(np.ravel(labels), np.ravel(scores), self._ranking(), values)
        return values.reshape(scores.shape)

    def _around_place(self, place: int, reach: int) -> tuple[FloatArray, int]:
        """Return the scores held out around a place, from 0, and how many are below them."""
        from napsets.kernels import hearing

        known = self._windows.get(place)
        if known is None or known[0] < reach:
            reach = max(2 * reach, 64)
            values, below = hearing.scores_between(
                place - reach, place + reach, self._held_out.blocks, self._group_sizes(), self._ranking(), self._guess
            )
            self._guess = float(values[min(max(place - below, 0), values.size - 1)])
            known = self._windows[place] = (reach, 0, values, below)
        return known[2], known[3]

    def _group_sizes(self) -> IntArray:
        return self._sizes if self.mix >= 0.0 else np.array([self._held_out.size])

    def _changes(self, slots: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return, for each slot, the scores that its label changes and what each candidate makes of them.

        A slot's own score, where it is held out, is left out and replaced by none.
        """
        from napsets.kernels import hearing

        starts = np.empty(slots.size + 1, dtype=np.int64)
        entries, near, far = hearing.list_hearers(slots, self._rows(), self._speakers(), self._room(), starts)
        row = np.repeat(np.arange(slots.size), np.diff(starts))
        new = self._with_candidates(entries, near, far, np.maximum(-self._code.values[slots].astype(np.int64), 0)[row])
        own = np.flatnonzero(self._code.values[slots] < 0)
        if own.size:
            entries = np.insert(entries, starts[own], self._entry_of.values[slots[own]])
            new = np.insert(new, starts[own], np.nan, axis=0)
            starts = starts + np.searchsorted(own, np.arange(slots.size + 1), side="left")
        labels = np.abs(self._code.values[self._slots.values[entries]].astype(np.int64)) - 1
        old = self._ranked(labels, self._raw.values[entries])
        changed = self._ranked(np.repeat(labels, new.shape[1]), new.reshape(-1)).reshape(new.shape)
        return starts, old, changed

    def _with_candidates(self, entries: IntArray, near: FloatArray, far: FloatArray, before: IntArray) -> FloatArray:
        """Return the scores of entries if a node beside them had each label, shape (entries, classes).

        ``before`` is 1 + the label that the node has already, which candidates stand in for; 0 where it has none.
        """
        classes = self._near.values.shape[1]
        scores = np.empty((entries.size, classes))
        step = max(1, _CHUNK_ENTRIES // (classes * classes))
        for start in range(0, entries.size, step):
            some = slice(start, start + step)
            rows, count = entries[some], entries[some].size
            tables = [column.values[rows] for column in (self._fixed, self._near, self._far)]
            learned = self._taught()
            known = np.flatnonzero(before[some])
            if known.size:  # the label that is there is silent while others stand in for it
                tables[1][known, before[some][known] - 1] -= near[some][known]
                tables[2][known, before[some][known] - 1] -= far[some][known]
            fixed, heard, passed = tables
            weights = label_weights(learned, fixed, heard, passed)
            added = label_weights(learned, fixed, heard + near[some][:, None], passed + far[some][:, None])
            changed = np.repeat(weights[:, None, :], classes, axis=1)
            every = np.arange(classes)
            changed[:, every, every] = added
            slots = self._slots.values[rows]
            probabilities = normalised(changed.reshape(-1, classes)).astype(self.state.outputs.values.dtype)  # type: ignore[union-attr]
            labels = np.abs(self._code.values[slots].astype(np.int64)) - 1
            u = np.repeat(self.state.u.values[slots], classes)
            scores[some] = self._scores_at(probabilities, np.repeat(labels, classes), u).reshape(count, classes)
        return scores

    def _thresholds(self, slots: IntArray, alpha: float) -> FloatArray:
        """Return the threshold of each candidate, shape (slots, classes)."""
        from napsets.kernels import hearing

        size = self._held_out.size
        own = self._code.values[slots] < 0
        needed = np.array([rank_place(size - mine, alpha) for mine in (0, 1)])[own.astype(np.int64)]
        thresholds = np.full((slots.size, self._near.values.shape[1]), np.inf)
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

    def _matrix(self, slots: IntArray) -> tuple[FloatArray, IntArray | None]:
        """Return the scores of every label, and the labels that stand in for empty sets where these are not allowed."""
        evidence, rows = self.evidence(slots), np.arange(slots.size)
        counts = evidence.count("near", rows), evidence.count("far", rows)
        fixed = evidence.fixed(self._taught().exponents, rows)
        self._judged = (int(slots[0]), *counts, evidence.around, fixed) if slots.size == 1 else None
        probabilities = self._probabilities(fixed, *counts)
        matrix = self._form("matrix", probabilities)(probabilities, self.state.u.values[slots])
        ranked = self._ranked(np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape), matrix)
        if self.method.allow_empty:
            return ranked, None
        return ranked, BoundRows(self.informed.base, probabilities, self.state.u.values[slots]).top_labels(ranked, rows)

    @_compiled
    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        self._refresh()
        thresholds = self._thresholds(slots, alpha)
        support = self._held_out.size - (self._code.values[slots] < 0).astype(np.int64)
        level = self._level(alpha)
        step = max(1, _CHUNK_ENTRIES // thresholds.shape[1])
        parts: list[Any] = []
        for start in range(0, max(slots.size, 1), step):
            some = slice(start, min(start + step, slots.size))
            matrix, top = self._matrix(slots[some])
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

    @_compiled
    def _member(self, slot: IntArray, alpha: float) -> npt.NDArray[np.bool_]:
        """Return which labels are in the set of one slot."""
        self._refresh()
        matrix, top = self._matrix(slot)
        member: npt.NDArray[np.bool_] = members(matrix, self._thresholds(slot, alpha), top_labels=top)[0]
        return member

    def _compared(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return how many scores held out are below each value, and up to it."""
        from napsets.kernels import hearing

        below, up_to = np.empty((2, values.size), dtype=np.int64)
        hearing.count_ranked(values, self._held_out.blocks, self._group_sizes(), self._ranking(), below, up_to)
        return below, up_to

    @_compiled
    def p_value(self, slot: int, _: float, u: float) -> float:
        """Return the smoothed p-value of a label held out that has just entered, among the others."""
        self._refresh()
        entry, size = int(self._entry_of.values[slot]), self._held_out.size
        labels = self.state.labels.values[slot : slot + 1]
        below, up_to = self._compared(self._ranked(labels, self._raw.values[entry : entry + 1]))
        return smoothed_p_value(size - int(up_to[0]), int(up_to[0] - below[0]) - 1, size - 1, u)

    @_compiled
    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        self._refresh()
        p_values = np.empty((slots.size, self._near.values.shape[1]))
        for place in range(slots.size):
            slot = slots[place : place + 1]
            scores = self._matrix(slot)[0][0]
            _, old, changed = self._changes(slot)
            below, _ = self._compared(scores)
            # A score that is left out, or comes in its stead, below a candidate.
            below = below - (old[:, None] < scores).sum(axis=0) + (changed < scores).sum(axis=0)
            size = self._held_out.size - int(self._code.values[slot[0]] < 0)
            p_values[place] = (size - below + 1) / (size + 1)
        return p_values
