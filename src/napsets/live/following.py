"""Sets of methods that learn nothing, kept up to date: a change touches only the labels around it.

Thresholds and ranks are computed from integer counts, and each change updates only the counts that it affects. Scores
are kept in ordered blocks, and for every held-out label the reference nodes around it are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.kernels import following
from napsets.kernels.growing import OrderedPairs, Walk
from napsets.kernels.layout import read_only
from napsets.levels import Rank, rank_place
from napsets.live.alarms import smoothed_p_value
from napsets.live.state import GrowingTable, State
from napsets.localisers import Cut, Everyone
from napsets.localisers.base import RULES, needed_count
from napsets.localisers.hops import Sizes, Weighting, hop_weights
from napsets.methods.method import Method
from napsets.predictions import NodeThresholds, PredictionSets, members
from napsets.quantile import ROUNDING
from napsets.scores.base import BoundRows

#: Entries of the score matrix held at a time.
_CHUNK_ENTRIES = 1 << 20
#: Labels whose scores are computed at a time.
_LABELS = 1 << 12


class Following:
    """The calibration of a method without learned parts, kept up to date.

    The method has a score of rows, the localiser `Everyone` or `Hops`, and any level.
    """

    #: A label's p-value is that among the labels before it.
    enters_first = False

    def __init__(self, method: Method, state: State) -> None:
        self.method, self.state = method, state
        localiser: Any = self.method.localiser
        self.everyone = isinstance(localiser, Everyone)
        self.weighting = Weighting(np.empty(0))
        if not self.everyone:
            self.weighting = Weighting(hop_weights(localiser.decay, localiser.hops), localiser.pool, localiser.alike)
        self.exact = self.method.level.keeps_apart
        self.falls_back = getattr(self.method.level, "fallback", "full") == "global"
        none, number, flag = np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=bool)
        hops = self.weighting.hops.size
        by_hop = np.empty((0, hops), dtype=np.int64)
        #: What kernels know of each slot, its place among the labels held out included; and of each of these.
        self._by_slot = GrowingTable(member=flag, scores=number, groups=none, stamps=none, queue=none, place_of=none)
        self._held_out = GrowingTable(
            slots=none, scores=number, groups=none, below=by_hop, near=by_hop, all_below=none, same_below=none,
            stale=flag,
        )  # fmt: skip
        self._ordered, self._alike = OrderedPairs(), OrderedPairs()
        self._same_sizes: IntArray = np.zeros(1, dtype=np.int64)
        self._clock, self._ends = np.zeros(1, dtype=np.int64), np.empty(hops + 1, dtype=np.int64)
        self._shares: FloatArray | None = None
        self._guess, self._levels = 0.5, dict[float, Rank | None]()
        self._load()

    def _load(self) -> None:
        """Take over the labels that are there."""
        state = self.state
        self.grow(state.nodes.size)
        slots = state.labelled()
        if not slots.size:
            return
        parts, labels = np.array_split(slots, slots.size // _LABELS + 1), state.nodes["labels"]
        scores = np.concatenate([self.scores(part, labels[part]) for part in parts])
        groups, reference = self._by_slot["groups"][slots], state.nodes["is_reference"][slots] | (not self.exact)
        known = slots[reference]
        self._by_slot["member"][known], self._by_slot["scores"][known] = True, scores[reference]
        self._ordered.fill(np.zeros(known.size), scores[reference])
        if self.weighting.alike:
            self._alike.fill(groups[reference].astype(np.float64), scores[reference])
            self._same_sizes += np.bincount(groups[reference], minlength=self._same_sizes.size)
        columns = {"slots": slots[~reference], "scores": scores[~reference], "groups": groups[~reference]}
        self._held_out.extend(slots.size - known.size, **columns, stale=True)
        self._by_slot["place_of"][columns["slots"]] = np.arange(self._held_out.size)
        following.count_all(0, self._known(), self._held_out_rows())

    # -- changes --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        table, before = self._by_slot, self._by_slot.size
        table.extend(count, member=False, scores=0.0, groups=0, stamps=0, place_of=-1)
        if self.weighting.alike and count:
            values = self.state.nodes["outputs"]
            table["groups"][before:] = values[before:].argmax(axis=1)
            if self._same_sizes.size < values.shape[1]:
                self._same_sizes = np.zeros(values.shape[1], dtype=np.int64)

    def enter(self, slot: int, score: float | None = None) -> None:
        """Count a node's new label; its score may be known already."""
        if score is None:
            score = self.scores(np.array([slot]), self.state.nodes["labels"][[slot]]).tolist()[0]
        table, held_out = self._by_slot, self._held_out
        if not self.exact or self.state.nodes["is_reference"][slot]:
            self._count(slot, score, 1)
        else:
            place = table["place_of"][slot] = held_out.size
            held_out.extend(1, slots=slot, scores=score, groups=table["groups"][slot], stale=True)
            following.count_all(place, self._known(), self._held_out_rows())
        self._forget()

    def leave(self, slot: int) -> None:
        """Stop counting a node's label, which it still has."""
        table = self._by_slot
        if table["member"][slot]:
            self._count(slot, float(table["scores"][slot]), -1)
        else:
            place = int(table["place_of"][slot])
            table["place_of"][self._held_out["slots"][-1]] = place
            table["place_of"][slot] = -1
            self._held_out.drop(place)
        self._forget()

    def _count(self, slot: int, score: float, sign: int) -> None:
        """Count one reference node more, or less."""
        table, change = self._by_slot, OrderedPairs.add if sign > 0 else OrderedPairs.remove
        group = int(table["groups"][slot])
        table["member"][slot], table["scores"][slot] = sign > 0, score
        change(self._ordered, 0.0, score)
        if self.weighting.alike:
            change(self._alike, group, score)
            self._same_sizes[group] += sign
        if self._held_out.size:
            place_of, rows = table["place_of"], self.state.adjacency.rows
            following.shift_counts(slot, score, group, sign, place_of, rows, self._walk(), self._held_out_rows())

    def see_outputs(self, slots: IntArray) -> None:
        """Note that nodes have new outputs; labelled ones leave before, and enter after."""
        if self.weighting.alike:
            self._by_slot["groups"][slots] = self.state.nodes["outputs"][slots].argmax(axis=1)

    def see_edges(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added, or are about to be removed."""
        hops = self.weighting.hops.size
        if hops and self._held_out.size:
            if sum(slots.size for slots in ends) > self._held_out.size:
                self._held_out["stale"][:] = True
            else:
                slots, place_of = np.unique(np.concatenate(ends)), self._by_slot["place_of"]
                following.mark_stale(
                    slots, hops - 1, place_of, self.state.adjacency.rows, self._walk(), self._held_out_rows()
                )
            self._forget()

    def _forget(self) -> None:
        self._shares = None
        self._levels.clear()

    # -- as kernels see it ---------------------------------------------------------------------------------------------

    def _walk(self) -> Any:
        return Walk(self._by_slot["stamps"], self._clock, self._by_slot["queue"], self._ends)

    def _known(self) -> Any:
        table, blocks = self._by_slot, (self._ordered.blocks, self._alike.blocks)
        groups = table["groups"] if self.weighting.alike else table["groups"][:0]
        return following.Known(table["member"], table["scores"], groups, *blocks, self._ordered.size)

    def _held_out_rows(self) -> Any:
        return following.HeldOut(*(self._held_out[name] for name in following.HeldOut._fields))

    def _question(self, cuts: list[Cut]) -> Any:
        levels = np.array([cut.level for cut in cuts])
        rules = np.array([RULES[cut.rule] for cut in cuts], dtype=np.int64)
        weighting = self.weighting
        return following.ThresholdQuery(weighting.hops, weighting.pool, weighting.alike, levels, rules, ROUNDING)

    # -- scores and ranks ----------------------------------------------------------------------------------------------

    def _bound(self, slots: IntArray) -> BoundRows:
        return BoundRows(self.method.score, self.state.nodes["outputs"][slots], self.state.nodes["u"][slots])

    def scores(self, slots: IntArray, labels: IntArray) -> FloatArray:
        """Return the scores of nodes at labels."""
        return self._bound(slots).at(np.arange(slots.size), labels) + 0.0

    def _ranks(self) -> FloatArray:
        """Return t of every held-out label, now."""
        if self._shares is None:
            held_out = self._held_out_rows()
            stale = np.flatnonzero(held_out.stale)
            if stale.size:
                following.count_around(stale, self.state.adjacency.rows, self._known(), self._walk(), held_out)
            self._shares = np.empty(held_out.slots.size)
            question = self._question([])
            following.rank_all(held_out, self._ordered.size, self._same_sizes, question, self.everyone, self._shares)
        return self._shares

    def _level(self, alpha: float) -> Rank | None:
        """Return T̂, or None if there are too few labels for it."""
        if alpha not in self._levels:
            shares = self._ranks()
            place = rank_place(shares.size, alpha)
            if place > shares.size:
                self._levels[alpha] = None
            else:
                width = 4.0 / (1.0 + shares.size)
                pair = following.pair_of_rank(shares, self._held_out["scores"], place - 1, self._guess, width)
                self._guess = float(pair[0])
                self._levels[alpha] = Rank(float(pair[0]), float(pair[1]))
        return self._levels[alpha]

    # -- results -------------------------------------------------------------------------------------------------

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        values, near, level = self._thresholds(slots, alpha)
        thresholds = NodeThresholds(alpha, values, *self._sizes(slots, near), level, self.method.allow_empty)
        step = max(1, _CHUNK_ENTRIES // max(1, int(self.state.classes or 1)))
        parts: list[Any] = []
        for start in range(0, max(slots.size, 1), step):
            rows = slice(start, min(start + step, slots.size))
            bound = self._bound(slots[rows])
            parts += bound.predict(np.arange(bound.num_nodes), [thresholds[rows]])
        sets = PredictionSets.concat(parts)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[BoolArray, float]]:
        """Yield the set before each label, and the score; see `Calibration.judge`."""
        for start in range(0, slots.size, _LABELS):
            some = slice(start, start + _LABELS)
            bound = self._bound(slots[some])
            rows = np.arange(bound.num_nodes)
            matrix, scores = bound.matrix(rows), bound.at(rows, labels[some]) + 0.0
            top = None if self.method.allow_empty else bound.top_labels(matrix, rows)
            for row in rows.tolist():
                values = self._thresholds(slots[start + row : start + row + 1], alpha)[0]
                member = members(matrix[row : row + 1], values, top_labels=None if top is None else top[row : row + 1])
                yield member[0], float(scores[row])

    def _thresholds(self, slots: IntArray, alpha: float) -> tuple[FloatArray, IntArray, float | None]:
        """Return the threshold of each slot, how many reference nodes are around it by hop, and the exact level."""
        if not self.exact:
            local, near = self._local(slots, [Cut(1.0 - alpha)])
            values = local[0]
            short = np.isposinf(values)
            if self.falls_back and short.any():
                values = np.where(short, self._everyone(slots, [Cut(1.0 - alpha)])[0], values)
                near = np.where(short[:, None], -1, near)  # these rest on everyone
            return values, near, None
        rank = self._level(alpha) if self._ordered.size else None
        if rank is None:
            return np.full(slots.size, np.inf), self._local(slots, [Cut(2.0)])[1], np.inf
        (reached, passed), near = self._local(slots, [Cut(rank.share, "at least"), Cut(rank.share, "above")])
        return np.minimum(np.maximum(rank.score, reached), passed), near, rank.share

    def _sizes(self, slots: IntArray, near: IntArray) -> tuple[IntArray, FloatArray]:
        """Return how many reference nodes thresholds rest on, and how many equally heavy ones they are worth."""
        own = self._by_slot["member"][slots].astype(np.int64)
        others = self._ordered.size - own
        if self.everyone:
            return others, others.astype(np.float64)
        same = None
        if self.weighting.alike:
            same = self._same_sizes[self._by_slot["groups"][slots]] - own
        sizes = Sizes(np.maximum(near, 0), others, same)
        support, effective_size = sizes.support(self.weighting), sizes.effective_size(self.weighting)
        fell_back = (near < 0).any(axis=1)
        return np.where(fell_back, others, support), np.where(fell_back, others, effective_size)

    def _local(self, slots: IntArray, cuts: list[Cut]) -> tuple[FloatArray, IntArray]:
        near = np.empty((slots.size, self.weighting.hops.size), dtype=np.int64)
        if self.everyone:
            return self._everyone(slots, cuts), near
        values = np.empty((slots.size, len(cuts)))
        question = self._question(cuts)
        following.find_thresholds(slots, self.state.adjacency.rows, self._known(), self._walk(), question, values, near)
        return values.T, near

    def _everyone(self, slots: IntArray, cuts: list[Cut]) -> FloatArray:
        size = self._ordered.size
        needed = np.array([[needed_count(n, cut) for n in (size, size - 1)] for cut in cuts])
        values = np.empty((slots.size, len(cuts)))
        following.order_statistics(read_only(slots), self._known(), needed, values)
        return values.T

    def p_value(self, slot: int, score: float, u: float) -> float:
        """Return the smoothed p-value of a node's score at its label, among those that set the level."""
        if not self.exact:
            below, up_to = (self._ordered.count(0.0, score, after=after) for after in (False, True))
            size = self._ordered.size
            if self._by_slot["member"][slot]:  # a node is not compared with itself
                own = float(self._by_slot["scores"][slot])
                below, up_to, size = below - (own < score), up_to - (own <= score), size - 1
            return smoothed_p_value(size - up_to, up_to - below, size, u)
        shares = self._ranks()
        share = self._share(slot, score)
        greater, equal = following.count_ranks(shares, self._held_out["scores"], share, score)
        return smoothed_p_value(int(greater), int(equal), shares.size, u)

    def _share(self, slot: int, score: float) -> float:
        """Return t of a node's score, with its own label left out of the reference."""
        counts: list[Any] = [np.zeros((1, self.weighting.hops.size), dtype=np.int64) for _ in range(2)]
        counts += [np.zeros(1, dtype=np.int64) for _ in range(2)]
        groups, stale = self._by_slot["groups"][[slot]], np.ones(1, dtype=bool)
        label = following.HeldOut(*[np.array([slot]), np.array([score]), groups, *counts, stale])
        known, same_sizes, share = self._known(), self._same_sizes.copy(), np.empty(1)
        own = int(known.member[slot])
        following.count_all(0, known, label)
        for below in (label.all_below, label.same_below):
            below -= own and int(known.scores[slot] < score)
        same_sizes[groups] -= own
        following.count_around(np.zeros(1, dtype=np.int64), self.state.adjacency.rows, known, self._walk(), label)
        following.rank_all(label, known.size - own, same_sizes, self._question([]), self.everyone, share)
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
