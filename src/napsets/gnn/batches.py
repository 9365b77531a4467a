"""Batches: the nodes to compute, what they read, and in which layer; and the samplers that make them from seeds.

Samplers work on our CSR in compiled code, each batch with a key of its own.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from napsets.checks.arguments import IntArray
from napsets.gnn.models import Stack, TrainingSettings
from napsets.graph import Graph
from napsets.kernels.sampling import dense_rows, neighbours, shadow, with_self_loops

Item = TypeVar("Item")

#: Training graphs up to this size are taken whole where the settings leave the choice.
FULL_BATCH_NODES, FULL_BATCH_EDGES = 20_000, 1_000_000


def csr_tensor(
    offsets: npt.NDArray[Any], columns: npt.NDArray[Any], values: npt.NDArray[Any] | None, num_columns: int
) -> Tensor:
    """Wrap a CSR matrix, with ones where no values are given, without copying what need not be copied."""
    if columns.dtype != offsets.dtype:  # torch needs one width for both; the columns are the larger array
        kind = np.int32 if columns.dtype == np.int32 and columns.size < 2**31 else np.int64
        offsets, columns = offsets.astype(kind), columns.astype(kind, copy=False)
    data = torch.ones(columns.size) if values is None else torch.from_numpy(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls CSR a beta, and a read-only array a danger
        crow, col = torch.from_numpy(offsets), torch.from_numpy(columns)
        size = (offsets.size - 1, num_columns)
        return torch.sparse_csr_tensor(crow, col, data, size=size, check_invariants=False)


def graph_tensor(graph: Graph, weighting: str = "ones", rows: slice = slice(None)) -> Tensor:
    """Return some rows of a graph's adjacency, weighted as the model needs it."""
    if weighting == "gcn":
        offsets, columns, values = with_self_loops(graph.indptr, graph.indices, graph.degrees)
    else:
        offsets, columns, values = graph.indptr, graph.indices, None
    start, stop, _ = rows.indices(graph.num_nodes)
    chosen = slice(offsets[start], offsets[stop])
    part = offsets[start : stop + 1]
    return csr_tensor(
        part - part[0] if start else part, columns[chosen], None if values is None else values[chosen], graph.num_nodes
    )


class FeatureTable:
    """Rows of features as tensors, gathered without the interpreter lock, from dense or sparse storage."""

    def __init__(self, features: Any) -> None:
        self.sparse = not isinstance(features, np.ndarray)
        self.shape: tuple[int, int] = features.shape
        self._source = features
        if not self.sparse:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the array is read-only, and only read
                self._dense = torch.from_numpy(features)

    def rows(self, nodes: npt.NDArray[np.int64]) -> Tensor:
        """Return the rows of some nodes."""
        if not self.sparse:
            return self._dense.index_select(0, torch.from_numpy(nodes))
        out = np.zeros((nodes.size, self.shape[1]), dtype=np.float32)
        dense_rows(self._source.indptr, self._source.indices, self._source.data, nodes, out)
        return torch.from_numpy(out)

    def all(self) -> Tensor:
        """Return all rows."""
        return self.rows(np.arange(self.shape[0])) if self.sparse else self._dense


@dataclass(frozen=True)
class Batch:
    """One CSR over local ids, of which layer after layer reads fewer rows."""

    seeds: npt.NDArray[np.int64]  #: the nodes whose logits are computed; they are the first local ids
    x: Tensor  #: features of all local nodes; with a `source`, of those that the first layer computes
    #: The sampled adjacency; values may be None, for ones.
    offsets: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    values: npt.NDArray[Any] | None
    sizes: Sequence[int]  #: ``sizes[h]`` local nodes are needed h layers before the last
    #: Features of the whole graph, and the first layer's columns as their rows.
    source: Tensor | None = None
    source_columns: npt.NDArray[Any] | None = None

    def layers(self) -> list[Tensor]:
        """Return one adjacency per layer, first layer first."""
        matrices: list[Tensor] = []
        for rows, width in zip(self.sizes[-2::-1], self.sizes[:0:-1], strict=True):
            end = self.offsets[rows]
            values = None if self.values is None else self.values[:end]
            columns, count = self.columns[:end], int(width)
            if not matrices and self.source is not None and self.source_columns is not None:
                columns, count = self.source_columns, self.source.shape[0]
            matrices.append(csr_tensor(self.offsets[: rows + 1], columns, values, count))
        return matrices

    def square(self) -> Tensor:
        """Return one adjacency for all layers, in which nodes that no layer computes have no neighbours."""
        nodes = self.x.shape[0]
        padding = np.full(nodes + 1 - self.offsets.size, self.offsets[-1], dtype=self.offsets.dtype)
        return csr_tensor(np.concatenate([self.offsets, padding]), self.columns, self.values, nodes)

    def logits(self, model: nn.Module) -> Tensor:
        """Run a model on the batch: the logits of the seeds."""
        if isinstance(model, Stack):
            return model(self.x, self.layers(), self.source)
        return model(self.x, self.square())[: self.seeds.size]


def prefetch(make: Callable[[int], Item], count: int, ahead: int = 2) -> Iterator[Item]:
    """Yield ``make(0), make(1), …`` in order, made by a background thread up to `ahead` items early.

    An exception in the thread is raised here; leaving the loop early leaves out what was not begun.
    """
    pool = ThreadPoolExecutor(1, "napsets-sampler")
    try:
        ready = deque(pool.submit(make, i) for i in range(min(ahead, count)))
        for i in range(count):
            item = ready.popleft().result()
            if i + ahead < count:
                ready.append(pool.submit(make, i + ahead))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)


