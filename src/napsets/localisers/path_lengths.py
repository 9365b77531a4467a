"""Neighbourhoods by path length: the weight of a reference node depends on the shortest path to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray
from napsets.checks.compressed import Direction, check_direction
from napsets.checks.values import check_number, choose, shown
from napsets.errors import InvalidInputError, warn
from napsets.kernels.layout import Reach
from napsets.localisers.base import LOCALISERS, Reference, graph_of
from napsets.localisers.hops import AroundLocal, Sizes, Weighting
from napsets.quantile import LARGEST_WEIGHT

#: A name from `LENGTH_DECAYS`, or a function of distances: an array in, as many weights out.
LengthDecay = str | Callable[[FloatArray], ArrayLike]

#: Weights by x = distance / radius, from 0 to 1: the unit of the lengths does not matter. None is more than 1, the
#: weight of the node itself.
LENGTH_DECAYS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "uniform": np.ones_like,
    "hyperbolic": lambda x: 1.0 / (1.0 + x),
    "geometric": lambda x: np.exp2(-x),
    "linear": lambda x: 1.0 - x,
    "gaussian": lambda x: np.exp(-4.5 * x * x),
}

#: The number of other reference nodes within the default radius.
USUAL_COUNT = 50
#: Reference nodes that a radius is found on, at most.
_SAMPLE = 256
_LONGEST = 1e200


@LOCALISERS.add("path-lengths")
@dataclass(frozen=True)
class PathLengths:
    """Weight reference nodes by the length of the shortest path to them; `pool` and `alike` are as in `Hops`.

    The weight of a reference node at distance d ≤ radius is decay(d), and 0 beyond. The distance is the smallest sum of
    edge lengths over all paths, each summed in float64 starting at the node. In a graph without lengths every edge has
    length 1, so that distances are hops.

    Attributes
    ----------
    radius : float, optional
        Largest distance in a neighbourhood, in the unit of the lengths. By default the distance within which half of
        the reference nodes have 50 others; this depends on which nodes are labelled, not on their labels.
    decay : str or callable
        With x = d / radius: "uniform" 1, "hyperbolic" 1/(1+x), "geometric" 2^−x, "linear" 1−x, "gaussian"
        exp(−4.5 x²), whose radius is three standard deviations. Or a function of the distances d: it takes an array
        and returns an array of finite, non-negative weights, each depending on its own distance only.
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
        if graph_of(reference).lengths is None:
            warn(
                "the edges of `graph` have no lengths, so that every edge counts as 1 and distances are hops. Pass "
                "lengths to Graph.from_edge_index, or weights_are= to the other constructors"
            )
        if self.alike and reference.probabilities is None:
            raise InvalidInputError("`alike` needs predicted labels, which scores of intervals do not have")
        return PathLengthsLocal(self, reference.along(self.direction))


