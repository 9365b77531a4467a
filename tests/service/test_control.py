"""What an operator changes: wrong labels, outputs of a new model, alarms that were seen, how the level is steered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import napsets as ns
from napsets import __version__
from napsets.live.live import Live
from napsets.service.app import make_app

from .conftest import CLASSES, Client, missing, small_live


def test_labels_are_corrected_and_removed_as_one_batch(client: httpx.Client) -> None:
    twin = small_live()
    before = client.get("/status").json()
    corrections = [{"node": "n0", "label": "spam"}, {"node": "n2", "label": None}, {"node": "n4", "label": "ham"}]
    answer = client.put("/labels", json={"labels": corrections}, headers={"Idempotency-Key": "a"})
    assert answer.json() == {"events": before["events"] + 5, "repeated": False}
    assert client.put("/labels", json={"labels": corrections}, headers={"Idempotency-Key": "a"}).json()["repeated"]
    assert client.get("/status").json()["labels"] == before["labels"] - 1
    twin.update([("remove_labels", ["n0", "n2", "n4"]), ("add_labels", ["n0", "n4"], [1, 0])])
    sets = client.post("/sets", json={"nodes": ["n1", "n2"]}).json()["sets"]
    assert [row["threshold"] for row in sets] == twin.predict(["n1", "n2"]).thresholds.tolist()
    refused = client.put("/labels", json={"labels": [{"node": "n1", "label": 0}]})
    assert (refused.status_code, "with a label" in refused.json()["error"]) == (422, True)
    assert client.put("/labels", json={"labels": []}).json()["repeated"] is False


def alarms(client: httpx.Client) -> dict[str, Any]:
    return {name: alarm["rang"] for name, alarm in client.get("/status").json()["judged"]["alarms"].items()}


def test_an_alarm_is_started_again_and_stays_so_after_a_restart(store: Path) -> None:
    misses = missing(store)
    with Client(make_app(Live.open(store))) as http:
        assert http.post("/labels", json=misses).is_success
        assert alarms(http)["coverage"] is not None
        other = alarms(http)["exchangeability"]
        judged = http.get("/status").json()["judged"]
        assert http.post("/alarms", json={"alarms": ["coverage"]}).is_success
        assert alarms(http) == {"exchangeability": other, "coverage": None}
        again = http.get("/status").json()["judged"]
        assert again["alarms"]["coverage"]["tests"] == 0
        assert {name: again[name] for name in ("labels", "coverage")} == {
            name: judged[name] for name in ("labels", "coverage")
        }
        history = http.get("/status?history=true").json()["history"]
        assert http.post("/alarms", json={"alarms": ["smoke"]}).status_code == 422
    for snapshot in (True, False):
        if not snapshot:
            (store / "snapshot.npz").unlink()
        with Client(make_app(Live.open(store))) as http:
            assert http.get("/status").json()["judged"] == again
            assert http.get("/status?history=true").json()["history"] == history


def test_steering_is_chosen_changed_and_ended(store: Path) -> None:
    misses = missing(store)
    with Client(make_app(Live.open(store))) as http:
        assert http.get("/status").json()["steered"] is None
        assert http.put("/steering", json={"kind": "aci", "rate": 0.05}).is_success
        assert http.post("/labels", json=misses).is_success
        steered = http.get("/status").json()["steered"]
        assert (steered["kind"], steered["rate"]) == ("aci", 0.05)
        assert steered["level"] < 0.2
        level = http.get("/sets/n1").json()["alpha"]
        assert level == max(0.0, steered["level"])
        for wrong in ({"kind": "pid"}, {"kind": "dtaci", "rate": 0.1}, {"kind": None, "rate": 0.1}, {}):
            assert http.put("/steering", json=wrong).status_code == 422
    with Client(make_app(Live.open(store))) as http:
        assert http.get("/status").json()["steered"] == steered
        assert http.put("/steering", json={"kind": None}).is_success
        assert http.get("/sets/n1").json()["alpha"] == 0.2


@pytest.mark.parametrize("kinds", [(None, "aci"), ("aci", "dtaci"), ("dtaci", None)])
def test_a_set_that_was_logged_before_keeps_its_level_when_steering_changes(tmp_path: Path, kinds: Any) -> None:
    before, after = (None if kind is None else ns.Steered(kind) for kind in kinds)
    live = small_live(steered=before)
    level = live.predict([f"n{i}" for i in range(1, 60, 2)], log=True).alpha
    live.steer(after)
    live.save(tmp_path / "store")
    with Live.open(tmp_path / "store") as again:
        for twin in (live, again):
            twin.add_labels([f"n{i}" for i in range(1, 60, 2)], np.arange(30) % 3)
        assert again.status() == live.status()
        assert (live.status()["steered"] is None) == (after is None)
        assert live._fold.record["level"][-30:].tolist() == [level] * 30


def test_the_status_names_version_method_and_classes(client: httpx.Client) -> None:
    status = client.get("/status").json()
    assert status["version"] == __version__
    assert status["classes"] == list(CLASSES)
    assert status["directed"] is False
    assert json.dumps(status["method"])
    assert status["chosen"] == status["method"]
