"""Disks that are full or read-only, snapshots and logs that are damaged, clocks that jump."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from napsets.errors import FileFormatError, InvalidInputError
from napsets.live.live import Live
from napsets.live.logged import read_snapshot
from napsets.live.store import Store
from napsets.service.app import make_app

from .conftest import Client, small_live

LABEL = {"labels": [{"node": "n1", "label": "ham"}]}


BIG = {"nodes": [{"node": f"x{i}", "probabilities": [0.5, 0.25, 0.25]} for i in range(20_000)]}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB of its own; to mount one needs root."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("to mount a disk needs root on Linux")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def counts(http: httpx.Client) -> dict[str, int]:
    status = http.get("/status").json()
    return {name: status[name] for name in ("nodes", "edges", "labels", "events")}


def test_on_a_full_disk_nothing_is_acknowledged_or_changed(disk: Path) -> None:
    small_live().save(disk / "store")
    with Client(make_app(Live.open(disk / "store"))) as http:
        before = counts(http)
        with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))
        for _ in range(3):
            answer = http.post("/nodes", json=BIG)
            assert answer.status_code == 503
            assert "Nothing was changed" in answer.json()["error"]
            assert counts(http) == before
        assert http.get("/sets/x1").status_code == 404
        assert http.get("/sets/n1").status_code == 200
        (disk / "filler").unlink()
        assert http.get("/readyz").status_code == 200
        assert http.post("/labels", json=LABEL, headers={"Idempotency-Key": "a"}).status_code == 200
        after = counts(http)
    with Live.open(disk / "store") as again:
        assert again.status()["events"] == after["events"] == before["events"] + 1


def test_a_snapshot_that_finds_no_room_fails_no_batch(
    disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("napsets.live.logged._TAIL", 1)
    small_live().save(disk / "store")
    live, twin = Live.open(disk / "store"), small_live()
    twin.add_labels(["n1"], [0])
    with Client(make_app(live)) as http:
        live._kept = 0  # so that the next batch brings a snapshot
        room = 64 << 10
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "filler").write_bytes(bytes(free - room))
        monkeypatch.setattr("napsets.live.logged.write_snapshot", full)
        assert http.post("/labels", json=LABEL).status_code == 200
        assert http.get("/status").json()["labels"] == 31
    assert "no snapshot" in caplog.text
    (disk / "filler").unlink()
    with Live.open(disk / "store") as again:
        assert again.predict().same_as(twin.predict())


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("left", ["clean", "killed"])
def test_a_store_on_a_disk_that_can_only_be_read_is_read_and_not_written(disk: Path, left: str) -> None:
    store = disk / "store"
    small_live().save(store)
    live = Live.open(store)
    live.add_labels(["n1"], [0])
    if left == "killed":  # the log as it is while it is written to, without the files of the other connection's lock
        shutil.copytree(store, disk / "copy")
        store = disk / "copy"
    live.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(InvalidInputError, match="can be written to"):
        Live.open(store)
    with Live.open(store, read_only=True) as reader:
        assert reader.status()["labels"] == 31
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


def test_on_a_disk_that_turns_read_only_nothing_is_acknowledged_or_changed(store: Path) -> None:
    live = Live.open(store)
    live._store._connection.execute("PRAGMA query_only = ON")
    with Client(make_app(live)) as http:
        answer = http.post("/labels", json=LABEL)
        assert answer.status_code == 503
        assert "readonly" in answer.json()["error"]
        assert http.get("/status").json()["labels"] == 30
        assert http.get("/sets/n1").status_code == 200
        assert http.get("/readyz").status_code == 503


def test_a_fault_after_the_log_was_written_stops_the_service_until_it_is_started_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live.open(store)

    def fault(*_: object) -> None:
        raise InvalidInputError("`labels` must be something else")

    with Client(make_app(live)) as http, monkeypatch.context() as patch:
        patch.setattr("napsets.live.state.State.add_label", fault)
        answer = http.post("/labels", json=LABEL, headers={"Idempotency-Key": "a"})
        assert answer.status_code == 503  # and not a refusal that changed nothing
        assert "start it again" in http.get("/sets/n1").json()["error"]
    with Client(make_app(Live.open(store))) as http:
        assert http.post("/labels", json=LABEL, headers={"Idempotency-Key": "a"}).json()["repeated"] is True
        assert http.get("/status").json()["labels"] == 31


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_jumps_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    twin, clock = small_live(), time.time
    twin.add_labels(["n1"], [0])
    with Client(make_app(Live.open(store))) as http:
        assert http.get("/sets/n1").status_code == 200
        monkeypatch.setattr(time, "time", lambda: clock() + jump)
        assert http.post("/labels", json=LABEL).status_code == 200
        assert http.get("/status").status_code == 200
        slowest = http.get("/status").json()["slowest"]
        assert len(slowest) == 3  # none is forgotten, and none is kept for longer than an hour
        assert min(abs(row["at"] - clock() - jump) for row in slowest) < 60
    with Live.open(store) as live:
        assert live.predict().same_as(twin.predict())


def test_the_slowest_requests_are_forgotten_after_an_hour_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from napsets.service.guard import Requests

    requests = Requests()
    requests.add("GET", "/", 200, 9.0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert len(requests.slowest()) == 1
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3601)
    assert requests.slowest() == []


def test_a_damaged_log_is_refused_and_what_is_whole_can_be_saved(store: Path, tmp_path: Path) -> None:
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


def test_events_that_a_start_replayed_are_in_the_snapshot_after_a_good_end(store: Path) -> None:
    snapshot = store / "snapshot.npz"
    older = snapshot.read_bytes()
    with Live.open(store) as live:
        live.add_labels(["n1"], [0])
        expected = live.predict()
    for left in (older, None):  # as after a kill, and where the snapshot was deleted
        snapshot.unlink()
        if left is not None:
            snapshot.write_bytes(left)
        Live.open(store).close()
        assert read_snapshot(store).events == Store.open(store, read_only=True).events  # type: ignore[union-attr]
        with Live.open(store, read_only=True) as again:
            assert again.predict().same_as(expected)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a file's bytes with a bit turned, a piece overwritten, or the end cut off."""
    at, size = rng.randrange(len(data)), rng.choice((1, 8, 64, 512))
    size = min(size, len(data) - at)
    pieces = (bytes([data[at] ^ (1 << rng.randrange(8))]), bytes(size), b"\xff" * size, rng.randbytes(size), None)
    piece = rng.choice(pieces)
    return data[:at] if piece is None else data[:at] + piece + data[at + len(piece) :]


