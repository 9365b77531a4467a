"""The reference labels of a living graph in the order of their scores, and the thresholds of a few nodes among them.

For one threshold for all, the batch's `EveryoneLocal` does the work. `HopsAround` is what `HopsLocal` is for a batch:
it walks around the nodes that are asked for, on rows that grow, and weighs what it counts by the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.live.state import Array, GrowingTable
from napsets.live.surroundings import Surroundings
from napsets.localisers import Cut, Hops, LocalThresholds
from napsets.localisers.hops import Counts, Sizes, Weighting, hop_weights
from napsets.methods.p_values import in_order

#: Nodes that are walked around at a time.
_NODES = 1 << 10
#: Places that a search for a threshold looks at together: three rounds are enough for 10⁵ labels.
_PLACES = 48


class Ordered(GrowingTable):
    """Numbers in ascending order, complex ones by their real parts first, with room to grow."""

    def __init__(self, values: Array) -> None:
        super().__init__(values=np.sort(values))
        self.size = values.size

    @property
    def values(self) -> Array:
        """The numbers."""
        return self["values"]

    def insert(self, value: complex) -> None:
        """Enter a number."""
        place = int(np.searchsorted(self.values, value))
        self.extend(1)
        self.values[place + 1 :] = self.values[place:-1]
        self.values[place] = value

    def around(self, value: complex) -> tuple[int, int]:
        """Count the numbers below a value, and those at most as large."""
        values = self.values
        return int(np.searchsorted(values, value, "left")), int(np.searchsorted(values, value, "right"))


class KnownScores:
    """The reference labels and their scores. It stands in for the `Reference` of a batch in `EveryoneLocal`."""

    def __init__(self, grouped: bool) -> None:
        none, number, flag = np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=bool)
        self.by_slot = GrowingTable(member=flag, scores=number, groups=none)
        self.grouped = grouped
        self.take(none, number)

    def take(self, slots: IntArray, scores: FloatArray) -> None:
        """Take the scores of all reference labels, whose slots are marked and have their groups."""
        self.by_slot["scores"][slots] = scores
        self.ordered = Ordered(scores)
        groups = self.by_slot["groups"][slots]
        self.by_group = Ordered(in_order(groups.astype(np.float64), scores)) if self.grouped else None

    def add(self, slot: int, score: float) -> None:
        """Enter a reference label."""
        self.by_slot["member"][slot], self.by_slot["scores"][slot] = True, score
        self.ordered.insert(score)
        if self.by_group is not None:
            self.by_group.insert(complex(self.by_slot["groups"][slot], score))

    @property
    def size(self) -> int:
        """How many reference labels there are."""
        return self.ordered.size

    @property
    def by_score(self) -> tuple[FloatArray, KnownScores]:
        """The scores in ascending order, and where to look up a node's place among them."""
        return self.ordered.values, self

    def __getitem__(self, slots: IntArray) -> IntArray:
        """Return the place of each slot's score among all, and of other nodes how many there are."""
        places = np.searchsorted(self.ordered.values, self.by_slot["scores"][slots])
        return np.where(self.by_slot["member"][slots], places, self.size)


class Near:
    """The scores of the reference nodes around some nodes, by hop."""

    def __init__(self, localised: HopsAround, slots: IntArray) -> None:
        table, hops = localised.known.by_slot, localised.weighting.hops.size
        met, self.counts = localised.surroundings.list_around(slots, hops, table["member"])
        flat, self._scores = self.counts.ravel(), table["scores"][met]
        owner, hop = np.divmod(np.repeat(np.arange(flat.size), flat), max(hops, 1))
        #: For each hop: numbers that ascend by node and score, and where those of each node start.
        self._keys = [
            np.sort(in_order(owner[hop == k].astype(np.float64), self._scores[hop == k])) for k in range(hops)
        ]
        self._starts = np.cumsum(self.counts, axis=0) - self.counts

    @property
    def scores(self) -> FloatArray:
        """The scores around all of these nodes, ascending."""
        return np.sort(self._scores)

    def up_to(self, values: FloatArray, side: Literal["left", "right"]) -> IntArray:
        """Count, for values of shape (nodes, values), the scores below each, or at most each: (nodes, values, hops)."""
        counts = np.empty((*values.shape, len(self._keys)), dtype=np.int64)
        owner = np.arange(values.shape[0], dtype=np.float64)[:, None]
        wanted = in_order(np.broadcast_to(owner, values.shape), values)
        for k, keys in enumerate(self._keys):
            counts[:, :, k] = np.searchsorted(keys, wanted, side) - self._starts[:, k, None]
        return counts


