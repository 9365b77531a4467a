"""A service that is killed at any moment has lost nothing that it acknowledged, and shows no half of a batch."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import pytest

from napsets.live.live import Live
from skips import lacking

from .conftest import small_live


class Server:
    """A service in a process of its own; with `tail`, a snapshot is written after so many events."""

    def __init__(self, store: Path, *options: str, tail: int | None = None) -> None:
        tailed = f"import napsets.live.logged as logged; logged._TAIL = min({tail}, logged._TAIL); " if tail else ""
        program = [sys.executable, "-c", f"{tailed}from napsets.cli import main; main()"]
        command = [*program, "serve", str(store), "--port", "0", "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the service ended with code {self.process.wait()}")
        self.url = line.split('"url": "')[1].split('"')[0]
        self.http = httpx.Client(base_url=self.url, timeout=30)

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        self.http.close()
        return int(self.process.returncode)


def serve_forked(store: str, tail: int | None, pipe: Connection) -> None:
    """Serve a store in a process that was forked from one with everything imported: its start takes no time."""
    import napsets.live.logged as module
    from napsets.service.server import run_server

    module._TAIL = tail or module._TAIL
    run_server(lambda: Live.open(store), port=0, ready=lambda url, _: pipe.send(url))


def forked(target: Any, *arguments: Any) -> Any:
    """Start a process that was forked from one with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"{__package__}.test_killed", "napsets.service.server", "napsets.kernels.growing"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


class ForkedServer:
    """The same service as `Server` without the command in front of it, for hundreds of starts."""

    def __init__(self, store: Path, *, tail: int | None = None) -> None:
        receiver, sender = multiprocessing.get_context("forkserver").Pipe(duplex=False)
        self.process = forked(serve_forked, str(store), tail, sender)
        sender.close()
        self.url = receiver.recv()
        receiver.close()

    def stop(self, number: signal.Signals) -> int:
        os.kill(self.process.pid, number)
        self.process.join(60)
        return int(self.process.exitcode or 0)


class Writer:
    """A client that sends batches one after another, each with a key, and sends the last again if no answer came."""

    def __init__(self, number: int) -> None:
        self.number, self.acknowledged = number, 0

    def batch(self, turn: int) -> tuple[str, Any, tuple[Any, ...]]:
        """Return a batch as a request and as a change: two nodes, then edges of both, then labels of both."""
        rng = random.Random(f"{self.number}/{turn}")
        nodes = [f"w{self.number}-{turn // 3}-{i}" for i in (0, 1)]
        if turn % 3 == 0:
            rows = [rng.sample((0.5, 0.25, 0.25), 3) for _ in nodes]
            body = {"nodes": [{"node": node, "probabilities": row} for node, row in zip(nodes, rows, strict=True)]}
            return "/nodes", body, ("add_nodes", nodes, rows)
        if turn % 3 == 1:
            ends = [f"n{rng.randrange(60)}" for _ in nodes]
            body = {"edges": [{"source": one, "target": other} for one, other in zip(nodes, ends, strict=True)]}
            return "/edges", body, ("add_edges", nodes, ends)
        labels = [rng.randrange(3) for _ in nodes]
        body = {"labels": [{"node": node, "label": label} for node, label in zip(nodes, labels, strict=True)]}
        return "/labels", body, ("add_labels", nodes, labels)

    def write(self, url: str, most: int = 10**6) -> None:
        """Send batches until the service is gone."""
        with httpx.Client(base_url=url, timeout=30) as http:
            try:
                for _ in range(most):
                    path, body, _ = self.batch(self.acknowledged)
                    answer = http.post(path, json=body, headers={"Idempotency-Key": self.key(self.acknowledged)})
                    assert answer.status_code in (200, 503), answer.text
                    if answer.status_code == 503:
                        return  # it is stopping
                    self.acknowledged += 1
            except httpx.TransportError:
                pass

    def key(self, turn: int) -> str:
        return f"{self.number}:{turn}"


def keys_of(store: Path) -> list[tuple[str, int]]:
    """Return the keys in the log in their order, and how many events each has."""
    query = "SELECT batch_key, SUM(count) FROM log WHERE batch_key IS NOT NULL GROUP BY batch_key ORDER BY MIN(first)"
    with closing(sqlite3.connect(store / "log.sqlite")) as connection:
        return connection.execute(query).fetchall()


