"""Neighbourhoods of a few nodes in a small graph, by NumPy alone: done long before a kernel would be compiled.

Every step is that of the kernels, on matrices instead of bits: hops are walked by multiplying with the adjacency,
calibration nodes stand in the order of their scores, and masses are summed in the order of the hops. So the bits of
the thresholds are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels.layout import Adjacency, Layout
from napsets.kernels.rules import NOMINAL, needed_mass

__all__ = ["FEW_COUNTS", "are_few", "counts_of_few", "thresholds_of_few"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Entries of the largest array that is made; beyond it kernels are faster, were they compiled or not.
FEW_COUNTS = 1 << 16
_FEW_NODES = 256


def are_few(adjacency: Adjacency, nodes: int, hops: int) -> bool:
    """Whether neighbourhoods of so many nodes are found without kernels."""
    return adjacency.num_nodes <= _FEW_NODES and nodes * max(1, hops) * adjacency.num_nodes <= FEW_COUNTS


def thresholds_of_few(
    layout: Layout,
    nodes: Ints,
    used: npt.NDArray[np.bool_] | None,
    weights: Floats,
    levels: Floats,
    rules: npt.NDArray[np.int8],
    rounding: float,
    pools: Floats,
    alikes: Floats,
    groups: npt.NDArray[Any] | None,
) -> tuple[Floats, Ints]:
    """Return thresholds of shape (nodes, rows, levels), and how many calibration nodes stand at each hop.

    ``used[i, j]`` says whether ``layout.calibration[j]`` may calibrate ``nodes[i]``; None stands for all of them.
    """
    known = layout.nodes[: layout.size]
    others = known != nodes[:, None]
    if used is not None:
        others &= used[:, _by_score(layout)]
    counts = np.cumsum(_at_hops(layout, nodes, weights.shape[1]) & others[:, None], axis=2)
    everyone = np.cumsum(others, axis=1)
    alike_ones = np.zeros_like(everyone)
    if groups is not None:
        own = groups[nodes][:, None]
        alike_ones = np.cumsum(others & (groups[known] == own) & (own >= 0), axis=1)
    values = np.empty((nodes.size, weights.shape[0], levels.size))
    for d, row in enumerate(weights):
        mass = np.zeros(everyone.shape)
        for k, weight in enumerate(row):
            mass += weight * counts[:, k]
        for weight, count in ((pools[d], everyone), (alikes[d], alike_ones)):
            if weight > 0:
                mass += (weight / np.maximum(count[:, -1:], 1)) * count
        total = mass[:, -1]
        for a, level in enumerate(levels):
            if rules[a] == NOMINAL:
                needed = level * (1.0 + total) * (1.0 - rounding)
            else:
                needed = np.array([needed_mass(float(level), int(rules[a]), t, rounding) for t in total.tolist()])
            found = layout.sorted_scores[(mass >= needed[:, None]).argmax(axis=1)]
            values[:, d, a] = np.where(total < needed, np.inf, np.where(needed <= 0, -np.inf, found))
    return values, counts[:, :, -1].copy()


def counts_of_few(layout: Layout, nodes: Ints, positions: Ints, hops: int) -> Ints:
    """Return how many calibration nodes at each hop have a number below each position, (nodes, hops, positions)."""
    before = np.zeros((nodes.size, hops, layout.size + 1), dtype=np.int64)
    np.cumsum(_at_hops(layout, nodes, hops), axis=2, out=before[:, :, 1:])
    places = np.broadcast_to(positions, (nodes.size, positions.shape[1]))
    return np.take_along_axis(before, places[:, None], axis=2)


def _by_score(layout: Layout) -> Ints:
    return np.argsort(layout.numbers[layout.calibration])


def _at_hops(layout: Layout, nodes: Ints, hops: int) -> npt.NDArray[np.bool_]:
    """Return whether a number is at a hop from each of `nodes`, of shape (nodes, hops, calibration nodes)."""
    hop = _hops(layout.adjacency, nodes, hops)[:, layout.nodes[: layout.size]]
    at: npt.NDArray[np.bool_] = hop[:, None] == np.arange(1, hops + 1)[:, None]
    return at


def _hops(adjacency: Adjacency, nodes: Ints, most: int) -> Ints:
    """Return the hops from each of `nodes` to every node: 0 for itself, and where they are more than `most`."""
    size = adjacency.num_nodes
    adjacent = np.zeros((size, size), dtype=np.float32)
    adjacent[np.repeat(np.arange(size), adjacency.degrees), adjacency.indices] = 1.0
    reached = np.arange(size) == nodes[:, None]
    hop, frontier = np.zeros(reached.shape, dtype=np.int64), reached
    for k in range(1, most + 1):
        frontier = (frontier.astype(np.float32) @ adjacent > 0) & ~reached
        if not frontier.any():
            break
        hop[frontier] = k
        reached = reached | frontier
    return hop
