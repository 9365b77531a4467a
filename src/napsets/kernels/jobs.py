"""Running a search over many sources: choose how, cut it into pieces, run these on threads.

The estimate rests on a sample: for a few sources of each batch, the edges that a search reads are counted, and the
counting stops once these alone make the batch so costly that it is surely searched bit-parallel. The constants are
nanoseconds measured on one core; only their ratios matter, and they change which kernel runs, never what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from queue import LifoQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.kernels import deep, shallow, walk
from napsets.kernels.csr import row_ranges
from napsets.kernels.layout import (
    FEW_HOPS,
    NO_VECTORS,
    Floats,
    HubRows,
    Ints,
    Layout,
    SearchJob,
    Words,
    pack,
    read_only,
    seen_by_kernels,
)
from napsets.kernels.search import is_small
from napsets.kernels.shallow import count_touched
from napsets.kernels.threads import Progress, Stop, ranges, run, run_ranges

Range = tuple[int, int]

#: Sources planned together; the bit-parallel search takes them all at once.
BATCH = 512
STRATEGIES = ("dense", "sparse", "deep")

_SAMPLE = 8  # sources looked at in each batch
_STRIDE = 8  # batches between two that are looked at whatever the others show
_DENSE_EDGE, _DENSE_HUB_WORD, _DENSE_WORD, _DENSE_SOURCE = 2.2, 0.15, 0.5, 1000.0
_DENSE_MISSES = 0.3
_SPARSE_EDGE, _SPARSE_WORD, _SPARSE_SOURCE = 4.0, 0.1, 800.0
_DEEP_EDGE, _DEEP_NODE, _DEEP_WORD, _DEEP_SOURCE = 8.5, 15.0, 3000.0, 1200.0
_PIECE = 1e8  # ns of work after which a thread can hear Ctrl-C

#: What the bit vectors of all batches under way may take together.
DEEP_BYTES = 2 << 30
#: Parts into which the steps of a batch are cut for each thread, so that none waits long for another.
_SHARES = 4
#: Sources between two looks at whether to stop, of a very far search and without any search.
_FAR_SOURCES, _UNSEARCHED_SOURCES = 4, 1 << 14


@dataclass(frozen=True)
class SourceBatch:
    """Sources ``first..last``, the way to search them, and the edges that one of them reads on average."""

    first: int
    last: int
    strategy: str
    touched: float
    cost: float  #: estimated nanoseconds per source

    def pieces(self) -> list[Range]:
        """Cut the batch so that no piece takes long; the bit-parallel search takes it whole."""
        step = BATCH if self.strategy == "deep" else int(min(BATCH, max(1.0, _PIECE / self.cost)))
        return ranges(self.first, self.last, step)


def plan(layout: Layout, sources: Ints, hops: int, strategy: str | None) -> list[SourceBatch]:
    """Choose a strategy for each batch of sources, or take the same for all."""
    costs, bounds = _Costs(layout, hops), ranges(0, sources.size, BATCH)
    if strategy is None and is_small(layout, sources.size):
        # One way for all: looking for a better one would take longer, and more kernels to compile.
        allowed, touched = ["sparse"], np.full((len(bounds), 2), float(layout.adjacency.num_edges))
    else:
        deep_fits = hops > 1 and _deep_bytes(layout, hops) <= DEEP_BYTES
        allowed = [strategy] if strategy else [name for name in STRATEGIES if name != "deep" or deep_fits]
        touched = _sampled(layout, sources, bounds, hops, costs)
    batches = []
    for (first, last), (edges, work) in zip(bounds, touched.tolist(), strict=True):
        price = costs.of(edges, work, last - first)
        best = min(allowed, key=price.__getitem__)
        batches.append(SourceBatch(first, last, best, edges, price[best]))
    return batches


class _Costs:
    """Nanoseconds per source, by strategy."""

    def __init__(self, layout: Layout, hops: int) -> None:
        adjacency, mask_words = layout.adjacency, layout.mask_words
        self.words, self.hops = (adjacency.num_nodes + 63) // 64, hops
        #: The share of edges that the last hop follows: those to calibration nodes.
        self.last_share = layout.size / adjacency.num_nodes
        #: Words that a dense search passes over: of the first and the last ring, those of calibration nodes. The
        #: more words there are in all, the more marks miss the cache.
        self.dense_words = self.words * (max(0, hops - 2) + _DENSE_MISSES) + mask_words * min(2, hops)
        #: Nodes of at least this degree are added as vectors in a dense search; edges whose marking is as much work.
        self.hub = (
            layout.hub_degree if hops > 1 else adjacency.num_nodes,
            int(_DENSE_HUB_WORD / _DENSE_EDGE * self.words),
        )
        self.deep_batch = (
            _DEEP_EDGE * adjacency.num_edges * max(0.0, hops - 2 + self.last_share)
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


def _sampled(layout: Layout, sources: Ints, bounds: list[Range], hops: int, costs: _Costs) -> Floats:
    """Return the mean number of edges that a search reads, and the work of it, by batch; too low where it is costly.

    Costly batches take long to sample too, and sources that share a hub stand together. So every `_STRIDE`-th batch is
    sampled first, and those between two costly ones are taken to be costly without sampling.
    """
    rows = layout.adjacency.indptr, layout.adjacency.indices
    offsets = (2 * np.arange(_SAMPLE) + 1) / (2 * _SAMPLE)
    stamps = np.zeros(layout.nodes.size, dtype=np.int64)
    queue = np.empty(layout.nodes.size + 1, dtype=rows[1].dtype)
    # Work per source beyond which a batch is surely searched bit-parallel.
    limits = np.array([costs.of(0, 0, last - first)["deep"] / _DENSE_EDGE for first, last in bounds])
    touched = np.full((len(bounds), 2), np.nan)

    def look(batch: int) -> None:
        # One call per batch, and none takes long: Ctrl-C is heard in between.
        first, last = bounds[batch]
        sample = sources[first + ((last - first) * offsets).astype(np.int64)]
        budget, mark = int(_SAMPLE * limits[batch]) + 1, batch * _SAMPLE
        counted = count_touched(sample, *rows, hops, budget, stamps, queue, mark, costs.hub, costs.last_share)
        touched[batch] = np.divide(counted, _SAMPLE)

    corners = [*range(0, len(bounds) - 1, _STRIDE), len(bounds) - 1]
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


def search(job: SearchJob, threads: int, progress: Progress | None, strategy: str | None) -> None:
    """Search around the job's sources and do what is wanted of them.

    The strategy is one of those of `plan`, or "far"; None stands for whichever is the fastest.
    """
    layout, sources, hops, ending = job
    far = strategy == "far" or (strategy is None and hops > FEW_HOPS)
    if hops == 0 or far:
        if hops == 0:
            no_rings = np.zeros((sources.size, 0, 0), dtype=np.uint64)
            work = partial(deep.finish_all, vectors=no_rings, start=0, ending=ending)
        else:
            rows = read_only(layout.adjacency.indptr), read_only(layout.adjacency.indices)
            numbers = read_only(layout.numbers)
            work = partial(walk.far_search, read_only(sources), rows, numbers, layout.size, hops, ending)
        step = _UNSEARCHED_SOURCES if hops == 0 else _FAR_SOURCES
        run_ranges(work, ranges(0, sources.size, step), threads, progress)
        return
    batches = plan(layout, sources, hops, strategy)
    shallow_batches = [batch for batch in batches if batch.strategy != "deep"]
    deep_batches = [batch for batch in batches if batch.strategy == "deep"]
    if shallow_batches:
        _run_shallow(job, shallow_batches, threads, progress)
    done = sum(batch.last - batch.first for batch in shallow_batches)
    _run_deep(job, deep_batches, threads, done, progress)


# -- one source at a time ------------------------------------------------------------------------------------------


def _run_shallow(job: SearchJob, batches: list[SourceBatch], threads: int, progress: Progress | None) -> None:
    layout, sources, hops, ending = job
    reads = sum(batch.touched * (batch.last - batch.first) for batch in batches)
    # Renumbering the whole graph costs a pass over its edges: it pays once about as many are read.
    renumber = layout.renumbered is not None or reads > layout.adjacency.num_edges / 4
    if renumber:
        (columns, middles), numbers = layout.renumber(threads), None
    else:
        columns, middles, numbers = layout.adjacency.indices, layout.stops, layout.numbers
    # The only hop is the last.
    rows = shallow.NumberedRows(layout.starts, middles if hops == 1 else layout.stops, middles, columns, numbers)
    graph = read_only(layout.numbers[sources]), seen_by_kernels(rows)
    sparse = partial(shallow.sparse_search, *graph, hops, ending)
    kernels: dict[str, Callable[[int, int], None]] = {"sparse": sparse, "dense": sparse}
    # Where few rows are read, a second way to search would save less time than its kernel takes to load.
    if renumber and any(batch.strategy == "dense" for batch in batches):
        hubs = layout.hub_rows if hops > 1 else HubRows(layout.stops, middles, NO_VECTORS)
        kernels["dense"] = partial(shallow.dense_search, *graph, seen_by_kernels(hubs), hops, ending)

    def work(kernel: Callable[[int, int], None], first: int, last: int, stop: Stop) -> None:
        kernel(first, last)

    pieces = [(kernels[batch.strategy], *bounds) for batch in batches for bounds in batch.pieces()]
    tasks = ((last - first, partial(work, kernel, first, last)) for kernel, first, last in pieces)
    run(tasks, threads=threads, total=sources.size, progress=progress)


# -- 512 sources at a time -----------------------------------------------------------------------------------------


def _deep_bytes(layout: Layout, hops: int) -> int:
    """Return what the bit vectors of one batch take: two rows per node, one vector per source and hop."""
    return 8 * deep.WORDS * (2 * layout.nodes.size + 64 * hops * layout.mask_words)


def _run_deep(job: SearchJob, batches: list[SourceBatch], threads: int, done: int, progress: Progress | None) -> None:
    """Search batches side by side, as many as memory holds; each has its share of the threads."""
    fitting, total = max(1, DEEP_BYTES // _deep_bytes(job.layout, job.hops)), job.sources.size
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
        nodes, words = job.layout.nodes.size, job.layout.mask_words
        self.everywhere = np.ones(nodes, dtype=bool)
        self.calibrates = job.layout.numbers < job.layout.size
        #: Where a batch works that no other uses meanwhile.
        self.spaces: LifoQueue[tuple[Words, Words, Words]] = LifoQueue()
        for _ in range(abreast):
            before, after = (np.empty((nodes, deep.WORDS), dtype=np.uint64) for _ in range(2))
            self.spaces.put((before, after, np.empty((64 * deep.WORDS, job.hops, words), dtype=np.uint64)))

    def run(self, batch: SourceBatch, stop: Stop) -> None:
        """Search a batch."""
        job, layout, adjacency = self.job, self.job.layout, self.job.layout.adjacency
        sources = job.sources[batch.first : batch.last]
        everyone = pack(np.arange(64 * deep.WORDS) < sources.size)
        space = before, after, vectors = self.spaces.get()
        deep.start(sources, adjacency.indptr, adjacency.indices, before, after)
        for hop in range(job.hops):
            if hop:
                wanted = self.calibrates if hop + 1 == job.hops else self.everywhere
                self._step(everyone, wanted, after, before, stop)
                before, after = after, before
            # The bits that a hop added become vectors, one per source.
            added = (layout.nodes, layout.size, before, after, hop, vectors)
            self._each(self._ranges(0, layout.mask_words, least=64), deep.transpose, added, stop)
        ending = (vectors, batch.first, job.ending)
        self._each(self._ranges(batch.first, batch.last, least=32), deep.finish_all, ending, stop)
        self.spaces.put(space)

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

    def _ranges(self, start: int, end: int, least: int) -> list[Range]:
        """Cut start..end into ranges of at least this many."""
        return ranges(start, end, max(least, -(-(end - start) // self.parts)))

    def _each(
        self, pieces: list[Range], kernel: Callable[..., Any], arguments: tuple[Any, ...], stop: Stop
    ) -> list[Any]:
        """Call a kernel for each range, unless the search is to stop; return what it returns, in any order."""
        results: list[Any] = []

        def work(first: int, last: int) -> None:
            if not stop():
                results.append(kernel(first, last, *arguments))

        run_ranges(work, pieces, self.threads)
        return results
