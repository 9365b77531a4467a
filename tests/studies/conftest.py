"""A small graph and a classifier that needs no training, so that the machinery is tested in seconds."""

from __future__ import annotations

import numpy as np
import pytest

from laboratory import PEERS
from napsets import datasets
from napsets.datasets import NodePredictions, dcsbm
from napsets.quantile import required_mass
from studies.__main__ import main
from studies.rows import Folders, save_predictions
from studies.setups import SETUPS, Setup

SMALL = Setup("small", "Small", cutoff=20, strata=((0, 1), (2, 3), (4, 6)), largest_balls=3, geometric_offset=1)


def register_peers(patch):
    for table, name, entry in PEERS:
        patch.setitem(table, name, entry)


@pytest.fixture(autouse=True)
def peers(monkeypatch):
    register_peers(monkeypatch)


def small_graph(seed=0):
    return dcsbm(1600, 16.0, 6, num_features=2, sizes=(0.2, 0.1, 0.7), seed=seed)


def guess(model, seed, data):
    """A classifier that is right more often than not, and less sure of itself in some classes than in others."""
    rng = np.random.default_rng([seed, len(model)])
    logits = rng.normal(size=(data.num_nodes, data.num_classes)) * (1 + data.labels[:, None] / 3)
    logits[np.arange(data.num_nodes), data.labels] += 2.0
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return NodePredictions(np.arange(data.num_nodes), probabilities, data.labels, data.split, data.name, model)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(datasets.DATASETS, "small", small_graph)
    monkeypatch.setitem(SETUPS, "small", SMALL)
    return SMALL


@pytest.fixture
def folders(small, tmp_path):
    """Folders where the predictions of models on the small graph are kept, so that none is trained."""
    folders = Folders(tmp_path / "results", tmp_path / "data")
    folders.predictions("").mkdir(parents=True)
    for seed in (0, 1):
        data = small_graph(seed)
        for model in ("graphsage-mean", "shadow-gcn", "gcn", "mlp"):
            predictions = guess(model, seed, data).take(data.test)
            save_predictions(predictions, folders.predictions(f"small_{model}_{seed}.parquet"))
            save_predictions(predictions, folders.predictions(f"small_{model}_graph_cp-6fc8783_{seed}.parquet"))
    return folders


@pytest.fixture
def studies(capsys):
    """Run ``python -m studies`` in this process; return its exit code, standard output and standard error."""

    def call(*arguments):
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err + (code if isinstance(code, str) else "")

    return call


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
    among = np.cumsum(np.isin(np.arange(scores.size), eligible)[np.argsort(scores, kind="stable")])[k - 1 : k + m]
    return np.asarray(hypergeom.cdf(np.arange(m + 1), eligible.size, among, m))


def median_band(law, repetitions, outside=1e-3):
    """The range of the median coverage of independent repetitions, up to a probability of at most `outside`.

    With an even number of repetitions the median is the mean of the two middle values: it lies above the lower end of
    the lower one and below the upper end of the upper one.
    """
    from scipy.stats import binom

    evaluated = law.size - 1
    # The j-th smallest of r values is at most x exactly if j of them are: a binomial count with chance F(x).
    lower = np.asarray(binom.sf((repetitions + 1) // 2 - 1, repetitions, law))
    upper = np.asarray(binom.sf(repetitions // 2, repetitions, law))
    low = int(np.searchsorted(lower, outside / 2, side="right"))
    high = int(np.searchsorted(upper, 1.0 - outside / 2, side="left"))
    return low / evaluated, min(high, evaluated) / evaluated