class Twin:
    """A living graph that is never killed, to which the batches of a log are told in the log's order."""

    def __init__(self, writers: list[Writer]) -> None:
        self.live, self.writers, self.told = small_live(), writers, list[str]()

    def check(self, store: Path) -> None:
        """The store holds all that was acknowledged, each batch whole, and gives the same sets bit for bit."""
        with Live.open(store, read_only=True) as live:
            entries = keys_of(store)
            keys = [key for key, _ in entries]
            assert keys[: len(self.told)] == self.told
            assert all(events == 2 for _, events in entries)
            for writer in self.writers:
                done = sum(key.startswith(f"{writer.number}:") for key in keys)
                assert writer.acknowledged <= done <= writer.acknowledged + 1
            for key in keys[len(self.told) :]:
                writer, turn = map(int, key.split(":"))
                self.live.update([self.writers[writer].batch(turn)[2]])
            self.told = keys
            assert live.status() == self.live.status()
            assert live.predict().same_as(self.live.predict())
            assert live.ids() == self.live.ids()


def kill_again_and_again(folder: Path, seed: int, kills: int, service: Any = Server) -> int:
    """Kill a service under writes, start it on what is left, and so on; return how many batches it took."""
    rng, store = random.Random(seed), folder / "store"
    writers = [Writer(number) for number in range(3)]
    twin = Twin(writers)
    twin.live.save(store)
    for _ in range(kills):
        server = service(store, tail=rng.choice((None, 6, 60)))
        threads = [threading.Thread(target=writer.write, args=(server.url,)) for writer in writers]
        before, last = sum(writer.acknowledged for writer in writers), time.monotonic() + 20
        for thread in threads:
            thread.start()
        # Mostly once batches are on their way, however slow the machine is, and otherwise at any moment.
        waits = rng.random() < 0.75
        while waits and sum(writer.acknowledged for writer in writers) == before and time.monotonic() < last:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.2))
        server.stop(signal.SIGKILL)
        for thread in threads:
            thread.join()
        twin.check(store)
    return len(twin.told)


def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 12, 2) > 0  # both times once a batch was acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_three_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    batches = kill_again_and_again(tmp_path, seed, 30, ForkedServer)
    print(f"30 kills, {batches} batches")
    assert batches > 30


def test_sigterm_under_writes_ends_open_requests_and_the_process(tmp_path: Path) -> None:
    writers = [Writer(number) for number in range(3)]
    twin, store = Twin(writers), tmp_path / "store"
    twin.live.save(store)
    for _ in range(2):
        server = Server(store)
        threads = [threading.Thread(target=writer.write, args=(server.url,)) for writer in writers]
        wanted = 6 + sum(writer.acknowledged for writer in writers)
        for thread in threads:
            thread.start()
        for _ in range(600):
            if sum(writer.acknowledged for writer in writers) >= wanted:
                break
            time.sleep(0.05)
        assert server.stop(signal.SIGTERM) == 0
        for thread in threads:
            thread.join()
        assert not (store / "log.sqlite-wal").exists()
        twin.check(store)
    assert len(twin.told) > 10


def test_sigterm_right_after_the_start_is_a_good_end(store: Path) -> None:
    assert Server(store).stop(signal.SIGTERM) == 0


def test_sigterm_in_the_middle_of_a_batch_lets_it_end(store: Path) -> None:
    server = Server(store)
    nodes = [{"node": f"x{i}", "probabilities": [0.5, 0.25, 0.25]} for i in range(50_000)]
    answers: list[httpx.Response] = []
    sender = threading.Thread(target=lambda: answers.append(server.http.post("/nodes", json={"nodes": nodes})))
    sender.start()
    time.sleep(0.3)
    server.process.send_signal(signal.SIGTERM)
    sender.join()
    assert server.process.wait(60) == 0
    server.stop(signal.SIGTERM)
    assert answers[0].status_code == 200
    with Live.open(store) as live:
        assert live.status()["nodes"] == 50_060


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
    (store.parent / "y.csv").write_text("node,label\nn1,ham\n", encoding="utf-8")
    update = [sys.executable, "-m", "napsets", "update", str(store), "--labels", str(store.parent / "y.csv")]
    assert "open for writing elsewhere" in subprocess.run(update, capture_output=True, text=True, timeout=120).stderr
    assert server.http.get("/status").json()["labels"] == 30
    server.stop(signal.SIGTERM)


def test_a_snapshot_that_is_deleted_while_the_service_runs_is_not_missed(store: Path) -> None:
    server = Server(store)
    (store / "snapshot.npz").unlink()
    assert server.http.post("/labels", json={"labels": [{"node": "n1", "label": 0}]}).is_success
    assert server.stop(signal.SIGTERM) == 0
    twin = small_live()
    twin.add_labels(["n1"], [0])
    assert (store / "snapshot.npz").exists()
    with Live.open(store) as live:
        assert live.predict().same_as(twin.predict())


