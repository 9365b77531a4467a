"""Small calls, each with changes that make its input bad."""

from __future__ import annotations

import numpy as np

import napsets as ns

EDGES = np.array([[0, 1, 2], [1, 2, 3]])
GRAPH = ns.Graph.from_edge_index(EDGES, 5)
P = np.full((5, 4), 0.25)
Y = np.array([0, 1, 2, 3, -1])
CALIBRATION = [0, 1, 2]


def changed(array, place, value):
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


def calibrate(**changes):
    arguments = {"graph": GRAPH, "probabilities": P, "labels": Y, "calibration": CALIBRATION} | changes
    settings = {k: arguments.pop(k) for k in ("hops", "decay", "fallback", "seed", "score") if k in arguments}
    return ns.NAPS(**settings).calibrate(**arguments)


def calibrate_split(**changes):
    arguments = {"probabilities": P, "labels": Y, "calibration": CALIBRATION} | changes
    return ns.SplitConformal().calibrate(**arguments)


def sets(**changes):
    values = {
        "nodes": np.array([0, 3]), "member": np.ones((2, 3), bool), "thresholds": np.ones(2),
        "support": np.ones(2, int), "effective_size": np.ones(2), "alpha": 0.1, "num_nodes": 5,
    }  # fmt: skip
    return ns.PredictionSets(**(values | changes))
