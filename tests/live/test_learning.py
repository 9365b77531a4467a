"""Methods that learn or choose: between refits, sets are those of a batch with the same split, choice and exponents."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from live_model import present
from napsets.live.state import in_reference
from napsets.methods.data import CalibrationData
from napsets.scores.evidence import walk
from napsets.scores.informed import evidence_of

NODES = 260
RNG = np.random.default_rng(2)
GROUP = RNG.integers(0, 3, NODES)
P = 0.6 * RNG.dirichlet(np.ones(3), NODES) + 0.4 * np.eye(3)[GROUP]
P /= P.sum(axis=1, keepdims=True)
ENDS = RNG.integers(0, NODES, (2, 1500))
ENDS = ENDS[:, GROUP[ENDS[0]] == GROUP[ENDS[1]]]


def started(method, labels):
    live = ns.Live(method, alpha=0.2)
    live.add_nodes(np.arange(NODES), P)
    live.add_edges(*ENDS)
    live.add_labels(np.arange(labels), GROUP[:labels])
    return live


@pytest.mark.parametrize("method", ["informed", "auto", "auto-small"])
@pytest.mark.parametrize("labels", [8, 125, 200])
def test_sets_are_those_of_a_batch_with_the_same_split_and_choice(method, labels):
    live = started(method, labels)
    made = live._fold.calibration.map
    reference = in_reference(0, np.arange(labels), 0.5)
    known = np.arange(labels)
    parts = known[reference & (known < made.arrived)], known[~reference]
    if not made.method.level.holds_out_labels:
        parts = known, known[:0]
    data = CalibrationData(ns.Graph.from_edge_index(ENDS, NODES), P, GROUP, known, np.arange(NODES))
    chosen = made.method
    scored = data.scored_in_parts(chosen.score, 0, *parts, learned=made.learned)
    batch = chosen.on(scored).predict(positions=np.arange(labels, NODES), alpha=0.2)
    sets = live.predict()
    assert np.array_equal(sets.member, batch.member)
    assert np.array_equal(sets.thresholds, batch.thresholds)


@pytest.mark.parametrize("method", ["informed", "auto", "auto-small"])
@pytest.mark.parametrize("sized", [20_000, 50])
def test_what_is_chosen_and_learned_is_what_a_batch_chooses_and_learns(method, sized, monkeypatch):
    monkeypatch.setattr("napsets.methods.auto.MOST_SIZE_NODES", sized)
    monkeypatch.setattr("napsets.live.calibration.MOST_SIZE_NODES", sized)
    live = started(method, 180)
    live.remove_nodes([3, 200])
    live.refit()
    made, (data, _) = live._fold.calibration.map, live._state.batch()
    if method == "informed":
        expected = data.scored_in_parts(live.method.score, 0, *data.split).bound
    else:
        calibrated = live.method.calibrate_data(data, followed=True)
        assert made.method == calibrated.method
        assert made.choice.candidates == calibrated.choice.candidates
        expected = evidence_of(calibrated.score)
    assert made.learned.exponents == expected.learned.exponents
    assert np.array_equal(made.learned.shares, expected.learned.shares)
    assert np.array_equal(made.learned.table, expected.learned.table)


def test_refits_come_when_the_reference_has_grown_by_a_quarter_or_when_asked():
    live = started("informed", 60)
    reference = np.cumsum(in_reference(0, np.arange(60), 0.5))
    due, last = 1, 0
    for size in reference:
        if size >= due:
            last, due = size, 1.25 * size
    assert live._fold.calibration.map.labels == last
    live.refit()
    assert live._fold.calibration.map.labels == reference[-1]


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_walks_are_taken_again_when_the_reference_has_doubled_or_lost_a_label_or_when_asked(share, monkeypatch):
    walked = []
    monkeypatch.setattr("napsets.live.surroundings._FEWEST_WALKED", share)
    monkeypatch.setattr(
        "napsets.live.surroundings.walk", lambda *given: walked.append(given[1].nodes.size) or walk(*given)
    )
    live, taken = started("informed", 0), []
    for node in range(120):
        before = live._fold.calibration.map
        live.add_labels([node], GROUP[node : node + 1])
        made = live._fold.calibration.map
        if made is not before and (not taken or made.labels >= 2 * taken[-1]):
            taken.append(made.labels)
    assert walked == [size for size in taken if size >= share * NODES]
    live.refit()
    assert walked[-1] == live.status()["reference"]
    gone = np.flatnonzero(live._state.nodes["is_reference"])[:1]
    live.remove_labels(gone)
    for node in range(120, 160):
        live.add_labels([node], GROUP[node : node + 1])
    assert walked[-1] == live._fold.calibration.map.labels > taken[-1]
    assert np.array_equal(
        live.predict(np.arange(200, 220)).thresholds,
        present(live)[1].predict(positions=np.arange(200, 220), alpha=0.2).thresholds,
    )


@pytest.mark.parametrize("method", ["informed", "auto"])
def test_any_batching_and_any_restart_give_the_same_bits(method, tmp_path):
    live = started(method, 40)
    other = ns.Live(method, alpha=0.2)
    other.add_nodes(np.arange(NODES), P)
    for source, target in ENDS.T:
        other.add_edges([source], [target])
    other.add_labels(np.arange(17), GROUP[:17])
    other.save(tmp_path / "store")
    with ns.Live.open(tmp_path / "store") as again:
        for node in range(17, 40):
            again.add_labels([node], [GROUP[node]])
        assert again.status() | {"events": 0} == live.status() | {"events": 0}
        assert np.array_equal(again.predict().member, live.predict().member)


def test_labels_that_come_after_all_others_were_removed_count_with_their_own_scores():
    live = started("auto", 10)
    live.remove_labels(np.arange(10))
    live.add_labels(np.arange(20, 60), GROUP[20:60])
    batch = present(live)[1].predict(positions=np.arange(100, 120), alpha=0.2)
    assert np.array_equal(live.predict(np.arange(100, 120)).thresholds, batch.thresholds)


def test_many_nodes_without_edges_have_sets():
    live = started("informed", 60)
    live.add_nodes(np.arange(NODES, NODES + 50), P[:50])
    batch = present(live)[1].predict(positions=np.arange(NODES, NODES + 50), alpha=0.2)
    sets = live.predict(np.arange(NODES, NODES + 50))
    assert np.array_equal(sets.thresholds, batch.thresholds)
    assert np.array_equal(sets.member, batch.member)


def test_methods_that_cannot_follow_are_refused():
    for method in ("daps", "by-class", "naps-lengths", ns.make_method("auto", score="cqr")):
        with pytest.raises(ns.InvalidInputError, match="must be one that can follow a changing graph"):
            ns.Live(method)
