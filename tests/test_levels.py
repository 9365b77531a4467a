"""An exact level: the sets are those of the definition, and coverage follows its law on any graph."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse.csgraph import shortest_path

import napsets as ns
from napsets.kernels.layout import ABOVE, AT_LEAST, NOMINAL
from napsets.kernels.selection import needed_mass
from napsets.levels import Exact, Nominal, fewest_ranks, rank_place
from napsets.localisers import Cut, Everyone, Hops, Reference
from napsets.methods import CalibrationData, Method
from worlds import guess, places_of_hits

LOCALISERS = {
    "everyone": Everyone(),
    "hops": Hops(2),
    "decaying": Hops(2, "geometric"),
    "pooled": Hops(2, pool=10.0),
    "alike": Hops(1, pool=5.0, alike=15.0),
    "all": Hops(0, pool=20.0),
}


class Uneven:
    """A graph whose one half is hard to predict and dense, the other easy and thin, and a fifth of it isolated."""

    def __init__(self, nodes=400, classes=3, seed=0, ties=False):
        rng = np.random.default_rng(seed)
        hard = np.arange(nodes) < nodes // 2
        joined = rng.integers(nodes - nodes // 5, size=(2, 3 * nodes))
        joined = joined[:, (hard[joined[0]] == hard[joined[1]]) | (rng.random(3 * nodes) < 0.1)]
        self.graph = ns.Graph.from_edge_index(joined, num_nodes=nodes)
        self.labels = rng.integers(classes, size=nodes)
        p = guess(self.labels, np.where(hard, 0.5, 3.0), rng)
        self.probabilities = np.round(p * 4 + 1) / np.round(p * 4 + 1).sum(axis=1, keepdims=True) if ties else p
        self.nodes = nodes


def reference_mass(localiser, world, distance, reference, predicted, v):
    """The weight of each reference node for v, from the definition."""
    others = reference[reference != v]
    if isinstance(localiser, Everyone):
        return others, np.ones(others.size)
    weights = np.append(ns.hop_weights(localiser.decay, localiser.hops), 0.0)
    hops = np.where(np.isfinite(distance[v, others]), distance[v, others], 0).astype(int)
    near = np.where((hops >= 1) & (hops <= localiser.hops), weights[np.clip(hops - 1, 0, localiser.hops)], 0.0)
    same = predicted[others] == predicted[v]
    mass = near + localiser.pool / max(others.size, 1)
    if localiser.alike and same.any():
        mass = mass + np.where(same, localiser.alike / same.sum(), 0.0)
    return others, mass


@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("name", LOCALISERS)
def test_the_sets_are_those_of_the_definition(name, ties):
    world, localiser = Uneven(nodes=120, seed=3, ties=ties), LOCALISERS[name]
    score = ns.APS(randomized=False) if ties else ns.APS()
    method = Method(score, localiser, Exact(share=0.5), seed=5)
    calibration = np.random.default_rng(1).permutation(world.nodes)[:60]
    data = CalibrationData.check(world.graph, world.probabilities, world.labels, calibration)
    calibrated = method.calibrate_data(data)
    reference, apart = calibrated.scored.reference.nodes, calibrated.scored.level_nodes
    assert (reference.size, apart.size) == (30, 30)
    distance = shortest_path(world.graph.to_scipy(), unweighted=True)
    S = score.matrix(world.probabilities, ns.node_uniforms(np.arange(world.nodes), 5))
    predicted = world.probabilities.argmax(axis=1)

    def rank(v, value):
        others, mass = reference_mass(localiser, world, distance, reference, predicted, v)
        below = mass[S[others, world.labels[others]] < value].sum()
        return round(below / (1.0 + mass.sum()), 9), value  # sums in another order differ in the last digits

    ranks = sorted(rank(v, S[v, world.labels[v]]) for v in apart)
    nodes = np.setdiff1d(np.arange(world.nodes), calibration)
    for alpha in (0.1, 0.25, 0.6):
        prediction = calibrated.predict(nodes, alpha)
        limit = ranks[math.ceil(31 * (1 - alpha) - 1e-9) - 1]
        expected = [[rank(v, S[v, y]) <= limit for y in range(S.shape[1])] for v in nodes]
        assert np.array_equal(prediction.member, np.array(expected)), alpha
        assert prediction.level == pytest.approx(limit[0], abs=1e-8)
        assert np.array_equal(prediction.member, S[nodes] <= prediction.thresholds[:, None])


SCORES = {"aps": ns.APS(), "informed": ns.Informed(), "diffused": ns.Diffused(ns.APS(), 0.5), "thr": ns.THR()}


@pytest.mark.parametrize(
    ("score", "localiser"),
    [("aps", "hops"), ("aps", "pooled"), ("aps", "alike"), ("aps", "everyone"), ("diffused", "pooled"),
     ("informed", "everyone"), pytest.param("informed", "pooled", marks=pytest.mark.slow), ("informed", "alike"),
     ("thr", "decaying")],
)  # fmt: skip
def test_coverage_follows_the_beta_binomial_law_on_an_uneven_graph(score, localiser):
    """With nodes labelled at random, the number of covered nodes is beta-binomial, whatever the weights and scores."""
    world, method = Uneven(), Method(SCORES[score], LOCALISERS[localiser], Exact(share=0.5))
    inputs = world.graph, world.probabilities, world.labels
    places = places_of_hits([method] * 300, inputs, 60, seed=8)
    assert stats.kstest(places, "uniform").pvalue > 1e-4


def test_nominal_local_thresholds_have_no_such_guarantee():
    """Where a neighbourhood misleads, the nominal level undercovers: here the labels around hard nodes are easy."""
    rng = np.random.default_rng(0)
    n = 600
    hard = np.arange(n) % 2 == 0
    easy = np.flatnonzero(~hard)
    ends = [np.repeat(np.flatnonzero(hard), 30), rng.choice(easy, 30 * hard.sum())]
    graph = ns.Graph.from_edge_index(ends, num_nodes=n)
    labels = np.where(hard, rng.integers(2, size=n), 0)
    p = np.tile([0.95, 0.05], (n, 1))
    calibration = rng.permutation(n)[:300]
    nodes = np.setdiff1d(np.flatnonzero(hard), calibration)
    score = ns.APS(randomized=False)
    nominal = Method(score, Hops(1), Nominal()).calibrate(graph, p, labels, calibration).predict(nodes)
    # Half of the hard nodes have the label that no easy neighbour has: coverage is near one half.
    assert stats.binomtest(int(nominal.contains(labels).sum()), nodes.size, 0.9).pvalue < 1e-9
    everyone = np.setdiff1d(np.arange(n), calibration)
    exact = Method(score, Hops(1), Exact()).calibrate(graph, p, labels, calibration).predict(everyone)
    assert exact.contains(labels).mean() > 0.85


@pytest.mark.parametrize("labelled", [4, 16, 17, 18, 40])
def test_few_labels_give_full_sets_and_say_so_until_the_level_is_finite(labelled):
    world = Uneven(seed=2)
    calibration = np.arange(labelled) * 7
    method = Method("aps", Hops(2, pool=10), Exact())
    calibrated = method.calibrate(world.graph, world.probabilities, world.labels, calibration)
    apart = calibrated.scored.level_nodes.size
    assert apart == labelled - round(labelled / 2)
    nodes = np.setdiff1d(np.arange(world.nodes), calibration)
    sets = calibrated.predict(nodes, alpha=0.1)
    assert (sets.level == math.inf) == (apart < 9)
    assert (sets.infinite == len(sets)) == (apart < 9)
    if apart < 9:
        assert (sets.sizes == 3).all()


def test_one_label_cannot_be_split():
    world = Uneven(nodes=50)
    with pytest.raises(ns.InvalidInputError, match="at least two nodes for an exact level; it holds 1"):
        Method(level=Exact()).calibrate(None, world.probabilities, world.labels, [3])


def test_the_reference_part_depends_on_seed_and_ids_alone():
    world = Uneven()
    calibration = np.arange(0, 400, 3)
    ids = np.array([f"user-{i}" for i in range(400)])
    turn = np.random.default_rng(0).permutation(400)
    back = np.argsort(turn)
    method = Method("aps", Hops(2, pool=10), Exact(), seed=4)
    one = method.calibrate_rows(world.graph, world.probabilities, world.labels, calibration, ids)
    edges = world.graph.to_scipy().tocoo()
    graph = ns.Graph.from_edge_index([back[edges.row], back[edges.col]], num_nodes=400)
    other = method.calibrate_rows(graph, world.probabilities[turn], world.labels[turn], back[calibration], ids[turn])
    assert set(ids[one.scored.reference.nodes]) == set(ids[turn][other.scored.reference.nodes])
    nodes = np.setdiff1d(np.arange(400), calibration)
    assert np.array_equal(one.predict(nodes).thresholds, other.predict(back[nodes]).thresholds)


@pytest.mark.parametrize("rule", [NOMINAL, AT_LEAST, ABOVE])
def test_a_level_that_no_mass_reaches_ends_the_search_for_one(rule):
    for level, total in [(math.inf, 3.0), (math.nan, 3.0), (0.5, math.inf), (0.5, math.nan)]:
        assert needed_mass(level, rule, total, 1e-9) == math.inf


@pytest.mark.parametrize("rule", ["nominal", "at least", "above"])
@pytest.mark.parametrize("level", [1.5, math.inf, math.nan])
def test_one_threshold_for_all_at_such_a_level_is_infinite(rule, level):
    local = Everyone().fit(Reference(np.arange(5), np.arange(5.0), 8))
    assert np.isposinf(local.thresholds(np.arange(8), [Cut(level, rule)]).values).all()


def test_the_fewest_ranks_are_the_first_among_which_a_place_lies():
    for alpha in [*np.linspace(0.001, 0.999, 999), 1e-4, 1e-5]:
        held_out = fewest_ranks(float(alpha))
        assert rank_place(held_out, alpha) <= held_out
        assert held_out == 0 or rank_place(held_out - 1, alpha) > held_out - 1
