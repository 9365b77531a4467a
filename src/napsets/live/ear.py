"""What the labelled nodes of a graph that changes hear: labels counted around each, kept up to date by exact amounts.

Each labelled node has an entry. Entries of the reference hear the reference, those held out hear everyone. When a label
comes or goes, the counts of those within two hops move by what it adds; when an edge does, those beside it are counted
anew; when the model changes its mind, those within two hops are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.live.nodes import Column
from napsets.live.state import State
from napsets.scores import Labelled
from napsets.scores.evidence import CROWD, Evidence, fitted_rows, label_shares, label_weights, normalised
from napsets.scores.exponents import Exponents, Learned, alike_table

__all__ = ["Ear"]

Array = npt.NDArray[Any]

#: Batches of so many more edges than there are entries are not looked at edge by edge.
_FEW_EDGES = 1 << 12


class Ear:
    """The evidence of the labelled nodes, kept up to date.

    Parameters
    ----------
    state : State
        Whose changes it is told of. Its graph is undirected.
    hops : int
        How far labelled nodes may be that are counted: 0, 1 or 2.
    """

    def __init__(self, state: State, hops: int) -> None:
        self.state, self.hops = state, hops
        whole, flags = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
        wide = np.empty((0, int(state.classes or 1)))
        # By slot.
        self.code, self._crowd = (Column(np.empty(0, dtype=np.int32)) for _ in range(2))
        self.entry_of, self._means, self._stale = Column(whole), Column(wide), Column(flags)
        # By entry.
        self.slots, self.near, self.far, self.around = Column(whole), Column(wide), Column(wide), Column(wide)
        self.recount, self.rescore = Column(flags), Column(flags)
        self._scratch = [Column(kind) for kind in (whole, whole, np.empty(0), np.empty(0))]
        #: Whether everything is to be counted anew when something is asked.
        self.later = False

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return int(self.near.values.shape[1])

    def labels(self, slots: IntArray) -> IntArray:
        """Return the labels of labelled slots."""
        return np.abs(self.code.values[slots].astype(np.int64)) - 1

    # -- what happens --------------------------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Make room for new nodes."""
        for column in (self.code, self._crowd):
            column.extend(np.zeros(count, dtype=np.int32))
        self.entry_of.extend(np.full(count, -1))
        self._stale.extend(np.ones(count, dtype=bool))
        self._means.extend(np.empty((count, self.classes)))

    def load(self) -> None:
        """Take over a state with all its labels."""
        from napsets.kernels import hearing

        state = self.state
        if self.code.size < state.labels.size:
            self.grow(state.labels.size - self.code.size)
        slots = state.labelled()
        labels, reference = state.labels.values[slots], state.is_reference.values[slots]
        self.code.values[:] = 0
        self.code.values[slots] = np.where(reference, labels + 1, -(labels + 1))
        self._crowd.values[:] = 0
        hearing.count_crowds(slots[reference], self._rows(), self._crowd.values)
        self._stale.values[:] = True
        self.entry_of.values[:] = -1
        self.entry_of.values[slots] = np.arange(slots.size)
        for column in self._columns():
            column.size = 0
        self._extend(slots)
        self.later = False

    def _columns(self) -> list[Column]:
        return [self.slots, self.near, self.far, self.around, self.recount, self.rescore, *self._scratch]

    def _extend(self, slots: IntArray) -> None:
        """Enter slots whose counts are not known yet."""
        self.slots.extend(slots)
        for column in (self.near, self.far, self.around):
            column.extend(np.zeros((slots.size, self.classes)))
        for column in (self.recount, self.rescore):
            column.extend(np.ones(slots.size, dtype=bool))
        for column in self._scratch:
            column.extend(np.zeros(slots.size, dtype=column.values.dtype))

    def enter(self, slot: int) -> None:
        """Let a node's label count, which it has got; its own counts are not known yet."""
        label, reference = int(self.state.labels.values[slot]), bool(self.state.is_reference.values[slot])
        self._speak(slot, label, 1, reference)
        self.code.values[slot] = label + 1 if reference else -(label + 1)
        self.entry_of.values[slot] = self.slots.size
        self._extend(np.array([slot]))

    def leave(self, slot: int) -> int:
        """Let a node's label, which it still has, count no more; the last entry takes the place that is returned."""
        label, reference = int(self.state.labels.values[slot]), bool(self.state.is_reference.values[slot])
        entry, last = int(self.entry_of.values[slot]), self.slots.size - 1
        self.code.values[slot] = 0
        self.entry_of.values[self.slots.values[last]] = entry
        self.entry_of.values[slot] = -1
        for column in self._columns():
            column.values[entry] = column.values[last]
            column.size = last
        self._speak(slot, label, -1, reference)
        return entry

    def _speak(self, slot: int, label: int, sign: int, reference: bool) -> None:
        from napsets.kernels import hearing

        if not self.later:
            entries = hearing.Entries(self.near.values, self.far.values, self.recount.values, self.rescore.values)
            hearing.shift_label(slot, label, sign, reference, self._rows(), self._speakers(), entries, self._room())

    def touch(self, *ends: IntArray) -> None:
        """Note that edges at some slots have come or gone, or are about to go."""
        from napsets.kernels import hearing

        if self.later or sum(slots.size for slots in ends) > self.slots.size + _FEW_EDGES:
            self.later = True
        else:
            slots = np.unique(np.concatenate(ends))
            hearing.see_edges(slots, self._rows(), self._speakers(), self.recount.values, self._stale.values)

    def see_outputs(self, slots: IntArray) -> None:
        """Note that the model says something else of nodes; labelled ones leave before, and enter after."""
        from napsets.kernels import hearing

        if not self.later:
            hearing.see_outputs(slots, self._rows(), self._speakers(), self.recount.values, self._stale.values)

    def catch_up(self) -> IntArray:
        """Bring all counts to where they are now, and return which entries were counted anew."""
        if self.later:
            self.load()
        stale = np.flatnonzero(self.recount.values)
        if stale.size:
            slots = self.slots.values[stale]
            near, far, around = (np.empty((stale.size, self.classes)) for _ in range(3))
            self._count(slots, self.code.values[slots] < 0, near, far, around)
            for column, values in ((self.near, near), (self.far, far), (self.around, around)):
                column.values[stale] = values
            self.recount.values[stale] = False
            self.rescore.values[stale] = True
        return stale

    # -- as kernels see it ---------------------------------------------------------------------------------------------

    def _rows(self) -> Any:
        from napsets.kernels.following import Rows

        adjacency = self.state.adjacency
        return Rows(adjacency.starts.values, adjacency.sizes.values, adjacency.columns)

    def _speakers(self) -> Any:
        from napsets.kernels.hearing import Speakers

        return Speakers(self.code.values, self._crowd.values, self.entry_of.values, CROWD)

    def _room(self) -> Any:
        from napsets.kernels.hearing import Scratch

        return Scratch(*(column.values for column in self._scratch))

    def hearers(self, slots: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Return where the hearers of each slot start, the entries held out that hear it, and what of, near and far."""
        from napsets.kernels import hearing

        starts = np.empty(slots.size + 1, dtype=np.int64)
        return starts, *hearing.list_hearers(slots, self._rows(), self._speakers(), self._room(), starts)

    # -- evidence ------------------------------------------------------------------------------------------------------

    def evidence(self, slots: IntArray, learned: Learned, *, all_speak: bool = True) -> Evidence:
        """Return what is known of some nodes, by all labels or by those of the reference alone."""
        near, far, around = (np.empty((slots.size, self.classes)) for _ in range(3))
        self._count(slots, np.full(slots.size, all_speak), near, far, around)
        return self._of_rows(slots, around, {"near": near, "far": far}, learned)

    def fixed(self, entries: IntArray, learned: Learned) -> FloatArray:
        """Return the part of the evidence of entries that no label outside the reference changes."""
        evidence = self._of_rows(self.slots.values[entries], self.around.values[entries], {}, learned)
        return evidence.fixed(learned.exponents, np.arange(entries.size))

    def _count(
        self, slots: IntArray, all_speak: BoolArray, near: FloatArray, far: FloatArray, around: FloatArray
    ) -> None:
        from napsets.kernels import hearing

        rows, outputs = self._rows(), self.state.outputs.values  # type: ignore[union-attr]
        hearing.count_labels(slots, all_speak, rows, self._speakers(), near, far)
        hearing.means_around(slots, rows, outputs, self._means.values, self._stale.values, around)

    def _of_rows(
        self, slots: IntArray, around: FloatArray, counts: dict[str, FloatArray], learned: Learned
    ) -> Evidence:
        kept = dict(list(counts.items())[: self.hops])
        label_of = np.maximum(self.code.values[slots], 0).astype(np.int64) - 1
        return Evidence.of_rows(self.state.outputs.values[slots], around, label_of, kept, learned)  # type: ignore[union-attr]

    def fit(self) -> Learned:
        """Return what the reference teaches now."""
        if self.later:
            self.load()
        state = self.state
        outputs: Array = state.outputs.values  # type: ignore[union-attr]
        slots = np.flatnonzero(self.code.values > 0)
        labels = self.labels(slots)
        present = outputs if state.present == outputs.shape[0] else outputs[state.labels.values > -2]
        learned = Learned(Exponents(), label_shares(present, labels), alike_table(outputs, Labelled(slots, labels)))
        kept = fitted_rows(slots.size, outputs.shape[1])
        evidence = self.evidence(slots[kept], learned, all_speak=False)
        return evidence.fit(Labelled(np.arange(kept.size), labels[kept]))

    def probabilities(self, learned: Learned, fixed: FloatArray, near: FloatArray, far: FloatArray) -> Array:
        """Return corrected probabilities, as wide as the model's."""
        weights = label_weights(learned, fixed, near, far)
        return normalised(weights).astype(self.state.outputs.values.dtype)  # type: ignore[union-attr]
