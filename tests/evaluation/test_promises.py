"""Bands of coverage hold as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import betabinom, binom

import napsets as ns
from napsets.levels import coverage_band, falls_short


@pytest.mark.parametrize("labels", [9, 30, 1000])
@pytest.mark.parametrize("judged", [1, 17, 800])
def test_the_band_is_that_of_the_beta_binomial_law(labels: int, judged: int) -> None:
    place = math.ceil((labels + 1) * 0.9 - 1e-9)
    law = betabinom(judged, place, labels + 1 - place)
    low, high = coverage_band(labels, 0.1, judged)
    assert (low, high) == pytest.approx((law.ppf(0.025) / judged, law.ppf(0.975) / judged))
    for hits in {0, judged // 2, judged - 1, judged}:
        assert falls_short(hits, judged, labels, 0.1) == pytest.approx(law.cdf(hits), abs=1e-12)


def test_of_infinitely_many_nodes_it_is_the_beta_law_and_without_labels_every_set_is_full() -> None:
    assert coverage_band(99, 0.1) == pytest.approx((beta_law(90, 10).ppf(0.025), beta_law(90, 10).ppf(0.975)))
    assert coverage_band(8, 0.1, 50) == (1.0, 1.0)
    assert falls_short(50, 50, 8, 0.1) == 1.0
    assert falls_short(49, 50, 8, 0.1) == 0.0


def test_of_millions_of_judged_nodes_the_law_is_that_of_a_little_fewer() -> None:
    below, beyond = (coverage_band(200_000, 0.1, judged) for judged in (1_000_000, 1_000_001))
    assert below == pytest.approx(beyond, abs=3e-6)
    assert falls_short(898_000, 1_000_000, 200_000, 0.1) == pytest.approx(
        falls_short(898_001, 1_000_001, 200_000, 0.1), rel=0.01
    )
    assert coverage_band(2000, 0.1, 50_000_000) == pytest.approx(coverage_band(2000, 0.1), abs=1e-4)


def test_coverage_lies_in_its_band_as_often_as_it_says() -> None:
    draws, inside = 300, 0
    rng = np.random.default_rng(0)
    for _ in range(draws):
        p = rng.dirichlet(np.ones(3), size=300)
        y = (rng.random(300)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=2)
        split = ns.SplitConformal(seed=int(rng.integers(1000))).calibrate(p, y, calibration=np.arange(100))
        share = ns.coverage(split.predict(np.arange(100, 300)), y)
        low, high = coverage_band(100, 0.1, 200)
        inside += low <= share <= high
    # A discrete law leaves at least 95 % inside; the ends of the band belong to it.
    assert binom.cdf(inside, draws, 0.95) > 1e-3