def chunks(nodes: npt.NDArray[np.int64], size: int) -> list[npt.NDArray[np.int64]]:
    """Cut nodes into as few batches of at most `size` as will do, as equal as can be.

    A small remainder would give batch normalisation poor statistics, and a single node none at all.
    """
    return np.array_split(nodes, max(-(-nodes.size // size), 1))


def batch_key(*parts: int) -> int:
    """Mix seed, epoch, number of the batch and the like into one 63-bit key."""
    return int(np.random.SeedSequence([part & (2**63 - 1) for part in parts]).generate_state(1, np.uint64)[0] >> 1)


@dataclass(eq=False)
class Sampler(ABC):
    """What turns seeds and a key into a batch whose first local nodes are the seeds, the same one for the same key."""

    graph: Graph
    features: FeatureTable
    traits: Stack | type[Stack]  #: how the model reads the graph

    def __post_init__(self) -> None:
        # Whether the first layer reads dense features where they lie.
        self.in_place = self.traits.aggregates_first and not self.features.sparse
        self.scratch = np.full(self.graph.num_nodes, -1, dtype=np.int64)

    @abstractmethod
    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Sample one batch."""

    def seeds(self, nodes: IntArray, size: int) -> list[IntArray]:
        """Cut nodes into the seeds of batches of about this size."""
        return chunks(nodes, size)

    def batches(self, seeds: Sequence[IntArray], *parts: int) -> Iterator[Batch]:
        """Give the batches of some seeds, drawn ahead; the parts are what their keys have in common."""
        return prefetch(lambda i: self.sample(seeds[i], batch_key(*parts, i)), len(seeds))

    def _batch(
        self,
        seeds: IntArray,
        nodes: IntArray,
        offsets: IntArray,
        columns: npt.NDArray[np.integer],
        sizes: IntArray,
        degrees: IntArray,
    ) -> Batch:
        values = None
        if self.traits.weighting == "gcn":
            offsets, columns, values = with_self_loops(offsets, columns, degrees)
        steps = sizes.tolist()
        if not self.in_place:
            return Batch(seeds, self.features.rows(nodes), offsets, columns, values, steps)
        own, source = self.features.rows(nodes[: steps[-2]]), self.features.all()
        return Batch(seeds, own, offsets, columns, values, steps, source, nodes[columns[: offsets[steps[-2]]]])


@dataclass(eq=False)
class NeighbourSampler(Sampler):
    """Up to ``fanouts[0]`` neighbours of each seed, then ``fanouts[1]`` of each of those, …; −1 takes all."""

    fanouts: tuple[int, ...]

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Sample one batch."""
        graph, fanouts = self.graph, np.array(self.fanouts, dtype=np.int64)
        nodes, offsets, columns, sizes = neighbours(
            graph.indptr, graph.indices, seeds, fanouts, np.uint64(key), self.scratch
        )
        return self._batch(seeds, nodes, offsets, columns, sizes, graph.degrees[nodes])


@dataclass(eq=False)
class ShadowSampler(Sampler):
    """One ego-net per seed: the subgraph induced on up to `fanout` sampled neighbours of each node, `depth` deep."""

    depth: int
    fanout: int

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Sample one batch: what the model's layers can see of the roots, as the rest changes no root's logits."""
        graph, layers = self.graph, self.depth + 1 if self.traits.sight is None else self.traits.sight
        nodes, offsets, columns, sizes, degrees = shadow(
            graph.indptr, graph.indices, seeds, self.depth, self.fanout, np.uint64(key), layers, self.scratch
        )
        return self._batch(seeds, nodes, offsets, columns, sizes, degrees)


@dataclass(eq=False)
class FullSampler(Sampler):
    """Always the whole graph, whose nodes are all seeds; made once and given again and again."""

    layers: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.in_place = False
        graph, nodes = self.graph, np.arange(self.graph.num_nodes)
        sizes = np.full(self.layers + 1, graph.num_nodes)
        self.batch = self._batch(nodes, nodes, graph.indptr, graph.indices, sizes, graph.degrees)

    def seeds(self, nodes: IntArray, size: int) -> list[IntArray]:
        """Return all nodes, which are one batch."""
        return [nodes]

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Return the one batch there is."""
        return self.batch


def traits(model: nn.Module) -> Stack | type[Stack]:
    """Return what says how a model reads a graph: our own ones say it, and the defaults suit any module."""
    return model if isinstance(model, Stack) else Stack


def make_sampler(model: nn.Module, graph: Graph, features: FeatureTable, settings: TrainingSettings) -> Sampler:
    """Return the sampler for these settings and this model."""
    reads = traits(model)
    kind = settings.sampler
    if kind == "auto":
        small = graph.num_nodes <= FULL_BATCH_NODES and graph.num_edges <= FULL_BATCH_EDGES
        kind = "full" if small else "neighbours"
    if kind == "full":
        return FullSampler(graph, features, reads, settings.layers)
    if kind == "shadow":
        return ShadowSampler(graph, features, reads, settings.depth, settings.ego_fanout)
    fanouts = settings.fanouts if reads.reads_graph else (0,) * settings.layers
    return NeighbourSampler(graph, features, reads, fanouts)
