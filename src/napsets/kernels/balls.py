"""Cutting a graph into balls, and comparing neighbours' labels."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit

__all__ = ["cut_balls", "same_label_shares"]


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
