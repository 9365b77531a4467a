"""Datasets: one graph included in the package, some synthetic, others read from files.

`load` finds those that have a name; `from_files` and `from_pyg` take the user's own. All give a `NodeDataset`.
`amazon_predictions` are the predictions of a trained model for one of them.
"""

from __future__ import annotations

from napsets.datasets.amazon import amazon_predictions
from napsets.datasets.dataset import SPLIT_NAMES, NodeDataset, from_pyg, random_split, to_pyg
from napsets.datasets.files import from_files, read_graphsaint
from napsets.datasets.registry import DATASETS, DatasetEntry, load, read_collected
from napsets.datasets.synthetic import dcsbm, dcsbm_graph, sbm, sbm_graph

__all__ = [
    "DATASETS",
    "SPLIT_NAMES",
    "DatasetEntry",
    "NodeDataset",
    "amazon_predictions",
    "dcsbm",
    "dcsbm_graph",
    "from_files",
    "from_pyg",
    "load",
    "random_split",
    "read_collected",
    "read_graphsaint",
    "sbm",
    "sbm_graph",
    "to_pyg",
]
