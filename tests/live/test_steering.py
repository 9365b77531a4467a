"""A steered level gives the right average in any world, and DtACI is its published algorithm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napsets as ns
from napsets.live.steering import Steering
from oracles import same_bits

p_streams = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60)
alphas = st.sampled_from([0.01, 0.1, 0.5])


def slow_dtaci(betas, alpha):
    """Algorithm 1 of Gibbs and Candès (2024) with the mean level, η and σ for intervals of 100 labels."""
    gammas, interval = 0.001 * 2.0 ** np.arange(8), 100
    square = (alpha**2 * (1 - alpha) ** 3 + (1 - alpha) ** 2 * alpha**3) / 3
    eta, sigma = math.sqrt((math.log(2 * 8 * interval) + 1) / (interval * square)), 1 / (2 * interval)
    experts, weights, levels = np.full(8, alpha), np.ones(8), []
    for beta in betas:
        levels.append(weights @ experts / weights.sum())
        losses = alpha * (beta - experts) - np.minimum(0, beta - experts)
        bar = weights * np.exp(-eta * (losses - losses.min()))  # a common factor cancels
        weights = (1 - sigma) * bar + bar.sum() * sigma / 8
        weights /= weights.sum()
        experts = experts + gammas * (alpha - ((experts >= beta) & (experts > 0)))
    return np.array(levels)


@given(p_streams, alphas)
def test_dtaci_is_the_published_algorithm(p_values, alpha):
    assert np.allclose(ns.Steered("dtaci").levels(p_values, alpha), slow_dtaci(p_values, alpha), rtol=0, atol=1e-9)


@given(p_streams, alphas, st.sampled_from([0.005, 0.1, 1.0]))
def test_aci_is_one_line(p_values, alpha, rate):
    level, levels = alpha, []
    for p in p_values:
        levels.append(level)
        level += rate * (alpha - (p <= level and level > 0))  # at 0 or below sets are full
    assert np.allclose(ns.Steered("aci", rate).levels(p_values, alpha), levels, atol=1e-12)


@given(p_streams, alphas, st.sampled_from([0.05, 0.2]), st.lists(st.integers(0, 5), min_size=60, max_size=60))
def test_the_share_of_misses_is_right_in_the_long_run_in_any_world(p_values, alpha, rate, lateness):
    """The bound holds for any p-values and any order of late labels, as long as the delay does not slow the rate."""
    late = np.array(lateness[: len(p_values)]) if rate <= 0.05 else 0
    levels = ns.Steered("aci", rate).levels(p_values, alpha, delay=late)
    arrived = np.arange(len(p_values)) + late < len(p_values)
    misses = ((np.array(p_values) <= levels) & (levels > 0))[arrived]
    delay = 5 if rate <= 0.05 else 0
    if misses.size:
        assert abs(misses.mean() - alpha) <= (1 + rate * (delay + 1)) / (rate * misses.size) + 1e-9


def play(steered, choose, length, alpha=0.1):
    """The misses and levels of a stream whose p-values are chosen by somebody who knows the state."""
    steering, missed, levels = steered.start(alpha), np.empty(length, dtype=bool), np.empty(length)
    for t in range(length):
        mark = steering.mark()
        p_value = choose(t, steering, mark.experts)
        missed[t], levels[t] = p_value <= mark.level and mark.level > 0, mark.level
        steering.update(p_value, mark)
    return missed, levels


def at_the_level(t, steering, experts):
    return min(max(steering.level, 0.0), 1.0)


def where_experts_learn_little(t, steering, experts):
    """Miss the mean level where most of the weight is on experts that cover, so that these do not become careful."""
    erring = sum(w for w, expert in zip(steering._weights, experts, strict=True) if expert >= steering.level)
    return steering.level if steering.level > 0 and erring < 0.5 else 1.0


def near_zero(t, steering, experts):
    return float(ns.node_uniforms(np.arange(t, t + 1), 0)[0]) * 0.003


def swinging(t, steering, experts):
    return 0.0 if (t // 150) % 2 else 1.0


@pytest.mark.parametrize("choose", [at_the_level, where_experts_learn_little, near_zero, swinging])
@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_no_adversary_moves_the_average_of_aci(choose, rate):
    labels = np.arange(1, 4001)
    missed, _ = play(ns.Steered(rate=rate), choose, labels.size)
    assert (abs(missed.cumsum() / labels - 0.1) <= (1 + rate) / (rate * labels) + 1e-9).all()


def test_dtaci_promises_less_and_is_not_the_default():
    assert ns.Steered() == ns.Steered("aci") != ns.Steered("dtaci")
    missed, _ = play(ns.Steered("dtaci"), where_experts_learn_little, 8000)
    assert missed.mean() > 0.2  # instead of 0.1
    missed, levels = play(ns.Steered("dtaci"), near_zero, 4000)
    assert not missed[2000:].any()
    assert (levels[2000:] <= 0).all()  # full sets for ever


def test_levels_follow_a_world_that_changes():
    """p-values of a model that gets worse, then better: misses stay near 10 % all the way."""
    rng = np.random.default_rng(1)
    p_values = np.concatenate([rng.random(1500), rng.random(1500) ** 3, rng.random(1500) ** 0.5])
    nominal = ns.monitoring.worst_window(p_values <= 0.1).coverage
    for steered in (ns.Steered("dtaci"), ns.Steered("aci", rate=0.01)):
        missed = p_values <= steered.levels(p_values, 0.1)
        assert abs(missed.mean() - 0.1) < 0.01
        assert ns.monitoring.worst_window(missed).coverage > nominal + 0.2


def test_at_zero_nothing_is_missed_and_at_one_everything():
    """A level of 0 or below makes full sets, which miss nothing; one of 1 or above makes empty ones."""
    levels = ns.Steered("aci", rate=0.5).levels([0.01, 0.01, 0.01], 0.1)
    assert levels[1] <= 0 < levels[0]
    assert levels[2] > levels[1]  # the full set covered
    assert ns.Steered("aci", rate=0.5).levels([1.0] * 4, 0.5).tolist() == [0.5, 0.75, 1.0, 0.75]  # the empty set missed
    assert ns.Steered("aci", rate=1.0).levels([0.0] * 4, 0.5).tolist() == [0.5, 0.0, 0.5, 0.0]  # the full one did not


def test_late_labels_slow_the_rate_so_that_levels_do_not_swing():
    rng = np.random.default_rng(2)
    p_values, late = rng.random(4000), 300
    swings = []
    for cap in (True, False):
        steering, marks, levels = ns.Steered("aci", rate=0.05).start(0.1), [], []
        for t in range(p_values.size):
            marks.append(steering.mark())
            levels.append(steering.level)
            if t >= late:
                if not cap:
                    steering._delays.values.clear()
                    marks[t - late] = marks[t - late]._replace(number=t)
                steering.update(p_values[t - late], marks[t - late]._replace(level=levels[t - late]))
        swings.append(np.std(levels))
    assert swings[0] < 0.1 < swings[1]


def test_the_delay_is_measured_in_labels():
    """From the first label on where all sets get one; 300 sets with a tenth labelled are 30 labels."""
    for share, expected in ((1, 300), (10, 30)):
        steering, marks = ns.Steered("dtaci").start(0.1), []
        for t in range(2000):
            marks.append(steering.mark())
            if t >= 300 and (t - 300) % share == 0:
                steering.update(0.5, marks[t - 300])
                assert share > 1 or steering.delay == expected
        assert math.isclose(steering.delay, expected, rel_tol=0.05)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6)), min_size=1, max_size=40), st.booleans())
def test_a_fold_of_marks_and_labels_gives_the_same_bits(stream, several):
    steered = ns.Steered("dtaci") if several else ns.Steered("aci", rate=0.02)
    p_values, late = (np.array(column) for column in zip(*stream, strict=True))
    state, marks, levels = Steering(steered.rates, 0.1), [], []
    for t in range(p_values.size):
        marks.append(state.mark())
        levels.append(marks[t].level)
        for s in range(t + 1):
            if s + late[s] == t:
                state.update(p_values[s], marks[s])
    assert same_bits(np.array(levels), steered.levels(p_values, 0.1, delay=late))


def test_streams_without_sets_have_no_levels():
    assert ns.Steered().levels([]).size == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ns.Steered("pid"), "`kind` must be 'aci' or 'dtaci'; got 'pid'"),
        (lambda: ns.Steered("aci", rate=0), "`rate` must be above 0"),
        (lambda: ns.Steered("aci", rate=2), "`rate` must be finite, at least 0 and at most 1; got 2"),
        (lambda: ns.Steered("dtaci", rate=0.1), "`rate` must be None for 'dtaci'"),
        (lambda: ns.Steered().levels([2.0]), "`p_values` must be finite, from 0 to 1"),
        (lambda: ns.Steered().levels([0.5], alpha=0), "`alpha` must lie strictly"),
        (lambda: ns.Steered().levels([0.5], delay=-1), "`delay` must not be negative"),
        (lambda: ns.Steered().levels([0.5], delay=[0, 1]), "`delay` must be one number, or one per set, 1; got 2"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        call()
