"""Random edges as hashes of counters, the same on any thread."""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part


@jit
def hash64(word):
    """Return SplitMix64's output for a state: a bijection that scatters neighbouring words."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@jit
def to_unit(word):
    """Turn a word into a number in [0, 1) by its upper 53 bits."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@part
def _first_above(running, guide, share, value):
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
        source[e] = order[_first_above(running, guide, share, at)]
        target[e] = order[_first_above(running, guide, share, goal)]
