"""For those who already have a PyTorch Geometric model and its ``Data``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch_geometric.data import Data

from napsets.checks.arguments import ArrayLike, as_array, check_index, check_integers, count_trained
from napsets.checks.values import check_alpha, check_kind, choose
from napsets.errors import InvalidInputError, warn
from napsets.gnn.training import evaluating
from napsets.graph import Graph
from napsets.methods import Auto, Calibratable, make_method
from napsets.other_graphs import check_whole
from napsets.predictions import PredictionSets


def predict_sets(
    model: nn.Module,
    data: Data,
    calibration_mask: ArrayLike,
    nodes: ArrayLike,
    alpha: float = 0.1,
    *,
    evidence: ArrayLike | None = None,
    method: Calibratable | str | None = None,
    within: ArrayLike | None = None,
    directed: bool | None = None,
    outputs: str = "logits",
    forward: Callable[[nn.Module, Data], torch.Tensor] | None = None,
    device: str | torch.device | None = None,
) -> PredictionSets:
    """Return prediction sets from a trained model and a ``Data``; both are left as they were.

    Parameters
    ----------
    model : torch.nn.Module
        Called once as ``model(data.x, data.edge_index)``, in evaluation mode and without gradients; or as
        ``model(data)``, where its ``forward`` takes one argument or calls its first one ``data``.
    data : torch_geometric.data.Data
        Its ``y`` holds the labels; those outside `calibration_mask` and `evidence` are not looked at.
    calibration_mask : array
        Boolean mask or node indices: whose labels may be used. None of them should have trained the model.
    nodes : array
        Which nodes to predict, as a mask or as indices.
    alpha : float
        Error rate.
    evidence : array, optional
        As in `NAPS.calibrate`, as a mask or as indices: further labels that teach, and need not be a random sample.
    method : Method, Auto or str, optional
        The method, or its name in the table of methods; by default ``Auto(alpha)``. It is calibrated here, and left as
        it was.
    within : array, optional
        Mask or indices of the nodes whose induced subgraph gives the neighbourhoods, as the paper takes the test
        nodes; by default the whole graph.
    directed : bool, optional
        Whether neighbourhoods follow edges from source to target only; by default both ways, with a warning where an
        edge has no reverse edge.
    outputs : str
        What the model returns: ``logits`` (log-probabilities will do) or ``probabilities``.
    forward : callable, optional
        How to call a model that takes other arguments: ``forward(model, data)``.
    device : str, optional
        Where to run the model, which is brought back afterwards; by default where it is.

    Examples
    --------
    >>> from torch_geometric.nn import GraphSAGE
    >>> from napsets.datasets import load, to_pyg
    >>> data = to_pyg(load("sbm", block_size=200))
    >>> model = GraphSAGE(16, 8, 2, 4)
    >>> sets = predict_sets(model, data, data.val_mask, data.test_mask, alpha=0.1)
    >>> len(sets) == int(data.test_mask.sum())
    True
    """
    check_whole("data", data)
    probabilities = probabilities_of(model, data, outputs=outputs, forward=forward, device=device)
    graph = Graph.from_pyg(data, directed=directed)
    size = graph.num_nodes
    if probabilities.shape[0] != size:
        raise InvalidInputError(f"`model` must return one row per node, {size}; got {probabilities.shape[0]}")
    calibration = check_index("calibration_mask", calibration_mask, size)
    chosen = check_index("nodes", nodes, size)
    taught = None if evidence is None else check_index("evidence", evidence, size)
    known = calibration if taught is None else np.union1d(calibration, taught)
    labels = np.full(size, -1, dtype=np.int64)
    labels[known] = _labels(data, size)[known]
    made = _make(method, alpha)
    count_trained(getattr(data, "train_mask", None), calibration, size)
    if within is None:
        calibrated = made.calibrate_rows(graph, probabilities, labels, calibration, evidence=taught)
        return calibrated.predict(chosen, alpha)
    kept = np.unique(check_index("within", within, size))
    place = np.full(size, -1, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    for name, part in (("calibration_mask", calibration), ("nodes", chosen), ("evidence", taught)):
        if part is not None and (place[part] < 0).any():
            raise InvalidInputError(f"`{name}` must lie within `within`; node {part[place[part] < 0][0]} does not")
    taught = None if taught is None else place[taught]
    arrays = probabilities[kept], labels[kept], place[calibration]
    inside = made.calibrate_rows(graph.subgraph(kept), *arrays, kept, evidence=taught)
    return replace(inside.predict(place[chosen], alpha), nodes=chosen, num_nodes=size)


def _make(method: Calibratable | str | None, alpha: float) -> Calibratable:
    """Return a method from itself or from its name; by default an `Auto` for the error rate."""
    if method is None:
        return Auto(check_alpha(alpha))
    if isinstance(method, str):
        return make_method(method, alpha=check_alpha(alpha))
    hint = "Take ns.Auto(), or the name of a method."
    return check_kind("method", method, Calibratable, hint=hint)  # type: ignore[type-abstract]


def probabilities_of(
    model: nn.Module,
    data: Data,
    *,
    outputs: str = "logits",
    forward: Callable[[nn.Module, Data], torch.Tensor] | None = None,
    device: str | torch.device | None = None,
) -> npt.NDArray[np.float64]:
    """Return a model's probabilities for all nodes of a ``Data``; the parameters are those of `predict_sets`."""
    kind = choose("outputs", outputs, {"logits": "logits", "probabilities": "probabilities"})
    with _moved(model, device) as place, evaluating(model):
        moved = data if place is None else data.clone().to(place)
        result = (_forward if forward is None else forward)(model, moved)
    if not isinstance(result, torch.Tensor) or result.ndim != 2:
        raise InvalidInputError(
            f"`model` must return a matrix with one row per node; got {type(result).__name__}. Pick it out with "
            f"forward=lambda model, data: …"
        )
    values = result.detach().cpu().double()
    if kind == "probabilities":
        return np.asarray(values.numpy())
    if values.numel() and bool((values >= 0).all()) and bool(((values.sum(dim=1) - 1).abs() < 1e-4).all()):
        message = "the model's outputs look like probabilities; say outputs='probabilities' if they are"
        warn(message)
    return np.asarray(torch.softmax(values, dim=1).numpy())


