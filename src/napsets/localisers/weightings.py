"""Who weighs how much: thresholds and ranks of several weightings, from one search of the neighbourhoods.

The mass of a node's reference scores up to a value is Σ_k w(k)·c_k + (pool/n)·c + (alike/n')·c', with c_k the reference
nodes at hop k, c all of them and c' those that look alike, each up to the value: counted in integers and weighted in
this order, so that no way of searching can change a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels import rules
from napsets.kernels.search import count_below, find_thresholds
from napsets.localisers.base import Cut
from napsets.localisers.depth import check_room
from napsets.localisers.neighbourhoods import CalibrationIndex, check_threads
from napsets.quantile import ROUNDING, effective_size

__all__ = ["Counts", "Sizes", "Weighting", "counts_below", "weighted_thresholds"]

_RULES = {"nominal": rules.NOMINAL, "at least": rules.AT_LEAST, "above": rules.ABOVE}


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weight of a reference node at each hop, and what all of them, and those alike, weigh together on top."""

    hops: FloatArray
    pool: float = 0.0
    alike: float = 0.0


def weighted_thresholds(
    index: CalibrationIndex,
    nodes: IntArray,
    weightings: Sequence[Weighting],
    cuts: Sequence[Sequence[Cut]],
    *,
    groups: IntArray | None = None,
    threads: int | None = None,
    progress: Any = None,
) -> list[tuple[FloatArray, IntArray, FloatArray]]:
    """Return, for each weighting, thresholds of shape (cuts, nodes) at its own cuts, support and effective size.

    `groups` says who looks alike, where any weighting asks for it.
    """
    rows = _rows(weightings)
    check_room(nodes.size, rows.shape[1])
    asked = sorted({cut for each in cuts for cut in each})
    values, counts = find_thresholds(
        index.layout,
        nodes,
        rows,
        np.array([cut.level for cut in asked]),
        rounding=ROUNDING,
        rules=np.array([_RULES[cut.rule] for cut in asked], dtype=np.int8),
        pools=np.array([weighting.pool for weighting in weightings]),
        alikes=np.array([weighting.alike for weighting in weightings]),
        groups=groups,
        threads=check_threads(threads),
        progress=progress,
    )
    known = _sizes(index, nodes, counts, groups)
    return [
        (
            np.ascontiguousarray(values[:, w, [asked.index(cut) for cut in cuts[w]]].T),
            known.support(weighting),
            known.effective_size(weighting),
        )
        for w, weighting in enumerate(weightings)
    ]


