"""Scores of numbers: a target is in the interval exactly where its score is at most the threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import napsets as ns
from napsets.scores import prediction_type
from napsets.scores.informed_intervals import (
    quantile_regression,
    residual_means,
    residual_sums,
)
from napsets.scores.residuals import IntervalScore

NUMBERS = st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: round(x, 3))
SCORES = [ns.CQR(), ns.AbsoluteResidual(), ns.NormalisedResidual()]


def outputs_of(score, first, second):
    return np.array(
        {1: [[first]], 2: [[first, abs(second) + 0.1 if "spread" in score.columns else second]]}[len(score.columns)]
    )


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
@given(first=NUMBERS, second=NUMBERS, target=NUMBERS, threshold=NUMBERS)
def test_a_target_is_inside_where_its_score_is_at_most_the_threshold(score, first, second, target, threshold):
    outputs = score.check(outputs_of(score, first, second))
    low, high = score.interval(outputs, np.array([threshold]))
    value = score.at(outputs, np.array([target]))[0]
    least = score.at(outputs, score.centre(outputs))[0]
    assert low[0] <= high[0]
    if abs(value - threshold) > 1e-6 and threshold > least + 1e-6:
        assert (low[0] <= target <= high[0]) == (value <= threshold)
    if threshold < least - 1e-6:  # nothing scores so low: the best guess stands in
        assert low[0] == pytest.approx(high[0], abs=1e-9)
        assert low[0] == pytest.approx(score.centre(outputs)[0], abs=1e-9)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_an_infinite_threshold_gives_the_whole_line(score):
    low, high = score.interval(score.check(outputs_of(score, 1.0, 2.0)), np.array([np.inf]))
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_crossed_quantiles_are_taken_the_other_way_round():
    right, crossed = np.array([[1.0, 3.0]]), np.array([[3.0, 1.0]])
    assert ns.CQR().at(crossed, np.array([5.0])) == ns.CQR().at(right, np.array([5.0])) == 2.0


@pytest.mark.parametrize(
    ("score", "outputs", "message"),
    [
        (ns.CQR(), [1.0, 2.0], r"a column for each of lower and upper with CQR; got shape \(2, 1\)"),
        (ns.AbsoluteResidual(), [[np.nan]], r"`outputs` must hold finite numbers \(prediction\)"),
        (ns.NormalisedResidual(), [[1.0, 0.5], [1.0, 0.0]], r"spreads above 0; row 1 has 0"),
        (ns.CQR(), [["a", "b"]], "finite numbers"),
    ],
)
def test_outputs_that_cannot_be_are_refused(score, outputs, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        score.check(outputs)


def test_scores_of_numbers_are_told_from_those_of_labels_also_inside_others():
    assert prediction_type(ns.InformedIntervals("absolute")) is ns.PredictionIntervals
    assert prediction_type(ns.Informed("aps")) is ns.PredictionSets
    assert all(isinstance(score, IntervalScore) for score in SCORES)


@given(seed=st.integers(0, 10**6), level=st.sampled_from([0.05, 0.3, 0.5, 0.95]))
def test_quantile_regression_has_the_least_pinball_loss(seed, level):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(40), rng.normal(size=(40, 2)) * [1.0, 30.0]])
    y = rng.normal(size=40) * 5
    beta = quantile_regression(X, y, level)

    def loss(errors):
        return np.maximum(level * errors, (level - 1) * errors).sum()

    # The primal programme: errors split into what is above and what is below.
    free, errors = [(None, None)] * 3, [(0, None)] * 80
    cost = np.concatenate([np.zeros(3), np.full(40, level), np.full(40, 1 - level)])
    primal = linprog(cost, A_eq=np.hstack([X, np.eye(40), -np.eye(40)]), b_eq=y, bounds=free + errors)
    assert loss(y - X @ beta) == pytest.approx(primal.fun, rel=1e-7)


@given(seed=st.integers(0, 10**6), directed=st.booleans())
def test_residuals_of_neighbours_leave_a_nodes_own_target_out(seed, directed):
    rng = np.random.default_rng(seed)
    size = 12
    graph = ns.Graph.from_edge_index(rng.integers(size, size=(2, 25)), num_nodes=size, directed=directed)
    nodes = np.flatnonzero(rng.random(size) < 0.6)
    centre, targets = rng.normal(size=size), rng.normal(size=nodes.size)
    reference = type("R", (), {"nodes": nodes, "labels": targets})()
    near, far = residual_means(residual_sums(graph, centre, reference, 2))
    A = graph.to_scipy().toarray()
    residual, known = np.zeros(size), np.zeros(size)
    residual[nodes], known[nodes] = targets - centre[nodes], 1.0
    for v in range(size):
        around = np.flatnonzero(A[v])
        assert near[v] == pytest.approx(residual[around].sum() / (known[around].sum() + 1.0))
        # Walks of two steps, each neighbour dividing what it passes on among its own neighbours; none back to v.
        total = count = 0.0
        for w in around:
            beyond = [x for x in np.flatnonzero(A[w]) if x != v]
            total += residual[beyond].sum() / max(A[w].sum(), 1)
            count += known[beyond].sum() / max(A[w].sum(), 1)
        assert far[v] == pytest.approx(total / (count + 1.0), abs=1e-9)


def test_informed_intervals_are_narrower_where_neighbours_share_what_the_model_misses():
    rng = np.random.default_rng(0)
    size = 3000
    block = np.repeat(np.arange(30), 100)
    inside = block[:, None] * 100 + rng.integers(100, size=(size, 6))
    graph = ns.Graph.from_edge_index(np.stack([np.repeat(np.arange(size), 6), inside.ravel()]), num_nodes=size)
    targets = 3.0 * rng.normal(size=30)[block] + rng.normal(size=size)
    quantiles = np.tile([-5.0, 5.0], (size, 1))
    calibration, rest = np.arange(0, size, 2), np.arange(1, size, 2)
    plain, informed = (
        ns.SplitConformal(score).calibrate(quantiles, targets, calibration, graph=graph).predict(rest)
        for score in (ns.CQR(), ns.InformedIntervals("cqr"))
    )
    assert informed.widths.mean() < 0.6 * plain.widths.mean()
    for intervals in (plain, informed):
        assert abs(intervals.contains(targets).mean() - 0.9) < 4 * np.sqrt(0.09 * (1 / 1500 + 1 / 750))


def test_with_few_labels_the_models_own_quantiles_stay():
    rng = np.random.default_rng(1)
    graph = ns.Graph.from_edge_index(rng.integers(50, size=(2, 100)), num_nodes=50)
    outputs = np.column_stack([np.zeros(50), np.ones(50)])
    calibrated = ns.SplitConformal(ns.InformedIntervals()).calibrate(
        outputs, rng.normal(size=50), np.arange(30), graph=graph
    )
    assert np.array_equal(calibrated.score.outputs, outputs)
