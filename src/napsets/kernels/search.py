"""Thresholds from neighbourhoods, and counts by hop.

Nodes may repeat and come in any order. Results are the same to the bit on any number of threads. A few nodes of a
small graph are searched here by NumPy, in less time than compiling kernels takes; for all others see `jobs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from napsets.kernels.layout import (
    ABOVE,
    NOMINAL,
    Array,
    Counting,
    Ending,
    Floats,
    Ints,
    Layout,
    Pairs,
    Pooling,
    Reach,
    SearchJob,
    Selection,
    Words,
    count_bits,
    pack,
    read_only,
    read_only_records,
)
from napsets.kernels.threads import Progress, available_threads, ranges, run_ranges, worth_compiling


def find_thresholds(
    layout: Layout,
    nodes: Ints,
    weights: Floats,
    reach: Reach,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    strategy: str | None = None,
) -> tuple[Floats, Ints]:
    """Return the smallest score up to which the calibration nodes around each node have a share of the mass.

    The mass up to a score is Σ_k w(k)·c_k + (pool/n)·c + (alike/n_same)·c_same, summed in this order: of the
    calibration nodes other than the node itself, c_k are those at hop k, c all of them and c_same those of its group,
    each up to the score; n and n_same are how many there are in all. Terms without any node are left out.

    Parameters
    ----------
    weights : float64 of shape (rows, hops)
        w(k) for each row, from hop 1 on. Without hops nothing is searched.
    strategy : str, optional
        "few", "dense" or "deep"; by default the one that is expected to be the fastest.

    Returns
    -------
    values : float64 of shape (nodes, rows, levels)
        +∞ where the level is not reached, −∞ where it needs no mass.
    hop_counts : int64 of shape (nodes, hops)
        Calibration nodes at each hop.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    rows, hops = weights.shape
    selection = selection_of(layout, weights, reach, nodes.size)
    if nodes.size:
        strategy = strategy or _fastest(layout, nodes.size, hops, rows * reach.levels.size)
        order, sources, pairs = _pairs(layout, nodes, hops, strategy)
        pooling = pooling_of(layout, sources, reach, rows)
        _search(layout, sources, hops, (pairs, selection, pooling, None), threads, progress, strategy)
        return as_ordered(order, selection.thresholds), as_ordered(order, selection.hop_counts)
    return selection.thresholds, selection.hop_counts


def count_below(
    layout: Layout,
    nodes: Ints,
    positions: Ints,
    hops: int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    strategy: str | None = None,
) -> Array:
    """Count, by hop, the calibration nodes around each node whose number is below some positions.

    Numbers ascend with scores, so the position of a value is the number of scores below it: ``np.searchsorted`` of
    ``layout.sorted_scores``; the position ``layout.size`` counts all. A node may come several times, and never counts
    itself.

    Parameters
    ----------
    positions : int64 of shape (nodes, positions)
        The positions for each entry of `nodes`.

    Returns
    -------
    numpy.ndarray
        Shape (nodes, hops, positions); int32, or int64 where there are 2³¹ calibration nodes or more.
    """
    dtype = np.int32 if layout.size < 2**31 else np.int64
    counts = np.zeros((nodes.size, hops, positions.shape[1]), dtype=dtype)
    if nodes.size == 0 or hops == 0:
        return counts
    strategy = strategy or _fastest(layout, nodes.size, hops, 0)
    order, sources, pairs = _pairs(layout, nodes, hops, strategy)
    counting = Counting(np.clip(positions[order], 0, layout.size), counts)
    _search(layout, sources, hops, (pairs, None, None, counting), threads, progress, strategy)
    return as_ordered(order, counts)


def _fastest(layout: Layout, nodes: int, hops: int, thresholds: int) -> str | None:
    """Return "few" for a small graph that NumPy passes over a few times, and None where kernels choose a strategy."""
    size = layout.adjacency.num_edges + layout.adjacency.num_nodes
    passed = _numpy_nanoseconds(layout, nodes, hops, thresholds) / (_EDGE * _MOST_PASSES)
    return None if worth_compiling(size) or worth_compiling(passed) else "few"


def as_ordered(order: Ints, results: Array) -> Array:
    """Return the results that belong to the places of an order at these places."""
    placed = np.empty_like(results)
    placed[order] = results
    return placed


def _search(
    layout: Layout,
    sources: Ints,
    hops: int,
    ending: Ending,
    threads: int | None,
    progress: Progress | None,
    strategy: str | None,
) -> None:
    job = SearchJob(layout, sources, hops, read_only_records(ending))
    if strategy == "few":
        pieces = ranges(0, sources.size, _few_sources(layout))
        run_ranges(partial(_search_few, job), pieces, available_threads(threads), progress)
    else:
        from napsets.kernels.jobs import search

        search(job, available_threads(threads), progress, strategy)


