"""Neighbourhoods by path length: distances, weights, thresholds and ranks against slow and independent ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.kernels import near as near_kernels
from napsets.kernels.near import near_distances
from napsets.localisers import Cut, Hops, PathLengths, Reference, near_radii, share_search
from napsets.localisers.path_lengths import LENGTH_DECAYS
from napsets.methods import load, make_method, save
from napsets.quantile import summed_quantile, summed_rank
from oracles import path_distances, same_bits, summed_masses, summed_threshold
from strategies import cases, generators

#: Sums of these round, and many of them tie.
LENGTHS = [0.1, 0.2, 0.30000000000000004, 0.3, 0.7, 1.0, 1e-9, 3.0]
RULES = {"nominal": 0, "at least": 1, "above": 2}
#: No zeros of two signs: which of two equal scores a threshold is written as is not defined.
SCORES = [0.0, 0.25, 0.5, 0.5000000000000001, 1.0, float("inf"), -3.5]


@st.composite
def roads(draw):
    """A case with lengths, a radius, a decay and pools."""
    case, rng = draw(cases(scores=SCORES)), draw(generators)
    lengths = rng.choice(LENGTHS, len(case.edges)).tolist()
    how = {
        "radius": draw(st.sampled_from([0.1, 0.30000000000000004, 0.6, 1.0, 2.5, 100.0])),
        "decay": draw(st.sampled_from([*LENGTH_DECAYS])),
        "pool": draw(st.sampled_from([0.0, 0.0, 0.3, 7.0])),
        "alike": draw(st.sampled_from([0.0, 0.0, 2.0])),
    }
    pairs = np.array(case.edges, dtype=np.int64).reshape(-1, 2)
    graph = ns.Graph.from_edge_index(pairs.T, case.num_nodes, directed=case.directed, lengths=lengths)
    probabilities = np.eye(3)[rng.integers(3, size=case.num_nodes)]
    reference = Reference(np.array(case.calibration), np.array(case.scores), case.num_nodes, graph, probabilities)
    return case, lengths, reference, how


def others_of(case, local, distances, node):
    """Score, weight and likeness of all calibration nodes but the node itself."""
    mine = local.reference.predicted
    scores = [score for v, score in zip(case.calibration, case.scores, strict=True) if v != node]
    nodes = [v for v in case.calibration if v != node]
    weights = local.weights(np.array([distances[v] for v in nodes])).tolist()
    return list(zip(scores, weights, (mine[nodes] == mine[node]).tolist(), strict=True))


@settings(max_examples=150)
@given(road=roads(), threads=st.integers(1, 3), rule=st.sampled_from([*RULES]), value=st.sampled_from(SCORES))
def test_thresholds_and_ranks_are_those_of_the_definition_to_the_bit(road, threads, rule, value):
    case, lengths, reference, how = road
    nodes, alpha = np.arange(case.num_nodes), float(case.alpha)
    local = PathLengths(**how).fit(reference)
    cuts = [Cut(1.0 - alpha, rule), Cut(0.0, rule)]
    thresholds = local.thresholds(nodes, cuts, threads=threads)
    ranks = local.ranks(nodes, np.full(nodes.size, value), threads=threads)
    for node in nodes.tolist():
        distances = path_distances(case.edges, lengths, case.num_nodes, node, case.directed)
        others = others_of(case, local, distances, node)
        pools = {"pool": how["pool"], "alike": how["alike"]}
        for row, cut in enumerate(cuts):
            assert thresholds.values[row, node] == summed_threshold(others, cut.level, RULES[rule], **pools)
        masses, total = summed_masses(others, **pools)
        below = max([0.0, *(mass for score, mass in masses if score < value)])
        assert same_bits(ranks[node], below / (1.0 + total))
        # And the specification says the same.
        scores, weights, same = (np.array(part) for part in zip(*others, strict=True)) if others else [np.empty(0)] * 3
        if rule == "nominal":
            assert thresholds.values[0, node] == summed_quantile(
                scores, weights, alpha, same=same.astype(bool), **pools
            )
        assert same_bits(ranks[node], summed_rank(scores, weights, value, same=same.astype(bool), **pools))


@settings(max_examples=150)
@given(road=roads())
def test_distances_are_those_of_scipy_to_the_bit(road):
    case, lengths, reference, how = road
    graph, nodes = reference.graph, np.arange(case.num_nodes)
    expected = dijkstra(graph.to_scipy(lengths=True))
    assert same_bits(expected, [path_distances(case.edges, lengths, nodes.size, v, case.directed) for v in nodes])
    met = near_distances(reference.index, graph.lengths, nodes, how["radius"])
    for node, (numbers, distances) in zip(nodes.tolist(), met, strict=True):
        ids = reference.index.nodes[numbers]
        assert (np.diff(numbers) > 0).all()
        assert same_bits(distances, expected[node, ids])
        inside = [v for v in case.calibration if v != node and expected[node, v] <= how["radius"]]
        assert sorted(ids.tolist()) == sorted(inside)


@settings(max_examples=50)
@given(road=roads(), seed=st.integers(0, 100))
def test_the_numbering_of_nodes_and_the_order_of_edges_change_no_bit(road, seed):
    case, lengths, reference, how = road
    rng = np.random.default_rng(seed)
    order, edges = rng.permutation(case.num_nodes), rng.permutation(len(case.edges))
    pairs = order[np.array(case.edges, dtype=np.int64).reshape(-1, 2)[edges]]
    graph = ns.Graph.from_edge_index(
        pairs.T, case.num_nodes, directed=case.directed, lengths=np.array(lengths, dtype=float)[edges]
    )
    shuffled = rng.permutation(len(case.calibration))
    back = np.argsort(order)
    other = Reference(
        order[reference.nodes][shuffled],
        reference.scores[shuffled],
        case.num_nodes,
        graph,
        reference.probabilities[back],
    )
    cuts, nodes = [Cut(0.8), Cut(0.5, "above")], np.arange(case.num_nodes)
    first = PathLengths(**how).fit(reference).thresholds(nodes, cuts)
    second = PathLengths(**how).fit(other).thresholds(order, cuts)
    assert same_bits(first.values, second.values)
    assert np.array_equal(first.support, second.support)


@settings(max_examples=50)
@given(road=roads(), power=st.integers(-20, 20))
def test_the_unit_of_the_lengths_does_not_matter(road, power):
    case, _, reference, how = road
    scale = 2.0**power
    graph = reference.graph
    scaled = ns.Graph(graph.indptr, graph.indices, directed=graph.directed, lengths=graph.lengths * scale)
    other = Reference(reference.nodes, reference.scores, case.num_nodes, scaled, reference.probabilities)
    nodes, cuts = np.arange(case.num_nodes), [Cut(0.8)]
    first = PathLengths(**how).fit(reference).thresholds(nodes, cuts)
    second = PathLengths(**how | {"radius": how["radius"] * scale}).fit(other).thresholds(nodes, cuts)
    assert same_bits(first.values, second.values)
    assert same_bits(first.effective_size, second.effective_size)


@settings(max_examples=50)
@given(case=cases(), pool=st.sampled_from([0.0, 3.0]))
def test_edges_of_length_1_make_hops(case, pool):
    pairs = np.array(case.edges, dtype=np.int64).reshape(-1, 2)
    graph = ns.Graph.from_edge_index(pairs.T, case.num_nodes, directed=case.directed, lengths=np.ones(len(case.edges)))
    reference = Reference(np.array(case.calibration), np.array(case.scores), case.num_nodes, graph)
    hops, nodes, cuts = len(case.weights), np.arange(case.num_nodes), [Cut(1.0 - float(case.alpha))]
    by_hops = Hops(hops, pool=pool).fit(reference).thresholds(nodes, cuts)
    by_length = PathLengths(hops, pool=pool).fit(reference).thresholds(nodes, cuts)
    assert np.array_equal(by_hops.values, by_length.values)
    assert np.array_equal(by_hops.support, by_length.support)
    assert np.allclose(by_hops.effective_size, by_length.effective_size)


RNG = np.random.default_rng(5)
SIZE = 400
EDGES = RNG.integers(SIZE, size=(2, 1200))
CITY = ns.Graph.from_edge_index(EDGES, SIZE, directed=True, lengths=RNG.exponential(size=1200) + 1e-3)
KNOWN = Reference(np.arange(0, SIZE, 2), RNG.random(SIZE // 2).round(2), SIZE, CITY, RNG.dirichlet(np.ones(3), SIZE))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_threads_little_room_and_sharing_change_no_bit(threads, direction, monkeypatch):
    settings_ = [
        PathLengths(1.5, "gaussian", 3.0, 2.0, direction),
        PathLengths(0.7, lambda d: d / 7, 0.0, 0.0, direction),
    ]
    locals_ = [setting.fit(KNOWN) for setting in settings_]
    nodes = np.concatenate([RNG.permutation(SIZE), [3, 3, 0]])
    cuts = [[Cut(0.9), Cut(0.4, "above")], [Cut(0.7)]]
    alone = [local.thresholds(nodes, cut, threads=1) for local, cut in zip(locals_, cuts, strict=True)]
    monkeypatch.setattr(near_kernels, "_SOURCES", 7)
    monkeypatch.setattr(near_kernels, "_MET", 1)  # room for what calibrates, and no more
    together = share_search(locals_, nodes, cuts, threads=threads)
    for one, other in zip(alone, together, strict=True):
        assert same_bits(one.values, other.values)
        assert np.array_equal(one.support, other.support)
        assert same_bits(one.effective_size, other.effective_size)
    scores = np.linspace(0, 1, nodes.size)
    assert same_bits(locals_[0].ranks(nodes, scores, threads=threads), locals_[0].ranks(nodes, scores, threads=1))


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_directions_and_all_sizes_against_scipy(direction):
    local = PathLengths(2.0, "linear", direction=direction).fit(KNOWN)
    nodes = np.arange(SIZE)
    thresholds = local.thresholds(nodes, [Cut(0.9)])
    distances = dijkstra(CITY.along(direction).to_scipy(lengths=True))
    for node in nodes:
        mine = KNOWN.nodes[(KNOWN.nodes != node) & (distances[node, KNOWN.nodes] <= 2.0)]
        weights = 1.0 - distances[node, mine] / 2.0
        assert thresholds.support[node] == (weights > 0).sum()
        assert math.isclose(
            thresholds.effective_size[node], weights.sum() ** 2 / (weights**2).sum() if mine.size else 0.0
        )


def test_pools_are_counted_in_what_a_threshold_rests_on():
    nodes = np.array([0, 1, 2])
    pooled = PathLengths(1.0, pool=10.0).fit(KNOWN).thresholds(nodes, [Cut(0.9)])
    assert pooled.support.tolist() == [199, 200, 199]
    plain = PathLengths(1.0).fit(KNOWN).thresholds(nodes, [Cut(0.9)])
    for node, near, size in zip(nodes, plain.support, pooled.effective_size, strict=True):
        others = 200 - (node % 2 == 0)
        weights = np.full(others, 10.0 / others) + np.append(np.ones(near), np.zeros(others - near))
        assert math.isclose(size, weights.sum() ** 2 / (weights**2).sum())
    alike = PathLengths(1.0, alike=10.0).fit(KNOWN).thresholds(nodes, [Cut(0.9)])
    mine = KNOWN.predicted
    same = [(mine[KNOWN.nodes] == mine[v]).sum() - (v % 2 == 0) for v in nodes]
    assert alike.support.tolist() == np.maximum(plain.support, same).tolist()


def test_tiny_weights_have_an_effective_size_all_the_same():
    local = PathLengths(1.0, lambda d: np.full(d.size, 1e-200)).fit(KNOWN)
    thresholds = local.thresholds(np.arange(SIZE), [Cut(0.9)])
    assert same_bits(thresholds.effective_size, thresholds.support.astype(float))


def test_named_decays_fall_from_the_weight_of_the_node_itself():
    x = np.linspace(0, 1, 101)
    for decay in LENGTH_DECAYS.values():
        weights = decay(x)
        assert weights[0] == 1.0
        assert (np.diff(weights) <= 0).all()
        assert (weights >= 0).all()
    local = PathLengths(4.0, "hyperbolic").fit(KNOWN)
    assert local.weights(np.array([1e-9, 2.0, 4.0, 4.000001, np.inf])).round(6).tolist() == [
        1.0,
        0.666667,
        0.5,
        0.0,
        0.0,
    ]


def test_a_function_of_the_distance_is_a_decay():
    seen = []

    def decay(distances):
        seen.append(distances.max(initial=0.0))
        return np.exp(-distances)

    local = PathLengths(1.5, decay).fit(KNOWN)
    assert same_bits(local.weights(np.array([0.5, 1.5, 1.6])), [math.exp(-0.5), math.exp(-1.5), 0.0])
    local.thresholds(np.arange(SIZE), [Cut(0.9)])
    assert max(seen) <= 1.5


@pytest.mark.parametrize(
    ("decay", "message"),
    [
        (lambda d: -d, "`decay` must give finite weights from 0 to 1e.100; at the distance .* it gives -"),
        (lambda d: d * np.nan, "it gives nan"),
        (lambda d: np.ones(3), "`decay` must return a number for each of .* distances"),
        (lambda d: "far", "`decay` must return a number for each of .* distances; got 'far'"),
    ],
)
def test_a_function_that_gives_no_weights_is_refused(decay, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        PathLengths(1.0, decay).fit(KNOWN).thresholds(np.arange(SIZE), [Cut(0.9)])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"radius": 0}, "`radius` must be more than 0"),
        ({"radius": -1.0}, "`radius` must be"),
        ({"radius": math.nan}, "`radius` must be"),
        ({"radius": math.inf}, "`radius` must be"),
        ({"decay": "slow"}, "`decay` must be one of uniform, hyperbolic, geometric, linear, gaussian; got 'slow'"),
        ({"decay": [1.0, 0.5]}, "`decay` must be one of uniform"),
        ({"pool": -1}, "`pool` must be"),
        ({"direction": "down"}, "`direction` must be one of out, in, both"),
    ],
)
def test_settings_that_cannot_be_are_refused(how, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        PathLengths(**how)


def test_edges_without_lengths_are_1_long():
    plain = Reference(KNOWN.nodes, KNOWN.scores, SIZE, ns.Graph.from_edge_index(EDGES, SIZE))
    nodes, cuts = np.arange(SIZE), [Cut(0.9)]
    by_length, by_hops = (each.fit(plain).thresholds(nodes, cuts) for each in (PathLengths(2.0), Hops(2)))
    assert same_bits(by_length.values, by_hops.values)


def test_a_graph_is_needed():
    with pytest.raises(ns.InvalidInputError, match="`graph` must be given"):
        PathLengths(1.0).fit(Reference(KNOWN.nodes, KNOWN.scores, SIZE))


def test_a_radius_that_nobody_chose_holds_as_many_labels_for_half_of_the_labelled():
    distances = dijkstra(CITY.to_scipy(lengths=True))
    radii = near_radii(KNOWN, [5, 20])
    for count, radius in zip((5, 20), radii, strict=True):
        nearest = []
        for node in KNOWN.nodes:
            others = np.sort(distances[node, KNOWN.nodes[KNOWN.nodes != node]])
            others = others[np.isfinite(others)]
            if others.size:
                nearest.append(others[min(count, others.size) - 1])
        assert radius == np.sort(nearest)[len(nearest) // 2]
    assert PathLengths().fit(KNOWN).radius == near_radii(KNOWN, [50])[0]
    lonely = Reference(np.array([0]), np.array([0.5]), SIZE, CITY)
    assert near_radii(lonely, [5]) == [1.0]


@pytest.mark.world(lengths=True)
@pytest.mark.parametrize("exact", [False, True])
def test_a_method_by_path_length_predicts_is_saved_and_explained(world, tmp_path, exact):
    localiser = PathLengths(1.5, "gaussian", pool=5.0, alike=3.0)
    method = ns.Method("aps", localiser, ns.Exact() if exact else ns.Nominal())
    calibrated = method.calibrate(world.graph, world.probabilities, world.labels, world.calibration)
    sets = calibrated.predict(world.rest, alpha=0.2)
    save(calibrated, tmp_path / "made.npz")
    again = load(tmp_path / "made.npz")
    assert again.method == method
    assert again.graph == world.graph
    assert np.array_equal(again.predict(world.rest, alpha=0.2).member, sets.member)
    seen = inspect_node(calibrated, int(world.rest[4]), alpha=0.2)
    assert seen.threshold == sets.thresholds[4]
    assert seen.neighbour_distances.max() <= 1.5
    assert np.allclose(seen.neighbour_weights, np.exp(-4.5 * (seen.neighbour_distances / 1.5) ** 2), rtol=1e-14)
    assert seen.reached_mass >= seen.needed_mass * (1 - 1e-9)
    assert (np.diff(seen.neighbour_scores) >= 0).all()


@pytest.mark.world(lengths=True)
def test_a_function_cannot_be_saved(world, tmp_path):
    method = ns.Method("aps", PathLengths(1.5, np.ones_like))
    calibrated = method.calibrate(world.graph, world.probabilities, world.labels, world.calibration)
    with pytest.raises(ns.InvalidInputError, match=r"`decay` must be one of uniform, .* to be saved"):
        save(calibrated, tmp_path / "made.npz")


def test_the_table_has_it():
    method = make_method("naps-lengths", radius=2, decay="linear", direction="in")
    assert method.localiser == PathLengths(2.0, "linear", direction="in")
