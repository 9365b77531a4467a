"""A model of quantiles: the pinball loss, no crossing, and intervals from what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch_geometric")
import torch
from benchmarks.intervals import QuantileGoal

import napsets as ns
from studies import training

pytestmark = pytest.mark.gnn


@pytest.fixture(scope="module")
def data():
    drawn = ns.datasets.load("dcsbm", num_nodes=1200, num_features=8, mean_degree=12, num_classes=4, seed=0)
    rng = np.random.default_rng(0)
    first = drawn.features[:, 0].astype(float)
    targets = 50.0 + 10.0 * (3 * first + rng.normal(size=1200) * (1 + np.abs(first)))
    return replace(drawn, targets=targets)


def trained_quantiles(data):
    goal = QuantileGoal(data)
    return goal.predict(training.fit(data, "graphsage-mean", "graph_cp-6fc8783", goal=goal, epochs=60, hidden=16))


@pytest.fixture(scope="module")
def quantiles(data):
    return trained_quantiles(data)


def test_the_loss_is_the_mean_pinball_loss_of_ordered_quantiles(data):
    goal = QuantileGoal(data, (0.1, 0.5, 0.9))
    rng = np.random.default_rng(1)
    outputs, truth = rng.normal(size=(30, 3)), rng.normal(size=30)
    steps = np.log1p(np.exp(outputs[:, 1:]))
    ordered = np.column_stack([outputs[:, 0], outputs[:, 0] + steps[:, 0], outputs[:, 0] + steps.sum(axis=1)])
    errors = truth[:, None] - ordered
    expected = np.where(errors > 0, np.array([0.1, 0.5, 0.9]) * errors, np.array([-0.9, -0.5, -0.1]) * errors).mean()
    assert float(goal.loss(torch.from_numpy(outputs), torch.from_numpy(truth))) == pytest.approx(expected)
    assert goal.merit(torch.from_numpy(outputs), torch.from_numpy(truth)) == pytest.approx(1 / (1 + expected))


def test_quantiles_ascend_for_every_node_and_beat_those_of_the_targets_alone(data, quantiles):
    assert (np.diff(quantiles, axis=1) > 0).all()
    rows = data.test
    plain = np.quantile(data.targets[data.train], [0.05, 0.95])
    errors = data.targets[rows, None] - plain
    levels = np.array([0.05, 0.95])
    ours = data.targets[rows, None] - quantiles[rows]
    assert (
        np.maximum(levels * ours, (levels - 1) * ours).mean()
        < np.maximum(levels * errors, (levels - 1) * errors).mean()
    )


def test_test_targets_are_not_looked_at(data, quantiles):
    hidden = data.targets.copy()
    hidden[data.test] = np.nan
    assert np.array_equal(trained_quantiles(replace(data, targets=hidden)), quantiles)