def damage_and_open(folder: Path, name: str, seed: int) -> str:
    """Damage one file of a store; it opens as it was, or is refused in a sentence with what can be saved."""
    rng, twin = random.Random(seed), small_live()
    twin.add_labels(["n1"], [0], key="k")
    twin.save(folder / "store")
    file = folder / "store" / name
    file.write_bytes(damaged(file.read_bytes(), rng))
    if name != "snapshot.npz" and rng.random() < 0.5:
        (folder / "store" / "snapshot.npz").unlink()
    try:
        with Live.open(folder / "store", read_only=rng.random() < 0.5) as live:
            assert live.predict().same_as(twin.predict())
            assert live.status() == twin.status()
        return "same"
    except FileFormatError:
        assert name != "snapshot.npz"
    with suppress(FileFormatError):
        events = Live.recover(folder / "store", folder / "saved")
        with Live.open(folder / "saved") as saved:
            assert saved.status()["events"] == events
        return "saved"
    return "lost"


@pytest.mark.parametrize("name", ["snapshot.npz", "log.sqlite"])
def test_whatever_is_damaged_no_store_opens_as_another(tmp_path: Path, name: str) -> None:
    outcomes = []
    for seed in range(60):
        (tmp_path / str(seed)).mkdir()
        outcomes.append(damage_and_open(tmp_path / str(seed), name, seed))
    assert "same" in outcomes
    assert ("saved" in outcomes) == (name == "log.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["snapshot.npz", "log.sqlite"])
def test_whatever_is_damaged_no_store_opens_as_another_in_many_cases(tmp_path: Path, name: str) -> None:
    for seed in range(60, 2000):
        folder = tmp_path / str(seed)
        folder.mkdir()
        damage_and_open(folder, name, seed)
        shutil.rmtree(folder)


def test_a_log_that_ends_before_its_snapshot_is_refused(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "older")
    with Live.open(store) as live:
        live.add_labels(["n1"], [0])
    shutil.copy(tmp_path / "older" / "log.sqlite", store / "log.sqlite")
    with pytest.raises(FileFormatError, match=r"delete snapshot\.npz"):
        Live.open(store)
    (store / "snapshot.npz").unlink()
    with Live.open(store) as live:
        assert live.status()["labels"] == 30
