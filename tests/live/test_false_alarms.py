"""Each documented use of the alarms: at most 1 % of exchangeable streams raise one, and drifts are noticed."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from scipy.stats import binom

import napsets as ns
from napsets.live.monitoring import Monitor
from oracles import miss_capitals
from worlds import guess

STREAMS, ALPHA = 2000, 0.1


def share_at_most(rang, share=0.01):
    """Whether so many alarms are compatible with at most this share, unless less than one in a million times."""
    return binom.sf(int(np.sum(rang)) - 1, len(rang), share) > 1e-6 and np.mean(rang) <= share


def made_at_once(labels, length, rng, *, rise=0.0, streams=STREAMS):
    """Misses of sets that split conformal prediction makes from the same labels; they may rise after 200 nodes."""
    calibration = np.sort(rng.random((streams, labels)), axis=1)
    threshold = calibration[:, [int(np.ceil((labels + 1) * (1 - ALPHA) - 1e-9)) - 1]]
    missed = rng.random((streams, length)) > threshold
    missed[:, 200:] |= rng.random((streams, length - 200)) < rise / (1 - ALPHA)
    return missed


@pytest.mark.parametrize("labels", [30, 60, 100, 1000])
def test_sets_made_at_once_raise_it_rarely(labels):
    rng = np.random.default_rng(labels)
    missed = made_at_once(labels, 600, rng)
    assert share_at_most((miss_capitals(missed, ALPHA, labels) >= 100).any(axis=1))
    if labels <= 100:  # without the number of labels, their luck is taken for drift
        assert (miss_capitals(missed, ALPHA) >= 100).any(axis=1).mean() > 0.05


def test_sets_made_one_by_one_raise_it_rarely():
    rng = np.random.default_rng(1)
    assert share_at_most((miss_capitals(rng.random((STREAMS, 600)) < ALPHA, ALPHA) >= 100).any(axis=1))


@pytest.mark.parametrize(("labels", "noticed", "delay"), [(60, 0.7, 260), (100, 0.95, 260), (1000, 0.98, 150)])
def test_a_rise_by_15_points_is_noticed(labels, noticed, delay):
    """The figures are those of the page on monitoring, with some room for chance."""
    missed = made_at_once(labels, 1000 if labels > 60 else 640, np.random.default_rng(2), rise=0.15)
    capitals = miss_capitals(missed, ALPHA, labels) >= 100
    first = np.where(capitals.any(axis=1), capitals.argmax(axis=1), -1)
    after = first[first >= 200] - 199
    assert after.size >= noticed * STREAMS
    assert np.median(after) <= delay


def test_capitals_of_many_streams_are_those_of_one():
    rng = np.random.default_rng(3)
    missed = rng.random((20, 80)) < 0.3
    for labels in (None, 9, 40):
        ours = [ns.monitoring.miss_alarm(row, ALPHA, labels) for row in missed]
        assert np.allclose(ours, miss_capitals(missed, ALPHA, labels), rtol=1e-9)


def world(rng, nodes):
    p = rng.dirichlet(np.ones(3), nodes)
    truth = (p.cumsum(axis=1) > rng.random((nodes, 1))).argmax(axis=1)
    return p, truth, ns.Graph.from_edge_index(rng.integers(0, nodes, (2, 2 * nodes)), nodes)


METHODS = {
    "split": lambda: ns.SplitConformal(),
    "naps": lambda: ns.NAPS(pool=10),
    "exact": lambda: ns.NAPS(exact=True, pool=10),
    "by class": lambda: ns.SplitConformal(by="class"),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels", [60, 200])
def test_files_of_sets_in_the_order_of_their_labels(method, labels):
    """What `evaluate --in-order` does with each method's file: misses, and how many labels set the level."""

    rng, rang = np.random.default_rng(7), []
    for _ in range(STREAMS):
        p, truth, graph = world(rng, labels + 400)
        chosen = METHODS[method]()
        args = (graph, p) if chosen.needs_graph else (p,)
        calibrated = chosen.calibrate(*args, truth, np.arange(labels))
        sets = calibrated.predict(np.arange(labels, labels + 400), ALPHA)
        missed = ~sets.contains(truth)
        rang.append(ns.monitoring.miss_alarm(missed, ALPHA, calibrated.level_size).max() >= 100)
    assert share_at_most(rang), np.mean(rang)


