"""Small worlds as files: a graph of two communities, probabilities and labels, in any format and with any ids."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy.special import softmax

import napsets as ns
from napsets.localisers import Hops

CLASSES = ("cat", "dog", "owl")

#: A baseline and weightings of one score, the paper's four: what many tests compare.
FOUR = ("split", "naps", "naps-h", "naps-g")


@dataclass(frozen=True)
class World:
    """Arrays on the places 0..n−1, the ids of the nodes, and the files that say the same."""

    graph: ns.Graph
    edge_index: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray
    calibration: np.ndarray
    ids: np.ndarray
    edges: Path
    probabilities_file: Path
    labels_file: Path
    truth: Path

    @property
    def rest(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.labels.size), self.calibration)

    @property
    def files(self) -> list[str]:
        """The three files as options of a command."""
        names = ("--edges", "--probabilities", "--labels")
        paths = (self.edges, self.probabilities_file, self.labels_file)
        return [text for name, path in zip(names, paths, strict=True) for text in (name, str(path))]


def make_world(
    folder: Path,
    *,
    suffix: str = ".parquet",
    ids: str = "integer",
    nodes: int = 120,
    degree: int = 8,
    seed: int = 0,
    lengths: bool = False,
) -> World:
    """Draw a graph whose neighbours mostly share a label, and write it down; with `lengths`, its edges have some."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, len(CLASSES), nodes))
    source = rng.integers(0, nodes, nodes * degree // 2)
    near = rng.integers(1, nodes // 6, source.size)
    edge_index = np.stack([source, (source + near) % nodes])
    probabilities = guess(labels, 1.0, rng, len(CLASSES))
    calibration = np.sort(rng.choice(nodes, nodes // 2, replace=False))
    numbers = rng.permutation(nodes) * 7 - 50
    names = numbers.astype(np.int64) if ids == "integer" else np.array([f"né-{number:+04d}" for number in numbers])
    world_labels = np.array(CLASSES)[labels]
    rest = np.setdiff1d(np.arange(nodes), calibration)
    long = {"weight": np.random.default_rng(seed).uniform(0.5, 2.0, source.size)} if lengths else {}
    ends = {"source": names[edge_index[0]], "target": names[edge_index[1]]}
    columns = {"node": names} | {name: probabilities[:, y] for y, name in enumerate(CLASSES)}
    return World(
        ns.Graph.from_edge_index(edge_index, num_nodes=nodes, lengths=long.get("weight")),
        edge_index,
        probabilities,
        labels,
        calibration,
        names,
        write(folder / f"edges{suffix}", ends | long),
        write(folder / f"probabilities{suffix}", columns)
        if suffix != ".npz"
        else write(folder / "probabilities.npz", {"node": names, "probabilities": probabilities}),
        write(
            folder / f"labels{suffix}",
            {"node": names[calibration], "label": _as(suffix, world_labels, labels)[calibration]},
        ),
        write(folder / f"truth{suffix}", {"node": names[rest], "label": _as(suffix, world_labels, labels)[rest]}),
    )


def write(path: Path, columns: dict[str, Any]) -> Path:
    """Write columns to a file of the format that its name says."""
    if path.name.endswith(".npz"):
        np.savez(path, **columns)
        return path
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if path.name.endswith(".parquet"):
        pa.parquet.write_table(table, path)
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist()).encode()
        path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    elif path.name.endswith(".csv.gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            pa.csv.write_csv(table, stream)
    else:
        pa.csv.write_csv(table, path)
    return path


def _as(suffix: str, names: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Use class names where the file of probabilities has them, and numbers where it has not."""
    return numbers if suffix == ".npz" else names


def make_numbers(seed: int = 0, n: int = 900, degree: int = 12, labelled: int = 450) -> dict[str, Any]:
    """A ring whose nodes share something with those near them that the model does not know; the last ten are alone."""
    rng = np.random.default_rng(seed)
    source = rng.integers(n - 10, size=n * degree // 2)
    ends = np.stack([source, (source + rng.integers(1, 30, size=source.size)) % (n - 10)])
    seen, hidden = rng.normal(size=n), np.sin(np.arange(n) * 12 * np.pi / n)
    spread = 0.5 + (np.arange(n) % 7) / 5
    targets = 2 * seen + 1.5 * hidden + spread * rng.normal(size=n)
    order = rng.permutation(n - 10)
    return {
        "graph": ns.Graph.from_edge_index(ends, num_nodes=n),
        "outputs": np.column_stack([2 * seen - 1.6 * spread, 2 * seen + 1.6 * spread]),
        "targets": targets,
        "calibration": order[:labelled],
        "nodes": np.concatenate([order[labelled:], np.arange(n - 10, n)]),
    }


def never_supported(settings: Any) -> ns.Method:
    """A method of the table that looks nowhere, so that every threshold is infinite."""
    return ns.Method(settings.score, Hops(0), seed=settings.seed)


def guess(labels: np.ndarray, strength: Any, rng: np.random.Generator, classes: int | None = None) -> np.ndarray:
    """Probabilities of a model that knows the labels through noise: the stronger, the better."""
    classes = classes or int(labels.max()) + 1
    logits = np.reshape(strength, (-1, 1)) * (np.arange(classes) == labels[:, None])
    return softmax(logits + rng.normal(size=(labels.size, classes)), axis=1)


def draw_world(
    seed: int = 0,
    nodes: int = 600,
    classes: int = 3,
    edges: int = 6000,
    *,
    same: bool = True,
    other: float = 0.1,
    strength: float = 1.5,
    first: float | None = None,
    reach: int | None = None,
    alone: int = 0,
    labelled: int | None = None,
) -> dict[str, Any]:
    """Draw a graph whose edges join nodes of one class, or of two if not `same`, and a model that knows a little.

    With chance `other` an edge joins any two nodes. The model knows the first class with strength `first`; edges go
    at most `reach` nodes far on a ring; the last `alone` nodes have none.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=nodes)
    if reach is None:
        ends = rng.integers(nodes - alone, size=(2, edges))
    else:
        source = rng.integers(nodes, size=edges)
        ends = np.stack([source, (source + rng.integers(1, reach, size=edges)) % nodes])
    kept = ((labels[ends[0]] == labels[ends[1]]) == same) | (rng.random(edges) < other)
    probabilities = guess(labels, np.where(labels == 0, strength if first is None else first, strength), rng, classes)
    order = rng.permutation(nodes - alone)
    calibration, rest = np.split(order, [nodes // 2 if labelled is None else labelled])
    return {
        "graph": ns.Graph.from_edge_index(ends[:, kept], num_nodes=nodes),
        "probabilities": probabilities,
        "labels": labels,
        "calibration": calibration,
        "nodes": np.concatenate([rest, np.arange(nodes - alone, nodes)]),
    }


#: A ring whose nodes link to those near them, mostly of their class; the first class is harder than the others.
make_ring = partial(
    draw_world, nodes=700, classes=4, edges=3500, other=0.15, strength=2.0, first=0.8, reach=40, labelled=200
)


def block_model(
    same: float | None = 0.85,
    nodes: int = 600,
    classes: int = 3,
    degree: int = 8,
    seed: int | np.random.Generator = 0,
    strength: float = 1.0,
) -> tuple[ns.Graph, np.ndarray, np.ndarray]:
    """Draw a graph of which a share `same` of the edges joins nodes of one label, or any two if it is None."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=nodes)
    edges = nodes * degree // 2
    ends = rng.integers(nodes, size=(2, 40 * edges))
    if same is None:
        kept = np.arange(edges)
    else:
        alike = labels[ends[0]] == labels[ends[1]]
        inside = int(same * nodes * degree / 2)
        kept = np.concatenate([np.flatnonzero(alike)[:inside], np.flatnonzero(~alike)[: edges - inside]])
    graph = ns.Graph.from_edge_index(ends[:, kept], num_nodes=nodes)
    return graph, guess(labels, strength, rng, classes), labels


#: A homophilous graph and a weak model.
weak_model = partial(block_model, same=0.8, nodes=260, degree=6, strength=0.8)


@cache
def amazon_by_heart() -> dict[str, Any]:
    """A softmax regression on the words of Amazon Computers, trained on 752 nodes until it knows them by heart."""
    linear = pytest.importorskip("sklearn.linear_model")
    data = ns.datasets.load("amazon-computers", seed=0)
    train = np.asarray(data.train)
    train = np.flatnonzero(train) if train.dtype == bool else train
    model = linear.LogisticRegression(C=100.0, max_iter=300).fit(data.features[train], data.labels[train])
    outputs = model.predict_proba(data.features)
    rest = np.setdiff1d(np.arange(data.labels.size), train)
    top = outputs[rest].max(axis=1)
    rng = np.random.default_rng(0)
    return {
        "graph": data.graph, "outputs": outputs, "labels": data.labels, "rest": rest, "train": np.sort(train),
        "confident": np.sort(rng.choice(rest[top > np.median(top)], 3000, replace=False)),
        "random": np.sort(rng.choice(rest, 3000, replace=False)),
    }  # fmt: skip
