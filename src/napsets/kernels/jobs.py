"""Running a search over many sources: choose how, cut it into pieces, run these on threads.

The estimate rests on a sample: for a few sources of each batch, the edges that a search reads are counted, and the
counting stops once these alone make the batch so costly that it is surely searched bit-parallel. The constants are
nanoseconds measured on one core; only their ratios matter, and they change which kernel runs, never what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from queue import LifoQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels import deep, shallow, walk
from napsets.kernels.csr import row_ranges
from napsets.kernels.endings import SearchJob, seen_by_kernels
from napsets.kernels.layout import FEW_HOPS, NO_VECTORS, Adjacency, HubRows, pack, read_only
from napsets.kernels.shallow import count_touched
from napsets.kernels.threads import Piece, Progress, Stop, available_threads, run

Words = npt.NDArray[np.uint64]

#: Sources planned together; the bit-parallel search takes them all at once.
BATCH = 512
STRATEGIES = ("dense", "sparse", "deep")

_SAMPLE = 8  # sources looked at in each batch
_STRIDE = 8  # batches between two that are looked at whatever the others show
_DENSE_EDGE, _DENSE_HUB_WORD, _DENSE_WORD, _DENSE_SOURCE = 2.2, 0.15, 0.5, 1000.0
_DENSE_MISSES = 0.3
_SPARSE_EDGE, _SPARSE_WORD, _SPARSE_SOURCE = 4.0, 0.1, 800.0
_DEEP_EDGE, _DEEP_NODE, _DEEP_WORD, _DEEP_SOURCE = 8.5, 15.0, 3000.0, 1200.0
_SMALL = 1 << 20  # edges: where all searches together read fewer, any way will do
_PIECE = 1e8  # ns of work after which a thread can hear Ctrl-C


@dataclass(frozen=True)
class SourceBatch:
    """Sources ``first..last``, the way to search them, and the edges that one of them reads on average."""

    first: int
    last: int
    strategy: str
    touched: float
    cost: float  #: estimated nanoseconds per source

    def pieces(self) -> list[tuple[int, int]]:
        """Cut the batch so that no piece takes long; the bit-parallel search takes it whole."""
        if self.strategy == "deep":
            return [(self.first, self.last)]
        step = int(min(BATCH, max(1.0, _PIECE / self.cost)))
        return [(first, min(first + step, self.last)) for first in range(self.first, self.last, step)]


def plan(
    adjacency: Adjacency,
    sources: npt.NDArray[np.int64],
    hops: int,
    mask_words: int,
    *,
    last_share: float,
    hub_degree: int,
    deep_fits: bool,
    strategy: str | None,
) -> list[SourceBatch]:
    """Choose a strategy for each batch of sources, or take the same for all.

    `last_share` is the share of edges that the last hop follows: those to calibration nodes. Nodes of at least
    `hub_degree` are added as vectors in a dense search.
    """
    costs = _Costs(adjacency, hops, mask_words, last_share, hub_degree)
    if strategy is None and is_small(adjacency, sources.size):
        # One way for all: looking for a better one would take longer, and more kernels to compile.
        cost = costs.of(adjacency.num_edges, adjacency.num_edges, sources.size)["sparse"]
        bounds = [*range(0, sources.size, BATCH), sources.size]
        return [SourceBatch(first, last, "sparse", adjacency.num_edges, cost) for first, last in pairwise(bounds)]
    firsts = np.arange(0, sources.size, BATCH)
    lasts = np.minimum(firsts + BATCH, sources.size)
    touched = _sampled(adjacency, sources, firsts, lasts, hops, costs)
    batches = []
    for first, last, (edges, work) in zip(firsts.tolist(), lasts.tolist(), touched.tolist(), strict=True):
        price = costs.of(edges, work, last - first)
        allowed = [strategy] if strategy else [s for s in STRATEGIES if s != "deep" or (deep_fits and hops > 1)]
        best = min(allowed, key=lambda name: price[name])
        batches.append(SourceBatch(first, last, best, edges, price[best]))
    return batches


def is_small(adjacency: Adjacency, sources: int) -> bool:
    """Whether searches around this many sources are done before the best way to do them could be chosen."""
    return sources * adjacency.num_edges < _SMALL


class _Costs:
    """Nanoseconds per source, by strategy."""

    def __init__(self, adjacency: Adjacency, hops: int, mask_words: int, last_share: float, hub_degree: int) -> None:
        self.words = (adjacency.num_nodes + 63) // 64
        self.hops = hops
        self.last_share = last_share
        #: Words that a dense search passes over: of the first and the last ring, those of calibration nodes. The
        #: more words there are in all, the more marks miss the cache.
        self.dense_words = self.words * (max(0, hops - 2) + _DENSE_MISSES) + mask_words * min(2, hops)
        self.hub_degree = hub_degree
        #: Edges whose marking is as much work as adding a hub's vector.
        self.hub_work = int(_DENSE_HUB_WORD / _DENSE_EDGE * self.words)
        self.deep_batch = (
            _DEEP_EDGE * adjacency.num_edges * max(0.0, hops - 2 + last_share)
            + _DEEP_NODE * adjacency.num_nodes * hops
            + _DEEP_WORD * mask_words * hops
        )

    def of(self, edges: float, work: float, sources: int) -> dict[str, float]:
        """Return the cost of each strategy for a batch of this many sources that read this many edges each."""
        return {
            "dense": _DENSE_EDGE * work + _DENSE_WORD * self.dense_words + _DENSE_SOURCE,
            "sparse": _SPARSE_EDGE * edges * self.last_share + _SPARSE_WORD * self.words * self.hops + _SPARSE_SOURCE,
            "deep": self.deep_batch / sources + _DEEP_SOURCE,
        }

    def limit(self, sources: int) -> float:
        """Work per source beyond which a batch is surely searched bit-parallel."""
        return (self.deep_batch / sources + _DEEP_SOURCE) / _DENSE_EDGE


def _sampled(
    adjacency: Adjacency,
    sources: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
    lasts: npt.NDArray[np.int64],
    hops: int,
    costs: _Costs,
) -> npt.NDArray[np.float64]:
    """Return the mean number of edges that a search reads, and the work of it, by batch; too low where it is costly.

    Costly batches take long to sample too, and sources that share a hub stand together. So every `_STRIDE`-th batch is
    sampled first, and those between two costly ones are taken to be costly without sampling.
    """
    offsets = (2 * np.arange(_SAMPLE) + 1) / (2 * _SAMPLE)
    stamps = np.zeros(adjacency.num_nodes, dtype=np.int64)
    queue = np.empty(adjacency.num_nodes + 1, dtype=adjacency.indices.dtype)
    limits = np.array([costs.limit(size) for size in (lasts - firsts).tolist()])
    touched = np.full((firsts.size, 2), np.nan)

    def look(batch: int) -> None:
        # One call per batch, and none takes long: Ctrl-C is heard in between.
        first, last = int(firsts[batch]), int(lasts[batch])
        sample = sources[first + ((last - first) * offsets).astype(np.int64)]
        budget = int(_SAMPLE * limits[batch]) + 1
        counted = count_touched(
            sample, adjacency.indptr, adjacency.indices, hops, budget, stamps, queue, batch * _SAMPLE,
            (costs.hub_degree, costs.hub_work), costs.last_share,
        )  # fmt: skip
        touched[batch] = np.divide(counted, _SAMPLE)

    corners = np.unique(np.append(np.arange(0, firsts.size, _STRIDE), firsts.size - 1)).tolist()
    for corner in corners:
        look(corner)
    for before, after in pairwise(corners):
        between = range(before + 1, after)
        if touched[before, 1] > limits[before] and touched[after, 1] > limits[after]:
            touched[between] = touched[before]
        else:
            for batch in between:
                look(batch)
    return touched


#: What the bit vectors of all batches under way may take together.
DEEP_BYTES = 2 << 30
#: Parts into which the steps of a batch are cut for each thread, so that none waits long for another.
_SHARES = 4
#: Sources of a very far search between two looks at whether to stop.
_FAR_SOURCES = 4
#: Sources without any search between two looks at whether to stop.
_UNSEARCHED_SOURCES = 1 << 14


def handling_order(adjacency: Adjacency, nodes: npt.NDArray[np.int64], hops: int) -> npt.NDArray[np.int64]:
    """Return the order in which to search around `nodes`: those near one well connected node together.

    So the rows that they read stay near. One hop reads no rows but the nodes' own, which lie in the order of the nodes.
    """
    if hops <= 1 or is_small(adjacency, nodes.size):
        return np.argsort(nodes, kind="stable")
    best = np.empty_like(nodes)
    shallow.best_connected_neighbours(*map(read_only, (nodes, adjacency.indptr, adjacency.indices)), best)
    return np.lexsort((nodes, best))


def search(job: SearchJob, *, threads: int | None, progress: Progress | None, strategy: str | None = None) -> None:
    """Search around the job's sources and do what is wanted of them.

    The strategy is one of those of `plan`, or "far"; None stands for whichever is the fastest.
    """
    count = available_threads(threads)
    if job.hops == 0:
        run(_pieces(job, _unsearched, _UNSEARCHED_SOURCES), threads=count, total=job.sources.size, progress=progress)
        return
    if strategy == "far" or (strategy is None and job.hops > FEW_HOPS):
        run(_pieces(job, _far, _FAR_SOURCES), threads=count, total=job.sources.size, progress=progress)
        return
    batches = plan(
        job.layout.adjacency,
        job.sources,
        job.hops,
        job.mask_words,
        last_share=job.last_share,
        hub_degree=job.layout.hub_degree if job.hops > 1 else job.layout.adjacency.num_nodes,
        deep_fits=_Workspace.size(job) <= DEEP_BYTES,
        strategy=strategy,
    )
    shallow_batches = [batch for batch in batches if batch.strategy != "deep"]
    deep_batches = [batch for batch in batches if batch.strategy == "deep"]
    total = job.sources.size
    shift = sum(batch.last - batch.first for batch in shallow_batches)
    run(_shallow_pieces(job, shallow_batches, count), threads=count, total=total, progress=progress)
    _run_deep(job, deep_batches, count, total, shift, progress)


# -- one source at a time ------------------------------------------------------------------------------------------


def _shallow_pieces(job: SearchJob, batches: list[SourceBatch], threads: int) -> Iterator[Piece]:
    layout = job.layout
    reads = sum(batch.touched * (batch.last - batch.first) for batch in batches)
    # Renumbering the whole graph costs a pass over its edges: it pays once about as many are read.
    renumber = bool(batches) and (layout.renumbered is not None or reads > layout.adjacency.num_edges / 4)
    if renumber:
        (columns, middles), numbers = layout.renumber(threads), None
    else:
        columns, middles, numbers = layout.adjacency.indices, layout.stops, layout.numbers
    # The only hop is the last.
    rows = shallow.NumberedRows(layout.starts, middles if job.hops == 1 else layout.stops, middles, columns, numbers)
    rows = seen_by_kernels(rows)
    sparse = partial(_shallow, shallow.sparse_search, (rows,))
    kernels: dict[str, Callable[..., None]] = {"sparse": sparse, "dense": sparse}
    # Where few rows are read, a second way to search would save less time than its kernel takes to load.
    if renumber and any(batch.strategy == "dense" for batch in batches):
        hubs = layout.hub_rows if job.hops > 1 else HubRows(layout.stops, middles, NO_VECTORS)
        kernels["dense"] = partial(_shallow, shallow.dense_search, (rows, seen_by_kernels(hubs)))
    for batch in batches:
        for first, last in batch.pieces():
            yield last - first, partial(kernels[batch.strategy], job, first, last)


def _shallow(
    kernel: Callable[..., Any], graph: tuple[Any, ...], job: SearchJob, first: int, last: int, stop: Stop
) -> None:
    kernel(job.layout.numbers[job.sources[first:last]], *graph, job.hops, *job.ending(first, last))


def _pieces(job: SearchJob, work: Callable[..., None], size: int) -> Iterator[Piece]:
    for first in range(0, job.sources.size, size):
        last = min(first + size, job.sources.size)
        yield last - first, partial(work, job, first, last)


# -- one source at a time, very far ---------------------------------------------------------------------------------


def _far(job: SearchJob, first: int, last: int, stop: Stop) -> None:
    layout = job.layout
    graph = (layout.adjacency.indptr, layout.adjacency.indices, layout.numbers)
    sources, indptr, indices, numbers = map(read_only, (job.sources[first:last], *graph))
    walk.far_search(sources, indptr, indices, numbers, layout.size, job.hops, *job.ending(first, last))


# -- no hops at all ---------------------------------------------------------------------------------------------------


def _unsearched(job: SearchJob, first: int, last: int, stop: Stop) -> None:
    vectors = np.zeros((last - first, 0, 0), dtype=np.uint64)
    deep.finish_all(vectors, 0, last - first, *job.ending(first, last))


# -- 512 sources at a time -----------------------------------------------------------------------------------------


class _Workspace:
    """The bit vectors of one batch: two rows per node, one vector per source and hop."""

    def __init__(self, job: SearchJob) -> None:
        nodes = job.layout.adjacency.num_nodes
        self.reach = np.empty((nodes, deep.WORDS), dtype=np.uint64)
        self.ring = np.empty((nodes, deep.WORDS), dtype=np.uint64)
        self.vectors = np.empty((64 * deep.WORDS, job.hops, job.mask_words), dtype=np.uint64)

    @staticmethod
    def size(job: SearchJob) -> int:
        """Bytes of one workspace."""
        return 8 * deep.WORDS * (2 * job.layout.adjacency.num_nodes + 64 * job.hops * job.mask_words)


def _run_deep(
    job: SearchJob, batches: list[SourceBatch], threads: int, total: int, done: int, progress: Progress | None
) -> None:
    """Search batches side by side, as many as memory holds; each has its share of the threads."""
    fitting = max(1, DEEP_BYTES // _Workspace.size(job))
    while batches:
        most = min(threads, len(batches), fitting)
        abreast = max(count for count in range(1, most + 1) if threads % count == 0)
        whole = len(batches) - len(batches) % abreast  # what is left over is searched with more threads each
        some, batches = batches[:whole], batches[whole:]
        search = _DeepSearch(job, abreast, threads // abreast)
        report = None if progress is None else lambda ready, _, before=done: progress(before + ready, total)
        pieces = ((batch.last - batch.first, partial(search.run, batch)) for batch in some)
        run(pieces, threads=abreast, total=total - done, progress=report)
        done += sum(batch.last - batch.first for batch in some)


class _DeepSearch:
    """Searches batches, some side by side; each step is cut so that the threads of a batch get about the same of it."""

    def __init__(self, job: SearchJob, abreast: int, threads: int) -> None:
        self.job = job
        self.threads = threads  # that one batch has for itself
        self.parts = 1 if threads == 1 else _SHARES * threads
        self.rows = row_ranges(job.layout.adjacency.indptr, self.parts)
        #: The nodes that each node pulls from: those whose edges lead to it.
        back = job.layout.adjacency.reverse
        self.back = read_only(back.indptr), read_only(back.indices)
        self.back_rows = row_ranges(self.back[0], self.parts)
        self.everywhere = np.ones(job.layout.adjacency.num_nodes, dtype=bool)
        self.calibrates = job.layout.numbers < job.layout.size
        self.spaces: LifoQueue[_Workspace] = LifoQueue()
        for _ in range(abreast):
            self.spaces.put(_Workspace(job))

    def run(self, batch: SourceBatch, stop: Stop) -> None:
        """Search a batch, in a workspace that no other uses meanwhile."""
        space = self.spaces.get()
        try:
            self._search(batch, space, stop)
        finally:
            self.spaces.put(space)

    def _search(self, batch: SourceBatch, space: _Workspace, stop: Stop) -> None:
        job, layout, adjacency = self.job, self.job.layout, self.job.layout.adjacency
        sources = job.sources[batch.first : batch.last]
        everyone = pack(np.arange(64 * deep.WORDS) < sources.size)
        before, after = space.reach, space.ring
        deep.start(sources, adjacency.indptr, adjacency.indices, before, after)
        for hop in range(job.hops):
            if hop:
                wanted = self.calibrates if hop + 1 == job.hops else self.everywhere
                self._step(everyone, wanted, after, before, stop)
                before, after = after, before
            # The bits that a hop added become vectors, one per source.
            added = (layout.nodes, layout.size, before, after, hop, space.vectors)
            self._each(self._ranges(job.mask_words, least=64), deep.transpose, added, stop)
        finished = partial(deep.finish_all, space.vectors)
        self._each(self._ranges(sources.size, least=32), finished, job.ending(batch.first, batch.last), stop)

    def _step(self, everyone: Words, wanted: npt.NDArray[np.bool_], reach: Words, ring: Words, stop: Stop) -> None:
        """Walk one hop from `reach` to `ring`, where it must be right for the wanted nodes, the way that reads less."""
        adjacency = self.job.layout.adjacency
        active = self._each(self.rows, deep.active_edges, (adjacency.indptr, reach), stop)
        if stop():
            return
        # Two threads may push to one node, so that stays on one; all of a batch's threads can pull.
        if 2 * self.threads * sum(active) > adjacency.num_edges * wanted.mean():
            self._each(self.back_rows, deep.pull, (*self.back, everyone, wanted, reach, ring), stop)
        else:
            ring[:] = reach
            for first, last in self.rows:
                if not stop():
                    deep.push(first, last, adjacency.indptr, adjacency.indices, reach, ring)

    def _ranges(self, count: int, least: int) -> list[tuple[int, int]]:
        """Cut 0..count into ranges of at least this many."""
        step = max(least, -(-count // self.parts))
        return [(first, min(first + step, count)) for first in range(0, count, step)]

    def _each(self, ranges: list[tuple[int, int]], kernel: Callable[..., Any], arguments: Any, stop: Stop) -> list[Any]:
        """Call a kernel for each range, unless the search is to stop; return what it returns."""
        results: list[Any] = [None] * len(ranges)

        def work(place: int, _: Stop) -> None:
            if not stop():
                results[place] = kernel(*ranges[place], *arguments)

        pieces = ((1, partial(work, place)) for place in range(len(ranges)))
        run(pieces, threads=max(1, min(self.threads, len(ranges))), total=len(ranges))
        return results
