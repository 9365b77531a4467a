"""Comparisons that several tests look at."""

from __future__ import annotations

from typing import Any

import pytest

from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from worlds import compare_intervals, make_numbers, make_ring


@pytest.fixture(scope="session")
def ring_comparison() -> Comparison:
    return compare(**make_ring(1, nodes=3000, labelled=1200, edges=60000), alphas=CURVE_ALPHAS)


@pytest.fixture(scope="session")
def numbers() -> dict[str, Any]:
    return make_numbers()


@pytest.fixture(scope="session")
def number_comparison(numbers: dict[str, Any]) -> Comparison:
    return compare_intervals(**numbers, seed=4, alphas=CURVE_ALPHAS)
