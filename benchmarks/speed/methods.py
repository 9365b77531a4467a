"""Other methods on the same graph: what pooling, an exact level, evidence and a choice cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import napsets as ns
from benchmarks.speed import graphs
from napsets.methods import Auto, CalibrationData, Method
from napsets.scores.informed import informed_probabilities

CLASSES = 10


class World:
    """A graph with labels that neighbours share, a model that knows a little, and half of the labels known."""

    def __init__(self, graph: ns.Graph, labelled: int | None = None) -> None:
        rng = np.random.default_rng(0)
        self.graph = graph
        self.labels = rng.integers(CLASSES, size=graph.num_nodes)
        logits = 2.0 * (np.arange(CLASSES) == self.labels[:, None]) + rng.normal(size=(graph.num_nodes, CLASSES))
        self.probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.calibration = np.sort(rng.permutation(graph.num_nodes)[: labelled or graph.num_nodes // 2])
        self.nodes = np.arange(graph.num_nodes)
        self.scores = ns.aps_scores(self.probabilities, ns.node_uniforms(self.nodes, 0))

    def thresholds(self, method: Any) -> None:
        """Calibrate a method, and find every node's threshold; the scores are made before the clock starts."""
        from napsets.methods import find_thresholds

        data = CalibrationData.check(self.graph, self.probabilities, self.labels, self.calibration)
        find_thresholds([method.calibrate_data(data)], self.nodes, [0.1])


def _method(localiser: Any, level: Any = None) -> Callable[[World], None]:
    return lambda world: world.thresholds(Method("thr", localiser, level or ns.Nominal()))


def _informed(world: World) -> None:
    informed_probabilities(world.probabilities, world.graph, world.calibration, world.labels[world.calibration])


def _diffusion(world: World) -> None:
    world.graph.neighbour_means(world.scores)


def _scipy_product(world: World) -> None:
    world.graph.to_scipy() @ world.scores


#: What is timed, by name. THR costs next to nothing, so that what is compared is the search.
WORK: dict[str, Callable[[World], Any]] = {
    "NAPS, 2 hops": _method(ns.Hops(2)),
    "pooled, 2 hops": _method(ns.Hops(2, pool=10.0)),
    "pooled and alike, 2 hops": _method(ns.Hops(2, pool=10.0, alike=30.0)),
    "exact, 2 hops": _method(ns.Hops(2, pool=10.0), ns.Exact()),
    "informed: evidence and fit": _informed,
    "NAPS, 3 hops": _method(ns.Hops(3)),
    "auto, up to 3 hops": lambda world: world.thresholds(Auto(max_hops=3)),
    "diffusion, one step": _diffusion,
    "SciPy's product": _scipy_product,
}


def run_method(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Time one of `WORK` on a graph, after a run that has compiled and loaded all."""
    world = World(graphs.load(spec["graph"], folder), spec.get("labelled"))
    work = WORK[spec["work"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        work(world)  # compiles what it needs
        wall, cpu = time.perf_counter(), time.process_time()
        work(world)
        return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
