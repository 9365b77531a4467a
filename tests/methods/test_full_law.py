"""What full conformal prediction promises, by tail probabilities; its groups, and what an inspection says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.stats import betabinom, binom, kstest

import napsets as ns
from methods.test_full import random_case, scores_of_bag, slow_thresholds
from napsets.levels import Exact, Full, rank_place
from napsets.localisers import Everyone
from napsets.methods import Method
from napsets.scores import APS, THR, ByLabel, Informed, Labelled, Sharpened
from worlds import weak_model

SIZES = [40, 101, *(pytest.param(labelled, marks=pytest.mark.slow) for labelled in (100, 999, 1000))]


pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


@dataclass(frozen=True)
class Draws:
    """What happened to new nodes while labels were drawn at random again and again."""

    held_out: int
    smoothed: list[float]
    plain: list[float]
    covered: list[int]


@cache
def draws_of(score, level, labelled):
    """Return the p-values of a new node's label and the number covered: of that node, of all at an exact level."""
    rng = np.random.default_rng(labelled)
    graph, p, labels = weak_model(seed=rng, nodes=labelled + 200)
    draws = Draws(labelled - level.reference_size(labelled), [], [], [])
    for draw in range(400 if labelled < 500 else 300):
        order = rng.permutation(labels.size)
        calibrated = Method(score, Everyone(), level, seed=draw).calibrate(graph, p, labels, order[:labelled])
        new = order[labelled:] if level == Exact() else order[labelled : labelled + 1]
        label = labels[new[0]]
        draws.smoothed.append(calibrated.p_values(new[:1], smoothed=True)[0, label])
        draws.plain.append(calibrated.p_values(new[:1])[0, label])
        draws.covered.append(int(calibrated.predict(new, 0.1).contains(labels).sum()))
    return draws


SCORES = [Informed(), Informed(THR()), ByLabel(Informed(Sharpened(APS(), 2.0)), 0.5)]


