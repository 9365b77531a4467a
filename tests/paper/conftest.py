"""A small graph and a classifier that needs no training, so that the machinery is tested in seconds."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.datasets.registry import DATASETS, DatasetEntry
from napsets.datasets.synthetic import dcsbm
from napsets.files.predictions import NodePredictions
from napsets.paper import SETUPS, Laboratory, Setup

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
