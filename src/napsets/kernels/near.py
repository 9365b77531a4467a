"""Running searches by length over many sources: in pieces, on threads, with weights from any function of a distance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, LifoQueue
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels import dijkstra
from napsets.kernels.dijkstra import Met, Roads
from napsets.kernels.endings import Pairs, Reach, Selection, seen_by_kernels
from napsets.kernels.layout import Layout, read_only
from napsets.kernels.search import pooling_of
from napsets.kernels.threads import Piece, Progress, Stop, available_threads, run

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

#: Distances to weights: from shape (met,) to shape (rows, met).
Weigh = Callable[[Floats], Floats]

#: Sources that a thread takes at a time.
_SOURCES = 64
#: Calibration nodes that are listed, at least, before they are weighed.
_MET = 1 << 15
#: No limit to how many are met.
_ALL = 1 << 62


class NearThresholds(NamedTuple):
    """Thresholds, and what they rest on."""

    #: float64 of shape (nodes, rows, levels). +∞ where the level is not reached, −∞ where it needs no mass.
    values: Floats
    counts: Ints  #: int64 of shape (nodes, rows). Calibration nodes near by that have weight.
    effective: Floats  #: float64 of shape (nodes, rows). (Σw)²/Σw² of those.
    #: float64 of shape (nodes, rows). Σw and Σw² of those.
    masses: Floats
    squares: Floats


def near_thresholds(
    layout: Layout,
    lengths: Floats,
    nodes: Ints,
    radius: float,
    weigh: Weigh,
    reach: Reach,
    *,
    rows: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> NearThresholds:
    """Return the smallest score up to which the calibration nodes near each node have a share of the mass.

    The mass up to a score is the sum of the weights of those within `radius`, in ascending order of score with the
    heaviest of equal scores first, then (pool/n)·c + (alike/n_same)·c_same as in `search.find_thresholds`. `lengths`
    has one for each entry of the adjacency's `indices`; `weigh` turns distances (met,) into weights (rows, met).
    """
    order, sources = _in_order(nodes)
    pairs = Pairs(np.arange(nodes.size + 1), np.zeros(nodes.size, np.int64), layout.masks(None))
    levels, rules, pools, alikes, groups = reach.filled(rows)
    pooled = bool(pools.any() or alikes.any())
    pooling = pooling_of(layout, sources, pairs, pools, alikes, groups) if pooled else None
    values = np.empty((nodes.size, rows, levels.size))
    sizes = np.empty((nodes.size, rows, 4))
    no_hops = np.empty((0, 0))
    selection = Selection(
        no_hops, levels, rules, reach.rounding, layout.sorted_scores, values, no_hops.astype(np.int64)
    )
    records = (
        seen_by_kernels(selection, "thresholds", "hop_counts"),
        seen_by_kernels(pairs),
        None if pooling is None else seen_by_kernels(pooling),
    )

    def select(met: Met, weights: Floats, first: int, last: int, running: Floats) -> None:
        dijkstra.select_near(met, weights, first, last, *records, running, sizes)

    _search(layout, lengths, sources, radius, _ALL, weigh, select, threads, progress)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    counts, effective, masses, squares = np.moveaxis(sizes[back], 2, 0)
    return NearThresholds(values[back], counts.astype(np.int64), effective, masses, squares)


def near_masses(
    layout: Layout,
    lengths: Floats,
    nodes: Ints,
    radius: float,
    weigh: Weigh,
    rows: int,
    positions: Ints,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Return the mass near each node with a number below its position, and in all: shape (nodes, rows, 2)."""
    order, sources = _in_order(nodes)
    below = np.empty((nodes.size, rows, 2))
    scores, below_each = read_only(layout.sorted_scores), read_only(positions[order])

    def rank(met: Met, weights: Floats, first: int, last: int, running: Floats) -> None:
        dijkstra.rank_near(met, weights, first, last, scores, below_each, running, below)

    _search(layout, lengths, sources, radius, _ALL, weigh, rank, threads, progress)
    masses = np.empty_like(below)
    masses[order] = below
    return masses


def near_distances(
    layout: Layout,
    lengths: Floats,
    nodes: Ints,
    radius: float = np.inf,
    *,
    most: int | None = None,
    threads: int | None = None,
) -> list[tuple[Array, Floats]]:
    """Return the calibration nodes within a radius of each node, or the nearest `most`: numbers, and distances."""
    met_by_source: list[Any] = [None] * nodes.size

    def keep(met: Met, weights: Floats, first: int, last: int, running: Floats) -> None:
        for source in range(first, last):
            part = slice(*met.offsets[source - first : source - first + 2].tolist())
            met_by_source[source] = met.numbers[part].copy(), weights[0, part].copy()

    limit = _ALL if most is None else most
    _search(layout, lengths, nodes, radius, limit, lambda distances: distances[None].copy(), keep, threads, None)
    return met_by_source


def _in_order(nodes: Ints) -> tuple[Ints, Ints]:
    """Return the order of handling, and the sources in it: near ids have near rows."""
    order = np.argsort(nodes, kind="stable")
    return order, np.ascontiguousarray(nodes[order])


def _search(
    layout: Layout,
    lengths: Floats,
    sources: Ints,
    radius: float,
    most: int,
    weigh: Weigh,
    finish: Callable[[Met, Floats, int, int, Floats], None],
    threads: int | None,
    progress: Progress | None,
) -> None:
    """Search around all sources, and finish them some at a time: with what was met, its weights, and which they are."""
    adjacency = layout.adjacency
    rows = (adjacency.indptr, adjacency.indices, lengths)
    roads = seen_by_kernels(Roads(*rows, layout.numbers, layout.nodes, layout.size))
    all_sources = read_only(sources)
    spare: LifoQueue[tuple[Any, Met, Floats]] = LifoQueue()  # what one thread works with

    def work(first: int, last: int, stop: Stop) -> None:
        try:
            room, met, running = spare.get_nowait()
        except Empty:
            size = max(_MET, layout.size)
            met = Met(np.zeros(_SOURCES + 1, np.int64), np.empty(size, layout.numbers.dtype), np.empty(size))
            room, running = dijkstra.room_for_search(roads), np.empty(layout.size)
        while first < last and not stop():
            done = dijkstra.find_near(all_sources[first:last], roads, radius, most, room, met)
            finish(met, weigh(met.distances[: met.offsets[done]]), first, first + done, running)
            first += done
        spare.put((room, met, running))

    def pieces() -> Iterator[Piece]:
        for first in range(0, sources.size, _SOURCES):
            last = min(first + _SOURCES, sources.size)
            yield last - first, partial(work, first, last)

    run(pieces(), threads=available_threads(threads), total=sources.size, progress=progress)
