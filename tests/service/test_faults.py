"""Disks that are full or read-only, snapshots and logs that are damaged, clocks that jump."""

from __future__ import annotations

import os
import random
import shutil
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
        ready = http.get("/readyz")
        assert (ready.status_code, "bytes left" in ready.json()["error"]) == (503, True)
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


def test_a_batch_that_cannot_be_applied_is_answered_with_500_and_taken_back(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise InvalidInputError("`labels` must be something else")

    with Client(make_app(Live.open(store))) as http:
        before = counts(http)
        with monkeypatch.context() as patch:
            patch.setattr("napsets.live.state.State.add_label", fault)
            answer = http.post("/labels", json=LABEL, headers={"Idempotency-Key": "a"})
        assert (answer.status_code, "Nothing was changed" in answer.json()["error"]) == (500, True)
        assert counts(http) == before
        assert http.get("/sets/n1").status_code == 200
        assert http.post("/labels", json=LABEL, headers={"Idempotency-Key": "a"}).json()["repeated"] is False
    with Client(make_app(Live.open(store))) as http:
        assert http.get("/status").json()["labels"] == 31


def test_one_id_of_four_million_letters_is_refused_at_once_and_the_store_opens_again(store: Path) -> None:
    nodes = [{"node": f"short {i}", "probabilities": [0.2, 0.3, 0.5]} for i in range(3000)]
    with Client(make_app(Live.open(store))) as http:
        before = counts(http)
        answer = http.post("/nodes", json={"nodes": [*nodes, nodes[0] | {"node": "x" * 4_000_000}]})
        assert (answer.status_code, "at most 1,024 bytes" in answer.json()["error"]) == (422, True)
        assert counts(http) == before
        assert http.post("/nodes", json={"nodes": [*nodes, nodes[0] | {"node": "x" * 1024}]}).status_code == 200
    with Live.open(store) as live:
        assert live.status()["nodes"] == 60 + 3001


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_jumps_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    twin, clock = small_live(), time.time
    twin.add_labels(["n1"], [0])
    with Client(make_app(Live.open(store))) as http:
        assert http.get("/sets/n1").status_code == 200
        monkeypatch.setattr(time, "time", lambda: clock() + jump)
        assert http.post("/labels", json=LABEL).status_code == 200
        assert http.get("/status").status_code == 200
    with Live.open(store) as live:
        assert live.predict().same_as(twin.predict())


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
