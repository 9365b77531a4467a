"""The balls of a graph, cut out one after the other."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part


@part
def _walk(source, indptr, indices, hops, alive, queue):
    """Queue the nodes within this many hops that are alive, ring by ring, and mark them gone; return their number."""
    alive[source] = False
    queue[0] = source
    first, last = np.int64(0), np.int64(1)
    for _ in range(hops):
        end = last
        while first < end:
            u = queue[first]
            first += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if alive[v]:
                    alive[v] = False
                    queue[last] = v
                    last += 1
        if last == end:
            break
    return last


@jit
def cut_balls(indptr, indices, roots, radius, alive, members):
    """Take the ball around each root that is still alive, among the nodes that are alive, and remove it.

    Writes the balls' nodes one after the other into `members` and returns their offsets.
    """
    offsets = np.zeros(roots.shape[0] + 1, np.int64)
    balls = 0
    for r in range(roots.shape[0]):
        if alive[roots[r]]:
            start = offsets[balls]
            offsets[balls + 1] = start + _walk(roots[r], indptr, indices, radius, alive, members[start:])
            balls += 1
    return offsets[: balls + 1]