def _pairs(layout: Layout, nodes: Ints, hops: int, strategy: str | None) -> tuple[Ints, Ints, Pairs]:
    """Return the order of handling, the sources in it, each once, and their pairs.

    Nodes near one well connected node come together, so that the rows that they read stay near. One hop reads no rows
    but the nodes' own, which lie in the order of the nodes.
    """
    if strategy == "few" or hops <= 1:
        order = np.argsort(nodes, kind="stable")
    else:
        from napsets.kernels.shallow import best_connected_neighbours

        best, rows = np.empty_like(nodes), (layout.adjacency.indptr, layout.adjacency.indices)
        best_connected_neighbours(*map(read_only, (nodes, *rows)), best)
        order = np.lexsort((nodes, best))
    ordered = nodes[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return order, ordered[first], Pairs(np.append(first, nodes.size), layout.mask)


def selection_of(layout: Layout, weights: Floats, reach: Reach, pairs: int) -> Selection:
    """Return the record of the thresholds of this many pairs, which are not computed yet."""
    levels = np.ascontiguousarray(reach.levels, dtype=np.float64)
    rules = np.zeros(levels.size, dtype=np.int8) if reach.rules is None else np.asarray(reach.rules, dtype=np.int8)
    rows, hops = weights.shape
    room = np.empty((pairs, rows, levels.size)), np.empty((pairs, hops), dtype=np.int64)
    return Selection(weights, levels, rules, reach.rounding, layout.sorted_scores, *room)


def pooling_of(layout: Layout, sources: Ints, reach: Reach, rows: int) -> Pooling | None:
    """Return the record of calibration nodes that count near or far; None where there are none."""
    grouped = reach.alikes is not None and reach.groups is not None
    pools = np.zeros(rows) if reach.pools is None else np.asarray(reach.pools, dtype=np.float64)
    alikes = np.asarray(reach.alikes, dtype=np.float64) if grouped else np.zeros(rows)
    if not (pools.any() or alikes.any()):
        return None
    group = np.full(sources.size, -1, dtype=np.int64)
    group_masks = np.zeros((1, layout.mask_words), dtype=np.uint64)
    if reach.groups is not None and alikes.any():
        wanted = reach.groups[sources]
        names, position = np.unique(wanted[wanted >= 0], return_inverse=True)
        if names.size:
            group[wanted >= 0] = position
            group_masks = _group_masks(reach.groups[layout.nodes[: layout.size]], names, layout.mask_words)
    narrow = np.int32 if layout.size < 2**31 else np.int64
    own = layout.numbers[sources].astype(np.int64)
    return Pooling(pools, alikes, own, group, group_masks, _ranks(group_masks, narrow))


def _group_masks(groups: Array, names: Array, words: int) -> Words:
    """Pack the numbers in each of the named groups into words; `groups` has the group of each number."""
    flags = np.zeros(64 * words, dtype=bool)
    packed = np.empty((names.size, words), dtype=np.uint64)
    for name, row in zip(names, packed, strict=True):  # one at a time: a flag is eight times as large as its bit
        flags[: groups.size] = groups == name
        row[:] = pack(flags)
    return packed


def _ranks(masks: Words, dtype: npt.DTypeLike) -> Array:
    """Count the bits of each row of words before each word, and in total."""
    ranks = np.zeros((masks.shape[0], masks.shape[1] + 1), dtype=dtype)
    for words, row in zip(masks, ranks, strict=True):
        np.cumsum(count_bits(words), out=row[1:])
    return ranks


# -- few nodes, by NumPy -----------------------------------------------------------------------------------------------

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: The most words in each of the larger arrays of a piece of work.
_MOST_HELD = 1 << 21
#: Passes over the largest of small graphs that take NumPy a quarter of a second, much less than compiling takes.
_MOST_PASSES = 160
_EDGE, _COUNT, _LOOKUP = 3.0, 0.1, 25.0  # nanoseconds for each edge and word, calibration node, and look-up


def _few_sources(layout: Layout) -> int:
    """Return the number of sources searched together, in whole words; more than 512 would not be faster."""
    return 64 * max(1, min(8, _MOST_HELD // max(1, layout.adjacency.num_edges, layout.size)))


def _numpy_nanoseconds(layout: Layout, nodes: int, hops: int, thresholds: int) -> float:
    """Estimate the time of the NumPy search for this many nodes, with this many thresholds for each."""
    walks = _EDGE * -(-nodes // 64) * (layout.adjacency.num_edges + layout.adjacency.num_nodes)
    return hops * (walks + nodes * (_COUNT * layout.size + _LOOKUP * thresholds * layout.size.bit_length()))


class _Counted:
    """Calibration nodes of each pair as bits, shape (pairs, words), and how many there are before any number."""

    def __init__(self, vectors: Words) -> None:
        self.vectors = np.pad(vectors, ((0, 0), (0, 1)))
        self.before = np.zeros(self.vectors.shape, dtype=np.int64)
        np.cumsum(count_bits(vectors), axis=1, out=self.before[:, 1:])

    @property
    def sizes(self) -> Ints:
        """Their number for each pair."""
        return self.before[:, -1]

    def below(self, number: Ints) -> Ints:
        """Count those with a smaller number; the last axis is that of the pairs."""
        pair, word = np.arange(len(self.before)), number >> 6
        before_it = ~(_ALL << (number & 63).astype(np.uint64))
        return np.asarray(self.before[pair, word] + count_bits(self.vectors[pair, word] & before_it))


def _search_few(job: SearchJob, first: int, last: int) -> None:
    """Search around the sources first..last, and select thresholds or count."""
    pairs, selection, pooling, counting = job.ending
    offsets = pairs.offsets[first : last + 1]
    some = slice(offsets[0], offsets[-1])
    source = np.repeat(np.arange(first, last), np.diff(offsets))
    rings = [_Counted(ring[source - first] & pairs.mask) for ring in _rings(job, job.sources[first:last])]
    if selection is not None:
        for hop, ring in enumerate(rings):
            selection.hop_counts[some, hop] = ring.sizes
        weighed = list(zip(selection.weights.T[:, :, None], rings, strict=True))
        weighed += [] if pooling is None else _pooled(pooling, source, pairs.mask)
        _select_few(selection, weighed, selection.thresholds[some])
    if counting is not None:
        for hop, ring in enumerate(rings):
            counting.counts[some, hop] = ring.below(counting.positions[some].T).T


def _rings(job: SearchJob, sources: Ints) -> Iterator[Words]:
    """Yield for each hop the calibration nodes at that distance from each source, as bits: (sources, mask words).

    While walking, each node has a bit for each source that reaches it. One hop joins to the bits of a node those of the
    nodes that lead to it.
    """
    layout, back = job.layout, job.layout.adjacency.reverse
    known, filled, place = layout.nodes[: layout.size], np.flatnonzero(np.diff(back.indptr)), np.arange(sources.size)
    reach = np.zeros((layout.adjacency.num_nodes, -(-sources.size // 64)), dtype=np.uint64)
    reach[sources, place >> 6] = np.uint64(1) << (place & 63).astype(np.uint64)
    for _ in range(job.hops):
        before, added = reach.copy(), np.zeros((64 * layout.mask_words, reach.shape[1]), dtype=np.uint64)
        if filled.size:
            reach[filled] |= np.bitwise_or.reduceat(before[back.indices], back.indptr[filled], axis=0)
        added[: layout.size] = reach[known] & ~before[known]
        yield _transposed(added)[: sources.size]


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


def _pooled(pooling: Pooling, source: Ints, mask: Words) -> list[tuple[Floats, _Counted]]:
    """Return the weight of each, (rows, pairs), and the nodes: all but the source, and those in its group."""
    own, group = pooling.own[source], pooling.group[source]
    others, calibrates = np.tile(mask, (source.size, 1)), np.flatnonzero(own < 64 * mask.size)
    bit = np.uint64(1) << (own[calibrates] & 63).astype(np.uint64)
    others[calibrates, own[calibrates] >> 6] &= ~bit
    same = np.where((group >= 0)[:, None], others & pooling.group_masks[group], np.uint64(0))
    counted = [(pooling.pools, _Counted(others)), (pooling.alikes, _Counted(same))]
    return [(np.where(c.sizes > 0, w[:, None] / np.maximum(c.sizes, 1), 0.0), c) for w, c in counted]


def _select_few(selection: Selection, weighed: list[tuple[Floats, _Counted]], thresholds: Floats) -> None:
    """Write the thresholds of the pairs for each row of weights and each level."""
    scores = np.concatenate([[-np.inf], selection.scores, [np.inf]])
    known, shape = selection.scores.size, thresholds.shape[1::-1]  # rows of weights and pairs

    def mass(number: Ints) -> Floats:
        """Return the mass of the calibration nodes with a smaller number."""
        total = np.zeros(shape)
        for weights, counted in weighed:
            total += weights * counted.below(number)
        return total

    whole = 1.0 + mass(np.full(shape, known))
    for a, (level, rule) in enumerate(zip(selection.levels.tolist(), selection.rules.tolist(), strict=True)):
        enough = level * whole * (1.0 - selection.rounding)
        low, high = np.zeros(shape, dtype=np.int64), np.full(shape, known + 1)
        while (low < high).any():
            middle = (low + high) >> 1
            below = mass(np.minimum(middle, known))
            if rule == NOMINAL:
                reached = below >= enough
            else:
                reached = below / whole > level if rule == ABOVE else below / whole >= level
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, high))
        thresholds[:, :, a] = scores[low].T
