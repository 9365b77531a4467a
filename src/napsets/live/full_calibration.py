"""Full conformal prediction kept up to date: every label is evidence, and a change affects only the nodes near it.

`EvidenceCounts` keeps the counts of labels around each labelled node (its entry); here the entries' scores at their own
labels are kept. Scores that change are replaced in an ordered list. The threshold of a candidate is read off that list,
with the scores that the candidate would change replaced by their new values (see `napsets.methods.full`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.kernels.candidates import EvidenceLinks, Judges
from napsets.kernels.layout import read_only
from napsets.kernels.ranked import select_changed
from napsets.kernels.threads import compiling_now
from napsets.levels import rank_place
from napsets.live.alarms import smoothed_p_value
from napsets.live.labelled_nodes import COUNTED, AffectedEntries, EvidenceCounts, ScoreLists
from napsets.methods.method import Method
from napsets.methods.moves import REFERENCE_LABEL, JudgedNodes, Search
from napsets.predictions import NodeThresholds, PredictionSets, members
from napsets.scores import ByLabel
from napsets.scores.base import BoundRows, score_rows
from napsets.scores.exponents import Learned
from napsets.scores.informed import AddedCounts

Array = npt.NDArray[Any]

#: Entries of scores × candidates × classes that are held at a time.
_CHUNK_ENTRIES = 1 << 20
#: Nodes predicted at a time; those whose thresholds are computed together, from every score that changes; and up to how
#: many nodes that takes less time than to find out which of these scores matter.
_MOST, _CHUNK, _FEW = 1 << 14, 256, 32
#: How many more scores around the threshold are read than can move.
_MARGIN = 2


class FullCalibration:
    """The calibration of an informed score at a full level, kept up to date.

    The method has the score `Informed` of a node's own row, or that ranked by label; `Everyone` and `Full`.
    """

    #: A label enters before its p-value is computed: it is evidence for the others held out.
    enters_first = True

    def __init__(self, method: Method, counts: EvidenceCounts, learned: Learned) -> None:
        score: Any = method.score
        self.method, self.counts, self.state, self.learned = method, counts, counts.state, learned
        self._mix = float(score.mix) if isinstance(score, ByLabel) else -1.0
        self._base = (score.base if isinstance(score, ByLabel) else score).base
        self._is_current = False  #: Whether all scores are up to date.
        #: The slot that was judged last since anything changed, the counts around it and its fixed evidence.
        self._judged: tuple[Any, ...] | None = None
        self._lists = ScoreLists(counts.classes, self._mix)
        entries = counts.entries
        entries["raw"][:], entries["tabulated"][:], entries["rescore"][:] = np.nan, False, True
        self._fix(np.flatnonzero(~entries["recount"]))

    # -- changes -------------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._is_current, self._judged = False, None

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        self.counts.grow(count)

    def enter(self, slot: int, _: float | None = None) -> None:
        """Count a node's new label."""
        entries, judged, reference = self.counts.entries, self._judged, self.state.nodes["is_reference"][slot]
        self.counts.enter(slot)
        self._changed()
        if judged is not None and judged[0] == slot:  # the evidence of its set is that of its new entry
            _, around, entries["fixed"][-1] = judged
            entries["near"][-1] = around.reference_near if reference else around.all_near
            entries["far"][-1] = around.reference_far if reference else around.all_far
            entries["around"][-1], entries["recount"][-1] = around.mean_outputs, False
            if reference and self.learned.exponents.alike:  # its own label is no evidence for it
                self._fix(np.array([entries.size - 1]))

    def leave(self, slot: int) -> None:
        """Stop counting a node's label, which it still has."""
        self._changed()
        entry, entries = self.counts.entry_of[slot : slot + 1], self.counts.entries
        self._lists.replace(self.counts.code[slot : slot + 1], entries["raw"][entry], np.array([np.nan]))
        self.counts.leave(slot)

    def see_edges(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added or removed, or are about to be removed."""
        self._changed()
        self.counts.see_edges(*ends)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that nodes have new outputs; labelled ones leave before, and enter after."""
        self._changed()
        self.counts.see_outputs(slots)

    def _refresh(self) -> None:
        """Bring all scores up to date."""
        if self._is_current:
            return
        self._fix(self.counts.catch_up())
        entries, step = self.counts.entries, max(1, _CHUNK_ENTRIES // self.counts.classes)
        rows = np.flatnonzero(entries["rescore"])
        scores = np.empty(rows.size)
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            slots = entries["slots"][some]
            probabilities = self.counts.probabilities(self.learned, *(entries[name][some] for name in COUNTED))
            labels, u = self.counts.labels(some), self.state.nodes["u"][slots]
            scores[start : start + step] = score_rows(self._base, "at", probabilities, labels, u) + 0.0
        if rows.size:
            self._lists.replace(self.counts.code[entries["slots"][rows]], entries["raw"][rows], scores)
            entries["raw"][rows] = scores
            entries["rescore"][rows] = entries["tabulated"][rows] = False
        self._is_current = True

    def _fix(self, rows: IntArray) -> None:
        if rows.size:
            entries = self.counts.entries
            entries["fixed"][rows] = self.counts.fixed(entries["slots"][rows], entries["around"][rows], self.learned)

    # -- thresholds ----------------------------------------------------------------------------------------------------

    def _changes(
        self, slots: IntArray, affected: AffectedEntries, candidates: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return, for each slot, the scores that its label changes and what each candidate makes of them.

        The score of a slot that is itself held out is left out.
        """
        counts, size, (starts, entries, *added) = self.counts, candidates.size, affected
        codes = counts.code[slots].astype(np.int64)
        before = np.repeat(np.where(codes < 0, -codes - 1, -1), np.diff(starts))
        columns: Any = [np.repeat(column, size) for column in (np.arange(entries.size), *added, before)]
        columns.append(np.tile(candidates, entries.size))
        changed = self._scores_with(entries, AddedCounts(*columns)).reshape(entries.size, size)
        own = np.flatnonzero(codes < 0)
        if own.size:
            entries = np.insert(entries, starts[own], counts.entry_of[slots[own]])
            changed = np.insert(changed, starts[own], np.nan, axis=0)
            starts = starts + np.searchsorted(own, np.arange(slots.size + 1), side="left")
        labels = counts.labels(entries)
        return starts, self._lists.ranked(labels, counts.entries["raw"][entries]), changed

    def _scores_with(self, entries: IntArray, change: AddedCounts) -> FloatArray:
        """Return the scores, as they are ranked, of entries at some places if another node had some label."""
        scores, step = np.empty(change.places.size), max(1, _CHUNK_ENTRIES // self.counts.classes)
        for start in range(0, scores.size, step):
            some = change.part(slice(start, start + step))
            if some.places.size < entries.size:
                informed = self.counts.informed(entries[some.places], self._base, self.learned)
                some = some._replace(places=np.arange(some.places.size))
            else:
                informed = self.counts.informed(entries, self._base, self.learned)
            scores[start : start + step] = informed.scores_with(some)
        return self._lists.ranked(self.counts.labels(entries[change.places]), scores)

    def _thresholds(self, slots: IntArray, alpha: float, affected: AffectedEntries, candidates: IntArray) -> FloatArray:
        """Return the threshold of each candidate, shape (slots, candidates)."""
        size, own = self._lists.held_out.size, self.counts.code[slots] < 0
        needed = np.array([rank_place(size - mine, alpha) for mine in (0, 1)])[own.astype(np.int64)]
        few = needed > size - own
        if few.all():
            return np.full((slots.size, candidates.size), np.inf)
        needed = np.minimum(needed, size - own)
        thresholds = self._by_moves(slots, needed, affected, candidates) if slots.size > _FEW else None
        if thresholds is None:
            thresholds = np.empty((slots.size, candidates.size))
            for start in range(0, slots.size, _CHUNK):
                some = slice(start, min(start + _CHUNK, slots.size))
                starts, old, changed = self._changes(slots[some], affected.part(some.start, some.stop), candidates)
                places = needed[some] - 1
                middle = int(places[0])
                reach = int(np.diff(starts).max()) + int(np.abs(places - middle).max()) + _MARGIN
                around, below = self._lists.around(middle, reach)
                select_changed(around, below, size, places, starts, old, changed, thresholds[some])
        thresholds[few] = np.inf
        return thresholds

    def _by_moves(
        self, slots: IntArray, needed: IntArray, affected: AffectedEntries, candidates: IntArray
    ) -> FloatArray | None:
        """Return the same as a batch computes it; None if no entry is affected, or for scores of other kinds.

        The affected entries are listed already. So the graph given to the kernel has one node between a slot and each
        entry that it affects from two hops away, and this entry is the only judge beside that node.
        """
        counts, codes = self.counts, self.counts.code[slots].astype(np.int64)
        own = np.where(codes < 0, counts.entry_of[slots], -1)
        listed = np.concatenate([affected.entries, own[own >= 0]])
        places = np.zeros(counts.entries.size, dtype=np.int64)
        places[listed] = 1
        entries = np.flatnonzero(places)
        rule = counts.tabulate(entries, self._base, self.learned)
        if not entries.size or not rule.known:  # nothing is affected, or too little is known of the score
            return None
        places[entries] = np.arange(entries.size)
        local = places[listed]
        labels, known = counts.labels(entries), self._lists.sorted_held_out
        order = np.searchsorted(known, self._lists.ranked(labels, counts.entries["raw"][entries]))
        numbers = np.column_stack([labels, labels if self._mix >= 0.0 else np.zeros_like(labels), order])
        tables, facts = (counts.entries[name][entries] for name in ("tables", "facts"))
        judges = Judges(tables, facts, numbers, np.full(entries.size, -1.0))
        from_far, from_near = np.flatnonzero(affected.far), np.flatnonzero(affected.near)
        size = from_far.size
        links = EvidenceLinks(
            np.append(np.zeros(size, dtype=np.int64), np.searchsorted(from_far, affected.starts)),
            np.arange(size, dtype=np.int32),
            np.append(np.arange(size), size + np.searchsorted(from_near, affected.starts)),
            local[np.append(from_far, from_near)].astype(np.int32),
            affected.far[from_far],
        )
        links = EvidenceLinks(*map(read_only, links))
        search = Search(known, order, links, judges, rule, self._lists.unranked, partial(self._scores_with, entries))
        owns = np.full(slots.size, -1)
        owns[own >= 0] = local[affected.entries.size :]
        befores = np.where(codes > 0, REFERENCE_LABEL, np.where(codes < 0, -codes - 1, -1))
        return search.thresholds(JudgedNodes(size + np.arange(slots.size), owns, befores), needed, candidates, 1)

    # -- results -------------------------------------------------------------------------------------------------------

    def candidates(self, slots: IntArray) -> tuple[Array, FloatArray]:
        """Return the probability and the score of every label, shape (slots, classes)."""
        self._refresh()
        scores, _, probabilities, _ = self._matrix(slots)
        return probabilities, scores

    def _matrix(self, slots: IntArray) -> tuple[FloatArray, IntArray | None, Array, AffectedEntries]:
        """Return the scores, top labels (if sets may not be empty), probabilities, and the entries affected."""
        around, affected = self.counts.around(slots, listing=True)
        fixed = self.counts.fixed(slots, around.mean_outputs, self.learned)
        self._judged = (int(slots[0]), around, fixed) if slots.size == 1 else None
        probabilities = self.counts.probabilities(self.learned, fixed, around.all_near, around.all_far)
        u = self.state.nodes["u"][slots]
        matrix = score_rows(self._base, "matrix", probabilities, u)
        if self._mix >= 0.0:
            matrix = self._lists.ranked(np.arange(matrix.size) % matrix.shape[1], matrix)
        bound = None if self.method.allow_empty else BoundRows(self._base, probabilities, u)
        top = None if bound is None else bound.top_labels(matrix, np.arange(slots.size))
        return matrix, top, probabilities, affected

    @compiling_now()  # each of many calls is too small to be worth compiling for
    def predict(self, slots: IntArray, alpha: float) -> PredictionSets:
        """Return the sets of slots now."""
        self._refresh()
        size = self._lists.held_out.size
        place = rank_place(size, alpha)
        level = np.inf if place > size else self._lists.share_below(place - 1)
        classes, parts = np.arange(self.counts.classes), list[Any]()
        for start in range(0, max(slots.size, 1), _MOST):
            some = slots[start : start + _MOST]
            matrix, top, _, affected = self._matrix(some)
            thresholds = self._thresholds(some, alpha, affected, classes)
            support = size - (self.counts.code[some] < 0).astype(np.int64)
            at = NodeThresholds(
                alpha, thresholds.min(axis=1), support, support.astype(np.float64), level, self.method.allow_empty,
                thresholds, classes,
            )  # fmt: skip
            parts.append(PredictionSets.of_scores(some, matrix, at, top))
        return parts[0] if len(parts) == 1 else PredictionSets.concat(parts)

    def judge(self, slots: IntArray, labels: IntArray, alpha: float) -> Iterator[tuple[BoolArray, None]]:
        """Yield the set before each label; see `Calibration.judge`."""
        for place in range(slots.size):
            yield self._member(slots[place : place + 1], alpha), None

    @compiling_now()
    def _member(self, slot: IntArray, alpha: float) -> BoolArray:
        """Return which labels are in the set of one slot without a label.

        If a candidate changes at most m scores, its threshold lies between the scores m places before and after the
        one that is wanted. Thresholds are computed only for candidates that lie in between.
        """
        self._refresh()
        matrix, top, _, affected = self._matrix(slot)
        thresholds = np.full(matrix.shape, np.inf)
        size, reach = self._lists.held_out.size, affected.entries.size
        place = rank_place(size, alpha) - 1
        if place < size:
            low, high = -np.inf, np.inf
            if place + reach < size:
                values, below = self._lists.around(place, reach)
                high = values[place + reach - below]
                low = values[place - reach - below] if place >= reach else low
            thresholds[:] = low
            between = np.flatnonzero((matrix[0] > low) & (matrix[0] <= high))
            if between.size:
                thresholds[:, between] = self._thresholds(slot, alpha, affected, between)
        member: BoolArray = members(matrix, thresholds, top_labels=top)[0]
        return member

    @compiling_now()
    def p_value(self, slot: int, _: float | None, u: float) -> float:
        """Return the smoothed p-value of a held-out label that was just added, among the others."""
        self._refresh()
        scores, size = self.counts.entries["raw"][self.counts.entry_of[slot : slot + 1]], self._lists.held_out.size
        below, up_to = self._lists.compared(self._lists.ranked(self.state.nodes["labels"][slot : slot + 1], scores))
        return smoothed_p_value(size - int(up_to[0]), int(up_to[0] - below[0]) - 1, size - 1, u)

    @compiling_now()
    def p_values(self, slots: IntArray) -> FloatArray:
        """Return the p-value of every candidate: it is in the set at alpha exactly where this exceeds alpha."""
        self._refresh()
        p_values = np.empty((slots.size, self.counts.classes))
        for place in range(slots.size):
            slot = slots[place : place + 1]
            (scores,), _, _, affected = self._matrix(slot)
            _, old, changed = self._changes(slot, affected, np.arange(scores.size))
            below, _ = self._lists.compared(scores)
            # A score that is left out, or put in its place, below a candidate.
            below = below - (old[:, None] < scores).sum(axis=0) + (changed < scores).sum(axis=0)
            size = self._lists.held_out.size - int(self.counts.code[slot[0]] < 0)
            p_values[place] = (size - below + 1) / (size + 1)
        return p_values
