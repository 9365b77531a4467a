"""Searches around few nodes by NumPy alone, which finish before the kernels would be compiled; see `Kernels`.

Every step is that of `deep` and `selection`, on whole arrays. Each node has a row of 64-bit words, one bit per source;
one hop joins the rows of the nodes that lead to a node. Transposed, the bits that a hop added are a vector per source,
with calibration nodes in the order of their scores. Masses are counted in integers and summed in the order of the hops,
and all thresholds are found at once by bisection. So the results are those of the kernels, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels.endings import NOMINAL, Counting, Job, Pairs, Pooling, Selection, needed_mass
from napsets.kernels.layout import Layout, count_bits, edges_of
from napsets.kernels.threads import Piece, Progress, Stop, available_threads, run

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: The most words in each of the larger arrays of a piece of work, and the most that are gathered at a time.
_MOST_HELD, _MOST_GATHERED = 1 << 21, 1 << 18
_MOST_WORDS = 32  # 2,048 sources: more would not make a hop cheaper
_EDGE, _COUNT, _LOOKUP = 2.5, 8.0, 12.0  # nanoseconds for each edge, count and look-up


def numpy_nanoseconds(layout: Layout, nodes: int, hops: int, thresholds: int = 0, pooled: bool = False) -> float:
    """Return about how long `search_by_numpy` takes for this many nodes, with this many thresholds for each."""
    adjacency, words = layout.adjacency, layout.mask_words + 1
    walks = _EDGE * (nodes // 64 + 1) * hops * (adjacency.num_edges + 2 * adjacency.num_nodes)
    lookups = thresholds * (hops + 2 * pooled) * (64 * words).bit_length()
    return walks + nodes * (_COUNT * hops * words + _LOOKUP * lookups)


def search_by_numpy(job: Job, *, threads: int | None, progress: Progress | None) -> None:
    """Search around the job's sources and do what is wanted of them, as `jobs.search` does."""
    run(_pieces(job), threads=available_threads(threads), total=job.sources.size, progress=progress)


