"""What comes over a bare socket: paths as they are sent, slow clients, clients that go away, bytes that are no HTTP."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from .conftest import small_live
from .test_killed import Server

IDS = [
    "%41",
    "%2541",
    "..",
    "../status",
    ".",
    "a/../b",
    "//",
    "a?b#c",
    "\x7f",
    "é",
    "e\u0301",
    "🙂",
    "\r\nx: y",
    "+",
    "a+b c",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    live, store = small_live(), tmp_path_factory.mktemp("wire") / "store"
    live.add_nodes(IDS, [[0.2, 0.3, 0.5]] * len(IDS))
    live.save(store)
    running = Server(store, "--timeout", "1")
    yield running
    assert running.stop(signal.SIGTERM) == 0


def connect(server: Server) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def exchange(server: Server, data: bytes) -> tuple[int, bytes]:
    """Send bytes, and return the status and the body of the answer."""
    with connect(server) as connection:
        connection.sendall(data)
        return answer_of(connection)


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    with connection.makefile("rb") as stream:
        return read_answer(stream)


def read_answer(stream: Any) -> tuple[int, bytes]:
    status = int(stream.readline().split()[1])
    headers = dict(line.lower().split(b": ", 1) for line in iter(lambda: stream.readline().rstrip(), b""))
    length = headers.get(b"content-length")
    return status, stream.read() if length is None else stream.read(int(length))


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


HEAD = b"POST /sets HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize("name", IDS)
def test_an_id_is_decoded_once(server: Server, name: str) -> None:
    for route in ("sets", "nodes"):
        status, body = exchange(server, get(f"/{route}/{quote(name, safe='')}"))
        assert (status, json.loads(body)["node"]) == (200, name)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"FOO /sets HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        "GET /sets/é HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        HEAD + b"content-length: -3\r\n\r\nabc",
        HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"content-length: 99999999999999\r\n\r\n{",
        get("/sets/" + "y" * 100_000),
        get("/sets/n1").replace(b"\r\n\r\n", b"\r\nhost: evil.example\r\n\r\n"),
    ],
)
def test_what_is_no_proper_request_is_refused_and_the_service_goes_on(server: Server, data: bytes) -> None:
    status, _ = exchange(server, data)
    assert 400 <= status < 500
    assert exchange(server, get("/readyz"))[0] == 200


def test_requests_that_are_sent_ahead_are_answered_in_their_order(server: Server) -> None:
    names = ["n1", "n3", "nobody", "n5"]
    with connect(server) as connection:
        connection.sendall(b"".join(get(f"/sets/{name}") for name in names))
        with connection.makefile("rb") as stream:
            answers = [read_answer(stream) for _ in names]
    assert [status for status, _ in answers] == [200, 200, 404, 200]
    assert [json.loads(body).get("node") for _, body in answers] == ["n1", "n3", None, "n5"]


def test_an_answer_to_head_has_the_headers_of_get_and_no_body(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(get("/livez").replace(b"GET", b"HEAD") + get("/livez"))
        with connection.makefile("rb") as stream:
            heads = [list(iter(lambda: stream.readline().rstrip(), b"")) for _ in range(2)]
    assert [head[0] for head in heads] == [b"HTTP/1.1 200 OK"] * 2
    assert b"content-length: 2" in heads[0]


def test_a_body_that_is_slow_to_arrive_is_given_up_and_holds_up_nobody(server: Server) -> None:
    with connect(server) as slow:
        slow.sendall(HEAD + b"content-length: 100\r\n\r\n{")
        began = time.perf_counter()
        assert exchange(server, get("/sets/n1"))[0] == 200
        assert time.perf_counter() - began < 0.9
        assert answer_of(slow)[0] == 408


def test_clients_that_go_away_change_nothing_for_others(server: Server) -> None:
    for _ in range(50):
        connection = connect(server)
        connection.sendall(HEAD + b'content-length: 17\r\n\r\n{"nodes": ["n1"]}')
        connection.close()  # before the answer
        connection = connect(server)
        connection.sendall(HEAD[:40])
        connection.close()  # in the middle of a header
    assert exchange(server, get("/readyz"))[0] == 200


def test_sixty_clients_at_once_get_the_sets_of_one_state(server: Server) -> None:
    """Sets that are asked for together are of one moment, while labels arrive."""
    answers: list[list[float]] = []
    body = json.dumps({"nodes": [f"n{i}" for i in range(60)] * 5}).encode()
    request = HEAD + b"content-length: %d\r\n\r\n" % len(body) + body

    def ask() -> None:
        _, content = exchange(server, request)
        rows = json.loads(content)["sets"]
        answers.append([row["support"] + (row["node"] in labelled) for row in rows])

    labelled = {f"n{i}" for i in range(0, 60, 2)}
    threads = [threading.Thread(target=ask) for _ in range(60)]
    for thread in threads:
        thread.start()
    for i in range(1, 11, 2):
        assert server.http.post("/labels", json={"labels": [{"node": IDS[i], "label": 0}]}).is_success
    for thread in threads:
        thread.join()
    assert len(answers) == 60
    for counts in answers:
        assert len(set(counts)) == 1  # a node's own label does not count for it
