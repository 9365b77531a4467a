"""Searches over many sources: choose a strategy, cut the sources into pieces, run these on threads.

There are two ways to search. A search from one source at a time reads the edges around each source (`shallow`); one
from all sources of a batch at once reads every edge of the graph at every hop (`deep`). The choice follows from the
number of sources, the hops and the degrees alone. It changes which kernel runs, never the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import LifoQueue

import numpy as np
import numpy.typing as npt

from napsets.kernels import deep, shallow
from napsets.kernels.csr import row_ranges
from napsets.kernels.layout import (
    NO_VECTORS,
    HubRows,
    Layout,
    SearchJob,
    Words,
    pack,
    read_only,
    read_only_record,
)
from napsets.kernels.threads import Progress, Stop, ranges, run, run_ranges

Range = tuple[int, int]

#: Sources of a batch; the bit-parallel search takes them all at once.
BATCH = 512
STRATEGIES = ("dense", "deep")

#: The work of a search from 512 sources at each hop, in edges read one source at a time: for each edge, each node
#: and each calibration node.
_DEEP_EDGE, _DEEP_NODE, _DEEP_CALIBRATION = 4.0, 7.0, 20.0
_PIECE = 4e7  # edges that one call of a kernel may read before its thread can hear Ctrl-C

#: The most bytes of the bit vectors of all batches under way.
DEEP_BYTES = 2 << 30
#: Parts into which the steps of a batch are cut for each thread, so that none waits long for another.
_SHARES = 4
#: Sources between two looks at whether to stop, without any search.
_UNSEARCHED_SOURCES = 1 << 14


def plan(layout: Layout, sources: int, hops: int) -> tuple[list[Range], list[Range]]:
    """Cut the sources into batches: those to be searched one source at a time, and those to be searched at once."""
    batches = ranges(0, sources, BATCH)
    at_once = {size: goes_deep(layout, size, hops) for size in {last - first for first, last in batches}}
    dense_batches = [(first, last) for first, last in batches if not at_once[last - first]]
    return dense_batches, [(first, last) for first, last in batches if at_once[last - first]]


def goes_deep(layout: Layout, sources: int, hops: int) -> bool:
    """Whether a batch of this many sources is searched faster all at once than one source at a time."""
    if hops < 2 or _deep_bytes(layout, hops) > DEEP_BYTES:
        return False
    adjacency = layout.adjacency
    # The first hop only reads the rows of the sources, and the last one only those of calibration nodes.
    steps = hops - 2 + layout.size / adjacency.num_nodes
    at_once = _DEEP_EDGE * steps * adjacency.num_edges
    at_once += hops * (_DEEP_NODE * adjacency.num_nodes + _DEEP_CALIBRATION * layout.size)
    return sources * layout.edges_read(hops) > at_once


def search(job: SearchJob, threads: int, progress: Progress | None, strategy: str | None) -> None:
    """Search around the job's sources, and select thresholds or count.

    The strategy is "dense" or "deep"; None stands for whichever is expected to be faster.
    """
    layout, sources, hops, ending = job
    if hops == 0:
        no_rings = np.zeros((sources.size, 0, 0), dtype=np.uint64)
        work = partial(deep.finish_all, vectors=no_rings, start=0, ending=ending)
        run_ranges(work, ranges(0, sources.size, _UNSEARCHED_SOURCES), threads, progress)
        return
    batches = ranges(0, sources.size, BATCH)
    forced = {"dense": (batches, []), "deep": ([], batches)}
    dense_batches, deep_batches = forced[strategy] if strategy else plan(layout, sources.size, hops)
    if dense_batches:
        _run_dense(job, dense_batches, threads, progress)
    done = sum(last - first for first, last in dense_batches)
    _run_deep(job, deep_batches, threads, done, progress)


# -- one source at a time ------------------------------------------------------------------------------------------


def _run_dense(job: SearchJob, batches: list[Range], threads: int, progress: Progress | None) -> None:
    layout, sources, hops, ending = job
    reads = layout.edges_read(hops)
    hubs = HubRows(layout.stops, layout.stops, NO_VECTORS)
    # Renumbering the whole graph costs a pass over its edges: it pays once about as many are read. One hop reads
    # nothing but the rows of the sources.
    if hops > 1 and reads * sum(last - first for first, last in batches) > layout.adjacency.num_edges / 4:
        columns, _ = layout.renumber(threads)
        rows, hubs = shallow.NumberedRows(layout.starts, layout.stops, columns, None), layout.hub_rows
    else:
        rows = shallow.NumberedRows(layout.starts, layout.stops, layout.adjacency.indices, layout.numbers)
    graph = read_only(layout.numbers[sources]), read_only_record(rows), read_only_record(hubs)
    step = int(min(BATCH, max(1.0, _PIECE / max(1.0, reads))))
    pieces = [piece for batch in batches for piece in ranges(*batch, step)]
    run_ranges(partial(shallow.dense_search, *graph, hops, ending), pieces, threads, progress, sources.size)


# -- 512 sources at a time -----------------------------------------------------------------------------------------


def _deep_bytes(layout: Layout, hops: int) -> int:
    """Return the bytes of the bit vectors of one batch: two rows per node, one vector per source and hop."""
    return 8 * deep.WORDS * (2 * layout.nodes.size + 64 * hops * layout.mask_words)


def _run_deep(job: SearchJob, batches: list[Range], threads: int, done: int, progress: Progress | None) -> None:
    """Search batches side by side, as many as memory holds; each has its share of the threads."""
    fitting, total = max(1, DEEP_BYTES // _deep_bytes(job.layout, job.hops)), job.sources.size
    while batches:
        most = min(threads, len(batches), fitting)
        abreast = max(count for count in range(1, most + 1) if threads % count == 0)
        whole = len(batches) - len(batches) % abreast  # what is left over is searched with more threads each
        some, batches = batches[:whole], batches[whole:]
        search = _DeepSearch(job, abreast, threads // abreast)
        report = None if progress is None else lambda ready, _, before=done: progress(before + ready, total)
        pieces = ((last - first, partial(search.run, first, last)) for first, last in some)
        run(pieces, threads=abreast, total=total - done, progress=report)
        done += sum(last - first for first, last in some)


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

    def run(self, first: int, last: int, stop: Stop) -> None:
        """Search a batch."""
        job, layout, adjacency = self.job, self.job.layout, self.job.layout.adjacency
        sources = job.sources[first:last]
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
        ending = (vectors, first, job.ending)
        self._each(self._ranges(first, last, least=32), deep.finish_all, ending, stop)
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
        self, pieces: list[Range], kernel: Callable[..., int | None], arguments: tuple[object, ...], stop: Stop
    ) -> list[int]:
        """Call a kernel for each range, unless the search is to stop; return its counts, in any order."""
        results: list[int] = []

        def work(first: int, last: int) -> None:
            if not stop():
                results.append(kernel(first, last, *arguments) or 0)

        run_ranges(work, pieces, self.threads)
        return results
