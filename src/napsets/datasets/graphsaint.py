"""Flickr and Reddit2 from the raw files in which GraphSAINT published them.

A folder (or its subfolder ``raw``) holds ``adj_full.npz`` (a SciPy CSR matrix), ``feats.npy``, ``class_map.json``
(node to class) and ``role.json`` (the split, under ``tr``, ``va`` and ``te``).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray, sealed
from napsets.checks.values import check_path
from napsets.datasets.dataset import NodeDataset
from napsets.errors import FileFormatError, InvalidInputError, NapsetsError, imported
from napsets.files.places import reading
from napsets.graph import Graph

RAW_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")


def flickr(root: str | os.PathLike[str] | None = None, *, download: bool = True) -> NodeDataset:
    """Return Flickr with its published split: 89,250 images, 899,756 stored edges, 500 features, 7 classes.

    Parameters
    ----------
    root : path
        Folder of the raw files. Where it has none and `download` allows it, they are fetched into it through
        PyTorch Geometric.
    download : bool
        Whether the network may be used.
    """
    return _load("flickr", "Flickr", root, download)


def reddit2(root: str | os.PathLike[str] | None = None, *, download: bool = True) -> NodeDataset:
    """Return Reddit2 with its published split: 232,965 posts, 23,213,838 stored edges, 602 features, 41 classes.

    The parameters are those of `flickr`.
    """
    return _load("reddit2", "Reddit2", root, download)


def _load(name: str, class_name: str, root: str | os.PathLike[str] | None, download: bool) -> NodeDataset:
    if root is None:
        raise InvalidInputError(f"`root` must name the folder of the raw files of {name!r}: {', '.join(RAW_FILES)}")
    folder = Path(root)
    raw = _raw_folder(folder)
    if raw is None and download and not any((folder / file).exists() for file in RAW_FILES):
        _fetch(class_name, folder)
        raw = _raw_folder(folder)
    if raw is None:
        missing = ", ".join(file for file in RAW_FILES if not (folder / file).exists())
        raise FileFormatError(
            f"`root` must hold the raw files of {name!r}; {folder} (or its folder raw) lacks {missing}"
        )
    return read_graphsaint(raw, name=name)


def _raw_folder(folder: Path) -> Path | None:
    for candidate in (folder, folder / "raw"):
        if all((candidate / file).is_file() for file in RAW_FILES):
            return candidate
    return None


def _fetch(class_name: str, folder: Path) -> None:
    """Download next to the target and move the files there once all of them are complete."""
    pyg_datasets = imported("torch_geometric.datasets", "gnn", "torch_geometric")
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".download-", dir=folder))
    try:
        getattr(pyg_datasets, class_name)(str(draft))
        (draft / "raw").replace(folder / "raw")
    except Exception as error:  # whatever the network, the host or the archive did, the remedy is the same
        raise NapsetsError(
            f"could not fetch {class_name} ({type(error).__name__}: {error}); "
            f"put {', '.join(RAW_FILES)} into {folder} by hand and pass it as `root`"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read_graphsaint(folder: str | os.PathLike[str], *, name: str = "graphsaint") -> NodeDataset:
    """Read a dataset in the GraphSAINT layout, checking every file against the others."""
    raw = check_path("folder", folder)
    graph = _read_graph(raw / "adj_full.npz")
    features = _read_features(raw / "feats.npy", graph.num_nodes)
    labels = _read_labels(raw / "class_map.json", graph.num_nodes)
    train, validation, test = _read_roles(raw / "role.json", graph.num_nodes)
    return NodeDataset(graph, features, labels, train, validation, test, name=name, settings={"split": "published"})


def _read_graph(path: Path) -> Graph:
    import scipy.sparse

    with reading(path), np.load(path, allow_pickle=False) as parts:
        rows, columns = (int(side) for side in parts["shape"])
        adjacency = scipy.sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(rows, columns))
        return Graph.from_scipy(adjacency)


def _read_features(path: Path, num_nodes: int) -> npt.NDArray[np.float32]:
    with reading(path):
        features = np.load(path, allow_pickle=False)
    if features.ndim != 2 or features.shape[0] != num_nodes:
        raise FileFormatError(f"{path} must have one row for each of the {num_nodes} nodes; got shape {features.shape}")
    return sealed(np.asarray(features, dtype=np.float32))  # too large to be copied because a flag is missing


def _read_labels(path: Path, num_nodes: int) -> IntArray:
    with reading(path):
        classes = json.loads(path.read_text())
        nodes = np.fromiter((int(node) for node in classes), dtype=np.int64, count=len(classes))
        if any(not isinstance(label, int) or isinstance(label, bool) for label in classes.values()):
            raise ValueError("a class is not an integer (multi-label data are not supported)")
        values = np.fromiter(classes.values(), dtype=np.int64, count=len(classes))
    _check_ids(path, nodes, num_nodes)
    if values.size and values.min() < 0:
        raise FileFormatError(f"{path} must hold classes of at least 0; got {values.min()}")
    labels = np.full(num_nodes, -1, dtype=np.int64)
    labels[nodes] = values
    return labels


def _read_roles(path: Path, num_nodes: int) -> list[IntArray]:
    with reading(path):
        roles = json.loads(path.read_text())
        parts = [np.asarray(roles[key], dtype=np.int64) for key in ("tr", "va", "te")]
    for part in parts:
        _check_ids(path, part, num_nodes)
    return parts


def _check_ids(path: Path, nodes: IntArray, num_nodes: int) -> None:
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise FileFormatError(
            f"{path} must hold node ids from 0 to {num_nodes - 1}; got {nodes.min()} to {nodes.max()}"
        )
