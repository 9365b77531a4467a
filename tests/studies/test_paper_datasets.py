"""The graph in Reddit2's likeness."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.studies.protocols import reddit2_like


@pytest.fixture(scope="module")
def data():
    return reddit2_like(0, num_nodes=12_000, mean_degree=40.0)


def test_it_is_as_homophilous_as_reddit2(data):
    assert ns.node_homophily(data.graph, data.labels) == pytest.approx(0.812, abs=0.02)
    assert data.num_classes == 41


def test_some_nodes_stray_more_of_them_in_later_blocks(data):
    stray = data.labels != data.blocks
    early, late = stray[data.blocks < 10].mean(), stray[data.blocks > 30].mean()
    assert early < 0.03 < 0.1 < late < 0.14


def test_the_seed_draws_everything(data):
    again, other = (reddit2_like(seed, num_nodes=12_000, mean_degree=40.0) for seed in (0, 1))
    assert again.graph == data.graph
    assert np.array_equal(again.features, data.features)
    assert not np.array_equal(other.labels, data.labels)
