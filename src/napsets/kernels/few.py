"""Thresholds of a few nodes in a small graph, by NumPy alone: done long before a kernel would be compiled.

Every step is that of the kernels, on matrices instead of bits: hops are walked by multiplying with the adjacency,
calibration nodes stand in the order of their scores, and masses are summed in the order of the hops. So the bits of
the thresholds are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.graph import Graph
    from napsets.localisers.neighbourhoods import CalibrationIndex

__all__ = ["FEW_COUNTS", "are_few", "thresholds_of_few"]

#: Entries of the largest array that is made; beyond it kernels are faster, were they compiled or not.
FEW_COUNTS = 1 << 16
_FEW_NODES = 256


def are_few(graph: Graph, nodes: int, hops: int) -> bool:
    """Whether thresholds of so many nodes are found without kernels."""
    return graph.num_nodes <= _FEW_NODES and nodes * hops * graph.num_nodes <= FEW_COUNTS


def thresholds_of_few(
    index: CalibrationIndex,
    nodes: npt.NDArray[np.int64],
    used: npt.NDArray[np.bool_] | None,
    weights: npt.NDArray[np.float64],
    levels: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return thresholds of shape (nodes, decays, levels), and how many calibration nodes stand at each hop.

    ``used[i, j]`` says whether ``index.calibration[j]`` may calibrate ``nodes[i]``; None stands for all of them.
    """
    hop = _hops(index.graph, nodes, weights.shape[1])[:, index.calibration]
    if used is not None:
        hop[~used] = 0
    by_score = np.argsort(index.numbers[index.calibration])
    at = hop[:, None, by_score] == np.arange(1, weights.shape[1] + 1)[:, None]
    counts = np.cumsum(at, axis=2)
    values = np.full((nodes.size, weights.shape[0], levels.size), np.inf)
    for d, row in enumerate(weights):
        mass = np.zeros((nodes.size, by_score.size))
        for k, weight in enumerate(row):
            mass += weight * counts[:, k]
        total = mass[:, -1]
        for a, level in enumerate(levels):
            needed = level * (1.0 + total) * (1.0 - ROUNDING)
            enough = total >= needed
            first = (mass >= needed[:, None]).argmax(axis=1)
            values[enough, d, a] = index.sorted_scores[first[enough]]
    return values, counts[:, :, -1].copy()


def _hops(graph: Graph, nodes: npt.NDArray[np.int64], most: int) -> npt.NDArray[Any]:
    """Return the hops from each of `nodes` to every node: 0 for itself, and where they are more than `most`."""
    adjacent = np.zeros((graph.num_nodes, graph.num_nodes), dtype=np.float32)
    adjacent[np.repeat(np.arange(graph.num_nodes), graph.degrees), graph.indices] = 1.0
    reached = np.arange(graph.num_nodes) == nodes[:, None]
    hop, frontier = np.zeros(reached.shape, dtype=np.int64), reached
    for k in range(1, most + 1):
        frontier = (frontier.astype(np.float32) @ adjacent > 0) & ~reached
        if not frontier.any():
            break
        hop[frontier] = k
        reached = reached | frontier
    return hop
