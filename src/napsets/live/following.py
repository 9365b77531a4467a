"""Sets of methods that learn nothing, kept up to date: a change touches only the labels around it.

Thresholds and ranks are computed from integer counts, and each change updates only the counts that it affects. Scores
are kept in ordered blocks, and for every held-out label the reference nodes around it are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.layout import read_only
from napsets.levels import Rank, rank_place
from napsets.live.alarms import smoothed_p_value
from napsets.live.nodes import Column
from napsets.live.state import State
from napsets.localisers import Cut, Everyone
from napsets.localisers.base import RULES
from napsets.localisers.decay import hop_weights
from napsets.localisers.everyone import needed_count
from napsets.localisers.hops import Sizes, Weighting
from napsets.methods.method import Method
from napsets.predictions import NodeThresholds, PredictionSets
from napsets.predictions.thresholds import members
from napsets.quantile import ROUNDING
from napsets.scores.base import BoundRows

#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20
#: Labels whose scores are computed at a time.
_LABELS = 1 << 12


class Following:
    """The calibration of a method without learned parts, kept up to date.

    Parameters
    ----------
    method : Method
        With a score of rows, the localiser `Everyone` or `Hops`, and any level.
    state : State
        The state; it reports every change.
    """

    #: A label's p-value is that among the labels before it.
    judges_after = False

    def __init__(self, method: Method, state: State) -> None:
        from napsets.kernels import ordered

        self.method, self.state = method, state
        localiser: Any = self.method.localiser
        self.everyone = isinstance(localiser, Everyone)
        self.weighting = Weighting(np.empty(0))
        if not self.everyone:
            self.weighting = Weighting(hop_weights(localiser.decay, localiser.hops), localiser.pool, localiser.alike)
        self.exact = self.method.level.keeps_apart
        self.falls_back = getattr(self.method.level, "fallback", "full") == "global"
        self._member, self._scores = Column(np.empty(0, dtype=bool)), Column(np.empty(0))
        self._groups = Column(np.empty(0, dtype=np.int64))
        self._ordered, self._alike = ordered.OrderedPairs(), ordered.OrderedPairs()
        self._same_sizes: IntArray = np.zeros(1, dtype=np.int64)
        self._stamps, self._queue = Column(np.empty(0, dtype=np.int64)), Column(np.empty(0, dtype=np.int64))
        self._clock, self._ends = np.zeros(1, dtype=np.int64), np.empty(self.weighting.hops.size + 1, dtype=np.int64)
        # The held-out labels, and the entry of each slot among them.
        hops, none = self.weighting.hops.size, np.empty(0, dtype=np.int64)
        by_hop = np.empty((0, hops), dtype=np.int64)
        self._held_out = [Column(array) for array in (none, np.empty(0), none, by_hop, by_hop, none, none)]
        self._held_out.append(Column(np.empty(0, dtype=bool)))
        self._entry_of = Column(none)
        self._shares: FloatArray | None = None
        self._guess, self._levels = 0.5, dict[float, Rank | None]()

    def load(self) -> None:
        """Take over a state with all its labels, as after a restart."""
        from napsets.kernels import following

        state = self.state
        self.grow(state.labels.size)
        slots = state.labelled()
        if not slots.size:
            return
        scores = np.concatenate(
            [self.scores(part, state.labels.values[part]) for part in np.array_split(slots, slots.size // _LABELS + 1)]
        )
        groups, reference = self._groups.values[slots], state.is_reference.values[slots] | (not self.exact)
        known = slots[reference]
        self._member.values[known], self._scores.values[known] = True, scores[reference]
        self._ordered.fill(np.zeros(known.size), scores[reference])
        if self.weighting.alike:
            self._alike.fill(groups[reference].astype(np.float64), scores[reference])
            self._same_sizes += np.bincount(groups[reference], minlength=self._same_sizes.size)
        self._entry_of.values[slots[~reference]] = np.arange(slots.size - known.size)
        for column, values in zip(self._held_out[:3], (slots, scores, groups), strict=True):
            column.extend(values[~reference])
        for column in self._held_out[3:]:
            column.extend(np.ones((slots.size - known.size, *column.values.shape[1:]), dtype=column.values.dtype))
        following.count_all(0, self._known(), self._entries())

    # -- changes --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        for column, value in ((self._member, False), (self._scores, 0.0), (self._stamps, 0), (self._queue, 0)):
            column.extend(np.full(count, value))
        self._entry_of.extend(np.full(count, -1))
        self._groups.extend(np.zeros(count, dtype=np.int64))
        if self.weighting.alike and count and self.state.outputs is not None:
            values = self.state.outputs.values
            self._groups.values[-count:] = values[-count:].argmax(axis=1)
            if self._same_sizes.size < values.shape[1]:
                self._same_sizes = np.zeros(values.shape[1], dtype=np.int64)

    def enter(self, slot: int, score: float | None = None) -> None:
        """Count a node's new label; its score may be known already."""
        from napsets.kernels import following

        if score is None:
            score = self.scores(np.array([slot]), self.state.labels.values[[slot]]).tolist()[0]
        group = int(self._groups.values[slot])
        if not self.exact or self.state.is_reference.values[slot]:
            self._member.values[slot], self._scores.values[slot] = True, score
            self._ordered.add(0.0, score)
            if self.weighting.alike:
                self._alike.add(group, score)
                self._same_sizes[group] += 1
            self._shift(slot, score, group, 1)
        else:
            entry = self._held_out[0].size
            self._entry_of.values[slot] = entry
            for column, value in zip(self._held_out, (slot, score, group, 0, 0, 0, 0, True), strict=True):
                column.append(value)
            following.count_all(entry, self._known(), self._entries())
        self._forget()

    def leave(self, slot: int) -> None:
        """Stop counting a node's label, which it still has."""
        score, group = float(self._scores.values[slot]), int(self._groups.values[slot])
        if not self.exact or self.state.is_reference.values[slot]:
            self._member.values[slot] = False
            self._ordered.remove(0.0, score)
            if self.weighting.alike:
                self._alike.remove(group, score)
                self._same_sizes[group] -= 1
            self._shift(slot, score, group, -1)
        else:
            entry, last = int(self._entry_of.values[slot]), self._held_out[0].size - 1
            self._entry_of.values[self._held_out[0].values[last]] = entry
            self._entry_of.values[slot] = -1
            for column in self._held_out:
                column.values[entry] = column.values[last]
                column.size = last
        self._forget()

    def see_outputs(self, slots: IntArray) -> None:
        """Note that nodes have new outputs; labelled ones leave before, and enter after."""
        if self.weighting.alike:
            self._groups.values[slots] = self.state.outputs.values[slots].argmax(axis=1)  # type: ignore[union-attr]

    def touch(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added, or are about to be removed."""
        from napsets.kernels import following

        hops = self.weighting.hops.size
        if hops and self._held_out[0].size:
            if sum(slots.size for slots in ends) > self._held_out[0].size:
                self._held_out[7].values[:] = True
            else:
                slots = np.unique(np.concatenate(ends))
                following.mark_stale(
                    slots, hops - 1, self._entry_of.values, self.state.adjacency.rows, self._walk(), self._entries()
                )
            self._forget()

    def _shift(self, slot: int, score: float, group: int, sign: int) -> None:
        from napsets.kernels import following

        if self._held_out[0].size:
            rows, walk = self.state.adjacency.rows, self._walk()
            following.shift_counts(slot, score, group, sign, self._entry_of.values, rows, walk, self._entries())

    def _forget(self) -> None:
        self._shares = None
        self._levels.clear()

    # -- as kernels see it ---------------------------------------------------------------------------------------------

    def _walk(self) -> Any:
        from napsets.kernels.growing import Walk

        return Walk(self._stamps.values, self._clock, self._queue.values, self._ends)

    def _known(self) -> Any:
        from napsets.kernels.following import Known

        groups = self._groups.values if self.weighting.alike else self._groups.values[:0]
        blocks = self._ordered.blocks, self._alike.blocks
        return Known(self._member.values, self._scores.values, groups, *blocks, self._ordered.size)

    def _entries(self) -> Any:
        from napsets.kernels.following import HeldOut

        return HeldOut(*(column.values for column in self._held_out))

    def _question(self, cuts: list[Cut]) -> Any:
        from napsets.kernels.following import Question

        levels = np.array([cut.level for cut in cuts])
        rules = np.array([RULES[cut.rule] for cut in cuts], dtype=np.int64)
        weighting = self.weighting
        return Question(weighting.hops, weighting.pool, weighting.alike, levels, rules, ROUNDING)

    # -- scores and ranks ----------------------------------------------------------------------------------------------

    def _bound(self, slots: IntArray) -> BoundRows:
        return BoundRows(self.method.score, self.state.outputs.values[slots], self.state.u.values[slots])  # type: ignore[union-attr]

    def scores(self, slots: IntArray, labels: IntArray) -> FloatArray:
        """Return the scores of nodes at labels."""
        scores: FloatArray = self._bound(slots).at(np.arange(slots.size), labels) + 0.0
        return scores

    def _ranks(self) -> FloatArray:
        """Return t of every held-out label, now."""
        from napsets.kernels import following

        if self._shares is None:
            entries = self._entries()
            stale = np.flatnonzero(entries.stale)
            if stale.size:
                following.count_around(stale, self.state.adjacency.rows, self._known(), self._walk(), entries)
            self._shares = np.empty(entries.slots.size)
            question = self._question([])
            following.rank_all(entries, self._ordered.size, self._same_sizes, question, self.everyone, self._shares)
        return self._shares

    def _level(self, alpha: float) -> Rank | None:
        """Return T̂, or None if there are too few labels for it."""
        from napsets.kernels import following

        if alpha not in self._levels:
            shares = self._ranks()
            place = rank_place(shares.size, alpha)
            if place > shares.size:
                self._levels[alpha] = None
            else:
                width = 4.0 / (1.0 + shares.size)
                pair = following.pair_of_rank(shares, self._held_out[1].values, place - 1, self._guess, width)
                self._guess = float(pair[0])
                self._levels[alpha] = Rank(float(pair[0]), float(pair[1]))
        return self._levels[alpha]

    # -- results -------------------------------------------------------------------------------------------------

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        thresholds = self._thresholds(slots, alpha)
        step = max(1, _CHUNK_ENTRIES // max(1, int(self.state.classes or 1)))
        parts: list[Any] = []
        for start in range(0, max(slots.size, 1), step):
            rows = slice(start, min(start + step, slots.size))
            bound = self._bound(slots[rows])
            parts += bound.predict(np.arange(bound.num_nodes), [thresholds[rows]])
        sets = PredictionSets.concat(parts)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[bool, int, float]]:
        """Yield for each label whether the set before it covered it, the size of that set, and the score.

        Each label must have entered before the next is requested.
        """
        for start in range(0, slots.size, _LABELS):
            some = slice(start, start + _LABELS)
            bound = self._bound(slots[some])
            rows = np.arange(bound.num_nodes)
            matrix, scores = bound.matrix(rows), bound.at(rows, labels[some]) + 0.0
            top = None if self.method.allow_empty else bound.top_labels(matrix, rows)
            for row in rows.tolist():
                values, _ = self._values(slots[start + row : start + row + 1], alpha)
                member = members(matrix[row : row + 1], values, top_labels=None if top is None else top[row : row + 1])
                yield bool(member[0, labels[start + row]]), int(member.sum()), float(scores[row])

    def _values(self, slots: IntArray, alpha: float) -> tuple[FloatArray, IntArray]:
        """Return the threshold of each slot, and how many reference nodes are around it by hop."""
        if not self.exact:
            local, near = self._local(slots, [Cut(1.0 - alpha)])
            values = local[0]
            short = np.isposinf(values)
            if self.falls_back and short.any():
                values = np.where(short, self._everyone(slots, [Cut(1.0 - alpha)])[0], values)
                near = np.where(short[:, None], -1, near)  # these rest on everyone
            return values, near
        rank = self._level(alpha) if self._ordered.size else None
        if rank is None:
            return np.full(slots.size, np.inf), self._local(slots, [Cut(2.0)])[1]
        (reached, passed), near = self._local(slots, [Cut(rank.share, "at least"), Cut(rank.share, "above")])
        return np.minimum(np.maximum(rank.score, reached), passed), near

    def _thresholds(self, slots: IntArray, alpha: float) -> NodeThresholds:
        values, near = self._values(slots, alpha)
        level = None
        if self.exact:
            rank = self._level(alpha) if self._ordered.size else None
            level = np.inf if rank is None else rank.share
        return NodeThresholds(alpha, values, *self._sizes(slots, near), level, self.method.allow_empty)

    def _sizes(self, slots: IntArray, near: IntArray) -> tuple[IntArray, FloatArray]:
        """Return how many reference nodes thresholds rest on, and how many equally heavy ones they are worth."""
        own = self._member.values[slots].astype(np.int64)
        others = self._ordered.size - own
        if self.everyone:
            return others, others.astype(np.float64)
        same = None
        if self.weighting.alike:
            same = self._same_sizes[self._groups.values[slots]] - own
        sizes = Sizes(np.maximum(near, 0), others, same)
        support, effective_size = sizes.support(self.weighting), sizes.effective_size(self.weighting)
        fell_back = (near < 0).any(axis=1)
        return np.where(fell_back, others, support), np.where(fell_back, others, effective_size)

    def _local(self, slots: IntArray, cuts: list[Cut]) -> tuple[FloatArray, IntArray]:
        from napsets.kernels import following

        near = np.empty((slots.size, self.weighting.hops.size), dtype=np.int64)
        if self.everyone:
            return self._everyone(slots, cuts), near
        values = np.empty((slots.size, len(cuts)))
        question = self._question(cuts)
        following.find_thresholds(slots, self.state.adjacency.rows, self._known(), self._walk(), question, values, near)
        return values.T, near

    def _everyone(self, slots: IntArray, cuts: list[Cut]) -> FloatArray:
        from napsets.kernels import following

        size = self._ordered.size
        needed = np.array([[needed_count(n, cut) for n in (size, size - 1)] for cut in cuts])
        values = np.empty((slots.size, len(cuts)))
        following.order_statistics(read_only(slots), self._known(), needed, values)
        return values.T

    def p_value(self, slot: int, score: float, u: float) -> float:
        """Return the smoothed p-value of a node's score at its label, among those that set the level."""
        from napsets.kernels import following

        if not self.exact:
            below, up_to = (self._ordered.count(0.0, score, after=after) for after in (False, True))
            size = self._ordered.size
            if self._member.values[slot]:  # a node is not compared with itself
                own = float(self._scores.values[slot])
                below, up_to, size = below - (own < score), up_to - (own <= score), size - 1
            return smoothed_p_value(size - up_to, up_to - below, size, u)
        shares = self._ranks()
        share = self._share(slot, score)
        greater, equal = following.count_ranks(shares, self._held_out[1].values, share, score)
        return smoothed_p_value(int(greater), int(equal), shares.size, u)

    def _share(self, slot: int, score: float) -> float:
        """Return t of a node's score, with its own label left out of the reference."""
        from napsets.kernels import following

        counts: list[Any] = [np.zeros((1, self.weighting.hops.size), dtype=np.int64) for _ in range(2)]
        counts += [np.zeros(1, dtype=np.int64) for _ in range(2)]
        groups, stale = self._groups.values[[slot]], np.ones(1, dtype=bool)
        one = following.HeldOut(*[np.array([slot]), np.array([score]), groups, *counts, stale])
        known, same_sizes, share = self._known(), self._same_sizes.copy(), np.empty(1)
        own = int(known.member[slot])
        following.count_all(0, known, one)
        for below in (one.all_below, one.same_below):
            below -= own and int(known.scores[slot] < score)
        same_sizes[groups] -= own
        following.count_around(np.zeros(1, dtype=np.int64), self.state.adjacency.rows, known, self._walk(), one)
        following.rank_all(one, known.size - own, same_sizes, self._question([]), self.everyone, share)
        return float(share[0])

    def candidates(self, slots: IntArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        bound = self._bound(slots)
        return bound.probabilities, bound.matrix(np.arange(slots.size)) + 0.0

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        local = not self.exact and not self.everyone
        matrix = self._bound(slots).matrix(np.arange(slots.size)) + 0.0
        return np.array(
            [
                [1.0 - self._share(slot, score) if local else self.p_value(slot, score, 1.0) for score in scores]
                for slot, scores in zip(slots.tolist(), matrix.tolist(), strict=True)
            ]
        )
