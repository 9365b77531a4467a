"""The arguments of search kernels: a graph laid out for searches, and records of the results to compute.

Nodes are numbered by score, and rows go by number. Marking a node's neighbours takes one step per edge, wherever these
lie. Where a node has many, a vector with their bits already set is faster: it is added to what was met by a pass over
its words, several at a time. Most edges that a search of two hops reads belong to few nodes, because a node of degree d
is met from d sides.

Records go to the kernels unchanged. A kernel is compiled for the records it gets; None stands for a result that is not
wanted and costs nothing. Nothing here is compiled or loads the compiler.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Record = TypeVar("Record", bound=tuple[Any, ...] | None)

#: Words in a block: the bits of one are counted by a single instruction, where there is one.
BLOCK_WORDS = 8
#: The most bytes of all vectors: they should stay in a near cache.
HUB_BYTES = 8 << 20
#: Edges whose marking takes as long as a pass over one word: a node with more than this for each word is a hub.
EDGES_A_WORD = 0.25
#: Edges whose marking takes as long as adding one word of a hub's vector.
_HUB_EDGES_A_WORD = 0.07
_LEAST_DEGREE = 16
_LINE = 64  # bytes of a line of the cache
#: Where no row is held as a vector.
NO_VECTORS = np.zeros((0, 0), dtype=np.uint64)


#: mass ≥ level·(1 + total)·(1 − rounding): a level that is reached up to rounding counts as reached.
NOMINAL = 0
#: mass / (1 + total) ≥ level, as float64 divides.
AT_LEAST = 1
#: mass / (1 + total) > level, as float64 divides.
ABOVE = 2


class Adjacency(Protocol):
    """The parts of a graph that searches read: compressed sparse rows."""

    @property
    def indptr(self) -> Ints:
        """Row v is ``indices[indptr[v]:indptr[v + 1]]``."""

    @property
    def indices(self) -> Array:
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
    """The ends of rows, and the vectors of the rows that are held as vectors."""

    #: For each number, where its row of neighbours ends; for a hub, ``~h`` instead, which is less than any start.
    ends: Ints
    #: The same for the last hop, where only calibration nodes matter: they come first in each row.
    last_ends: Ints
    vectors: Words  #: ``vectors[h]`` has the bits of a hub's neighbours, padded to whole blocks.


class Layout:
    """An adjacency whose calibration nodes are numbered in ascending order of their scores.

    Each calibration node comes once, and ``scores[i]`` is that of ``calibration[i]``: whatever they are to be numbered
    by.
    """

    def __init__(self, adjacency: Adjacency, calibration: Ints, scores: Array) -> None:
        self.adjacency = adjacency
        self.calibration = calibration
        order = np.argsort(scores)
        if (scores[order[1:]] == scores[order[:-1]]).any():
            # Of equal scores the first stays first: sums in this order are then the same on every processor.
            order = np.argsort(scores, kind="stable")
        self.sorted_scores: Floats = scores[order].astype(np.float64, copy=False)
        others = np.ones(adjacency.num_nodes, dtype=bool)
        others[calibration] = False
        #: ``nodes[number]`` is a node and ``numbers[node]`` its number: calibration nodes first, by score.
        self.nodes: Ints = np.concatenate([calibration[order], np.flatnonzero(others)])
        self.numbers = np.empty(adjacency.num_nodes, dtype=adjacency.indices.dtype)
        self.numbers[self.nodes] = np.arange(adjacency.num_nodes)
        #: Where the row of a number starts and stops.
        self.starts = adjacency.indptr[:-1][self.nodes]
        self.stops = adjacency.indptr[1:][self.nodes]
        #: The result of `renumber`, once computed.
        self.renumbered: tuple[Array, Ints] | None = None

    @property
    def size(self) -> int:
        """Number of calibration nodes: numbers below it are theirs."""
        return int(self.calibration.size)

    @property
    def mask_words(self) -> int:
        """Words that hold a bit for each calibration node, in whole blocks."""
        return -(-self.size // (64 * BLOCK_WORDS)) * BLOCK_WORDS

    def renumber(self, threads: int = 1) -> tuple[Array, Ints]:
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
        """The smallest degree of a hub, whose row is held as a bit vector."""
        return least_hub_degree(self.stops - self.starts)

    @cached_property
    def _mean_rows(self) -> tuple[float, float]:
        """The mean degree of nodes met along an edge, and the mean work to mark their rows, in edges."""
        degrees = (self.stops - self.starts).astype(np.float64)
        work = np.where(degrees < self.hub_degree, degrees, _HUB_EDGES_A_WORD * degrees.size / 64)
        edges = max(1.0, float(degrees.sum()))
        # Not by products of vectors: BLAS would start its threads, and add in any order.
        return float((degrees * degrees).sum()) / edges, float((degrees * work).sum()) / edges

    def edges_read(self, hops: int) -> float:
        """Estimate the edges that a search of this many hops from one node reads.

        It is the mean over all nodes, as if the graph had no cycles, but never more than all edges. The row of a hub
        counts as what adding its vector takes.
        """
        nodes, edges = self.adjacency.num_nodes, self.adjacency.num_edges
        degree, work = self._mean_rows
        ring = read = edges / nodes
        for hop in range(2, hops + 1):
            read += ring * work * (1.0 if hop < hops else self.size / nodes)  # the last hop looks for calibration nodes
            ring = min(ring * max(0.0, degree - 1.0), float(nodes))
        return min(read, float(edges))

    @cached_property
    def hub_rows(self) -> HubRows:
        """The rows of hubs as bit vectors."""
        from napsets.kernels.csr import fill_vectors

        columns, middles = self.renumber()
        hubs = np.flatnonzero(self.stops - self.starts >= self.hub_degree)
        vectors = np.zeros((hubs.size, -(-self.nodes.size // 512) * 8), dtype=np.uint64)
        fill_vectors(*map(read_only, (hubs, self.starts, self.stops, columns)), vectors)
        ends, last_ends = self.stops.copy(), middles.copy()
        ends[hubs] = last_ends[hubs] = ~np.arange(hubs.size)
        return HubRows(ends, last_ends, vectors)

    @cached_property
    def mask(self) -> Words:
        """The numbers of the calibration nodes as words: bit b of word w is number 64·w + b."""
        return pack(np.arange(64 * self.mask_words) < self.size)


def least_hub_degree(degrees: Ints) -> int:
    """Return the smallest degree of a hub: where a vector saves time, and where all vectors fit into `HUB_BYTES`."""
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


class Pairs(NamedTuple):
    """The results for each source: a pair is a source and an entry of the nodes that were asked for."""

    offsets: Array  #: int64 of shape (sources + 1,). The pairs of source i are ``offsets[i]..offsets[i + 1]``.
    mask: Array  #: uint64 of shape (mask words,). The calibration nodes, bit b of word w for number 64·w + b.


class Reach(NamedTuple):
    """The shares of the mass that thresholds must reach, and the weights of calibration nodes near and far."""

    levels: Array  #: float64 of shape (levels,). Shares of 1 + total mass to be reached.
    rounding: float  #: The part of the mass that is forgiven where the rule is `NOMINAL`.
    #: int8 of shape (levels,), optional. The meaning of reaching each level: `NOMINAL` (the default), `AT_LEAST` or
    #: `ABOVE`.
    rules: Array | None = None
    #: float64 of shape (rows,), optional. The total weight of all calibration nodes, and of those in the node's group;
    #: 0 by default.
    pools: Array | None = None
    alikes: Array | None = None
    #: integers of shape (nodes of the graph,), optional. The group of each node, negative for none.
    groups: Array | None = None


class Selection(NamedTuple):
    """Thresholds are wanted."""

    weights: Array  #: float64 of shape (rows, hops). Weights by hop; each row gives other thresholds.
    levels: Array  #: float64 of shape (levels,). Shares of the mass to be reached, 1−α.
    rules: Array  #: int8 of shape (levels,). The meaning of reaching: `NOMINAL`, `AT_LEAST` or `ABOVE`.
    rounding: float  #: The part of the mass that the nominal rule forgives.
    scores: Array  #: float64 of shape (calibration nodes,). Ascending.
    #: float64 of shape (pairs, rows, levels). Written: +∞ where the level is not reached, −∞ where it needs no mass.
    thresholds: Array
    hop_counts: Array  #: int64 of shape (pairs, hops). Written: calibration nodes by hop.


class Pooling(NamedTuple):
    """All calibration nodes count, near or far, and those in the source's group count more."""

    #: float64 of shape (rows,). What all calibration nodes weigh together, and what those of the source's group weigh
    #: together on top.
    pools: Array
    alikes: Array
    #: int64 of shape (sources,). The number of each source, and its group; −1 where it has none.
    own: Array
    group: Array
    group_masks: Array  #: uint64 of shape (groups, mask words). The calibration nodes of each group.
    group_ranks: Array  #: int32 or int64 of shape (groups, mask words + 1). Nodes of a group before each word.