def write_three_batches(folder: str) -> None:
    """Open a store, tell it three batches and close it; a snapshot is written after each. Note which were accepted."""
    import napsets.live.logged as module

    module._TAIL = min(1, module._TAIL)
    accepted = os.open(f"{folder}/accepted", os.O_WRONLY | os.O_CREAT)
    writer = Writer(0)
    os.kill(os.getpid(), signal.SIGSTOP)
    with Live.open(f"{folder}/store") as live:
        for turn in range(3):
            before = live.events
            try:
                live._kept = 0
                live.update([writer.batch(turn)[2]], key=writer.key(turn))
                os.write(accepted, b"%d\n" % turn)
            except (sqlite3.Error, OSError):
                assert live.events == before
                break


def save_a_store(folder: str) -> None:
    """Make a store."""
    live = small_live()
    os.kill(os.getpid(), signal.SIGSTOP)
    live.save(f"{folder}/store")


WRITING = "write,pwrite64,pwritev,writev,fsync,fdatasync,ftruncate,fallocate,unlink,unlinkat,rename,renameat,renameat2"


def traced(program: Any, folder: Path, *options: str) -> tuple[int, int]:
    """Run a program that stops itself, and let it go on under strace; return its exit code and accepted batches."""
    if shutil.which("strace") is None:
        lacking("strace is not installed", "apt-get install strace")
    process = forked(program, str(folder))
    status = Path(f"/proc/{process.pid}/status")
    wait_until(lambda: "State:\tT" in status.read_text())
    strace = ["strace", "-f", "-qq", "-p", str(process.pid), "-o", str(folder / "calls"), f"--trace={WRITING}"]
    watcher = subprocess.Popen([*strace, *options], stderr=subprocess.DEVNULL)
    wait_until(lambda: "TracerPid:\t0\n" not in status.read_text())
    os.kill(process.pid, signal.SIGCONT)
    process.join(300)
    watcher.wait(60)
    accepted = folder / "accepted"
    return int(process.exitcode), len(accepted.read_text().split()) if accepted.exists() else 0


def wait_until(condition: Any) -> None:
    last = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.002)


def spoil_every_call(program: Any, tmp_path: Path, fault: str, store: Path | None) -> Iterator[tuple[Path, int, int]]:
    """Yield the folder, exit code and accepted batches of a program, of which each call that writes is spoiled once."""

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        if store is not None:
            shutil.copytree(store, folder / "store")
        return folder

    assert traced(program, fresh("before"))[0] == 0  # which may keep compiled kernels
    folder = fresh("all")
    assert traced(program, folder)[0] == 0
    calls = Counter(re.findall(r"^\d+ +(\w+)\(", (folder / "calls").read_text(), flags=re.MULTILINE))
    if fault.startswith("error"):
        calls = Counter({name: calls[name] for name in ("write", "pwrite64", "fsync", "fdatasync", "ftruncate")})
    assert calls.total() > 20
    print(f"{fault} at {calls.total()} system calls: {dict(calls)}")
    # strace counts the calls of each name apart.
    for name, count in calls.items():
        for when in range(1, count + 1):
            folder = fresh(f"{name}-{when}")
            yield folder, *traced(program, folder, f"--inject={name}:{fault}:when={when}")
            shutil.rmtree(folder)


def check_spoiled(folder: Path, accepted: int) -> None:
    writer = Writer(0)
    writer.acknowledged = accepted
    Twin([writer]).check(folder / "store")
    with Live.open(folder / "store") as live:  # which goes on
        for turn in range(3):
            live.update([writer.batch(turn)[2]], key=writer.key(turn))


@pytest.mark.slow
def test_a_kill_at_every_system_call_that_writes_leaves_whole_batches(tmp_path: Path) -> None:
    small_live().save(tmp_path / "first")
    for folder, code, accepted in spoil_every_call(write_three_batches, tmp_path, "signal=KILL", tmp_path / "first"):
        assert code == -signal.SIGKILL
        check_spoiled(folder, accepted)


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_disk_that_fails_at_any_system_call_that_writes_leaves_whole_batches(tmp_path: Path, error: str) -> None:
    small_live().save(tmp_path / "first")
    for folder, _, accepted in spoil_every_call(write_three_batches, tmp_path, f"error={error}", tmp_path / "first"):
        check_spoiled(folder, accepted)


@pytest.mark.slow
def test_a_kill_while_a_store_is_made_leaves_a_whole_store_or_none(tmp_path: Path) -> None:
    twin, stores = small_live(), 0
    for folder, code, _ in spoil_every_call(save_a_store, tmp_path, "signal=KILL", None):
        assert code == -signal.SIGKILL
        if (folder / "store").exists():
            stores += 1
            with Live.open(folder / "store") as live:
                assert live.status() == twin.status()
                assert live.predict().same_as(twin.predict())
    assert stores > 0
