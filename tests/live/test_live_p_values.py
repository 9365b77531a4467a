"""A candidate is in the set at alpha exactly where its p-value exceeds alpha."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns

RNG = np.random.default_rng(4)
P = RNG.dirichlet(np.ones(3), 60)
Y = (P.cumsum(axis=1) > RNG.random((60, 1))).argmax(axis=1)
EDGES = RNG.integers(0, 60, (2, 150))


@pytest.mark.parametrize(
    "method",
    [
        "split",
        "naps",
        "naps-exact",
        "informed",
        ns.make_method("naps", pool=5.0),
        ns.make_method("naps-exact", alike=4.0),
    ],
)
@pytest.mark.parametrize("directed", [False, True])
def test_p_values_say_which_candidates_are_in_the_set(method, directed):
    graph = ns.Graph.from_edge_index(EDGES, 60, directed=directed)
    live = ns.Live.start(graph, P, Y, np.arange(50), method=method)
    nodes = np.arange(60)
    p_values = live.p_values(nodes)
    for alpha in (0.07, 0.31, 0.62):
        assert np.array_equal(live.predict(nodes, alpha).member, p_values > alpha)


@pytest.mark.parametrize("method", ["naps-exact", "informed", ns.make_method("naps-exact", alike=4.0)])
def test_without_a_reference_every_candidate_is_in_every_set(method):
    """Held-out labels alone rank nothing: before the first reference label, and once all of them are removed."""
    live = ns.Live(method)
    live.add_nodes(np.arange(60), P)
    for start in range(0, 50, 10):
        labelled = np.arange(start, start + 10)
        live.add_labels(labelled, Y[labelled])
        live.remove_labels(labelled[live._state.nodes["is_reference"][labelled]])
        assert live.status()["reference"] == 0
        assert live.predict(np.arange(60), 0.5).member.all()
        assert (live.p_values(np.arange(60)) == 1.0).all()
    assert live.status()["level"] > 10
