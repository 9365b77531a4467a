"""A model of quantiles: the pinball loss, no crossing, and intervals from what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch_geometric")
import torch

import napsets as ns
from napsets.gnn.trainer import QuantileGoal, make_goal

pytestmark = pytest.mark.gnn


@pytest.fixture(scope="module")
def data():
    drawn = ns.datasets.load("dcsbm", num_nodes=1200, num_features=8, mean_degree=12, num_classes=4, seed=0)
    rng = np.random.default_rng(0)
    first = drawn.features[:, 0].astype(float)
    targets = 50.0 + 10.0 * (3 * first + rng.normal(size=1200) * (1 + np.abs(first)))
    return replace(drawn, targets=targets)


@pytest.fixture(scope="module")
def quantiles(data):
    return ns.gnn.train(
        data, "graphsage-mean", "released-code", task="regression", quantiles=(0.05, 0.95), epochs=60, hidden=16
    )


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
    assert (np.diff(quantiles.outputs, axis=1) > 0).all()
    rows = data.test
    plain = np.quantile(data.targets[data.train], [0.05, 0.95])
    errors = data.targets[rows, None] - plain
    levels = np.array([0.05, 0.95])
    assert quantiles.loss < np.maximum(levels * errors, (levels - 1) * errors).mean()
    assert "quantiles 0.05, 0.95" in repr(quantiles)


def test_what_it_says_becomes_intervals_that_cover(data, quantiles):
    calibration, rest = data.test[::2], data.test[1::2]
    calibrated = ns.NAPS(pool=10.0, exact=True, score="cqr").calibrate(
        data.graph, quantiles.outputs, quantiles.targets, calibration
    )
    covered = calibrated.predict(rest).contains(data.targets).mean()
    slack = 4 * np.sqrt(0.09 * (1 / rest.size + 2 / calibration.size))
    assert abs(covered - 0.9) < slack


def test_test_targets_are_not_looked_at(data, quantiles):
    hidden = data.targets.copy()
    hidden[data.test] = np.nan
    again = ns.gnn.train(
        replace(data, targets=hidden), "graphsage-mean", "released-code", task="regression", epochs=60, hidden=16
    )
    assert np.array_equal(again.outputs, quantiles.outputs)
    assert np.isnan(again.loss)


def test_the_table_is_what_predict_reads(quantiles):
    table = quantiles.to_arrow()
    assert table.column_names == ["node", "lower", "upper", "target", "split"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantiles": (0.9, 0.1)}, "`quantiles` must ascend"),
        ({"quantiles": ()}, "`quantiles` must ascend"),
        ({"quantiles": (0.0, 0.5)}, "each between 0 and 1"),
        ({"task": "ranking"}, "`task` must be 'classification' or 'regression'; got 'ranking'"),
    ],
)
def test_goals_that_cannot_be_are_refused(data, changes, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        make_goal(data, **({"task": "regression", "quantiles": (0.05, 0.95)} | changes))


def test_a_dataset_without_targets_cannot_be_trained_for_numbers(data):
    with pytest.raises(ns.InvalidInputError, match="must have targets for task='regression'"):
        ns.gnn.fit(replace(data, targets=None), task="regression")
