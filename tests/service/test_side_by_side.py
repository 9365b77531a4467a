"""Readers, writers, long batches and backups side by side: nobody waits for long, and all see one moment."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from napsets.live.events import Draft
from napsets.live.live import Live
from napsets.service.app import make_app

from .conftest import Client

LABEL = {"labels": [{"node": "n1", "label": "ham"}]}
BIG = {"nodes": [{"node": f"x{i}", "probabilities": [0.5, 0.25, 0.25]} for i in range(20_000)]}


@contextmanager
def sending(http: Any, path: str, body: Any, began: threading.Event, may_end: threading.Event) -> Iterator[None]:
    """Meanwhile, a request is on its way: it has begun, and ends well once it may."""
    answers: list[httpx.Response] = []
    sender = threading.Thread(target=lambda: answers.append(http.post(path, json=body)))
    sender.start()
    assert began.wait(30)
    yield
    may_end.set()
    sender.join()
    assert answers[0].status_code == 200


def test_a_reader_sees_one_moment_while_the_writer_writes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from napsets.live import logged as module

    read = module.read_snapshot
    with Live.open(store) as writer:
        nodes = iter(range(1000))

        def read_while_written(folder: Path) -> object:
            writer.add_nodes([f"late {next(nodes)}"], [[0.2, 0.3, 0.5]])
            snapshot = read(folder)
            writer.add_nodes([f"late {next(nodes)}"], [[0.2, 0.3, 0.5]])
            return snapshot

        monkeypatch.setattr(module, "read_snapshot", read_while_written)
        with Live.open(store, read_only=True) as reader:
            assert reader.status()["nodes"] == 62


@pytest.mark.slow
def test_ten_minutes_of_requests_need_no_more_memory_than_the_data(store: Path) -> None:
    import psutil

    from .test_killed import Server

    server = Server(store)
    http, process, samples, requests = server.http, psutil.Process(server.process.pid), [], 0
    nodes = [f"n{i}" for i in range(60)]
    p = {"nodes": [{"node": "n1", "probabilities": [0.2, 0.3, 0.5]}]}
    end = time.monotonic() + 600
    while time.monotonic() < end:
        answers = [http.get(f"/sets/{node}") for node in nodes[:40]]
        answers += [http.post("/sets", json={"nodes": nodes}), http.post("/probabilities", json=p)]
        answers += [http.get(path) for path in ("/metrics", "/status?history=true", "/nodes/n1", "/", "/readyz")]
        answers.append(httpx.get(f"{server.url}/livez"))  # on a connection of its own
        assert all(answer.status_code == 200 for answer in answers)
        refused = [http.get(f"/sets/nobody-{requests}"), http.post("/labels", json={"labels": [{"node": requests}]})]
        assert all(400 <= answer.status_code < 500 for answer in refused)
        requests += len(answers) + len(refused)
        samples.append(process.memory_info().rss)
        time.sleep(0.2)
    server.stop(signal.SIGTERM)
    later = samples[len(samples) // 5 :]
    print(f"{requests:,} requests; memory {later[0]:,} bytes after two minutes, {max(later):,} at the most after that")
    assert requests > 10_000
    assert max(later) - later[0] < 20 << 20


def test_a_backup_of_a_running_store_is_restored_into_an_empty_folder(store: Path, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    with Live.open(store) as live:
        live.add_labels(["n1"], [0], key="a")
        paths = store / "log.sqlite", tmp_path / "restored" / "log.sqlite"
        with closing(sqlite3.connect(paths[0])) as log, closing(sqlite3.connect(paths[1])) as copy:
            log.backup(copy)
        expected = live.predict()
        live.add_labels(["n3"], [0])
    with Live.open(tmp_path / "restored") as restored:
        assert restored.predict().same_as(expected)
        assert not restored.update([("add_labels", ["n1"], [0])], key="a")


def test_readers_do_not_hinder_the_writer(store: Path) -> None:
    with Live.open(store) as live, Live.open(store, read_only=True) as reader:
        live.add_labels(["n1"], [0])
        assert reader.status()["labels"] == 30  # as it was when it was opened
        with Live.open(store, read_only=True) as later:
            assert later.status()["labels"] == 31


def test_sets_are_answered_while_a_batch_is_on_its_way_to_the_disk(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live.open(store)
    append, began, may_end = live._store.append, threading.Event(), threading.Event()

    def slow(*arguments: Any) -> int:
        began.set()
        assert may_end.wait(30)
        return append(*arguments)

    monkeypatch.setattr(live._store, "append", slow)
    with Client(make_app(live)) as http:
        before = http.get("/sets/n3").json()
        with sending(http, "/labels", LABEL, began, may_end):
            assert http.get("/sets/n3").json() == before
            assert http.get("/status").json()["labels"] == 30
        assert http.get("/sets/n3").json()["support"] == before["support"] + 1


def test_sets_are_answered_while_a_batch_is_checked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end = threading.Event(), threading.Event()
    check = Draft.add_labels

    def slow(*arguments: Any) -> None:
        began.set()
        assert may_end.wait(30)
        check(*arguments)

    monkeypatch.setattr(Draft, "add_labels", slow)
    with Client(make_app(Live.open(store))) as http, sending(http, "/labels", LABEL, began, may_end):
        assert http.get("/sets/n3").status_code == http.get("/nodes/n3").status_code == 200


def test_sets_are_answered_while_a_large_body_is_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from napsets.service import parsing as module

    parse, began, may_end = module.parse_json, threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        began.set()
        assert may_end.wait(30)
        return parse(*arguments)

    with Client(make_app(Live.open(store))) as http:
        monkeypatch.setattr(module, "parse_json", slow)
        with sending(http, "/nodes", BIG, began, may_end):
            assert http.get("/sets/n3").status_code == http.get("/livez").status_code == 200


def test_a_set_waits_for_a_piece_of_many_sets_and_a_label_for_all(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live.open(store)
    began, may_end, order = threading.Event(), threading.Event(), list[str]()
    predict = live.predict

    def slow(ids: Any, alpha: float | None = None) -> Any:
        if len(ids) > 1:
            order.append("piece")
            began.set()
            assert may_end.wait(30)
        return predict(ids, alpha)

    monkeypatch.setattr(live, "predict", slow)
    with Client(make_app(live)) as http:
        many = threading.Thread(target=lambda: http.post("/sets", json={"nodes": ["n1", "n3"] * 200}))
        label = threading.Thread(target=lambda: order.append(str(http.post("/labels", json=LABEL).status_code)))
        many.start()
        assert began.wait(30)
        label.start()
        assert http.get("/sets/n3").status_code == 200
        label.join(0.2)
        assert label.is_alive()
        may_end.set()
        many.join()
        label.join()
    assert order == ["piece", "piece", "200"]


def test_requests_that_cannot_be_answered_in_time_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from napsets.service.guard import Limits

    live = Live.open(store)
    monkeypatch.setattr(live, "predict", lambda *_: time.sleep(1.0))
    with Client(make_app(live, limits=Limits(seconds=0.2))) as http:
        answer: httpx.Response = http.get("/sets/n1")
        assert answer.status_code == 503
        assert "busy" in answer.json()["error"]
