"""At any time of a graph that grows at random, the next label is covered as often as the exact law says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import napsets as ns
from napsets.levels import rank_place
from napsets.live.state import in_reference

DRAWS, TIMES, ALPHA = 250, (15, 40, 80), 0.2


def covered_at(rng, method):
    """Grow one graph with labels in random order, and say whether the label that comes at each time is covered."""
    nodes = 120
    hard = rng.random(nodes) < 0.5
    p = np.where(hard[:, None], rng.dirichlet(np.ones(3), nodes), rng.dirichlet([8.0, 0.3, 0.3], nodes))
    labels = (p.cumsum(axis=1) > rng.random((nodes, 1))).argmax(axis=1)
    edges = rng.integers(0, nodes, (2, 200))
    edges = edges[:, hard[edges[0]] == hard[edges[1]]]
    order = rng.permutation(nodes)[: max(TIMES) + 1]
    live = ns.Live(method, alpha=ALPHA)
    live.add_nodes(np.arange(nodes), p)
    half = edges.shape[1] // 2
    live.add_edges(*edges[:, :half])
    live.add_labels(order[: TIMES[1]], labels[order[: TIMES[1]]])
    live.add_edges(*edges[:, half:])  # the graph grows between two labels
    live.add_labels(order[TIMES[1] :], labels[order[TIMES[1] :]])
    return live._fold.record["covered"][list(TIMES)]


@pytest.mark.parametrize("method", ["split", "naps-exact", pytest.param("informed", marks=pytest.mark.slow)])
def test_coverage_is_what_the_law_says_at_every_time(method):
    rng = np.random.default_rng(7)
    covered = np.sum([covered_at(rng, method) for _ in range(DRAWS)], axis=0)
    for time, count in zip(TIMES, covered.tolist(), strict=True):
        held_out = time if method == "split" else int((~in_reference(0, np.arange(time), 0.5)).sum())
        law = binom(DRAWS, min(1.0, rank_place(held_out, ALPHA) / (held_out + 1)))
        assert min(law.cdf(count), law.sf(count - 1)) > 1e-6, (time, count / DRAWS)
