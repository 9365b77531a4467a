"""RLCP against its definition written out, and its theorem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import napsets as ns
from napsets.localisers import Cut, Reference, Weights
from oracles import anchored_weights, ball, same_bits, scipy_distances, weighed_threshold
from studies.peers.rlcp import Balls, _drawn
from worlds import Mixed

#: Error rate, and level of each test of fit: a right program fails one in a thousand, were seeds not fixed.
ALPHA, LEVEL = 0.1, 1e-3

CUTS = [Cut(0.9), Cut(0.5), Cut(0.31, "at least"), Cut(0.31, "above")]


def drawn_graph(seed):
    """A random graph of a few components with reference nodes, whose scores are tied, and uniform numbers."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 25))
    edges = rng.integers(size, size=(int(rng.integers(1, 30)), 2))
    edges = [(int(a), int(b)) for a, b in edges if a != b]
    graph = ns.Graph.from_edge_index(np.array(edges, dtype=np.int64).reshape(-1, 2).T, size)
    nodes = rng.permutation(size)[: int(rng.integers(1, size + 1))]
    scores = rng.choice([0.1, 0.2, 0.5, 0.7, 0.9], nodes.size)
    return edges, Reference(nodes, scores, size, graph, None, ns.node_uniforms(np.arange(size), seed))


def anchors_of(balls, reference):
    """The anchor of every node, and the size of its ball."""
    hashes = reference.uniforms.view(np.uint64)
    ((nodes, inside),) = balls.balls(reference.graph, np.arange(reference.num_nodes))
    return _drawn(nodes, inside, hashes), np.diff(inside.indptr)


@pytest.mark.parametrize("seed", range(60))
def test_weights_are_those_of_the_definition_around_the_anchor_that_was_drawn(seed):
    edges, reference = drawn_graph(seed)
    min_size, everyone = 1 + seed % 26, np.arange(reference.num_nodes)
    distance = scipy_distances(edges, reference.num_nodes)
    balls = Balls(min_size)
    anchors, sizes = anchors_of(balls, reference)
    local = balls.fit(reference)
    thresholds, ranks = local.thresholds(everyone, CUTS), local.ranks(everyone, np.full(everyone.size, 0.5))
    for v, anchor in enumerate(anchors.tolist()):
        inside = ball(distance, v, min_size)
        assert anchor in inside
        assert sizes[v] == len(inside)
        weights, own = anchored_weights(distance, reference.nodes.tolist(), v, anchor, min_size)
        weights = np.array(weights) / own
        for c, cut in enumerate(CUTS):
            # Masses that reach a level but for rounding may fall on either side of it.
            levels = (cut.level * (1 + shift) for shift in (-1e-9, 0.0, 1e-9))
            near = {weighed_threshold(reference.scores, weights, 1.0, level, cut.rule) for level in levels}
            assert thresholds.values[c, v] in near
        below = weights[reference.scores < 0.5].sum()
        assert ranks[v] == pytest.approx(below / (1 + weights.sum()), abs=1e-12)
        assert thresholds.support[v] == (weights > 0).sum()


def test_an_anchor_is_drawn_from_its_ball_each_node_alike():
    ids = np.arange(81).reshape(9, 9)
    across, down = [ids[:, 1:].ravel(), ids[:, :-1].ravel()], [ids[1:].ravel(), ids[:-1].ravel()]
    graph = ns.Graph.from_edge_index(np.concatenate([across, down], axis=1), 81)
    draws = []
    for seed in range(600):
        u = ns.node_uniforms(np.arange(81), seed)
        draws.append(anchors_of(Balls(12), Reference(np.array([0]), np.zeros(1), 81, graph, None, u)))
    for node, size in ((40, 13), (0, 15)):  # in the middle two rings, in the corner four of them
        assert all(sizes[node] == size for _, sizes in draws)
        nodes, counts = np.unique([anchors[node] for anchors, _ in draws], return_counts=True)
        assert nodes.size == size
        assert stats.chisquare(counts).pvalue > 1e-3


def test_balls_of_everyone_are_split_conformal_prediction(answers):
    wide, split = (answers.calibrate(ns.Method("aps", near)) for near in (Balls(401), ns.Everyone()))
    one, other = wide.predict(answers.nodes), split.predict(answers.nodes)
    assert same_bits(one.thresholds, other.thresholds)
    assert np.array_equal(one.support, other.support)


def test_directed_graphs_are_refused(answers):
    with pytest.raises(ns.InvalidInputError, match=r"`graph` must be undirected for balls: .* got a directed one"):
        answers.calibrate(ns.Method("aps", Balls()), directed=True)


def test_the_random_anchor_keeps_the_promise_where_locality_misleads():
    # Given anchor and nodes, each node could have been the one to predict with probability in proportion to its weight:
    # the rank, spread over the node's own share of the mass, is uniform. That is RLCP's theorem, and the whole of it.
    covered, places = Mixed().draws(ns.Method("aps", Balls(25)), 400)
    assert stats.kstest(places, "uniform").pvalue > LEVEL
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) > LEVEL


def test_the_same_balls_without_the_random_anchor_break_it():
    world, balls = Mixed(), Balls(25)
    ((_, inside),) = balls.balls(world.graph, np.arange(world.size))
    sizes = np.diff(inside.indptr)
    holds = inside.tocsc().astype(np.float64)

    def centred(node, reference):
        return holds[reference, node].toarray().ravel() * sizes[node] / sizes[reference]

    covered, places = world.draws(ns.Method("aps", Weights(centred)), 400)
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) < LEVEL
    assert stats.kstest(places, "uniform").pvalue < LEVEL
