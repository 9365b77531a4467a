"""How many hops there is anything to find at: a search deeper than the graph is the same search."""

from __future__ import annotations

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.kernels.layout import FEW_HOPS

__all__ = ["check_room", "useful_hops"]

_SOURCES_AT_ONCE = 256  # between two looks at whether Ctrl-C was pressed
_MOST_BYTES = 1 << 33  # that counts and bits by hop may take in a deep search


def useful_hops(graph: Graph, nodes: IntArray, hops: int) -> int:
    """Return `hops`, or fewer where no node is further than that from any of `nodes`.

    Few hops are returned as they are, without a look at the graph. In an undirected graph, no two nodes of a component
    are further apart than twice the depth of a search from any of its nodes, which takes one pass over the edges to
    find. In a directed one `nodes` are searched from, until one of them reaches as far as `hops`.
    """
    if hops <= FEW_HOPS:
        return hops
    from napsets.kernels.walk import component_reach, deepest_search

    if not graph.directed:
        return min(hops, int(component_reach(graph.indptr, graph.indices)))
    sources = np.unique(nodes)
    stamps = np.full(graph.num_nodes, -1, dtype=np.int64)
    queue = np.empty(graph.num_nodes, dtype=graph.indices.dtype)
    deepest = 0
    for start in range(0, sources.size, _SOURCES_AT_ONCE):
        part = sources[start : start + _SOURCES_AT_ONCE]
        deepest = max(deepest, int(deepest_search(part, graph.indptr, graph.indices, hops, stamps, queue)))
        if deepest == hops:
            break
    return min(hops, deepest)


def check_room(nodes: int, hops: int) -> None:
    """Refuse a search so deep that a count for each node and hop cannot be held, nor put in order."""
    if hops <= FEW_HOPS:
        return
    needed = 16 * hops * nodes
    if needed > _MOST_BYTES:
        raise InvalidInputError(
            f"`hops` must be fewer: this graph is up to {hops:,} hops deep, and the counts of {nodes:,} nodes by hop "
            f"would take {needed / 2**30:,.0f} GiB; the most is {_MOST_BYTES >> 30}. Predict fewer nodes at a time, or "
            f"take fewer hops."
        )
