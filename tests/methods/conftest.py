"""The predictors that several tests of methods look at, on one graph."""

from __future__ import annotations

import numpy as np

import napsets as ns

RNG = np.random.default_rng(0)
SIZE, CLASSES = 400, 5
GRAPH = ns.Graph.from_edge_index(RNG.integers(SIZE, size=(2, 1200)), SIZE)
P = RNG.dirichlet(np.ones(CLASSES), SIZE)
Y = RNG.integers(CLASSES, size=SIZE)
CALIBRATION, NODES = np.arange(0, 300), np.arange(300, 400)


def naps(**settings):
    return ns.NAPS(**settings).calibrate(GRAPH, P, Y, calibration=CALIBRATION)


def split(**settings):
    return ns.SplitConformal(**settings).calibrate(P, Y, calibration=CALIBRATION)


def auto():
    return ns.Auto(seed=1).calibrate(GRAPH, P, Y, calibration=CALIBRATION)
