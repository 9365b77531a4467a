"""Rows of well connected nodes as bit vectors.

Marking a node's neighbours takes a step an edge, wherever these lie. Where a node has many, a vector with their bits
already set is faster: it is added to what was found by a pass over its words, several at a time. Most edges that a
search of two hops reads belong to few nodes, because a node of degree d is met from d sides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, read_only

__all__ = ["NO_VECTORS", "HubRows", "hub_rows", "least_hub_degree"]

#: What all vectors together may take: they should stay in a cache that is not far.
HUB_BYTES = 8 << 20
#: Edges whose marking takes as long as a pass over one word: a node with more than this for each word is a hub.
EDGES_A_WORD = 0.25
_LEAST_DEGREE = 16
#: Where no row is held as a vector.
NO_VECTORS = np.zeros((0, 0), dtype=np.uint64)


class HubRows(NamedTuple):
    """Where rows end, and the vectors of those that are held as such.

    Attributes
    ----------
    ends : numpy.ndarray
        For each number, where its row of neighbours ends; for a hub, ``~h`` instead, which is less than any start.
    last_ends : numpy.ndarray
        The same for the last hop, where only calibration nodes matter: they come first in each row.
    vectors : numpy.ndarray
        ``vectors[h]`` has the bits of a hub's neighbours, padded to whole blocks.
    """

    ends: npt.NDArray[np.int64]
    last_ends: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.uint64]


def least_hub_degree(degrees: npt.NDArray[np.int64]) -> int:
    """Return the degree from which on a node is a hub: where a vector pays, and as far as all of them have room."""
    words = (degrees.size + 63) // 64
    least = max(_LEAST_DEGREE, int(EDGES_A_WORD * words)) + 1
    room = HUB_BYTES // (8 * words)
    candidates = degrees[degrees >= least]
    if candidates.size <= room:
        return least
    if room == 0:
        return int(candidates.max()) + 1
    smallest = int(np.partition(candidates, candidates.size - room)[candidates.size - room])
    return smallest + int((candidates >= smallest).sum() > room)  # all nodes of one degree, or none of them


def hub_rows(
    least_degree: int,
    starts: npt.NDArray[np.int64],
    middles: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
) -> HubRows:
    """Make the vectors of all nodes that have at least so many neighbours."""
    hubs = np.flatnonzero(stops - starts >= least_degree)
    words = (starts.size + 63) // 64
    vectors = np.zeros((hubs.size, (words + 7) // 8 * 8), dtype=np.uint64)
    _fill(*map(read_only, (hubs, starts, stops, columns)), vectors)
    ends, last_ends = stops.copy(), middles.copy()
    ends[hubs] = last_ends[hubs] = ~np.arange(hubs.size)
    return HubRows(ends, last_ends, vectors)


@jit
def _fill(hubs, starts, stops, columns, vectors):
    for h in range(hubs.shape[0]):
        for e in range(starts[hubs[h]], stops[hubs[h]]):
            v = columns[e]
            vectors[h, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
