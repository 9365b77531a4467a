"""Neighbourhoods by length: a reference node counts by the length of the shortest path to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, check_number, shown
from napsets.checks.names import choose
from napsets.errors import InvalidInputError
from napsets.graph import Direction, check_direction
from napsets.kernels import rules
from napsets.localisers.base import LOCALISERS, NO_GRAPH, Cut, LocalThresholds, Reference
from napsets.localisers.neighbourhoods import check_threads
from napsets.quantile import LARGEST_WEIGHT, ROUNDING

__all__ = [
    "LENGTH_DECAYS",
    "LengthDecay",
    "PathLengths",
    "PathLengthsLocal",
    "near_radii",
    "share_length_search",
]

#: A name from `LENGTH_DECAYS`, or a function of distances: an array in, as many weights out.
LengthDecay = str | Callable[[FloatArray], Any]

#: Weights by x = distance / radius, from 0 to 1: the unit of the lengths does not matter. None is more than 1, which is
#: what the node itself weighs.
LENGTH_DECAYS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "uniform": np.ones_like,
    "hyperbolic": lambda x: 1.0 / (1.0 + x),
    "geometric": lambda x: np.exp2(-x),
    "linear": lambda x: 1.0 - x,
    "gaussian": lambda x: np.exp(-4.5 * x * x),
}

#: How many other reference nodes should be within a radius that nobody chose.
USUAL_COUNT = 50
#: Reference nodes that a radius is found on, at the most.
_SAMPLE = 256
_LONGEST = 1e200
_RULES = {"nominal": rules.NOMINAL, "at least": rules.AT_LEAST, "above": rules.ABOVE}


@LOCALISERS.add("path-lengths")
@dataclass(frozen=True)
class PathLengths:
    """Weigh reference nodes by the length of the shortest path to them, pooled with those that look alike and with all.

    A reference node at distance d ≤ radius weighs decay(d), one further away nothing; pool and alike come on top as in
    `Hops`. The distance is the smallest sum of edge lengths over all paths, each summed in float64 from the node on.
    In a graph without lengths every edge is 1 long, so that distances are hops.

    Attributes
    ----------
    radius : float, optional
        How far a neighbourhood reaches, itself included, in the unit of the lengths. By default as far as half of the
        reference nodes need to have 50 others within reach: this looks at who is labelled, not at labels.
    decay : str or callable
        With x = d / radius: "uniform" 1, "hyperbolic" 1/(1+x), "geometric" 2^−x, "linear" 1−x, "gaussian"
        exp(−4.5 x²), whose radius is three standard deviations. Or a function of the distances d themselves: an array
        in, an array of finite weights that are not negative out, each depending on its own distance alone.
    pool, alike
        As in `Hops`.
    direction : {"out", "in", "both"}
        As in `Hops`.
    """

    radius: float | None = None
    decay: LengthDecay = "uniform"
    pool: float = 0.0
    alike: float = 0.0
    direction: Direction = "out"

    def __post_init__(self) -> None:
        if self.radius is not None:
            radius = float(check_number("radius", self.radius, largest=_LONGEST))
            if radius == 0.0:
                raise InvalidInputError("`radius` must be more than 0, because no edge has the length 0; got 0")
            object.__setattr__(self, "radius", radius)
        if not callable(self.decay):
            choose("decay", self.decay, LENGTH_DECAYS)
        for name in ("pool", "alike"):
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), largest=LARGEST_WEIGHT)))
        check_direction(self.direction)

    def fit(self, reference: Reference) -> PathLengthsLocal:
        """Return the localiser of these reference nodes."""
        if reference.graph is None:
            raise InvalidInputError(NO_GRAPH)
        if self.alike and reference.probabilities is None:
            raise InvalidInputError("`alike` needs predicted labels, which scores of intervals do not have")
        return PathLengthsLocal(self, reference.along(self.direction))


@dataclass(frozen=True, eq=False)
class PathLengthsLocal:
    """Path lengths around known reference nodes, whose graph is that along the localiser's direction."""

    localiser: PathLengths
    reference: Reference

    @cached_property
    def radius(self) -> float:
        """How far neighbourhoods reach."""
        given = self.localiser.radius
        return near_radii(self.reference, [USUAL_COUNT])[0] if given is None else given

    def weights(self, distances: FloatArray) -> FloatArray:
        """Return the weights of reference nodes at some distances: 0 beyond the radius."""
        decay, inside = self.localiser.decay, distances <= self.radius
        near = distances[inside]
        weights = np.zeros(distances.size)
        weights[inside] = _checked(decay, near) if callable(decay) else LENGTH_DECAYS[decay](near / self.radius)
        return weights

    def near(self, node: int) -> tuple[IntArray, FloatArray]:
        """Return the reference nodes within the radius of one node, in the order of their scores, and how far."""
        from napsets.kernels.near import near_distances

        index = self.reference.index
        numbers, distances = near_distances(
            index.layout, _lengths(self.reference), np.array([node]), self.radius, threads=1
        )[0]
        return index.nodes[numbers], distances

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut, from one search."""
        return share_length_search([self], nodes, [cuts], threads=threads, progress=progress)[0]

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        from napsets.kernels.near import near_masses

        index, setting = self.reference.index, self.localiser
        position = np.searchsorted(index.sorted_scores, scores, side="left")
        masses = near_masses(
            index.layout,
            _lengths(self.reference),
            nodes,
            self.radius,
            lambda distances: self.weights(distances)[None],
            1,
            position,
            threads=check_threads(threads),
            progress=progress,
        )
        below, total = masses[:, 0].T
        for weight, part, whole in _ranked(self.reference, nodes, position, setting.pool, setting.alike):
            each = np.divide(weight, whole, out=np.zeros(whole.size), where=whole > 0)
            below = below + each * part
            total = total + each * whole
        rank: FloatArray = below / (1.0 + total)
        return rank


def share_length_search(
    locals_: Sequence[PathLengthsLocal],
    nodes: IntArray,
    cuts: Sequence[Sequence[Cut]],
    *,
    threads: int | None = None,
    progress: Any = None,
) -> list[LocalThresholds]:
    """Return the thresholds of several weightings of one reference, each at its own cuts, from one search."""
    from napsets.kernels.near import near_thresholds

    reference, settings = locals_[0].reference, [local.localiser for local in locals_]
    asked = sorted({cut for each in cuts for cut in each})
    alike = any(setting.alike for setting in settings)
    found = near_thresholds(
        reference.index.layout,
        _lengths(reference),
        nodes,
        max(local.radius for local in locals_),
        lambda distances: np.stack([local.weights(distances) for local in locals_]),
        np.array([cut.level for cut in asked]),
        rounding=ROUNDING,
        rules=np.array([_RULES[cut.rule] for cut in asked], dtype=np.int8),
        pools=np.array([setting.pool for setting in settings]),
        alikes=np.array([setting.alike for setting in settings]),
        groups=reference.predicted if alike else None,
        threads=check_threads(threads),
        progress=progress,
    )
    others, same = _others(reference, nodes, alike)
    made = []
    for row, setting in enumerate(settings):
        values = np.ascontiguousarray(found.values[:, row, [asked.index(cut) for cut in cuts[row]]].T)
        near = found.counts[:, row]
        if not setting.pool and not setting.alike:
            made.append(LocalThresholds(values, near, found.effective[:, row]))
            continue
        support = others if setting.pool else np.maximum(near, same) if setting.alike else near
        sums = found.masses[:, row], found.squares[:, row]
        made.append(LocalThresholds(values, support, _effective_size(setting, *sums, others, same)))
    return made


def near_radii(reference: Reference, counts: Sequence[int]) -> list[float]:
    """Return, for each count, the distance within which half of the reference nodes have so many others.

    Looked at are at most 256 of them, evenly spread. One that reaches fewer goes by the furthest that it reaches; one
    that reaches none does not count, and if none does, the radius is 1.
    """
    from napsets.kernels.near import near_distances

    sample = reference.nodes
    if sample.size > _SAMPLE:
        sample = sample[np.linspace(0, sample.size - 1, _SAMPLE).astype(np.int64)]
    found = near_distances(reference.index.layout, _lengths(reference), sample, most=max(counts))
    reached = [np.sort(distances) for _, distances in found if distances.size]
    if not reached:
        return [1.0] * len(counts)
    return [
        float(np.sort([distances[min(count, distances.size) - 1] for distances in reached])[len(reached) // 2])
        for count in counts
    ]


def _lengths(reference: Reference) -> FloatArray:
    """Return the lengths of the edges; where they have none, each is 1 long."""
    graph = reference.index.graph
    return np.ones(graph.num_edges) if graph.lengths is None else graph.lengths


def _checked(decay: Callable[[FloatArray], Any], distances: FloatArray) -> FloatArray:
    """Return the weights that a function of the user's gives, or say what is wrong with them."""
    made = decay(distances.copy())
    try:
        weights = np.broadcast_to(np.asarray(made, dtype=np.float64), distances.shape)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`decay` must return a number for each of {distances.size} distances; got {shown(made)}"
        ) from error
    bad = ~(weights <= LARGEST_WEIGHT) | (weights < 0)  # NaN is bad too
    if bad.any():
        i = int(bad.argmax())
        raise InvalidInputError(
            f"`decay` must give finite weights from 0 to {LARGEST_WEIGHT:g}; at the distance {distances[i]:g} it gives "
            f"{weights[i]:g}"
        )
    return weights


