"""From and to PyTorch Geometric's ``Data``."""

from __future__ import annotations

from typing import Any

import numpy as np

from napsets.checks.arguments import as_array
from napsets.datasets.dataset import NodeDataset
from napsets.errors import InvalidInputError, MissingDependencyError
from napsets.graph import Graph

__all__ = ["from_pyg", "to_pyg"]


def from_pyg(data: Any, *, name: str = "custom", directed: bool = False) -> NodeDataset:
    """Make a dataset from a ``Data`` with ``x``, ``y``, ``edge_index`` and the three masks.

    Parameters
    ----------
    data : torch_geometric.data.Data
        ``train_mask``, ``val_mask`` and ``test_mask`` give the split.
    name, directed
        What results call the dataset, and whether edges count both ways.
    """
    missing = [
        field
        for field in ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")
        if getattr(data, field, None) is None
    ]
    if missing:
        raise InvalidInputError(f"`data` must have x, y, edge_index and the three masks; it lacks {', '.join(missing)}")
    masks = [as_array(f"data.{part}_mask", getattr(data, f"{part}_mask")) for part in ("train", "val", "test")]
    if any(mask.ndim != 1 or mask.dtype != np.bool_ for mask in masks):
        raise InvalidInputError("`data` must have masks of one boolean a node; choose one column of several splits")
    labels = as_array("data.y", data.y)
    train, validation, test = masks
    return NodeDataset(Graph.from_pyg(data, directed=directed), data.x, labels, train, validation, test, name=name)


def to_pyg(dataset: NodeDataset) -> Any:
    """Return a dataset as a ``Data`` with ``x``, ``y``, ``edge_index`` and masks."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as error:
        raise MissingDependencyError("torch_geometric", "gnn") from error
    graph = dataset.graph
    target = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices.astype(np.int64), target]))
    split = dataset.split
    masks = {
        f"{short}_mask": torch.from_numpy(split == part)
        for short, part in (("train", "train"), ("val", "validation"), ("test", "test"))
    }
    x = torch.from_numpy(dataset.feature_rows(slice(None)).copy())
    return Data(x=x, y=torch.from_numpy(dataset.labels.copy()), edge_index=edge_index, **masks)
