"""Walking a graph ring by ring, one source at a time, and how deep it is."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part

__all__ = ["component_reach", "deepest_search", "walk"]


@part
def walk(source, indptr, indices, hops, mark, stamps, queue, ends):
    """Queue the nodes within so many hops, ring after ring; return the furthest ring that has nodes, and how many.

    All of them get the mark, which no other may have had before. Where `ends` is given, ring k stands at
    ``queue[ends[k - 1]:ends[k]]``.
    """
    stamps[source] = mark
    queue[0] = source
    first, last, ring = np.int64(0), np.int64(1), np.int64(0)
    if ends is not None:
        ends[0] = 1
    while ring < hops:
        end = last
        while first < end:
            u = queue[first]
            first += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if stamps[v] != mark:
                    stamps[v] = mark
                    queue[last] = v
                    last += 1
        if last == end:
            break
        ring += 1
        if ends is not None:
            ends[ring] = last
    return ring, last


@jit
def deepest_search(sources, indptr, indices, hops, stamps, queue):
    """Return the distance of the furthest node within `hops` of any source; `stamps` holds no marks but sources'."""
    deepest = np.int64(0)
    for i in range(sources.shape[0]):
        depth, _ = walk(sources[i], indptr, indices, hops, sources[i], stamps, queue, None)
        deepest = max(deepest, depth)
        if deepest == hops:
            break
    return deepest


@jit
def component_reach(indptr, indices):
    """Return a number of hops that no two connected nodes of an undirected graph are further apart than."""
    nodes = indptr.shape[0] - 1
    stamps = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, indices.dtype)
    reach = np.int64(0)
    for root in range(nodes):
        if stamps[root] < 0:
            depth, size = walk(root, indptr, indices, nodes, root, stamps, queue, None)
            reach = max(reach, min(2 * depth, size - 1))
    return reach
