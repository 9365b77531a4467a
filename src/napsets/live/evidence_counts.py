"""The labels counted around the labelled nodes of a graph that changes, kept up to date by exact amounts.

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
from napsets.kernels.candidates import FAR, NEAR_SLOPE, Rule
from napsets.live.state import State, Table
from napsets.methods.moves import judge_tables
from napsets.scores import Labelled
from napsets.scores.base import BoundRows
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

#: If a batch has this many more edges than there are entries, everything is counted again.
_FEW_EDGES = 1 << 12
#: The columns from which the corrected probabilities of an entry are computed.
COUNTED = ("fixed", "near", "far")


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
        self._by_slot = Table(code=code, reference_degree=degree, entry_of=none, means=table, stale=flags)
        self.entries = Table(
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
        #: Whether everything must be counted again before the next result.
        self.must_reload = False

    @property
    def code(self) -> Array:
        """The label of each slot, coded as in `SlotLabels`."""
        return self._by_slot["code"]

    @property
    def entry_of(self) -> IntArray:
        """The entry of each slot, −1 where there is none."""
        return self._by_slot["entry_of"]

    def labels(self, slots: IntArray) -> IntArray:
        """Return the labels of labelled slots."""
        return np.abs(self.code[slots].astype(np.int64)) - 1

    # -- changes --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        table, before = self._by_slot, self._by_slot.size
        table.extend(count)
        for name, value in (("code", 0), ("reference_degree", 0), ("entry_of", -1), ("stale", True)):
            table[name][before:] = value

    def load(self) -> None:
        """Take over a state with all its labels."""
        state, by_slot = self.state, self._by_slot
        self.grow(state.nodes.size - by_slot.size)
        slots = state.labelled()
        labels, reference = state.nodes["labels"][slots], state.nodes["is_reference"][slots]
        self.code[:] = 0
        self.code[slots] = np.where(reference, labels + 1, -(labels + 1))
        by_slot["reference_degree"][:] = 0
        kernels.count_reference_degrees(slots[reference], state.adjacency.rows, by_slot["reference_degree"])
        by_slot["stale"][:] = True
        self.entry_of[:] = -1
        self.entries.size = 0
        self._extend(slots)
        self.must_reload = False

    def _extend(self, slots: IntArray) -> None:
        """Enter slots whose counts are not known yet."""
        entries, before = self.entries, self.entries.size
        entries.extend(slots.size)
        self.entry_of[slots] = np.arange(before, entries.size)
        values = {"slots": slots, "raw": np.nan, "recount": True, "rescore": True, "tabulated": False, "places": 0}
        for name, value in values.items():
            entries.buffers[name][before : entries.size] = value

    def enter(self, slot: int) -> int:
        """Count a node's new label as evidence for others; its own evidence is not counted yet.

        Returns for how many entries it is evidence, or −1 if that does not determine which scores change.
        """
        label, reference = int(self.state.nodes["labels"][slot]), bool(self.state.nodes["is_reference"][slot])
        affected = self._shift_label(slot, label, 1, reference)
        self.code[slot] = label + 1 if reference else -(label + 1)
        self._extend(np.array([slot]))
        return affected

    def leave(self, slot: int) -> None:
        """Stop counting a node's label, which it still has; the last entry takes the place of its entry."""
        label, reference = int(self.state.nodes["labels"][slot]), bool(self.state.nodes["is_reference"][slot])
        entry = int(self.entry_of[slot])
        self.code[slot] = 0
        self.entry_of[self.entries["slots"][-1]] = entry
        self.entry_of[slot] = -1
        self.entries.drop(entry)
        self._shift_label(slot, label, -1, reference)

    def _shift_label(self, slot: int, label: int, sign: int, reference: bool) -> int:
        if self.must_reload:
            return -1
        buffers, rows = self.entries.buffers, self.state.adjacency.rows
        entries = kernels.Entries(buffers["near"], buffers["far"], buffers["recount"], buffers["rescore"])
        affected: int = kernels.shift_label(
            slot, label, sign, reference, rows, self._slot_labels(), entries, self._scratch()
        )
        return affected

    def touch(self, *ends: IntArray) -> None:
        """Note that edges at some slots were added or removed, or are about to be removed."""
        if self.must_reload or sum(slots.size for slots in ends) > self.entries.size + _FEW_EDGES:
            self.must_reload = True
        else:
            slots, rows = np.unique(np.concatenate(ends)), self.state.adjacency.rows
            kernels.mark_changed_edges(
                slots, rows, self._slot_labels(), self.entries["recount"], self._by_slot["stale"]
            )

    def see_outputs(self, slots: IntArray) -> None:
        """Note that nodes have new outputs; labelled ones leave before, and enter after."""
        if not self.must_reload:
            rows = self.state.adjacency.rows
            kernels.mark_changed_outputs(
                slots, rows, self._slot_labels(), self.entries["recount"], self._by_slot["stale"]
            )

    def catch_up(self) -> IntArray:
        """Bring all counts up to date, and return which entries were counted again."""
        if self.must_reload:
            self.load()
        entries = self.entries
        stale = np.flatnonzero(entries["recount"])
        if stale.size:
            slots = entries["slots"][stale]
            counts, held_out = self.around(slots), self.code[slots, None] < 0
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

    def around(self, slots: IntArray) -> CountsAround:
        """Return the evidence around some slots, counted on the present graph."""
        return self._count(slots, np.empty(0, dtype=np.int64))[0]

    def around_and_affected(self, slots: IntArray) -> tuple[CountsAround, AffectedEntries]:
        """Return the same, and the held-out entries for which the label of each slot is evidence."""
        return self._count(slots, np.empty(slots.size + 1, dtype=np.int64))

    def _count(self, slots: IntArray, starts: IntArray) -> tuple[CountsAround, AffectedEntries]:
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
            counts = self.around(slots[~known])
            tables[:, ~known] = counts.reference_near, counts.reference_far, counts.mean_outputs
        return tables

    def fixed(self, slots: IntArray, around: FloatArray, learned: Learned, codes: IntArray | None = None) -> FloatArray:
        """Return the part of the evidence that no label outside the reference changes; see `Evidence.fixed`.

        With `codes`, as if the slots had these labels, as in `SlotLabels`.
        """
        exponents, p = learned.exponents, self.state.nodes["outputs"][slots]
        fixed, alike = np.empty(around.shape), around
        if exponents.alike:
            counts, codes = learned.table[p.argmax(axis=1)], self.code[slots] if codes is None else codes
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
        labels = self.labels(slots)
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
        labelled = Labelled(np.arange(entries.size), self.labels(slots))
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
