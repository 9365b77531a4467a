"""Full conformal prediction of numbers: ends are those of every bag counted anew, and coverage is that of the law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import napsets as ns
from napsets.levels import Exact, Full, rank_place
from napsets.localisers import Everyone, Hops
from napsets.methods import Method
from napsets.methods.data import CalibrationData
from napsets.scores import CQR, AbsoluteResidual, InformedIntervals, Labelled, NormalisedResidual

BASES = [CQR(), AbsoluteResidual(), NormalisedResidual()]


pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


def outputs_of(base, guess, rng):
    """What a model says: two quantiles, which may cross, a guess, or a guess and a spread."""
    spread = rng.uniform(0.2, 2.0, guess.size)
    if isinstance(base, CQR):
        return np.column_stack([guess - spread, guess + spread * rng.choice([1.0, -0.3], guess.size, p=[0.9, 0.1])])
    return guess if isinstance(base, AbsoluteResidual) else np.column_stack([guess, spread])


def random_case(seed):
    """A small graph with hubs and one-way edges, a model, targets that neighbours share, and made-up coefficients."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(6, 40))
    ends = rng.integers(nodes, size=(2, int(rng.integers(0, 3 * nodes))))
    if rng.random() < 0.5:  # a hub
        ends[1, rng.random(ends.shape[1]) < 0.5] = 0
    graph = ns.Graph.from_edge_index(ends, num_nodes=nodes, directed=bool(rng.random() < 0.5))
    base, hops = BASES[int(rng.integers(3))], int(rng.integers(1, 3))
    outputs = outputs_of(base, rng.normal(size=nodes), rng)
    targets = rng.normal(size=nodes) * rng.choice([1.0, 4.0])
    if rng.random() < 0.3:
        targets = np.round(targets)
    score = InformedIntervals(base, hops)
    calibration = rng.permutation(nodes)[: rng.integers(5, nodes + 1)]
    data = CalibrationData.check(graph, outputs, targets, calibration, score=score)
    columns = base.check(outputs).shape[1]
    coefficients = np.eye(columns, 1 + columns + hops, k=1)
    for column in base.quantiles:
        coefficients[column] += rng.normal(size=coefficients.shape[1]) * rng.choice([0.3, 1.0, 3.0])
    method = Method(score, Everyone(), Full(float(rng.choice([0.3, 0.5]))), seed)
    parts = data.parts(method.level.reference_size(data.calibration.size), seed)
    scored = data.scored_in_parts(score, seed, *parts, level=method.level, learned=coefficients)
    return data, method.on(scored), coefficients, float(rng.choice([0.1, 0.3, 0.5]))


def is_in_set(calibrated, data, coefficients, v, y, alpha, judges=None):
    """Whether a candidate is in the set by the definition: the bag anew, all its scores, and a count."""
    scored = calibrated.scored
    held_out = scored.level_nodes
    others = held_out[held_out != v]
    judging = others if judges is None else others[np.isin(others, judges)]
    place = rank_place(judging.size, alpha)
    if place > judging.size:
        return True
    nodes, targets = np.append(others, v), np.append(data.truth[others], y)
    if v in scored.reference.nodes:  # whose target has spoken
        nodes, targets = held_out, data.truth[held_out]
    order = np.argsort(nodes)
    reference = Labelled(scored.reference.nodes, data.truth[scored.reference.nodes])
    bag = Labelled(nodes[order], targets[order])
    _, bound = scored.score.bind_with_bag(data.outputs, scored.u, data.graph, reference, bag, coefficients)
    own = bound.at(np.array([v]), np.array([y]))[0]
    return bool(own <= np.sort(bound.at(judging, data.truth[judging]))[place - 1])


def check_interval(case, v, interval, judges=None):
    """Ends belong to the set, or are the middle; beyond them nothing does."""
    data, calibrated, coefficients, alpha = case
    lower, upper = interval
    centre = calibrated.score.centre(np.array([v]))[0]
    for end, side in ((lower, -1.0), (upper, 1.0)):
        unit = 1e-6 * (1.0 + abs(end)) if np.isfinite(end) else 0.0
        beyond = [end + side * step for step in (unit, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4)] if unit else []
        assert not any(is_in_set(calibrated, data, coefficients, v, y, alpha, judges) for y in beyond), (v, side)
        if abs(end - centre) > 2 * unit:
            within = end - side * unit if unit else side * 1e6
            assert is_in_set(calibrated, data, coefficients, v, within, alpha, judges), (v, side)


