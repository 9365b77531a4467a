"""Batches of nodes, and the samplers that draw them, in plain NumPy.

A batch is one CSR matrix over local nodes, which are ordered by the layer that first reads them: ``sizes[h]`` nodes are
within h steps of the seeds, seeds first. The layer that computes the first ``sizes[h]`` nodes reads the first
``sizes[h]`` rows, so that nothing is stored twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor

from napsets import Graph
from studies.training.models import Stack, TrainingSettings

IntArray = npt.NDArray[np.int64]
#: The pairs (row, neighbour) of some nodes, in the order of the rows.
Pairs = tuple[IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class Batch:
    """The nodes that a model reads to compute its seeds."""

    nodes: IntArray  #: ids in the graph, seeds first
    offsets: IntArray  #: rows of the nodes that some layer computes
    columns: IntArray  #: local nodes
    values: npt.NDArray[np.float32] | None  #: None for ones
    sizes: Sequence[int]  #: ``sizes[h]`` nodes are needed h layers before the last

    @property
    def seeds(self) -> IntArray:
        """The nodes whose outputs are computed."""
        return self.nodes[: self.sizes[0]]

    def outputs(self, model: Stack, features: Tensor) -> Tensor:
        """Run a model on the batch: the outputs of the seeds. `features` are those of the whole graph."""
        rows = self.sizes[-2]
        matrices: list[Tensor] = []
        for rows_of_layer, width in zip(self.sizes[-2::-1], self.sizes[:0:-1], strict=True):
            end = self.offsets[rows_of_layer]
            columns = self.columns[:end]
            if not matrices:  # the first layer reads features where they are
                columns, width = self.nodes[columns], features.shape[0]
            values = None if self.values is None else self.values[:end]
            matrices.append(_csr_tensor(self.offsets[: rows_of_layer + 1], columns, values, width))
        own = features if rows == features.shape[0] else features[torch.from_numpy(self.nodes[:rows])]
        return model(features, own, matrices)


def _csr_tensor(offsets: IntArray, columns: IntArray, values: npt.NDArray[Any] | None, width: int) -> Tensor:
    data = torch.ones(columns.size) if values is None else torch.from_numpy(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that CSR is in beta, and about read-only arrays
        crow, col = torch.from_numpy(offsets), torch.from_numpy(columns)
        return torch.sparse_csr_tensor(crow, col, data, size=(offsets.size - 1, width), check_invariants=False)


def with_self_loops(offsets: IntArray, columns: IntArray, degrees: IntArray) -> Any:
    """Add each row's own node and weigh as a graph convolution does: 1 / √((dᵢ+1)(dⱼ+1)).

    `degrees` may exceed the entries of a row, which is then a sample: its weights are scaled up so that their
    expectation is that of the whole row. Returns offsets, columns and weights.
    """
    taken = np.diff(offsets)
    own = np.arange(taken.size)
    rows = np.repeat(own, taken)
    scale = (degrees[own] / np.maximum(taken, 1))[rows]
    weights = scale / np.sqrt((degrees[rows] + 1.0) * (degrees[columns] + 1.0))
    values = np.concatenate([weights, 1.0 / (degrees[own] + 1.0)])
    places = np.concatenate([rows, own]), np.concatenate([columns, own])
    matrix = scipy.sparse.csr_array((values, places), shape=(taken.size, degrees.size))
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float32)


def whole_batch(graph: Graph, model: Stack) -> Batch:
    """Return the batch of all nodes, in which every neighbour counts."""
    offsets, columns, values = graph.indptr, graph.indices.astype(np.int64), None
    if model.weighting == "gcn":
        offsets, columns, values = with_self_loops(offsets, columns, graph.degrees)
    return Batch(np.arange(graph.num_nodes), offsets, columns, values, [graph.num_nodes] * (len(model.convs) + 1))


def all_neighbours(graph: Graph, nodes: IntArray) -> Pairs:
    """Return all neighbours of some nodes."""
    degrees = graph.degrees[nodes]
    rows = np.repeat(np.arange(nodes.size), degrees)
    first = graph.indptr[nodes] - (np.cumsum(degrees) - degrees)
    return rows, graph.indices[first[rows] + np.arange(rows.size)].astype(np.int64)


def draw_neighbours(graph: Graph, nodes: IntArray, fanout: int, rng: np.random.Generator) -> Pairs:
    """Draw up to `fanout` neighbours of each node (all, if negative); each set of that size is equally likely."""
    if fanout < 0:
        return all_neighbours(graph, nodes)
    degrees = graph.degrees[nodes]
    places = np.tile(np.arange(fanout), (nodes.size, 1))
    many = np.flatnonzero(degrees > fanout)
    drawn = np.empty((many.size, fanout), dtype=np.int64)
    for j in range(fanout):  # Floyd's method, for all nodes at once
        last = degrees[many] - fanout + j
        place = rng.integers(0, last, endpoint=True)
        drawn[:, j] = np.where((drawn[:, :j] == place[:, None]).any(axis=1), last, place)
    places[many] = drawn
    rows, at = np.nonzero(places < degrees[:, None])
    return rows, graph.indices[graph.indptr[nodes[rows]] + places[rows, at]].astype(np.int64)


def _by_layer(
    seeds: IntArray, size: int, steps: Sequence[Callable[[IntArray], Pairs]]
) -> tuple[IntArray, IntArray, IntArray, list[int]]:
    """Order nodes below `size` by the layer that first reads them; each step gives the pairs of the latest nodes.

    Returns the nodes, and the offsets, columns and sizes of a `Batch`.
    """
    place = np.full(size, -1, dtype=np.int64)
    place[seeds] = np.arange(seeds.size)
    levels, counts, columns, sizes = [seeds], [], [], [seeds.size]
    for step in steps:
        rows, read = step(levels[-1])
        fresh = np.unique(read[place[read] < 0])
        place[fresh] = sizes[-1] + np.arange(fresh.size)
        counts.append(np.bincount(rows, minlength=levels[-1].size))
        columns.append(place[read])
        levels.append(fresh)
        sizes.append(sizes[-1] + fresh.size)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return np.concatenate(levels), offsets, np.concatenate(columns), sizes


def neighbour_batch(
    graph: Graph, model: Stack, seeds: IntArray, fanouts: Sequence[int], rng: np.random.Generator
) -> Batch:
    """Draw up to ``fanouts[0]`` neighbours of each seed, then ``fanouts[1]`` of each new node, and so on."""
    steps = [lambda level, fanout=fanout: draw_neighbours(graph, level, fanout, rng) for fanout in fanouts]
    nodes, offsets, columns, sizes = _by_layer(seeds, graph.num_nodes, steps)
    values = None
    if model.weighting == "gcn":
        offsets, columns, values = with_self_loops(offsets, columns, graph.degrees[nodes])
    return Batch(nodes, offsets, columns, values, sizes)


def shadow_batch(
    graph: Graph, model: Stack, roots: IntArray, depth: int, fanout: int, rng: np.random.Generator
) -> Batch:
    """Draw one ego-net per root: the subgraph induced on up to `fanout` neighbours of each node, `depth` steps deep.

    The batch holds what the model's layers can see of them: a node's level is its distance from the root in the
    ego-net, and rows are kept up to the number of layers.
    """
    size = graph.num_nodes
    start = np.arange(roots.size) * size + roots  # a key stands for an ego-net and a node of it

    def of_same_ego(keys: IntArray, pairs: Pairs) -> Pairs:
        return pairs[0], pairs[1] + (keys - keys % size)[pairs[0]]

    member, level = np.zeros(roots.size * size, dtype=bool), start
    member[start] = True
    for _ in range(depth):
        _, drawn = of_same_ego(level, draw_neighbours(graph, level % size, fanout, rng))
        level = np.unique(drawn[~member[drawn]])
        member[level] = True

    def inside(keys: IntArray) -> Pairs:
        rows, read = of_same_ego(keys, all_neighbours(graph, keys % size))
        return rows[member[read]], read[member[read]]

    keys, offsets, columns, sizes = _by_layer(start, member.size, [inside] * len(model.convs))
    values = None
    if model.weighting == "gcn":
        inside_of_each: Any = scipy.sparse.csr_array(member.reshape(-1, size), dtype=np.int32)
        degrees = (inside_of_each @ graph.to_scipy().astype(np.int32).T).toarray().ravel()[keys]
        offsets, columns, values = with_self_loops(offsets, columns, degrees)
    return Batch(keys % size, offsets, columns, values, sizes)


def chunks(nodes: IntArray, size: int) -> list[IntArray]:
    """Cut nodes into as few batches of at most `size` as possible, of equal size up to one.

    A small remainder would give batch normalisation poor statistics, and a single node none at all.
    """
    return np.array_split(nodes, max(-(-nodes.size // size), 1))


def draw_batches(
    graph: Graph, model: Stack, nodes: IntArray, settings: TrainingSettings, *key: int
) -> Iterator[tuple[int, int, Batch]]:
    """Yield number, count and batch for the batches that nodes are cut into; the same key draws the same ones."""
    if settings.sampler == "full":
        yield 0, 1, whole_batch(graph, model)
        return
    parts = chunks(nodes, settings.batch_size)
    for i, part in enumerate(parts):
        rng = np.random.default_rng([*key, i])
        if settings.sampler == "shadow":
            yield i, len(parts), shadow_batch(graph, model, part, settings.depth, settings.ego_fanout, rng)
        else:
            yield i, len(parts), neighbour_batch(graph, model, part, settings.fanouts, rng)
