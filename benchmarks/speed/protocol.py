"""The paper's repeated experiment on Amazon Computers, under the strict protocol, with probabilities from a seed.

In each repetition 1000 eligible test nodes are drawn for evaluation and all other test nodes calibrate; APS and the
three decays of NAPS give sets, and the sets are measured. The search around a node serves all repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import napsets
from benchmarks.speed.contenders import DECAYS, decay_weights
from napsets import datasets
from napsets.checks.arguments import FloatArray, IntArray
from napsets.localisers.neighbourhoods import (
    CalibrationIndex,
    HopThresholds,
    neighbourhood_thresholds,
    split_thresholds,
)

_STRATA = [(0, 1), (2, 3), (4, 10)]
_HOPS, _CUTOFF, _DRAWN, _ALPHA = 2, 50, 1000, 0.1


def repeat_protocol(repetitions: int, threads: int | None = None) -> dict[str, Any]:
    """Run the experiment; return the medians over the repetitions by method."""
    data = datasets.load("amazon-computers", seed=0)
    graph, labels = data.graph.subgraph(data.test), data.labels[data.test]
    nodes = np.arange(graph.num_nodes)
    probabilities = _probabilities(labels, data.num_classes)
    matrix = napsets.aps_scores(probabilities, napsets.node_uniforms(nodes, seed=0))
    index = CalibrationIndex(graph, matrix[nodes, labels], nodes)
    weights = decay_weights(_HOPS)
    everyone = neighbourhood_thresholds(index, nodes, weights[:1], _ALPHA, threads=threads)
    eligible = np.flatnonzero(everyone.support[0] >= _CUTOFF)
    rng = np.random.default_rng(0)
    drawn = [rng.choice(eligible, _DRAWN, replace=False) for _ in range(repetitions)]
    splits = np.ones((repetitions, nodes.size), dtype=bool)
    for split, part in zip(splits, drawn, strict=True):
        split[part] = False
    thresholds = split_thresholds(index, splits, drawn, weights, _ALPHA, threads=threads)
    measured: dict[str, list[list[float]]] = {name: [] for name in ("APS", *(f"NAPS {decay}" for decay in DECAYS))}
    for part, split, own in zip(drawn, splits, thresholds, strict=True):
        calibration = index.calibration[split]
        common = napsets.weighted_quantile(matrix[calibration, labels[calibration]], np.ones(calibration.size), _ALPHA)
        measured["APS"].append(_measure(matrix, labels, part, np.full(part.size, common), None, 0))
        for d, decay in enumerate(DECAYS):
            measured[f"NAPS {decay}"].append(_measure(matrix, labels, part, own.values[d, 0], own, d))
    medians = {name: np.nanmedian(np.array(rows), axis=0).round(4).tolist() for name, rows in measured.items()}
    return {"repetitions": repetitions, "eligible": int(eligible.size), "metrics": medians}


def _probabilities(labels: IntArray, classes: int) -> FloatArray:
    """Return rows on the simplex that favour the label, as a fair classifier's would."""
    logits = np.random.default_rng(0).standard_normal((labels.size, classes))
    logits[np.arange(labels.size), labels] += 2.0
    rows = np.exp(logits)
    return rows / rows.sum(axis=1, keepdims=True)


def _measure(
    matrix: FloatArray, labels: IntArray, nodes: IntArray, thresholds: FloatArray, own: HopThresholds | None, decay: int
) -> list[float]:
    support = np.full(nodes.size, labels.size - nodes.size) if own is None else own.support[decay]
    effective = support.astype(np.float64) if own is None else own.effective_size[decay]
    member = matrix[nodes] <= thresholds[:, None]
    sets = napsets.PredictionSets(nodes, member, thresholds, support, effective, _ALPHA, num_nodes=labels.size)
    return [
        napsets.coverage(sets, labels),
        napsets.mean_size(sets),
        napsets.size_given_coverage(sets, labels),
        napsets.sscv(sets, labels, _STRATA),
    ]