class PathLengthsLocal(AroundLocal):
    """Path lengths around known reference nodes."""

    @cached_property
    def radius(self) -> float:
        """The distance up to which reference nodes count as near."""
        radius: float | None = self.localiser.radius
        return near_radii(self.reference, [USUAL_COUNT])[0] if radius is None else radius

    @property
    def _weighting(self) -> Weighting:
        """Nodes nearby are already weighted."""
        return Weighting(np.ones(1), self.localiser.pool, self.localiser.alike)

    def weights(self, distances: FloatArray) -> FloatArray:
        """Return the weights at these distances: 0 beyond the radius."""
        decay, inside = self.localiser.decay, distances <= self.radius
        near = distances[inside]
        weights = np.zeros(distances.size)
        weights[inside] = _own_weights(decay, near) if callable(decay) else LENGTH_DECAYS[decay](near / self.radius)
        return weights

    def near(self, node: int) -> tuple[IntArray, FloatArray]:
        """Return the reference nodes within the radius of a node, in the order of their scores, with distances."""
        from napsets.kernels.near import near_distances

        index = self.reference.index
        numbers, distances = near_distances(index, _lengths(self.reference), np.array([node]), self.radius, threads=1)[
            0
        ]
        return index.nodes[numbers], distances

    def masses(  # noqa: D102
        self, nodes: IntArray, position: IntArray, **options: Any
    ) -> tuple[FloatArray, FloatArray, Weighting]:
        from napsets.kernels.near import near_masses

        near = self.reference.index, _lengths(self.reference), nodes, self.radius
        masses = near_masses(*near, lambda distances: self.weights(distances)[None], 1, position, **options)
        return masses[:, :, 0], masses[:, :, 1], self._weighting

    @staticmethod
    def search(  # noqa: D102
        locals_: Sequence[PathLengthsLocal], nodes: IntArray, reach: Reach, pooled: Any, **options: Any
    ) -> tuple[FloatArray, list[tuple[IntArray, FloatArray]]]:
        from napsets.kernels.near import near_thresholds

        reference = locals_[0].reference
        near = near_thresholds(
            reference.index,
            _lengths(reference),
            nodes,
            max(local.radius for local in locals_),
            lambda distances: np.stack([local.weights(distances) for local in locals_]),
            reach,
            rows=len(locals_),
            **options,
        )
        sizes = []
        for row, local in enumerate(locals_):
            size = near.effective[:, row]
            if local.localiser.pool or local.localiser.alike:
                size = _effective_size(local.localiser, near.masses[:, row], near.squares[:, row], *pooled)
            sizes.append((Sizes(near.counts[:, [row]], *pooled).support(local._weighting), size))
        return near.values, sizes


def near_radii(reference: Reference, counts: Sequence[int]) -> list[float]:
    """Return, for each count, the distance within which half of the reference nodes have that many others.

    At most 256 of them are used, evenly spread. For a node that reaches fewer others, the distance to the furthest
    counts. Nodes that reach no other do not count; if there are only such nodes, the radius is 1.
    """
    from napsets.kernels.near import near_distances

    sample = reference.nodes
    if sample.size > _SAMPLE:
        sample = sample[np.linspace(0, sample.size - 1, _SAMPLE).astype(np.int64)]
    met = near_distances(reference.index, _lengths(reference), sample, most=max(counts))
    reached = [np.sort(distances) for _, distances in met if distances.size]
    if not reached:
        return [1.0] * len(counts)
    return [
        float(np.sort([distances[min(count, distances.size) - 1] for distances in reached])[len(reached) // 2])
        for count in counts
    ]


def _lengths(reference: Reference) -> FloatArray:
    """Return the lengths of the edges: 1 each if the graph has none."""
    graph = graph_of(reference)
    return np.ones(graph.num_edges) if graph.lengths is None else graph.lengths


def _own_weights(decay: Callable[[FloatArray], ArrayLike], distances: FloatArray) -> FloatArray:
    """Call the user's weight function, and check its result."""
    result = decay(distances.copy())
    try:
        weights = np.broadcast_to(np.asarray(result, dtype=np.float64), distances.shape)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`decay` must return a number for each of {distances.size} distances; got {shown(result)}"
        ) from error
    bad = ~(weights <= LARGEST_WEIGHT) | (weights < 0)  # NaN is bad too
    if bad.any():
        i = int(bad.argmax())
        raise InvalidInputError(
            f"`decay` must give finite weights from 0 to {LARGEST_WEIGHT:g}; at the distance {distances[i]:g} it gives "
            f"{weights[i]:g}"
        )
    return weights


def _effective_size(
    setting: PathLengths, mass: FloatArray, square: FloatArray, others: IntArray, same: IntArray | None
) -> FloatArray:
    """Return (Σw)²/Σw² with pools; the weight of a node for being alike is counted as a separate node, as for hops."""
    zeros = np.zeros(mass.size)
    pooled = np.divide(setting.pool, others, out=zeros.copy(), where=others > 0)
    same = np.zeros(mass.size, dtype=np.int64) if same is None else same
    alike = np.divide(setting.alike, same, out=zeros.copy(), where=same > 0)
    square = square + pooled**2 * others + 2.0 * pooled * mass + (alike**2 + 2.0 * alike * pooled) * same
    mass = mass + pooled * others + alike * same
    return np.divide(mass**2, square, out=zeros, where=square > 0)
