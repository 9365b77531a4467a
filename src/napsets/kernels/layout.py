"""A graph laid out for searches: nodes numbered by score, rows by number, hubs as vectors, splits as masks.

Marking a node's neighbours takes one step per edge, wherever these lie. Where a node has many, a vector with their bits
already set is faster: it is added to what was met by a pass over its words, several at a time. Most edges that a
search of two hops reads belong to few nodes, because a node of degree d is met from d sides.

Nothing here is compiled, nor loads the compiler: what kernels have to make is made when it is needed.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

#: Words in a block: the bits of one are counted by a single instruction, where there is one.
BLOCK_WORDS = 8
#: Hops that are walked as they are. Beyond them it pays to look up first how deep the graph is, and a bit vector per
#: hop would be nearly empty.
FEW_HOPS = 64
#: What all vectors together may take: they should stay in a cache that is not far.
HUB_BYTES = 8 << 20
#: Edges whose marking takes as long as a pass over one word: a node with more than this for each word is a hub.
EDGES_A_WORD = 0.25
_LEAST_DEGREE = 16
_LINE = 64  # bytes of a line of the cache
#: Where no row is held as a vector.
NO_VECTORS = np.zeros((0, 0), dtype=np.uint64)


class Adjacency(Protocol):
    """What is read of a graph: compressed sparse rows."""

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """Row v is ``indices[indptr[v]:indptr[v + 1]]``."""

    @property
    def indices(self) -> npt.NDArray[Any]:
        """Neighbours by id, int32 or int64."""

    @property
    def reverse(self) -> Adjacency:
        """The rows along edges that go the other way."""

    @property
    def num_nodes(self) -> int:
        """Number of rows."""

    @property
    def num_edges(self) -> int:
        """Number of stored entries."""


class HubRows(NamedTuple):
    """Where rows end, and the vectors of those that are held as such."""

    #: For each number, where its row of neighbours ends; for a hub, ``~h`` instead, which is less than any start.
    ends: npt.NDArray[np.int64]
    #: The same for the last hop, where only calibration nodes matter: they come first in each row.
    last_ends: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.uint64]  #: ``vectors[h]`` has the bits of a hub's neighbours, padded to whole blocks.


class Layout:
    """An adjacency whose calibration nodes are numbered in ascending order of their scores.

    Each calibration node comes once, and ``scores[i]`` is that of ``calibration[i]``: whatever they are to be numbered
    by.
    """

    def __init__(self, adjacency: Adjacency, calibration: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> None:
        self.adjacency = adjacency
        self.calibration = calibration
        order = np.argsort(scores)
        if (scores[order[1:]] == scores[order[:-1]]).any():
            # Of equal scores the first stays first: sums in this order are then the same on every processor.
            order = np.argsort(scores, kind="stable")
        self.sorted_scores: npt.NDArray[np.float64] = scores[order].astype(np.float64, copy=False)
        others = np.ones(adjacency.num_nodes, dtype=bool)
        others[calibration] = False
        #: ``nodes[number]`` is a node and ``numbers[node]`` its number: calibration nodes first, by score.
        self.nodes: npt.NDArray[np.int64] = np.concatenate([calibration[order], np.flatnonzero(others)])
        self.numbers = np.empty(adjacency.num_nodes, dtype=adjacency.indices.dtype)
        self.numbers[self.nodes] = np.arange(adjacency.num_nodes)
        #: Where the row of a number starts and stops.
        self.starts = adjacency.indptr[:-1][self.nodes]
        self.stops = adjacency.indptr[1:][self.nodes]
        #: What `renumber` returns, once it was needed.
        self.renumbered: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] | None = None

    @property
    def size(self) -> int:
        """Number of calibration nodes: numbers below it are theirs."""
        return int(self.calibration.size)

    @property
    def mask_words(self) -> int:
        """Words that hold a bit for each calibration node, in whole blocks."""
        return -(-self.size // (64 * BLOCK_WORDS)) * BLOCK_WORDS

    def renumber(self, threads: int = 1) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the neighbours by number instead of id, and where those that calibrate end in each row.

        The first is a copy of the graph's largest array, in which the calibration nodes of each row come first. It
        is made once, when it pays.
        """
        if self.renumbered is None:
            from napsets.kernels.csr import renumbered

            adjacency = self.adjacency
            columns, middles = renumbered(adjacency.indptr, adjacency.indices, self.numbers, self.size, threads)
            self.renumbered = columns, middles[self.nodes]
        return self.renumbered

    @cached_property
    def hub_degree(self) -> int:
        """The degree from which on a node is a hub: its row is held as a bit vector, where searches want that."""
        return least_hub_degree(self.stops - self.starts)

    @cached_property
    def hub_rows(self) -> HubRows:
        """The rows of hubs as bit vectors."""
        columns, middles = self.renumber()
        return hub_rows(self.hub_degree, self.starts, middles, self.stops, columns)

    def masks(self, splits: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.uint64]:
        """Pack, for each split, which calibration nodes it uses into words: bit b of word w is number 64·w + b.

        ``splits[s, i]`` says it of ``calibration[i]``; None stands for one split that uses all of them.
        """
        flags = np.zeros((1 if splits is None else splits.shape[0], self.mask_words * 64), dtype=bool)
        if splits is None:
            flags[:, : self.size] = True
        else:
            flags[:, self.numbers[self.calibration]] = splits
        return pack(flags)


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
    """Make the vectors of all nodes that have at least this many neighbours."""
    from napsets.kernels.csr import fill_vectors

    hubs = np.flatnonzero(stops - starts >= least_degree)
    words = (starts.size + 63) // 64
    vectors = np.zeros((hubs.size, (words + 7) // 8 * 8), dtype=np.uint64)
    fill_vectors(*map(read_only, (hubs, starts, stops, columns)), vectors)
    ends, last_ends = stops.copy(), middles.copy()
    ends[hubs] = last_ends[hubs] = ~np.arange(hubs.size)
    return HubRows(ends, last_ends, vectors)


def count_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return how many bits are set in each word; NumPy counts them itself from version 2 on."""
    if hasattr(np, "bitwise_count"):
        counts: npt.NDArray[np.uint8] = np.bitwise_count(words)
        return counts
    by_word = np.ascontiguousarray(words)[..., None].view(np.uint8)
    return np.asarray(np.unpackbits(by_word, axis=-1).sum(axis=-1, dtype=np.uint8))


def pack(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Pack the last axis, whole words of flags, into bits."""
    return np.packbits(flags, axis=-1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def edges_of(indptr: npt.NDArray[np.int64], nodes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return where the rows of some nodes begin, were they one after the other, and which edges stand in them."""
    sizes = np.diff(indptr)[nodes]
    offsets = np.append(0, np.cumsum(sizes))
    return offsets, np.arange(offsets[-1]) + np.repeat(indptr[:-1][nodes] - offsets[:-1], sizes)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to.

    To Numba, arrays that can be written to and arrays that cannot are of two types. What kernels only read is
    passed to them like this, so that they are compiled once for both.
    """
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def lined_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros for a kernel to work in, from the start of a line of the cache on.

    NumPy's own may begin anywhere, and then every read of eight words touches two lines. Kernels do not make such
    arrays themselves, because they would take longer to compile.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)
