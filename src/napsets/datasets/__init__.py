"""Datasets: one graph included in the package, some synthetic, and `NodeDataset` for the user's own.

`load` finds those that have a name; `from_pyg` converts a ``Data``. `amazon_predictions` are the predictions of a
trained model for the included graph.
"""

from __future__ import annotations

from napsets.datasets.amazon import amazon_predictions
from napsets.datasets.dataset import SPLIT_NAMES, NodeDataset, NodePredictions, from_pyg, random_split, to_pyg
from napsets.datasets.registry import DATASETS, load
from napsets.datasets.synthetic import dcsbm, dcsbm_graph, sbm, sbm_graph

__all__ = [
    "DATASETS",
    "SPLIT_NAMES",
    "NodeDataset",
    "NodePredictions",
    "amazon_predictions",
    "dcsbm",
    "dcsbm_graph",
    "from_pyg",
    "load",
    "random_split",
    "sbm",
    "sbm_graph",
    "to_pyg",
]
