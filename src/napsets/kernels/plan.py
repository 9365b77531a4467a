"""Choosing how to search a batch of sources, from an estimate of what each way would cost.

The estimate rests on a sample: for a few sources of each batch, the edges that a search reads are counted, and the
counting stops once these alone make the batch so costly that it is surely searched bit-parallel. The constants are
nanoseconds measured on one core; only their ratios matter, and they change which kernel runs, never what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from napsets.kernels.layout import Adjacency
from napsets.kernels.shallow import count_touched

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
class Batch:
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
) -> list[Batch]:
    """Choose a strategy for each batch of sources, or take the same for all.

    `last_share` is the share of edges that the last hop follows: those to calibration nodes. Nodes of at least
    `hub_degree` are added as vectors in a dense search.
    """
    costs = _Costs(adjacency, hops, mask_words, last_share, hub_degree)
    if strategy is None and is_small(adjacency, sources.size):
        # One way for all: looking for a better one would take longer, and more kernels to compile.
        cost = costs.of(adjacency.num_edges, adjacency.num_edges, sources.size)["sparse"]
        bounds = [*range(0, sources.size, BATCH), sources.size]
        return [Batch(first, last, "sparse", adjacency.num_edges, cost) for first, last in pairwise(bounds)]
    firsts = np.arange(0, sources.size, BATCH)
    lasts = np.minimum(firsts + BATCH, sources.size)
    touched = _sampled(adjacency, sources, firsts, lasts, hops, costs)
    batches = []
    for first, last, (edges, work) in zip(firsts.tolist(), lasts.tolist(), touched.tolist(), strict=True):
        price = costs.of(edges, work, last - first)
        allowed = [strategy] if strategy else [s for s in STRATEGIES if s != "deep" or (deep_fits and hops > 1)]
        best = min(allowed, key=lambda name: price[name])
        batches.append(Batch(first, last, best, edges, price[best]))
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
