"""The weighted quantile: equal weights give split conformal prediction, and the test point weighs 1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import napsets as ns
from napsets.quantile import hop_quantile
from oracles import exact_quantile, order_statistic, same_bits
from strategies import WEIGHTS, alphas, any_scores

fractions = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)
score_lists = st.lists(any_scores, max_size=60)


@given(scores=score_lists, alpha=st.one_of(alphas, fractions))
@example(scores=[0.1 * i for i in range(9)], alpha=Fraction(1, 10))  # (n+1)(1−α) = 9 exactly
@example(scores=[0.1 * i for i in range(8)], alpha=Fraction(1, 10))
@example(scores=[float(i) for i in range(59)], alpha=Fraction(1, 3))
def test_equal_weights_give_the_order_statistic_of_split_conformal_prediction(scores, alpha):
    quantile = ns.weighted_quantile(scores, np.ones(len(scores)), alpha=float(alpha))
    assert quantile == order_statistic(scores, alpha)


@given(n=st.integers(0, 2000), alpha=fractions)
def test_the_place_of_the_order_statistic_is_right_for_every_n_and_alpha(n, alpha):
    scores = np.arange(1.0, n + 1)
    place = math.ceil((n + 1) * (1 - alpha))
    assert ns.weighted_quantile(scores, np.ones(n), alpha=float(alpha)) == (place if place <= n else math.inf)


@given(st.lists(st.tuples(any_scores, st.sampled_from(WEIGHTS)), max_size=25), alphas)
def test_any_weights_give_what_exact_arithmetic_gives(pairs, alpha):
    scores, weights = [s for s, _ in pairs], [w for _, w in pairs]
    quantile = ns.weighted_quantile(scores, [float(w) for w in weights], alpha=float(alpha))
    assert quantile == exact_quantile(scores, weights, alpha)


@given(n=st.integers(1, 200), scale=st.fractions(Fraction(1, 50), 50, max_denominator=50), alpha=alphas)
def test_the_test_point_weighs_one_whatever_the_weights_are_scaled_by(n, scale, alpha):
    # k·c ≥ (1−α)(1 + n·c) first holds at k = ⌈(1−α)(1/c + n)⌉: the scale c matters only through the 1.
    place = math.ceil((1 - alpha) * (1 / scale + n))
    quantile = ns.weighted_quantile(np.arange(1.0, n + 1), np.full(n, float(scale)), alpha=float(alpha))
    assert quantile == (place if place <= n else math.inf)


@given(st.lists(st.tuples(any_scores, st.sampled_from(WEIGHTS)), max_size=25), alphas, st.integers(1, 20))
def test_heavier_weights_never_raise_the_threshold(pairs, alpha, factor):
    scores, weights = [s for s, _ in pairs], np.array([float(w) for _, w in pairs])
    light = ns.weighted_quantile(scores, weights, alpha=float(alpha))
    assert ns.weighted_quantile(scores, weights * factor, alpha=float(alpha)) <= light


@given(st.lists(st.tuples(any_scores, st.sampled_from(WEIGHTS)), max_size=25), alphas, alphas)
def test_a_smaller_alpha_never_gives_a_smaller_threshold(pairs, one, other):
    scores, weights = [s for s, _ in pairs], [float(w) for _, w in pairs]
    low, high = sorted([float(one), float(other)])
    assert ns.weighted_quantile(scores, weights, alpha=high) <= ns.weighted_quantile(scores, weights, alpha=low)


@given(st.lists(st.tuples(any_scores, st.floats(0, 1e6)), max_size=25), alphas, st.randoms(use_true_random=False))
def test_the_order_of_the_scores_changes_no_bit(pairs, alpha, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    one, other = (ns.weighted_quantile([s for s, _ in p], [w for _, w in p], float(alpha)) for p in (pairs, shuffled))
    assert same_bits([one], [other])


@given(
    st.lists(st.tuples(any_scores, st.integers(1, 3)), max_size=25),
    st.lists(st.sampled_from(WEIGHTS), min_size=3, max_size=3),
)
def test_weighing_by_hop_is_weighing_each_score(pairs, weights):
    scores = np.array([s for s, _ in pairs], dtype=np.float64)
    hop = np.array([k for _, k in pairs], dtype=np.int64)
    by_hop = hop_quantile(scores, hop, np.array(weights, dtype=np.float64), 0.25)
    assert by_hop == exact_quantile(scores.tolist(), [weights[k - 1] for k in hop], Fraction(1, 4))
