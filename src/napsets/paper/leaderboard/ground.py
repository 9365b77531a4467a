"""What methods compete on: a graph induced on test nodes, what a model says of them, and the truth.

Models are trained inductively: training sees the graph of the training nodes alone. Only the probabilities of test
nodes are kept, rounded to multiples of 2⁻¹⁵.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.checks.names import choose
from napsets.datasets import DATASETS, NodeDataset, load
from napsets.datasets.amazon import round_rows
from napsets.datasets.collection import COLLECTION
from napsets.files.predictions import NodePredictions
from napsets.graph import Graph
from napsets.paper.cells import RESULTS_VERSION, digest

__all__ = [
    "GRAPHS",
    "MODELS",
    "TRAINING",
    "Ground",
    "KeptPredictions",
    "check_dataset",
    "is_there",
    "load_graph",
    "scaled",
    "train_predictions",
]

#: The graphs compared on where nothing else is asked for. Those that keep the direction of another one's edges are the
#: same graph a second time, and would count double in every mean.
GRAPHS = ("amazon-computers", *(name for name in COLLECTION if not name.endswith("-directed")))
#: Two that look at neighbours, and one that does without the graph.
MODELS = ("graphsage-mean", "gcn", "mlp")
#: How models are trained: the preset, and what differs from it. With a few hundred training nodes, 30 epochs are too
#: few, and dropout of 0.2 too little.
PRESET = "released-code"
CHANGES: dict[str, Any] = {"sampler": "full", "epochs": 100, "dropout": 0.5, "weight_decay": 5e-4}
TRAINING: dict[str, Any] = {"preset": PRESET, **CHANGES}
#: Where the project keeps the graphs that do not come with the package.
FOLDER = Path("benchmarks") / "data"
#: Below so many, features are quantities of different kinds; from there on they are words.
_FEW_FEATURES = 50


class Trained(Protocol):
    """What says which model is meant: a cell."""

    @property
    def dataset(self) -> str:
        """The graph."""

    @property
    def model(self) -> str:
        """The model."""

    @property
    def seed(self) -> int:
        """Draws the split and trains the model."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A graph induced on test nodes, with what a model says of them.

    Attributes
    ----------
    graph : Graph
        On the test nodes, numbered 0..n−1.
    probabilities, labels : numpy.ndarray
        Of these nodes.
    features : numpy.ndarray or scipy.sparse.csr_array
        Theirs, as they come with the graph: for methods that compare nodes by them.
    """

    graph: Graph
    probabilities: npt.NDArray[Any]
    labels: IntArray
    features: Any

    @classmethod
    def build(cls, data: NodeDataset, predictions: NodePredictions) -> Ground:
        """Put together what belongs to the test nodes."""
        nodes, said = data.test, predictions.take(data.test)
        return cls(data.graph.subgraph(nodes), said.probabilities, data.labels[nodes], data.features[nodes])

    @property
    def accuracy(self) -> float:
        """Share of nodes whose most likely label is right."""
        return float((self.probabilities.argmax(axis=1) == self.labels).mean())


def check_dataset(name: str) -> str:
    """Return the name of a graph that can be compared on: those of the collection, and what needs no files."""
    return choose("dataset", name, {known: known for known in ("amazon-computers", *COLLECTION)})


def is_there(name: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Say whether a graph can be had here: drawn or embedded, or its file lies in `root`."""
    return name not in COLLECTION or (Path(root or FOLDER) / f"{name.replace('-', '_')}.npz").exists()


def load_graph(name: str, seed: int, root: str | os.PathLike[str] | None = None) -> NodeDataset:
    """Return one of the graphs with the split of a seed."""
    takes_root = "root" in choose("dataset", name, DATASETS).options
    return load(name, seed=seed, root=Path(root or FOLDER)) if takes_root else load(name, seed=seed)


class KeptPredictions:
    """Gives a model's predictions on a graph's test nodes: from a file, or by training it.

    Parameters
    ----------
    folder : path
        Where the files live, named by what they hold and a hash of the settings.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, cell: Trained) -> Path:
        """Return the file of the predictions that a cell is about."""
        names = (cell.dataset, cell.model, str(cell.seed))
        mark = digest({"names": names, "training": TRAINING, "version": RESULTS_VERSION})
        return self.folder / f"{'_'.join(names)}_{mark[:8]}.npz"

    def __call__(self, cell: Trained, data: NodeDataset) -> NodePredictions:
        """Return the predictions, training only where there is no file yet."""
        path = self.path(cell)
        if not path.exists():
            train_predictions(data, cell.model, cell.seed).save(path)
        return NodePredictions.load(path)


def train_predictions(data: NodeDataset, model: str, seed: int) -> NodePredictions:
    """Train a model and return its predictions on the test nodes; the time it took stands in the settings."""
    from napsets import gnn

    start = time.perf_counter()
    # One thread, so that runs side by side do not fight for cores, and so that last digits do not depend on it.
    said = gnn.train(scaled(data), model, PRESET, seed, threads=1, **CHANGES)
    about = {**said.settings, "train_seconds": round(time.perf_counter() - start, 2)}
    test = data.test
    rows = round_rows(said.probabilities[test])
    return NodePredictions(test, rows, data.labels[test], dataset=data.name, model=model, settings=about)


def scaled(data: NodeDataset) -> NodeDataset:
    """Bring features to one scale: many of them by the length of the row, a few by mean and deviation."""
    if data.num_features < _FEW_FEATURES:
        dense = data.feature_rows(slice(None)).astype(np.float64)
        return replace(data, features=(dense - dense.mean(axis=0)) / np.maximum(dense.std(axis=0), 1e-9))
    if isinstance(data.features, np.ndarray):
        lengths = np.sqrt((data.features.astype(np.float64) ** 2).sum(axis=1))
        return replace(data, features=data.features / np.maximum(lengths, 1e-9)[:, None])
    squares = data.features.astype(np.float64)
    squares.data **= 2
    lengths = np.sqrt(squares.sum(axis=1))
    rows = np.repeat(lengths, np.diff(data.features.indptr))
    kept = data.features.copy()
    kept.data = (kept.data / np.maximum(rows, 1e-9)).astype(np.float32)
    return replace(data, features=kept)
