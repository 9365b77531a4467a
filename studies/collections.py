"""Graphs of public collections, read from files: npz files such as those in ``benchmarks/data``, Flickr and Reddit2.

An npz file holds no pickles: ``n``; ``adj_indptr``, ``adj_indices`` (compressed sparse rows without self-loops);
``x_indptr``, ``x_indices``, ``x_data``, ``x_shape`` (the features likewise); and ``labels``, or ``target`` where nodes
have a number instead of a class. Graphs with time also have ``node_time``, and label −1 where the class is unknown;
those with a published split have ``train_mask``, ``val_mask`` and ``test_mask``.

Flickr and Reddit2 have the layout of GraphSAINT: a folder (or its subfolder ``raw``, which PyTorch Geometric makes)
with ``adj_full.npz`` (a SciPy CSR matrix), ``feats.npy``, ``class_map.json`` (node to class) and ``role.json`` (the
split, under ``tr``, ``va`` and ``te``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from napsets import FileFormatError, Graph, datasets
from napsets.checks.arguments import FloatArray, IntArray, sealed
from napsets.checks.values import check_seed, choose
from napsets.datasets import NodeDataset, random_split
from napsets.files.paths import reading

PathLike = str | os.PathLike[str]
#: The arrays of an npz file by their names.
Arrays = Mapping[str, npt.NDArray[Any]]

#: The npz files of the project, called like the graph with underscores; benchmarks/data/README.md describes them.
COLLECTION = (
    *("cora-ml", "citeseer-full", "dblp", "blogcatalog", "flickr-small", "squirrel-filtered", "actor", "minesweeper"),
    *("tolokers", "wiki-chameleon-traffic", "wiki-squirrel-traffic"),
)
#: Those whose nodes have a time.
TIMED = ("metamath-nf", "mathlib", "spack", "eips")
#: The npz files of large graphs with their published split, which are not kept with the project: Flickr without its
#: features, and the papers of ogbn-arxiv with an LLM's categories.
LARGE = {"flickr-graph": "flickr_graphsaint.npz", "ogbn-arxiv": "ogbn_arxiv.npz"}
#: Folders of GraphSAINT's files.
GRAPHSAINT = ("flickr", "reddit2")
NAMES = ("amazon-computers", *COLLECTION, *TIMED, *LARGE, *GRAPHSAINT)
RAW_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
#: Where the project keeps npz files.
DATA = Path(__file__).parents[1] / "benchmarks" / "data"
#: Number of classes that a target is cut into.
_CUTS = 5
#: Shares of the labelled nodes for training and for validation, in the order of time.
_TIME_SHARES = (0.3, 0.2)


def file_name(name: str) -> str:
    """Return the path of a graph's file below the folder of graphs, or that of the first of its files."""
    if name in GRAPHSAINT:
        return f"{name}/{RAW_FILES[0]}"
    return LARGE.get(name, f"{name.replace('-', '_')}.npz")


def is_available(name: str, root: PathLike = DATA) -> bool:
    """Whether a graph needs no files, or its files are in `root`."""
    if name in GRAPHSAINT:
        return _raw_folder(Path(root) / name) is not None
    return name in {"amazon-computers", *datasets.DATASETS} or (Path(root) / file_name(name)).exists()


def load(name: str, *, root: PathLike = DATA, seed: int = 0, **options: Any) -> NodeDataset:
    """Load a graph of `NAMES`, or a synthetic one of napsets, by its name.

    `root` is the folder with the npz files, and with one subfolder for each graph of `GRAPHSAINT`. The seed draws the
    split, unless it is published; `options` are those of a synthetic graph.
    """
    choose("name", name, dict.fromkeys([*NAMES, *datasets.DATASETS]))
    if name in GRAPHSAINT:
        return read_graphsaint(Path(root) / name, name=name)
    if name in datasets.DATASETS:
        return datasets.load(name, seed=seed, **options)
    return read_collected(Path(root) / file_name(name), name=name, seed=seed)


