"""Neighbourhoods by hops, pooled with the nodes that have the same prediction and with all nodes; and the decays, w(k).

The mass of a node's reference scores up to a value is Σ_k w(k)·c_k + (pool/n)·c + (alike/n')·c', with c_k the reference
nodes at hop k, c all of them and c' those with the same prediction, each up to the value. They are counted as integers
and weighted in this order, so that the order of the search does not matter. One search serves several weightings.

To add a decay, add a function of k to `DECAYS`; nothing else needs to change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, SupportsFloat, cast

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, as_array
from napsets.checks.compressed import Direction, check_direction
from napsets.checks.values import check_hops, check_number, check_threads, choose, shown
from napsets.errors import InvalidInputError
from napsets.kernels.layout import Layout, Reach
from napsets.kernels.search import count_below, find_thresholds
from napsets.kernels.threads import Progress
from napsets.localisers.base import (
    LOCALISERS,
    RULES,
    Cut,
    LocalThresholds,
    Reference,
    graph_of,
)
from napsets.quantile import LARGEST_WEIGHT, ROUNDING, hop_mass, pooled_mass

Decay = str | Callable[[int], float] | ArrayLike

#: The paper's three decays: NAPS, NAPS-H and NAPS-G (Section 4; the geometric one as in the text).
DECAYS: dict[str, Callable[[int], float]] = {
    "uniform": lambda k: 1.0,
    "hyperbolic": lambda k: 1.0 / k,
    "geometric": lambda k: 2.0**-k,
}


def hop_weights(decay: Decay, hops: int, *, name: str = "decay") -> FloatArray:
    """Weights w(1), …, w(hops) of a decay.

    Parameters
    ----------
    decay : str, callable or array
        A name from `DECAYS`, a function of the hop k ≥ 1, or weights indexed by k−1, as many as `hops`.
    hops : int
        The neighbourhood's depth, the paper's K.
    name : str
        What errors call the decay.

    Returns
    -------
    numpy.ndarray
        float64 of shape ``(hops,)``; every weight is finite and not negative.

    Examples
    --------
    >>> hop_weights("hyperbolic", 3).tolist()
    [1.0, 0.5, 0.3333333333333333]
    """
    hops = check_hops("hops", hops)
    if isinstance(decay, str):
        decay = choose(name, decay, DECAYS)
    weights = _evaluate(name, decay, hops) if callable(decay) else _take(name, decay, hops)
    bad = ~(weights <= LARGEST_WEIGHT) | (weights < 0)  # NaN is bad too
    if bad.any():
        k = int(bad.argmax())
        raise InvalidInputError(
            f"`{name}` must give finite weights from 0 to {LARGEST_WEIGHT:g}; hop {k + 1} weighs {weights[k]:g}"
        )
    return weights


def _evaluate(name: str, decay: Callable[[int], object], hops: int) -> FloatArray:
    values = [decay(k) for k in range(1, hops + 1)]
    try:
        return np.array([float(cast(SupportsFloat, value)) for value in values], dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"`{name}` must return a number for each hop; got {shown(values)}") from error


def _take(name: str, decay: object, hops: int) -> FloatArray:
    array = as_array(name, decay)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"`{name}` as an array must hold one number per hop; got shape {array.shape}, {array.dtype}"
        )
    if array.shape[0] != hops:
        raise InvalidInputError(
            f"`{name}` must have a weight for each of the {hops} hops; got {array.shape[0]}. Pass as many weights as "
            f"hops."
        )
    return array.astype(np.float64)


@LOCALISERS.add("hops")
@dataclass(frozen=True)
class Hops:
    """Weight reference nodes by their distance in hops, pooled with those of the same prediction and with all.

    The weight of a reference node k hops away is w(k). In addition each of all n reference nodes gets pool/n, and each
    of the n' with the same predicted label gets alike/n'.

    Attributes
    ----------
    hops : int
        Depth of the neighbourhood, the paper's K; at most 64.
    decay : str, callable or tuple
        w(k): "uniform", "hyperbolic", "geometric", a function of k, or a weight for each hop.
    pool : float
        All reference nodes together count as much as this many neighbours.
    alike : float
        Those with the same predicted label together count as much as this many neighbours.
    direction : {"out", "in", "both"}
        Which way edges of a directed graph are followed from the node: forwards, backwards, or both ways.
    """

    hops: int = 2
    decay: Decay = "uniform"
    pool: float = 0.0
    alike: float = 0.0
    direction: Direction = "out"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hops", check_hops("hops", self.hops))
        hop_weights(self.decay, self.hops)
        if not (isinstance(self.decay, str) or callable(self.decay)):
            object.__setattr__(self, "decay", tuple(as_array("decay", self.decay).tolist()))
        for name in ("pool", "alike"):
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), largest=LARGEST_WEIGHT)))
        check_direction(self.direction)

    def __repr__(self) -> str:
        # Most graphs have no direction: it is left out then.
        names = [setting.name for setting in fields(self) if setting.name != "direction" or self.direction != "out"]
        return f"Hops({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def fit(self, reference: Reference) -> HopsLocal:
        """Return the localiser of these reference nodes."""
        graph_of(reference)
        if self.alike and reference.probabilities is None:
            raise InvalidInputError("`alike` needs predicted labels, which scores of intervals do not have")
        return HopsLocal(self, reference.along(self.direction))


@dataclass(frozen=True, eq=False)
class AroundLocal(ABC):
    """Pooled neighbourhoods of known reference nodes, on the graph along the localiser's direction."""

    localiser: Any
    reference: Reference

    @staticmethod
    @abstractmethod
    def search(
        locals_: Sequence[Any], nodes: IntArray, reach: Reach, pooled: Any, **options: Any
    ) -> tuple[FloatArray, list[tuple[IntArray, FloatArray]]]:
        """Return thresholds, shape (nodes, localisers, levels), and each localiser's support and effective size."""

    @abstractmethod
    def masses(self, nodes: IntArray, position: IntArray, **options: Any) -> tuple[Any, Any, Weighting]:
        """Count reference nodes nearby, all and those numbered below each position; return their weighting, too."""

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut, from one search."""
        return share_search([self], nodes, [cuts], threads=threads, progress=progress)[0]

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Progress | None = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        index = self.reference.index
        position = np.searchsorted(index.sorted_scores, scores, side="left")
        below, near, weighting = self.masses(nodes, position, threads=check_threads(threads), progress=progress)
        groups = self.reference.predicted if weighting.alike else None
        return Counts(below, near, *pooled_counts(index, nodes, position, groups)).rank(weighting)


def share_search(
    locals_: Sequence[AroundLocal],
    nodes: IntArray,
    cuts: Sequence[Sequence[Cut]],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[LocalThresholds]:
    """Compute the thresholds of several localisers with one class and reference, each at its cuts, in one search."""
    reference, settings = locals_[0].reference, [local.localiser for local in locals_]
    groups = reference.predicted if any(setting.alike for setting in settings) else None
    every = sorted({cut for own in cuts for cut in own})
    reach = Reach(
        np.array([cut.level for cut in every]),
        ROUNDING,
        np.array([RULES[cut.rule] for cut in every], dtype=np.int8),
        np.array([setting.pool for setting in settings]),
        np.array([setting.alike for setting in settings]),
        groups,
    )
    pooled, options = pooled_sizes(reference.index, nodes, groups), {"threads": check_threads(threads)}
    values, sizes = locals_[0].search(locals_, nodes, reach, pooled, progress=progress, **options)
    return [
        LocalThresholds(np.ascontiguousarray(values[:, w, [every.index(cut) for cut in own]].T), *size)
        for w, (own, size) in enumerate(zip(cuts, sizes, strict=True))
    ]


class HopsLocal(AroundLocal):
    """Hops around known reference nodes."""

    @property
    def weighting(self) -> Weighting:
        """The weights of the hops and of the pools."""
        setting = self.localiser
        return Weighting(hop_weights(setting.decay, setting.hops), setting.pool, setting.alike)

    @staticmethod
    def search(  # noqa: D102
        locals_: Sequence[HopsLocal], nodes: IntArray, reach: Reach, pooled: Any, **options: Any
    ) -> tuple[FloatArray, list[tuple[IntArray, FloatArray]]]:
        weightings = [local.weighting for local in locals_]
        depth = max(weighting.hops.size for weighting in weightings)
        rows = np.stack([np.pad(weighting.hops, (0, depth - weighting.hops.size)) for weighting in weightings])
        values, counts = find_thresholds(locals_[0].reference.index, nodes, rows, reach, **options)
        sizes = Sizes(counts, *pooled)
        return values, [(sizes.support(weighting), sizes.effective_size(weighting)) for weighting in weightings]

    def masses(  # noqa: D102
        self, nodes: IntArray, position: IntArray, **options: Any
    ) -> tuple[IntArray, IntArray, Weighting]:
        weighting, index = self.weighting, self.reference.index
        positions = np.stack([position, np.full(nodes.size, index.size)], axis=1)
        counts = count_below(index, nodes, positions, weighting.hops.size, **options).astype(np.int64)
        return counts[:, :, 0], counts[:, :, 1], weighting


# -- weightings, and what they make of counts --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weight of a reference node at each hop, and the total weights of the pools (everyone, and alike)."""

    hops: FloatArray
    pool: float = 0.0
    alike: float = 0.0


