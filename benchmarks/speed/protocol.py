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
from napsets.kernels.layout import Layout, Reach
from napsets.kernels.search import count_below, find_thresholds
from napsets.localisers.hops import Sizes, Weighting
from napsets.quantile import ROUNDING

_STRATA = [(0, 1), (2, 3), (4, 10)]
_HOPS, _CUTOFF, _DRAWN, _ALPHA = 2, 50, 1000, 0.1


def repeat_protocol(repetitions: int, threads: int | None = None) -> dict[str, Any]:
    """Run the experiment; return the medians over the repetitions by method."""
    data = datasets.load("amazon-computers", seed=0)
    graph, labels = data.graph.subgraph(data.test), data.labels[data.test]
    nodes = np.arange(graph.num_nodes)
    probabilities = _probabilities(labels, data.num_classes)
    matrix = napsets.aps_scores(probabilities, napsets.node_uniforms(nodes, seed=0))
    layout = Layout(graph, nodes, matrix[nodes, labels])
    weights = decay_weights(_HOPS)
    counts = count_below(layout, nodes, np.array([layout.size]), _HOPS, threads=threads)
    eligible = np.flatnonzero(counts.sum(axis=(1, 2)) >= _CUTOFF)
    rng = np.random.default_rng(0)
    drawn = [rng.choice(eligible, _DRAWN, replace=False) for _ in range(repetitions)]
    splits = np.ones((repetitions, nodes.size), dtype=bool)
    for split, part in zip(splits, drawn, strict=True):
        split[part] = False
    repetition = np.repeat(np.arange(repetitions), _DRAWN)
    values, counts = find_thresholds(
        layout,
        np.concatenate(drawn),
        weights,
        Reach(np.array([1.0 - _ALPHA]), ROUNDING),
        splits=splits,
        pair_split=repetition,
        threads=threads,
    )
    measured: dict[str, list[list[float]]] = {name: [] for name in ("APS", *(f"NAPS {decay}" for decay in DECAYS))}
    for r, (part, split) in enumerate(zip(drawn, splits, strict=True)):
        calibration, rows = nodes[split], repetition == r
        sizes = Sizes(counts[rows], np.zeros(part.size, dtype=np.int64))
        common = napsets.weighted_quantile(matrix[calibration, labels[calibration]], np.ones(calibration.size), _ALPHA)
        support = np.full(part.size, calibration.size)
        measured["APS"].append(_measure(matrix, labels, part, np.full(part.size, common), support, support * 1.0))
        for d, decay in enumerate(DECAYS):
            weighting = Weighting(weights[d])
            rests_on = sizes.support(weighting), sizes.effective_size(weighting)
            measured[f"NAPS {decay}"].append(_measure(matrix, labels, part, values[rows, d, 0], *rests_on))
    medians = {name: np.nanmedian(np.array(rows), axis=0).round(4).tolist() for name, rows in measured.items()}
    return {"repetitions": repetitions, "eligible": int(eligible.size), "metrics": medians}


def _probabilities(labels: IntArray, classes: int) -> FloatArray:
    """Return rows on the simplex that favour the label, as a fair classifier's would."""
    logits = np.random.default_rng(0).standard_normal((labels.size, classes))
    logits[np.arange(labels.size), labels] += 2.0
    rows = np.exp(logits)
    return rows / rows.sum(axis=1, keepdims=True)


def _measure(
    matrix: FloatArray,
    labels: IntArray,
    nodes: IntArray,
    thresholds: FloatArray,
    support: IntArray,
    effective: FloatArray,
) -> list[float]:
    member = matrix[nodes] <= thresholds[:, None]
    sets = napsets.PredictionSets(nodes, member, thresholds, support, effective, _ALPHA, num_nodes=labels.size)
    return [
        napsets.coverage(sets, labels),
        napsets.mean_size(sets),
        napsets.size_given_coverage(sets, labels),
        napsets.sscv(sets, labels, _STRATA),
    ]
