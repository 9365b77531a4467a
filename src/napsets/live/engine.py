"""The present sets under a map: scores and ranks of a few nodes at a time, and the held-out labels in their order.

The map (`napsets.live.calibration`) is fixed between refits. What depends on the graph and on outputs is computed for
the nodes that are asked for, and for labelled nodes once; a change marks the labelled nodes within its reach, which are
computed again when a set is next asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.levels import FittedExact, FittedLevel, Nominal
from napsets.live.alarms import smoothed_p_value
from napsets.live.reference import HopsAround, KnownScores, Ordered
from napsets.live.state import Array, GrowingTable
from napsets.live.surroundings import Surroundings
from napsets.localisers import Cut, Hops, Reference
from napsets.localisers.base import EveryoneLocal
from napsets.methods.method import Method
from napsets.methods.p_values import in_order
from napsets.predictions import PredictionSets
from napsets.scores import ByLabel, Informed
from napsets.scores.base import BoundRows
from napsets.scores.by_label import BoundByLabel
from napsets.scores.exponents import Learned

#: Nodes whose scores are computed at a time, and entries of the score matrix.
_NODES, _ENTRIES = 1 << 10, 1 << 20
#: Slots around which labelled nodes are searched for, at most.
MOST_MARKED = 1 << 12
#: Hops within which a change of outputs or of a label, and a change of edges, affects corrected probabilities.
_OUTPUT_REACH, _EDGE_REACH = 2, 1


class Judgement(NamedTuple):
    """The set that stands before a label, and where the label's score stands among the others."""

    member: BoolArray
    share: float = 0.0  #: The rank of the score; 0 where no labels are held out.
    score: float = 0.0
    raw: float = 0.0  #: The score before it is ranked by label.
    #: The reference nodes around the node by hop: those below the score, and all.
    below: IntArray | None = None
    near: IntArray | None = None


