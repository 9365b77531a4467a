"""Localisers whose nodes weigh one by one, against definitions written out: balls, PageRank, inverse degrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napsets as ns
from napsets.localisers import Balls, Cut, InverseDegree, PageRank, Reference
from napsets.localisers.weighed import BallsLocal
from oracles import (
    adjacency_sets,
    anchored_weights,
    ball,
    pagerank,
    same_bits,
    scipy_distances,
    weighed_threshold,
)
from strategies import edge_lists, generators

CUTS = [
    Cut(0.9),
    Cut(0.5),
    Cut(0.31, "at least"),
    Cut(0.31, "above"),
    Cut(0.0, "at least"),
    Cut(0.0, "above"),
    Cut(2.0),
]


@st.composite
def questions(draw, directed=False):
    """A graph, reference nodes with scores among which there are ties, and a uniform number for every node."""
    size, rng = draw(st.integers(2, 24)), draw(generators)
    edges, one_way = draw(edge_lists(size)), directed and draw(st.booleans())
    nodes = rng.permutation(size)[: draw(st.integers(1, size))]
    scores = rng.choice([0.1, 0.2, 0.5, 0.7, 0.9], nodes.size)
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = ns.Graph.from_edge_index(pairs, size, directed=one_way)
    u = ns.node_uniforms(np.arange(size), draw(st.integers(0, 1000)))
    return edges, one_way, Reference(nodes, scores, size, graph, None, u)


def holds(local, reference, weights_of):
    """Compare thresholds, ranks, support and effective size of every node with weights that were written out."""
    everyone = np.arange(reference.num_nodes)
    thresholds = local.thresholds(everyone, CUTS)
    values = np.linspace(-0.1, 1.0, reference.num_nodes).round(1)
    ranks = local.ranks(everyone, values)
    for v in everyone:
        weights, own = weights_of(int(v))
        weights = np.array(weights) / own
        for c, cut in enumerate(CUTS):
            # Masses that reach a level but for rounding may fall on either side of it.
            near = {
                weighed_threshold(reference.scores, weights, 1.0, cut.level * (1 + shift) + shift * 1e-3, cut.rule)
                for shift in (-1e-9, 0.0, 1e-9)
            }
            assert thresholds.values[c, v] in near, (v, cut)
        total = weights.sum()
        assert ranks[v] == pytest.approx(weights[reference.scores < values[v]].sum() / (1 + total), abs=1e-9)
        assert thresholds.support[v] == (weights > 0).sum()
        expected = total**2 / (weights**2).sum() if total else 0.0
        assert thresholds.effective_size[v] == pytest.approx(expected, rel=1e-9)
        listed = local.weights(int(v))
        assert dict(zip(listed.nodes.tolist(), listed.weights.tolist(), strict=True)) == pytest.approx(
            {int(i): w for i, w in zip(reference.nodes, weights, strict=True) if w > 0}, rel=1e-9
        )
        assert (np.diff(listed.scores) >= 0).all()


@settings(max_examples=150, deadline=None)
@given(questions(), st.integers(1, 26))
def test_balls_weigh_as_the_definition_says_around_the_anchor_that_was_drawn(question, min_size):
    edges, _, reference = question
    distance = scipy_distances(edges, reference.num_nodes)
    local = Balls(min_size).fit(reference)
    anchors, sizes = local.draw(np.arange(reference.num_nodes), 1)
    for v, anchor in enumerate(anchors.tolist()):
        assert anchor in ball(distance, v, min_size)
        assert sizes[v] == len(ball(distance, v, min_size))
    holds(
        local, reference, lambda v: anchored_weights(distance, reference.nodes.tolist(), v, int(anchors[v]), min_size)
    )


@settings(max_examples=100, deadline=None)
@given(questions(directed=True), st.sampled_from([0.05, 0.15, 0.5, 1.0]), st.sampled_from([0.0, 5.0]))
def test_pagerank_weighs_by_where_walks_end_without_those_that_end_at_the_start(question, restart, pool):
    edges, directed, reference = question
    neighbours = adjacency_sets(edges, reference.num_nodes, directed)
    local = PageRank(restart, worth=20.0, pool=pool, tolerance=1e-12).fit(reference)
    worth, nodes = 20.0, reference.nodes

    def weights_of(v):
        mass = pagerank(neighbours, v, restart)[nodes]
        mass[(nodes == v) | (mass < 1e-13)] = 0.0
        near = worth * mass / mass.sum() if mass.sum() else mass
        return np.where(nodes == v, 0.0, near + pool / nodes.size), 1.0

    holds(local, reference, weights_of)


@settings(max_examples=100, deadline=None)
@given(questions())
def test_inverse_degrees_weigh_reference_nodes_and_the_node_itself(question):
    edges, _, reference = question
    degree = [max(len(row), 1) for row in adjacency_sets(edges, reference.num_nodes)]
    holds(
        InverseDegree().fit(reference),
        reference,
        lambda v: ([1 / degree[i] if i != v else 0.0 for i in reference.nodes], 1 / degree[v]),
    )


def lattice(side=40):
    ids = np.arange(side * side).reshape(side, side)
    ends = [np.concatenate([a.ravel() for a in pair]) for pair in ((ids[:, 1:], ids[1:]), (ids[:, :-1], ids[:-1]))]
    return ns.Graph.from_edge_index(np.stack(ends), side * side)


def blocks(nodes=3000):
    from napsets.datasets.synthetic import dcsbm_graph

    return dcsbm_graph(nodes, 8, 5, exponent=2.3, seed=1)[0]


LOCALISERS = {"balls": Balls(60), "pagerank": PageRank(pool=5.0, tolerance=1e-3), "degree": InverseDegree()}


@pytest.mark.parametrize("graph", [lattice(), blocks()], ids=["lattice", "blocks"])
@pytest.mark.parametrize("name", LOCALISERS)
def test_neither_threads_nor_company_change_a_bit(name, graph):
    rng = np.random.default_rng(3)
    nodes = np.sort(rng.permutation(graph.num_nodes)[:700])
    reference = Reference(nodes, rng.random(700), graph.num_nodes, graph)
    chosen = np.arange(graph.num_nodes)
    one = LOCALISERS[name].fit(reference).thresholds(chosen, CUTS, threads=1)
    several = LOCALISERS[name].fit(reference).thresholds(chosen, CUTS, threads=5)
    few = LOCALISERS[name].fit(reference).thresholds(chosen[17::50], CUTS)
    twice = LOCALISERS[name].fit(reference).thresholds(np.repeat(chosen[17::50], 2), CUTS)
    for part in ("values", "support", "effective_size"):
        assert same_bits(getattr(one, part), getattr(several, part))
        assert same_bits(getattr(one, part)[..., 17::50], getattr(few, part))
        assert same_bits(np.repeat(getattr(few, part), 2, axis=-1), getattr(twice, part))


@pytest.mark.parametrize("name", LOCALISERS)
def test_thresholds_are_the_inverse_of_ranks(name):
    graph, rng = blocks(), np.random.default_rng(4)
    nodes = np.sort(rng.permutation(graph.num_nodes)[:500])
    local = LOCALISERS[name].fit(Reference(nodes, rng.random(500), graph.num_nodes, graph))
    chosen, values = np.arange(graph.num_nodes), rng.random(graph.num_nodes)
    ranks = local.ranks(chosen, values)
    for v in chosen[::37]:
        reached, passed = local.thresholds(np.array([v]), [Cut(ranks[v], "at least"), Cut(ranks[v], "above")]).values
        assert reached[0] < values[v] <= passed[0]


def test_the_radius_falls_by_no_more_than_one_from_a_node_to_its_neighbour():
    # What lets a search from an anchor stop at nodes whose ball does not hold it.
    for graph in (lattice(), blocks()):
        radii = Balls(60).fit(Reference(np.array([0]), np.zeros(1), graph.num_nodes, graph)).radii
        source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        assert np.abs(radii[source] - radii[graph.indices]).max() <= 1
        assert radii.max() > radii.min()


def test_an_anchor_is_drawn_from_its_ball_each_node_alike():
    from scipy.stats import chisquare

    graph = lattice(9)
    reference = [
        Reference(np.array([0]), np.zeros(1), 81, graph, None, ns.node_uniforms(np.arange(81), s)) for s in range(600)
    ]
    drawn = np.array([BallsLocal(Balls(12), one).draw(np.array([40, 0]), 1) for one in reference])
    for i, size in ((0, 13), (1, 15)):  # in the middle two rings, in the corner four of them
        assert (drawn[:, 1, i] == size).all()
        nodes, counts = np.unique(drawn[:, 0, i], return_counts=True)
        assert nodes.size == size
        assert chisquare(counts).pvalue > 1e-3


def test_the_numbering_of_nodes_does_not_change_what_is_drawn():
    graph, rng = blocks(600), np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 600), rng.integers(3, size=600)
    ids, turn = np.array([f"n{i}" for i in range(600)]), rng.permutation(600)
    back = np.argsort(turn)
    edges = graph.to_scipy().tocoo()
    turned = ns.Graph.from_edge_index([back[edges.row], back[edges.col]], 600)
    calibration = np.arange(0, 600, 2)
    one = ns.RandomisedNAPS(40, seed=3).calibrate(graph, p, y, calibration, ids=ids).predict(np.arange(1, 600, 2))
    other = ns.RandomisedNAPS(40, seed=3).calibrate(turned, p[turn], y[turn], back[calibration], ids=ids[turn])
    theirs = other.predict(back[np.arange(1, 600, 2)])
    assert np.array_equal(one.support, theirs.support)
    np.testing.assert_array_equal(one.thresholds, theirs.thresholds)


def test_balls_of_everyone_are_split_conformal_prediction():
    graph, rng = blocks(400), np.random.default_rng(1)
    p, y = rng.dirichlet(np.ones(3), 400), rng.integers(3, size=400)
    calibration, nodes = np.arange(0, 400, 2), np.arange(1, 400, 2)
    wide = ns.RandomisedNAPS(min_size=401).calibrate(graph, p, y, calibration).predict(nodes)
    split = ns.SplitConformal().calibrate(p, y, calibration).predict(nodes)
    assert same_bits(wide.thresholds, split.thresholds)
    assert np.array_equal(wide.support, split.support)


def test_a_ball_of_one_holds_nobody_else():
    graph = lattice(5)
    local = Balls(1).fit(Reference(np.arange(10), np.arange(10.0), 25, graph))
    thresholds = local.thresholds(np.arange(25), [Cut(0.9)])
    assert np.isposinf(thresholds.values).all()
    assert (thresholds.support == 0).all()


@pytest.mark.parametrize("edges", [[[0, 1, 2], [1, 2, 0]], [[0, 0, 0], [1, 2, 3]]])
def test_push_is_short_of_pagerank_by_no_more_than_it_says(edges):
    graph = ns.Graph.from_edge_index(edges, 5)
    neighbours = adjacency_sets(list(zip(*edges, strict=True)), 5)
    for tolerance in (0.2, 0.01, 1e-4):
        local = PageRank(0.15, tolerance=tolerance).fit(Reference(np.arange(5), np.arange(5.0), 5, graph))
        for v in range(5):
            room = local._room()
            from napsets.kernels.weighed import push

            push(v, *local._walk(), *room)
            short = pagerank(neighbours, v, 0.15) - room[0]
            assert (short >= -1e-12).all()
            assert (short <= tolerance * np.maximum(graph.degrees, 0) + 1e-12).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Balls(0), "`min_size` must be at least 1; got 0"),
        (lambda: Balls(furthest=1000), "`furthest` must be at most 100; got 1000"),
        (lambda: PageRank(restart=0), "`restart` must be at least 0.001; got 0"),
        (lambda: PageRank(restart=2), "`restart` must be finite, at least 0 and at most 1; got 2"),
        (lambda: PageRank(tolerance=0), "`tolerance` must be at least 1e-12; got 0"),
        (lambda: PageRank(worth=-1), "`worth` must be finite, at least 0"),
        (lambda: ns.RandomisedNAPS(min_size=2.5), "`min_size` must be an integer; got 2.5"),
        (lambda: ns.Method("aps", Balls()).calibrate(None, [[1.0]], [0], [0]), "`graph` must be given"),
        (lambda: ns.Method("aps", PageRank()).calibrate(None, [[1.0]], [0], [0]), "`graph` must be given"),
        (lambda: ns.Method("aps", InverseDegree()).calibrate(None, [[1.0]], [0], [0]), "`graph` must be given"),
        (
            lambda: ns.RandomisedNAPS().calibrate(
                ns.Graph.from_edge_index([[0], [1]], 2, directed=True), np.full((2, 2), 0.5), [0, 1], [0]
            ),
            "`graph` must be undirected for balls: .* got a directed one",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        make()