def _rows(weightings: Sequence[Weighting]) -> FloatArray:
    """Return the weights of all weightings by hop, with zeros where one reaches less far than another."""
    depth = max(weighting.hops.size for weighting in weightings)
    return np.stack([np.pad(weighting.hops, (0, depth - weighting.hops.size)) for weighting in weightings])


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many reference nodes count for each node, and how many equally heavy ones they are worth.

    Attributes
    ----------
    near : numpy.ndarray
        Reference nodes by hop, shape (nodes, hops).
    others : numpy.ndarray
        All reference nodes but the node itself.
    same : numpy.ndarray or None
        Those of them that look alike.
    """

    near: IntArray
    others: IntArray
    same: IntArray | None = None

    def support(self, weighting: Weighting) -> IntArray:
        """Return how many reference nodes have weight; who is near and who is alike, if not all count, at least."""
        if weighting.pool:
            return self.others
        weighs = (weighting.hops > 0).astype(np.int64)
        near: IntArray = self.near[:, : weighs.size] @ weighs
        return near if self.same is None or not weighting.alike else np.maximum(near, self.same)

    def effective_size(self, weighting: Weighting) -> FloatArray:
        """Return (Σw)²/Σw²; what a node weighs for looking alike is taken as a node of its own.

        Who is near and alike at once would take another search to know.
        """
        depth = weighting.hops.size
        near = self.near[:, :depth]
        if not weighting.pool and not weighting.alike:
            plain: FloatArray = effective_size(weighting.hops[None], near)[0]
            return plain
        pooled: FloatArray = np.divide(weighting.pool, self.others, out=np.zeros(near.shape[0]), where=self.others > 0)
        mass: FloatArray = pooled * self.others
        square: FloatArray = pooled**2 * (self.others - near.sum(axis=1))
        for k in range(depth):
            mass = mass + weighting.hops[k] * near[:, k]
            square = square + (weighting.hops[k] + pooled) ** 2 * near[:, k]
        if weighting.alike and self.same is not None:
            alike = np.divide(weighting.alike, self.same, out=np.zeros(near.shape[0]), where=self.same > 0)
            mass = mass + alike * self.same
            square = square + (alike**2 + 2.0 * alike * pooled) * self.same
        size: FloatArray = np.divide(mass**2, square, out=np.zeros(near.shape[0]), where=square > 0)
        return size


def _sizes(index: CalibrationIndex, nodes: IntArray, near: IntArray, groups: IntArray | None) -> Sizes:
    own = (index.numbers[nodes] < index.calibration.size).astype(np.int64)
    others = index.calibration.size - own
    if groups is None:
        return Sizes(near, others)
    in_group = np.bincount(groups[index.calibration], minlength=int(groups.max()) + 1)
    return Sizes(near, others, in_group[groups[nodes]] - own)


@dataclass(frozen=True, eq=False)
class Counts:
    """Reference nodes around some nodes, and those of them with a score below a value of each node.

    Attributes
    ----------
    below, near : numpy.ndarray
        By hop, shape (nodes, hops): those below, and all.
    all_below, others : numpy.ndarray
        Of all reference nodes but the node itself: those below, and how many there are.
    same_below, same : numpy.ndarray or None
        The same of those that look alike.
    """

    below: IntArray
    near: IntArray
    all_below: IntArray
    others: IntArray
    same_below: IntArray | None = None
    same: IntArray | None = None

    def rank(self, weighting: Weighting) -> FloatArray:
        """Return the mass strictly below each value / (1 + the total mass)."""
        below, total = np.zeros((2, self.others.size))
        for k, weight in enumerate(weighting.hops):
            below += weight * self.below[:, k]
            total += weight * self.near[:, k]
        for pool, part, whole in (
            (weighting.pool, self.all_below, self.others),
            (weighting.alike, self.same_below, self.same),
        ):
            if pool and part is not None and whole is not None:
                each = np.divide(pool, whole, out=np.zeros(whole.size), where=whole > 0)
                below += each * part
                total += each * whole
        rank: FloatArray = below / (1.0 + total)
        return rank


def counts_below(
    index: CalibrationIndex,
    nodes: IntArray,
    values: FloatArray,
    hops: int,
    *,
    groups: IntArray | None = None,
    threads: int | None = None,
    progress: Any = None,
) -> Counts:
    """Count the reference nodes around each node, and those whose score is strictly below a value of that node."""
    size = index.calibration.size
    position = np.searchsorted(index.sorted_scores, values, side="left")
    places = np.stack([position, np.full(nodes.size, size)], axis=1)
    counts = count_below(index.layout, nodes, places, hops, threads=check_threads(threads), progress=progress)
    own = index.numbers[nodes].astype(np.int64)
    found = (
        counts[:, :, 0].astype(np.int64),
        counts[:, :, 1].astype(np.int64),
        position - (own < position),
        size - (own < size).astype(np.int64),
    )
    if groups is None:
        return Counts(*found)
    by_number = groups[index.nodes[:size]]
    same_below, same = np.zeros((2, nodes.size), dtype=np.int64)
    for group in np.unique(groups[nodes]):
        rows = groups[nodes] == group
        running = np.append(0, np.cumsum(by_number == group))
        same_below[rows] = running[position[rows]] - (own[rows] < position[rows])
        same[rows] = running[-1] - (own[rows] < size)
    return Counts(*found, same_below, same)
