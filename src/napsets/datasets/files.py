"""Datasets from files: the user's own, and Flickr and Reddit2 as GraphSAINT published them.

The user's files are read as the command reads them: ids that look different are different nodes, and only an empty
cell is missing. GraphSAINT's folder (or its subfolder ``raw``) holds ``adj_full.npz`` (a SciPy CSR matrix),
``feats.npy``, ``class_map.json`` (node to class) and ``role.json`` (the split, under ``tr``, ``va`` and ``te``).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray, sealed
from napsets.checks.values import check_path
from napsets.datasets.dataset import SPLIT_NAMES, NodeDataset, random_split
from napsets.errors import FileFormatError, InvalidInputError, NapsetsError, arrow, imported
from napsets.files import paths
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, joined_ids
from napsets.files.inputs import read_edges
from napsets.files.labels import class_indices, column_texts, read_label_rows
from napsets.files.outputs import feature_columns, read_rows, read_sparse
from napsets.files.reading import IdKind, Reading
from napsets.graph import Graph

PathLike = str | os.PathLike[str]


def from_files(
    edges: PathLike,
    features: PathLike,
    labels: PathLike,
    *,
    sizes: Sequence[float] | None = None,
    seed: int = 0,
    directed: bool = False,
    name: str | None = None,
    ids: IdKind = "auto",
) -> NodeDataset:
    """Read a dataset from three files, each Parquet, CSV (plain or gzip) or npz.

    Parameters
    ----------
    edges : path
        Columns ``source`` and ``target``; npz may hold ``edge_index`` of shape (2, edges) instead.
    features : path
        One row per node: a column ``node``, then one numeric column per feature, or one list column ``features``. In an
        npz file: a matrix ``features`` and, if ids are not 0.., a vector ``node``; or a matrix that
        ``scipy.sparse.save_npz`` wrote. The nodes of this file are the nodes of the graph.
    labels : path
        Columns ``node`` and ``label`` (a class index where all are integers, otherwise a class name) and, if the split
        is given, ``split`` with the words train, validation and test. Nodes that are absent, or whose label is an empty
        cell or −1, are unlabelled.
    sizes, seed
        Without a column ``split``: sizes of a random split of the labelled nodes, half / quarter / quarter if not
        given, and its seed.
    directed, name
        Whether edges count both ways, and what results call the dataset (the folder's name, if not given).
    ids : {"auto", "integer", "string"}
        How to read ids. "auto" keeps the type of the file of features; in CSV, integers if every id looks like one.
    """
    for argument, path in (("edges", edges), ("features", features), ("labels", labels)):
        check_path(argument, path)
    reading = Reading(ids=ids, directed=directed)
    nodes, matrix = _read_features(Path(features), reading)
    graph = read_edges(edges, nodes, reading)
    values, class_names, split = _read_labels(labels, nodes, reading)
    origin = "random" if split is None else "given"
    if split is None:
        labelled = np.flatnonzero(values >= 0)
        split = [labelled[part] for part in random_split(labelled.size, sizes or (0.5, 0.25, 0.25), seed)]
    train, validation, test = split
    shown = np.array(nodes.values.to_pylist()) if nodes.is_string else nodes.values.to_numpy(zero_copy_only=False)
    plain = not nodes.is_string and np.array_equal(shown, np.arange(shown.size))
    return NodeDataset(
        graph,
        matrix,
        values,
        train,
        validation,
        test,
        class_names=class_names,
        name=name or Path(edges).resolve().parent.name,
        node_ids=None if plain else shown,
        settings={"seed": seed, "split": origin},
    )


def _read_features(path: Path, reading: Reading) -> tuple[NodeIds, Any]:
    sparse = read_sparse(path) if path.name.endswith(".npz") else None
    if sparse is not None:
        return NodeIds(arrow().array(np.arange(sparse.shape[0])), "features"), sparse
    table = open_table("features", path, reading)
    parts, rows = read_rows(table, feature_columns(table), partial(id_column, table))
    return joined_ids(table, parts), rows.astype(np.float32, copy=False)


def _read_labels(
    path: PathLike, nodes: NodeIds, reading: Reading
) -> tuple[IntArray, tuple[str, ...] | None, list[IntArray] | None]:
    """Return a label for each of `nodes`, the names of the classes if they have any, and the split if it is given."""
    rows = read_label_rows(path, nodes, reading, more=["split"])
    codes, names = class_indices(rows.table, rows.texts, None)
    known, class_names = _numbered(rows.table, codes, names, named=rows.named)
    values = np.full(len(nodes), -1, dtype=np.int64)
    values[rows.places] = known
    if "split" not in rows.more:
        return values, class_names, None
    words = np.array(column_texts(rows.table, rows.more["split"], "split").fill_null("").to_pylist(), dtype=str)
    strange = sorted(set(words.tolist()) - {*SPLIT_NAMES, ""})
    if strange:
        path = rows.table.path
        raise FileFormatError(f"{path} must have the words {', '.join(SPLIT_NAMES)} as split; got {strange[0]!r}")
    return values, class_names, [np.sort(rows.places[words == part]) for part in SPLIT_NAMES]


def _numbered(
    table: TableFile, codes: IntArray, names: list[str], *, named: bool
) -> tuple[IntArray, tuple[str, ...] | None]:
    """Return class indices as they are, class names by their alphabetical order."""
    numbers = [name for name in names if name.removeprefix("-").isdecimal() and len(name) < 18]
    if named or len(numbers) < len(names):
        order = sorted(names)
        place = np.array([order.index(name) for name in names] + [-1], dtype=np.int64)
        return place[codes], tuple(order)
    indices = np.array([int(name) for name in names] + [-1], dtype=np.int64)
    if indices.min() < -1:
        raise FileFormatError(
            f"`labels` must be at least 0, or −1 for unknown; {table.path} has {indices.min()}. Call classes by name "
            f"otherwise."
        )
    return indices[codes], None


# -- GraphSAINT --------------------------------------------------------------------------------------------------------

RAW_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")


def load_graphsaint(
    name: str, class_name: str, root: str | os.PathLike[str] | None = None, *, download: bool = True
) -> NodeDataset:
    """Return a dataset with its published split, from its raw files in the folder `root`.

    Where that has none of them and `download` allows it, they are fetched into it through PyTorch Geometric.
    """
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
    import scipy.sparse

    raw = check_path("folder", folder)
    adjacency, rows_of_features, class_map, role = (raw / file for file in RAW_FILES)
    with paths.reading(adjacency), np.load(adjacency, allow_pickle=False) as parts:
        rows, columns = (int(side) for side in parts["shape"])
        matrix = scipy.sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(rows, columns))
        graph = Graph.from_scipy(matrix)
    nodes = graph.num_nodes
    with paths.reading(rows_of_features):
        features = np.load(rows_of_features, allow_pickle=False)
    if features.ndim != 2 or features.shape[0] != nodes:
        raise FileFormatError(
            f"{rows_of_features} must have one row for each of the {nodes} nodes; got shape {features.shape}"
        )
    with paths.reading(class_map):
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
    with paths.reading(role):
        roles = json.loads(role.read_text())
        train, validation, test = (np.asarray(roles[key], dtype=np.int64) for key in ("tr", "va", "te"))
    for part in (train, validation, test):
        _check_ids(role, part, nodes)
    features = sealed(np.asarray(features, dtype=np.float32))  # too large to be copied because a flag is missing
    return NodeDataset(graph, features, labels, train, validation, test, name=name, settings={"split": "published"})


def _check_ids(path: Path, nodes: IntArray, num_nodes: int) -> None:
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise FileFormatError(
            f"{path} must hold node ids from 0 to {num_nodes - 1}; got {nodes.min()} to {nodes.max()}"
        )