def _others(reference: Reference, nodes: IntArray, alike: bool) -> tuple[IntArray, IntArray]:
    """Return how many reference nodes there are beside each node, and how many of them look alike."""
    size = reference.nodes.size
    own = (reference.index.numbers[nodes] < size).astype(np.int64)
    predicted = reference.predicted
    if not alike or predicted is None:
        return size - own, np.zeros(nodes.size, dtype=np.int64)
    in_group = np.bincount(predicted[reference.nodes], minlength=int(predicted.max()) + 1)
    return size - own, in_group[predicted[nodes]] - own


def _ranked(
    reference: Reference, nodes: IntArray, position: IntArray, pool: float, alike: float
) -> list[tuple[float, IntArray, IntArray]]:
    """Return what each pool weighs, how many of its nodes stand below a position of each node, and how many in all."""
    index, size = reference.index, reference.nodes.size
    own = index.numbers[nodes].astype(np.int64)
    others, same = _others(reference, nodes, bool(alike))
    parts = [(pool, position - (own < position), others)] if pool else []
    predicted = reference.predicted
    if alike and predicted is not None:
        by_number = predicted[index.nodes[:size]]
        below = np.zeros(nodes.size, dtype=np.int64)
        for group in np.unique(predicted[nodes]):
            rows = predicted[nodes] == group
            running = np.append(0, np.cumsum(by_number == group))
            below[rows] = running[position[rows]] - (own[rows] < position[rows])
        parts.append((alike, below, same))
    return parts


def _effective_size(
    setting: PathLengths, mass: FloatArray, square: FloatArray, others: IntArray, same: IntArray
) -> FloatArray:
    """Return (Σw)²/Σw² with pools; what a node weighs for looking alike is taken as a node of its own, as for hops."""
    zeros = np.zeros(mass.size)
    pooled = np.divide(setting.pool, others, out=zeros.copy(), where=others > 0)
    alike = np.divide(setting.alike, same, out=zeros.copy(), where=same > 0)
    square = square + pooled**2 * others + 2.0 * pooled * mass + (alike**2 + 2.0 * alike * pooled) * same
    mass = mass + pooled * others + alike * same
    size: FloatArray = np.divide(mass**2, square, out=zeros, where=square > 0)
    return size
