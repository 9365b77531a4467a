"""Samplers: from seeds to a batch, on our CSR in compiled code, each batch from a key of its own."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from napsets.gnn.batches import Batch, FeatureTable
from napsets.gnn.models import Stack
from napsets.gnn.settings import Settings
from napsets.graph import Graph
from napsets.kernels.sampling import neighbours, shadow, with_self_loops

__all__ = ["FullSampler", "NeighbourSampler", "Sampler", "ShadowSampler", "batch_key", "make_sampler"]

IntArray = npt.NDArray[np.int64]

#: Training graphs up to this size are taken whole where the settings leave the choice.
FULL_BATCH_NODES, FULL_BATCH_EDGES = 20_000, 1_000_000


class Sampler(Protocol):
    """Something that turns seeds and a key into a batch, the same one for the same key."""

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Return a batch whose first local nodes are the seeds."""


def batch_key(*words: int) -> int:
    """Mix seed, epoch, number of the batch and the like into one 63-bit key."""
    return int(np.random.SeedSequence([word & (2**63 - 1) for word in words]).generate_state(1, np.uint64)[0] >> 1)


class _OnGraph:
    """What the samplers share: graph, features, weighting, and a scratch array per node.

    With `in_place`, the first layer reads dense features where they lie (see `Stack.aggregates_first`).
    """

    def __init__(self, graph: Graph, features: FeatureTable, weighting: str, in_place: bool = False) -> None:
        self.graph, self.features, self.weighting = graph, features, weighting
        self.in_place = in_place and not features.sparse
        self.scratch = np.full(graph.num_nodes, -1, dtype=np.int64)

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
        if self.weighting == "gcn":
            offsets, columns, values = with_self_loops(offsets, columns, degrees)
        steps = sizes.tolist()
        if not self.in_place:
            return Batch(seeds, self.features.rows(nodes), offsets, columns, values, steps)
        own, source = self.features.rows(nodes[: steps[-2]]), self.features.all()
        return Batch(seeds, own, offsets, columns, values, steps, source, nodes[columns[: offsets[steps[-2]]]])


class NeighbourSampler(_OnGraph):
    """Up to ``fanouts[0]`` neighbours of each seed, then ``fanouts[1]`` of each of those, …; −1 takes all."""

    def __init__(
        self, graph: Graph, features: FeatureTable, weighting: str, fanouts: tuple[int, ...], in_place: bool = False
    ) -> None:
        super().__init__(graph, features, weighting, in_place)
        self.fanouts = np.array(fanouts, dtype=np.int64)

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Sample one batch."""
        graph = self.graph
        nodes, offsets, columns, sizes = neighbours(
            graph.indptr, graph.indices, seeds, self.fanouts, np.uint64(key), self.scratch
        )
        return self._batch(seeds, nodes, offsets, columns, sizes, graph.degrees[nodes])


class ShadowSampler(_OnGraph):
    """One ego-net per seed: the subgraph induced on up to `fanout` sampled neighbours of each node, `depth` deep.

    With `layers`, only what that many layers can see of the root is kept, which changes no root's logits; without,
    all of the ego-net.
    """

    def __init__(
        self,
        graph: Graph,
        features: FeatureTable,
        weighting: str,
        depth: int,
        fanout: int,
        layers: int | None = None,
        in_place: bool = False,
    ) -> None:
        super().__init__(graph, features, weighting, in_place)
        self.depth, self.fanout = depth, fanout
        self.layers = depth + 1 if layers is None else layers

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Sample one batch."""
        nodes, offsets, columns, sizes, degrees = shadow(
            self.graph.indptr,
            self.graph.indices,
            seeds,
            self.depth,
            self.fanout,
            np.uint64(key),
            self.layers,
            self.scratch,
        )
        return self._batch(seeds, nodes, offsets, columns, sizes, degrees)


class FullSampler(_OnGraph):
    """Always the whole graph, whose nodes are all seeds; made once and given again and again."""

    def __init__(self, graph: Graph, features: FeatureTable, weighting: str, layers: int) -> None:
        super().__init__(graph, features, weighting)
        nodes = np.arange(graph.num_nodes)
        sizes = np.full(layers + 1, graph.num_nodes)
        self.batch = self._batch(nodes, nodes, graph.indptr, graph.indices, sizes, graph.degrees)

    def sample(self, seeds: IntArray, key: int) -> Batch:
        """Return the one batch there is."""
        return self.batch


def make_sampler(model: object, graph: Graph, features: FeatureTable, settings: Settings) -> Sampler:
    """Return the sampler that settings and model ask for."""
    stack = model if isinstance(model, Stack) else None
    weighting = "ones" if stack is None else stack.weighting
    in_place = stack is not None and stack.aggregates_first
    kind = settings.sampler
    if kind == "auto":
        small = graph.num_nodes <= FULL_BATCH_NODES and graph.num_edges <= FULL_BATCH_EDGES
        kind = "full" if small else "neighbours"
    if kind == "full":
        return FullSampler(graph, features, weighting, settings.layers)
    if kind == "shadow":
        layers = None if stack is None else stack.num_layers
        return ShadowSampler(graph, features, weighting, settings.depth, settings.ego_fanout, layers, in_place)
    fanouts = settings.fanouts if stack is None or stack.reads_graph else (0,) * settings.layers
    return NeighbourSampler(graph, features, weighting, fanouts, in_place)