class Counting(NamedTuple):
    """Counts by hop are wanted."""

    positions: Array  #: int64 of shape (pairs, positions). Nodes with a number below them are counted.
    counts: Array  #: int32 or int64 of shape (pairs, hops, positions). Written.


class EndingScratch(NamedTuple):
    """Scratch arrays of an ending."""

    running: Array  #: int64 of shape (hops, blocks + 1). Bits by hop before each block.
    counts: Array  #: int64 of shape (hops, 2). Bits by hop before a word and after it.


def ending_scratch(hops: int, mask_words: int) -> EndingScratch:
    """Return room for neighbourhoods of this many hops."""
    return EndingScratch(np.empty((hops, mask_words // BLOCK_WORDS + 1), np.int64), np.empty((hops, 2), np.int64))


#: The arrays that kernels write.
_WRITTEN = ("thresholds", "hop_counts", "counts")


def read_only_record(record: Record) -> Record:
    """Return a record whose arrays are read-only, except for results; None stays None."""
    if record is None:
        return record
    named: Any = record
    values = (
        value if name in _WRITTEN or not isinstance(value, np.ndarray) else read_only(value)
        for name, value in named._asdict().items()
    )
    fixed: Record = type(named)(*values)
    return fixed


#: Pairs; a selection, with a pooling or without; a counting. None where it is not wanted.
Ending = tuple[Pairs, Selection | None, Pooling | None, Counting | None]


def read_only_records(ending: Ending) -> Ending:
    """Return read-only views of all records."""
    pairs, selection, pooling, counting = ending
    return (
        read_only_record(pairs), read_only_record(selection), read_only_record(pooling), read_only_record(counting)
    )  # fmt: skip


class SearchJob(NamedTuple):
    """The sources to search around, and the results to compute for each of their pairs."""

    layout: Layout  #: Where to search.
    sources: Ints  #: Node ids, in the order of handling, each once.
    hops: int  #: Depth of the search.
    ending: Ending


def count_bits(words: Words) -> npt.NDArray[np.uint8]:
    """Count the set bits of each word; NumPy has a function for it from version 2 on."""
    if hasattr(np, "bitwise_count"):
        counts: npt.NDArray[np.uint8] = np.bitwise_count(words)
        return counts
    by_word = np.ascontiguousarray(words)[..., None].view(np.uint8)
    return np.asarray(np.unpackbits(by_word, axis=-1).sum(axis=-1, dtype=np.uint8))


def pack(flags: npt.NDArray[np.bool_]) -> Words:
    """Pack the last axis, whole words of flags, into bits."""
    return np.packbits(flags, axis=-1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def edges_of(indptr: Ints, nodes: Array) -> tuple[Array, Ints]:
    """Return the offsets of the rows of `nodes`, as if concatenated, and the positions of their edges."""
    sizes = np.diff(indptr)[nodes]
    offsets = np.append(0, np.cumsum(sizes))
    return offsets, np.arange(offsets[-1]) + np.repeat(indptr[:-1][nodes] - offsets[:-1], sizes)


def read_only(array: Array) -> Array:
    """Return a view that cannot be written to.

    To Numba, arrays that can be written to and arrays that cannot are of two types. What kernels only read is
    passed to them like this, so that they are compiled once for both.
    """
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def cache_aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return zeros for a kernel to work in, from the start of a line of the cache on.

    NumPy's own may begin anywhere, and then every read of eight words touches two lines. Kernels do not make such
    arrays themselves, because they would take longer to compile.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)
