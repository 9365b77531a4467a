"""A comparison that the tests of its verdict share."""

from __future__ import annotations

import pytest

from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from worlds import make_ring


@pytest.fixture(scope="session")
def ring_comparison() -> Comparison:
    return compare(**make_ring(1, n=3000, labelled=1200, edges=60000), alphas=CURVE_ALPHAS)
