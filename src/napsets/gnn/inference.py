"""Logits of every node of a graph: exactly, with all neighbours, or sampled as in training."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from napsets.gnn.batches import FeatureTable, ShadowSampler, batch_key, chunks, graph_tensor, make_sampler, prefetch
from napsets.gnn.models import GCN, SageMean, Stack
from napsets.gnn.settings import Settings
from napsets.graph import Graph

#: Entries of an adjacency that are worked on at once: bounds memory, changes no result.
ENTRIES_AT_ONCE = 4_000_000


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode without gradients, and each of its parts back into the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def sampled_logits(model: nn.Module, graph: Graph, features: FeatureTable, settings: Settings, seed: int) -> Tensor:
    """Return logits from one sample of each node's neighbourhood, as the paper's released code did."""
    sampler = make_sampler(model, graph, features, settings)
    batches = chunks(np.arange(graph.num_nodes), settings.batch_size)
    if settings.sampler == "full":
        batches = [np.arange(graph.num_nodes)]
    with evaluating(model):
        drawn = prefetch(lambda i: sampler.sample(batches[i], batch_key(seed, 2, i)), len(batches))
        return torch.cat([batch.logits(model) for batch in drawn])


def exact_logits(model: nn.Module, graph: Graph, features: FeatureTable, settings: Settings) -> Tensor:
    """Return logits for which every neighbour counts.

    For ShaDow that means whole ego-nets. Where no layer can see their edge, all ego-nets agree with the graph itself
    and one pass over it serves all nodes. That is so for fewer layers than steps, and for means or maxima also for as
    many; a graph convolution sees one step further, through the degrees.
    """
    with evaluating(model):
        if settings.sampler != "shadow":
            return (
                _layer_by_layer(model, graph, features)
                if isinstance(model, Stack)
                else _at_once(model, graph, features)
            )
        if isinstance(model, Stack):
            sight = model.num_layers + (model.weighting == "gcn")
            if sight <= settings.depth or not model.reads_graph:
                return _layer_by_layer(model, graph, features)
        return _whole_egos(model, graph, features, settings)


def _at_once(model: nn.Module, graph: Graph, features: FeatureTable) -> Tensor:
    return model(features.all(), graph_tensor(graph))


def _layer_by_layer(model: Stack, graph: Graph, features: FeatureTable) -> Tensor:
    """Compute all nodes of one layer before the next, some rows at a time where rows are wide."""
    x = features.all()
    parts = _row_slices(graph) if isinstance(model, SageMean) else [slice(0, graph.num_nodes)]
    for i in range(model.num_layers):
        adjacency = (graph_tensor(graph, model.weighting, rows) for rows in parts)
        x = torch.cat([model.layer(i, x, x[rows], matrix) for rows, matrix in zip(parts, adjacency, strict=True)])
    return x


def _row_slices(graph: Graph) -> list[slice]:
    """Cut the rows into runs of about as many entries, counting a row as one more."""
    load = graph.indptr[1:] + np.arange(1, graph.num_nodes + 1)
    pieces = max(1, -(-int(load[-1]) // ENTRIES_AT_ONCE)) if load.size else 1
    goals = np.arange(1, pieces) * (ENTRIES_AT_ONCE if load.size else 0)
    ends = np.unique(np.concatenate([np.searchsorted(load, goals), [graph.num_nodes]]))
    starts = np.concatenate([[0], ends[:-1]])
    return [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True) if end > start]


def _whole_egos(model: nn.Module, graph: Graph, features: FeatureTable, settings: Settings) -> Tensor:
    if isinstance(model, GCN):
        model, features = _transformed(model, features)
    stack = model if isinstance(model, Stack) else None
    weighting = "ones" if stack is None else stack.weighting
    layers = None if stack is None else stack.num_layers
    in_place = isinstance(model, (GCN, SageMean))
    sampler = ShadowSampler(graph, features, weighting, settings.depth, -1, layers, in_place)
    batches = chunks(np.arange(graph.num_nodes), 64 if in_place else 16)
    drawn = prefetch(lambda i: sampler.sample(batches[i], 0), len(batches))
    return torch.cat([batch.logits(model) for batch in drawn])


def _transformed(model: GCN, features: FeatureTable) -> tuple[GCN, FeatureTable]:
    """Apply the first linear map, which acts on nodes one by one, to the graph once instead of to each ego-net."""
    rest = copy.deepcopy(model)
    rest.convs[0].lin = nn.Identity()
    first: Any = model.convs[0]
    return rest, FeatureTable(first.lin(features.all()).numpy())
