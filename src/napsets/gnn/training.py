"""Train a graph neural network on a dataset: inductively, on the whole training graph at once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphSAGE

from napsets.checks.arguments import IntArray
from napsets.checks.values import check_count, check_kind, check_number, check_progress, check_seed
from napsets.datasets.dataset import NodeDataset, NodePredictions
from napsets.errors import InvalidInputError
from napsets.graph import Graph

if TYPE_CHECKING:
    from napsets.kernels.threads import Progress

#: Torch cuts its sums among threads, so their number changes the last bits, and training carries these into the result.
#: It is therefore a setting with one default, not the number of cores.
THREADS = 2


def train(
    dataset: NodeDataset,
    model: nn.Module | None = None,
    *,
    seed: int = 0,
    hidden: int = 64,
    dropout: float = 0.5,
    learning_rate: float = 0.01,
    epochs: int = 100,
    progress: Progress | None = None,
    threads: int | None = None,
) -> NodePredictions:
    """Train a model on the training nodes, and return its probabilities for all nodes.

    Training sees the subgraph of the training nodes only, validation that of training and validation nodes; the test
    nodes enter when the trained model predicts. Of all epochs, the weights with the best validation accuracy are kept,
    so calibrate on test nodes.

    Parameters
    ----------
    dataset : NodeDataset
    model : torch.nn.Module, optional
        By default PyTorch Geometric's GraphSAGE: two layers of `hidden` numbers, batch normalisation and `dropout`. A
        module of your own is called as ``model(x, adjacency)`` with a torch CSR adjacency, whose rows are the nodes
        computed, and returns one row of logits per node. It is trained in place.
    seed : int
        Draws the initial weights of the default model, and dropout.
    hidden, dropout
        Of the default model.
    learning_rate, epochs
        Of Adam; one step per epoch.
    progress : callable, optional
        Called as ``progress(done, total)`` in epochs.
    threads : int, optional
        Threads that torch uses: two by default on every machine, because another number gives other last bits.

    Examples
    --------
    >>> from napsets.datasets import load
    >>> predictions = train(load("sbm", block_size=100), epochs=3)
    >>> predictions.probabilities.shape
    (200, 4)
    """
    check_kind("dataset", dataset, NodeDataset, hint="Load one, or make one with NodeDataset(...).")
    if dataset.train.size == 0 or dataset.num_features == 0:
        raise InvalidInputError("`dataset` must have training nodes and at least one feature to train on")
    seed, progress = check_seed(seed), check_progress(progress)
    settings = {
        "hidden": check_count("hidden", hidden, minimum=1),
        "dropout": check_number("dropout", dropout, largest=0.999),
        "learning_rate": check_number("learning_rate", learning_rate, largest=1e6),
        "epochs": check_count("epochs", epochs, minimum=1),
    }
    with torch_threads(threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if model is None:
            widths, name = (dataset.num_features, hidden, 2, dataset.num_classes), "graphsage"
            module = GraphSAGE(*widths, dropout=dropout, norm="batch_norm")
        else:
            module = check_kind("model", model, nn.Module, hint="Leave it out for a GraphSAGE.")
            name = type(module).__name__
        accuracy, best_epoch = _fit(module, dataset, learning_rate, epochs, progress)
        with evaluating(module):
            logits = module(_features(dataset, slice(None)), csr_tensor(dataset.graph))
    about = {"seed": seed, "best_epoch": best_epoch, "validation_accuracy": accuracy, "dataset": dict(dataset.settings)}
    probabilities = torch.softmax(logits.double(), dim=1).float().numpy()
    nodes, origin = np.arange(dataset.num_nodes), (dataset.split, dataset.name, name, settings | about)
    return NodePredictions(nodes, probabilities, dataset.labels, *origin, class_names=dataset.class_names)


def _fit(
    module: nn.Module, dataset: NodeDataset, learning_rate: float, epochs: int, progress: Progress | None
) -> tuple[float, int]:
    """Train a module in place; return the best validation accuracy and its epoch."""
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    seen = np.sort(np.concatenate([dataset.train, dataset.validation]))
    views = [
        (_features(dataset, nodes), csr_tensor(dataset.graph.subgraph(nodes)), torch.from_numpy(dataset.labels[nodes]))
        for nodes in (dataset.train, seen)
    ]
    (x, adjacency, labels), (seen_x, seen_adjacency, seen_labels) = views
    scored = torch.from_numpy(np.isin(seen, dataset.validation))
    best, best_epoch, weights = -1.0, 0, module.state_dict()
    for epoch in range(epochs):
        module.train()
        optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(module(x, adjacency), labels).backward()
        optimiser.step()
        accuracy = float(epoch)  # without validation nodes, the last weights are kept
        if dataset.validation.size:
            with evaluating(module):
                right = module(seen_x, seen_adjacency).argmax(dim=1) == seen_labels
            accuracy = float(right[scored].double().mean())
        if accuracy > best:
            best, best_epoch, weights = accuracy, epoch, copy.deepcopy(module.state_dict())
        if progress is not None:
            progress(epoch + 1, epochs)
    module.load_state_dict(weights)
    module.eval()
    return best if dataset.validation.size else float("nan"), best_epoch


def _features(dataset: NodeDataset, nodes: IntArray | slice) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the array may be read-only, and is only read
        return torch.from_numpy(dataset.feature_rows(nodes))


def csr_tensor(graph: Graph) -> Tensor:
    """Return a graph's adjacency as a torch CSR tensor of ones."""
    columns = graph.indices.astype(np.int64, copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls CSR a beta, and a read-only array a danger
        crow, col = torch.from_numpy(graph.indptr), torch.from_numpy(columns)
        size = (graph.num_nodes, graph.num_nodes)
        return torch.sparse_csr_tensor(crow, col, torch.ones(columns.size), size=size, check_invariants=False)


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let torch use this many threads inside, `THREADS` by default, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(check_count("threads", THREADS if count is None else count, minimum=1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
