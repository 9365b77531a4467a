"""What methods of other papers promise, against the laws that theory gives; and their failure where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import napsets as ns
from napsets.localisers import Balls, Hops, InverseDegree, PageRank
from napsets.localisers.weighed import BallsLocal
from napsets.methods import CalibrationData, Method
from worlds import guess

#: Level of each test of fit: a right program fails one in a thousand, were seeds not fixed.
LEVEL = 1e-3
ALPHA = 0.1
CLASSES = 3


class Mixed:
    """A graph in which hard nodes have easy neighbours alone, and easy ones hard neighbours: locality misleads."""

    def __init__(self, size=400, degree=40, seed=0):
        rng = np.random.default_rng(seed)
        self.size = size
        hard = np.arange(size) % 2 == 0
        ends = [np.repeat(np.flatnonzero(hard), degree), rng.choice(np.flatnonzero(~hard), degree * hard.sum())]
        self.graph = ns.Graph.from_edge_index(ends, size)
        self.labels = rng.integers(CLASSES, size=size)
        self.probabilities = guess(self.labels, np.where(hard, 0.2, 4.0), rng, CLASSES)
        # A model that is as sure of hard nodes as of easy ones.
        self.probabilities[hard] = self.probabilities[hard] ** 3
        self.probabilities /= self.probabilities.sum(axis=1, keepdims=True)

    def draws(self, method, count, labelled=200, seed=1, kind=None):
        """Calibrate on nodes labelled at random, again and again; return whether a random node was covered.

        Beside it, its rank spread evenly over the node's own share of the mass: uniform, if the ranks are fair.
        """
        rng = np.random.default_rng(seed)
        covered, places = np.empty(count, dtype=bool), np.empty(count)
        for draw in range(count):
            order = rng.permutation(self.size)
            node, seeded = order[:1], Method(method.score, method.localiser, method.level, seed=draw)
            data = CalibrationData.check(self.graph, self.probabilities, self.labels, order[1 : labelled + 1])
            calibrated = seeded.fit(data)
            local = calibrated.local if kind is None else kind(method.localiser, calibrated.scored.reference)
            score = calibrated.score.at(node, self.labels[node])
            cuts = calibrated.level.cuts([ALPHA])
            tau = calibrated.level.thresholds(local.thresholds(node, cuts, threads=1), node, [ALPHA]).values[0]
            covered[draw] = score[0] <= tau[0]
            below, all_ = local.ranks(np.repeat(node, 2), np.array([score[0], np.inf]), threads=1)
            places[draw] = below + rng.random() * (1 - all_)
        return covered, places


class Centred(BallsLocal):
    """The same balls without the random draw: the node itself is its anchor."""

    def draw(self, nodes, threads, progress=None):
        return nodes.copy(), super().draw(nodes, threads)[1]


def test_randomised_weights_keep_their_promise_where_locality_misleads():
    # Given anchor and nodes, each node could have been the one to predict with probability in proportion to its weight:
    # the rank, spread over the node's own share of the mass, is uniform. That is RLCP's theorem, and the whole of it.
    covered, places = Mixed().draws(Method("aps", Balls(25)), 800)
    assert stats.kstest(places, "uniform").pvalue > LEVEL
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) > LEVEL


def test_the_same_balls_without_the_random_anchor_break_it():
    covered, places = Mixed().draws(Method("aps", Balls(25)), 400, kind=Centred)
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) < LEVEL
    assert stats.kstest(places, "uniform").pvalue < LEVEL


@pytest.mark.parametrize("localiser", [Hops(1), PageRank(restart=0.5, worth=40.0)], ids=["naps", "pagerank"])
def test_local_weights_at_the_nominal_level_promise_nothing_there(localiser):
    covered, _ = Mixed().draws(Method("aps", localiser), 400)
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) < LEVEL


@pytest.mark.parametrize(
    "localiser",
    [Hops(1), PageRank(restart=0.5, worth=40.0), PageRank(pool=30.0, tolerance=1e-2), InverseDegree(), Balls(25)],
    ids=str,
)
def test_an_exact_level_repairs_any_of_them(localiser):
    world, labelled, draws = Mixed(), 78, 200
    rng = np.random.default_rng(7)
    places = np.empty(draws)
    for draw in range(draws):
        order = rng.permutation(world.size)
        method = Method("aps", localiser, ns.Exact(), seed=draw)
        nodes = order[labelled:]
        calibrated = method.calibrate(world.graph, world.probabilities, world.labels, order[:labelled])
        covered = calibrated.predict(nodes, ALPHA, threads=1).contains(world.labels).sum()
        apart = labelled // 2
        place = math.ceil((apart + 1) * (1 - ALPHA) - 1e-9)
        law = stats.betabinom(nodes.size, place, apart + 1 - place)
        places[draw] = law.cdf(covered - 1) + rng.random() * law.pmf(covered)
    assert stats.kstest(places, "uniform").pvalue > LEVEL


class Growing:
    """A graph whose edges arrive one by one in random order; what has few neighbours is hard to label."""

    def __init__(self, size=3000, edges=24_000, seed=0):
        rng = np.random.default_rng(seed)
        pull = rng.pareto(2.0, size) + 0.15
        ends = rng.choice(size, size=(2, edges), p=pull / pull.sum())
        self.graph = ns.Graph.from_edge_index(ends, size)
        coo = self.graph.to_scipy().tocoo()
        upper = coo.row < coo.col
        self.edges = np.stack([coo.row[upper], coo.col[upper]])
        self.labels = rng.integers(CLASSES, size=size)
        degree = np.maximum(self.graph.degrees, 1)
        self.probabilities = guess(self.labels, 1.5 * np.log(degree), rng, CLASSES)

    def draws(self, method, count, arrived=70, seed=2):
        """Calibrate on the ends of the first edges; return whether a node drawn from the later ones was covered."""
        rng = np.random.default_rng(seed)
        covered, places = np.empty(count, dtype=bool), np.empty(count)
        present = np.flatnonzero(self.graph.degrees)
        for draw in range(count):
            first = rng.choice(self.edges.shape[1], size=arrived, replace=False)
            ends = self.edges[rng.integers(2, size=arrived), first]  # one end each: the other is no fresh draw
            known = np.unique(ends)
            node = rng.choice(np.setdiff1d(present, known), size=1)
            seeded = Method(method.score, method.localiser, seed=draw)
            calibrated = seeded.calibrate(self.graph, self.probabilities, self.labels, known)
            covered[draw] = calibrated.predict(node, ALPHA).contains(self.labels)[0]
            score = calibrated.score.at(node, self.labels[node])[0]
            below, all_ = calibrated.local.ranks(np.repeat(node, 2), np.array([score, np.inf]))
            places[draw] = below + rng.random() * (1 - all_)
        return covered, places


def test_inverse_degrees_cover_where_nodes_became_known_through_their_edges():
    covered, places = Growing().draws(Method("thr", InverseDegree()), 500)
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) > LEVEL
    assert stats.kstest(places, "uniform").pvalue > LEVEL


def test_weights_that_are_all_alike_do_not_cover_there():
    covered, places = Growing().draws(Method("thr"), 500)
    assert stats.binom.cdf(covered.sum(), covered.size, 1 - ALPHA) < LEVEL
    assert stats.kstest(places, "uniform").pvalue < LEVEL


def grown(rng, graph, half, fresh):
    """Coverage of one new node by a model that looks at neighbours, its old outputs recomputed or not.

    The model adds up noisy signals around a node: with neighbours that the old graph did not have, it is surer and no
    more often right.
    """
    size = graph.num_nodes
    labels = rng.integers(CLASSES, size=size)
    signal = 2.0 * (np.arange(CLASSES) == labels[:, None]) + rng.normal(size=(size, CLASSES))

    def model(there, nodes):
        logits = signal[nodes] + there.neighbour_sums(signal[nodes])
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    order = rng.permutation(size)
    old, node = np.sort(order[:half]), order[half : half + 1]
    p = model(graph, np.arange(size))
    if not fresh:
        p[old] = model(graph.subgraph(old), old)
    calibrated = ns.make_method("node-ex", score="thr").calibrate(graph, p, labels, old)
    return bool(calibrated.predict(node, ALPHA).contains(labels)[0])


def test_recomputed_outputs_keep_old_and_new_nodes_exchangeable_and_stale_ones_do_not():
    rng, draws, half = np.random.default_rng(5), 600, 99
    graph = ns.Graph.from_edge_index(rng.integers(400, size=(2, 1600)), 400)
    # ⌈100 · 0.9⌉ of 100: with recomputed outputs the chance is exactly that.
    covered = sum(grown(rng, graph, half, fresh=True) for _ in range(draws))
    assert stats.binomtest(covered, draws, 0.9).pvalue > LEVEL
    stale = sum(grown(rng, graph, half, fresh=False) for _ in range(draws))
    assert stats.binom.cdf(stale, draws, 0.9) < LEVEL


@pytest.mark.parametrize(
    "score",
    [ns.Similarity(neighbours=5), ns.Diffused("thr"), ns.TunedDiffused("aps", strengths=(0.0, 0.5, 0.9))],
    ids=lambda score: type(score).__name__,
)
def test_scores_that_look_around_cover_exactly_as_often_as_they_say(score):
    # They treat all nodes alike: given calibration, coverage is beta-distributed whatever the graph and the features.
    world, draws, labelled = Mixed(size=160, degree=6), 200, 40
    level = ns.Exact() if getattr(score, "learns", False) else ns.Nominal()
    if isinstance(score, ns.Similarity):
        score = ns.Similarity(score.base, np.random.default_rng(0).normal(size=(160, 3)), 5)
    rng, places = np.random.default_rng(9), np.empty(draws)
    for draw in range(draws):
        order = rng.permutation(world.size)
        nodes = order[labelled:]
        calibrated = Method(score, level=level, seed=draw).calibrate(
            world.graph, world.probabilities, world.labels, order[:labelled]
        )
        covered = calibrated.predict(nodes, ALPHA, threads=1).contains(world.labels).sum()
        apart = calibrated.scored.level_nodes.size or labelled
        place = math.ceil((apart + 1) * (1 - ALPHA) - 1e-9)
        law = stats.betabinom(nodes.size, place, apart + 1 - place)
        places[draw] = law.cdf(covered - 1) + rng.random() * law.pmf(covered)
    assert stats.kstest(places, "uniform").pvalue > LEVEL
