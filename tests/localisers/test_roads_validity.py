"""Coverage on directed and weighted graphs: with an exact level it follows its law, along any direction and length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import napsets as ns
from worlds import guess, places_of_hits

NODES, CLASSES, LABELLED, ALPHA, DRAWS = 400, 3, 60, 0.1, 200


def uneven_roads(seed=0):
    """One half is hard to predict and has short roads, the other easy and long ones; a fifth of it is isolated."""
    rng = np.random.default_rng(seed)
    hard = np.arange(NODES) < NODES // 2
    ends = rng.integers(NODES - NODES // 5, size=(2, 3 * NODES))
    lengths = np.where(hard[ends[0]], 0.2, 1.0) * rng.exponential(size=3 * NODES) + 1e-3
    graph = ns.Graph.from_edge_index(ends, NODES, directed=True, lengths=lengths)
    labels = rng.integers(CLASSES, size=NODES)
    return graph, guess(labels, np.where(hard, 0.5, 3.0), rng), labels


@pytest.mark.parametrize(
    "localiser",
    [
        ns.Hops(2, direction="in", pool=5.0),
        ns.PathLengths(1.0, "gaussian"),
        ns.PathLengths(decay="hyperbolic", direction="in"),
        ns.PathLengths(0.5, np.sqrt, pool=5.0, alike=10.0, direction="both"),
    ],
    ids=["hops in", "gaussian", "a radius that nobody chose", "own decay, both ways"],
)
def test_coverage_follows_the_beta_binomial_law(localiser):
    method = ns.Method("aps", localiser, ns.Exact())
    places = places_of_hits([method] * DRAWS, uneven_roads(), LABELLED, alpha=ALPHA, seed=8)
    assert stats.kstest(places, "uniform").pvalue > 1e-4
