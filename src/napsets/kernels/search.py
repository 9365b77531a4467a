"""Running a search over many sources: plan it, cut it into pieces, run these on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.graph import Graph
from napsets.kernels import deep, shallow
from napsets.kernels.csr import row_ranges
from napsets.kernels.hub_rows import NO_VECTORS, HubRows
from napsets.kernels.plan import Batch, is_trifle, plan
from napsets.kernels.threads import Piece, Progress, Stop, available_threads, run
from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.thresholds import CalibrationIndex

__all__ = ["Job", "handling_order", "search"]

#: What the bit vectors of all batches under way may take together.
DEEP_BYTES = 2 << 30


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
        # Batches side by side as far as memory allows; threads left over share the work inside a batch.
        abreast = min(count, len(swimmers), max(1, DEEP_BYTES // workspace_bytes))
        _run_deep(job, swimmers, abreast, max(1, count // abreast), total, shift, progress)


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
    rows = (index.starts, middles if job.hops == 1 else index.stops, columns, labels)
    kernels = {
        "dense": (shallow.dense_thresholds, (*rows, *hubs)),
        "sparse": (shallow.sparse_thresholds, (*rows, middles)),
    }
    for batch in batches:
        for first, last in batch.pieces():
            yield last - first, partial(_shallow, *kernels[batch.strategy], job, first, last)


def _shallow(kernel: Callable[..., Any], graph: tuple[Any, ...], job: Job, first: int, last: int, stop: Stop) -> None:
    kernel(job.index.numbers[job.sources[first:last]], *graph, job.hops, *job.selection(first, last))


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
    job: Job, batches: list[Batch], abreast: int, inner: int, total: int, done: int, progress: Progress | None
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    spaces: LifoQueue[_Workspace] = LifoQueue()
    for _ in range(abreast):
        spaces.put(_Workspace(job))
    ranges = row_ranges(job.index.graph.indptr)
    report = None if progress is None else lambda ready, _: progress(done + ready, total)
    with ThreadPoolExecutor(inner) as pool:
        pieces = (
            (batch.last - batch.first, partial(_deep, job, batch, spaces, ranges, pool if inner > 1 else None))
            for batch in batches
        )
        run(pieces, threads=abreast, total=total - done, progress=report)


def _deep(
    job: Job,
    batch: Batch,
    spaces: LifoQueue[_Workspace],
    ranges: list[tuple[int, int]],
    pool: Executor | None,
    stop: Stop,
) -> None:
    space = spaces.get()
    try:
        graph = job.index.graph
        sources = job.sources[batch.first : batch.last]
        everyone = _everyone(sources.size)
        everywhere = np.ones(graph.num_nodes, dtype=bool)
        calibrates = job.index.numbers < job.index.calibration.size
        before, after = space.reach, space.level
        deep.start(sources, graph.indptr, graph.indices, before, after)
        _appear(job, space, before, after, 0, pool, stop)
        for hop in range(1, job.hops):
            wanted = calibrates if hop + 1 == job.hops else everywhere
            _step(graph, everyone, wanted, after, before, ranges, pool, stop)
            before, after = after, before
            _appear(job, space, before, after, hop, pool, stop)
        if not stop():
            deep.select_all(space.vectors, 0, sources.size, *job.selection(batch.first, batch.last))
    finally:
        spaces.put(space)


def _step(
    graph: Graph,
    everyone: npt.NDArray[np.uint64],
    wanted: npt.NDArray[np.bool_],
    reach: npt.NDArray[np.uint64],
    level: npt.NDArray[np.uint64],
    ranges: list[tuple[int, int]],
    pool: Executor | None,
    stop: Stop,
) -> None:
    """Walk one hop from `reach` to `level`, where it must be right for the wanted nodes, the way that reads less."""
    active = sum(deep.active_edges(first, last, graph.indptr, reach) for first, last in ranges)
    if graph.undirected and 2 * active > graph.num_edges * wanted.mean():
        _each(ranges, deep.pull, (graph.indptr, graph.indices, everyone, wanted, reach, level), pool, stop)
    else:
        level[:] = reach
        # Two threads may push to one node, so this direction stays on one.
        _each(ranges, deep.push, (graph.indptr, graph.indices, reach, level), None, stop)


def _appear(
    job: Job,
    space: _Workspace,
    before: npt.NDArray[np.uint64],
    after: npt.NDArray[np.uint64],
    hop: int,
    pool: Executor | None,
    stop: Stop,
) -> None:
    """Write the bits that a hop added as vectors, a source each."""
    words = job.masks.shape[1]
    step = max(512, words // 64)
    ranges = [(first, min(first + step, words)) for first in range(0, words, step)]
    index = job.index
    _each(ranges, deep.transpose, (index.nodes, index.calibration.size, before, after, hop, space.vectors), pool, stop)


def _each(
    ranges: list[tuple[int, int]],
    kernel: Callable[..., Any],
    arguments: tuple[Any, ...],
    pool: Executor | None,
    stop: Stop,
) -> None:
    def work(bounds: tuple[int, int]) -> None:
        if not stop():
            kernel(*bounds, *arguments)

    for _ in map(work, ranges) if pool is None else pool.map(work, ranges):
        pass


def _everyone(sources: int) -> npt.NDArray[np.uint64]:
    flags = np.zeros(64 * deep.WORDS, dtype=bool)
    flags[:sources] = True
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64, copy=False)
