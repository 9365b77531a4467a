"""The datasets that have a name, and the layout of those kept as files. To add one, add an entry to `DATASETS`.

A file is npz without pickles: ``n``; ``adj_indptr``, ``adj_indices`` (compressed sparse rows without self-loops);
``x_indptr``, ``x_indices``, ``x_data``, ``x_shape`` (the features likewise); ``directed``; and ``labels``, or
``target`` where nodes have a number instead of a class. Graphs with time have ``node_time`` too, and −1 for labels that
are not known. The project keeps such files in ``benchmarks/data``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_flag, check_path, check_seed, choose
from napsets.datasets.amazon import amazon_computers
from napsets.datasets.dataset import NodeDataset, random_split
from napsets.datasets.files import load_graphsaint
from napsets.datasets.synthetic import dcsbm, sbm
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.paths import reading
from napsets.graph import Graph

#: Classes that a number is cut into.
_CUTS = 5

#: What each graph is: one line per name; the file is called like it, with underscores.
COLLECTION: dict[str, str] = {
    "cora-ml": "papers that cite: 2,995 nodes, 16,316 edges, 2,879 features, 7 classes",
    "cora-ml-directed": "the same as cited: 2,995 nodes, 8,416 edges, 2,879 features, 7 classes",
    "citeseer-full": "papers that cite: 4,230 nodes, 10,674 edges, 602 features, 6 classes",
    "dblp": "papers that cite: 17,716 nodes, 105,734 edges, 1,639 features, 4 classes",
    "blogcatalog": "friends who blog: 5,196 nodes, 343,486 edges, 8,189 features, 6 classes",
    "flickr-small": "friends with photos: 7,575 nodes, 479,476 edges, 12,047 features, 9 classes",
    "squirrel-filtered": "pages that link: 2,223 nodes, 93,996 edges, 2,089 features, 5 classes",
    "squirrel-filtered-directed": "the same as linked: 2,223 nodes, 65,578 edges, 2,089 features, 5 classes",
    "actor": "actors on the same page: 7,600 nodes, 53,318 edges, 932 features, 5 classes",
    "minesweeper": "cells of a grid, a fifth mined: 10,000 nodes, 78,804 edges, 7 features, 2 classes",
    "tolokers": "workers on the same tasks: 11,758 nodes, 1,038,000 edges, 10 features, 2 classes",
    "wiki-chameleon-traffic": "pages that link, by fifths of traffic: 2,277 nodes, 3,132 features, 5 classes",
    "wiki-squirrel-traffic": "pages that link, by fifths of traffic: 5,201 nodes, 3,148 features, 5 classes",
}

#: Graphs whose nodes have a time, likewise.
TIMED: dict[str, str] = {
    "metamath-nf": "theorems that use others, 1992 to 2024: 6,174 nodes, 87,588 edges, 173 features, 11 classes",
    "mathlib": "modules that import others, 2021 to 2026: 8,374 nodes, 52,412 edges, 1,000 features, 18 classes",
    "spack": "packages that need others, 2015 to 2026: 8,931 nodes, 62,514 edges, 1,500 features, 7 classes",
    "eips": "proposals that name others, 2015 to 2026: 1,195 nodes, 6,338 edges, 1,500 features, 6 classes",
}

#: In time, so much of the labelled nodes is for training, and so much for validation.
_TIME_SHARES = (0.3, 0.2)


def file_name(name: str) -> str:
    """Return what the file of a graph is called."""
    return f"{name.replace('-', '_')}.npz"


def _read_named(
    name: str,
    root: str | os.PathLike[str] | None = None,
    seed: int = 0,
    *,
    directed: bool | None = None,
    sizes: Sequence[float] | None = None,
) -> NodeDataset:
    """Read one of the collection; see `read_collected`."""
    file = file_name(name)
    if root is None:
        raise InvalidInputError(
            f"`root` must name the folder that holds {file}; the project keeps it in benchmarks/data"
        )
    wanted = name.endswith("-directed") if directed is None else directed
    return read_collected(Path(root) / file, name=name, seed=seed, directed=wanted, sizes=sizes)


def read_collected(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    seed: int = 0,
    directed: bool = False,
    sizes: Sequence[float] | None = None,
) -> NodeDataset:
    """Read a graph in the layout of the collection, and draw a split.

    Where nodes have a number instead of a class, the classes are its fifths, from the smallest to the largest, and the
    number itself is in `targets`. Where they have a time, it is in `times`, and the split is by time instead of drawn:
    of the labelled nodes, the first 30 % are for training and the next 20 % for validation.

    Parameters
    ----------
    path : path
        The file.
    name : str, optional
        What to call the dataset; by default like the file. The split is drawn from it and the seed, so that no seed
        can coincide with what the graph itself was drawn with.
    seed : int
        Draws the split.
    directed : bool
        Keep the direction of edges, which the file must have; otherwise both ends are neighbours.
    sizes : three numbers, optional
        Nodes for training, validation and test, or shares; by default a tenth, a tenth, and all others.
    """
    source = check_path("path", path)
    name = source.stem.replace("_", "-") if name is None else name
    kept = check_flag("directed", directed)
    with reading(source):
        parts = np.load(source, allow_pickle=False)
        nodes = int(parts["n"])
        stored = bool(parts["directed"]) if "directed" in parts else False
        graph = _graph(parts, nodes, directed=stored and kept)
        features = _features(parts)
        target = np.asarray(parts["target"], dtype=np.float64) if "target" in parts else None
        labels = by_quantiles(target, _CUTS) if target is not None else parts["labels"].astype(np.int64)
        times = _times(parts["node_time"], nodes) if "node_time" in parts else None
        names = tuple(parts["class_names"].tolist()) if "class_names" in parts else None
        if features.shape[0] != nodes or labels.shape != (nodes,):
            raise ValueError(f"features and labels must have one row for each of the {nodes} nodes")
    if kept and not stored:
        raise InvalidInputError(f"`directed` must be False for {name!r}, whose edges have no direction")
    settings: dict[str, Any] = {"seed": seed, "directed": kept}
    if times is not None and sizes is None:
        train, validation, test = time_split(labels, times)
        settings["sizes"] = [train.size, validation.size, test.size]
    else:
        tenth = nodes // 10
        counts = (tenth, tenth, nodes - 2 * tenth) if sizes is None else tuple(sizes)
        train, validation, test = random_split(nodes, counts, split_seed(name, seed))
        settings["sizes"] = list(counts)
    if target is not None:
        settings["classes"] = f"{_CUTS} quantiles of the target"
    return NodeDataset(
        graph, features, labels, train, validation, test, names, name, settings=settings, targets=target, times=times
    )


def time_split(labels: IntArray, times: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Split the labelled nodes by time: earlier ones train and validate; nodes of one time stay in their order."""
    order = np.argsort(times, kind="stable")
    order = order[labels[order] >= 0]
    first, second = _TIME_SHARES
    train, later = np.split(order, [int(first * order.size)])
    validation, test = np.split(later, [int((first + second) * order.size) - train.size])
    return train, validation, test


