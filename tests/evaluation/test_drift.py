"""Whether labelled nodes are like the others: a random part is, a biased one is said to differ, and by how much."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

import napsets as ns
from napsets.evaluation.drift import ALARM, WORTH, drift_of, drifts
from napsets.evaluation.finding_sentences import drift_text

NODES = 1200


@pytest.fixture(scope="module")
def graph() -> ns.Graph:
    """Nodes with few neighbours at the start and many at the end."""
    rng = np.random.default_rng(0)
    ends = np.sort((NODES * rng.random((2, 6000)) ** 0.5).astype(np.int64), axis=0)
    return ns.Graph.from_edge_index(ends, num_nodes=NODES)


@pytest.fixture(scope="module")
def predicted() -> np.ndarray:
    return np.random.default_rng(1).choice(8, size=NODES, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.03, 0.015, 0.005])


def split(rng: np.random.Generator, first: int) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(NODES)
    return order[:first], order[first:]


def test_a_random_part_is_called_different_no_more_often_than_the_p_value_says(graph, predicted) -> None:
    rng, draws = np.random.default_rng(2), 400
    p_values = np.array([[look.p_value for look in drifts(graph, predicted, *split(rng, 200))] for _ in range(draws)])
    for column in p_values.T:
        for level in (0.05, 0.2, 0.5):
            rejected = int((column < level).sum())
            assert binom.sf(rejected - 1, draws, level) > 1e-3
            assert binom.cdf(rejected, draws, level) > 1e-3


def test_a_random_part_raises_no_alarm(graph, predicted) -> None:
    rng = np.random.default_rng(3)
    alarms = sum(
        any(look.matters(2) for look in drifts(graph, predicted, *split(rng, first)))
        for first in (50, 200, 600)
        for _ in range(60)
    )
    assert binom.sf(alarms - 1, 180, ALARM) > 1e-3


def test_labels_of_hubs_alone_are_said_to_differ_in_degree_and_by_how_much(graph, predicted) -> None:
    order = np.argsort(-graph.degrees, kind="stable")
    degree, classes = drifts(graph, predicted, order[:300], order[300:])
    assert degree.matters(2)
    assert not classes.matters(2)
    # A quarter of the nodes are labelled, all of them above the third quartile.
    assert degree.distance > 0.7
    assert degree.shares[0] > degree.shares[1]
    assert drift_text(degree).startswith("the labelled nodes differ from the other nodes in degree: nodes with ")
    assert f"(total variation distance {degree.distance:.2f}, p < 10⁻⁶)" in drift_text(degree)


def test_labels_that_avoid_a_class_are_said_to_differ_in_it_by_its_name(graph, predicted) -> None:
    labelled = np.flatnonzero(predicted != 0)[::2]
    rest = np.setdiff1d(np.arange(NODES), labelled)
    drift = drifts(graph, predicted, labelled, rest, class_names=[*"abcdefgh"])[1]
    assert drift.group == "predicted to be a"
    assert drift.shares == (0.0, float((predicted[rest] == 0).mean()))
    assert drift.matters(2)


def test_what_is_sure_but_tiny_is_not_worth_a_word() -> None:
    first, second = np.repeat([0, 1], [510_000, 490_000]), np.repeat([0, 1], [500_000, 500_000])
    drift = drift_of(first, second, ["with one", "with two"], what="degree", between=("labelled", "other"))
    assert drift.p_value < 1e-12
    assert drift.distance == pytest.approx(0.01)
    assert drift.distance < WORTH
    assert not drift.matters(1)


def test_the_more_is_looked_at_the_surer_it_must_be() -> None:
    first, second = np.repeat([0, 1], [60, 40]), np.repeat([0, 1], [360, 540])
    drift = drift_of(first, second, ["with one", "with two"], what="degree", between=("labelled", "other"))
    assert ALARM / 10 < drift.p_value < ALARM
    assert drift.matters(1)
    assert not drift.matters(10)


def test_the_p_value_is_pearsons() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        first, second = rng.integers(4, size=300), rng.integers(4, size=500)
        drift = drift_of(first, second, [*"abcd"], what="degree", between=("one", "other"))
        table = np.stack([np.bincount(first, minlength=4), np.bincount(second, minlength=4)])
        assert drift.p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue, rel=1e-9)


def test_rare_groups_are_put_together_and_one_group_tells_nothing() -> None:
    first, second = np.array([0] * 30 + [1, 2, 3]), np.array([0] * 60 + [4, 5, 6, 7])
    assert drift_of(first, second, [*"abcdefgh"], what="class", between=("one", "other")).p_value > 0.1
    alone = drift_of(np.zeros(9, int), np.zeros(5, int), ["a"], what="class", between=("one", "other"))
    assert (alone.p_value, alone.distance) == (1.0, 0.0)


def test_without_nodes_on_a_side_there_is_nothing_to_compare(graph, predicted) -> None:
    assert drifts(graph, predicted, np.arange(NODES), np.empty(0, dtype=np.int64)) == ()
