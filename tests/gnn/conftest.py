"""Tiny graphs for the tests of training."""

from __future__ import annotations

import pytest

from napsets.datasets import NodeDataset, dcsbm


@pytest.fixture(scope="session")
def tiny() -> NodeDataset:
    """240 nodes in three blocks that features alone separate badly."""
    return dcsbm(240, 6, 3, num_features=12, homophily=0.85, signal=0.6, seed=1)