@pytest.mark.parametrize("labelled", SIZES)
@pytest.mark.parametrize("score", SCORES)
def test_smoothed_p_values_are_uniform(score, labelled):
    assert kstest(draws_of(score, Full(), labelled).smoothed, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("labelled", SIZES)
@pytest.mark.parametrize(("score", "level"), [*((score, Full()) for score in SCORES), (Informed(), Exact())])
def test_plain_p_values_take_each_step_equally_often(score, level, labelled):
    """Without ties (n+1)·p is uniform on 1..n+1: spread over its step, p is uniform."""
    draws = draws_of(score, level, labelled)
    p, steps = np.array(draws.plain), draws.held_out + 1
    np.testing.assert_allclose(p * steps, np.round(p * steps))
    assert kstest(p - np.random.default_rng(0).random(p.size) / steps, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("labelled", SIZES)
@pytest.mark.parametrize("score", SCORES)
def test_a_node_is_covered_as_often_as_the_law_says(score, labelled):
    """One node per draw, with probability ⌈(|Q|+1)(1−α)⌉/(|Q|+1) exactly, where no scores tie."""
    draws = draws_of(score, Full(), labelled)
    chance = rank_place(draws.held_out, 0.1) / (draws.held_out + 1)
    covered, count = sum(draws.covered), len(draws.covered)
    low, high = binom.cdf(covered, count, chance), binom.sf(covered - 1, count, chance)
    assert min(low, high) > 1e-4, (covered / count, chance)


@pytest.mark.parametrize("labelled", SIZES)
def test_the_number_covered_of_many_follows_the_beta_binomial_law_at_an_exact_level(labelled):
    """Of m nodes, BetaBinomial(m, k, |Q|+1−k) are covered. (At a full level the law holds for one node at a time.)"""
    draws = draws_of(Informed(), Exact(), labelled)
    k = rank_place(draws.held_out, 0.1)
    law, covered = betabinom(200, k, draws.held_out + 1 - k), np.array(draws.covered)
    places = law.cdf(covered - 1) + np.random.default_rng(1).random(covered.size) * law.pmf(covered)
    assert kstest(places, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("method", ["informed", "auto", "auto-small"])
def test_permuting_hidden_labels_changes_no_set_and_no_p_value(method):
    rng = np.random.default_rng(2)
    graph, p, labels = weak_model(seed=rng, nodes=500)
    known, hidden = np.arange(0, 500, 2), np.arange(1, 500, 2)
    shuffled = labels.copy()
    shuffled[hidden] = rng.permutation(labels[hidden])
    assert (shuffled != labels).any()
    one, other = (ns.make_method(method).calibrate(graph, p, y, known) for y in (labels, shuffled))
    assert one.method == other.method
    sets = [calibrated.predict(hidden) for calibrated in (one, other)]
    assert np.array_equal(sets[0].member, sets[1].member)
    assert np.array_equal(sets[0].label_thresholds, sets[1].label_thresholds)
    assert np.array_equal(one.p_values(hidden), other.p_values(hidden))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("by", ["class", "degree"])
def test_thresholds_and_p_values_of_groups_are_those_of_every_bag_counted_anew(by, seed):
    data, method, _ = random_case(seed)
    calibrated = Method(method.score, Everyone(), Full(), seed, groups=by).fit(data)
    held_out, classes = calibrated.scored.level_nodes, data.outputs.shape[1]
    nodes = np.setdiff1d(np.arange(data.outputs.shape[0]), calibrated.scored.reference.nodes)
    sets, p_values = calibrated.predict(nodes, 0.5), calibrated.p_values(nodes)
    grouping = calibrated.grouped.grouping
    member, enough = grouping.of_labelled(held_out, data.truth[held_out]), calibrated.grouped.suffice(0.5)
    checked = 0
    for row, v in enumerate(nodes):
        others = held_out[held_out != v]
        for y in range(classes):
            group = grouping.groups[y if by == "class" else v]
            judges = held_out[member == group]
            if enough[group]:
                assert sets.label_thresholds[row, y] == slow_thresholds(calibrated, data, v, 0.5, judges)[y]
                checked += 1
            judging = others[np.isin(others, judges)]
            bag = np.append(others, v), np.append(data.truth[others], y)
            bound, scores = scores_of_bag(calibrated, data, *bag, judging)
            own = bound.at(np.array([v]), np.array([y]))[0]
            assert p_values[row, y] == (1 + (scores >= own).sum()) / (1 + judging.size)
    assert checked


def probabilities_without(calibrated, data, node, speaker):
    """What a node's probabilities would be if one labelled node had no label, with all else that was learned."""
    scored = calibrated.scored
    kept = [nodes[nodes != speaker] for nodes in (scored.reference.nodes, scored.level_nodes)]
    reference, bag = (Labelled(nodes, data.truth[nodes]) for nodes in kept)
    learned = ns.scores.informed.evidence_of(calibrated.score).learned
    _, bound = scored.score.bind_with_bag(data.outputs, scored.u, data.graph, reference, bag, learned)
    return bound.probabilities[node]


@pytest.mark.parametrize("groups", [None, "class"])
def test_an_inspection_shows_who_speaks_for_which_label_and_what_the_candidate_changed(groups):
    graph, p, labels = weak_model(seed=5)
    calibrated = Method(Informed(), Everyone(), Full(), groups=groups).calibrate(graph, p, labels, np.arange(120))
    data = ns.methods.data.CalibrationData.check(graph, p, labels, np.arange(120), score=Informed())
    for node in (130, 200, 250):
        seen = ns.inspect_node(calibrated, node, 0.2)
        near = set(graph.neighbours(node).tolist())
        around = (near | {int(w) for u in near for w in graph.neighbours(u)}) - {node}
        voices = {voice.node: voice for voice in seen.evidence.voices}
        assert set(voices) == around & set(range(120))  # of the reference and of those held out
        assert set(voices) & set(calibrated.scored.level_nodes.tolist())
        for speaker, voice in voices.items():
            assert voice.label == labels[speaker]
            assert voice.hop == (1 if speaker in near else 2)
            less, other = probabilities_without(calibrated, data, node, speaker), (voice.label + 1) % 3
            odds = seen.evidence.informed[voice.label] / seen.evidence.informed[other]
            assert odds / (less[voice.label] / less[other]) == pytest.approx(np.exp(voice.log_odds))
        raised = np.exp(seen.evidence.contributions.sum(axis=0))
        np.testing.assert_allclose(raised / raised.sum(), seen.evidence.informed)
        assert np.array_equal(seen.label_thresholds, calibrated.predict([node], 0.2).label_thresholds[0])
        held_out = calibrated.scored.level_nodes
        assert set(seen.listeners.tolist()) == around & set(held_out.tolist())
        if groups is None:
            assert np.array_equal(seen.label_thresholds, slow_thresholds(calibrated, data, node, 0.2))
            needed = rank_place(held_out.size, 0.2)
            assert seen.base_threshold == np.sort(calibrated.scored.level_scores)[needed - 1]