def check_case(seed, some):
    case = random_case(seed)
    nodes = np.random.default_rng(seed).choice(case[0].outputs.shape[0], some)
    intervals = case[1].predict(nodes, case[3])
    for row, v in enumerate(nodes):
        check_interval(case, v, intervals[row])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 64]))
def test_ends_are_those_of_every_bag_counted_anew(seed, crowd):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napsets.scores.informed_intervals.CROWD", crowd)
        check_case(seed, some=3)


@pytest.mark.slow
def test_ends_are_those_of_every_bag_counted_anew_on_many_graphs(monkeypatch):
    for seed in range(10_000):
        monkeypatch.setattr("napsets.scores.informed_intervals.CROWD", (1, 3, 64)[seed % 3])
        check_case(seed, some=2)


@pytest.mark.parametrize("seed", range(8))
def test_within_groups_only_their_own_targets_judge_and_all_speak(seed):
    data, calibrated, coefficients, _ = random_case(seed)
    groups = np.arange(data.outputs.shape[0]) % 2
    method = replace(calibrated.method, groups=groups)
    grouped = method.on(calibrated.scored)
    intervals = grouped.predict(np.arange(groups.size), 0.5)
    held_out, checked = calibrated.scored.level_nodes, 0
    for v in range(0, groups.size, 3):
        if grouped.grouped.suffice(0.5)[groups[v]]:
            judges = held_out[groups[held_out] == groups[v]]
            check_interval((data, calibrated, coefficients, 0.5), v, intervals[v], judges)
            checked += 1
    assert checked


def world(rng, base, nodes=240):
    """Targets that share something with their neighbours' which the model does not know."""
    block = rng.integers(6, size=nodes)
    ends = rng.integers(nodes, size=(2, 40 * nodes))
    ends = ends[:, (block[ends[0]] == block[ends[1]]) | (rng.random(ends.shape[1]) < 0.05)][:, : 4 * nodes]
    graph, guess = ns.Graph.from_edge_index(ends, num_nodes=nodes), rng.normal(size=nodes)
    targets = guess + 1.5 * rng.normal(size=6)[block] + 0.5 * rng.normal(size=nodes)
    return graph, outputs_of(base, guess, rng), targets


SIZES = [40, 101, *(pytest.param(labelled, marks=pytest.mark.slow) for labelled in (100, 999, 1000))]


@pytest.mark.parametrize("labelled", SIZES)
@pytest.mark.parametrize("base", BASES)
def test_coverage_is_that_of_the_law(base, labelled):
    """The set covers with probability ⌈(|Q|+1)(1−α)⌉/(|Q|+1) exactly, and the interval contains the set."""
    rng = np.random.default_rng(labelled)
    graph, outputs, targets = world(rng, base, nodes=max(240, labelled + 100))
    method = Method(InformedIntervals(base, 2), Everyone(), Full())
    held_out = labelled - method.level.reference_size(labelled)
    chance = rank_place(held_out, 0.1) / (held_out + 1)
    draws, inside, covered = 200 if labelled < 500 else 150, 0, 0
    for draw in range(draws):
        order = rng.permutation(targets.size)
        data = CalibrationData.check(graph, outputs, targets, order[:labelled], score=method.score)
        calibrated = replace(method, seed=draw).fit(data)
        v = int(order[labelled])
        mine = is_in_set(calibrated, data, calibrated.score.coefficients, v, targets[v], 0.1)
        interval = bool(calibrated.predict([v], 0.1).contains(targets)[0])
        assert interval or not mine
        inside, covered = inside + mine, covered + interval
    assert min(binom.cdf(inside, draws, chance), binom.sf(inside - 1, draws, chance)) > 1e-4, (inside / draws, chance)
    assert binom.cdf(covered, draws, 0.9) > 1e-4


