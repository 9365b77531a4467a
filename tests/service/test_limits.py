"""Every limit of the service, tried through a socket; and what it answers before it is ready."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from napsets.live.live import Live
from napsets.service.app import make_app
from napsets.service.server import run_server

from .conftest import Client, missing, small_live
from .test_killed import Server
from .test_wire import HEAD, answer_of, connect, exchange, get

OPTIONS = ("--max-body", "8000000", "--max-batch", "1000")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = tmp_path_factory.mktemp("limits") / "store"
    small_live().save(store)
    running = Server(store, *OPTIONS)
    yield running
    assert running.stop(signal.SIGTERM) == 0


def post(body: bytes, kind: bytes = b"application/json", path: bytes = b"/sets") -> bytes:
    head = HEAD.replace(b"/sets", path).replace(b"application/json", kind)
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


REPEATED = b"{" + b",".join(b'"x%d": 0' % i for i in range(500_000)) + b', "x499999": 1}'


@pytest.mark.parametrize(
    ("data", "status", "sentence"),
    [
        (get("/sets/" + "y" * 40_000), 431, "address and headers"),
        (get("/sets/n1?alpha=" + "1" * 40_000), 431, "address and headers"),
        (get("/livez").replace(b"\r\n\r\n", b"\r\nx: " + b"y" * 40_000 + b"\r\n\r\n"), 431, "address and headers"),
        (get("/livez").replace(b"\r\n\r\n", b"\r\nx: y" * 9_000 + b"\r\n\r\n"), 431, "address and headers"),
        (post(b" " * 8_000_001), 413, "at most 8,000,000 bytes"),
        (post(json.dumps({"nodes": ["n1"] * 1001}).encode()), 413, "at most 1,000 entries"),
        (post(json.dumps({"labels": [{"node": "n1", "label": 0}] * 1001}).encode(), path=b"/labels"), 413, "entries"),
        (post('{"nodes": ["n1"]}'.encode("utf-16")), 400, "UTF-8"),
        (post('{"nodes": ["n1"]}'.encode("utf-32")), 400, "UTF-8"),
        (post(b"\xef\xbb\xbf{}"), 400, "JSON"),
        (post('{"nodes": ["n1"]}'.encode("utf-16-le"), b"application/json; charset=utf-16"), 400, "JSON"),
        (post(b'{"nodes": ["n1"]}', b"text/plain"), 415, "application/json in UTF-8"),
        (post(json.dumps({"nodes": ["x" * 1025]}).encode()), 422, "at most 1,024 bytes"),
        (post(b"[" * 4_000_000), 400, "levels"),
        (post(b"[" + b"9" * 4_000_000 + b"]"), 400, "digits"),
    ],
)
def test_what_is_too_large_is_refused_in_a_sentence(server: Server, data: bytes, status: int, sentence: str) -> None:
    answered, body = exchange(server, data)
    assert (answered, sentence in json.loads(body)["error"]) == (status, True), body[:200]
    assert exchange(server, get("/readyz")) == (200, b"ok")


def test_a_repeated_name_among_many_is_found_at_once(server: Server) -> None:
    began = time.process_time(), psutil.Process(server.process.pid).cpu_times().user
    status, body = exchange(server, post(REPEATED))
    assert (status, json.loads(body)["error"]) == (
        400,
        "'x499999' must occur only once in a JSON object; it occurs several times",
    )
    assert psutil.Process(server.process.pid).cpu_times().user - began[1] < 10  # and not the square of it: 10⁵ s


ENDLESS = {
    "address": (b"GET /", b"y" * 65_536),
    "header": (b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ", b"y" * 65_536),
    "headers": (b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n", b"x: y\r\n" * 10_000),
    "trailer": (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"x: y\r\n" * 10_000),
    "extension": (HEAD + b"transfer-encoding: chunked\r\n\r\n2;", b"y" * 65_536),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_never_ends_is_cut_off_and_takes_no_memory(server: Server, kind: str) -> None:
    process = psutil.Process(server.process.pid)
    before, sent = process.memory_info().rss, 0
    start, piece = ENDLESS[kind]
    with connect(server) as connection:
        connection.sendall(start)
        try:
            while sent < 100 << 20:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:  # it was closed
            pass
    assert sent < 20 << 20  # what the system holds on the way
    assert process.memory_info().rss - before < 30 << 20
    assert exchange(server, get("/readyz"))[0] == 200


def test_a_body_without_end_is_refused(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n" % 65_536 + b" " * 65_536 + b"\r\n"
        try:
            for _ in range(200):
                connection.sendall(chunk)
        except OSError:
            return
        assert answer_of(connection)[0] == 413


def test_every_request_has_a_line_and_every_alarm_one(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "napsets.service")
    misses = missing(store)["labels"]
    with Client(make_app(Live.open(store))) as http:
        for label in misses:
            assert http.post("/labels", json={"labels": [label]}).is_success
        assert http.get("/sets/a%0Ab").status_code == 404
    lines = [record.getMessage() for record in caplog.records]
    assert lines[-1].startswith("GET /sets/a%0Ab 404 ")
    assert len([line for line in lines if line.startswith("POST /labels 200 ")]) == len(misses)
    assert len([line for line in lines if line.startswith("alarm: coverage was raised after ")]) == 1


def test_the_port_is_open_before_the_store_and_says_why_it_does_not_answer(store: Path) -> None:
    may_open, urls, listening = threading.Event(), list[str](), threading.Event()

    def opening() -> Live:
        assert may_open.wait(30)
        raise OSError("the end of this test")

    def started(url: str) -> None:
        urls.append(url)
        listening.set()

    def ask(path: str) -> tuple[int, bytes]:
        host, port = urls[0].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(get(path))
            return answer_of(connection)

    answers: list[Any] = []

    def client() -> None:
        assert listening.wait(30)
        answers.extend(ask(path) for path in ("/livez", "/readyz", "/status", "/sets/n1"))
        may_open.set()

    asking = threading.Thread(target=client)
    asking.start()
    # In a thread of its own: a browser that an earlier test opened keeps an event loop in this one.
    with ThreadPoolExecutor(1) as pool, pytest.raises(OSError, match="the end of this test"):
        pool.submit(run_server, opening, port=0, listening=started).result(60)
    asking.join()
    assert answers[0] == (200, b"ok")
    assert {status for status, _ in answers[1:]} == {503}
    assert all("is starting" in json.loads(body)["error"] for _, body in answers[1:])
