"""The surroundings of nodes in the present graph: labels and outputs as evidence, and labelled nodes within some hops.

Only the nodes that are asked for are looked at. The corrected probabilities are those of a batch, bit for bit: labels
are counted exactly, outputs are averaged in the same order, and `Evidence` does the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.features import MOST_SEARCHED, Directions, nearest_reference
from napsets.kernels import growing
from napsets.live.state import Array, GrowingTable, State
from napsets.scores import Labelled
from napsets.scores.evidence import WALK_WORTH, Evidence, fitted_rows, kinds, label_shares, similar_labels, walk
from napsets.scores.exponents import Exponents, Learned, alike_table
from napsets.scores.informed import NEAREST

#: A share of labelled nodes below which walks are too unlikely to meet a label to be worth their time.
_FEWEST_WALKED = 1e-3


class Walks(NamedTuple):
    """The labels that walks met from every node when they were last taken."""

    labels: int = 0  #: How many reference labels there were; 0 if walks must be taken again at the next refit.
    met: FloatArray | None = None  #: Shape (slots, classes).


class Surroundings:
    """The surroundings of nodes, and the reference labels that are evidence there.

    Attributes
    ----------
    walks : Walks
        The last walks. They take most of the time of a refit in a large graph, so that a refit takes them again only
        when the reference has doubled since, when labels of it were removed, or when the refit was asked for.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        none = np.empty(0, dtype=np.int64)
        #: By slot: the reference labels, −1 elsewhere; and space for searches.
        self._by_slot = GrowingTable(labels=none, stamps=none, queue=none)
        #: By slot, once outputs are averaged: the mean over the neighbours, and whether it must be computed again.
        self._means: GrowingTable | None = None
        #: By slot, once features are compared: the most similar reference nodes, and whether they were searched.
        self._similar: GrowingTable | None = None
        self._clock = np.zeros(1, dtype=np.int64)
        self.walks = Walks()
        self.grow()

    def grow(self) -> None:
        """Make room for new nodes."""
        size = self.state.nodes.size
        self._by_slot.extend(size - self._by_slot.size, labels=-1, stamps=0)
        if self._means is not None:
            self._means.extend(size - self._means.size, stale=True)
        if self._similar is not None:
            self._similar.extend(size - self._similar.size, searched=False)

    # -- changes -------------------------------------------------------------------------------------------------------

    def take_reference(self, slots: IntArray) -> None:
        """Let the labels of these slots alone be evidence."""
        labels = self._by_slot["labels"]
        labels[:] = -1
        labels[slots] = self.state.nodes["labels"][slots]

    def forget_labels(self, slots: IntArray) -> IntArray:
        """Exclude the labels of slots from the evidence; return the slots that had them among their most similar."""
        labels, similar = self._by_slot["labels"], self._similar
        labels[slots] = -1
        self.walks = self.walks._replace(labels=0)
        if similar is None:
            return np.empty(0, dtype=np.int64)
        if np.count_nonzero(labels >= 0) < MOST_SEARCHED:
            changed = np.flatnonzero(similar["searched"] & np.isin(similar["nearest"], slots).any(axis=1))
        else:  # another reference node may be searched in its place
            changed = np.flatnonzero(similar["searched"])
        similar["searched"][changed] = False
        return changed

    def see_edges(self, slots: IntArray) -> None:
        """Mark the means of slots whose edges have changed."""
        if self._means is not None:
            # Rows of a directed graph do not say who leads to a node, which may be gone.
            self._means["stale"][slice(None) if self.state.adjacency.directed else slots] = True

    def see_outputs(self, slots: IntArray) -> None:
        """Mark the means of the nodes with neighbours among slots that have new outputs."""
        self.see_edges(slots)
        if self._means is not None and not self.state.adjacency.directed:
            self._means["stale"][self.state.adjacency.neighbours(slots)] = True

    # -- around nodes --------------------------------------------------------------------------------------------------

    def list_around(self, slots: IntArray, hops: int, flags: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the flagged slots around each slot, hop by hop, and how many there are: (slots, hops)."""
        table = self._by_slot
        ends = np.empty(hops + 1, dtype=np.int64)
        walk = growing.Walk(table["stamps"], self._clock, table["queue"], ends)
        around: tuple[IntArray, IntArray] = growing.list_around(slots, hops, self.state.adjacency.rows, walk, flags)
        return around

    def evidence(self, slots: IntArray, learned: Learned) -> Evidence:
        """Return the evidence of some nodes: model outputs around them, and labels of the reference."""
        nodes, rows = self.state.nodes, self.state.adjacency.rows
        outputs: Array = nodes["outputs"]
        if self._means is None:
            self._means = GrowingTable(means=np.empty((0, outputs.shape[1])), stale=np.empty(0, dtype=bool))
            self.grow()
        around = np.empty((slots.size, outputs.shape[1]))
        near = np.zeros_like(around)
        growing.average_outputs(slots, rows, outputs, self._means["means"], self._means["stale"], around)
        growing.count_labels(slots, rows, self._by_slot["labels"], near)
        counts: dict[str, FloatArray] = {"near": near, "wide": self.walked(slots, learned)}
        if learned.directions is not None:
            nearest, labels = self._nearest(slots, learned.directions), self._by_slot["labels"]
            for count in (5, 25):
                counts[f"similar_{count}"] = similar_labels(nearest[:, :count], labels, outputs.shape[1])
        return Evidence.of_rows(
            outputs[slots], around, self._by_slot["labels"][slots], rows.sizes[slots], counts, learned
        )

    def _nearest(self, slots: IntArray, directions: Directions) -> npt.NDArray[np.int32]:
        """Return the reference nodes with the most similar features; each slot is searched once per refit."""
        features = self.state.features
        assert features is not None
        if self._similar is None:
            empty = np.empty((0, NEAREST), dtype=np.int32)
            self._similar = GrowingTable(nearest=empty, searched=np.empty(0, dtype=bool))
            self.grow()
        table = self._similar
        missing = np.unique(slots[~table["searched"][slots]])
        if missing.size:
            reference = np.flatnonzero(self._by_slot["labels"] >= 0)
            found = nearest_reference(features, reference, self.state.nodes["u"], NEAREST, directions, nodes=missing)
            table["nearest"][missing] = -1
            table["nearest"][missing, : found.shape[1]] = found
            table["searched"][missing] = True
        return table["nearest"][slots]

    def walked(self, slots: IntArray, learned: Learned) -> FloatArray:
        """Return the labels that walks met when they were last taken, or for newer nodes one step on from there.

        Slots ascend with arrival, so that those of newer nodes are beyond the rows of that time.
        """
        known = learned.walked
        assert known is not None
        met = np.zeros((slots.size, known.shape[1]))
        old = slots < known.shape[0]
        met[old] = known[slots[old]]
        if not old.all():
            new = np.zeros((int((~old).sum()), known.shape[1]))
            rows = self.state.adjacency.rows
            growing.walk_on(slots[~old], rows, self._by_slot["labels"], known, WALK_WORTH, new)
            met[~old] = new
        return met

    def fit(self, slots: IntArray) -> Learned:
        """Fit an informed score on the labels of these slots, which become the reference."""
        self.take_reference(slots)
        self._similar = None  # features are compared along other directions
        nodes = self.state.nodes
        outputs: Array = nodes["outputs"]
        labels, classes = nodes["labels"][slots], outputs.shape[1]
        there = slice(None) if self.state.present == outputs.shape[0] else nodes["labels"] > -2
        present, features = outputs[there], self.state.features
        directions = None if features is None else Directions.typical(features[there], nodes["u"][there])
        walked = self._walk(Labelled(slots, labels), classes)
        shares, table = label_shares(present, labels), alike_table(outputs, Labelled(slots, labels))
        unfitted = Learned(kinds(True, features is not None), Exponents(), (), shares, table, None, walked, directions)
        kept = fitted_rows(slots.size, classes)
        learned = self.evidence(slots[kept], unfitted).fit(Labelled(np.arange(kept.size), labels[kept]))
        return replace(learned, walked=walked, directions=directions)

    def _walk(self, reference: Labelled, classes: int) -> FloatArray:
        """Return the labels that walks meet, from the last walks if these are recent enough."""
        size = reference.nodes.size
        if self.walks.met is None or size >= 2 * self.walks.labels:
            if size < _FEWEST_WALKED * self.state.present:
                met = np.zeros((self.state.nodes.size, classes))
            else:
                met = walk(self.state.adjacency.graph(None), reference, classes)  # slots without a node have no edges
            self.walks = Walks(size, met)
        assert self.walks.met is not None
        return self.walks.met
