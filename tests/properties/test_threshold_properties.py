"""The kernels give the threshold of the naive method, whatever graph, and nothing but the question changes a bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.kernels import jobs
from oracles import (
    STRATEGIES,
    adjacency_sets,
    exact_hop_threshold,
    float_hop_threshold,
    hops_from,
    same_bits,
    scipy_distances,
)
from searches import hop_thresholds, make_layout, search_thresholds
from strategies import TIED, Case, alphas, cases


def exact(case: Case):
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)
    return [
        exact_hop_threshold(distance[v], case.calibration, case.scores, v, case.weights, case.alpha) + 0.0
        for v in range(case.num_nodes)
    ]


@given(case=cases())
def test_every_strategy_equals_shortest_paths_and_a_sorted_sum(case):
    index = make_layout(case.graph, case.scores, case.calibration)
    weights, expected = [float(w) for w in case.weights], exact(case)
    for strategy in STRATEGIES:
        thresholds = search_thresholds(index, case.nodes, weights, float(case.alpha), strategy=strategy)
        assert same_bits(thresholds.values[0, 0], expected), strategy


@given(
    case=cases(scores=TIED),
    weights=st.lists(st.floats(0, 100), min_size=1, max_size=5),
    alpha=st.floats(0.01, 0.99),
)
def test_every_strategy_follows_the_specification_in_floating_point(case, weights, alpha):
    neighbours = adjacency_sets(case.edges, case.num_nodes, case.directed)
    index = make_layout(case.graph, case.scores, case.calibration)
    expected = []
    for v in range(case.num_nodes):
        hop = hops_from(neighbours, v)
        distance = [hop.get(i, 10**9) for i in range(case.num_nodes)]
        expected.append(float_hop_threshold(distance, case.calibration, case.scores, v, weights, alpha) + 0.0)
    for strategy in STRATEGIES:
        thresholds = search_thresholds(index, case.nodes, weights, alpha, strategy=strategy)
        assert same_bits(thresholds.values[0, 0], expected), strategy


@given(case=cases())
def test_hop_counts_are_the_calibration_nodes_at_each_distance(case):
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)[:, case.calibration]
    index = make_layout(case.graph, case.scores, case.calibration)
    weights = [float(w) for w in case.weights]
    expected = np.stack([(distance == k).sum(axis=1) for k in range(1, len(weights) + 1)], axis=1)
    mass, square = expected @ np.array(weights), expected @ np.array(weights) ** 2
    for strategy in STRATEGIES:
        thresholds = search_thresholds(index, case.nodes, weights, float(case.alpha), strategy=strategy)
        assert np.array_equal(thresholds.hop_counts, expected), strategy
        assert np.array_equal(thresholds.support[0], expected @ (np.array(weights) > 0)), strategy
        assert np.allclose(thresholds.effective_size[0] * square, mass**2, rtol=1e-12), strategy
        assert (thresholds.effective_size[0][mass == 0] == 0).all(), strategy


@given(case=cases(), order=st.randoms(use_true_random=False))
def test_relabelling_nodes_permutes_thresholds_and_changes_nothing_else(case, order):
    new = list(range(case.num_nodes))
    order.shuffle(new)
    assert same_bits(case.relabelled(new).thresholds()[new], case.thresholds())


@given(case=cases(), random=st.randoms(use_true_random=False))
def test_the_order_of_edges_calibration_and_nodes_changes_no_bit(case, random):
    edges = [(v, u) if not case.directed and random.random() < 0.5 else (u, v) for u, v in case.edges]
    random.shuffle(edges)
    pairs = list(zip(case.calibration, case.scores, strict=True))
    random.shuffle(pairs)
    nodes = [random.randrange(case.num_nodes) for _ in range(2 * case.num_nodes)]  # some twice, some never
    graph = ns.Graph.from_edge_index(
        np.array(edges, dtype=np.int64).reshape(-1, 2).T, case.num_nodes, directed=case.directed
    )
    assert graph == case.graph
    thresholds = hop_thresholds(
        graph, [s for _, s in pairs], [v for v, _ in pairs], nodes, [float(w) for w in case.weights], float(case.alpha)
    )
    assert same_bits(thresholds, case.thresholds()[nodes])


@given(case=cases(), threads=st.integers(1, 5), size=st.integers(1, 9))
def test_threads_and_batches_change_no_bit(case, threads, size):
    whole = case.thresholds(threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "BATCH", 3)
        assert same_bits(case.thresholds(threads=threads), whole)
    parts = [case.thresholds(nodes=case.nodes[i : i + size]) for i in range(0, case.num_nodes, size)]
    assert same_bits(np.concatenate(parts), whole)


@given(case=cases(), others=st.lists(alphas, min_size=1, max_size=3), decays=st.integers(1, 3))
def test_several_alphas_and_decays_in_one_pass_are_those_of_one_at_a_time(case, others, decays):
    rows = [[float(w) / (d + 1) for w in case.weights] for d in range(decays)]
    levels = [float(a) for a in (case.alpha, *others)]
    layout = make_layout(case.graph, case.scores, case.calibration)
    together = search_thresholds(layout, case.nodes, rows, levels).values
    assert together.shape == (decays, len(levels), case.num_nodes)
    for d, row in enumerate(rows):
        for a, alpha in enumerate(levels):
            assert same_bits(together[d, a], case.thresholds(weights=row, alpha=alpha))


@given(case=cases())
def test_a_node_never_calibrates_itself(case):
    # Whatever its own score is, the node's own threshold stays.
    before = case.thresholds()
    for i, v in enumerate(case.calibration):
        scores = list(case.scores)
        scores[i] = -1e300
        assert same_bits(case.thresholds(scores=scores)[v], before[v])


@given(case=cases())
def test_nodes_without_weight_around_them_get_an_infinite_threshold(case):
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)[:, case.calibration]
    positive = [k for k, w in enumerate(case.weights, 1) if w > 0]
    alone = ~np.isin(distance, positive).any(axis=1)
    assert np.isposinf(case.thresholds()[alone]).all()


@settings(max_examples=30)
@given(n=st.integers(1, 40), alpha=alphas, threads=st.integers(1, 2))
def test_on_a_complete_graph_one_hop_is_leave_one_out_split_conformal(n, alpha, threads):
    from oracles import order_statistic

    graph = ns.Graph.from_edge_index(np.triu_indices(n, 1), n)
    scores = np.random.default_rng(n).normal(size=n)
    thresholds = hop_thresholds(graph, scores, np.arange(n), np.arange(n), [1.0], float(alpha), threads=threads)
    assert same_bits(thresholds, [order_statistic(np.delete(scores, v).tolist(), alpha) for v in range(n)])
