"""Disks that are full or read-only, snapshots and logs that are damaged, clocks that jump."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from napsets.errors import FileFormatError
from napsets.live.live import Live
from napsets.service.app import make_app

from .conftest import Client, small_live

LABEL = {"labels": [{"node": "n1", "label": "ham"}]}


def test_on_a_full_disk_nothing_is_acknowledged_or_changed(store: Path) -> None:
    live = Live.open(store)
    connection = live._store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with Client(make_app(live)) as http:
        before = http.get("/status").json()
        big = {"nodes": [{"node": f"x{i}", "probabilities": [0.5, 0.25, 0.25]} for i in range(5000)]}
        answer = http.post("/nodes", json=big)
        assert answer.status_code == 503
        assert "full" in answer.json()["error"]
        after = http.get("/status").json()
        assert {key: after[key] for key in ("nodes", "events")} == {key: before[key] for key in ("nodes", "events")}
        assert http.get("/sets/x1").status_code == 404
        connection.execute("PRAGMA max_page_count = 1000000")
        assert http.post("/nodes", json=big).status_code == 200
        assert http.get("/sets/x1").status_code == 200
    with Live.open(store) as again:
        assert again.status()["nodes"] == 5060


def test_on_a_disk_that_can_only_be_read_nothing_is_acknowledged_or_changed(store: Path) -> None:
    live = Live.open(store)
    live._store._connection.execute("PRAGMA query_only = ON")
    with Client(make_app(live)) as http:
        answer = http.post("/labels", json=LABEL)
        assert answer.status_code == 503
        assert "readonly" in answer.json()["error"]
        assert http.get("/status").json()["labels"] == 30
        assert http.get("/sets/n1").status_code == 200


def test_a_clock_that_jumps_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(make_app(Live.open(store))) as http:
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert http.post("/labels", json=LABEL).status_code == 200
        monkeypatch.setattr(time, "time", lambda: 1e12)
        assert http.get("/sets/n1").status_code == http.get("/status").status_code == 200


def test_a_damaged_log_is_refused_and_what_is_whole_can_be_saved(store: Path, tmp_path: Path) -> None:
    import sqlite3

    with Live.open(store) as live:
        live.add_labels(["n1"], [0])
        events = live.status()["events"]
        live.add_labels(["n3"], [1])
    for snapshot in store.glob("*.npz"):
        snapshot.unlink()
    connection = sqlite3.connect(store / "log.sqlite")
    connection.execute("UPDATE log SET payload = payload || x'00' WHERE first = (SELECT max(first) FROM log)")
    connection.commit()
    connection.close()
    with pytest.raises(FileFormatError, match=rf"1 to {events:}"):
        Live.open(store)
    assert Live.recover(store, tmp_path / "saved") == events
    twin = small_live()
    twin.add_labels(["n1"], [0])
    with Live.open(tmp_path / "saved") as saved:
        assert saved.predict().same_as(twin.predict())


def test_a_damaged_snapshot_is_made_anew_from_the_log(store: Path) -> None:
    with Live.open(store) as live:
        live.add_labels(["n1"], [0])
        expected = live.predict()
    snapshot = store / "snapshot.npz"
    whole = snapshot.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:200] + b"\0" * 50 + whole[250:], b"PK\3\4 no archive", None):
        snapshot.unlink(missing_ok=True)
        if damaged is not None:
            snapshot.write_bytes(damaged)
        with Live.open(store, read_only=True) as live:
            assert live.predict().same_as(expected)


@pytest.mark.slow
def test_ten_minutes_of_requests_need_no_more_memory_than_the_data(store: Path) -> None:
    import psutil

    from .test_killed import Server

    server = Server(store)
    process, samples, end = psutil.Process(server.process.pid), [], time.monotonic() + 600
    asked = 0
    while time.monotonic() < end:
        for i in range(200):
            assert server.http.get(f"/sets/n{i % 60}").status_code == 200
        assert server.http.post(
            "/probabilities", json={"nodes": [{"node": "n1", "probabilities": [0.2, 0.3, 0.5]}]}
        ).is_success
        assert server.http.get("/metrics").status_code == server.http.get("/status?history=true").status_code == 200
        asked += 203
        samples.append(process.memory_info().rss)
    import signal

    server.stop(signal.SIGTERM)
    later = samples[len(samples) // 5 :]
    assert asked > 10_000
    assert max(later) - later[0] < 20 << 20, f"{max(later) - later[0]:,} bytes more after {asked:,} requests"


def test_readers_do_not_hinder_the_writer(store: Path) -> None:
    with Live.open(store) as live, Live.open(store, read_only=True) as reader:
        live.add_labels(["n1"], [0])
        assert reader.status()["labels"] == 30  # as it was when it was opened
        with Live.open(store, read_only=True) as later:
            assert later.status()["labels"] == 31


def test_requests_that_cannot_be_answered_in_time_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from napsets.service.limits import Limits

    live = Live.open(store)
    monkeypatch.setattr(live, "predict", lambda *_: time.sleep(1.0))
    with Client(make_app(live, limits=Limits(seconds=0.2))) as http:
        answer: httpx.Response = http.get("/sets/n1")
        assert answer.status_code == 503
        assert "busy" in answer.json()["error"]
