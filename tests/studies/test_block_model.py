"""The block-model study, which could contradict Lemma 1 and says where it does not.

Tolerances come from the number of draws: a mean over `draws` independent graphs differs from its expectation by more
than t standard errors with the probability of Student's law, which is split over all assertions of a test. The
regimes in which the bounds are informative are those of `informative`: 0 < d ≤ 2·alpha, at least 50 neighbours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

import napsets as ns
from napsets.studies.block_model import BlockCell, _draw, informative, lemma_boundary, simulate

DRAWS = 100
#: Probability that a test below fails by chance although all is well.
CHANCE = 1e-4

#: Regimes by name: what Lemma 1 says of them, and the settings.
INFORMATIVE = {
    "homophilous, d = alpha": (True, BlockCell(400, 0.4, 0.1, 0.1, draws=DRAWS)),
    "homophilous, d = 2 alpha": (True, BlockCell(400, 0.4, 0.1, 0.2, draws=DRAWS)),
    "weakly homophilous, dense": (True, BlockCell(400, 0.4, 0.2, 0.2, draws=DRAWS)),
    "heterophilous, d = alpha": (False, BlockCell(400, 0.1, 0.4, 0.1, draws=DRAWS)),
    "heterophilous, d = 2 alpha": (False, BlockCell(400, 0.1, 0.4, 0.2, draws=DRAWS)),
}
UNINFORMATIVE = {
    "few neighbours": BlockCell(400, 0.02, 0.02, 0.2, draws=DRAWS),
    "d beyond 2 alpha": BlockCell(400, 0.4, 0.1, 0.5, draws=DRAWS),
    "one law for both blocks": BlockCell(400, 0.4, 0.1, 0.0, draws=DRAWS),
}


@pytest.fixture(scope="module")
def rows():
    cells = {name: cell for name, (_, cell) in INFORMATIVE.items()} | UNINFORMATIVE
    return {name: simulate([cell])[0] for name, cell in cells.items()}


def critical(assertions):
    return t.isf(CHANCE / assertions, DRAWS - 1)


def test_the_regimes_are_told_apart(rows):
    assert [name for name, row in rows.items() if informative(row)] == list(INFORMATIVE)


def test_no_gap_exceeds_its_bound_in_any_regime(rows):
    """Over all nodes, in the easier block and in the harder one, for both methods."""
    gaps = [(m, f"{m}_gap{side}") for m in ("aps", "naps") for side in ("", "_easy", "_hard")]
    allowed = critical(len(rows) * len(gaps))
    for name, row in rows.items():
        for method, gap in gaps:
            assert row[gap] <= row[f"{method}_bound"] + allowed * row[f"{gap}_se"] + 1e-12, (name, gap)


@pytest.mark.parametrize("name", INFORMATIVE)
def test_where_it_is_informative_a_bound_smaller_by_a_quarter_would_be_refuted(rows, name):
    """So the simulation can contradict the bound of APS; that of NAPS, where neighbours are mostly strangers."""
    row, allowed = rows[name], critical(2 * len(INFORMATIVE))
    assert row["aps_gap_hard"] - allowed * row["aps_gap_hard_se"] > 0.75 * row["aps_bound"]
    if not row["lemma_favours_naps"]:
        assert row["naps_gap_hard"] - allowed * row["naps_gap_hard_se"] > 0.75 * row["naps_bound"]


@pytest.mark.parametrize("name", INFORMATIVE)
def test_where_it_is_informative_the_lemma_names_the_method_with_the_smaller_gap_in_the_harder_block(rows, name):
    row, (favours_naps, _) = rows[name], INFORMATIVE[name]
    assert row["lemma_favours_naps"] == favours_naps
    clear = critical(len(INFORMATIVE)) * row["advantage_se"]
    assert (row["advantage"] > clear) if favours_naps else (row["advantage"] < -clear)


def test_with_few_neighbours_the_lemma_can_name_the_wrong_method(rows):
    """Why the regime must be named: heterophilous and sparse, NAPS still has the smaller gap, as it rounds up."""
    (row,) = simulate([BlockCell(400, 0.005, 0.02, 0.2, draws=DRAWS)])
    assert not row["lemma_favours_naps"]
    assert row["advantage"] > critical(1) * row["advantage_se"]


def test_averaged_over_both_blocks_aps_has_no_gap(rows):
    """A fact about ranks, not about chance: it holds in every draw."""
    for row in rows.values():
        assert -1.0 / row["n"] <= row["aps_gap"] <= 1e-12
        assert row["aps_gap_easy"] + row["aps_gap_hard"] == pytest.approx(2 * row["aps_gap"], abs=1e-12)


def test_the_two_laws_differ_by_the_distance_asked_for():
    """The scores of the label that only the harder block draws lie above all others, so their share is d."""
    cell, rng = BlockCell(2000, 0.01, 0.01, 0.3), np.random.default_rng(0)
    shares = np.array([(_draw(cell, rng).scores(cell.tv).reshape(2, -1) > 0.95).mean(axis=1) for _ in range(20)])
    assert (shares[:, 0] == 0).all()
    assert abs(shares[:, 1].mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 40_000)


def test_scores_of_the_easier_block_are_uniform_below_the_others():
    cell, rng = BlockCell(5000, 0.001, 0.001, 0.3), np.random.default_rng(1)
    scores = np.sort(_draw(cell, rng).scores(cell.tv)[:5000]) / 0.95
    # Kolmogorov's distance at 1e-6: sqrt(-ln(5e-7)/2n).
    assert np.abs(scores - np.arange(1, 5001) / 5000).max() < np.sqrt(-np.log(5e-7) / 10_000)


def test_a_point_is_the_same_whenever_and_with_whomever_it_is_drawn(rows):
    name, (_, cell) = next(iter(INFORMATIVE.items()))
    other, again = simulate([replace(cell, tv=0.05), cell])
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in rows[name].items() if k != "seconds"}
    assert other["aps_gap_hard"] < again["aps_gap_hard"]
    (fresh,) = simulate([replace(cell, seed=1, draws=3)])
    assert fresh["aps_gap_hard"] != simulate([replace(cell, draws=3)])[0]["aps_gap_hard"]


def test_points_that_cannot_share_their_graphs_are_refused():
    with pytest.raises(ns.InvalidInputError, match="differ in tv only"):
        simulate([BlockCell(40, 0.1, 0.1, 0.1), BlockCell(41, 0.1, 0.1, 0.1)])


@pytest.mark.parametrize("p_in", [0.01, 0.1, 0.4])
def test_the_boundary_is_where_the_lemma_changes_its_mind(p_in):
    edge = lemma_boundary(500, p_in)
    assert ns.sbm_favours_naps(500, p_in, edge - 1e-4).favours_naps
    assert not ns.sbm_favours_naps(500, p_in, edge + 1e-4).favours_naps
    field = lemma_boundary(500, p_in, exact=False)
    assert ns.sbm_favours_naps(500, p_in, field).mean_field == pytest.approx(0.5, abs=1e-9)
    assert abs(field - edge) < 0.1 * edge
