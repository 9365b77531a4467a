"""Alarms that are rarely false, intervals that hold at all times, and one label at a time gives the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import napsets as ns
from napsets.live.alarms import Jumper, MissAlarm
from napsets.live.monitoring import Monitor, interval_from_counts
from oracles import same_bits

monitoring = ns.monitoring

p_streams = st.lists(st.floats(0.0, 1.0), max_size=60)
miss_streams = st.lists(st.booleans(), max_size=60)
alphas = st.sampled_from([0.01, 0.1, 0.5, 0.9])
SHARES = [2.0**-k for k in range(1, 9)]


def slow_jumper(p_values, jump=0.01):
    """The definition, with plain products."""
    capital, after = np.full(3, 1 / 3), []
    for p in p_values:
        capital = (1 - jump) * capital + jump / 3 * capital.sum()
        capital = capital * (1 + np.array([-1, 0, 1]) * (p - 0.5))
        after.append(capital.sum())
    return np.array(after)


def slow_misses(missed, alpha):
    stakes = np.array(SHARES) / alpha
    factors = 1 + np.outer(np.asarray(missed, dtype=float) - alpha, stakes)
    return np.cumprod(factors, axis=0).mean(axis=1)


def slow_restarts(stream, capital):
    """Start anew at every time, with weights 1/(s(s+1)), and keep 1/(t+1) for later."""
    after = np.array([1.0 / (t + 1) for t in range(1, len(stream) + 1)])
    for s in range(1, len(stream) + 1):
        after[s - 1 :] += capital(stream[s - 1 :]) / (s * (s + 1))
    return after


@given(p_streams)
def test_the_jumper_is_its_definition(p_values):
    assert np.allclose(monitoring.jumper(p_values), slow_restarts(p_values, slow_jumper), rtol=1e-10)


@given(miss_streams, alphas)
def test_the_coverage_alarm_is_a_mixture_of_bets(missed, alpha):
    restarted = slow_restarts(missed, lambda rest: slow_misses(rest, alpha))
    assert np.allclose(monitoring.miss_alarm(missed, alpha), restarted, rtol=1e-10)


@given(p_streams)
def test_no_bet_on_a_uniform_p_value_gains(p_values):
    """The capital is linear in the next p-value, so its mean is that at 0 and 1, and equals what was there before."""
    before = monitoring.jumper([*p_values, 0.5])[-1]
    low, high = (monitoring.jumper([*p_values, p])[-1] for p in (0.0, 1.0))
    past = monitoring.jumper(p_values)
    assert math.isclose((low + high) / 2, before, rel_tol=1e-10)
    assert math.isclose(before, past[-1] if p_values else 1.0, rel_tol=1e-10)


@given(miss_streams, alphas)
def test_no_bet_on_a_miss_gains_if_misses_are_as_rare_as_promised(missed, alpha):
    one, other = (monitoring.miss_alarm([*missed, flag], alpha)[-1] for flag in (True, False))
    past = monitoring.miss_alarm(missed, alpha)
    assert math.isclose(alpha * one + (1 - alpha) * other, past[-1] if missed else 1.0, rel_tol=1e-10)
    assert one > other


@pytest.mark.slow
def test_the_jumper_rings_in_at_most_one_percent_of_exchangeable_streams():
    """With ties among the scores, and sets from a growing calibration, which are exact up to 1/(n+1)."""
    streams, rng = 2000, np.random.default_rng(26)
    rang = 0
    for seed in range(streams):
        p_values = monitoring.smoothed_p_values(np.round(rng.beta(2, 5, size=1000), 2), seed=seed)
        rang += monitoring.first_alarm(monitoring.jumper(p_values, log=True), math.log(100.0)) is not None
    # Ville's bound allows 1 % in expectation: more than this many would refute it.
    assert rang <= min(0.01 * streams, stats.binom.isf(1e-6, streams, 0.01))


def test_late_changes_ring_sooner_than_with_one_start():
    rng = np.random.default_rng(3)
    p_values = np.concatenate([rng.random(3000), rng.beta(1, 3, size=500)])
    missed = np.concatenate([rng.random(3000) < 0.1, rng.random(500) < 0.4])
    once = monitoring.first_alarm(slow_jumper(p_values))
    assert 3000 < monitoring.first_alarm(monitoring.jumper(p_values)) <= once
    once = monitoring.first_alarm(slow_misses(missed, 0.1))
    assert 3000 < monitoring.first_alarm(monitoring.miss_alarm(missed, 0.1)) < once


def test_smoothed_p_values_are_uniform_and_those_of_mapie_are_not():
    """Pooled over short streams with and without ties, by the exact law of the Kolmogorov-Smirnov distance."""
    rng = np.random.default_rng(5)
    ours, theirs = [], []
    for seed in range(400):
        scores = rng.integers(6, size=8) if seed % 2 else rng.random(8)
        ours.append(monitoring.smoothed_p_values(scores, seed=seed))
        u = ns.node_uniforms(np.arange(8), seed)
        theirs.append([
            (1 + (scores[:t] > scores[t]).sum() + u[t] * (scores[:t] == scores[t]).sum()) / (t + 1) for t in range(8)
        ])  # fmt: skip
    assert stats.kstest(np.ravel(ours), "uniform", method="exact").pvalue > 1e-4
    assert stats.kstest(np.ravel(theirs), "uniform", method="exact").pvalue < 1e-12
    # One after the other they are independent too.
    assert abs(np.corrcoef(np.ravel(ours)[:-1], np.ravel(ours)[1:])[0, 1]) < stats.norm.isf(5e-5) / math.sqrt(3199)


def test_p_values_that_are_not_uniform_ring_too_often():
    """1,500 exchangeable streams of 5,000 with p-values as in MAPIE 1.5, and with ours; the alarm is set at 20."""
    streams, rng = 1500, np.random.default_rng(8)
    rang = {}
    for name in ("ours", "theirs"):
        capital, top = np.full((3, streams), 1 / 3), np.ones(streams)
        for n in range(5000):
            greater = rng.integers(n + 1, size=streams)  # of a score without ties among n
            p = (greater + (rng.random(streams) if name == "ours" else 1)) / (n + 1)
            capital = 0.99 * capital + 0.01 / 3 * capital.sum(axis=0)
            capital *= 1 + np.array([[-1], [0], [1]]) * (p - 0.5)
            top = np.maximum(top, capital.sum(axis=0))
        rang[name] = int((top >= 20).sum())
    assert rang["ours"] <= stats.binom.isf(1e-4, streams, 0.05)
    assert rang["theirs"] > stats.binom.isf(1e-4, streams, 0.05)


@given(miss_streams, st.sampled_from([0.5, 0.95, 0.999]))
@settings(max_examples=40)
def test_the_interval_holds_the_means_against_which_nobody_gains(missed, confidence):
    lower, upper = monitoring.coverage_interval(missed, confidence)
    odds = np.array([sign * 2.0**k for k in range(2, -10, -1) for sign in (1, -1)])
    for t in range(1, len(missed) + 1):
        k, means = sum(missed[:t]), np.linspace(0, 1, 101)
        capital = np.exp(odds * k) / (1 - means[:, None] + means[:, None] * np.exp(odds)) ** t
        inside = 1 - means[capital.mean(axis=1) < 1 / (1 - confidence)]
        assert -1e-9 <= inside.min() - lower[t - 1] <= 0.01 + 1e-9
        assert -1e-9 <= upper[t - 1] - inside.max() <= 0.01 + 1e-9


@pytest.mark.parametrize("world", ["steady", "drifting", "spiteful"])
def test_intervals_hold_at_all_times_together_whatever_the_world_does(world):
    """The mean of the conditional probabilities leaves its interval, ever, in at most 5 % of the streams."""
    streams, length, rng = 500, 200, np.random.default_rng(11)
    flags, means = np.zeros((streams, length), dtype=bool), np.zeros((streams, length))
    total = np.zeros(streams)
    for t in range(length):
        share = flags[:, :t].mean(axis=1) if t else np.full(streams, 0.1)
        rate = {
            "steady": np.full(streams, 0.1),
            "drifting": np.full(streams, 0.02 + 0.5 * t / length),
            "spiteful": np.where(share > total / max(t, 1), 0.05, 0.35),  # away from where the misses are
        }[world]
        flags[:, t] = rng.random(streams) < rate
        total += rate
        means[:, t] = total / (t + 1)
    labels = np.broadcast_to(np.arange(1, length + 1), flags.shape)
    counts, back = np.unique([flags.cumsum(axis=1).ravel(), labels.ravel()], axis=1, return_inverse=True)
    lower, upper = (end[back].reshape(flags.shape) for end in interval_from_counts(*counts))
    left = ((1 - means < lower) | (1 - means > upper)).any(axis=1).sum()
    assert left <= stats.binom.isf(1e-6, streams, 0.05)


def test_intervals_are_narrow_enough_to_be_of_use():
    """At 1,000 labels, less than twice as wide as the interval of a test that looks once."""
    lower, upper = interval_from_counts(np.array([100]), np.array([1000]))
    once = stats.binomtest(100, 1000).proportion_ci(0.95, method="exact")
    assert upper[0] - lower[0] < 2 * (once.high - once.low)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.floats(0, 1)), max_size=25), st.integers(1, 12))
@settings(max_examples=40)
def test_one_label_at_a_time_gives_the_same_bits(stream, width):
    missed, sizes, p_values = (np.array(column) for column in zip(*stream, strict=True)) if stream else ((), (), ())
    monitor, jumper, misses = Monitor(0.1, width), Jumper(), MissAlarm(0.1)
    logs, intervals, worst, recent, rolling = [], [], [], [], []
    for miss, size, p in stream:
        monitor.step(miss, size, p, delay=size)
        logs.append([jumper.step(p), misses.step(miss)])
        assert logs[-1] == [monitor.exchangeability.log_capital, monitor.coverage.log_capital]
        status = monitor.status()
        intervals.append(status["coverage_interval"])
        worst.append(tuple(status["worst_window"].values()))
        recent.append(status["recent_coverage"])
        rolling.append(status["recent_size"])
    arrays = monitoring.jumper(p_values, log=True), monitoring.miss_alarm(missed, 0.1, log=True)
    assert same_bits(np.array(logs).reshape(-1, 2), np.stack(arrays, axis=1))
    assert same_bits(np.array(intervals).reshape(-1, 2), np.stack(monitoring.coverage_interval(missed), axis=1))
    assert worst == [tuple(monitoring.worst_window(missed[: t + 1], width)) for t in range(len(stream))]
    windows = [slice(max(0, end - width), end) for end in range(1, len(stream) + 1)]
    assert np.allclose(rolling, [np.mean(sizes[window]) for window in windows])
    assert np.allclose(recent, [1 - np.mean(missed[window]) for window in windows])


@given(miss_streams, st.integers(1, 70))
def test_the_worst_window_is_the_worst_of_all(missed, width):
    worst = monitoring.worst_window(missed, width)
    if not missed:
        assert math.isnan(worst.coverage)
        return
    width = min(width, len(missed))
    means = [1 - np.mean(missed[end - width : end]) for end in range(width, len(missed) + 1)]
    assert math.isclose(worst.coverage, min(means), abs_tol=1e-12)
    assert worst.end == width + int(np.argmin(np.round(means, 12)))


def test_long_streams_neither_overflow_nor_lose_an_expert():
    logs = monitoring.jumper(np.full(50_000, 1e-9), log=True)
    assert np.isfinite(logs).all()
    assert logs[-1] > 15_000
    assert monitoring.jumper(np.full(2000, 1e-9))[-1] == math.inf
    # The boldest expert loses all but 10⁻³⁰¹ of its first capital, and is the richest after as many misses.
    missed, starts = np.repeat([False, True], 1000), np.arange(1, 2001)
    gains = np.log(1 + np.outer(missed - 0.1, np.array(SHARES) / 0.1))
    since = gains[::-1].cumsum(axis=0)[::-1] - np.log(8 * starts * (starts + 1))[:, None]
    found = monitoring.miss_alarm(missed, 0.1, log=True)[-1]
    assert math.isclose(found, np.logaddexp.reduce(since, axis=None), rel_tol=1e-9)


def test_streams_without_labels_say_nothing():
    assert monitoring.jumper([]).size == monitoring.miss_alarm([], 0.1).size == 0
    assert [end.size for end in monitoring.coverage_interval([])] == [0, 0]
    assert monitoring.first_alarm([]) is None
    status = Monitor(0.1).status()
    assert status["labels"] == 0
    assert status["coverage"] is status["worst_window"] is status["label_delay"] is None
    assert status["coverage_interval"] == [0.0, 1.0]


def test_the_delay_is_the_median_of_the_last_window():
    monitor = Monitor(0.1, width=3)
    for delay in (100, 1, 2, 9):
        monitor.step(False, 1, delay=delay)
    assert monitor.delay == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: monitoring.jumper([0.5, 1.5]), "`p_values` must be finite, from 0 to 1; got 1.5"),
        (lambda: monitoring.jumper([math.nan]), "`p_values` must be finite, from 0 to 1; got nan"),
        (lambda: monitoring.jumper([[0.5]]), "`p_values` must have 1 dimension"),
        (lambda: monitoring.miss_alarm([0, 2], 0.1), "`missed` must hold True and False, or 1 and 0"),
        (lambda: monitoring.miss_alarm([True], 1.0), "`alpha` must lie strictly between 0 and 1"),
        (lambda: monitoring.coverage_interval([True], confidence=1), "`confidence` must lie strictly between 0 and 1"),
        (lambda: monitoring.worst_window([True], width=0), "`width` must be at least 1"),
        (lambda: monitoring.smoothed_p_values([math.nan]), "`scores` must not be NaN"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ns.InvalidInputError, match=message):
        call()