@pytest.mark.parametrize("base", BASES)
def test_targets_that_are_hidden_threads_and_order_change_nothing(base, monkeypatch):
    rng = np.random.default_rng(1)
    graph, outputs, targets = world(rng, base)
    known, hidden = np.arange(0, 240, 2), np.arange(1, 240, 2)
    shuffled = targets.copy()
    shuffled[hidden] = rng.permutation(targets[hidden])
    method = Method(InformedIntervals(base), Everyone(), Full())
    one, other = (method.calibrate(graph, outputs, y, known) for y in (targets, shuffled))
    intervals = one.predict(hidden, 0.1)
    assert intervals.same_as(other.predict(hidden, 0.1))
    assert one.predict(hidden[::-1], 0.1)[::-1].same_as(intervals)
    assert one.predict(hidden, [0.3, 0.1], threads=1)[1].same_as(intervals)
    monkeypatch.setattr("napsets.methods.full_intervals._PAIRS", 5)
    assert one.predict(hidden, 0.1).same_as(intervals)
    assert (intervals.end_thresholds[:, 0] != intervals.end_thresholds[:, 1]).any()


def test_a_saved_method_gives_the_same_intervals_and_new_nodes_the_same_as_with_them(tmp_path):
    graph, outputs, targets = world(np.random.default_rng(4), CQR())
    calibrated = Method(InformedIntervals(), Everyone(), Full()).calibrate(graph, outputs, targets, np.arange(120))
    calibrated.save(tmp_path / "method.npz")
    loaded, nodes = ns.load(tmp_path / "method.npz"), np.arange(120, 240)
    assert loaded.predict(nodes).same_as(calibrated.predict(nodes))
    assert loaded.method == calibrated.method
    edges = np.stack(graph.to_scipy().nonzero())
    old = edges[:, (edges < 239).all(axis=0)]
    for level in (Full(), Exact()):
        method = Method(InformedIntervals(), Everyone(), level)
        before = method.calibrate(
            ns.Graph.from_edge_index(old, num_nodes=239), outputs[:239], targets[:239], range(120)
        )
        grown = before.predict_new(outputs[239:], edges[:, (edges == 239).any(axis=0)])
        assert grown.same_as(method.calibrate(graph, outputs, targets, range(120)).predict([239]))


def test_an_inspection_says_who_hears_the_candidate_and_whose_targets_speak():
    graph, outputs, targets = world(np.random.default_rng(5), AbsoluteResidual())
    method = Method(InformedIntervals("absolute"), Everyone(), Full())
    calibrated = method.calibrate(graph, outputs, targets, np.arange(120))
    seen, prediction = ns.inspect_node(calibrated, 200), calibrated.predict([200], 0.1)
    near = set(graph.neighbours(200).tolist())
    around = (near | {int(w) for u in near for w in graph.neighbours(u)}) - {200}
    assert set(seen.listeners.tolist()) == around & set(calibrated.scored.level_nodes.tolist())
    assert {voice.node for voice in seen.evidence.voices} == around & set(range(120))
    np.testing.assert_allclose(seen.evidence.contributions.sum(axis=1), seen.outputs, rtol=0, atol=1e-12)
    assert seen.base_threshold == np.sort(calibrated.scored.level_scores)[rank_place(60, 0.1) - 1]
    assert np.array_equal(seen.end_thresholds, prediction.end_thresholds[0])
    assert (seen.lower, seen.upper) == prediction[0]
    assert "whose scores count it as evidence" in seen.reason()


def test_a_full_level_needs_one_threshold_for_all_and_is_taken_on_request_alone():
    with pytest.raises(ns.InvalidInputError, match="`localiser` must be Everyone"):
        Method(InformedIntervals(), Hops(2), Full())
    graph, outputs, targets = world(np.random.default_rng(6), CQR(), nodes=400)
    for name in ("informed", "auto"):
        calibrated = ns.make_method(name, score="cqr").calibrate(graph, outputs, targets, np.arange(300))
        assert calibrated.method.level == Exact()
        assert calibrated.predict().end_thresholds is None


def test_too_few_targets_give_the_whole_line():
    graph, outputs, targets = world(np.random.default_rng(7), CQR())
    calibrated = Method(InformedIntervals(), Everyone(), Full()).calibrate(graph, outputs, targets, np.arange(12))
    intervals = calibrated.predict(np.arange(20, 30), 0.1)
    assert np.isneginf(intervals.lower).all()
    assert np.isposinf(intervals.upper).all()
