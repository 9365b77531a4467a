"""Drawing the edges of a degree-corrected block model, one hash an edge."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.hashing import hash64, to_unit

__all__ = ["draw_edges"]


@part
def _find(running, guide, share, value):
    """Return the first position whose running sum exceeds `value`, starting where the guide table points."""
    last = running.shape[0] - 1
    position = np.int64(guide[min(np.int64(value * share), guide.shape[0] - 1)])
    while position > 0 and running[position - 1] > value:
        position -= 1
    while position < last and running[position] <= value:
        position += 1
    return position


@jit
def draw_edges(running, order, block_ends, same, seed, source, target):
    """Fill `source` and `target`, each edge from the hash of its number.

    Nodes stand block by block in `order`; `running` holds the running sum of their weights, `block_ends` that sum
    at the end of each block. Sources are stratified, so each node starts its expected number of edges up to one;
    the target lies in the source's block with probability `same`, and is drawn by weight there or outside.
    """
    nodes, edges = running.shape[0], source.shape[0]
    total = running[nodes - 1]
    guide = np.zeros(nodes, np.int64)
    share = nodes / total
    position = 0
    for cell in range(nodes):
        while position < nodes - 1 and running[position] <= cell / share:
            position += 1
        guide[cell] = position
    block = 0
    for e in range(edges):
        word = hash64(np.uint64(seed) ^ hash64(np.uint64(e)))
        at = min((e + to_unit(word)) * (total / edges), total * (1.0 - 1e-16))
        while block < block_ends.shape[0] - 1 and block_ends[block] <= at:
            block += 1
        low = 0.0 if block == 0 else block_ends[block - 1]
        width = block_ends[block] - low
        word = hash64(word)
        inside = to_unit(word) < same or width >= total
        draw = to_unit(hash64(word))
        if inside:
            goal = low + draw * width
        else:
            goal = draw * (total - width)
            if goal >= low:
                goal += width
        source[e] = order[_find(running, guide, share, at)]
        target[e] = order[_find(running, guide, share, goal)]
