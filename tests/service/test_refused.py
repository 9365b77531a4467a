"""Requests that are refused: bad bodies, hostile JSON, other sites, no token, too much at once."""

from __future__ import annotations

import gzip
import re
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from napsets.errors import InvalidInputError
from napsets.live.live import Live
from napsets.service.app import make_app
from napsets.service.server import _listen

from .conftest import Client

TOKEN = "a token of thirty characters!!".replace(" ", "-")


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/labels", {"labels": [{"node": "n1", "label": "ham"}, {"node": "nobody", "label": "ham"}]}, 422, "nobody"),
        ("/labels", {"labels": [{"node": "n1", "label": "bacon"}]}, 422, "bacon"),
        ("/labels", {"labels": [{"node": "n1", "label": 3}]}, 422, "label"),
        ("/labels", {"labels": [{"node": True, "label": 0}]}, 422, "node"),
        ("/labels", {"label": []}, 422, "labels"),
        ("/nodes", {"nodes": [{"node": "n1", "probabilities": [1, 0, 0]}]}, 422, "n1"),
        ("/nodes", {"nodes": [{"node": "x", "probabilities": [0.5, 0.25]}]}, 422, "probabilities"),
        ("/nodes", {"nodes": [{"node": "x", "probabilities": [0.5, 0.25, 0.5]}]}, 422, "sum to 1"),
        ("/nodes", {"nodes": [{"node": 2**64, "probabilities": [1, 0, 0]}]}, 422, "2^63"),
        ("/nodes", {"nodes": [{"node": "x", "probabilities": [3, -1, -1]}]}, 422, "put them through a softmax first"),
        ("/nodes", {"nodes": [{"node": "n1", "probabilities": [1, 0, 0]}]}, 422, "send them to POST /probabilities"),
        ("/labels", {"labels": [{"node": "n0", "label": 0}]}, 422, "send it to PUT /labels"),
        ("/edges", {"edges": [{"source": "n1", "target": 5}]}, 422, "5"),
        ("/sets", {"nodes": ["n1"], "alpha": 1.5}, 422, "alpha"),
        ("/sets", {"nodes": ["n1", "nobody"]}, 422, "nobody"),
        ("/nothing", {}, 404, "/nothing"),
        ("/labels", {"labels": [{"node": 1.0, "label": 0}]}, 422, "`labels.0.node` must be an integer or a text"),
        ("/nodes", {"nodes": [{"node": "x", "probabilities": ["1", "0", "0"]}]}, 422, "probabilities"),
        ("/nodes", {"nodes": [{"node": "x", "probabilities": [True, False, False]}]}, 422, "probabilities"),
        ("/sets", {"nodes": ["n1"], "alpha": "0.1"}, 422, "alpha"),
        ("/sets", {"nodes": [2**400]}, 422, "2^63"),
        (
            "/nodes",
            {"nodes": [{"node": "x", "probabilities": [1, 0, 0]}, {"node": "y", "probabilities": [1, 0]}]},
            422,
            "`nodes.1.probabilities` must have 3 entries",
        ),
    ],
)
def test_what_is_refused_is_said_in_a_sentence_and_changes_nothing(
    client: httpx.Client, path: str, body: Any, status: int, sentence: str
) -> None:
    before = client.get("/status").json()["events"]
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    foreign = r"\w\(|\w=\w|--\w|(add|set|remove)_\w"  # Python, or options of the command
    assert not re.search(foreign, answer.json()["error"].replace("alert(1)", ""))
    assert client.get("/status").json()["events"] == before