def live_alarms(rng, method, mode, steered=None, labels=300, first=60):
    """Which alarms a living graph raises: sets at the labels' arrival, logged at once, or logged some nodes before."""
    p, truth, graph = world(rng, labels + first)
    live = ns.Live(method, alpha=ALPHA, steered=steered, seed=int(rng.integers(1 << 30)))
    nodes = np.arange(labels + first)
    live.add_nodes(nodes, p)
    live.add_edges(np.repeat(nodes, graph.degrees), graph.indices)
    live.add_labels(nodes[:first], truth[:first])
    step = {"at arrival": 0, "at once": labels, "late": 20}[mode]
    for start in range(first, nodes.size, step or labels):
        rows = nodes[start : start + (step or labels)]
        if step:
            live.predict(rows, log=True)
        if mode == "late" and start > first:
            live.add_labels(rows - step, truth[rows - step])
        elif mode != "late":
            live.add_labels(rows, truth[rows])
    return [alarm["rang"] is not None for alarm in live.status()["judged"]["alarms"].values()]


def exact(share):
    from napsets.levels import Exact
    from napsets.localisers import Everyone
    from napsets.methods import Method
    from napsets.scores import APS

    return Method(APS(), Everyone(), Exact(share))


LIVE = [
    *((method, mode, None) for method in ("split", "naps", "naps-exact") for mode in ("at arrival", "at once", "late")),
    *((exact(share), mode, None) for share in (0.5, 0.8) for mode in ("at arrival", "late")),
    ("split", "at arrival", ns.Steered("aci")),
    ("split", "at arrival", ns.Steered("dtaci")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "mode", "steered"), LIVE, ids=str)
def test_living_graphs(method, mode, steered):
    rng = np.random.default_rng(11)
    rang = np.array([live_alarms(rng, method, mode, steered) for _ in range(STREAMS)])
    assert share_at_most(rang[:, 0]), rang.mean(axis=0)
    assert share_at_most(rang[:, 1]), rang.mean(axis=0)


def test_labels_of_the_reference_enter_no_alarm():
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=400)
    live = ns.Live(exact(0.8), alpha=ALPHA)
    live.add_nodes(np.arange(400), guess(truth, 1.0, rng))
    live.add_labels(np.arange(400), truth)
    judged, record = live.status()["judged"], live._fold.record
    tests = {alarm["tests"] for alarm in judged["alarms"].values()}
    assert tests == {int((~np.isnan(record["p_value"])).sum())}
    assert tests.pop() < 0.3 * judged["labels"]


def test_alarms_are_dated_in_labels_and_by_the_clock():
    """Every second label is not tested: the alarm of the tenth test is that of the twentieth label."""
    monitor = Monitor(ALPHA)
    for t in range(40):
        monitor.step(True, 1, p_value=0.01, tested=t % 2 == 1, time=f"day {t + 1}")
    for alarm, name in ((monitor.coverage, "coverage"), (monitor.exchangeability, "exchangeability")):
        status = monitor.status()["alarms"][name]
        assert (status["rang"], status["time"]) == (2 * alarm.alarm, f"day {2 * alarm.alarm}")
        assert status["tests"] == 20


@pytest.mark.parametrize("restart", [False, True])
def test_a_living_graph_dates_both_alarms_after_the_drift(restart, tmp_path):
    """Labels drift after 300: no alarm is dated before, and its time is that of the label that raised it."""
    rng = np.random.default_rng(8)
    truth = rng.integers(3, size=900)
    live = ns.Live("naps-exact", alpha=ALPHA)
    live.add_nodes(np.arange(900), guess(truth, np.where(np.arange(900) < 300, 3.0, 0.0), rng))
    for start in range(0, 900, 100):
        live.add_labels(np.arange(start, start + 100), truth[start : start + 100])
    if restart:
        live.save(tmp_path / "store")
        live = ns.Live.open(tmp_path / "store")
    record, alarms = live._fold.record, live.status()["judged"]["alarms"]
    for alarm in alarms.values():
        assert 300 < alarm["rang"] < 700
        arrived = datetime.fromisoformat(alarm["time"]).timestamp()
        assert arrived == int(record["time"][alarm["rang"] - 1])
