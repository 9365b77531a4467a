"""Graphs with known labels, of which some are revealed, at random or under a false premise that is planted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

import laboratory  # noqa: F401  (before the studies, whose methods the package does not have)
import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from studies.collections import load

#: The graphs that are checked where none is named.
GRAPHS = (
    "cora-ml", "citeseer-full", "dblp", "blogcatalog", "squirrel-filtered", "actor", "minesweeper", "mathlib", "spack",
    "eips",
)  # fmt: skip
#: How the labels that are revealed are chosen.
PREMISES = ("random", "training", "leaked", "confident", "hubs", "community", "early")
ALPHA = 0.1


@dataclass(frozen=True, eq=False)
class World:
    """A graph, a model's probabilities and all labels, of which only some are revealed."""

    name: str
    premise: str
    graph: ns.Graph
    outputs: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    calibration: npt.NDArray[np.int64]
    judged: npt.NDArray[np.int64]
    hidden: npt.NDArray[np.int64]  #: nodes whose labels the report does not know

    @property
    def known(self) -> npt.NDArray[np.int64]:
        """The labels as the report sees them: −1 where they are not revealed."""
        known = np.full(self.labels.size, -1)
        for nodes in (self.calibration, self.judged):
            known[nodes] = self.labels[nodes]
        return known


def make_world(name: str, premise: str = "random", *, revealed: int = 800, seed: int = 0) -> World:
    """Train a linear model on the features of nodes and their neighbours, and reveal labels under a premise."""
    data = load(name, seed=seed)
    rng = np.random.default_rng(seed)
    labels = np.asarray(data.labels)
    graph = data.graph
    rows = scipy.sparse.csr_matrix(data.features)
    ones = np.ones(graph.indices.size)
    adjacency = scipy.sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes))
    means = scipy.sparse.diags(1.0 / np.maximum(graph.degrees, 1)) @ adjacency @ rows
    features = scipy.sparse.hstack([rows, means]).tocsr()
    order = rng.permutation(np.flatnonzero(labels >= 0))
    trained, rest = np.split(order, [order.size // 4])
    strength = 100.0 if premise == "training" else 1.0
    model = (
        import_module("sklearn.linear_model")
        .LogisticRegression(C=strength, max_iter=300)
        .fit(features[trained], labels[trained])
    )
    outputs = np.zeros((labels.size, int(labels.max()) + 1))
    outputs[:, model.classes_] = model.predict_proba(features)
    some = _revealed(premise, data, graph, outputs, trained, rest, min(revealed, rest.size // 2), rng)
    if premise == "leaked":
        outputs[some] *= 0.7
        outputs[some, labels[some]] += 0.3
    calibration, judged = np.split(rng.permutation(some), [some.size // 2])
    hidden = np.setdiff1d(rest, some)
    return World(name, premise, graph, outputs, labels, np.sort(calibration), np.sort(judged), hidden)


def _revealed(
    premise: str, data: Any, graph: ns.Graph, outputs: Any, trained: Any, rest: Any, count: int, rng: Any
) -> npt.NDArray[np.int64]:
    """Return the nodes whose labels are revealed."""
    if premise in ("random", "leaked"):
        return np.asarray(rest[:count])
    if premise == "training":
        return np.asarray(trained[:count])
    if premise == "confident":
        return np.asarray(rest[np.argsort(-outputs[rest].max(axis=1), kind="stable")][: rest.size // 2][:count])
    if premise == "hubs":
        return np.asarray(rest[np.argsort(-graph.degrees[rest], kind="stable")][:count])
    if premise == "early":
        times = data.times if data.times is not None else -outputs.argmax(axis=1)  # without times, class by class
        return np.asarray(rest[np.argsort(np.asarray(times)[rest], kind="stable")][:count])
    seen = np.zeros(graph.num_nodes, dtype=bool)  # a community: what is reached first from some node
    reached: list[int] = []
    for start in rng.permutation(rest):
        queue = [int(start)]
        while queue and len(reached) < 20 * count:
            node = queue.pop(0)
            if not seen[node]:
                seen[node] = True
                reached.append(node)
                queue += graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        inside = np.intersect1d(reached, rest)
        if inside.size >= count:
            break
    return np.asarray(reached)[np.isin(reached, rest)][:count]


def compared(world: World) -> Comparison:
    """Compare the usual methods on the labels that are revealed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        comparison: Comparison = compare(
            world.graph, world.outputs, world.known, world.calibration, world.judged, alpha=ALPHA, alphas=CURVE_ALPHAS
        )
    return comparison