class HopsAround:
    """The thresholds and ranks of nodes by hops: the `Local` of `Hops` on a graph that changes."""

    def __init__(self, localiser: Hops, known: KnownScores, surroundings: Surroundings) -> None:
        weights = hop_weights(localiser.decay, localiser.hops)
        self.weighting = Weighting(weights, localiser.pool, localiser.alike)
        self.known, self.surroundings = known, surroundings

    def thresholds(self, nodes: IntArray, cuts: Sequence[Cut]) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut; a node's own score never counts."""
        parts = [self._thresholds(nodes[i : i + _NODES], cuts) for i in range(0, max(nodes.size, 1), _NODES)]
        joined = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return LocalThresholds(*joined)

    def _thresholds(self, slots: IntArray, cuts: Sequence[Cut]) -> tuple[FloatArray, IntArray, FloatArray]:
        near = Near(self, slots)
        # Without pools, mass comes with scores near by only.
        scores = self.known.ordered.values if self.weighting.pool or self.weighting.alike else near.scores
        size = scores.size
        others, same = self._sizes(slots)
        sizes = Sizes(near.counts, others, same)
        rests_on = sizes.support(self.weighting), sizes.effective_size(self.weighting)
        values = np.full((len(cuts), slots.size), np.inf)
        if not size or not slots.size:
            values[[cut.accepts(0.0, 1.0) for cut in cuts]] = -np.inf
            return values, *rests_on
        largest = np.full((slots.size, 1), np.inf)
        _, total = self._masses(slots, largest, near.counts[:, None], near.counts, "right")
        # For each node and cut, the first place whose score has enough mass up to it; `size` where there is none.
        low, high = np.zeros((slots.size, len(cuts)), dtype=np.int64), np.full((slots.size, len(cuts)), size)
        while (low < high).any():
            places = low[:, :, None] + (high - low)[:, :, None] * np.arange(_PLACES) // _PLACES
            tried = scores[np.minimum(places, size - 1)].reshape(slots.size, -1)
            mass, _ = self._masses(slots, tried, near.up_to(tried, "right"), near.counts, "right")
            mass = mass.reshape(places.shape)
            enough = np.stack([cut.accepts(mass[:, c], 1.0 + total) for c, cut in enumerate(cuts)], axis=1)
            enough |= places >= high[:, :, None]  # where the place is known already
            first = np.where(enough.any(axis=2), enough.argmax(axis=2), _PLACES)[:, :, None]
            bounds = np.concatenate([low[:, :, None] - 1, places, high[:, :, None]], axis=2)
            low, high = (np.take_along_axis(bounds, first + k, axis=2)[:, :, 0] + 1 - k for k in (0, 1))
        for c, cut in enumerate(cuts):
            reached = low[:, c] < size
            values[c, reached] = scores[low[reached, c]]
            values[c, cut.accepts(np.zeros(slots.size), 1.0 + total[:, 0])] = -np.inf
        return values, *rests_on

    def ranks(self, nodes: IntArray, scores: FloatArray) -> FloatArray:
        """Return the share of each node's mass strictly below each of its scores, shape (nodes, scores)."""
        parts = (slice(start, start + _NODES) for start in range(0, max(nodes.size, 1), _NODES))
        pieces = ((nodes[part], scores[part]) for part in parts)
        return np.concatenate([self.rank(*part, *self.count(*part)) for part in pieces])

    def count(self, slots: IntArray, scores: FloatArray) -> tuple[IntArray, IntArray]:
        """Count the reference nodes around each node: those below its scores, (nodes, scores, hops), and all by hop."""
        near = Near(self, slots)
        return near.up_to(scores, "left"), near.counts

    def rank(self, slots: IntArray, scores: FloatArray, below: IntArray, near: IntArray) -> FloatArray:
        """Return the ranks of scores whose counts are known from `count`."""
        mass, total = self._masses(slots, scores, below, near, "left")
        return mass / (1.0 + total)

    def masses_below(self, slots: IntArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each node's mass strictly below each of its scores, and its total mass: shape (nodes, scores)."""
        return self._masses(slots, scores, *self.count(slots, scores), "left")

    def _masses(
        self, slots: IntArray, values: FloatArray, below: IntArray, near: IntArray, side: Literal["left", "right"]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mass below each value, or up to it, and the total mass: shape (nodes, values)."""
        hops, width = self.weighting.hops.size, values.shape[1]
        pooled = self._pooled(slots, values, side)
        counts = Counts(below.reshape(values.size, hops), np.repeat(near, width, axis=0), *pooled)
        mass, total = counts.masses(self.weighting)
        return mass.reshape(values.shape), total.reshape(values.shape)

    def _pooled(
        self, slots: IntArray, values: FloatArray, side: Literal["left", "right"]
    ) -> tuple[IntArray, IntArray, IntArray | None, IntArray | None]:
        """Count the reference nodes, and those alike, below each value, up to it and in total."""
        known, width = self.known, values.shape[1]
        own = known.by_slot["scores"][slots][:, None]
        itself = known.by_slot["member"][slots][:, None] & ((own < values) if side == "left" else (own <= values))
        all_below = np.searchsorted(known.ordered.values, values, side) - itself
        others, same = (None if sizes is None else np.repeat(sizes, width) for sizes in self._sizes(slots))
        assert others is not None
        if known.by_group is None:
            return all_below.ravel(), others, None, None
        groups = known.by_slot["groups"][slots].astype(np.float64)
        wanted = in_order(np.broadcast_to(groups[:, None], values.shape), values)
        before = np.searchsorted(known.by_group.values.real, groups)[:, None]
        same_below = np.searchsorted(known.by_group.values, wanted, side) - before - itself
        return all_below.ravel(), others, same_below.ravel(), same

    def _sizes(self, slots: IntArray) -> tuple[IntArray, IntArray | None]:
        """Count the other reference nodes for each node, and those of them that are alike."""
        known = self.known
        own = known.by_slot["member"][slots].astype(np.int64)
        if known.by_group is None:
            return known.size - own, None
        groups = known.by_slot["groups"][slots]
        first, last = (np.searchsorted(known.by_group.values.real, groups, side) for side in ("left", "right"))
        return known.size - own, last - first - own
