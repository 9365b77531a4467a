"""Small worlds as files: a graph of two communities, probabilities and labels, in any format and with any ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
from napsets.methods import CalibrationData
from oracles import place_in_law

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
        write(folder / f"probabilities{suffix}", columns),
        write(folder / f"labels{suffix}", {"node": names[calibration], "label": world_labels[calibration]}),
        write(folder / f"truth{suffix}", {"node": names[rest], "label": world_labels[rest]}),
    )


def write(path: Path, columns: dict[str, Any]) -> Path:
    """Write columns to a file of the format that its name says."""
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if path.name.endswith(".parquet"):
        pa.parquet.write_table(table, path)
    elif path.name.endswith(".csv.gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            pa.csv.write_csv(table, stream)
    else:
        pa.csv.write_csv(table, path)
    return path


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


def never_supported(score: Any = "aps") -> ns.Method:
    """A method of the table that looks nowhere, so that every threshold is infinite."""
    return ns.Method(score, Hops(0))


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


def places_of_hits(
    methods: Iterable[Any],
    inputs: tuple[Any, np.ndarray, np.ndarray],
    labelled: int,
    *,
    alpha: float = 0.1,
    seed: int,
    **more: Any,
) -> np.ndarray:
    """Where in its law the number of covered nodes falls for each method: uniform where the level is right.

    Each method is calibrated on its own random sample of nodes and judged on all others, of which a beta-binomial
    number is covered; a place is spread evenly over the step of the discrete law.
    """
    graph, outputs, truth = inputs
    rng, places = np.random.default_rng(seed), []
    for method in methods:
        order = rng.permutation(truth.size)
        nodes = order[labelled:]
        calibrated = method.calibrate(graph, outputs, truth, order[:labelled], **more)
        covered = calibrated.predict(nodes, alpha, threads=1).contains(truth).sum()
        judges = calibrated.scored.level_nodes.size or labelled
        places.append(place_in_law(covered, nodes.size, judges, alpha, rng.random()))
    return np.array(places)


class Mixed:
    """A graph in which hard nodes have easy neighbours alone, and easy ones hard neighbours: locality misleads."""

    def __init__(self, size=400, degree=40, seed=0):
        rng = np.random.default_rng(seed)
        self.size = size
        hard = np.arange(size) % 2 == 0
        ends = [np.repeat(np.flatnonzero(hard), degree), rng.choice(np.flatnonzero(~hard), degree * hard.sum())]
        self.graph = ns.Graph.from_edge_index(ends, size)
        self.labels = rng.integers(3, size=size)
        self.probabilities = guess(self.labels, np.where(hard, 0.2, 4.0), rng, 3)
        # A model that is as sure of hard nodes as of easy ones.
        self.probabilities[hard] = self.probabilities[hard] ** 3
        self.probabilities /= self.probabilities.sum(axis=1, keepdims=True)

    def draws(self, method, count, labelled=200, seed=1, alpha=0.1):
        """Calibrate on nodes labelled at random, again and again; return whether a random node was covered.

        Beside it, its rank spread evenly over the node's own share of the mass: uniform, if the ranks are fair.
        """
        rng = np.random.default_rng(seed)
        covered, places = np.empty(count, dtype=bool), np.empty(count)
        for draw in range(count):
            order = rng.permutation(self.size)
            node, seeded = order[:1], ns.Method(method.score, method.localiser, method.level, seed=draw)
            data = CalibrationData.check(self.graph, self.probabilities, self.labels, order[1 : labelled + 1])
            calibrated = seeded.calibrate_data(data)
            local = calibrated.local
            score = calibrated.score.at(node, self.labels[node])
            cuts = calibrated.level.cuts([alpha])
            tau = calibrated.level.thresholds(local.thresholds(node, cuts, threads=1), node, [alpha]).values[0]
            covered[draw] = score[0] <= tau[0]
            below, all_ = local.ranks(np.repeat(node, 2), np.array([score[0], np.inf]), threads=1)
            places[draw] = below + rng.random() * (1 - all_)
        return covered, places


def disturbed(data):
    """Return the dataset with other features, labels and edges wherever a test node is concerned."""
    rng = np.random.default_rng(0)
    features, labels = data.features.copy(), data.labels.copy()
    features[data.test] = rng.standard_normal((data.test.size, data.num_features)) * 100
    labels[data.test] = rng.integers(0, data.num_classes, data.test.size)
    row = np.repeat(np.arange(data.num_nodes), data.graph.degrees)
    inside = ~np.isin(row, data.test) & ~np.isin(data.graph.indices, data.test)
    kept = np.stack([row, data.graph.indices])[:, inside]
    new = np.stack([rng.choice(data.test, 500), rng.integers(0, data.num_nodes, 500)])
    graph = ns.Graph.from_edge_index(np.concatenate([kept, new], axis=1), data.num_nodes)
    assert graph != data.graph
    return replace(data, graph=graph, features=features, labels=labels)


def compare_intervals(
    graph: Any, outputs: Any, targets: Any, calibration: Any, nodes: Any, *, score: Any = "cqr", **options: Any
) -> Any:
    """Compare on a world of `make_numbers`."""
    return ns.compare(graph, outputs, targets, calibration, nodes, score=score, **options)