def _pieces(job: Job) -> Iterator[Piece]:
    layout = job.layout
    indptr, indices = layout.adjacency.reverse()
    offsets, edges = edges_of(indptr, layout.nodes[: layout.size])
    rows = (indptr, indices), (offsets, indices[edges])
    pairs_per_source = -(-job.pairs.splits.size // job.sources.size)
    held_per_word = max(layout.adjacency.num_nodes, 64 * pairs_per_source * max(1, job.hops) * (job.mask_words + 1))
    step = 64 * max(1, min(_MOST_WORDS, _MOST_HELD // held_per_word))
    for first in range(0, job.sources.size, step):
        last = min(first + step, job.sources.size)
        yield last - first, partial(_search, job, rows, first, last)


def _search(job: Job, rows: tuple[tuple[Array, Array], tuple[Array, Array]], first: int, last: int, stop: Stop) -> None:
    pairs, selection, pooling, counting = job.ending(first, last)
    source = np.repeat(np.arange(last - first), np.diff(pairs.offsets))
    vectors = _vectors(job, rows, job.sources[first:last])[source]
    vectors[:, :, :-1] &= pairs.masks[pairs.splits][:, None]
    before = np.zeros(vectors.shape, dtype=np.int64)
    np.cumsum(count_bits(vectors[:, :, :-1]), axis=2, out=before[:, :, 1:])
    if selection is not None:
        pooled_nodes = None if pooling is None else _PooledNodes(source, pairs, pooling)
        _select(vectors, before, selection, pooled_nodes)
    if counting is not None:
        _count(vectors, before, counting)


# -- the walk -------------------------------------------------------------------------------------------------------


def _vectors(job: Job, rows: tuple[tuple[Array, Array], tuple[Array, Array]], sources: Array) -> Words:
    """Return the calibration nodes at each hop of each source as bits: (sources, hops, mask words and one of zeros)."""
    layout, hops = job.layout, job.hops
    known, words = layout.nodes[: layout.size], -(-sources.size // 64)
    vectors = np.zeros((64 * words, hops, job.mask_words + 1), dtype=np.uint64)
    reach = np.zeros((layout.adjacency.num_nodes, words), dtype=np.uint64)
    place = np.arange(sources.size)
    reach[sources, place >> 6] = np.uint64(1) << (place & 63).astype(np.uint64)
    for hop in range(hops):
        added = np.zeros((64 * job.mask_words, words), dtype=np.uint64)
        if hop + 1 == hops:
            added[: layout.size] = _joined_rows(*rows[1], reach) & ~reach[known]
        else:
            after = _joined_rows(*rows[0], reach) | reach
            added[: layout.size] = after[known] & ~reach[known]
            if np.array_equal(after, reach):
                break
            reach = after
        vectors[:, hop, :-1] = _transposed(added)
    return vectors[: sources.size]


def _joined_rows(indptr: Array, indices: Array, reach: Words) -> Words:
    """Return for each row of a graph the union of the bits of the nodes in its columns."""
    joined = np.zeros((indptr.size - 1, reach.shape[1]), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(indptr))
    starts = indptr[filled]
    marks = np.arange(0, indices.size, max(1, _MOST_GATHERED // reach.shape[1]))
    bounds = np.unique(np.append(np.searchsorted(starts, marks), filled.size))
    for first, last in pairwise(bounds):
        begin, end = starts[first], indptr[filled[last - 1] + 1]
        gathered = reach[indices[begin:end]]
        joined[filled[first:last]] = np.bitwise_or.reduceat(gathered, starts[first:last] - begin, axis=0)
    return joined


def _transposed(rows: Words) -> Words:
    """Turn (64·t, words) into (64·words, t) bit by bit: 64 × 64 tiles, in which ever smaller squares are swapped."""
    count, words = rows.shape[0] // 64, rows.shape[1]
    mask, width = _ALL, 64
    while width > 1:
        width >>= 1
        shift = np.uint64(width)
        mask ^= mask << shift
        halves = rows.reshape(count, 32 // width, 2, width, words)
        low, high = halves[:, :, 0], halves[:, :, 1]
        swap = ((low >> shift) ^ high) & mask
        high ^= swap
        low ^= swap << shift
    return rows.reshape(count, 64, words).transpose(2, 1, 0).reshape(64 * words, count)


# -- the endings ----------------------------------------------------------------------------------------------------


class _PooledNodes:
    """The calibration nodes that the pairs pool, however far away: all, and those of the same group; see `Pooling`."""

    def __init__(self, source: Array, pairs: Pairs, pooling: Pooling) -> None:
        split, group, own = pairs.splits, pooling.group[source], pooling.own[source]
        row, last = np.maximum(group, 0), pairs.masks.shape[1]
        self.masks = np.pad(pairs.masks, ((0, 0), (0, 1)))[split]
        self.same = self.masks & np.pad(pooling.group_masks, ((0, 0), (0, 1)))[row]
        self.ranks, self.same_ranks = pooling.ranks[split], pooling.group_ranks[split, row]
        word = np.minimum(own >> 6, last)[:, None]
        bits = np.take_along_axis(self.masks, word, axis=1)[:, 0] >> (own & 63).astype(np.uint64)
        there = (bits & np.uint64(1)).astype(bool)
        self.own = np.where(there, own, np.iinfo(np.int64).max)[:, None]
        size = self.ranks[:, last] - there
        same_size = np.where(group >= 0, self.same_ranks[:, last] - there, 0)
        self.pool = _shares(pooling.pools, size)
        self.alike = _shares(pooling.alikes, same_size)

    def mass(self, pair: Array, number: Array, word: Array, up_to: Words, hop_mass: Array) -> Array:
        """Add to the mass of the hops that of all nodes up to a number."""
        itself = self.own <= number
        everyone = self.ranks[pair, word] + count_bits(self.masks[pair, word] & up_to) - itself
        alike = self.same_ranks[pair, word] + count_bits(self.same[pair, word] & up_to) - itself
        return hop_mass + self.pool * everyone + self.alike * alike


def _shares(weights: Array, sizes: Array) -> Array:
    """Return what one node weighs: (pairs, rows)."""
    return np.where(sizes[:, None] > 0, weights / np.maximum(sizes, 1)[:, None], 0.0)


def _select(vectors: Words, before: Array, selection: Selection, pooled_nodes: _PooledNodes | None) -> None:
    """Write each pair's threshold for each row of weights and each level, and its counts by hop."""
    weights, hops = selection.weights, vectors.shape[1]
    selection.hop_counts[:] = before[:, :, -1]
    pair = np.arange(vectors.shape[0])[:, None]
    last = 64 * (vectors.shape[2] - 1)

    def mass(number: Array) -> Array:
        word, up_to = number >> 6, _ALL >> (63 - (number & 63)).astype(np.uint64)
        hop_mass = np.zeros(number.shape)
        for k in range(hops):
            hop_mass += weights[:, k] * (before[pair, k, word] + count_bits(vectors[pair, k, word] & up_to))
        return hop_mass if pooled_nodes is None else pooled_nodes.mass(pair, number, word, up_to, hop_mass)

    total = mass(np.full((pair.size, weights.shape[0]), last))
    for a, (level, rule) in enumerate(zip(selection.levels.tolist(), selection.rules.tolist(), strict=True)):
        enough = _needed(level, rule, total, selection.rounding)
        low, high = np.zeros(total.shape, dtype=np.int64), np.full(total.shape, last)
        for _ in range(last.bit_length()):
            middle = (low + high) >> 1
            reached = mass(middle) >= enough
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        scores = np.append(selection.scores, np.inf)[np.minimum(low, selection.scores.size)]
        selection.thresholds[:, :, a] = np.where(total < enough, np.inf, np.where(enough <= 0, -np.inf, scores))


def _needed(level: float, rule: int, total: Array, rounding: float) -> Array:
    """Return `needed_mass` of many totals."""
    if rule != NOMINAL:
        return np.array([needed_mass(level, rule, mass, rounding) for mass in total.ravel().tolist()]).reshape(
            total.shape
        )
    needed = level * (1.0 + total) * (1.0 - rounding)
    return np.where(needed > 0, needed, -np.inf)


def _count(vectors: Words, before: Array, counting: Counting) -> None:
    """Write each pair's counts by hop of the nodes below each position."""
    positions = np.broadcast_to(counting.positions, (vectors.shape[0], counting.positions.shape[1]))[:, None]
    below = ~(_ALL << (positions & 63).astype(np.uint64))
    words = np.broadcast_to(positions >> 6, counting.counts.shape)
    bits = np.take_along_axis(vectors, words, axis=2)
    counting.counts[:] = np.take_along_axis(before, words, axis=2) + count_bits(bits & below)
