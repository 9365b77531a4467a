"""Scores: the formulas of the papers, in matrix form and at labels."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.scores import RankScore, Score
from oracles import same_bits

P = np.array([[0.5, 0.25, 0.125, 0.125], [0.125, 0.25, 0.25, 0.375]])
U = np.array([0.5, 0.25])
RANK = np.array([[1, 2, 3, 4], [4, 2, 3, 1]])  # ties go to the lower class
CUMULATIVE = np.array([[0.5, 0.75, 0.875, 1.0], [1.0, 0.625, 0.875, 0.375]])


def test_aps_is_the_cumulative_sum_less_a_random_part_of_the_label():
    assert same_bits(ns.aps_scores(P, U), CUMULATIVE - U[:, None] * P)
    assert same_bits(ns.APS().matrix(P, U), ns.aps_scores(P, U))


def test_deterministic_aps_takes_the_whole_label():
    assert same_bits(ns.APS(randomized=False).matrix(P), CUMULATIVE)


def test_thr_is_one_minus_the_probability_and_needs_no_u():
    assert same_bits(ns.THR().matrix(P), 1 - P)
    assert same_bits(ns.THR().at(P, [1, 3]), [0.75, 0.625])


def test_raps_adds_a_penalty_beyond_the_free_ranks():
    expected = CUMULATIVE - U[:, None] * P + 0.25 * np.maximum(0, RANK - 2)
    assert same_bits(ns.RAPS(penalty=0.25, free_ranks=2).matrix(P, U), expected)
    assert same_bits(ns.RAPS(penalty=0.0).matrix(P, U), ns.aps_scores(P, U))


def test_saps_keeps_the_largest_probability_and_counts_ranks():
    top = P.max(axis=1, keepdims=True)
    expected = np.where(RANK == 1, U[:, None] * top, top + (RANK - 2 + U[:, None]) * 0.5)
    assert same_bits(ns.SAPS(weight=0.5).matrix(P, U), expected)
    largest = np.where(RANK == 1, top, top + (RANK - 1) * 0.5)
    assert same_bits(ns.SAPS(weight=0.5, randomized=False).matrix(P), largest)


@pytest.mark.parametrize("score", [ns.APS, ns.RAPS, ns.SAPS])
def test_the_deterministic_form_is_never_below_the_randomised_one(score):
    rng = np.random.default_rng(0)
    p, u = rng.dirichlet(np.ones(6), 200), rng.random(200)
    assert (score(randomized=False).matrix(p) >= score().matrix(p, u)).all()


@pytest.mark.parametrize("score", [ns.APS(), ns.RAPS(), ns.SAPS(), ns.THR()])
def test_rows_and_columns_of_any_number_are_scored_alike(score, monkeypatch):
    from napsets.scores import rows as scores

    rng = np.random.default_rng(1)
    p, u = rng.dirichlet(np.ones(70), 300).astype(np.float32), rng.random(300)
    whole = score.matrix(p, u)
    monkeypatch.setattr(scores, "_CHUNK_ENTRIES", 500)
    assert same_bits(score.matrix(p, u), whole)
    assert same_bits(score.matrix(p[::-1], u[::-1])[::-1], whole)
    assert score.matrix(p[:0], u[:0]).shape == (0, 70)
    assert score.at(p[:0], [], u[:0]).shape == (0,)


def test_float32_probabilities_are_summed_in_float64():
    p = np.full((1, 3), 1 / 3, dtype=np.float32)
    assert ns.aps_scores(p, [0.0])[0, 2] == 3 * np.float64(np.float32(1 / 3))


def test_the_score_at_labels_never_builds_the_matrix():
    # Python's own arrays of (nodes × classes) would show in the traced peak.
    import tracemalloc

    p = np.full((20_000, 50), 0.02)
    labels, u = np.zeros(20_000, np.int64), np.zeros(20_000)
    ns.APS().at(p, labels, u)  # compiles, where nothing is cached
    tracemalloc.start()
    ns.APS().at(p, labels, u)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < p.nbytes / 2


def test_scores_fulfil_the_protocol_and_compare_by_value():
    for score in (ns.APS(), ns.THR(), ns.RAPS(), ns.SAPS()):
        assert isinstance(score, Score)
        assert score == type(score)()
    assert ns.RAPS(penalty=1.0) != ns.RAPS()


def test_a_score_of_ones_own_needs_only_a_formula():
    class Rank(RankScore):
        def formula(self, x):
            return x.rank + x.u

    assert same_bits(Rank().matrix(P, U), RANK + U[:, None])
    assert same_bits(Rank().at(P, [3, 3], U), [4.5, 1.25])


def test_one_u_may_serve_all_rows_and_torch_tensors_are_taken():
    torch = pytest.importorskip("torch")
    assert same_bits(ns.aps_scores(P, 0.5), ns.aps_scores(P, [0.5, 0.5]))
    assert same_bits(ns.aps_scores(torch.tensor(P, requires_grad=True), torch.tensor(U)), ns.aps_scores(P, U))
