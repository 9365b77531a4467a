"""Weights that the user knows: thresholds as a slow loop gives them, and coverage under a known shift."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import napsets as ns
from napsets.localisers import Cut, Reference
from worlds import block_model

LEVELS = [Fraction(1, 2), Fraction(3, 4), Fraction(7, 8), Fraction(0), Fraction(1)]
RULES = ["nominal", "at least", "above"]


def slow_threshold(scores, weights, own, level, rule):
    """The definition, in exact arithmetic: weights are fractions."""
    whole = own + sum(weights)
    if whole == 0:
        return math.inf
    enough = (lambda mass: mass > level * whole) if rule == "above" else (lambda mass: mass >= level * whole)
    if enough(0):
        return -math.inf
    for score in sorted(set(scores)):
        if enough(sum(w for s, w in zip(scores, weights, strict=True) if s <= score)):
            return score
    return math.inf


def slow_rank(scores, weights, own, value):
    whole = own + sum(weights)
    return float(sum(w for s, w in zip(scores, weights, strict=True) if s < value) / whole) if whole else 0.0


def around(node, reference, weight_of):
    """Scores and weights of the others that weigh something."""
    pairs = [(s, weight_of(i)) for i, s in zip(reference.nodes.tolist(), reference.scores.tolist(), strict=True)]
    kept = [(s, Fraction(w)) for (s, w), i in zip(pairs, reference.nodes.tolist(), strict=True) if i != node and w > 0]
    return [s for s, _ in kept], [w for _, w in kept]


@st.composite
def worlds(draw):
    size = draw(st.integers(2, 9))
    nodes = np.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))
    scores = np.array(draw(st.lists(st.integers(0, 5), min_size=nodes.size, max_size=nodes.size))) / 4
    eighths = st.integers(0, 24).map(lambda k: k / 8)  # sums of these are exact
    matrix = np.array(draw(st.lists(eighths, min_size=size * size, max_size=size * size))).reshape(size, size)
    ratios = np.array(draw(st.lists(eighths, min_size=size, max_size=size)))
    labels = np.array(draw(st.lists(st.integers(0, 2), min_size=nodes.size, max_size=nodes.size)))
    probabilities = np.full((size, 3), 1 / 3)
    reference = Reference(nodes, scores, size, probabilities=probabilities, labels=labels)
    return reference, matrix, ratios, draw(st.sampled_from([0.0, 0.5, 1.0, 4.0]))


@given(worlds(), st.sampled_from(LEVELS), st.sampled_from(RULES))
def test_weights_of_ones_own_give_the_thresholds_and_ranks_of_a_slow_loop(world, level, rule):
    reference, matrix, _, own = world
    nodes = np.arange(reference.num_nodes)
    wanted = np.linspace(-0.1, 1.5, nodes.size)
    by_matrix = ns.Weights(sp.csr_array(matrix), own=own).fit(reference)
    by_function = ns.Weights(lambda node, known: matrix[node, known], own=own).fit(reference)
    for local in (by_matrix, by_function):
        thresholds = local.thresholds(nodes, [Cut(float(level), rule)])
        ranks = local.ranks(nodes, wanted)
        for node in nodes.tolist():
            scores, weights = around(node, reference, lambda i, v=node: matrix[v, i])
            assert thresholds.values[0, node] == slow_threshold(scores, weights, Fraction(own), level, rule)
            assert thresholds.support[node] == len(weights)
            assert ranks[node] == slow_rank(scores, weights, Fraction(own), wanted[node])


@given(worlds(), st.sampled_from(LEVELS), st.sampled_from(RULES))
def test_importance_weights_give_the_thresholds_of_a_slow_loop(world, level, rule):
    reference, _, ratios, _ = world
    if not ratios.any():
        ratios = ratios + 1.0
    nodes = np.arange(reference.num_nodes)
    local = ns.CovariateShift(ratios).fit(reference)
    thresholds = local.thresholds(nodes, [Cut(float(level), rule)])
    for node in nodes.tolist():
        scores, weights = around(node, reference, lambda i: ratios[i])
        expected = slow_threshold(scores, weights, Fraction(ratios[node]), level, rule)
        assert thresholds.values[0, node] == expected
        assert thresholds.support[node] == len(weights)


@given(worlds(), st.sampled_from(LEVELS))
def test_label_shift_gives_each_label_the_threshold_of_a_slow_loop(world, level):
    reference, _, _, _ = world
    ratios = (0.5, 2.0, 0.0)
    label = dict(zip(reference.nodes.tolist(), reference.labels.tolist(), strict=True))
    nodes = np.arange(reference.num_nodes)
    thresholds = ns.LabelShift(ratios).fit(reference).thresholds(nodes, [Cut(float(level))])
    for node in nodes.tolist():
        scores, weights = around(node, reference, lambda i: ratios[label[i]])
        each = [slow_threshold(scores, weights, Fraction(ratio), level, "nominal") for ratio in ratios]
        assert thresholds.by_group[0, node, thresholds.groups].tolist() == each
        assert thresholds.values[0, node] == min(each)


# -- coverage ----------------------------------------------------------------------------------------------------------

DRAWS, LABELS, ALPHA = 4000, 40, 0.2
#: So rarely would a method that holds look as if it did not.
RARE = 1e-6


def scores_of(rng, hard):
    """Scores at the truth: larger for nodes that are hard."""
    return rng.random(hard.size) + np.where(hard, 0.5, 0.0) * rng.random(hard.size)


def covers(localiser, scores, hard):
    """Whether the threshold of the last node, made from all others, lets its truth in."""
    probabilities = np.full((scores.size, 2), 0.5)
    labelled = np.arange(scores.size - 1)
    reference = Reference(labelled, scores[:-1], scores.size, probabilities=probabilities, labels=hard[:-1].astype(int))
    thresholds = localiser.fit(reference).thresholds(np.array([scores.size - 1]), [Cut(1.0 - ALPHA)])
    by_label = thresholds.by_group is not None
    threshold = thresholds.by_group[0, 0, thresholds.groups[int(hard[-1])]] if by_label else thresholds.values[0, 0]
    return bool(scores[-1] <= threshold)


def count_hits(localiser_of, share, new_share):
    """Count the draws in which a new node is covered; among labelled nodes, hard ones have another share."""
    hits = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        hard = np.append(rng.random(LABELS) < share, rng.random() < new_share)
        hits += covers(localiser_of(hard), scores_of(rng, hard), hard)
    return hits


SHIFTS = {
    "covariate shift": lambda hard: ns.CovariateShift(np.where(hard, 0.9 / 0.2, 0.1 / 0.8)),
    "label shift": lambda hard: ns.LabelShift([0.1 / 0.8, 0.9 / 0.2]),  # the hard nodes are a class
    "weights of one's own": lambda hard: ns.Weights(
        lambda node, known: np.where(hard[known], 0.9 / 0.2, 0.1 / 0.8), own=0.9 / 0.2 if hard[-1] else 0.1 / 0.8
    ),
}


@pytest.mark.parametrize("shift", SHIFTS)
def test_coverage_holds_under_a_shift_that_is_known(shift):
    assert binom.cdf(count_hits(SHIFTS[shift], 0.2, 0.9), DRAWS, 1 - ALPHA) > RARE


def test_without_importance_weights_the_same_shift_is_found():
    assert binom.cdf(count_hits(lambda hard: ns.Everyone(), 0.2, 0.9), DRAWS, 1 - ALPHA) < RARE


def test_equal_ratios_are_split_conformal_prediction():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    known = np.arange(200) < 120
    split = ns.SplitConformal().calibrate(p, y, known).predict()
    for localiser in (ns.CovariateShift(np.full(200, 0.25)), ns.LabelShift([2.0, 2.0, 2.0])):
        assert ns.Method("aps", localiser).calibrate(None, p, y, known).predict().same_as(split)


# -- in use ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def world():
    return *block_model(None, 300, degree=6, seed=1), np.arange(300) < 150


@pytest.mark.parametrize("localiser", [ns.LabelShift([1.0, 0.5, 3.0]), ns.CovariateShift(1.0 + np.arange(300) % 3)])
def test_a_shift_survives_a_file_and_is_inspected(world, localiser, tmp_path):
    calibrated = ns.Method("aps", localiser).calibrate(*world)
    sets = calibrated.predict(alpha=0.2)
    calibrated.save(tmp_path / "shift.npz")
    again = ns.load(tmp_path / "shift.npz")
    assert again.method == calibrated.method
    assert again.predict(alpha=0.2).same_as(sets)
    assert ns.inspect_node(again, 299, alpha=0.2).member.tolist() == sets.member[-1].tolist()


def test_weights_of_ones_own_are_exact_with_an_exact_level_and_inspected(world):
    graph = world[0]
    near = sp.csr_array(graph.to_scipy().astype(float) @ graph.to_scipy().astype(float))
    calibrated = ns.Method("aps", ns.Weights(near, own=2.0), ns.Exact()).calibrate(*world)
    sets = calibrated.predict(alpha=0.2)
    seen = ns.inspect_node(calibrated, 299, alpha=0.2)
    assert seen.threshold == sets.thresholds[-1]
    assert seen.support == sets.support[-1]


def test_weights_tell_how_far_they_are(world):
    reports = []
    local = ns.Weights(sp.csr_array(sp.identity(300))).fit(Reference(np.arange(150), np.ones(150), 300))
    local.thresholds(np.arange(300), [Cut(0.9)], progress=lambda done, total: reports.append((done, total)))
    assert reports == [(256, 300), (300, 300)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ns.Weights(np.ones(3)), r"CovariateShift\(ratios\)"),
        (lambda: ns.Weights(sp.csr_array((2, 3))), r"`weights` must be a square matrix; got shape \(2, 3\)"),
        (lambda: ns.Weights(sp.csr_array([[-1.0]])), r"`weights` must be finite, from 0"),
        (lambda: ns.Weights(lambda v, i: i, own=-1), "`own` must be finite, at least 0"),
        (lambda: ns.CovariateShift([0.0, 0.0]), "`ratios` must be one number each, not all of them 0"),
        (lambda: ns.CovariateShift([1.0, np.nan]), "`ratios` must be finite"),
        (lambda: ns.Method("aps", ns.LabelShift([1, 2]), ns.Exact()), r"`level` must be Nominal\(\)"),
        (lambda: ns.Method("aps", ns.LabelShift([1, 2]), groups="class"), "`groups` None with LabelShift"),
    ],
)
def test_what_are_no_weights_is_refused(make, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("localiser", "message"),
    [
        (ns.Weights(sp.csr_array(sp.identity(3))), "`weights` must have one row per node, 300"),
        (ns.Weights(lambda node, known: known[:2]), "`weights` must return one weight per reference node, 150"),
        (ns.Weights(lambda node, known: -1.0 * known - 1), "`weights` must be finite"),
        (ns.CovariateShift([1.0, 2.0]), "`ratios` must have one entry per node, 300; got 2"),
        (ns.LabelShift([1.0, 2.0]), "`ratios` must have one entry per class, 3; got 2"),
    ],
)
def test_weights_that_do_not_fit_are_refused(world, localiser, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        ns.Method("aps", localiser).calibrate(*world).predict(alpha=0.2)


def test_label_shift_is_for_labels(world):
    graph, _, y, known = world
    with pytest.raises(ns.InvalidInputError, match="`localiser` must not be LabelShift"):
        ns.Method("absolute", ns.LabelShift([1.0, 2.0])).calibrate(graph, np.zeros(300), y.astype(float), known)


@pytest.mark.parametrize("localiser", [ns.LabelShift([1.0, 0.5, 3.0]), ns.CovariateShift(1.0 + np.arange(300) % 3)])
def test_a_verdict_says_for_whom_known_weights_guarantee_coverage(world, localiser):
    population = "at least 90 % on average over the population that the importance weights describe"
    nominal = ns.Method("aps", localiser).calibrate(*world).verdict()
    assert f"guaranteed to be {population}, as far as these are right" in nominal.lines[1]
    judged = replace(nominal, judged=10).certainty
    assert f"What is guaranteed is {population}" in judged
    assert "No theorem" not in judged
    assert "shifted" in nominal.row()


def test_a_verdict_on_weights_at_an_exact_level_promises_the_population_of_the_labels(world):
    verdict = ns.Method("aps", ns.CovariateShift(1.0 + np.arange(300) % 3), ns.Exact()).calibrate(*world).verdict()
    assert "guaranteed if the nodes were labelled at random" in verdict.lines[1]
    assert "shifted" not in verdict.row()


@pytest.mark.parametrize("seed", range(40))
def test_importance_weights_of_any_size_give_the_thresholds_of_exact_arithmetic(seed):
    """Also of calibration nodes, whose own weight must not be taken from a sum that has swallowed the others."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 30))
    ratios = 10.0 ** rng.uniform(-12, 12, size) if seed % 2 else 10.0 ** rng.integers(-15, 16, size)
    ratios[rng.random(size) < 0.2] = 0.0
    p, labels = rng.dirichlet(np.ones(3), size), rng.integers(3, size=size)
    known = np.sort(rng.choice(size, size // 2 + 1, replace=False))
    graph = ns.Graph.from_edge_index(np.zeros((2, 0), dtype=int), size)
    calibrated = ns.Method(ns.THR(), ns.CovariateShift(ratios)).calibrate(graph, p, labels, known)
    scores = calibrated.scored.reference.scores.tolist()
    for alpha in (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ns.NapsetsWarning)
            sets = calibrated.predict(np.arange(size), float(alpha))
        for node, threshold in enumerate(sets.thresholds.tolist()):
            pairs = [(s, Fraction(ratios[i])) for s, i in zip(scores, known.tolist(), strict=True) if i != node]
            others, weights = [s for s, _ in pairs], [w for _, w in pairs]
            level = (1 - alpha) * (1 - Fraction(1, 10**9))  # the comparison forgives one part in a billion
            assert threshold == slow_threshold(others, weights, Fraction(ratios[node]), level, "at least")
