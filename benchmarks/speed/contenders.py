"""Ways to get the thresholds of some nodes, written plainly, each from a graph, scores and the nodes.

Every node of the graph calibrates. Each way returns thresholds of shape (decays, nodes) and the number of
(node, calibration node) pairs within reach, so that they can be checked against each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import brentq

import napsets
from napsets.checks.arguments import FloatArray, IntArray
from napsets.graph import Graph
from napsets.kernels.layout import Layout, Reach
from napsets.kernels.search import find_thresholds
from napsets.localisers import Cut, PathLengths, Reference
from napsets.quantile import ROUNDING

DECAYS = ("uniform", "hyperbolic", "geometric")
_BATCH = 32  # sources whose dense rows are held at once


def decay_weights(hops: int) -> FloatArray:
    """Return the weights of the paper's three decays, shape (3, hops)."""
    return np.stack([napsets.hop_weights(decay, hops) for decay in DECAYS])


def by_napsets(
    graph: Graph,
    scores: FloatArray,
    nodes: IntArray,
    weights: FloatArray,
    alpha: float,
    *,
    threads: int | None = None,
    strategy: str | None = None,
) -> tuple[FloatArray, int]:
    """Make the layout and search, which is all that `Hops` does."""
    layout = Layout(graph, np.arange(graph.num_nodes), scores)
    reach = Reach(np.array([1.0 - alpha]), ROUNDING)
    values, counts = find_thresholds(layout, nodes, weights, reach, threads=threads, strategy=strategy)
    return np.ascontiguousarray(values[:, :, 0].T), int(counts.sum())


def by_path_lengths(
    graph: Graph,
    scores: FloatArray,
    nodes: IntArray,
    radius: float,
    alpha: float,
    *,
    decay: str = "gaussian",
    threads: int | None = None,
) -> tuple[FloatArray, int]:
    """Sort the scores, search up to a radius, weigh by distance and select."""
    reference = Reference(np.arange(graph.num_nodes), scores, graph.num_nodes, graph)
    thresholds = PathLengths(radius, decay).fit(reference).thresholds(nodes, [Cut(1.0 - alpha)], threads=threads)
    return thresholds.values, int(thresholds.support.sum())


def to_networkx(graph: Graph) -> Any:
    """Return the graph as NetworkX has it: dictionaries of dictionaries."""
    import networkx as nx

    return nx.from_scipy_sparse_array(graph.to_scipy())


def by_networkx(
    graph: Any, scores: FloatArray, nodes: IntArray, weights: FloatArray, alpha: float
) -> tuple[FloatArray, int]:
    """Search around each node with NetworkX, then find the root of the weighted step function by bracketing.

    One search serves all decays here, which is kinder than a program run once for each.
    """
    import networkx as nx

    thresholds = np.full((weights.shape[0], nodes.size), np.inf)
    reached = 0
    for i, node in enumerate(nodes.tolist()):
        hop_of = nx.single_source_shortest_path_length(graph, node, cutoff=weights.shape[1])
        hop_of.pop(node)
        reached += len(hop_of)
        near = scores[np.fromiter(hop_of.keys(), dtype=np.int64, count=len(hop_of))]
        hop = np.fromiter(hop_of.values(), dtype=np.int64, count=len(hop_of))
        for d in range(weights.shape[0]):
            thresholds[d, i] = _root(near, weights[d, hop - 1], alpha)
    return thresholds, reached


def _root(scores: FloatArray, weights: FloatArray, alpha: float) -> float:
    share = weights / (weights.sum() + 1.0)

    def excess(level: float) -> float:
        return float((share * (scores <= level)).sum()) - (1.0 - alpha)

    if excess(1000.0) < 0:
        return np.inf
    return float(brentq(excess, -1000.0, 1000.0))


def by_sparse_products(
    graph: Graph, scores: FloatArray, nodes: IntArray, weights: FloatArray, alpha: float
) -> tuple[FloatArray, int]:
    """Find the hops by products with the adjacency matrix, and the quantile by cumulative sums of dense rows."""
    order = np.argsort(scores, kind="stable")
    by_score = scores[order]
    adjacency = graph.to_scipy().astype(np.float32)[order][:, order]  # columns in score order, once for all
    sources = np.argsort(order)[nodes]
    thresholds = np.full((weights.shape[0], nodes.size), np.inf)
    running = np.empty((_BATCH, graph.num_nodes))
    reached = 0
    for first in range(0, nodes.size, _BATCH):
        hop = _hops_by_products(adjacency, sources[first : first + _BATCH], weights.shape[1])
        mass = running[: hop.shape[0]]
        reached += int(np.count_nonzero(hop))
        for d in range(weights.shape[0]):
            np.take(np.append(0.0, weights[d]), hop, out=mass, mode="clip")
            np.cumsum(mass, axis=1, out=mass)
            needed = (1.0 - alpha) * (1.0 + mass[:, -1]) * (1.0 - 1e-9)
            for i in np.flatnonzero(mass[:, -1] >= needed):
                thresholds[d, first + i] = by_score[np.searchsorted(mass[i], needed[i])]
    return thresholds, reached


def _hops_by_products(adjacency: scipy.sparse.csr_array, nodes: IntArray, hops: int) -> np.ndarray:
    """Return the distance of every node from each of some, 0 where it is more than `hops` or none."""
    rows = np.arange(nodes.size)
    hop = np.zeros((nodes.size, adjacency.shape[0]), dtype=np.int8)
    hop[rows, nodes] = -1
    frontier = scipy.sparse.csr_array((np.ones(nodes.size, np.float32), (rows, nodes)), shape=hop.shape)
    for k in range(1, hops + 1):
        reached = (frontier @ adjacency).tocoo()
        fresh = hop[reached.row, reached.col] == 0
        row, column = reached.row[fresh], reached.col[fresh]
        hop[row, column] = k
        frontier = scipy.sparse.csr_array((np.ones(row.size, np.float32), (row, column)), shape=hop.shape)
    hop[rows, nodes] = 0
    return hop
