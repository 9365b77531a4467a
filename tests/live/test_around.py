"""What is around nodes of a graph that changes, against searches over sets and against a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.live.reference import HopsAround, KnownScores
from napsets.live.state import State
from napsets.live.surroundings import Surroundings
from napsets.localisers import Cut, Hops
from napsets.scores import Labelled
from napsets.scores.evidence import Evidence
from oracles import adjacency_sets, hops_from, pooled_threshold
from strategies import TIED, cases


def surroundings_of(edges, outputs, directed=False):
    """The surroundings of the nodes of a new living graph."""
    state = State(0, directed, None)
    around = Surroundings(state)
    state.add_nodes(np.arange(len(outputs)), outputs)
    around.grow()
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    for source, target in ends.T:  # one by one, so that rows move
        state.adjacency.add_edges(np.array([source]), np.array([target]))
    return around


@given(st.integers(1, 200), st.integers(0, 3), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_walk_lists_flagged_nodes_hop_by_hop(size, hops, seed):
    rng = np.random.default_rng(seed)
    hubs = np.stack([rng.integers(2, size=size) * (size - 1), np.arange(size)])  # rings wider than what is asked for
    edges = np.concatenate([hubs, rng.integers(size, size=(2, 9))], axis=1).T.tolist()
    around, neighbours = surroundings_of(edges, np.ones((size, 1))), adjacency_sets(edges, size)
    flags = rng.random(size) < 0.5
    sources = np.array([0, size - 1])
    met, counts = around.list_around(sources, hops, flags)
    assert counts.shape == (2, hops)
    rings = iter(np.split(met, np.cumsum(counts.ravel())))
    for source in sources.tolist():
        distance = hops_from(neighbours, source)
        for k in range(1, hops + 1):
            assert sorted(next(rings).tolist()) == [v for v in range(size) if distance.get(v) == k and flags[v]]


@given(cases(scores=TIED), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 1.3]), st.data())
@settings(max_examples=60, deadline=None)
def test_thresholds_are_those_of_masses_added_up_score_by_score(case, pool, alike, data):
    neighbours, size = adjacency_sets(case.edges, case.num_nodes), case.num_nodes
    groups = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    level = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
    known, slots, scores = KnownScores(bool(alike)), np.array(case.calibration, dtype=np.int64), np.zeros(size)
    scores[slots] = [float(score) for score in case.scores]
    known.by_slot.extend(size, member=False, groups=groups)
    half = slots.size // 2
    known.by_slot["member"][slots[:half]] = True
    known.take(slots[:half], scores[slots[:half]])
    for slot in slots[half:].tolist():
        known.add(slot, scores[slot])
    weights = tuple(map(float, case.weights))
    around = surroundings_of(case.edges, np.ones((size, 1)))
    local = HopsAround(Hops(len(weights), weights, pool, alike), known, around)
    cuts = [Cut(level, rule) for rule in ("nominal", "at least", "above")]
    found = local.thresholds(np.arange(size), cuts)
    for v in range(size):
        distance = hops_from(neighbours, v)
        others = [(scores[i], distance.get(i, 0), groups[i] == groups[v]) for i in case.calibration if i != v]
        for rule in range(3):
            assert found.values[rule, v] == pooled_threshold(others, list(weights), level, rule, pool, alike)


@pytest.mark.parametrize(("dtype", "directed"), [(np.float32, False), (np.float64, False), (np.float64, True)])
def test_rows_of_a_few_nodes_are_those_of_a_batch(dtype, directed):
    rng = np.random.default_rng(0)
    size, classes = 400, 5
    outputs = rng.dirichlet(np.ones(classes), size).astype(dtype)
    edges = rng.integers(0, size - 20, (900, 2))  # the last nodes have no edges
    around = surroundings_of(edges, outputs, directed)
    reference = np.sort(rng.choice(size, 150, replace=False))
    labels = rng.integers(0, classes, 150)
    around.state.nodes["labels"][reference] = labels
    graph = ns.Graph.from_edge_index(edges.T, size, directed=directed)
    batch = Evidence(outputs, graph, Labelled(reference, labels))
    learned = around.fit(reference)
    assert learned.exponents == batch.fit().exponents
    assert np.array_equal(learned.recalibration, batch.fit().recalibration)
    assert np.array_equal(learned.walked, batch.counts["wide"])
    rows = batch.probabilities(learned)
    for count in (1, 3, 17, size):
        slots = rng.permutation(size)[:count]
        assert np.array_equal(around.evidence(slots, learned).probabilities(learned), rows[slots])
    # New outputs and edges are seen where they matter.
    changed, more = rng.permutation(size)[:9], rng.integers(0, size, (8, 2))
    outputs[changed] = rng.dirichlet(np.ones(classes), 9)
    around.state.nodes["outputs"][changed] = outputs[changed]
    around.see_outputs(changed)
    around.state.adjacency.add_edges(*more.T)
    around.see_edges(more.ravel())
    together = ns.Graph.from_edge_index(np.concatenate([edges, more]).T, size, directed=directed)
    rows = Evidence(outputs, together, Labelled(reference, labels), learned=learned).probabilities(learned)
    assert np.array_equal(around.evidence(np.arange(size), learned).probabilities(learned), rows)
    # Newer nodes are met by walks one step on from the last refit; of one another they know nothing.
    around.state.add_nodes(np.arange(size, size + 2), rng.dirichlet(np.ones(classes), 2).astype(dtype))
    around.grow()
    ends = np.array([[size, size, size, size + 1], [reference[0], 7, size + 1, 7]])
    around.state.adjacency.add_edges(*ends)
    known = np.zeros((size, classes))
    known[reference, labels] = 1.0
    total = known + learned.walked
    met = around.walked(np.array([3, size, size + 1]), learned)
    np.testing.assert_array_equal(met[0], learned.walked[3])
    np.testing.assert_allclose(met[1], 0.9 * (total[reference[0]] + total[7]) / 3)
    np.testing.assert_allclose(met[2], 0.9 * total[7] / (1 if directed else 2))
