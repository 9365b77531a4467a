"""The exact law of split conformal coverage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from napsets.paper.bands import coverage_law, drawn_coverage_law, median_band
from napsets.quantile import weighted_quantile


def enumerated_law(scores, eligible, evaluated, alpha):
    """Every draw of evaluation nodes, one by one."""
    counts = []
    for drawn in combinations(np.flatnonzero(eligible), evaluated):
        calibration = np.delete(scores, drawn)
        tau = weighted_quantile(calibration, np.ones(calibration.size), alpha)
        counts.append(int((scores[list(drawn)] <= tau).sum()))
    return np.cumsum(np.bincount(counts, minlength=evaluated + 1)) / len(counts)


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
def test_the_law_with_all_nodes_eligible_is_that_of_all_draws(alpha):
    scores = np.random.default_rng(0).random(11)
    everyone = np.ones(11, dtype=bool)
    expected = enumerated_law(scores, everyone, 4, alpha)
    np.testing.assert_allclose(coverage_law(7, 4, alpha), expected, atol=1e-12)
    np.testing.assert_allclose(drawn_coverage_law(scores, everyone, 4, alpha), expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.6])
def test_the_law_with_some_nodes_eligible_is_that_of_all_draws_too(alpha):
    rng = np.random.default_rng(1)
    scores, eligible = rng.random(12), np.arange(12) % 3 > 0
    expected = enumerated_law(scores, eligible, 3, alpha)
    np.testing.assert_allclose(drawn_coverage_law(scores, eligible, 3, alpha), expected, atol=1e-12)


def test_the_band_of_the_median_has_the_probability_it_promises():
    rng = np.random.default_rng(2)
    law = coverage_law(99, 50, 0.2)
    low, high = median_band(law, repetitions=9, outside=0.1)
    counts = np.searchsorted(law, rng.random((20_000, 9)), side="left")
    inside = np.mean([(low <= m <= high) for m in np.median(counts, axis=1) / 50])
    assert inside >= 0.9 - 3 * np.sqrt(0.09 / 20_000)
    assert high - low < 0.1


def test_too_few_calibration_nodes_cover_everything():
    assert median_band(coverage_law(5, 10, 0.1), 3) == (1.0, 1.0)