class Engine:
    """The sets of a method under a map, on the present graph and outputs.

    The reference are the labels of the map, or all labels where none are held out; without any, sets are full. In a
    directed graph, whose rows do not say from where a node is reached, a change marks all labelled nodes.
    """

    def __init__(
        self,
        method: Method,
        learned: Learned | None,
        parts: tuple[IntArray, IntArray],
        around: Surroundings,
    ) -> None:
        self.method, self.learned, self.around, self.state = method, learned, around, around.state
        score = method.score
        self._mix = float(score.mix) if isinstance(score, ByLabel) else None
        score = score.base if isinstance(score, ByLabel) else score
        self._base = score.base if isinstance(score, Informed) else score
        self._exact, localiser = method.level.holds_out_labels, method.localiser
        self._known = known = KnownScores(isinstance(localiser, Hops) and localiser.alike > 0.0)
        self._hops = HopsAround(localiser, known, around) if isinstance(localiser, Hops) else None
        self._everyone = EveryoneLocal(cast("Reference", known))
        none, number, flag = np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=bool)
        by_hop = np.empty((0, 0 if self._hops is None else self._hops.weighting.hops.size), dtype=np.int64)
        #: By slot: whether its label counts; its score before it is ranked by label; its place among the labels held
        #: out, −1 elsewhere; whether the score, or what is around a held-out label, must be computed again.
        self._by_slot = GrowingTable(counts=flag, raw=number, place=none, stale=flag, unwalked=flag)
        self._held_out = GrowingTable(slots=none, scores=number, shares=number, below=by_hop, near=by_hop)
        self._ranks = Ordered(np.empty(0, dtype=np.complex128))
        self._ranking: BoundByLabel | None = None
        self._shifted: list[int] = []  # reference nodes that have left
        self._changed = self._reference_changed = True
        self.grow()
        reference, held_out = parts
        if learned is not None:
            around.take_reference(reference)
        known.by_slot["member"][reference] = True
        self._held_out.extend(held_out.size, slots=held_out)
        self._by_slot["place"][held_out] = np.arange(held_out.size)
        for slots in parts:
            for name in ("counts", "stale", "unwalked"):
                self._by_slot[name][slots] = True

    # -- changes -------------------------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Make room for new nodes."""
        count = self.state.nodes.size - self._by_slot.size
        self._by_slot.extend(count, counts=False, place=-1, stale=False, unwalked=False)
        self._known.by_slot.extend(count, member=False, groups=0)

    def enter(self, slot: int, judged: Judgement) -> None:
        """Count a label: among those held out, or in the reference if none are; a new reference label waits."""
        table = self._by_slot
        if not self._exact:
            self._known.add(slot, judged.score)
        elif not self.state.nodes["is_reference"][slot]:
            table["place"][slot] = self._held_out.size
            around = {} if judged.below is None else {"below": judged.below, "near": judged.near}
            self._held_out.extend(1, slots=slot, scores=judged.score, shares=judged.share, **around)
            self._ranks.insert(complex(judged.share, judged.score))
        else:
            return
        table["counts"][slot], table["stale"][slot], table["unwalked"][slot] = True, False, False
        table["raw"][slot] = judged.raw

    def leave(self, slots: IntArray) -> None:
        """Stop counting the labels of nodes, which still have them; those that wait for a refit were not counted."""
        table, member = self._by_slot, self._known.by_slot["member"]
        slots = slots[table["counts"][slots]]
        if not slots.size:
            return
        table["counts"][slots], self._changed = False, True
        reference, held_out = slots[member[slots]], slots[~member[slots]]
        if reference.size:
            member[reference] = False
            self._reference_changed = True
            self._shifted += reference.tolist()
            if self.learned is not None:
                changed = self.around.forget_labels(reference)
                table["stale"][changed] |= table["counts"][changed]
                self._mark("stale", reference, _OUTPUT_REACH)
        for slot in held_out.tolist():
            place = int(table["place"][slot])
            table["place"][self._held_out["slots"][-1]] = place
            table["place"][slot] = -1
            self._held_out.drop(place)

    def see_edges(self, slots: IntArray) -> None:
        """Note that edges at some slots were added or removed, or are about to be removed."""
        if self.learned is not None:
            self._mark("stale", slots, _EDGE_REACH)
        if self._hops is not None and self._exact and self._hops.weighting.hops.size:
            self._mark("unwalked", slots, self._hops.weighting.hops.size - 1)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that some nodes have new outputs."""
        self._mark("stale", slots, 0 if self.learned is None else _OUTPUT_REACH)

    def _mark(self, name: str, slots: IntArray, reach: int) -> None:
        """Mark the labelled nodes within some hops of slots."""
        counts, marks = self._by_slot["counts"], self._by_slot[name]
        if self._is_wide(slots, reach):
            marks |= counts
        else:
            near = self.around.list_around(slots, reach, counts)[0] if reach else slots[:0]
            slots = np.concatenate([slots[counts[slots]], near])
            if not slots.size:
                return
            marks[slots] = True
        self._changed = True

    def _is_wide(self, slots: IntArray, reach: int) -> bool:
        """Whether to compute everything again, because a search around so many slots would take longer."""
        return slots.size > MOST_MARKED or (reach > 0 and self.state.adjacency.directed)

    def _refresh(self) -> None:
        """Compute the marked scores and ranks again."""
        if not self._changed:
            return
        table, held_out, known, labels = self._by_slot, self._held_out, self._known, self.state.nodes["labels"]
        reference, held = np.flatnonzero(known.by_slot["member"]), held_out["slots"]
        stale = [slots[table["stale"][slots]] for slots in (reference, held)]
        for slots in stale:
            for piece in _pieces(slots, self.state.classes):
                table["raw"][piece] = self._inner(piece).at(np.arange(piece.size), labels[piece]) + 0.0
            table["stale"][slots] = False
        if self._reference_changed or stale[0].size:
            if self._mix is not None:
                rows = self._inner(reference[:0])
                self._ranking = BoundByLabel(rows, table["raw"][reference], labels[reference], self._mix)
            known.take(reference, self._ranked(reference))
            if self._exact and self._hops is not None:
                shifted = np.concatenate([np.array(self._shifted, dtype=np.int64), stale[0]])
                hops = self._hops.weighting.hops.size
                if self._mix is not None or self._is_wide(shifted, hops):
                    table["unwalked"][held] = True
                else:
                    table["unwalked"][self.around.list_around(shifted, hops, table["counts"])[0]] = True
            self._shifted, self._reference_changed = [], False
        if self._exact:
            table["unwalked"][stale[1]] = True
            held_out["scores"][:] = self._ranked(held)
            if self._hops is not None:
                for part in _pieces(np.flatnonzero(table["unwalked"][held]), 1):
                    below, near = self._hops.count(held[part], held_out["scores"][part, None])
                    held_out["below"][part], held_out["near"][part] = below[:, 0], near
                around = held_out["below"][:, None], held_out["near"]
                held_out["shares"][:] = self._hops.rank(held, held_out["scores"][:, None], *around)[:, 0]
            else:
                held_out["shares"][:] = self._everyone.ranks(held, held_out["scores"])
            table["unwalked"][held] = False
            self._ranks = Ordered(in_order(held_out["shares"], held_out["scores"]))
        self._changed = False

    # -- scores --------------------------------------------------------------------------------------------------------

    def _inner(self, slots: IntArray) -> BoundRows:
        """Bind the score to the nodes, before it is ranked by label."""
        nodes = self.state.nodes
        rows: Array = nodes["outputs"][slots]
        if self.learned is not None:
            rows = self.around.evidence(slots, self.learned).probabilities(self.learned)
        if self._known.grouped:
            self._known.by_slot["groups"][slots] = rows.argmax(axis=1)
        return BoundRows(self._base, rows, nodes["u"][slots])

    def _bound(self, slots: IntArray) -> BoundRows | BoundByLabel:
        """Bind the score to the nodes."""
        inner = self._inner(slots)
        return inner if self._ranking is None else self._ranking.around(inner)

    def _ranked(self, slots: IntArray) -> FloatArray:
        """Return the scores of labelled nodes at their labels."""
        raw: FloatArray = self._by_slot["raw"][slots]
        return (
            raw if self._ranking is None else self._ranking.ranked_scores(self.state.nodes["labels"][slots], raw) + 0.0
        )

    @property
    def _level_ranks(self) -> Ordered:
        """The ranks that set the level; without a reference there are none."""
        return self._ranks if self._known.size else Ordered(self._ranks.values[:0])

    def _level(self) -> FittedLevel:
        """Return the level, as a batch fits it."""
        if self._exact:
            return self._exact_level()
        return self.method.level.fit(cast("Reference", self._known), np.empty(0), np.empty(0))

    def _exact_level(self) -> FittedExact:
        ranks = self._level_ranks.values
        return FittedExact(ranks.real, ranks.imag)

    # -- results -------------------------------------------------------------------------------------------------------

    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        self._refresh()
        level, parts = self._level(), list[PredictionSets]()
        share = level.level(alpha) if self._exact else None
        localiser = self._everyone if self._hops is None else self._hops
        for piece in _pieces(slots, self.state.classes) or [slots]:
            bound = self._bound(piece)
            local = level.thresholds(localiser.thresholds(piece, level.cuts([alpha])), piece, [alpha])
            thresholds = local.at(0, alpha, level=share, allow_empty=self.method.allow_empty)
            parts += cast("list[PredictionSets]", bound.predict(np.arange(piece.size), [thresholds]))
        sets = PredictionSets.concat(parts)
        object.__setattr__(sets, "nodes", slots)
        return sets

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[Judgement]:
        """Yield the set before each label; see `Calibration.judge`."""
        self._refresh()
        done = 0
        for piece in _pieces(slots, self.state.classes):
            bound, rows, truth = self._bound(piece), np.arange(piece.size), labels[done : done + piece.size]
            matrix = bound.matrix(rows) + 0.0
            raw = bound.inner.at(rows, truth) + 0.0 if isinstance(bound, BoundByLabel) else matrix[rows, truth]
            top = None if self.method.allow_empty else bound.top_labels(matrix, rows)
            shares, below, near = self._shares(piece, matrix) if self._exact else (np.zeros(matrix.shape), None, None)
            for row, label in enumerate(truth.tolist()):
                if self._exact:
                    member = self._held_out_member(shares[row], matrix[row], alpha)
                else:
                    member = ~self._reaches(piece[row : row + 1], matrix[row : row + 1], Cut(1.0 - alpha))[0]
                if top is not None and not member.any():
                    member[top[row]] = True
                around = (None, None) if below is None or near is None else (below[row, label], near[row])
                share, score = float(shares[row, label]), float(matrix[row, label])
                yield Judgement(member, share, score, float(raw[row]), *around)
            done += piece.size

    def _held_out_member(self, shares: FloatArray, scores: FloatArray, alpha: float) -> BoolArray:
        """Whether each candidate of a node is ranked up to the level, which makes it a member of the set."""
        rank = self._exact_level().quantile(alpha)
        if rank is None:
            return np.ones(scores.size, dtype=bool)
        member: BoolArray = (shares < rank.share) | ((shares == rank.share) & (scores <= rank.score))
        return member

    def _reaches(self, slots: IntArray, scores: FloatArray, cut: Cut) -> BoolArray:
        """Whether the mass strictly below each score of unlabelled nodes reaches a cut: it is in no set then."""
        below: IntArray = np.searchsorted(self._known.ordered.values, scores)
        everyone: BoolArray = cut.accepts(below.astype(np.float64), 1.0 + self._known.size)
        if self._hops is None:
            return everyone
        mass, total = self._hops.masses_below(slots, scores)
        reached: BoolArray = cut.accepts(mass, 1.0 + total)
        if isinstance(self.method.level, Nominal) and self.method.level.fallback == "global":
            reached = np.where(cut.accepts(total, 1.0 + total), reached, everyone)
        return reached

    def _shares(self, slots: IntArray, matrix: FloatArray) -> tuple[FloatArray, IntArray | None, IntArray | None]:
        """Return the rank of every score, (slots, classes), and the reference nodes by hop that it rests on."""
        if self._hops is not None:
            below, near = self._hops.count(slots, matrix)
            return self._hops.rank(slots, matrix, below, near), below, near
        shares = self._everyone.ranks(np.repeat(slots, matrix.shape[1]), matrix.ravel())
        return shares.reshape(matrix.shape), None, None

    def p_value(self, judged: Judgement, u: float) -> float:
        """Return the smoothed p-value of a label that has not entered yet, among those that set the level."""
        ordered, value = self._known.ordered, complex(judged.score)
        if self._exact:
            ordered, value = self._level_ranks, complex(judged.share, judged.score)
        below, up_to = ordered.around(value)
        return smoothed_p_value(ordered.size - up_to, up_to - below, ordered.size, u)

    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha.

        So the label of a node that is held out counts here, as it does for the level of the node's set.
        """
        _, matrix = self.candidates(slots)
        if self._exact:
            ranks = self._level_ranks.values
            below = np.searchsorted(ranks, in_order(self._shares(slots, matrix)[0], matrix))
            return np.asarray((ranks.size - below + 1.0) / (ranks.size + 1.0), dtype=np.float64)
        if self._hops is not None:
            return 1.0 - self._hops.ranks(slots, matrix)
        # A rank is the share of scores below, out of one more than there are; a p-value, that of all others.
        known, table = self._known, self._known.by_slot
        own = table["member"][slots][:, None] & (table["scores"][slots][:, None] < matrix)
        below = np.searchsorted(known.ordered.values, matrix) - own
        others = (known.size - table["member"][slots])[:, None]
        return np.asarray((others - below + 1.0) / (others + 1.0), dtype=np.float64)

    def candidates(self, slots: IntArray) -> tuple[Array, FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        self._refresh()
        bound = self._bound(slots)
        return bound.probabilities, bound.matrix(np.arange(slots.size)) + 0.0


def _pieces(slots: IntArray, classes: int | None) -> list[IntArray]:
    """Cut slots into the pieces that are handled at a time."""
    step = max(1, min(_NODES, _ENTRIES // max(1, classes or 1)))
    return [slots[start : start + step] for start in range(0, slots.size, step)]
