"""Running a search over many sources: plan it, cut it into pieces, run these on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.graph import Graph
from napsets.kernels import deep, far, shallow
from napsets.kernels._jit import read_only
from napsets.kernels.csr import row_ranges
from napsets.kernels.hub_rows import NO_VECTORS, HubRows
from napsets.kernels.plan import Batch, is_trifle, plan
from napsets.kernels.selection import selection_inputs
from napsets.kernels.threads import Crew, Piece, Progress, Stop, available_threads, run
from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.localisers.neighbourhoods import CalibrationIndex

__all__ = ["Job", "handling_order", "search"]

#: What the bit vectors of all batches under way may take together.
DEEP_BYTES = 2 << 30
#: Parts into which the steps of a batch are cut for each thread, so that none waits long for another.
_SHARES = 4
#: Sources of a very far search between two looks at whether to stop.
_FAR_SOURCES = 4


@dataclass(frozen=True)
class Job:
    """The sources, the splits and weights they are wanted for, and where the answers go."""

    index: CalibrationIndex
    sources: npt.NDArray[np.int64]
    pair_offsets: npt.NDArray[np.int64]
    pair_split: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.float64]
    levels: npt.NDArray[np.float64]
    thresholds: npt.NDArray[np.float64]
    hop_counts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        # Once here, and not again for each piece of work.
        for name in ("masks", "weights", "levels"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def hops(self) -> int:
        """Depth of the search."""
        return int(self.weights.shape[1])

    @property
    def last_share(self) -> float:
        """The share of nodes that calibrate: to others the last hop need not go."""
        return self.index.calibration.size / self.index.graph.num_nodes

    def selection(self, first: int, last: int) -> tuple[Any, ...]:
        """Return what selection needs for the pairs of some sources, in the order in which kernels take it."""
        offsets = self.pair_offsets[first : last + 1]
        pairs = slice(offsets[0], offsets[-1])
        return (
            self.masks,
            offsets - offsets[0],
            self.pair_split[pairs],
            self.weights,
            self.levels,
            ROUNDING,
            self.index.sorted_scores,
            self.thresholds[pairs],
            self.hop_counts[pairs],
        )


def handling_order(graph: Graph, nodes: npt.NDArray[np.int64], hops: int) -> npt.NDArray[np.int64]:
    """Return the order in which to search around `nodes`: those with a common hub together, so that rows stay near.

    One hop reads no rows but the nodes' own, which lie in the order of the nodes.
    """
    if hops == 1 or is_trifle(graph, nodes.size):
        return np.argsort(nodes, kind="stable")
    hub = np.empty_like(nodes)
    shallow.hubs(nodes, graph.indptr, graph.indices, hub)
    return np.lexsort((nodes, hub))


def search(job: Job, *, threads: int | None, progress: Progress | None, strategy: str | None = None) -> None:
    """Fill the job's thresholds and counts."""
    count = available_threads(threads)
    if strategy is None and job.hops > far.MANY_HOPS:
        run(_far_pieces(job), threads=count, total=job.sources.size, progress=progress)
        return
    workspace_bytes = _Workspace.size(job)
    batches = plan(
        job.index.graph,
        job.sources,
        job.hops,
        job.masks.shape[1],
        last_share=job.last_share,
        hub_degree=job.index.hub_degree if job.hops > 1 else job.index.graph.num_nodes,
        deep_fits=workspace_bytes <= DEEP_BYTES,
        strategy=strategy,
    )
    walkers = [batch for batch in batches if batch.strategy != "deep"]
    swimmers = [batch for batch in batches if batch.strategy == "deep"]
    total = job.sources.size
    shift = sum(batch.last - batch.first for batch in walkers)
    run(_shallow_pieces(job, walkers, count), threads=count, total=total, progress=progress)
    if swimmers:
        # Batches side by side as far as memory allows; threads left over share the work inside them.
        abreast = min(count, len(swimmers), max(1, DEEP_BYTES // workspace_bytes))
        _run_deep(job, swimmers, abreast, count, total, shift, progress)


# -- one source at a time ------------------------------------------------------------------------------------------


def _shallow_pieces(job: Job, batches: list[Batch], threads: int) -> Iterator[Piece]:
    index = job.index
    reads = sum(batch.touched * (batch.last - batch.first) for batch in batches)
    # Renumbering the whole graph costs a pass over its edges: it pays once about as many are read.
    renumber = bool(batches) and (index.renumbered is not None or reads > index.graph.num_edges / 4)
    if renumber:
        (columns, middles), labels = index.renumber(threads), None
    else:
        columns, middles, labels = index.graph.indices, index.stops, index.numbers
    use_hubs = renumber and job.hops > 1 and any(batch.strategy == "dense" for batch in batches)
    hubs = index.hubs if use_hubs else HubRows(index.stops, middles, NO_VECTORS)
    middles, hubs = read_only(middles), HubRows(*map(read_only, hubs))
    rows = (
        read_only(index.starts),
        middles if job.hops == 1 else read_only(index.stops),
        read_only(columns),
        None if labels is None else read_only(labels),
    )
    kernels: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
        "dense": (shallow.dense_thresholds, (*rows, *hubs)),
        "sparse": (shallow.sparse_thresholds, (*rows, middles)),
    }
    for batch in batches:
        for first, last in batch.pieces():
            yield last - first, partial(_shallow, *kernels[batch.strategy], job, first, last)


def _shallow(kernel: Callable[..., Any], graph: tuple[Any, ...], job: Job, first: int, last: int, stop: Stop) -> None:
    kernel(job.index.numbers[job.sources[first:last]], *graph, job.hops, *job.selection(first, last))


# -- one source at a time, very far ---------------------------------------------------------------------------------


def _far_pieces(job: Job) -> Iterator[Piece]:
    for first in range(0, job.sources.size, _FAR_SOURCES):
        last = min(first + _FAR_SOURCES, job.sources.size)
        yield last - first, partial(_far, job, first, last)


def _far(job: Job, first: int, last: int, stop: Stop) -> None:
    graph, index = job.index.graph, job.index
    inputs = selection_inputs(*job.selection(first, last))
    far.far_thresholds(job.sources[first:last], graph.indptr, graph.indices, read_only(index.numbers), *inputs)


# -- 512 sources at a time -----------------------------------------------------------------------------------------


class _Workspace:
    """The bit vectors of one batch: two rows a node, one vector a source and hop."""

    def __init__(self, job: Job) -> None:
        nodes = job.index.graph.num_nodes
        self.reach = np.empty((nodes, deep.WORDS), dtype=np.uint64)
        self.level = np.empty((nodes, deep.WORDS), dtype=np.uint64)
        self.vectors = np.empty((64 * deep.WORDS, job.hops, job.masks.shape[1]), dtype=np.uint64)

    @staticmethod
    def size(job: Job) -> int:
        """Bytes of one workspace."""
        return 8 * deep.WORDS * (2 * job.index.graph.num_nodes + 64 * job.hops * int(job.masks.shape[1]))


def _run_deep(
    job: Job, batches: list[Batch], abreast: int, threads: int, total: int, done: int, progress: Progress | None
) -> None:
    spaces: LifoQueue[_Workspace] = LifoQueue()
    for _ in range(abreast):
        spaces.put(_Workspace(job))
    report = None if progress is None else lambda ready, _: progress(done + ready, total)
    with Crew(threads) as crew:
        shares = _Shares(job, crew, 1 if threads == 1 else _SHARES * threads)
        pieces = ((batch.last - batch.first, partial(_deep, job, batch, spaces, shares)) for batch in batches)
        run(pieces, threads=abreast, total=total - done, progress=report)


class _Shares:
    """The work of a step of a batch, cut so that the threads that take part get about the same of it."""

    def __init__(self, job: Job, crew: Crew, parts: int) -> None:
        self.crew = crew
        self.parts = parts
        self.rows = row_ranges(job.index.graph.indptr, parts)
        self.words = self.of(int(job.masks.shape[1]), least=64)

    def of(self, count: int, least: int) -> list[tuple[int, int]]:
        """Cut 0..count into ranges of at least so many."""
        step = max(least, -(-count // self.parts))
        return [(first, min(first + step, count)) for first in range(0, count, step)]

    def each(self, ranges: list[tuple[int, int]], kernel: Callable[..., Any], arguments: Any, stop: Stop) -> list[Any]:
        """Call a kernel for each range; return what it returns."""
        return self.crew.each([partial(kernel, *bounds, *arguments) for bounds in ranges], stop)


def _deep(job: Job, batch: Batch, spaces: LifoQueue[_Workspace], shares: _Shares, stop: Stop) -> None:
    space = spaces.get()
    try:
        with shares.crew.seat():
            _search_deep(job, batch, space, shares, stop)
    finally:
        spaces.put(space)


def _search_deep(job: Job, batch: Batch, space: _Workspace, shares: _Shares, stop: Stop) -> None:
    graph, index = job.index.graph, job.index
    sources = job.sources[batch.first : batch.last]
    everyone = _everyone(sources.size)
    everywhere = np.ones(graph.num_nodes, dtype=bool)
    calibrates = index.numbers < index.calibration.size
    before, after = space.reach, space.level
    deep.start(sources, graph.indptr, graph.indices, before, after)
    for hop in range(job.hops):
        if hop:
            wanted = calibrates if hop + 1 == job.hops else everywhere
            _step(graph, everyone, wanted, after, before, shares, stop)
            before, after = after, before
        # The bits that a hop added become vectors, a source each.
        added = (index.nodes, index.calibration.size, before, after, hop, space.vectors)
        shares.each(shares.words, deep.transpose, added, stop)
    chosen = partial(deep.select_all, space.vectors)
    shares.each(shares.of(sources.size, least=32), chosen, job.selection(batch.first, batch.last), stop)


def _step(
    graph: Graph,
    everyone: npt.NDArray[np.uint64],
    wanted: npt.NDArray[np.bool_],
    reach: npt.NDArray[np.uint64],
    level: npt.NDArray[np.uint64],
    shares: _Shares,
    stop: Stop,
) -> None:
    """Walk one hop from `reach` to `level`, where it must be right for the wanted nodes, the way that reads less."""
    active = shares.each(shares.rows, deep.active_edges, (graph.indptr, reach), stop)
    if stop():
        return
    if graph.undirected and 2 * sum(active) > graph.num_edges * wanted.mean():
        shares.each(shares.rows, deep.pull, (graph.indptr, graph.indices, everyone, wanted, reach, level), stop)
    else:
        level[:] = reach
        # Two threads may push to one node, so this direction stays on one.
        for first, last in shares.rows:
            if not stop():
                deep.push(first, last, graph.indptr, graph.indices, reach, level)


def _everyone(sources: int) -> npt.NDArray[np.uint64]:
    flags = np.zeros(64 * deep.WORDS, dtype=bool)
    flags[:sources] = True
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64, copy=False)
