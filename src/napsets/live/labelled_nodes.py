"""The labelled nodes of a graph that changes: the labels counted around each, and their scores in order.

Each labelled node has an entry. Entries of the reference count the reference alone, those held out count all labels.
When a label is added or removed, the counts of the entries within two hops change by its contribution. When an edge
is added or removed, the entries beside it are counted again; when the outputs of a node are replaced, the entries
within two hops are. A *slot* is the row of a node in the arrays of `State`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray, sealed
from napsets.kernels import evidence_counts as kernels
from napsets.kernels import ranked
from napsets.kernels.candidates import FAR, NEAR_SLOPE, Rule
from napsets.kernels.growing import OrderedPairs
from napsets.kernels.layout import read_only
from napsets.live.state import GrowingTable, State
from napsets.methods.moves import judge_tables
from napsets.scores import ByLabel, Informed, Labelled
from napsets.scores.base import BoundRows
from napsets.scores.by_label import SHRINK, SLOPE
from napsets.scores.evidence import (
    CROWD,
    Evidence,
    fitted_rows,
    label_shares,
    label_weights,
    log_floored,
    normalised,
)
from napsets.scores.exponents import PRIOR, Exponents, Learned, alike_table
from napsets.scores.informed import Bag, BoundInformed

Array = npt.NDArray[Any]

#: How many scores on either side of a place are looked up at the least.
_LEAST_REACH = 16
#: The columns from which the corrected probabilities of an entry are computed.
COUNTED = ("fixed", "near", "far")


def counted_score(score: Any) -> Informed | None:
    """Return the informed score in a score, if its evidence can be counted here; else None."""
    informed = score.base if isinstance(score, ByLabel) else score
    suits = isinstance(informed, Informed) and informed.uses_held_out_labels and not informed.wide
    return informed if suits else None


class AffectedEntries(NamedTuple):
    """The held-out entries for which the label of a slot is evidence, slot by slot."""

    starts: IntArray  #: Where the entries of each slot start.
    #: The entries, and what a label of the slot adds to their counts near and far.
    entries: IntArray
    near: FloatArray
    far: FloatArray

    def part(self, first: int, last: int) -> AffectedEntries:
        """Return the entries of some slots."""
        starts = self.starts[first : last + 1]
        some = slice(int(starts[0]), int(starts[-1]))
        return AffectedEntries(starts - starts[0], self.entries[some], self.near[some], self.far[some])


class CountsAround(NamedTuple):
    """The evidence around some slots, each of shape (slots, classes)."""

    #: Labels of the reference among the neighbours, and among theirs.
    reference_near: FloatArray
    reference_far: FloatArray
    #: The same of all labels.
    all_near: FloatArray
    all_far: FloatArray
    mean_outputs: FloatArray  #: The model's outputs on average over the neighbours and theirs.


class EvidenceCounts:
    """The evidence of the labelled nodes of an undirected graph, up to 0, 1 or 2 hops away, kept up to date."""

    def __init__(self, state: State, hops: int) -> None:
        self.state, self.hops, self.classes = state, hops, int(state.classes or 1)
        none, flags, table = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool), np.empty((0, self.classes))
        number, degree = np.empty(0), np.empty(0, dtype=np.int32)
        code = np.empty(0, dtype=np.min_scalar_type(-self.classes - 1))  # read more often than anything else
        self._by_slot = GrowingTable(code=code, reference_degree=degree, entry_of=none, means=table, stale=flags)
        self.entries = GrowingTable(
            slots=none,
            near=table, far=table,  # labels counted among the neighbours, and among theirs
            around=table,  # the mean outputs there
            fixed=table,  # the part of the evidence that no held-out label changes
            raw=number,  # the score, NaN where it is in no list
            recount=flags, rescore=flags,  # whether the counts, or the score alone, must be renewed
            tables=np.empty((0, FAR + 1, self.classes)), facts=np.empty((0, NEAR_SLOPE + 1)),  # those of `Judges`
            tabulated=flags,  # whether these two are up to date
            places=none, affected=none, added_near=number, added_far=number,  # those of `Scratch`
        )  # fmt: skip
        self.grow(state.nodes.size)
        slots, by_slot = state.labelled(), self._by_slot
        labels, reference = state.nodes["labels"][slots], state.nodes["is_reference"][slots]
        self.code[slots] = np.where(reference, labels + 1, -(labels + 1))
        kernels.count_reference_degrees(slots[reference], state.adjacency.rows, by_slot["reference_degree"])
        self._extend(slots)

    @property
    def code(self) -> Array:
        """The label of each slot, coded as in `SlotLabels`."""
        return self._by_slot["code"]

    @property
    def entry_of(self) -> IntArray:
        """The entry of each slot, −1 where there is none."""
        return self._by_slot["entry_of"]

    def labels(self, entries: IntArray) -> IntArray:
        """Return the labels of entries."""
        return self.state.nodes["labels"][self.entries["slots"][entries]]

    # -- changes --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        self._by_slot.extend(count, code=0, reference_degree=0, entry_of=-1, stale=True)

    def _extend(self, slots: IntArray) -> None:
        """Enter slots whose counts are not known yet."""
        entries, before = self.entries, self.entries.size
        entries.extend(slots.size, slots=slots, raw=np.nan, recount=True, rescore=True, tabulated=False, places=0)
        self.entry_of[slots] = np.arange(before, entries.size)

    def enter(self, slot: int) -> None:
        """Count a node's new label as evidence for others; its own evidence is not counted yet."""
        self._shift_label(slot, 1)
        label = int(self.state.nodes["labels"][slot]) + 1
        self.code[slot] = label if self.state.nodes["is_reference"][slot] else -label
        self._extend(np.array([slot]))

    def leave(self, slot: int) -> None:
        """Stop counting a node's label, which it still has; the last entry takes the place of its entry."""
        entry = int(self.entry_of[slot])
        self.code[slot] = 0
        self.entry_of[self.entries["slots"][-1]] = entry
        self.entry_of[slot] = -1
        self.entries.drop(entry)
        self._shift_label(slot, -1)

    def _shift_label(self, slot: int, sign: int) -> None:
        nodes, buffers = self.state.nodes, self.entries.buffers
        label, reference = int(nodes["labels"][slot]), bool(nodes["is_reference"][slot])
        entries = kernels.Entries(buffers["near"], buffers["far"], buffers["recount"], buffers["rescore"])
        kernels.shift_label(
            slot, label, sign, reference, self.state.adjacency.rows, self._slot_labels(), entries, self._scratch()
        )

    def see_edges(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added or removed, or are about to be removed."""
        slots, rows = np.unique(np.concatenate(ends)), self.state.adjacency.rows
        kernels.mark_changed_edges(slots, rows, self._slot_labels(), self.entries["recount"], self._by_slot["stale"])

    def see_outputs(self, slots: IntArray) -> None:
        """Note that nodes have new outputs; labelled ones leave before, and enter after."""
        rows = self.state.adjacency.rows
        kernels.mark_changed_outputs(slots, rows, self._slot_labels(), self.entries["recount"], self._by_slot["stale"])

    def catch_up(self) -> IntArray:
        """Bring all counts up to date, and return which entries were counted again."""
        entries = self.entries
        stale = np.flatnonzero(entries["recount"])
        if stale.size:
            slots = entries["slots"][stale]
            (counts, _), held_out = self.around(slots), self.code[slots, None] < 0
            entries["near"][stale] = np.where(held_out, counts.all_near, counts.reference_near)
            entries["far"][stale] = np.where(held_out, counts.all_far, counts.reference_far)
            entries["around"][stale] = counts.mean_outputs
            entries["recount"][stale] = False
            entries["rescore"][stale] = True
        return stale

    # -- counting by kernels ------------------------------------------------------------------------------------------

    def _slot_labels(self) -> Any:
        buffers = self._by_slot.buffers
        return kernels.SlotLabels(buffers["code"], buffers["reference_degree"], buffers["entry_of"], CROWD)

    def _scratch(self) -> Any:
        return kernels.Scratch(
            *(self.entries.buffers[name] for name in ("places", "affected", "added_near", "added_far"))
        )

    def around(self, slots: IntArray, *, listing: bool = False) -> tuple[CountsAround, AffectedEntries]:
        """Return the evidence around some slots, counted on the present graph.

        With `listing`, also the held-out entries for which the label of each slot is evidence; else none are listed.
        """
        starts = np.empty(slots.size + 1 if listing else 0, dtype=np.int64)
        buffers, outputs = self._by_slot.buffers, self.state.nodes["outputs"]
        tables, surroundings = np.empty((5, slots.size, self.classes)), (self.state.adjacency.rows, self._slot_labels())
        affected = kernels.count_around(
            slots, *surroundings, outputs, buffers["means"], buffers["stale"], tables, self._scratch(), starts
        )
        return CountsAround(*tables), AffectedEntries(starts, *affected)

    # -- evidence ------------------------------------------------------------------------------------------------------

    def of_reference(self, slots: IntArray) -> FloatArray:
        """Return the labels of the reference counted near and far, and the mean outputs, as one array."""
        self.catch_up()
        tables = np.empty((3, slots.size, self.classes))
        known = self.code[slots] > 0  # whose entries count the reference alone
        entries = self.entry_of[slots[known]]
        for table, name in zip(tables, ("near", "far", "around"), strict=True):
            table[known] = self.entries[name][entries]
        if entries.size < slots.size:
            counts, _ = self.around(slots[~known])
            tables[:, ~known] = counts.reference_near, counts.reference_far, counts.mean_outputs
        return tables

    def fixed(self, slots: IntArray, around: FloatArray, learned: Learned) -> FloatArray:
        """Return the part of the evidence that no label outside the reference changes; see `Evidence.fixed`."""
        exponents, p = learned.exponents, self.state.nodes["outputs"][slots]
        fixed, alike = np.empty(around.shape), around
        if exponents.alike:
            counts, codes = learned.table[p.argmax(axis=1)], self.code[slots]
            known = np.flatnonzero(codes > 0)
            if known.size:
                own = known, codes[known] - 1
                counts[own] = np.maximum(counts[own] - 1.0, 0.0)
            alike = np.log1p(counts / (PRIOR["alike"] * learned.shares))
        named = np.array([exponents.model, exponents.around, exponents.alike])
        degrees = np.log1p(self.state.adjacency.rows.sizes[slots])
        recalibration = np.empty((0, self.classes)) if learned.recalibration is None else learned.recalibration
        kernels.fix_rows(*log_floored(np.stack([p, around])), alike, degrees, recalibration, named, fixed)
        return fixed

    def fit(self) -> Learned:
        """Return the parameters fitted on the present reference."""
        self.catch_up()
        state = self.state
        outputs: Array = state.nodes["outputs"]
        slots = np.flatnonzero(self.code > 0)
        labels = state.nodes["labels"][slots]
        present = outputs if state.present == outputs.shape[0] else outputs[state.nodes["labels"] > -2]
        learned = Learned(Exponents(), label_shares(present, labels), alike_table(outputs, Labelled(slots, labels)))
        kept = fitted_rows(slots.size, outputs.shape[1])
        near, far, around = self.of_reference(slots[kept])
        counts = dict(zip(("near", "far")[: self.hops], (near, far), strict=False))
        degrees = state.adjacency.rows.sizes[slots[kept]]
        evidence = Evidence.of_rows(outputs[slots[kept]], around, labels[kept], degrees, counts, learned)
        return evidence.fit(Labelled(np.arange(kept.size), labels[kept]))

    def probabilities(self, learned: Learned, fixed: FloatArray, near: FloatArray, far: FloatArray) -> Array:
        """Return corrected probabilities, as wide as the model's."""
        weights = label_weights(learned, fixed, near, far)
        return normalised(weights).astype(self.state.nodes["outputs"].dtype)

    def informed(self, entries: IntArray, score: Any, learned: Learned) -> BoundInformed:
        """Return a score of some entries, with their labels as the bag."""
        slots, none = self.entries["slots"][entries], Labelled(entries[:0], entries[:0])
        rows = BoundRows(score, self.state.nodes["outputs"][slots], self.state.nodes["u"][slots])
        labelled = Labelled(np.arange(entries.size), self.labels(entries))
        fixed, near, far = (sealed(self.entries[name][entries]) for name in COUNTED)
        bag = Bag(labelled, fixed, near, far, none.nodes)
        return BoundInformed(rows, rows.probabilities, learned, none, bag)

    def tabulate(self, entries: IntArray, score: Any, learned: Learned) -> Rule:
        """Bring what kernels must know of some entries up to date, and return how scores are computed."""
        table = self.entries
        stale = entries[~table["tabulated"][entries]]
        rows, informed = np.arange(stale.size), self.informed(stale, score, learned)
        judges, rule = judge_tables(informed, rows, rows, rows, table["raw"][stale])
        table["tables"][stale], table["facts"][stale], table["tabulated"][stale] = judges.tables, judges.facts, True
        return rule


class ScoreLists:
    """The scores of the reference and of the labels held out, each at its own label.

    `mix` is the weight of ranks among the scores of the same label, as in `ByLabel`; below 0, scores are not ranked.
    """

    def __init__(self, classes: int, mix: float) -> None:
        self.mix = mix
        self.everyone, self.own, self.held_out = OrderedPairs(), OrderedPairs(), OrderedPairs()
        self.sizes, self.before, self.held_out_sizes = (np.zeros(classes, dtype=np.int64) for _ in range(3))
        self._guess, self._guesses = 0.5, np.zeros((2, classes), dtype=np.int64)
        self.forget()

    def forget(self) -> None:
        """Forget the scores around places: they may be others now."""
        self._windows: dict[int, tuple[int, FloatArray, int]] = {}
        self._sorted: FloatArray | None = None

    def replace(self, codes: npt.NDArray[Any], old: FloatArray, new: FloatArray) -> None:
        """Put scores in place of others; NaN stands for one that is in no list, and codes are those of `SlotLabels`."""
        self.forget()
        done = 0
        while True:
            held_out = self.held_out.blocks, self.held_out_sizes
            done = ranked.replace_scores(done, codes, old, new, self._ranking(), *held_out)
            if done == codes.size:
                break
            for pairs in (self.everyone, self.own, self.held_out):
                pairs.grow()

    def _ranking(self) -> Any:
        size = self.everyone.size
        return ranked.Ranking(
            self.everyone.blocks, self.own.blocks, self.sizes, self.before, size, self.mix, SHRINK, SLOPE
        )  # fmt: skip

    def ranked(self, labels: IntArray, scores: FloatArray) -> FloatArray:
        """Return the ranks of scores at these labels, one label per score in their order."""
        if self.mix < 0.0:
            return scores
        values = np.empty(scores.size)
        ranked.rank_scores(read_only(labels), scores.reshape(-1), self._ranking(), values)
        return values.reshape(scores.shape)

    def unranked(self, values: FloatArray) -> FloatArray:
        """Return between which scores one of each label is ranked at each value, shape (labels, 2, values).

        Where scores are not ranked, these values themselves, for all labels together.
        """
        if self.mix < 0.0:
            return np.stack([values, values])[None]
        bounds = np.empty((self.sizes.size, 2, values.size))
        ranked.unrank(values, self._ranking(), bounds)
        return bounds

    @property
    def sorted_held_out(self) -> FloatArray:
        """All ranked scores held out, ascending."""
        if self._sorted is None:
            labels, scores = self.held_out.pairs
            self._sorted = np.sort(self.ranked(labels.astype(np.int64), scores))
        return self._sorted

    def around(self, place: int, reach: int) -> tuple[FloatArray, int]:
        """Return the ranked scores held out around a place, from 0, and how many are below them."""
        window = self._windows.get(place)
        if window is None or window[0] < reach:
            reach = max(reach if window is None else 2 * reach, _LEAST_REACH)
            values, below = ranked.scores_between(
                place - reach, place + reach, self.held_out.blocks, self._groups(), self._ranking(), self._guess,
                self._guesses,
            )  # fmt: skip
            self._guess = float(values[min(max(place - below, 0), values.size - 1)])
            window = self._windows[place] = (reach, values, below)
        return window[1], window[2]

    def _groups(self) -> IntArray:
        return self.held_out_sizes if self.mix >= 0.0 else np.array([self.held_out.size])

    def compared(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return how many ranked scores held out are below each value, and how many are at most the value."""
        below, up_to = np.empty((2, values.size), dtype=np.int64)
        ranked.count_ranked(values, self.held_out.blocks, self._groups(), self._ranking(), below, up_to)
        return below, up_to

    def share_below(self, place: int) -> float:
        """Return the share of the reference below the score held out at a place, from 0."""
        values, below = self.around(place, 0)
        threshold, counts = values[[place - below]], np.empty((2, 1), dtype=np.int64)
        if self.mix < 0.0:
            counts[0] = self.everyone.count(0.0, float(threshold[0]))
        else:
            ranked.count_ranked(threshold, self.own.blocks, self.sizes, self._ranking(), *counts)
        return float(counts[0, 0]) / (1.0 + self.everyone.size)
