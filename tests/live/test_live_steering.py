"""A living graph whose level is steered: the fold of its marks and p-values, whatever is late, logged or restarted."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.live.events import unpack

NODES, ALPHA = 300, 0.2
RNG = np.random.default_rng(5)
P = RNG.dirichlet(np.ones(3), NODES)
#: The model grows worse with time.
P_TRUE = P + np.linspace(0, 1.5, NODES)[:, None] * RNG.dirichlet(np.ones(3), NODES)
Y = (np.cumsum(P_TRUE / P_TRUE.sum(axis=1, keepdims=True), axis=1) > RNG.random((NODES, 1))).argmax(axis=1)
EDGES = RNG.integers(0, NODES, (2, 700))


def started(steered, method="naps-exact", alpha=ALPHA):
    live = ns.Live(method, alpha=alpha, steered=steered)
    live.add_nodes(np.arange(NODES), P)
    live.add_edges(*EDGES)
    return live


def levels(live):
    return live._fold.record["level"]


@pytest.mark.parametrize("method", ["split", "naps-exact", "informed"])
@pytest.mark.parametrize("steered", [ns.Steered("dtaci"), ns.Steered(rate=0.05)])
def test_levels_are_those_of_the_stream_of_p_values(method, steered):
    live, p_values = started(steered, method), []
    for node in range(120):
        p_values.append(live.p_values([node])[0, Y[node]])
        sets = live.predict([node])
        live.add_labels([node], [Y[node]])
        assert live._fold.record["covered"][-1] == sets.member[0, Y[node]]
    assert np.array_equal(levels(live), steered.levels(p_values, ALPHA))
    assert live.status()["steered"]["level"] == live._fold.level


def test_late_labels_are_judged_by_the_set_and_the_level_that_were_logged():
    steered, delay = ns.Steered("aci", rate=0.1), 20
    live, members, p_values = started(steered, "split"), [], []
    for node in range(150):
        members.append(live.predict([node], log=True).member[0])
        if node >= delay:
            late = node - delay
            p_values.append(live.p_values([late])[0, Y[late]])
            live.add_labels([late], [Y[late]])
    covered = [bool(members[node][Y[node]]) for node in range(len(p_values))]
    assert live._fold.record["covered"].tolist() == covered
    # On the side of the level on which the set was: whether it missed is what counts.
    stream = [
        max(p, np.nextafter(level, 1)) if inside else min(p, level)
        for p, level, inside in zip(p_values, levels(live), covered, strict=True)
    ]
    expected = steered.levels(np.clip([*stream, *[1.0] * delay], 0, 1), ALPHA, delay)
    assert np.array_equal(levels(live), expected[: len(p_values)])
    assert live.status()["steered"]["delay"] > 10


def test_predictions_are_events_with_their_node_alpha_level_and_set():
    live = started(ns.Steered())
    live.add_labels(np.arange(40), Y[:40])
    before, level = live.status(), live._fold.level
    sets = live.predict([100, 101], log=True)
    *_, row = live._store.rows()
    columns = unpack(row.payload)
    assert (row.kind, row.events, live.status()["events"]) == ("predictions", 2, before["events"] + 2)
    assert columns["ids"].tolist() == [100, 101]
    assert columns["alpha"].tolist() == [ALPHA, ALPHA]
    assert columns["level"].tolist() == [level, level] == [sets.alpha, sets.alpha]
    assert np.array_equal(columns["member"], sets.member)


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("steered", [None, ns.Steered("dtaci")])
def test_a_restart_changes_nothing(snapshot, steered, tmp_path):
    live = started(steered)
    live.add_labels(np.arange(60), Y[:60])
    live.predict(np.arange(100, 140), log=True)
    live.add_labels(np.arange(60, 110), Y[60:110])
    live.save(tmp_path / "store")
    if not snapshot:
        (tmp_path / "store" / "snapshot.npz").unlink()
    with ns.Live.open(tmp_path / "store") as again:
        for one in (live, again):
            one.add_labels(np.arange(110, 150), Y[110:150])
        assert again.status() == live.status()
        assert np.array_equal(levels(again), levels(live))
        assert np.array_equal(again.predict().member, live.predict().member)


def test_the_share_of_misses_is_right_in_the_long_run_whatever_the_world_does():
    rate = 0.05
    live = started(ns.Steered("aci", rate=rate), "split")
    live.add_labels(np.arange(NODES), Y)
    misses = 1.0 - live._fold.record["covered"].mean()
    assert abs(misses - ALPHA) <= (1.0 + rate) / (rate * NODES)


def test_levels_beyond_0_and_1_give_full_and_empty_sets():
    live = started(ns.Steered("aci", rate=1.0), "split", 0.5)
    live.add_labels(np.arange(200), Y[:200])
    used, sizes = levels(live), live._fold.record["size"]
    assert set(sizes[used <= 0]) == {3}
    assert set(sizes[used >= 1]) == {0}


def test_what_cannot_be_steered_is_refused():
    with pytest.raises(ns.InvalidInputError, match=r"`steered` must be None or a Steered, such as Steered\(\)"):
        ns.Live("split", steered="dtaci")
    with pytest.raises(ns.InvalidInputError, match=r"`alpha` must be None for sets that are logged; got 0\.3"):
        started(None).predict([0], 0.3, log=True)
