"""The quantile on examples worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import napsets as ns
from napsets.quantile import hop_quantile, required_mass, summed_quantile, summed_rank


@pytest.mark.parametrize(
    ("scores", "weights", "alpha", "expected"),
    [
        ([0.3, 0.1, 0.2], [1, 1, 1], 0.5, 0.2),  # 0.5 · 4 = 2 is reached exactly
        ([0.3, 0.1, 0.2], [1, 1, 1], 0.25, 0.3),  # 0.75 · 4 = 3 as well
        ([0.3, 0.1, 0.2], [1, 1, 1], 0.2499, math.inf),
        (np.arange(1, 10) / 10, np.ones(9), 0.1, 0.9),  # 0.9 · 10 in floats is 9.000000000000002 on some roads
        (np.arange(1, 9) / 10, np.ones(8), 0.1, math.inf),
        ([1.0, 2.0], [0.5, 0.5], 0.5, 2.0),  # the test point weighs 1, twice as much as each
        ([1.0, 2.0], [0.1, 0.1], 0.5, math.inf),
        ([1.0, 2.0], [1e6, 0.0], 0.1, 1.0),
        ([1.0, 1.0, 2.0], [1, 1, 1], 0.5, 1.0),
        ([2.0, -math.inf], [0, 1], 0.5, -math.inf),
        ([], [], 0.5, math.inf),
        ([0.5], [0.0], 0.9, math.inf),
        ([math.inf, 1.0], [1, 1], 0.3, math.inf),
    ],
)
def test_the_threshold_is_the_first_score_that_gathers_the_mass(scores, weights, alpha, expected):
    assert ns.weighted_quantile(scores, weights, alpha=alpha) == expected


@pytest.mark.parametrize("n", [9, 19, 99, 999, 9_999, 99_999, 999_999])
def test_a_plateau_that_is_reached_exactly_counts_as_reached_however_many_scores(n):
    assert ns.weighted_quantile(np.arange(1.0, n + 1), np.ones(n), alpha=0.1) == 9 * (n + 1) // 10


def test_the_required_mass_forgives_one_part_in_a_billion():
    assert required_mass(9.0, 0.1) < 9.0
    assert required_mass(9.0, 0.1) == pytest.approx(9.0, rel=1.1e-9)


def test_hops_are_counted_first_and_weighted_after():
    # Adding 0.1 ten times is not 1; ten times 0.1 is.
    scores, hop = np.arange(10.0), np.ones(10, np.int64)
    assert hop_quantile(scores, hop, np.array([0.1]), 0.5) == 9.0


def test_alpha_is_a_tenth_unless_told():
    assert ns.weighted_quantile(np.arange(1.0, 10), np.ones(9)) == 9.0


def test_weights_of_many_distances_are_added_by_score_and_the_heaviest_of_equal_scores_first():
    # 1 + 2⁻⁵³ + 2⁻⁵³ is 1 from the left, and more than 1 from the right.
    tiny = 2.0**-53
    assert summed_rank(np.array([0.5, 0.5, 0.5]), np.array([tiny, 1.0, tiny]), 1.0) == 0.5
    assert summed_rank(np.array([0.1, 0.2, 0.5]), np.array([tiny, tiny, 1.0]), 1.0) == (1 + 2 * tiny) / (2 + 2 * tiny)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        scores, weights = np.array([0.5, 0.5, 0.7])[order], np.array([0.1, 0.7, 0.2])[order]
        assert summed_quantile(scores, weights, 0.65) == 0.5
        assert summed_quantile(scores, weights, 0.55) == 0.7
        assert summed_quantile(scores, weights, 0.4) == math.inf


def test_with_weights_of_1_it_is_the_order_statistic_and_pools_count_as_by_hops():
    scores = np.arange(1, 20) / 20
    assert summed_quantile(scores, np.ones(19), 0.1) == ns.weighted_quantile(scores, np.ones(19), 0.1) == 0.9
    hop, same = np.arange(19) % 3, np.arange(19) % 2 == 0
    near = (hop == 1).astype(float)
    for alpha in (0.1, 0.3, 0.5):
        pools = {"pool": 4.0, "alike": 3.0, "same": same}
        assert summed_quantile(scores, near, alpha, **pools) == hop_quantile(scores, hop, np.ones(1), alpha, **pools)
