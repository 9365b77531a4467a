"""Thresholds where every calibration node counts, with groups and all rules: every strategy against oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.test_search import large_world
from napsets.kernels.layout import ABOVE, AT_LEAST, NOMINAL, Reach
from napsets.kernels.search import find_thresholds
from napsets.kernels.selection import needed_mass
from napsets.localisers.base import Cut, Everyone, Reference
from napsets.localisers.hops import Hops, share_search
from napsets.quantile import ROUNDING, hop_quantile, local_rank
from oracles import (
    EVERY_STRATEGY,
    hops_from,
    order_statistic,
    pooled_masses,
    pooled_threshold,
    reaches,
    same_bits,
    scipy_distances,
)
from searches import make_layout
from strategies import TIED, alphas, cases

LEVELS = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 1.0]
POOLS = [0.0, 0.0, 0.5, 1.0, 3.0, 10.0, 1e6]


def others_of(case, distance, node, groups):
    """(score, hop, same) of the calibration nodes that count for a node."""
    return [
        (score, int(distance[v]) if distance[v] < 10**6 else 0, groups[v] == groups[node] and groups[node] >= 0)
        for v, score in zip(case.calibration, case.scores, strict=True)
        if v != node
    ]


@settings(max_examples=80)
@given(case=cases(scores=TIED, max_nodes=16), data=st.data())
def test_every_strategy_follows_the_definition_word_for_word(case, data):
    def draw(source, count):
        return data.draw(st.lists(st.sampled_from(source), min_size=count, max_size=count))

    hops = data.draw(st.integers(0, len(case.weights)))
    weights = np.array([[float(w) for w in case.weights[:hops]]] * 2).reshape(2, hops)
    pools, alikes = draw(POOLS, 2), draw(POOLS, 2)
    groups = np.array(draw([-1, 0, 0, 1, 5], case.num_nodes))
    levels, rules = draw(LEVELS, 3), draw([NOMINAL, AT_LEAST, ABOVE], 3)
    nodes = np.array(draw(range(case.num_nodes), 6))
    index = make_layout(case.graph, case.scores, case.calibration)
    distance = scipy_distances(case.edges, case.num_nodes, case.directed)
    expected, sizes = np.empty((6, 2, 3)), np.empty((6, hops), dtype=int)
    for i, node in enumerate(nodes.tolist()):
        others = others_of(case, distance[node], node, groups)
        sizes[i] = [sum(hop == k for _, hop, _ in others) for k in range(1, hops + 1)]
        for d in range(2):
            expected[i, d] = [
                pooled_threshold(others, weights[d], level, rule, pools[d], alikes[d]) + 0.0
                for level, rule in zip(levels, rules, strict=True)
            ]
    reach = Reach(np.array(levels), ROUNDING, np.array(rules, np.int8), np.array(pools), np.array(alikes), groups)
    for strategy in EVERY_STRATEGY:
        values, counts = find_thresholds(index, nodes, weights, reach, threads=1, strategy=strategy)
        assert np.array_equal(counts, sizes), strategy
        assert same_bits(values + 0.0, expected), strategy


@pytest.fixture(scope="module", params=["sparse", "dense", "rings", "directed"])
def world(request):
    """A graph of many words and blocks, of which neighbourhoods leave gaps."""
    rng = np.random.default_rng(7)
    graph, neighbours, calibration, scores = large_world(request.param, rng)
    return make_layout(graph, scores, calibration), scores, neighbours, rng.integers(-1, 6, graph.num_nodes)


@pytest.mark.parametrize("hops", [0, 1, 2, 4])
def test_answers_between_the_words_of_a_neighbourhood_are_found(world, hops):
    index, scores, neighbours, groups = world
    rng = np.random.default_rng(hops)
    nodes = rng.integers(index.adjacency.num_nodes, size=12)
    alphas = np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
    weights = np.stack([np.ones(hops), 1.0 / np.arange(1, hops + 1), np.ones(hops), np.zeros(hops), np.ones(hops)])
    pools, alikes = np.array([0.7, 5.0, 40.0, 1776.0, 0.0]), np.array([0.0, 20.0, 3.0, 0.0, 9.0])
    expected = []
    for node in nodes.tolist():
        distance = hops_from(neighbours, node)
        kept = index.calibration != node
        others = index.calibration[kept]
        hop = np.array([distance.get(v, 0) for v in others.tolist()])
        same = (groups[others] == groups[node]) & (groups[node] >= 0)
        expected.append([
            [hop_quantile(scores[kept], hop, w, a, pool=pool, alike=alike, same=same) for a in alphas]
            for w, pool, alike in zip(weights, pools, alikes, strict=True)
        ])  # fmt: skip
    reach = Reach(1.0 - alphas, ROUNDING, pools=pools, alikes=alikes, groups=groups)
    for strategy in EVERY_STRATEGY:
        values, _ = find_thresholds(index, nodes, weights, reach, strategy=strategy)
        assert same_bits(values, expected), strategy


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_strategies_change_no_bit(world, threads):
    index, _, _, groups = world
    nodes = np.arange(0, index.adjacency.num_nodes, 7)
    reach = Reach(np.array([0.9]), ROUNDING, pools=np.array([10.0]), alikes=np.array([30.0]), groups=groups)
    results = [
        find_thresholds(index, nodes, np.ones((1, 2)), reach, strategy=s, threads=threads)
        for s in (*EVERY_STRATEGY, None)
    ]
    for values, counts in results[1:]:
        assert same_bits(values, results[0][0])
        assert np.array_equal(counts, results[0][1])


@given(case=cases(scores=TIED), alpha=alphas)
def test_no_hops_and_a_pool_of_everyone_is_split_conformal_prediction(case, alpha):
    index = make_layout(case.graph, case.scores, case.calibration)
    for strategy in ("few", "dense"):
        for node in range(case.num_nodes):
            rest = [s for v, s in zip(case.calibration, case.scores, strict=True) if v != node]
            thresholds = find_thresholds(
                index, np.array([node]), np.zeros((1, 0)),
                Reach(np.array([1.0 - float(alpha)]), ROUNDING, pools=np.array([float(len(rest))])), strategy=strategy,
            )[0]  # fmt: skip
            assert thresholds.item() == order_statistic(rest, alpha)
            reference = Reference(np.array(case.calibration), np.array(case.scores), index.adjacency.num_nodes)
            split = Everyone().fit(reference).thresholds(np.array([node]), [Cut(1.0 - float(alpha))]).values[0]
            assert np.array_equal(thresholds.ravel(), split)  # −0 and 0 are one score


@given(
    level=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 5e-324, 0.1, 0.9, 1.0])),
    total=st.one_of(st.floats(0, 1e9), st.sampled_from([0.0, 9.0, 1e-300, 1e105])),
    rule=st.sampled_from([AT_LEAST, ABOVE]),
)
def test_the_needed_mass_is_the_smallest_that_reaches_the_level(level, total, rule):
    needed = needed_mass(level, rule, total, ROUNDING)
    if reaches(0.0, total, level, rule):
        assert needed == -math.inf
    else:
        assert reaches(needed, total, level, rule)
        assert not reaches(math.nextafter(needed, 0.0), total, level, rule)


def test_a_level_above_the_rank_of_a_value_contains_it():
    # NAPS at a level contains a value exactly where the level is above its local rank.
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        scores, hop = rng.integers(0, 5, size) / 4, rng.integers(0, 3, size)
        same, weights = rng.random(size) < 0.5, np.array([1.0, 1 / 3])
        others = list(zip(scores.tolist(), hop.tolist(), same.tolist(), strict=True))
        pool, alike = float(rng.integers(0, 3)), float(rng.integers(0, 3))
        masses, total = pooled_masses(others, weights, pool, alike)
        for value in [*scores, -1.0, 0.6, 2.0]:
            below = [mass for s, mass in masses if s < value]
            rank = local_rank(scores, hop, weights, value, pool=pool, alike=alike, same=same)
            assert rank == (below[-1] if below else 0.0) / (1.0 + total)
            threshold = pooled_threshold(others, weights, rank, ABOVE, pool, alike)
            assert value <= threshold


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_the_pooled_size_is_that_of_the_list_of_weights(world, hops):
    index, scores, neighbours, groups = world
    nodes = np.arange(0, index.adjacency.num_nodes, 101)
    weights = np.ones(hops) / np.arange(1, hops + 1)
    weightings = [Hops(hops, weights, pool, alike) for pool, alike in ((10.0, 0.0), (10.0, 30.0), (0.0, 2.0))]
    groups = np.maximum(groups, 0)
    size = index.adjacency.num_nodes
    reference = Reference(index.calibration, scores, size, index.adjacency, np.eye(groups.max() + 1)[groups])
    locals_ = [weighting.fit(reference) for weighting in weightings]
    results = share_search(locals_, nodes, [[Cut(0.9)]] * len(locals_))
    for i, node in enumerate(nodes.tolist()):
        others = index.calibration[index.calibration != node]
        distance = hops_from(neighbours, node)
        hop = np.array([distance.get(v, 0) for v in others.tolist()])
        alike = groups[others] == groups[node]
        near = np.array([weights[k - 1] if 1 <= k <= hops else 0.0 for k in hop.tolist()])
        for weighting, result in zip(weightings, results, strict=True):
            pooled = weighting.pool / others.size
            looks = weighting.alike / max(1, alike.sum()) * alike
            # What a node weighs for looking alike is a node of its own, in addition to what it weighs otherwise.
            mass = (near + pooled + looks).sum()
            square = ((near + pooled) ** 2).sum() + (looks**2 + 2 * looks * pooled).sum()
            assert result.effective_size[i] == pytest.approx(mass**2 / square if square else 0.0, rel=1e-9)
            if weighting.pool:
                assert result.support[i] == others.size
            else:
                assert result.support[i] == max((near > 0).sum(), alike.sum())