def split_seed(name: str, seed: int) -> int:
    """Return the seed of a split: a function of the dataset's name and the user's seed."""
    return int.from_bytes(blake2b(f"{name}/{check_seed(seed)}".encode(), digest_size=8).digest(), "big")


def by_quantiles(values: FloatArray, classes: int) -> IntArray:
    """Divide numbers into classes of about equal size, in ascending order; equal numbers are in the same class.

    Examples
    --------
    >>> by_quantiles(np.array([3.0, 1.0, 2.0, 4.0]), 2).tolist()
    [1, 0, 0, 1]
    """
    if not np.isfinite(values).all():
        raise FileFormatError("`target` must be finite; it has a NaN or infinite entry")
    ends = np.quantile(values, np.arange(1, classes) / classes)
    return np.searchsorted(ends, values, side="right").astype(np.int64)


def _graph(parts: Any, nodes: int, *, directed: bool) -> Graph:
    indptr, indices = parts["adj_indptr"], parts["adj_indices"]
    if indptr.shape != (nodes + 1,):
        raise ValueError(f"adj_indptr must have {nodes + 1} entries; got {indptr.size}")
    rows = np.repeat(np.arange(nodes), np.diff(indptr))
    return Graph.from_edge_index(np.stack([rows, indices.astype(np.int64)]), nodes, directed=directed)


def _times(times: npt.NDArray[Any], nodes: int) -> IntArray:
    """Return integers that are in the order of the times, whatever these are: whole numbers as they are."""
    if times.shape != (nodes,):
        raise ValueError(f"node_time must have one entry for each of the {nodes} nodes; got shape {times.shape}")
    if times.dtype.kind in "iu":
        return times.astype(np.int64)
    if times.dtype.kind not in "fM" or not np.isfinite(times).all():
        raise ValueError(f"node_time must be finite numbers or dates; got {times.dtype}, or a missing entry")
    return np.unique(times, return_inverse=True)[1].astype(np.int64)


def _features(parts: Any) -> Any:
    import scipy.sparse

    rows, columns = (int(side) for side in parts["x_shape"])
    return scipy.sparse.csr_array((parts["x_data"], parts["x_indices"], parts["x_indptr"]), shape=(rows, columns))


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
        partial(load_graphsaint, "flickr", "Flickr"),
        "images that share properties: 89,250 nodes, 899,756 edges, 500 features, 7 classes",
        "files in `root`",
    ),
    "reddit2": DatasetEntry(
        partial(load_graphsaint, "reddit2", "Reddit2"),
        "posts with the same readers: 232,965 nodes, 23,213,838 edges, 602 features, 41 classes",
        "files in `root`",
    ),
    "sbm": DatasetEntry(sbm, "the paper's two blocks, which only edges separate", "drawn from a seed"),
    "dcsbm": DatasetEntry(dcsbm, "degree-corrected block model with features, of any size", "drawn from a seed"),
} | {
    name: DatasetEntry(partial(_read_named, name), summary, "files in `root`")
    for name, summary in (COLLECTION | TIMED).items()
}


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
