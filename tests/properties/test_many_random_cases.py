"""100 000 random small cases: every strategy against an oracle in exact integers, or word for word, to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import napsets as ns
from napsets.kernels.layout import Reach
from napsets.kernels.search import find_thresholds
from napsets.localisers import Cut, Reference
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.quantile import ROUNDING
from oracles import (
    EVERY_STRATEGY,
    STRATEGIES,
    adjacency_sets,
    hops_from,
    pooled_threshold,
    same_bits,
    shortest_edges,
    summed_threshold,
)
from searches import make_layout, search_thresholds

CASES = 100_000
DENOMINATOR = 60
#: w(k) in sixtieths: uniform, hyperbolic, geometric, skipping a hop, heavier far away, and nothing at all.
DECAYS = [(60, 60, 60, 60), (60, 30, 20, 15), (32, 16, 8, 4), (0, 60, 0, 60), (7, 60, 119, 240), (0, 0, 0, 0)]
ALPHAS = [Fraction(a, 840) for a in (1, 8, 42, 84, 120, 168, 210, 280, 420, 600, 756, 839)]


def random_case(rng):
    """Return size, edges, direction, calibrators, their scores, weights in sixtieths and an alpha."""
    size = int(rng.integers(1, 15))
    kind = rng.integers(4)
    pairs = [(u, v) for u in range(size) for v in range(u)]
    if kind == 0:  # sparse, with isolated nodes and several components
        share = 0.15
    elif kind == 1:  # dense
        share = 0.6
    elif kind == 2:  # a hub and little else
        hub = int(rng.integers(size))
        pairs, share = [(hub, v) for v in range(size)], 0.9
    else:  # a path, broken here and there
        pairs, share = [(v, v + 1) for v in range(size - 1)], 0.9
    edges = [pair if flip else pair[::-1] for pair, flip, keep in zip(
        pairs, rng.random(len(pairs)) < 0.5, rng.random(len(pairs)) < share, strict=True) if keep]  # fmt: skip
    edges += edges[: int(rng.integers(3))]  # some twice
    calibration = rng.permutation(size)[: int(rng.integers(1, size + 1))]
    scores = rng.random(calibration.size)
    if rng.random() < 0.5:
        scores = np.round(scores * 4) / 4  # ties
    weights = DECAYS[rng.integers(len(DECAYS))][: int(rng.integers(1, 5))]
    return size, edges, bool(rng.random() >= 0.8), calibration, scores, weights, ALPHAS[rng.integers(len(ALPHAS))]


def exact_threshold(hop, calibration, scores, node, weights, alpha):
    """The smallest score whose mass, in integers, reaches (1−α)(1+Σw)."""
    around = sorted((s, weights[hop[v] - 1]) for v, s in zip(calibration, scores, strict=True)
                    if v != node and hop.get(v, math.inf) <= len(weights))  # fmt: skip
    needed = (alpha.denominator - alpha.numerator) * (DENOMINATOR + sum(w for _, w in around))
    mass = 0
    for score, weight in around:
        mass += weight
        # Of tied scores, the first to reach the mass has the value of them all.
        if mass * alpha.denominator >= needed:
            return score
    return math.inf


@pytest.mark.slow
def test_no_bit_of_any_threshold_differs_in_100_000_random_cases():
    rng = np.random.default_rng(20231123)
    finite = plateaus = thresholds = 0
    for number in range(CASES):
        size, edges, directed, calibration, scores, weights, alpha = random_case(rng)
        neighbours = adjacency_sets(edges, size, directed)
        order, values = calibration.tolist(), scores.tolist()
        expected = [exact_threshold(hops_from(neighbours, v), order, values, v, weights, alpha) for v in range(size)]
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        graph = ns.Graph.from_edge_index(pairs.T, size, directed=directed)
        index = make_layout(graph, scores, calibration)
        for strategy in STRATEGIES:
            computed = search_thresholds(
                index, np.arange(size), np.array(weights) / DENOMINATOR, float(alpha), threads=1, strategy=strategy
            )
            assert same_bits(computed.values[0, 0], expected), (number, strategy, computed.values[0, 0], expected)
        counts = computed.hop_counts @ np.array(weights)
        needed = (alpha.denominator - alpha.numerator) * (DENOMINATOR + counts)
        plateaus += int((needed % alpha.denominator == 0).sum())
        finite += int(np.isfinite(expected).sum())
        thresholds += size
    # The draw must have reached what it is meant to reach.
    assert finite > thresholds / 10
    assert plateaus > thresholds / 10
    assert thresholds - finite > thresholds / 10


POOLS = (0.0, 0.0, 0.3, 1.0, 2.0, 7.0, 50.0)


@pytest.mark.slow
def test_no_bit_of_any_pooled_threshold_differs_in_100_000_random_cases():
    rng = np.random.default_rng(20261116)
    kinds = np.zeros(3, dtype=np.int64)  # −∞, finite, +∞
    for number in range(CASES):
        size, edges, directed, calibration, scores, weights, alpha = random_case(rng)
        weights = np.array(weights[: int(rng.integers(0, len(weights) + 1))]) / DENOMINATOR
        pool, alike = POOLS[rng.integers(len(POOLS))], POOLS[rng.integers(len(POOLS))]
        groups, rule = rng.integers(-1, 3, size), int(rng.integers(3))
        # Levels that are reached exactly in many cases, and 0, which needs no mass by one rule.
        level = float(1 - alpha) if rng.random() < 0.7 else float(rng.integers(0, 5)) / 4
        nodes = np.concatenate([np.arange(size), rng.integers(size, size=2)])  # some twice
        neighbours = adjacency_sets(edges, size, directed)
        expected = []
        for node in nodes.tolist():
            distance = hops_from(neighbours, node)
            others = [
                (score, distance.get(v, 0), int(groups[node] >= 0 and groups[v] == groups[node]))
                for v, score in zip(calibration.tolist(), scores.tolist(), strict=True)
                if v != node
            ]
            expected.append(pooled_threshold(others, weights.tolist(), level, rule, pool, alike))
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        graph = ns.Graph.from_edge_index(pairs.T, size, directed=directed)
        layout = make_layout(graph, scores, calibration)
        rules, pools, alikes = np.array([rule], np.int8), np.array([pool]), np.array([alike])
        reach = Reach(np.array([level]), ROUNDING, rules, pools, alikes, groups)
        for strategy in EVERY_STRATEGY:
            thresholds, _ = find_thresholds(layout, nodes, weights[None], reach, threads=1, strategy=strategy)
            assert same_bits(thresholds.ravel(), expected), (number, strategy, thresholds.ravel(), expected)
        kinds += [np.isneginf(expected).sum(), np.isfinite(expected).sum(), np.isposinf(expected).sum()]
    assert (kinds > kinds.sum() / 50).all()


def turned(edges, direction):
    """The edges as they are followed along a direction."""
    back = [(v, u) for u, v in edges]
    return {"out": edges, "in": back, "both": [*edges, *back]}[direction]


@pytest.mark.slow
def test_no_bit_of_any_directed_threshold_differs_in_100_000_random_cases():
    rng = np.random.default_rng(20261117)
    finite = thresholds = 0
    for number in range(CASES):
        size, edges, _, calibration, scores, weights, alpha = random_case(rng)
        direction = ("out", "in", "both")[number % 3]
        neighbours = adjacency_sets(turned(edges, direction), size, directed=True)
        order, values = calibration.tolist(), scores.tolist()
        expected = [exact_threshold(hops_from(neighbours, v), order, values, v, weights, alpha) for v in range(size)]
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        graph = ns.Graph.from_edge_index(pairs.T, size, directed=True).along(direction)
        index = make_layout(graph, scores, calibration)
        for strategy in STRATEGIES:
            computed = search_thresholds(
                index, np.arange(size), np.array(weights) / DENOMINATOR, float(alpha), threads=1, strategy=strategy
            )
            assert same_bits(computed.values[0, 0], expected), (number, strategy, computed.values[0, 0], expected)
        finite += int(np.isfinite(expected).sum())
        thresholds += size
    assert thresholds / 10 < finite < thresholds * 9 / 10


#: Sums of these round, and many paths tie, some of them but for rounding.
LENGTHS = np.array([0.1, 0.2, 0.3, 0.1 + 0.2, 0.7, 1.0, 1e-9, 3.0])


@pytest.mark.slow
def test_no_bit_of_any_threshold_by_path_length_differs_in_100_000_random_cases():
    from scipy.sparse.csgraph import dijkstra

    rng = np.random.default_rng(20261118)
    kinds = np.zeros(3, dtype=np.int64)  # −∞, finite, +∞
    for number in range(CASES):
        size, edges, directed, calibration, scores, _, alpha = random_case(rng)
        lengths = rng.choice(LENGTHS, len(edges)) if rng.random() < 0.7 else rng.exponential(size=len(edges)) + 1e-6
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        graph = ns.Graph.from_edge_index(pairs.T, size, directed=directed, lengths=lengths)
        direction = ("out", "in", "both")[rng.integers(3)]
        pool, alike = POOLS[rng.integers(len(POOLS))], POOLS[rng.integers(len(POOLS))]
        rule = ("nominal", "at least", "above")[rng.integers(3)]
        level = float(1 - alpha) if rng.random() < 0.7 else float(rng.integers(0, 5)) / 4
        radius, decay = float(rng.choice([0.3, 0.1 + 0.2, 0.5, 1.0, 4.0])), DECAY_NAMES[rng.integers(len(DECAY_NAMES))]
        setting = ns.PathLengths(radius, decay, pool, alike, direction)
        probabilities = np.eye(3)[rng.integers(3, size=size)]
        local = setting.fit(Reference(calibration, scores, size, graph, probabilities))
        thresholds = local.thresholds(np.arange(size), [Cut(level, rule)], threads=1 + number % 2).values[0]
        choice = probabilities.argmax(axis=1)
        ends = shortest_edges(turned(edges, direction), np.tile(lengths, 1 + (direction == "both")).tolist(), directed)
        distances = dijkstra(matrix_of(ends, size))
        expected = []
        for node in range(size):
            kept = calibration != node
            others = zip(
                scores[kept].tolist(),
                local.weights(distances[node, calibration[kept]]).tolist(),
                (choice[calibration[kept]] == choice[node]).tolist(),
                strict=True,
            )
            expected.append(summed_threshold(list(others), level, RULES[rule], pool, alike))
        assert same_bits(thresholds, expected), (number, thresholds, expected)
        kinds += [np.isneginf(expected).sum(), np.isfinite(expected).sum(), np.isposinf(expected).sum()]
    assert (kinds > kinds.sum() / 100).all()


def matrix_of(ends, size):
    """Edges with lengths as a SciPy matrix."""
    rows, columns = np.array([*ends], dtype=np.int64).reshape(-1, 2).T
    return csr_array((np.array([*ends.values()], dtype=np.float64), (rows, columns)), shape=(size, size))


RULES = {"nominal": 0, "at least": 1, "above": 2}
DECAY_NAMES = list(LENGTH_DECAYS)
