"""The Amazon Computers co-purchase graph, embedded in the package.

Packed: the 767 binary features as bits, the upper triangle of the adjacency as gaps between columns, both under
Deflate. Unpacking needs NumPy alone and takes a tenth of a second.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, IntArray, sealed
from napsets.datasets.dataset import NodeDataset, NodePredictions, random_split
from napsets.graph import Graph

#: The arrays of the embedded predictions, and the arguments that they are.
_EMBEDDED = {"node": "nodes", "label": "labels", "split": "split", "probabilities": "probabilities"}


def amazon_computers(seed: int = 0, sizes: Sequence[float] = (752, 1000, 12_000)) -> NodeDataset:
    """Return Amazon Computers with the paper's split sizes.

    13,752 products, an edge between those often bought together, 767 binary words of their reviews, 10 categories
    (Shchur et al., Pitfalls of Graph Neural Network Evaluation, 2018; MIT licence).

    Parameters
    ----------
    seed : int
        Draws the split.
    sizes : three numbers
        Nodes for training, validation and test.
    """
    with (files("napsets.datasets") / "data" / "amazon_computers.npz").open("rb") as handle:
        graph, features, labels = unpack(np.load(handle, allow_pickle=False))
    train, validation, test = random_split(graph.num_nodes, sizes, seed)
    settings = {"seed": seed, "sizes": list(sizes)}
    return NodeDataset(graph, features, labels, train, validation, test, name="amazon-computers", settings=settings)


def amazon_predictions() -> NodePredictions:
    """Return the predictions of a trained GraphSAGE for the 12,000 test nodes of ``load("amazon-computers", seed=0)``.

    A trained network's last digits differ from processor to processor. These probabilities come with the package, so
    that what is made from them is the same everywhere. `napsets.gnn.train` trains a similar model.

    Examples
    --------
    >>> amazon_predictions()
    NodePredictions(12,000 nodes, 10 classes, dataset 'amazon-computers', model 'graphsage-mean', accuracy 0.851)
    """
    with (files("napsets.datasets") / "data" / "amazon_computers_predictions.npz").open("rb") as handle:
        arrays = np.load(handle, allow_pickle=False)
        about = json.loads(str(arrays["about"]))
        return NodePredictions(
            **{argument: arrays[name] for name, argument in _EMBEDDED.items()},
            **{name: about[name] for name in ("dataset", "model", "settings", "class_names")},
        )


def round_rows(probabilities: AnyArray, bits: int = 15) -> npt.NDArray[np.float32]:
    """Return probabilities as multiples of 2⁻ᵇⁱᵗˢ whose rows sum to exactly 1: they compress well, and add up exactly.

    Each is rounded down, and what a row then lacks goes to the entries that lost most.
    """
    scaled = np.asarray(probabilities, dtype=np.float64) * 2**bits
    units = np.floor(scaled)
    lost = np.argsort(np.argsort(units - scaled, axis=1, kind="stable"), axis=1, kind="stable")
    units += lost < 2**bits - units.sum(axis=1, keepdims=True)
    return np.asarray(units / 2**bits, dtype=np.float32)


def unpack(packed: Any) -> tuple[Graph, npt.NDArray[np.float32], IntArray]:
    """Return the graph, its features and its labels from their packed layout; a test packs them."""
    counts = packed["counts"].astype(np.int64)
    gaps = packed["gaps_high"].astype(np.int64) << 8 | packed["gaps_low"]
    row = np.repeat(np.arange(counts.size), counts)
    # Columns are the running sum of gaps within a row, started at the row's own number.
    running = np.concatenate([[0], np.cumsum(gaps)])
    starts = np.cumsum(counts) - counts
    column = row + running[1:] - np.repeat(running[starts], counts)
    source, target = np.concatenate([row, column]), np.concatenate([column, row])
    order = np.argsort(source * counts.size + target, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=counts.size))])
    bits = np.unpackbits(packed["features"], axis=1, count=int(packed["num_features"]))
    graph = Graph._from_rows(indptr, target[order].astype(np.int32), directed=False)  # every edge was added both ways
    return graph, sealed(bits.astype(np.float32)), packed["labels"].astype(np.int64)
