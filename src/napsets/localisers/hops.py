"""Neighbourhoods: a reference node counts by its distance in hops, and beyond it as one of those alike, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from napsets.checks.arguments import FloatArray, IntArray, as_array, check_hops, check_number
from napsets.errors import InvalidInputError
from napsets.graph import Direction, check_direction
from napsets.localisers.base import LOCALISERS, NO_GRAPH, Cut, LocalThresholds, Reference
from napsets.localisers.decay import Decay, check_decay, hop_weights
from napsets.localisers.depth import useful_hops
from napsets.localisers.weightings import Weighting, counts_below, weighted_thresholds
from napsets.quantile import LARGEST_WEIGHT

__all__ = ["Hops", "HopsLocal", "share_ranks", "share_search"]


@LOCALISERS.add("hops")
@dataclass(frozen=True)
class Hops:
    """Weigh reference nodes by their distance, pooled with those that look alike and with all.

    A reference node k hops away weighs w(k); on top, each of all n of them weighs pool/n, and each of the n' for which
    the model's first choice is the node's own weighs alike/n'.

    Attributes
    ----------
    hops : int
        Depth of the neighbourhood, the paper's K.
    decay : str, callable or tuple
        w(k): "uniform", "hyperbolic", "geometric", a function of k, or a weight for each hop.
    pool : float
        How many neighbours all reference nodes together count for.
    alike : float
        The same for those with the same predicted label.
    direction : {"out", "in", "both"}
        Which way edges are followed in a directed graph, from the node on: as they are, against them, or either way.
    """

    hops: int = 2
    decay: Decay = "uniform"
    pool: float = 0.0
    alike: float = 0.0
    direction: Direction = "out"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hops", check_hops("hops", self.hops))
        check_decay(self.decay, self.hops)
        if not (isinstance(self.decay, str) or callable(self.decay)):
            object.__setattr__(self, "decay", tuple(as_array("decay", self.decay).tolist()))
        for name in ("pool", "alike"):
            object.__setattr__(self, name, float(check_number(name, getattr(self, name), largest=LARGEST_WEIGHT)))
        check_direction(self.direction)

    def __repr__(self) -> str:
        # Most graphs have no direction: it is not spoken of then.
        told = [one.name for one in fields(self) if one.name != "direction" or self.direction != "out"]
        return f"Hops({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"

    def fit(self, reference: Reference) -> HopsLocal:
        """Return the localiser of these reference nodes."""
        if reference.graph is None:
            raise InvalidInputError(NO_GRAPH)
        if self.alike and reference.probabilities is None:
            raise InvalidInputError("`alike` needs predicted labels, which scores of intervals do not have")
        return HopsLocal(self, reference.along(self.direction))


@dataclass(frozen=True, eq=False)
class HopsLocal:
    """Hops around known reference nodes, whose graph is that along the localiser's direction."""

    localiser: Hops
    reference: Reference

    def weighting(self, nodes: IntArray) -> Weighting:
        """Return the weights of the hops at which `nodes` may have neighbours, and of the pools."""
        setting, index = self.localiser, self.reference.index
        depth = useful_hops(index.graph, nodes, setting.hops)
        return Weighting(hop_weights(setting.decay, setting.hops, depth=depth), setting.pool, setting.alike)

    def thresholds(
        self, nodes: IntArray, cuts: Sequence[Cut], *, threads: int | None = None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of the nodes at each cut, from one search."""
        return share_search([self], nodes, [cuts], threads=threads, progress=progress)[0]

    def ranks(
        self, nodes: IntArray, scores: FloatArray, *, threads: int | None = None, progress: Any = None
    ) -> FloatArray:
        """Return the share of each node's mass that lies strictly below its score."""
        return share_ranks([self], nodes, scores, threads=threads, progress=progress)[0]


def share_search(
    locals_: Sequence[HopsLocal],
    nodes: IntArray,
    cuts: Sequence[Sequence[Cut]],
    *,
    threads: int | None = None,
    progress: Any = None,
) -> list[LocalThresholds]:
    """Return the thresholds of several weightings of one reference, each at its own cuts, from one search."""
    reference = locals_[0].reference
    weightings = [local.weighting(nodes) for local in locals_]
    found = weighted_thresholds(
        reference.index,
        nodes,
        weightings,
        cuts,
        groups=reference.predicted if any(weighting.alike for weighting in weightings) else None,
        threads=threads,
        progress=progress,
    )
    return [LocalThresholds(*parts) for parts in found]


def share_ranks(
    locals_: Sequence[HopsLocal],
    nodes: IntArray,
    scores: FloatArray,
    *,
    threads: int | None = None,
    progress: Any = None,
) -> list[FloatArray]:
    """Return the ranks that several weightings of one reference give the nodes' scores, from one search."""
    reference = locals_[0].reference
    weightings = [local.weighting(nodes) for local in locals_]
    counts = counts_below(
        reference.index,
        nodes,
        scores,
        max(weighting.hops.size for weighting in weightings),
        groups=reference.predicted if any(weighting.alike for weighting in weightings) else None,
        threads=threads,
        progress=progress,
    )
    return [counts.rank(weighting) for weighting in weightings]
