"""Rows against the plain definition of the experiment, who calibrates whom, and the exact law of coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import napsets as ns
from napsets.levels import hits_law
from searches import hop_thresholds
from studies.coverage import (
    COVERAGE,
    METRICS,
    ScoredGraph,
    as_published,
    chance_violation,
    dataset_row,
    eligible_nodes,
    measure,
    strict,
)
from studies.coverage import scored_graph as scored_graph_of
from studies.setups import METHODS, SETUPS, Setup

from .conftest import drawn_coverage_law, median_band, small_graph

CELL = {
    "dataset": "small", "model": "graphsage-mean", "seed": 0, "protocol": "strict", "method": "NAPS-H", "hops": 2,
    "alpha": 0.1, "repetitions": 15, "evaluated": 200, "preset": "graph_cp-6fc8783",
}  # fmt: skip


@pytest.fixture
def scored(folders):
    return scored_graph_of(CELL, folders)


def test_a_row_is_the_median_over_repetitions_of_the_metrics_of_the_sets(scored):
    values = []
    for drawn in scored.draws(15, 200):
        calibration = np.setdiff1d(np.arange(scored.graph.num_nodes), drawn)
        tau = hop_thresholds(scored.graph, scored.scores[calibration], calibration, drawn, [1.0, 0.5], alpha=0.1)
        member = scored.score_matrix[drawn] <= tau[:, None]
        covered, sizes = member[np.arange(drawn.size), scored.labels[drawn]], member.sum(axis=1)
        strata = [covered[(sizes >= low) & (sizes <= high)] for low, high in scored.setup.strata]
        worst = max(abs(part.mean() - 0.9) for part in strata if part.size)
        values.append((covered.mean(), sizes.mean(), sizes[covered].mean(), worst))
    (row,) = measure(scored, [CELL])
    names = ("coverage", "mean_size", "size_given_coverage", "sscv")
    np.testing.assert_allclose([row[name] for name in names], np.median(values, axis=0), rtol=1e-12)
    assert COVERAGE.key(row) == COVERAGE.key(CELL)


def test_pccv_is_that_of_a_half_calibrated_on_the_other_half(scored):
    values = []
    for repetition, half in enumerate(scored.halves(15)):
        other = np.setdiff1d(scored.eligible, half)
        tau = hop_thresholds(scored.graph, scored.scores[other], other, half, [1.0, 0.5], alpha=0.1)
        covered = scored.scores[half] <= tau
        balls = [ball for ball in scored.balls(half, repetition) if ball.size >= 30]
        assert balls
        values.append(max(abs(covered[np.isin(half, ball)].mean() - 0.9) for ball in balls))
    assert measure(scored, [CELL])[0]["pccv"] == pytest.approx(np.median(values), rel=1e-12)


def test_more_nodes_than_are_eligible_cannot_be_evaluated_and_the_baseline_has_no_hops(scored):
    with pytest.raises(ns.InvalidInputError, match="`evaluated`"):
        measure(scored, [CELL | {"evaluated": 10_000}])
    with pytest.raises(ns.InvalidInputError, match="APS must have 0 hops"):
        measure(scored, [CELL | {"method": "APS"}])


def test_strict_split_conformal_covers_within_the_exact_band(scored):
    """Probability of failing by chance: 1e-6 for each of the two, over the draw of the repetitions."""
    cell = CELL | {"method": "APS", "hops": 0, "repetitions": 100}
    law = drawn_coverage_law(scored.scores, scored.eligible, 200)
    low, high = median_band(law, 100, outside=1e-6)
    assert low <= measure(scored, [cell])[0]["coverage"] <= high
    # With every node eligible the law is Beta-binomial and needs no scores.
    nodes = scored.graph.num_nodes
    low, high = median_band(hits_law(nodes - 200, 0.1, 200), 100, outside=1e-6)
    assert high - low < 0.04
    assert low <= measure(replace(scored, eligible=np.arange(nodes)), [cell])[0]["coverage"] <= high


def test_eligible_nodes_are_those_with_enough_test_nodes_within_two_hops(small):
    import scipy.sparse

    data = small_graph(0)
    graph = data.graph.subgraph(data.test)
    distance = scipy.sparse.csgraph.shortest_path(graph.to_scipy(), unweighted=True)
    within = ((distance >= 1) & (distance <= 2)).sum(axis=1)
    np.testing.assert_array_equal(eligible_nodes(graph, small), np.flatnonzero(within >= small.cutoff))
    row = dataset_row({"dataset": "small", "seed": 0}, data)
    assert row["eligible"] == (within >= small.cutoff).sum()
    assert (row["nodes"], row["test_nodes"]) == (1600, 1120)


def taus(protocol, scored, method, nodes, hops=2, alpha=0.1):
    cell = CELL | {"method": method, "hops": 0 if method == "APS" else hops, "alpha": alpha}
    return protocol(scored, [cell])(nodes, scored.without(nodes))[0].thresholds


def with_other_labels(scored, nodes):
    """The same graph, where some nodes turn out to have another label."""
    labels = scored.labels.copy()
    labels[nodes] = (labels[nodes] + 1) % scored.score_matrix.shape[1]
    return replace(scored, labels=labels)


@pytest.mark.parametrize("method", METHODS)
def test_under_strict_no_evaluation_label_can_change_a_threshold(scored, method):
    for drawn in scored.draws(3, 200):
        other = with_other_labels(scored, drawn)
        np.testing.assert_array_equal(taus(strict, scored, method, drawn), taus(strict, other, method, drawn))


@pytest.mark.parametrize("method", METHODS)
def test_under_as_published_evaluation_labels_change_the_thresholds_of_naps_but_not_of_aps(scored, method):
    (drawn,) = scored.draws(1, 200)
    before = taus(as_published, scored, method, drawn)
    after = taus(as_published, with_other_labels(scored, drawn), method, drawn)
    assert np.array_equal(before, after) == (method == "APS")


def test_as_published_gives_the_thresholds_of_naps_with_all_labels(scored):
    """… as long as the mass suffices: with alpha 0.3 it takes a few nodes only."""
    (drawn,) = scored.draws(1, 100)
    everyone = np.arange(scored.graph.num_nodes)
    expected = hop_thresholds(scored.graph, scored.scores, everyone, drawn, [1.0, 1.0], alpha=0.3)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(taus(as_published, scored, "NAPS", drawn, alpha=0.3), expected)
    # Its geometric weights 2^−(k−1) are the hyperbolic ones at two hops (here, as on Amazon and Flickr).
    hyperbolic, geometric = (taus(as_published, scored, name, drawn, alpha=0.3) for name in ("NAPS-H", "NAPS-G"))
    np.testing.assert_array_equal(hyperbolic, geometric)


def test_where_mass_falls_short_strict_gives_every_label_and_as_published_the_uncalibrated_level(scored):
    nodes = scored.eligible[:300]
    (published,) = as_published(scored, [CELL | {"method": "NAPS", "hops": 1}])(nodes, scored.without(nodes))
    short = published.support < 9  # 1 − alpha = 0.9 cannot be reached by 8 of 9
    assert short.any()
    assert np.isinf(taus(strict, scored, "NAPS", nodes, hops=1)[short]).all()
    assert (published.thresholds[short] == 0.9).all()


def test_the_published_quantile_interpolates_and_the_strict_one_is_an_order_statistic():
    scored = ScoredGraph(SETUPS["flickr"], ns.Graph.from_edge_index([[0], [1]], 21), np.zeros(21, dtype=np.int64),
                         np.arange(21.0)[:, None], np.arange(21), 1.0, 0)  # fmt: skip
    first, others = np.array([0]), np.arange(1, 21)
    aps = [CELL | {"method": "APS", "hops": 0}]
    assert strict(scored, aps)(first, others)[0].thresholds == [19.0]
    assert as_published(scored, aps)(first, others)[0].thresholds == pytest.approx(np.quantile(others, 0.945))


def connected_graph():
    rng = np.random.default_rng(5)
    ring, chord = np.arange(500), rng.integers(0, 500, (2, 2000))
    edges = np.concatenate([[ring, np.roll(ring, 1)], chord], axis=1)
    graph = ns.Graph.from_edge_index(edges, num_nodes=500)
    labels = rng.integers(0, 5, 500)
    matrix = ns.aps_scores(rng.dirichlet(np.ones(5), 500), rng.random(500))
    setup = Setup("ring", "Ring", cutoff=0, strata=((0, 2), (3, 5)), largest_balls=3)
    return ScoredGraph(setup, graph, labels, matrix, np.arange(500), 0.2, seed=0)


@pytest.mark.parametrize("alpha", [0.1, 0.37])
def test_naps_that_reaches_the_whole_of_a_connected_graph_is_aps(alpha):
    cell = CELL | {"alpha": alpha, "repetitions": 20, "evaluated": 100}
    naps, aps = measure(connected_graph(), [cell | {"method": "NAPS", "hops": 12}, cell | {"method": "APS", "hops": 0}])
    assert naps["support"] == aps["support"] == 400
    for name in (*METRICS, "pccv"):
        assert naps[name] == aps[name], name


def test_the_chance_floor_is_the_worst_deviation_of_binomial_shares():
    rng, sizes = np.random.default_rng(0), [30, 50]
    values = np.array([chance_violation(sizes, 0.1, rng) for _ in range(4000)])
    law = [binom(n, 0.9) for n in sizes]
    for reach in (0.05, 0.08, 0.12):
        counts = [np.arange(n + 1) for n in sizes]
        expected = np.prod([
            one.pmf(k)[np.abs(k / n - 0.9) <= reach + 1e-12].sum() for one, k, n in zip(law, counts, sizes, strict=True)
        ])  # fmt: skip
        assert binomtest(int((values <= reach + 1e-12).sum()), 4000, expected).pvalue > 1e-5
    assert np.isnan(chance_violation([], 0.1, rng))
