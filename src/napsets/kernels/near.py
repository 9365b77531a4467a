"""Running searches by length over many sources: in pieces, on threads, with weights from any function of a distance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty, LifoQueue
from typing import NamedTuple

import numpy as np

from napsets.kernels import dijkstra
from napsets.kernels.dijkstra import Met, Roads
from napsets.kernels.layout import Array, Floats, Ints, Layout, Reach, read_only, read_only_record
from napsets.kernels.search import as_ordered, pooling_of, selection_of
from napsets.kernels.threads import Progress, Stop, available_threads, ranges, run

#: Distances to weights: from shape (met,) to shape (rows, met).
Weigh = Callable[[Floats], Floats]

#: Sources that a thread takes at a time.
_SOURCES = 64
#: Calibration nodes that are listed, at least, before they are weighed.
_MET = 1 << 15
#: No limit to the number of nodes met.
_ALL = 1 << 62


class NearThresholds(NamedTuple):
    """Thresholds, and the calibration nodes they are based on."""

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
    selection = selection_of(layout, np.empty((rows, 0)), reach, nodes.size)
    sizes = np.empty((nodes.size, rows, 4))
    records = tuple(map(read_only_record, (selection, pooling_of(layout, sources, reach, rows))))

    def select(met: Met, weights: Floats, first: int, last: int, running: Floats) -> None:
        dijkstra.select_near(met, weights, first, last, *records, running, sizes)

    _search(layout, lengths, sources, radius, _ALL, weigh, select, threads, progress)
    counts, effective, masses, squares = np.moveaxis(as_ordered(order, sizes), 2, 0)
    values = as_ordered(order, selection.thresholds)
    return NearThresholds(values, counts.astype(np.int64), effective, masses, squares)


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
    return as_ordered(order, below)


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
    met_by_source: dict[int, tuple[Array, Floats]] = {}

    def keep(met: Met, weights: Floats, first: int, last: int, running: Floats) -> None:
        for source in range(first, last):
            part = slice(*met.offsets[source - first : source - first + 2].tolist())
            met_by_source[source] = met.numbers[part].copy(), weights[0, part].copy()

    limit = _ALL if most is None else most
    _search(layout, lengths, nodes, radius, limit, lambda distances: distances[None].copy(), keep, threads, None)
    return [met_by_source[source] for source in range(nodes.size)]


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
    """Search around all sources; call `finish` with the nodes met around the sources first..last, and their weights."""
    adjacency = layout.adjacency
    rows = (adjacency.indptr, adjacency.indices, lengths)
    roads = read_only_record(Roads(*rows, layout.numbers, layout.nodes, layout.size))
    all_sources = read_only(sources)
    spare: LifoQueue[tuple[dijkstra.Scratch, Met, Floats]] = LifoQueue()  # what one thread works with

    def work(first: int, last: int, stop: Stop) -> None:
        try:
            room, met, running = spare.get_nowait()
        except Empty:
            size = max(_MET, layout.size)
            met = Met(np.zeros(_SOURCES + 1, np.int64), np.empty(size, layout.numbers.dtype), np.empty(size))
            room, running = dijkstra.search_scratch(roads), np.empty(layout.size)
        while first < last and not stop():
            done = dijkstra.find_near(all_sources[first:last], roads, radius, most, room, met)
            finish(met, weigh(met.distances[: met.offsets[done]]), first, first + done, running)
            first += done
        spare.put((room, met, running))

    bounds = ranges(0, sources.size, _SOURCES)
    pieces = ((last - first, partial(work, first, last)) for first, last in bounds)
    run(pieces, threads=available_threads(threads), total=sources.size, progress=progress)
