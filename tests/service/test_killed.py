"""A service that is killed at any moment has lost nothing that it acknowledged, and shows no half of a batch."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from napsets.live.live import Live
from skips import lacking

from .conftest import small_live


class Server:
    """A service in a process of its own."""

    def __init__(self, store: Path, *options: str) -> None:
        command = [sys.executable, "-m", "napsets", "serve", str(store), "--port", "0", "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.url = line.split('"url": "')[1].split('"')[0]
        self.http = httpx.Client(base_url=self.url, timeout=30)
        while True:
            try:
                self.http.get("/readyz")
                break
            except httpx.TransportError:
                time.sleep(0.02)

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        self.http.close()
        return int(self.process.returncode)


def batches(seed: int) -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Return requests, and the same for a twin: each adds a node, its edge, or three labels."""
    rng, changes = random.Random(seed), []
    free = [f"n{i}" for i in range(1, 60, 2)]
    rng.shuffle(free)
    for i in range(200):
        kind = rng.choice(("nodes", "edges", "labels"))
        if kind == "labels" and len(free) >= 3:
            nodes, labels = [free.pop() for _ in range(3)], [rng.randrange(3) for _ in range(3)]
            body = {"labels": [{"node": n, "label": y} for n, y in zip(nodes, labels, strict=True)]}
            changes.append(("/labels", body, ("add_labels", nodes, labels)))
        elif kind == "edges":
            ends = [f"n{rng.randrange(60)}", f"n{rng.randrange(60)}"]
            body = {"edges": [{"source": ends[0], "target": ends[1]}]}
            changes.append(("/edges", body, ("add_edges", [ends[0]], [ends[1]])))
        else:
            p = [0.5, 0.25, 0.25]
            rng.shuffle(p)
            changes.append(
                (
                    "/nodes",
                    {"nodes": [{"node": f"k{seed}-{i}", "probabilities": p}]},
                    ("add_nodes", [f"k{seed}-{i}"], [p]),
                )
            )
    return changes


def check(store: Path, twin: Live, sent: list[tuple[Any, ...]], acknowledged: int) -> None:
    """The store holds what was acknowledged, and of the batch after it all or nothing."""
    for change in sent[:acknowledged]:
        twin.update([change])
    with Live.open(store) as live:
        if live.status()["events"] != twin.status()["events"]:
            twin.update([sent[acknowledged]])
        assert live.status() == twin.status()
        assert live.predict().same_as(twin.predict())
        assert live.ids() == twin.ids()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    kill_and_check(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 300))
def test_three_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    kill_and_check(tmp_path, seed)


def kill_and_check(folder: Path, seed: int) -> None:
    twin = small_live()
    twin.save(folder / "store")
    server, sent, acknowledged = Server(folder / "store"), batches(seed), 0
    delay = random.Random(seed).uniform(0.0, 0.6)
    killer = threading.Timer(delay, server.process.kill)
    killer.start()
    try:
        for path, body, _ in sent:
            assert server.http.post(path, json=body).status_code == 200
            acknowledged += 1
    except httpx.TransportError:
        pass
    killer.join()
    server.stop(signal.SIGKILL)
    check(folder / "store", twin, [change for *_, change in sent], acknowledged)


def test_sigterm_ends_open_requests_and_the_process(tmp_path: Path) -> None:
    twin = small_live()
    twin.save(tmp_path / "store")
    server, sent = Server(tmp_path / "store"), batches(5)
    for path, body, _ in sent[:5]:
        assert server.http.post(path, json=body).status_code == 200
    assert server.stop(signal.SIGTERM) == 0
    check(tmp_path / "store", twin, [change for *_, change in sent], 5)


def test_a_second_process_is_refused_while_the_first_writes(store: Path) -> None:
    server = Server(store)
    again = subprocess.run(
        [sys.executable, "-m", "napsets", "serve", str(store), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert again.returncode == 1
    assert "open for writing elsewhere" in again.stderr
    server.stop(signal.SIGTERM)


WRITER = textwrap.dedent(
    """
    import sys
    from napsets.live.live import Live
    with Live.open(sys.argv[1]) as live:
        for i in range(3):
            live.update([("add_nodes", [f"k{i}", f"l{i}"], [[0.5, 0.25, 0.25]] * 2), ("add_labels", [f"k{i}"], [i])])
            print(i, flush=True)
    """
)


@pytest.mark.slow
def test_a_kill_at_every_system_call_that_writes_leaves_whole_batches(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        lacking("strace is not installed", "apt-get install strace")
    first = small_live()
    first.save(tmp_path / "first")
    calls = "write,pwrite64,fsync,fdatasync,ftruncate,unlink,rename"
    for when in range(1, 500):
        store = tmp_path / f"store{when}"
        shutil.copytree(tmp_path / "first", store)
        logs = [f"--trace-path={store / name}" for name in ("log.sqlite", "log.sqlite-wal", "log.sqlite-shm")]
        inject = f"--inject={calls}:signal=KILL:when={when}"
        writer = [sys.executable, "-c", WRITER]
        run = subprocess.run(
            ["strace", "-f", "-qq", "-o", os.devnull, f"--trace={calls}", *logs, inject, *writer, str(store)],
            capture_output=True,
            text=True,
            timeout=300,
        )  # fmt: skip
        acknowledged = len(run.stdout.split())
        twin = small_live()
        with Live.open(store) as live:
            for i in range(3):
                if live.status()["events"] > twin.status()["events"]:
                    p = [[0.5, 0.25, 0.25]] * 2
                    twin.update([("add_nodes", [f"k{i}", f"l{i}"], p), ("add_labels", [f"k{i}"], [i])])
                else:
                    assert i >= acknowledged
            assert live.status() == twin.status()
            assert live.predict().same_as(twin.predict())
        shutil.rmtree(store)
        if run.returncode == 0:
            assert when > 9  # at least one write for each of three batches was cut off
            return
    pytest.fail("the writer never came to its end")
