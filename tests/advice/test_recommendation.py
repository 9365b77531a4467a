"""A recommendation rests on counts that can be checked, and goes the way the paper's arguments go."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.advice.recommendation import recommend
from napsets.advice.threshold import hop_rings
from napsets.errors import InvalidInputError


def blocks(p_in: float, p_out: float, *, nodes: int = 600, seed: int = 0) -> tuple[ns.Graph, np.ndarray]:
    """Draw two blocks, half of whose labels are known."""
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) % 2
    same = labels[:, None] == labels[None, :]
    linked = np.triu(rng.random((nodes, nodes)) < np.where(same, p_in, p_out), 1)
    known = np.where(rng.random(nodes) < 0.5, labels, -1)
    return ns.Graph.from_edge_index(np.stack(np.nonzero(linked)), num_nodes=nodes), known


def test_a_homophilous_graph_speaks_for_naps_but_cannot_tell():
    graph, labels = blocks(0.06, 0.004)
    recommendation = recommend(graph, labels)
    assert recommendation.verdict == "maybe"
    assert recommendation.favourable
    assert recommendation.evidence is None
    assert recommendation.homophilous
    assert recommendation.best.bound + recommendation.best.slack < recommendation.split_bound
    assert recommendation.best.hops <= 2


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_the_edges_know_nothing_of_are_not(seed):
    graph, labels = blocks(0.03, 0.03, seed=seed)
    recommendation = recommend(graph, labels)
    assert recommendation.verdict == "no"
    assert recommendation.expected_homophily == pytest.approx(0.5, abs=0.02)


def test_a_heterophilous_graph_is_not():
    recommendation = recommend(*blocks(0.004, 0.06))
    assert recommendation.verdict == "no"
    assert not recommendation.homophilous
    assert "not homophilous" in recommendation.reasons()[0]


def test_what_one_node_shows_is_not_called_a_lack_of_homophily():
    recommendation = recommend(*blocks(0.06, 0.004), sample=1)
    assert np.isnan(recommendation.homophily_se)
    assert recommendation.homophily > recommendation.expected_homophily
    assert recommendation.verdict == "maybe"
    assert "one node only" in recommendation.reasons()[0]
    assert "not homophilous" not in recommendation.reasons()[0]


def test_a_graph_that_is_too_thin_is_not():
    graph, labels = blocks(0.004, 0.0)
    recommendation = recommend(graph, labels, max_hops=1)
    assert recommendation.best.short_share > 0.5
    assert recommendation.verdict == "no"


@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_nodes_said_to_lack_support_are_those_whose_threshold_is_infinite(alpha):
    graph, labels = blocks(0.012, 0.004)
    recommendation = recommend(graph, labels, alpha=alpha)
    rest = np.flatnonzero(labels < 0)
    p = np.full((600, 2), 0.5)
    for candidate in recommendation.candidates:
        naps = ns.NAPS(hops=candidate.hops, decay=candidate.decay)
        sets = naps.calibrate(graph, p, labels, calibration=labels >= 0).predict(rest, alpha=alpha)
        assert candidate.short == np.isinf(sets.thresholds).sum()
        assert candidate.short_share == candidate.short / rest.size
        assert candidate.effective_size == pytest.approx(sets.effective_size.mean())


def test_agreement_and_bound_are_what_counting_by_hand_gives():
    graph, labels = blocks(0.02, 0.01, nodes=120)
    recommendation = recommend(graph, labels, max_hops=2, alpha=0.5)
    calibration = np.flatnonzero(labels >= 0)
    total, same = np.zeros((calibration.size, 2)), np.zeros((calibration.size, 2))
    for i, node in enumerate(calibration):
        for k, ring in enumerate(hop_rings(graph, node, 2)):
            total[i, k] = (labels[ring] >= 0).sum()
            same[i, k] = (labels[ring] == labels[node]).sum()
    assert recommendation.agreement == pytest.approx(same.sum(axis=0) / total.sum(axis=0))
    met = total[:, 0] > 0
    assert recommendation.homophily == pytest.approx((same[met, 0] / total[met, 0]).mean())
    hyperbolic = next(c for c in recommendation.candidates if (c.hops, c.decay) == (2, "hyperbolic"))
    weights = np.array([1.0, 0.5])
    mass = total @ weights
    held = mass >= 0.5 * (1 + mass)
    assert hyperbolic.bound == pytest.approx((((total - same) @ weights) / (1 + mass))[held].mean())
    assert hyperbolic.slack == pytest.approx((1 / (1 + mass[held])).mean())
    size = mass[held] ** 2 / (total[held] @ weights**2)
    assert hyperbolic.spread == pytest.approx(np.sqrt(0.25 / (1 + size)).mean())


def test_the_best_candidate_costs_least():
    recommendation = recommend(*blocks(0.03, 0.01))
    assert recommendation.best.cost == min(candidate.cost for candidate in recommendation.candidates)


def test_the_embedded_graph_is_used_as_the_paper_uses_it():
    data = ns.datasets.load("amazon-computers", seed=0)
    labels = np.array(data.labels)[data.test]
    labels[np.random.default_rng(0).random(labels.size) < 0.5] = -1
    recommendation = recommend(data.graph.subgraph(data.test), labels)
    assert (recommendation.verdict, recommendation.best.hops, recommendation.best.decay) == ("maybe", 2, "uniform")
    assert recommendation.favourable


def test_reasons_name_the_numbers_they_rest_on():
    recommendation = recommend(*blocks(0.06, 0.004))
    homophily, bounds, hops, decay, support = recommendation.reasons()
    assert f"{100 * recommendation.homophily:.1f} %" in homophily
    assert f"{recommendation.split_bound:.3f}" in bounds
    assert "K = 2" in hops
    assert recommendation.best.decay in decay
    assert f"{recommendation.best.short:,} of {recommendation.nodes:,}" in support


def test_the_nodes_asked_for_are_the_ones_counted():
    graph, labels = blocks(0.06, 0.004)
    assert recommend(graph, labels, nodes=[1, 2, 3]).nodes == 3
    assert recommend(graph, np.abs(labels)).nodes == graph.num_nodes  # all labelled: all are looked at


def test_labels_with_no_labelled_neighbour_say_so():
    graph = ns.Graph.from_edge_index([[0, 1], [1, 2]], num_nodes=4)
    recommendation = recommend(graph, [0, -1, -1, 1])
    assert np.isnan(recommendation.homophily)
    assert recommendation.verdict == "no"
    assert "cannot be seen" in recommendation.reasons()[0]


def test_with_probabilities_the_verdict_rests_on_what_methods_did():
    graph, known = blocks(0.004, 0.06)  # heterophilous: the graph alone speaks against NAPS
    truth = np.arange(600) % 2
    rng = np.random.default_rng(0)
    p = np.where(np.arange(2) == truth[:, None], 0.6, 0.4) + 0.3 * (rng.random((600, 1)) - 0.5) * [1, -1]
    recommendation = recommend(graph, known, probabilities=p, seed=4)
    alone = recommend(graph, known, seed=4)
    assert alone.verdict == "no"
    assert recommendation.verdict == recommendation.evidence.verdict == "yes"
    assert recommendation.reasons() == alone.reasons()
    assert recommendation.best == alone.best
    assert recommendation.evidence.labels == (known >= 0).sum()


def test_bad_arguments_are_named():
    graph, labels = blocks(0.1, 0.1, nodes=20)
    with pytest.raises(InvalidInputError, match="`labels` must have at least one known label"):
        recommend(graph, np.full(20, -1))
    with pytest.raises(InvalidInputError, match="`labels` must have one entry per node, 20"):
        recommend(graph, labels[:5])
    with pytest.raises(InvalidInputError, match="`max_hops` must be at least 1; got 0"):
        recommend(graph, labels, max_hops=0)
    with pytest.raises(InvalidInputError, match="`alpha`"):
        recommend(graph, labels, alpha=1)
