"""Methods of the table on Amazon Computers."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import napsets as ns
from benchmarks.speed import graphs
from benchmarks.speed.methods import World
from napsets.methods import CalibrationData, make_method


def _given(spec: dict[str, Any], folder: Path) -> tuple[CalibrationData, Any]:
    graph = graphs.load(spec["graph"], folder)
    if spec["graph"] == "amazon-test":
        from napsets.datasets import amazon_predictions

        predictions = amazon_predictions()
        p, labels, nodes = predictions.probabilities, predictions.labels, np.arange(graph.num_nodes)
    else:
        world = World(graph)
        p, labels = world.probabilities, world.labels
        nodes = np.sort(np.random.default_rng(1).permutation(graph.num_nodes)[: spec["sources"]])
    calibration = np.random.default_rng(0).permutation(graph.num_nodes)[: int(spec["labelled"] * graph.num_nodes)]
    return CalibrationData.check(graph, p, labels, calibration), nodes


def _inputs(data: CalibrationData) -> tuple[Any, Any, Any]:
    return data.outputs, data.truth, data.calibration


def answer(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Time calibration and sets of one method, its scores made before the clock starts, or by each run."""
    given, nodes = _given(spec, folder)
    method, runs = make_method(spec["method"]), spec.get("runs", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ns.NapsetsWarning)
        method.calibrate_data(given).predict(nodes)  # compiles kernels, and makes the scores that `given` keeps
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(runs):
            data = CalibrationData.check(given.graph, *_inputs(given)) if "runs" in spec else given
            method.calibrate_data(data).predict(nodes)
        return {
            "seconds": (time.perf_counter() - wall) / runs,
            "cpu_seconds": (time.process_time() - cpu) / runs,
            "asked": int(nodes.size),
            "nodes": given.graph.num_nodes if given.graph is not None else 0,
            "edges": given.graph.num_edges if given.graph is not None else 0,
        }
