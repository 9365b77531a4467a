"""The datasets that have a name. To add one, add an entry to `DATASETS`; nothing else needs to change."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from napsets.checks.names import choose
from napsets.datasets.amazon import amazon_computers
from napsets.datasets.collection import COLLECTION, TIMED, collected
from napsets.datasets.dataset import NodeDataset
from napsets.datasets.graphsaint import flickr, reddit2
from napsets.datasets.synthetic import dcsbm, sbm
from napsets.errors import InvalidInputError


@dataclass(frozen=True)
class DatasetEntry:
    """A named dataset: how it is loaded, what it is, and where it comes from."""

    loader: Callable[..., NodeDataset]
    summary: str
    source: str

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that `load` takes for this dataset."""
        return tuple(inspect.signature(self.loader).parameters)


DATASETS: dict[str, DatasetEntry] = {
    "amazon-computers": DatasetEntry(
        amazon_computers,
        "products bought together: 13,752 nodes, 491,722 edges, 767 features, 10 classes",
        "embedded",
    ),
    "flickr": DatasetEntry(
        flickr,
        "images that share properties: 89,250 nodes, 899,756 edges, 500 features, 7 classes",
        "files in `root`",
    ),
    "reddit2": DatasetEntry(
        reddit2,
        "posts with the same readers: 232,965 nodes, 23,213,838 edges, 602 features, 41 classes",
        "files in `root`",
    ),
    "sbm": DatasetEntry(sbm, "the paper's two blocks, which only edges separate", "drawn from a seed"),
    "dcsbm": DatasetEntry(dcsbm, "degree-corrected block model with features, of any size", "drawn from a seed"),
} | {name: DatasetEntry(collected(name), summary, "files in `root`") for name, summary in (COLLECTION | TIMED).items()}


def load(name: str, *, root: str | os.PathLike[str] | None = None, seed: int = 0, **options: Any) -> NodeDataset:
    """Load a dataset by its name.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    root : path, optional
        Folder of the raw files, for the datasets that are read from files.
    seed : int
        Draws the split, and the graph where it is synthetic. Published splits do not depend on it.
    **options
        What else the dataset's own function takes (``DATASETS[name].options``).

    Examples
    --------
    >>> load("amazon-computers", seed=0).graph
    Graph(13,752 nodes, 491,722 stored edges, undirected)
    """
    entry = choose("name", name, DATASETS)
    arguments: dict[str, Any] = dict(options)
    if "seed" in entry.options:
        arguments["seed"] = seed
    if root is not None:
        arguments["root"] = root
    unknown = sorted(set(arguments) - set(entry.options))
    if unknown:
        raise InvalidInputError(f"`{unknown[0]}` must be an option of {name!r}, which takes {', '.join(entry.options)}")
    return entry.loader(**arguments)
