"""Who weighs how much: thresholds and ranks of several weightings of the hops, from one search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.localisers.base import Cut
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds

__all__ = ["Weighting", "weighted_thresholds"]


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weight of a reference node at each hop, and what those alike and all of them weigh together."""

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
    """Return, for each weighting, thresholds of shape (cuts, nodes) at its own cuts, support and effective size."""
    depth = max(weighting.hops.size for weighting in weightings)
    rows = np.stack([np.pad(weighting.hops, (0, depth - weighting.hops.size)) for weighting in weightings])
    asked = sorted({cut for each in cuts for cut in each})
    found = neighbourhood_thresholds(
        index, nodes, rows, [1.0 - cut.level for cut in asked], threads=threads, progress=progress
    )
    return [
        (found.values[w][[asked.index(cut) for cut in cuts[w]]], found.support[w], found.effective_size[w])
        for w in range(len(weightings))
    ]


def counts_below(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