@dataclass(frozen=True, eq=False)
class Sizes:
    """The numbers of reference nodes that count for each node: support and effective size."""

    near: IntArray  #: Reference nodes by hop, shape (nodes, hops).
    others: IntArray  #: All reference nodes but the node itself.
    same: IntArray | None = None  #: Those with the same prediction.

    def support(self, weighting: Weighting) -> IntArray:
        """Return the number of reference nodes with weight; a lower bound if both near and alike nodes count."""
        if weighting.pool:
            return self.others
        weighs = (weighting.hops > 0).astype(np.int64)
        near: IntArray = self.near[:, : weighs.size] @ weighs
        return near if self.same is None or not weighting.alike else np.maximum(near, self.same)

    def effective_size(self, weighting: Weighting) -> FloatArray:
        """Return (Σw)²/Σw²; the weight of a node for being alike is counted as a separate node.

        Another search would be needed to find the nodes that are both near and alike.
        """
        near, others = self.near[:, : weighting.hops.size], self.others
        same = np.zeros_like(others) if self.same is None else self.same
        # The weight of a hop without nodes may be much larger than all that count, and overflow.
        hops = np.where(near > 0, weighting.hops, 0.0)
        pool, alike = _share_of_each(weighting.pool, others), _share_of_each(weighting.alike, same)
        # Squares of tiny weights would be 0. A power of two takes the largest to about 1 and changes no digit.
        _, exponent = np.frexp(np.max([*hops.T, pool, alike], axis=0))
        hops, pool, alike = np.ldexp(hops, -exponent[:, None]), np.ldexp(pool, -exponent), np.ldexp(alike, -exponent)
        mass: FloatArray = pool * others
        square: FloatArray = pool**2 * (others - near.sum(axis=1))
        # Summed in the order of the hops: a matrix product rounds differently for one node than for many.
        for weight, count in zip(hops.T, near.T, strict=True):
            mass = mass + weight * count
            square = square + (weight + pool) ** 2 * count
        mass = mass + alike * same
        square = square + (alike**2 + 2.0 * alike * pool) * same
        return np.divide(mass**2, square, out=np.zeros(others.size), where=square > 0)


