"""Rows against the plain definition of the experiment, and against the exact law of coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import napsets as ns
from napsets.errors import InvalidInputError
from napsets.levels import hits_law
from napsets.studies import METHODS, SETUPS, CoverageCell, DatasetCell
from napsets.studies.coverage import METRICS, dataset_row, measure
from napsets.studies.paper_tables import median_band
from napsets.studies.protocols import eligible_nodes, load_dataset

from .conftest import drawn_coverage_law

CELL = CoverageCell("small", "graphsage-mean", 0, "strict", "NAPS-H", 2, repetitions=15, evaluated=200)


def test_a_row_is_the_median_over_repetitions_of_the_metrics_of_the_sets(laboratory):
    scored = laboratory.test_graph(CELL)
    values = []
    for drawn in scored.draws(CELL.repetitions, CELL.evaluated):
        calibration = np.setdiff1d(np.arange(scored.graph.num_nodes), drawn)
        tau = ns.hop_thresholds(scored.graph, scored.scores[calibration], calibration, drawn, [1.0, 0.5], alpha=0.1)
        member = scored.score_matrix[drawn] <= tau[:, None]
        covered, sizes = member[np.arange(drawn.size), scored.labels[drawn]], member.sum(axis=1)
        strata = [covered[(sizes >= low) & (sizes <= high)] for low, high in scored.setup.strata]
        worst = max(abs(part.mean() - 0.9) for part in strata if part.size)
        values.append((covered.mean(), sizes.mean(), sizes[covered].mean(), worst, (sizes == 0).mean()))
    (row,) = measure([CELL], scored)
    names = ("coverage", "mean_size", "size_given_coverage", "sscv", "empty_rate")
    np.testing.assert_allclose([row[name] for name in names], np.median(values, axis=0), rtol=1e-12)
    assert row["eligible"] == scored.eligible.size
    assert 0 <= row["pccv"] <= 0.9


def test_pccv_is_that_of_a_half_calibrated_on_the_other_half(laboratory):
    scored = laboratory.test_graph(CELL)
    values = []
    for repetition, half in enumerate(scored.halves(CELL.repetitions)):
        other = np.setdiff1d(scored.eligible, half)
        tau = ns.hop_thresholds(scored.graph, scored.scores[other], other, half, [1.0, 0.5], alpha=0.1)
        covered = scored.scores[half] <= tau
        balls = [ball for ball in scored.balls(half, repetition) if ball.size >= 30]
        assert balls
        values.append(max(abs(covered[np.isin(half, ball)].mean() - 0.9) for ball in balls))
    assert measure([CELL], scored)[0]["pccv"] == pytest.approx(np.median(values), rel=1e-12)


def test_cells_measured_together_have_the_rows_they_have_alone(laboratory):
    scored = laboratory.test_graph(CELL)
    cells = [replace(CELL, method=m, alpha=a) for m in METHODS if m != "APS" for a in (0.1, 0.3)]
    together = measure(cells, scored)
    for cell, row in zip(cells, together, strict=True):
        (alone,) = measure([cell], scored)
        assert {name: row[name] for name in METRICS} == {name: alone[name] for name in METRICS}
        assert row["key"] == cell.key


def test_methods_see_the_same_draws_and_seeds_see_others(laboratory):
    scored = laboratory.test_graph(CELL)
    again, other = laboratory.test_graph(CELL), laboratory.test_graph(replace(CELL, seed=1))
    assert np.array_equal(scored.draws(2, 50), again.draws(2, 50))
    assert not np.array_equal(scored.draws(2, 50), other.draws(2, 50))


def test_cells_that_cannot_share_a_search_are_refused(laboratory):
    scored = laboratory.test_graph(CELL)
    with pytest.raises(InvalidInputError, match="differ in method and alpha only"):
        measure([CELL, replace(CELL, hops=3)], scored)
    with pytest.raises(InvalidInputError, match="APS must have 0 hops"):
        measure([replace(CELL, method="APS")], scored)
    with pytest.raises(InvalidInputError, match="`evaluated`"):
        measure([replace(CELL, evaluated=10_000)], scored)


def test_strict_split_conformal_covers_within_the_exact_band(laboratory, monkeypatch):
    """Probability of failing by chance: 1e-6 for each of the two, over the draw of the repetitions."""
    cell = replace(CELL, method="APS", hops=0, repetitions=100)
    scored = laboratory.test_graph(cell)
    law = drawn_coverage_law(scored.scores, scored.mask(scored.eligible), cell.evaluated, cell.alpha)
    low, high = median_band(law, cell.repetitions, outside=1e-6)
    assert low <= measure([cell], scored)[0]["coverage"] <= high
    # With every node eligible the law is Beta-binomial and needs no scores.
    monkeypatch.setitem(SETUPS, "small", replace(SETUPS["small"], cutoff=0))
    laboratory._test_graph = None
    scored = laboratory.test_graph(cell)
    nodes = scored.graph.num_nodes
    assert scored.eligible.size == nodes
    low, high = median_band(hits_law(nodes - cell.evaluated, 0.1, cell.evaluated), cell.repetitions, outside=1e-6)
    assert high - low < 0.04
    assert low <= measure([cell], scored)[0]["coverage"] <= high


def test_eligible_nodes_are_those_with_enough_test_nodes_within_two_hops(small):
    import scipy.sparse

    data = load_dataset("small", 0)
    graph = data.graph.subgraph(data.test)
    distance = scipy.sparse.csgraph.shortest_path(graph.to_scipy(), unweighted=True)
    within = ((distance >= 1) & (distance <= 2)).sum(axis=1)
    np.testing.assert_array_equal(eligible_nodes(graph, small), np.flatnonzero(within >= small.cutoff))
    row = dataset_row(DatasetCell("small", 0), data)
    assert row["eligible"] == (within >= small.cutoff).sum()
    assert (row["nodes"], row["test_nodes"]) == (1600, 1120)
