"""Breadth-first search from 512 sources at once, one bit per source.

Each node has a row of eight words. Bit j of a node's row says that source j reaches it within the hops walked so
far, so one hop for all sources is ``row[v] |= row[u]`` for every edge (u, v): one cache line per edge serves 512
searches. While few rows are filled, they are pushed to their neighbours (top-down); once most are, every node pulls
from its neighbours (bottom-up) and stops as soon as all sources have reached it; in a directed graph, from those whose
edges lead to it. A node's hop is the step at which its bit appears.

For the selection, the bits that appeared are transposed in tiles of 64 × 64 from one row per node to one vector per
source, with calibration nodes in score order, where `selection` counts them. No list of pairs is ever written.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import borrowed, jit, part
from napsets.kernels.layout import Array, Ending, ending_scratch, read_only
from napsets.kernels.selection import finish

WORDS = 8  # 512 sources


@jit
def start(sources, indptr, indices, reach, ring):
    """Write hop 0 into `reach` and hops 0 and 1 into `ring`."""
    reach[:] = np.uint64(0)
    ring[:] = np.uint64(0)
    for j in range(sources.shape[0]):
        s = sources[j]
        w = j >> 6
        bit = np.uint64(1) << np.uint64(j & 63)
        reach[s, w] |= bit
        ring[s, w] |= bit
        for e in range(indptr[s], indptr[s + 1]):
            ring[indices[e], w] |= bit


@jit
def active_edges(first, last, indptr, reach):
    """Count the edges that leave nodes which any source has reached."""
    edges = np.int64(0)
    for u in range(first, last):
        row = reach[u]
        if row[0] | row[1] | row[2] | row[3] | row[4] | row[5] | row[6] | row[7]:
            edges += indptr[u + 1] - indptr[u]
    return edges


@jit
def push(first, last, indptr, indices, reach, ring):
    """Add the rows of the nodes in a range to their neighbours' rows in `ring`."""
    for u in range(first, last):
        r0, r1, r2, r3 = reach[u, 0], reach[u, 1], reach[u, 2], reach[u, 3]
        r4, r5, r6, r7 = reach[u, 4], reach[u, 5], reach[u, 6], reach[u, 7]
        if r0 | r1 | r2 | r3 | r4 | r5 | r6 | r7:
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                ring[v, 0] |= r0
                ring[v, 1] |= r1
                ring[v, 2] |= r2
                ring[v, 3] |= r3
                ring[v, 4] |= r4
                ring[v, 5] |= r5
                ring[v, 6] |= r6
                ring[v, 7] |= r7


@jit
def pull(first, last, indptr, indices, everyone, wanted, reach, ring):
    """Write into `ring` the rows of the wanted nodes in a range, joined with those of their neighbours.

    `everyone` has the bits of all sources: a row that has them too needs no more neighbours.
    """
    e0, e1, e2, e3 = everyone[0], everyone[1], everyone[2], everyone[3]
    e4, e5, e6, e7 = everyone[4], everyone[5], everyone[6], everyone[7]
    for v in range(first, last):
        if not wanted[v]:
            continue
        r0, r1, r2, r3 = reach[v, 0], reach[v, 1], reach[v, 2], reach[v, 3]
        r4, r5, r6, r7 = reach[v, 4], reach[v, 5], reach[v, 6], reach[v, 7]
        e = indptr[v]
        end = indptr[v + 1]
        while e < end:
            missing = (
                (e0 & ~r0) | (e1 & ~r1) | (e2 & ~r2) | (e3 & ~r3) | (e4 & ~r4) | (e5 & ~r5) | (e6 & ~r6) | (e7 & ~r7)
            )
            if missing == np.uint64(0):
                break
            for i in range(e, min(e + 8, end)):  # looking whether all have arrived after each edge would cost more
                u = indices[i]
                r0 |= reach[u, 0]
                r1 |= reach[u, 1]
                r2 |= reach[u, 2]
                r3 |= reach[u, 3]
                r4 |= reach[u, 4]
                r5 |= reach[u, 5]
                r6 |= reach[u, 6]
                r7 |= reach[u, 7]
            e += 8
        ring[v, 0] = r0
        ring[v, 1] = r1
        ring[v, 2] = r2
        ring[v, 3] = r3
        ring[v, 4] = r4
        ring[v, 5] = r5
        ring[v, 6] = r6
        ring[v, 7] = r7


@part
def _transpose_tile(tile):
    """Transpose 64 × 64 bits in place by swapping ever smaller squares."""
    width = 32
    mask = np.uint64(0x00000000FFFFFFFF)
    while width > 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for i in range(block, block + width):
                swap = ((tile[i] >> shift) ^ tile[i + width]) & mask
                tile[i + width] ^= swap
                tile[i] ^= swap << shift
        width >>= 1
        mask ^= mask << np.uint64(width)


@jit
def transpose(first, last, order, count, before, after, hop, vectors):
    """Turn the bits that `after` has and `before` has not into one vector per source.

    Words first..last of the vectors are written: ``vectors[j, hop, w]`` bit i is source j's bit in the row of node
    ``order[64·w + i]``. Nodes from `count` on do not calibrate.
    """
    tiles = np.empty((WORDS, 64), np.uint64)
    for w in range(first, last):
        for i in range(64):
            number = w * 64 + i
            if number < count:
                v = order[number]
                for g in range(WORDS):
                    tiles[g, i] = after[v, g] & ~before[v, g]
            else:
                for g in range(WORDS):
                    tiles[g, i] = np.uint64(0)
        for g in range(WORDS):
            _transpose_tile(tiles[g])
            for i in range(64):
                vectors[g * 64 + i, hop, w] = tiles[g, i]


def finish_all(first: int, last: int, vectors: Array, start: int, ending: Ending) -> None:
    """Select thresholds and count for all pairs of the sources first..last, from vectors that begin with `start`."""
    room = ending_scratch(vectors.shape[1], ending[0].mask.size)
    _finish_all(first, last, read_only(vectors), start, *ending, room)


@jit
def _finish_all(first, last, vectors, start, pairs, selection, pooling, counting, room):
    pairs, room = borrowed(pairs), borrowed(room)
    selection, pooling, counting = borrowed(selection), borrowed(pooling), borrowed(counting)
    for i in range(first, last):
        for p in range(pairs.offsets[i], pairs.offsets[i + 1]):
            finish(i, p, vectors[i - start], None, room, pairs, selection, pooling, counting)
