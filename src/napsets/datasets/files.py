"""The user's own files: edges, features and labels as Parquet, CSV or npz."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets._check import IntArray
from napsets._files import reading
from napsets.datasets.dataset import SPLIT_NAMES, NodeDataset
from napsets.datasets.splits import random_split
from napsets.errors import FileFormatError, InvalidInputError, MissingDependencyError
from napsets.graph import Graph

__all__ = ["from_files"]

Columns = Mapping[str, npt.NDArray[Any]]
PathLike = str | os.PathLike[str]


def from_files(
    edges: PathLike,
    features: PathLike,
    labels: PathLike,
    *,
    sizes: Sequence[float] | None = None,
    seed: int = 0,
    undirected: bool = True,
    name: str | None = None,
) -> NodeDataset:
    """Read a dataset from three files, each Parquet (``.parquet``), CSV (``.csv``) or NumPy (``.npz``).

    Parameters
    ----------
    edges : path
        Columns ``source`` and ``target``.
    features : path
        One row a node: a column ``node``, then one numeric column a feature, or one list column ``features``. In an
        npz file: a matrix ``features`` and, if ids are not 0.., a vector ``node``; or a matrix that
        ``scipy.sparse.save_npz`` wrote. The nodes of this file are the nodes of the graph.
    labels : path
        Columns ``node`` and ``label`` (a class index or a class name; nodes absent here are unlabelled) and, if
        the split is given, ``split`` with the words train, validation and test.
    sizes, seed
        Without a column ``split``: sizes of a random split of the labelled nodes, half / quarter / quarter if not
        given, and its seed.
    undirected, name
        Whether edges count both ways, and what results call the dataset (the folder's name, if not given).
    """
    node_ids, matrix = _read_features(Path(features))
    edge_columns = _read_columns(Path(edges), ("source", "target"))
    source = _positions(Path(edges), "source", edge_columns["source"], node_ids)
    target = _positions(Path(edges), "target", edge_columns["target"], node_ids)
    graph = Graph.from_table({"source": source, "target": target}, node_ids.size, undirected=undirected)

    label_columns = _read_columns(Path(labels), ("node", "label"))
    rows = _positions(Path(labels), "node", label_columns["node"], node_ids)
    if np.unique(rows).size != rows.size:
        raise FileFormatError(f"{labels} must not repeat a node in the column node")
    known, class_names = _encode(Path(labels), label_columns["label"])
    values = np.full(node_ids.size, -1, dtype=np.int64)
    values[rows] = known
    if "split" in label_columns:
        train, validation, test = _given_split(Path(labels), rows, label_columns["split"])
    else:
        labelled = np.flatnonzero(values >= 0)
        parts = random_split(labelled.size, sizes or (0.5, 0.25, 0.25), seed)
        train, validation, test = (labelled[part] for part in parts)
    plain = node_ids.dtype.kind in "iu" and np.array_equal(node_ids, np.arange(node_ids.size))
    return NodeDataset(
        graph,
        matrix,
        values,
        train,
        validation,
        test,
        class_names=class_names,
        name=name or Path(edges).resolve().parent.name,
        node_ids=None if plain else node_ids,
        settings={"seed": seed, "split": "given" if "split" in label_columns else "random"},
    )


def _read_columns(path: Path, needed: Sequence[str] = ()) -> Columns:
    with reading(path):
        columns = _READERS[_suffix(path)](path)
    missing = [name for name in needed if name not in columns]
    if missing:
        raise FileFormatError(f"{path} must have the columns {', '.join(needed)}; got {', '.join(columns)}")
    return columns


def _suffix(path: Path) -> str:
    if path.suffix not in _READERS:
        raise InvalidInputError(f"{path} must end in {', '.join(_READERS)}")
    return path.suffix


def _read_npz(path: Path) -> Columns:
    with np.load(path, allow_pickle=False) as parts:
        return {name: parts[name] for name in parts.files}


def _read_arrow(path: Path) -> Columns:
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "gnn") from error
    table = pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pyarrow.parquet.read_table(path)
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            raise FileFormatError(f"{path} must have no empty cell; the column {name} has {column.null_count}")
        values = column.to_numpy()
        columns[name] = np.asarray(values.tolist()) if values.dtype == object else values
    return columns


_READERS = {".parquet": _read_arrow, ".csv": _read_arrow, ".npz": _read_npz}


def _read_features(path: Path) -> tuple[npt.NDArray[Any], Any]:
    columns = dict(_read_columns(path))
    if {"indptr", "indices", "data", "shape"} <= set(columns):
        import scipy.sparse

        with reading(path):
            matrix: Any = scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        return np.arange(matrix.shape[0]), matrix
    node_ids = columns.pop("node", None)
    if "features" in columns:
        matrix = columns["features"]
    elif node_ids is None:
        raise FileFormatError(f"{path} must have a column node, or a matrix features; got {', '.join(columns)}")
    else:
        words = [name for name, column in columns.items() if column.dtype.kind not in "fiub"]
        if words:
            raise FileFormatError(f"{path} must hold numbers in the column {words[0]}")
        empty = np.empty((node_ids.size, 0), dtype=np.float32)
        matrix = np.column_stack([empty, *(column.astype(np.float32) for column in columns.values())])
    ids = np.arange(matrix.shape[0]) if node_ids is None else node_ids
    if matrix.ndim != 2 or ids.size != matrix.shape[0] or np.unique(ids).size != ids.size:
        raise FileFormatError(f"{path} must have one row a node; got {ids.size} ids for shape {matrix.shape}")
    return ids, matrix


def _positions(path: Path, column: str, ids: npt.NDArray[Any], node_ids: npt.NDArray[Any]) -> IntArray:
    """Rows of `node_ids` at which `ids` stand."""
    if ids.dtype.kind != node_ids.dtype.kind and not {ids.dtype.kind, node_ids.dtype.kind} <= set("iu"):
        ids, node_ids = ids.astype(str), node_ids.astype(str)
    order = np.argsort(node_ids, kind="stable")
    at = np.minimum(np.searchsorted(node_ids[order], ids), max(node_ids.size - 1, 0))
    rows = order[at] if node_ids.size else at
    wrong = np.flatnonzero(node_ids[rows] != ids) if node_ids.size else np.arange(ids.size)
    if wrong.size:
        raise FileFormatError(f"{path} must name only nodes that have features; {column} has {ids[wrong[0]]!s}")
    return rows


def _encode(path: Path, labels: npt.NDArray[Any]) -> tuple[IntArray, tuple[str, ...] | None]:
    """Class indices as they are, class names by their alphabetical order."""
    if labels.dtype.kind in "iu":
        if labels.size and labels.min() < -1:
            raise FileFormatError(f"{path} must hold labels of at least 0, or −1 for unknown; got {labels.min()}")
        return labels.astype(np.int64), None
    if labels.dtype.kind not in "US":
        raise FileFormatError(f"{path} must hold class indices or class names as label; got dtype {labels.dtype}")
    names, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), tuple(names.tolist())


def _given_split(path: Path, rows: IntArray, words: npt.NDArray[Any]) -> list[IntArray]:
    strange = sorted(set(words.tolist()) - {*SPLIT_NAMES, ""})
    if strange:
        raise FileFormatError(f"{path} must have the words {', '.join(SPLIT_NAMES)} as split; got {strange[0]!r}")
    return [np.sort(rows[words == part]) for part in SPLIT_NAMES]
