"""What tasks of joins know of the labelled nodes together: how they are split, and their mass around many targets.

Mass is counted on plain arrays, bit for bit as the kernels of one machine do. A reference node is known here by its
score alone. Scores are replaced by their places among the distinct ones, so that "how many up to this score" is a
search among integers; counts are then weighted in the order hops, pool, alike.

For an exact level labelled nodes are split by the rule of `napsets.randomness.split_order`: a sum over all labelled
ids, which has no order, and the seed give another seed; the ids in the order of the uniform numbers that it draws are a
random order, and the first n of them are the reference part. Only the sum, a count and the last id of that part
come to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.localisers.base import Cut, LocalThresholds, Reference
from napsets.localisers.hops import Counts, Sizes, Weighting
from napsets.randomness import node_uniforms, split_hashes


@dataclass(frozen=True, eq=False)
class NearScores:
    """The scores of the reference nodes near some targets, which walks from them have met."""

    #: One entry for each reference node near a target: which target, how far, and its score.
    of: IntArray
    hop: IntArray
    score: FloatArray
    #: A score of each target: that at its label, NaN where it is not known.
    own: FloatArray
    #: The model's first choice for each target, −1 where it is not known.
    predicted: IntArray


class _Ladders:
    """Places in groups, to count those of a group up to a place."""

    def __init__(self, groups: IntArray, places: IntArray, width: int) -> None:
        self.width = width
        self.keys = np.sort(groups.astype(np.int64) * width + places)

    def up_to(self, groups: IntArray, places: IntArray) -> IntArray:
        """Count, for each entry, those of its group up to its place; none up to −1."""
        first = groups.astype(np.int64) * self.width
        counts: IntArray = np.searchsorted(self.keys, first + places, "right") - np.searchsorted(self.keys, first)
        return counts


@dataclass(frozen=True, eq=False)
class AllScores:
    """The scores of all reference nodes in ascending order; each task gets them once."""

    scores: FloatArray
    predicted: IntArray | None = None  # if nodes with equal predictions count

    @classmethod
    def of(cls, scores: FloatArray, predicted: IntArray | None = None) -> AllScores:
        """Put scores that come in any order in theirs."""
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], None if predicted is None else predicted[order])

    @cached_property
    def distinct(self) -> FloatArray:
        """Each score once."""
        return np.unique(self.scores)

    @cached_property
    def before(self) -> IntArray:
        """How many scores stand before each distinct one, and how many there are."""
        return np.append(0, np.searchsorted(self.scores, self.distinct, "right"))

    @cached_property
    def alike(self) -> _Ladders | None:
        """Places of the scores by what is predicted."""
        if self.predicted is None:
            return None
        return _Ladders(self.predicted, np.searchsorted(self.distinct, self.scores), self.distinct.size)

    @cached_property
    def reference(self) -> Reference:
        """The same as localisers know it: node i has the i-th score, and one node more has none."""
        return Reference(np.arange(self.scores.size), self.scores, self.scores.size + 1)

    def nodes_of(self, own: FloatArray) -> IntArray:
        """Return which node of `reference` has each of these scores; the last where there is none."""
        return np.where(np.isnan(own), self.scores.size, np.searchsorted(self.scores, own))


class WeightedScores:
    """Reference nodes around some targets, weighted: what `HopsLocal` is on one machine.

    All reference nodes count where they weigh anything; a target's own score among them never does.
    """

    def __init__(self, near: NearScores, weighting: Weighting, everyone: AllScores | None = None) -> None:
        self.near, self.weighting = near, weighting
        self.everyone = everyone if weighting.pool or weighting.alike else None
        self.targets = np.arange(near.own.size)
        self.distinct = np.unique(near.score) if self.everyone is None else self.everyone.distinct
        places = np.searchsorted(self.distinct, near.score)
        at = [near.hop == k for k in range(1, weighting.hops.size + 1)]
        self.ladders = [_Ladders(near.of[rows], places[rows], self.distinct.size) for rows in at]

    def thresholds(self, cuts: Sequence[Cut]) -> LocalThresholds:
        """Return the thresholds of the targets at each cut; their own scores are those that must not count."""
        own = self.own_places
        last = np.full(self.targets.size, self.distinct.size - 1)
        total = self._mass(last, own)
        values = np.stack([self._smallest(cut, total, last, own) for cut in cuts])
        sizes = Sizes(self._near(last), self._others(last, own), self._same(last, own))
        return LocalThresholds(values, sizes.support(self.weighting), sizes.effective_size(self.weighting))

    def ranks(self) -> FloatArray:
        """Return the share of mass strictly below each target's own score; it is none of those that count."""
        below = np.searchsorted(self.distinct, self.near.own) - 1
        last, nowhere = (np.full(self.targets.size, self.distinct.size + i) for i in (-1, 0))
        counts = Counts(
            self._near(below),
            self._near(last),
            self._others(below, nowhere),
            self._others(last, nowhere),
            self._same(below, nowhere),
            self._same(last, nowhere),
        )
        return counts.rank(self.weighting)

    @cached_property
    def own_places(self) -> IntArray:
        """Where each target's own score stands; after all of them where it has none."""
        own = self.near.own
        return np.where(np.isnan(own), self.distinct.size, np.searchsorted(self.distinct, own))

    def _near(self, places: IntArray) -> IntArray:
        counts = [ladders.up_to(self.targets, places) for ladders in self.ladders]
        return np.stack(counts, axis=1) if counts else np.zeros((self.targets.size, 0), dtype=np.int64)

    def _others(self, places: IntArray, own: IntArray) -> IntArray:
        if self.everyone is None:
            return np.zeros(self.targets.size, dtype=np.int64)
        return self.everyone.before[places + 1] - (own <= places)

    def _same(self, places: IntArray, own: IntArray) -> IntArray | None:
        if self.everyone is None or self.everyone.alike is None or not self.weighting.alike:
            return None
        known = self.near.predicted >= 0
        return self.everyone.alike.up_to(self.near.predicted, places) - (known & (own <= places))

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """What one node weighs because it is there, and because it is alike."""
        last, own = np.full(self.targets.size, self.distinct.size - 1), self.own_places
        sizes = (self._others(last, own), self._same(last, own))
        pools = (self.weighting.pool, self.weighting.alike)
        pool, alike = (
            np.zeros(self.targets.size)
            if size is None
            else np.divide(weight, size, out=np.zeros(size.size), where=size > 0)
            for weight, size in zip(pools, sizes, strict=True)
        )
        return pool, alike

    def _mass(self, places: IntArray, own: IntArray) -> FloatArray:
        """Return the mass up to a place of each target: integers weighted in the order hops, pool, alike."""
        mass = np.zeros(self.targets.size)
        for weight, ladders in zip(self.weighting.hops, self.ladders, strict=True):
            mass += weight * ladders.up_to(self.targets, places)
        if self.everyone is not None:
            mass += self._shares[0] * self._others(places, own)
            same = self._same(places, own)
            if same is not None:
                mass += self._shares[1] * same
        return mass

    def _smallest(self, cut: Cut, total: FloatArray, last: IntArray, own: IntArray) -> FloatArray:
        """Return the smallest score whose mass the cut accepts: halving for all targets at once."""
        nothing = cut.accepts(np.zeros(total.size), 1.0 + total)
        enough = cut.accepts(total, 1.0 + total) & ~nothing
        low, high = np.zeros(last.size, dtype=np.int64), np.where(enough, last, 0)
        while (low < high).any():
            middle = (low + high) >> 1
            reached = cut.accepts(self._mass(middle, own), 1.0 + total)
            high = np.where(reached & (low < high), middle, high)
            low = np.where(reached | (low >= high), low, middle + 1)
        values = np.where(nothing, -np.inf, np.inf)
        values[enough] = self.distinct[low[enough]]
        return values


@dataclass(frozen=True)
class Split:
    """How the labelled nodes are split."""

    seed: int  # what the order is drawn with
    key: float  # the number of the last node of the reference part
    node: Any  # that node, should another have the same number
    apart: int  # how many nodes are held out

    def keeps_apart(self, ids: npt.NDArray[Any]) -> BoolArray:
        """Return which of these labelled nodes are held out."""
        keys = node_uniforms(ids, self.seed)
        after: BoolArray = (keys > self.key) | ((keys == self.key) & (ids > self.node).astype(bool))
        return after


def signed_words(ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return for each id what it adds to the sum; signed, as tables have integers."""
    return split_hashes(ids).view(np.int64)