def read_collected(path: PathLike, *, name: str | None = None, seed: int = 0) -> NodeDataset:
    """Read an npz file of the collection; `name` is by default that of the file.

    Where nodes have a number instead of a class, the classes are its fifths, from the smallest to the largest, and the
    number itself is in `targets`. The split is that of the file (``train_mask``, ``val_mask``, ``test_mask``). Without
    one, where nodes have a time, it is in `times`, and the first 30 % of the labelled nodes train and the next 20 %
    validate; otherwise a tenth of the nodes is drawn for training and a tenth for validation.
    """
    with reading(path) as source:
        parts = np.load(source, allow_pickle=False)
        nodes = int(parts["n"])
        graph = _graph(parts, nodes)
        features: Any = np.zeros((nodes, 0)) if "x_shape" not in parts else _sparse(parts, "x_", parts["x_shape"])
        target = np.asarray(parts["target"], dtype=np.float64) if "target" in parts else None
        labels = by_quantiles(target, _CUTS) if target is not None else parts["labels"].astype(np.int64)
        times = parts.get("node_time")
        if times is not None and times.dtype.kind not in "iu":
            raise ValueError(f"node_time must be whole numbers; got {times.dtype}")
        names = tuple(parts["class_names"].tolist()) if "class_names" in parts else None
        if any(column.shape[0] != nodes for column in (features, labels, times) if column is not None):
            raise ValueError(f"features, labels and times must have one row for each of the {nodes} nodes")
        masks = [parts[mask] for mask in ("train_mask", "val_mask", "test_mask") if mask in parts]
    name = source.stem.replace("_", "-") if name is None else name
    settings: dict[str, object] = {"seed": seed}
    if masks:
        train, validation, test = map(np.flatnonzero, masks)
        settings = {"split": "published"}
    elif times is not None:
        train, validation, test = time_split(labels, times)
    else:
        counts = (nodes // 10, nodes // 10, nodes - 2 * (nodes // 10))
        train, validation, test = random_split(nodes, counts, split_seed(name, seed))
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
    """Divide numbers into classes of about equal size, in ascending order; equal numbers are in the same class."""
    if not np.isfinite(values).all():
        raise FileFormatError("`target` must be finite; it has a NaN or infinite entry")
    ends = np.quantile(values, np.arange(1, classes) / classes)
    return np.searchsorted(ends, values, side="right").astype(np.int64)


def _graph(parts: Arrays, nodes: int) -> Graph:
    indptr, indices = parts["adj_indptr"], parts["adj_indices"]
    if indptr.shape != (nodes + 1,):
        raise ValueError(f"adj_indptr must have {nodes + 1} entries; got {indptr.size}")
    rows = np.repeat(np.arange(nodes), np.diff(indptr))
    return Graph.from_edge_index(np.stack([rows, indices.astype(np.int64)]), nodes)


def _sparse(parts: Arrays, prefix: str, shape: npt.NDArray[Any]) -> Any:
    """Return the sparse matrix whose arrays have these names in an npz file."""
    arrays = tuple(parts[f"{prefix}{name}"] for name in ("data", "indices", "indptr"))
    return scipy.sparse.csr_array(arrays, shape=(int(shape[0]), int(shape[1])))


def read_graphsaint(folder: PathLike, *, name: str = "graphsaint") -> NodeDataset:
    """Read a dataset in the GraphSAINT layout with its published split, checking every file against the others."""
    raw = _raw_folder(Path(folder))
    if raw is None:
        missing = ", ".join(file for file in RAW_FILES if not (Path(folder) / file).exists())
        raise FileFormatError(
            f"`folder` must hold the raw files of {name!r}; {folder} (or its folder raw) lacks {missing}"
        )
    adjacency, rows_of_features, class_map, role = (raw / file for file in RAW_FILES)
    with reading(adjacency), np.load(adjacency, allow_pickle=False) as parts:
        graph = Graph.from_scipy(_sparse(parts, "", parts["shape"]))
    nodes = graph.num_nodes
    with reading(rows_of_features):
        features = np.load(rows_of_features, allow_pickle=False)
    if features.ndim != 2 or features.shape[0] != nodes:
        raise FileFormatError(
            f"{rows_of_features} must have one row for each of the {nodes} nodes; got shape {features.shape}"
        )
    with reading(class_map):
        classes = json.loads(class_map.read_text())
        labelled = np.fromiter((int(node) for node in classes), dtype=np.int64, count=len(classes))
        if any(not isinstance(label, int) or isinstance(label, bool) for label in classes.values()):
            raise ValueError("a class is not an integer (multi-label data are not supported)")
        values = np.fromiter(classes.values(), dtype=np.int64, count=len(classes))
    _check_ids(class_map, labelled, nodes)
    if values.size and values.min() < 0:
        raise FileFormatError(f"{class_map} must hold classes of at least 0; got {values.min()}")
    labels = np.full(nodes, -1, dtype=np.int64)
    labels[labelled] = values
    with reading(role):
        roles = json.loads(role.read_text())
        train, validation, test = (np.asarray(roles[key], dtype=np.int64) for key in ("tr", "va", "te"))
    for part in (train, validation, test):
        _check_ids(role, part, nodes)
    features = sealed(np.asarray(features, dtype=np.float32))  # too large to be copied because a flag is missing
    return NodeDataset(graph, features, labels, train, validation, test, name=name, settings={"split": "published"})


def _raw_folder(folder: Path) -> Path | None:
    for candidate in (folder, folder / "raw"):
        if all((candidate / file).is_file() for file in RAW_FILES):
            return candidate
    return None


def _check_ids(path: Path, nodes: IntArray, num_nodes: int) -> None:
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise FileFormatError(
            f"{path} must hold node ids from 0 to {num_nodes - 1}; got {nodes.min()} to {nodes.max()}"
        )
