"""Cutting a graph into balls, measuring its depth, and comparing neighbours' labels."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit

__all__ = ["component_reach", "cut_balls", "deepest_search", "same_label_shares"]


@jit
def cut_balls(indptr, indices, roots, radius, alive, members):
    """Take the ball around each root that is still alive, within what is alive, and remove it.

    Writes the balls' nodes one after the other into `members` and returns their offsets.
    """
    offsets = np.zeros(roots.shape[0] + 1, np.int64)
    balls = 0
    last = np.int64(0)
    for r in range(roots.shape[0]):
        root = roots[r]
        if not alive[root]:
            continue
        alive[root] = False
        first = last
        members[last] = root
        last += 1
        for _ in range(radius):
            if first == last:  # the ball has no more nodes, however large its radius
                break
            end = last
            while first < end:
                u = members[first]
                first += 1
                for e in range(indptr[u], indptr[u + 1]):
                    v = indices[e]
                    if alive[v]:
                        alive[v] = False
                        members[last] = v
                        last += 1
        balls += 1
        offsets[balls] = last
    return offsets[: balls + 1]


@jit
def _search_depth(source, indptr, indices, hops, mark, stamps, queue):
    """Return the distance of the furthest node within so many hops, and how many there are; all get the mark."""
    stamps[source] = mark
    queue[0] = source
    first, last, depth = np.int64(0), np.int64(1), np.int64(0)
    while True:
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
        if last == end or depth == hops:
            return depth, last
        depth += 1


@jit
def deepest_search(sources, indptr, indices, hops, stamps, queue):
    """Return the distance of the furthest node within `hops` of any source; `stamps` holds no marks but sources'."""
    deepest = np.int64(0)
    for i in range(sources.shape[0]):
        depth, _ = _search_depth(sources[i], indptr, indices, hops, sources[i], stamps, queue)
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
            depth, size = _search_depth(root, indptr, indices, nodes, root, stamps, queue)
            reach = max(reach, min(2 * depth, size - 1))
    return reach


@jit
def same_label_shares(indptr, indices, labels, shares):
    """Write, for each labelled node, the share of its labelled neighbours that have its label; 0 if it has none."""
    for v in range(labels.shape[0]):
        same = 0
        known = 0
        for e in range(indptr[v], indptr[v + 1]):
            other = labels[indices[e]]
            known += other >= 0
            same += other == labels[v]
        shares[v] = same / known if known > 0 and labels[v] >= 0 else 0.0