def _forward(model: nn.Module, data: Data) -> torch.Tensor:
    """Call a model as its forward expects it: with features and edges, or with the data as a whole."""
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # not written in Python
        return model(data.x, data.edge_index)
    first = next(iter(signature.parameters), "")
    if first != "data" and _takes(signature, 2):
        return model(data.x, data.edge_index)
    if _takes(signature, 1):
        return model(data)
    raise InvalidInputError(
        f"`model` must take (x, edge_index) or (data); its forward takes {signature}. Say how to call it: "
        f"forward=lambda model, data: model(data.x, data.edge_index, …)."
    )


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _labels(data: Data, size: int) -> npt.NDArray[np.int64]:
    """Return one label per node; a column of them will do."""
    y = as_array("data.y", data.y)
    if y.shape == (size, 1):
        y = y.reshape(size)
    if y.shape != (size,):
        raise InvalidInputError(f"`data.y` must have one label per node, shape ({size},); got {y.shape}")
    return check_integers("data.y", y)


@contextmanager
def _moved(model: nn.Module, device: str | torch.device | None) -> Iterator[torch.device | None]:
    """Move the model to the device to run on, and back afterwards; yields None if no device is known."""
    first = next(iter([*model.parameters(), *model.buffers()]), None)
    home = None if first is None else first.device
    target = home if device is None else torch.device(device)
    if target != home:
        model.to(target)
    try:
        yield target
    finally:
        if target != home and home is not None:
            model.to(home)