def _share_of_each(weight: float, counts: IntArray) -> FloatArray:
    """Divide a pool's weight equally among its nodes; 0 for an empty pool."""
    return np.divide(weight, counts, out=np.zeros(counts.size), where=counts > 0)


def pooled_sizes(index: Layout, nodes: IntArray, groups: IntArray | None) -> tuple[IntArray, IntArray | None]:
    """For each node, the number of other reference nodes, and of those with the same prediction."""
    own = (index.numbers[nodes] < index.calibration.size).astype(np.int64)
    others = index.calibration.size - own
    if groups is None:
        return others, None
    in_group = np.bincount(groups[index.calibration], minlength=int(groups.max()) + 1)
    return others, in_group[groups[nodes]] - own


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of reference nodes around each node, and of those whose score is below a value."""

    #: By hop, shape (nodes, hops): those below, and all; or their weights, where each node has its own.
    below: IntArray | FloatArray
    near: IntArray | FloatArray
    #: Of all reference nodes but the node itself: those below, and how many there are.
    all_below: IntArray
    others: IntArray
    #: The same for those with the same prediction.
    same_below: IntArray | None = None
    same: IntArray | None = None

    def rank(self, weighting: Weighting) -> FloatArray:
        """Return the mass strictly below each value / (1 + the total mass)."""
        below, total = self.masses(weighting)
        return below / (1.0 + total)

    def masses(self, weighting: Weighting) -> tuple[FloatArray, FloatArray]:
        """Return the mass below each value, and the total mass."""
        below, total = (
            pooled_mass(hop_mass(weighting.hops, counts.T, self.others.size), weighting.pool, others, self.others)
            for counts, others in ((self.below, self.all_below), (self.near, self.others))
        )
        if self.same is None or self.same_below is None:
            return below, total
        alike = weighting.alike
        return pooled_mass(below, alike, self.same_below, self.same), pooled_mass(total, alike, self.same, self.same)


def pooled_counts(
    index: Layout, nodes: IntArray, position: IntArray, groups: IntArray | None
) -> tuple[IntArray, IntArray, IntArray | None, IntArray | None]:
    """Count reference nodes, all and alike, with a number below each node's position, and in total."""
    own = index.numbers[nodes].astype(np.int64)
    all_below = position - (own < position)
    others, same = pooled_sizes(index, nodes, groups)
    if groups is None:
        return all_below, others, None, None
    by_number = groups[index.nodes[: index.calibration.size]]
    same_below = np.zeros(nodes.size, dtype=np.int64)
    for group in np.unique(groups[nodes]):
        rows = groups[nodes] == group
        running = np.append(0, np.cumsum(by_number == group))
        same_below[rows] = running[position[rows]] - (own[rows] < position[rows])
    return all_below, others, same_below, same