def test_a_body_that_is_no_json_is_refused(client: httpx.Client) -> None:
    kind = {"content-type": "application/json"}
    assert client.post("/labels", content=b"{", headers=kind).status_code == 400
    assert client.post("/labels", content=b'{"labels": []}', headers={"content-type": "text/plain"}).status_code == 415
    packed = client.post("/labels", content=gzip.compress(b"{}"), headers=kind | {"content-encoding": "gzip"})
    assert (packed.status_code, "JSON in UTF-8" in packed.json()["error"]) == (400, True)
    nan = b'{"nodes": [{"node": "x", "probabilities": [NaN, 0.5, 0.5]}]}'
    assert client.post("/nodes", content=nan, headers=kind).status_code == 422


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b'{"labels": [{"node": "n1", "label": 0}], "labels": []}', 400, "must occur only once"),  # which of the two?
        (b'{"labels": [{"node": "n1", "node": "n3", "label": 0}]}', 400, "'node' must occur only once"),
        (b'{"labels": [{"node": "n1", "label": 0}]', 400, "from character 39"),
        (b'{"labels": [{"node": "\\ud800", "label": 0}]}', 422, "UTF-8 can hold"),
        (b'{"\\ud800": 0}', 422, "unicode"),
        (b'{"\\ud800": 0, "\\ud800": 1}', 400, "must occur only once"),
        (b'{"labels": [{"node": "\xff", "label": 0}]}', 400, "UTF-8"),
        (b"[" * 100_000, 400, "levels"),
        (b'{"labels":' * 100_000 + b"1" + b"}" * 100_000, 400, "levels"),
        (b'{"labels": [{"node": ' + b"9" * 5000 + b', "label": 0}]}', 400, "digits"),
        (b'{"labels": [{"node": "n1", "label": Infinity}]}', 422, "labels.0.label"),
        (b'{"labels": [{"node": NaN, "label": 0}]}', 422, "labels.0.node"),
        (b'{"labels": [{"node": "n1", "label": 1e400}]}', 422, "labels.0.label"),
        (b'{"labels": [' + b'{"node": "n1", "label": 0}, ' * 1234 + b'{"node": "n1"}]}', 422, "`labels.1234.label`"),
        (b'{"labels": {"node": "n1", "label": 0}}', 422, "`labels`"),
        (b"", 422, "body"),
        (b"null", 422, "body"),
    ],
)
def test_hostile_json_is_refused_in_a_sentence_and_changes_nothing(
    client: httpx.Client, body: bytes, status: int, sentence: str
) -> None:
    before = client.get("/status").json()["events"]
    answer = client.post("/labels", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert client.get("/status").json()["events"] == before


def test_what_would_be_ignored_is_refused(client: httpx.Client) -> None:
    assert "`alfa` is not a parameter" in client.get("/sets/n1?alfa=0.5").json()["error"]
    assert client.get("/sets/n1?alpha=0.1&alpha=0.5").status_code == 422
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert client.post("/labels", json={"labels": []}, headers=twice).status_code == 400
    assert client.get("/status", headers=[("Host", "evil.example"), ("Host", "127.0.0.1")]).status_code == 400
    assert client.get("/livez?probe=1").status_code == 200


def test_pages_of_other_sites_get_no_leave_to_read_or_write(client: httpx.Client) -> None:
    origin = {"Origin": "http://evil.example"}
    ask = origin | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    answers = [client.options("/labels", headers=ask), client.get("/status", headers=origin)]
    # What a form or a script may send without asking first is no JSON.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        body = b'{"labels": [{"node": "n1", "label": 0}]}'
        answers.append(client.post("/labels", content=body, headers=origin | {"content-type": kind}))
        assert answers[-1].status_code == 415
    assert answers[0].status_code == 405
    assert not any(name.startswith("access-control") for answer in answers for name in answer.headers)


def test_nothing_is_answered_without_the_token(store: Path) -> None:
    with Client(make_app(Live.open(store), token=TOKEN)) as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Bearer é"}):
            encoded = {name: value.encode("utf-8") for name, value in headers.items()}
            assert http.get("/sets/n1", headers=encoded).status_code == 401
            assert http.post("/labels", json={"labels": []}, headers=encoded).status_code == 401
            assert http.get("/metrics", headers=encoded).status_code == 401
            assert http.get("/openapi.json", headers=encoded).status_code == 401
        assert http.get("/livez").status_code == http.get("/readyz").status_code == http.get("/").status_code == 200
        assert http.get("/sets/n1", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_other_sites_cannot_reach_a_service_without_a_token(client: httpx.Client) -> None:
    assert client.get("/status", headers={"host": "evil.example"}).status_code == 403
    for host in ("localhost:8000", "127.0.0.1", "[::1]:80"):
        assert client.get("/status", headers={"host": host}).status_code == 200


def test_a_port_that_is_taken_is_named_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match="Address already in use") as refused:
            _listen("127.0.0.1", port)
    assert str(refused.value).count(str(port)) == 1
