"""Who calibrates whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import napsets as ns
from napsets.studies import METHODS, CoverageCell, Setup
from napsets.studies.coverage import METRICS, measure
from napsets.studies.protocols import Repetitions, ScoredGraph, protocol_of

CELL = CoverageCell("small", "graphsage-mean", 0, "strict", "NAPS", 2)
GRAPH_METHODS = [method for method in METHODS if method != "APS"]


@pytest.fixture
def scored(laboratory):
    return laboratory.test_graph(CELL)


def thresholds(protocol, scored, drawn, methods, hops=2):
    calibration = np.stack([~scored.mask(nodes) for nodes in drawn])
    return protocol_of(protocol).thresholds(scored, Repetitions(drawn, calibration, [0.1, 0.3]), methods, hops)


def with_other_labels(scored, nodes):
    """The same graph, where some nodes turn out to have another label."""
    labels = scored.labels.copy()
    labels[nodes] = (labels[nodes] + 1) % scored.score_matrix.shape[1]
    return replace(scored, labels=labels)


@pytest.mark.parametrize("methods", [["APS"], GRAPH_METHODS])
def test_under_strict_no_evaluation_label_can_change_a_threshold(scored, methods):
    drawn = scored.draws(3, 200)
    for repetition in range(3):
        one = [drawn[repetition]]
        before = thresholds("strict", scored, one, methods)[0].values
        after = thresholds("strict", with_other_labels(scored, one[0]), one, methods)[0].values
        np.testing.assert_array_equal(before, after)


def test_under_as_published_evaluation_labels_change_the_thresholds_of_naps_but_not_of_aps(scored):
    drawn = scored.draws(1, 200)
    other = with_other_labels(scored, drawn[0])
    for methods, same in ((["APS"], True), (GRAPH_METHODS, False)):
        before = thresholds("as-published", scored, drawn, methods)[0].values
        after = thresholds("as-published", other, drawn, methods)[0].values
        assert np.array_equal(before, after) == same


def test_strict_gives_what_the_predictors_give(laboratory, scored):
    from napsets.studies.protocols import load_dataset

    data = load_dataset("small", 0)
    predictions = laboratory.predictor(CELL, data).take(data.test)
    drawn = scored.draws(2, 100)[1]
    calibration = ~scored.mask(drawn)
    parts = thresholds("strict", scored, scored.draws(2, 100), GRAPH_METHODS)[1]
    for m, method in enumerate(GRAPH_METHODS):
        naps = ns.NAPS(hops=2, decay=METHODS[method], seed=0)
        naps.calibrate_rows(scored.graph, predictions.probabilities, scored.labels, calibration, data.test)
        sets = naps.predict(drawn, alpha=0.3)
        np.testing.assert_array_equal(parts.values[m, 1], sets.thresholds)
        np.testing.assert_array_equal(parts.support[m], sets.support)
        np.testing.assert_allclose(parts.effective_size[m], sets.effective_size)
    aps = ns.SplitConformal(seed=0).calibrate_rows(
        None, predictions.probabilities, scored.labels, calibration, data.test
    )
    flat = thresholds("strict", scored, scored.draws(2, 100), ["APS"])[1]
    np.testing.assert_array_equal(flat.values[0, 0], aps.predict(drawn, alpha=0.1).thresholds)


def test_as_published_gives_what_naps_gives_with_all_labels(scored):
    """… as long as the mass suffices: with alpha 0.3 it takes a few nodes only."""
    drawn = scored.draws(1, 100)
    everyone = np.arange(scored.graph.num_nodes)
    expected = ns.hop_thresholds(scored.graph, scored.scores, everyone, drawn[0], [1.0, 1.0], alpha=0.3)
    parts = thresholds("as-published", scored, drawn, GRAPH_METHODS)[0].values
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(parts[0, 1], expected)
    # Its geometric weights 2^−(k−1) are the hyperbolic ones at two hops (here, as on Amazon and Flickr).
    np.testing.assert_array_equal(parts[1], parts[2])


def test_where_mass_falls_short_strict_gives_every_label_and_as_published_the_uncalibrated_level(scored):
    drawn = [scored.eligible[:300]]
    strict = thresholds("strict", scored, drawn, ["NAPS"], hops=1)[0]
    published = thresholds("as-published", scored, drawn, ["NAPS"], hops=1)[0]
    short = published.support[0] < 9  # 1 − alpha = 0.9 cannot be reached by 8 of 9
    assert short.any()
    assert np.isinf(strict.values[0, 0, short]).all()
    assert (published.values[0, 0, short] == 0.9).all()


def test_the_published_quantile_interpolates_and_the_strict_one_is_an_order_statistic():
    scores = np.arange(1.0, 21.0)
    assert protocol_of("strict").quantile(scores, 0.1) == 19.0
    assert protocol_of("as-published").quantile(scores, 0.1) == pytest.approx(np.quantile(scores, 0.945))


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
def test_naps_that_reaches_the_whole_of_a_connected_graph_is_aps(alpha, monkeypatch):
    scored, hops = connected_graph(), 12
    monkeypatch.setitem(ns.studies.SETUPS, "ring", scored.setup)
    settings = {"alpha": alpha, "repetitions": 20, "evaluated": 100}
    naps, aps = (
        measure([CoverageCell("ring", "m", 0, "strict", method, depth, **settings)], scored)[0]
        for method, depth in (("NAPS", hops), ("APS", 0))
    )
    assert naps["support"] == aps["support"] == 400
    for name in METRICS:
        assert naps[name] == aps[name], name
