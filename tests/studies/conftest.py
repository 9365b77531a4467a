"""A small graph and a classifier that needs no training, so that the machinery is tested in seconds."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.datasets.registry import DATASETS, DatasetEntry
from napsets.datasets.synthetic import dcsbm
from napsets.files.predictions import NodePredictions
from napsets.quantile import required_mass
from napsets.studies import SETUPS, Laboratory, Setup

SMALL = Setup(
    "small",
    "Small",
    cutoff=20,
    strata=((0, 1), (2, 3), (4, 6)),
    largest_balls=3,
    geometric_offset=1,
)


def small_graph(seed=0):
    return dcsbm(1600, 16.0, 6, num_features=2, sizes=(0.2, 0.1, 0.7), seed=seed)


def guess(cell, data):
    """A classifier that is right more often than not, and less sure of itself in some classes than in others."""
    rng = np.random.default_rng([cell.seed, len(cell.model)])
    logits = rng.normal(size=(data.num_nodes, data.num_classes)) * (1 + data.labels[:, None] / 3)
    logits[np.arange(data.num_nodes), data.labels] += 2.0
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return NodePredictions(np.arange(data.num_nodes), probabilities, data.labels, data.split, data.name, cell.model)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(DATASETS, "small", DatasetEntry(small_graph, "for tests", "drawn from a seed"))
    monkeypatch.setitem(SETUPS, "small", SMALL)
    return SMALL


@pytest.fixture
def laboratory(small, tmp_path):
    return Laboratory(tmp_path / "results", predictor=guess)


def drawn_coverage_law(scores, eligible, evaluated, alpha=0.1):
    """The law of `hits_law` for these scores, of which only the eligible ones are drawn for evaluation.

    At most x evaluation nodes are covered exactly if at least k of the k + x smallest scores of all nodes belong to
    calibration, that is, if at most x of them were drawn: a hypergeometric probability, whatever the scores (without
    ties). Draws of different repetitions are independent, so that the median over them has an exact law too.
    """
    from scipy.stats import hypergeom

    m = evaluated
    n = scores.size - m
    k = int(np.ceil(required_mass(float(n), alpha)))
    if k > n:
        return np.append(np.zeros(m), 1.0)
    # Eligible nodes among the k + x smallest scores, x = 0..m.
    among = np.cumsum(eligible[np.argsort(scores, kind="stable")])[k - 1 : k + m]
    return np.asarray(hypergeom.cdf(np.arange(m + 1), int(eligible.sum()), among, m))
