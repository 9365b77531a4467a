"""The service answers as the living graph does, refuses in sentences, and keeps what it has acknowledged."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import napsets as ns
from live_model import present
from napsets.live.live import Live
from napsets.service.app import make_app

from .conftest import CLASSES, Client, small_live

TOKEN = "a token of thirty characters!!".replace(" ", "-")


def labels_of(sets: Any) -> list[list[str]]:
    return [[CLASSES[column] for column in np.flatnonzero(row)] for row in sets.member]


def test_a_set_is_that_of_the_living_graph(client: httpx.Client) -> None:
    twin = small_live()
    for node in ("n1", "n30", "n59"):
        answer = client.get(f"/sets/{node}").json()
        sets = twin.predict([node])
        assert answer["node"] == node
        assert answer["labels"] == labels_of(sets)[0]
        assert answer["size"] == sets.sizes[0]
        assert answer["threshold"] == sets.thresholds[0]
        assert answer["support"] == sets.support[0]
        assert answer["alpha"] == 0.2


def test_sets_come_in_the_order_of_the_nodes_and_at_any_alpha(client: httpx.Client) -> None:
    nodes = ["n7", "n1", "n7"]
    answer = client.post("/sets", json={"nodes": nodes, "alpha": 0.05}).json()["sets"]
    assert [row["node"] for row in answer] == nodes
    assert [row["labels"] for row in answer] == labels_of(small_live().predict(nodes, 0.05))
    assert client.get("/sets/n7?alpha=0.05").json() == answer[0]


def test_the_sets_of_many_nodes_are_those_of_each(client: httpx.Client) -> None:
    nodes = [f"n{i % 60}" for i in range(1000)]
    answer = client.post("/sets", json={"nodes": nodes}).json()["sets"]
    assert answer[:60] * 16 + answer[:40] == answer
    assert [row["labels"] for row in answer[:60]] == labels_of(small_live().predict(nodes[:60]))
    missing = client.post("/sets", json={"nodes": [*nodes, "nobody", "no one"]})
    assert (missing.status_code, "2 are not, 'nobody' first" in missing.json()["error"]) == (422, True)
    assert client.post("/sets", json={"nodes": []}).json() == {"sets": []}


def test_changes_take_effect_and_are_in_the_store_afterwards(store: Path) -> None:
    twin = small_live()
    with Client(make_app(Live.open(store))) as http:
        before = http.get("/status").json()
        assert http.post("/nodes", json={"nodes": [{"node": 7, "probabilities": [0.5, 0.25, 0.25]}]}).status_code == 200
        assert http.post("/edges", json={"edges": [{"source": 7, "target": "n1"}]}).status_code == 200
        for label in ({"node": "n1", "label": "spam"}, {"node": 7, "label": 0}):
            assert http.post("/labels", json={"labels": [label]}).is_success
        changed = {"nodes": [{"node": "n3", "probabilities": [0, 1, 0]}]}
        assert http.post("/probabilities", json=changed).json() == {"events": before["events"] + 5, "repeated": False}
        status = http.get("/status").json()
        sets = http.post("/sets", json={"nodes": ["n3", 7, "n1"]}).json()["sets"]
    assert status["nodes"] == before["nodes"] + 1
    assert status["edges"] == before["edges"] + 1
    assert status["labels"] == before["labels"] + 2
    twin.add_nodes([7], [[0.5, 0.25, 0.25]])
    twin.add_edges([7], ["n1"])
    twin.add_labels(["n1", 7], [1, 0])
    twin.set_probabilities(["n3"], [[0.0, 1.0, 0.0]])
    assert [row["labels"] for row in sets] == labels_of(twin.predict(["n3", 7, "n1"]))
    with Live.open(store) as again:
        assert again.predict(["n3", 7]).same_as(twin.predict(["n3", 7]))
        assert again.status()["events"] == status["events"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/nodes", {"nodes": [{"node": "new", "probabilities": [0.2, 0.3, 0.5]}]}),
        ("/edges", {"edges": [{"source": "n0", "target": "n59"}]}),
        ("/labels", {"labels": [{"node": "n1", "label": "ham"}]}),
        ("/probabilities", {"nodes": [{"node": "n1", "probabilities": [0.2, 0.3, 0.5]}]}),
    ],
)
def test_a_batch_that_is_sent_again_with_its_key_does_nothing(client: httpx.Client, path: str, body: Any) -> None:
    first = client.post(path, json=body, headers={"Idempotency-Key": "k1"})
    again = client.post(path, json=body, headers={"Idempotency-Key": "k1"})
    assert first.json()["repeated"] is False
    assert again.json() == {"events": first.json()["events"], "repeated": True}
    other = {"labels": [{"node": "n3", "label": "ham"}]}
    conflict = client.post("/labels", json=other, headers={"Idempotency-Key": "k1"})
    assert conflict.status_code == 409
    assert "key" in conflict.json()["error"]


def test_a_key_means_the_same_batch_after_a_restart(store: Path) -> None:
    body = {"nodes": [{"node": "new", "probabilities": [0.2, 0.3, 0.5]}]}
    for repeated in (False, True, True):
        with Client(make_app(Live.open(store)), **{"Idempotency-Key": "k"}) as http:
            assert http.post("/nodes", json=body).json()["repeated"] is repeated
            other = {"nodes": [{"node": "new", "probabilities": [0.3, 0.2, 0.5]}]}
            assert http.post("/nodes", json=other).status_code == 409
    for snapshot in store.glob("*.npz"):
        snapshot.unlink()
    with Client(make_app(Live.open(store)), **{"Idempotency-Key": "k"}) as http:
        assert http.post("/nodes", json=body).json()["repeated"] is True


def test_ids_may_hold_any_character(client: httpx.Client) -> None:
    names = [
        "a/b",
        "a b",
        "ü",
        "?x=1&y",
        "100%",
        "<b>",
        "'; DROP TABLE log; --",
        "🙂",
        " ",
        "a\nb",
        "\u202e",
        "#",
        "1e3",
        "",
        "\x00",
        "\ufffd",
        "__proto__",
        "n1 ",
    ]
    entries = [{"node": name, "probabilities": [0.7, 0.2, 0.1]} for name in names]
    assert client.post("/nodes", json={"nodes": entries}).is_success
    for name in names:
        answer = client.get(f"/sets/{quote(name, safe='')}")
        assert answer.status_code == 200, name
        assert answer.json()["node"] == name
        assert client.get(f"/nodes/{quote(name, safe='')}").json()["node"] == name


def test_an_integer_and_a_text_that_look_alike_are_told_apart(client: httpx.Client) -> None:
    assert client.post("/nodes", json={"nodes": [{"node": 12, "probabilities": [0, 1, 0]}]}).is_success
    assert client.get("/sets/12").json()["node"] == 12
    assert client.post("/nodes", json={"nodes": [{"node": "12", "probabilities": [1, 0, 0]}]}).is_success
    assert client.get("/sets/12").status_code == 422
    assert [row["node"] for row in client.post("/sets", json={"nodes": [12, "12"]}).json()["sets"]] == [12, "12"]


def test_an_unknown_node_is_not_found(client: httpx.Client) -> None:
    for name in ("nobody", "", "n1/", "%00", "%ff", "-0", "9223372036854775808", "-9223372036854775809", "%D9%A1"):
        for route in ("sets", "nodes"):
            answer = client.get(f"/{route}/{name}")
            assert (answer.status_code, "an existing node" in answer.json()["error"]) == (404, True)
    assert client.get("/status/", follow_redirects=False).status_code == 404


def test_head_is_answered_like_get_and_other_methods_are_told_which_there_are(client: httpx.Client) -> None:
    for path in ("/", "/livez", "/readyz", "/status", "/metrics", "/sets/n1", "/nodes/n1"):
        assert client.head(path).status_code == 200
    assert client.head("/sets/nobody").status_code == 404
    assert client.head("/labels").status_code == 405
    refused = client.delete("/labels")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_a_node_is_explained(client: httpx.Client) -> None:
    node = client.get("/nodes/n1").json()
    row = client.get("/sets/n1").json()
    assert {key: node[key] for key in row} == row
    assert [entry["label"] for entry in node["candidates"]] == list(CLASSES)
    assert [entry["label"] for entry in node["candidates"] if entry["member"]] == row["labels"]
    for entry in node["candidates"]:
        assert 0 < entry["p_value"] <= 1
        assert (entry["p_value"] > 0.2) == entry["member"]
    assert node["reason"]


@pytest.mark.parametrize("method", ["split", "naps", "naps-exact", "informed", "auto"])
def test_an_explanation_has_what_a_batch_calibration_has(tmp_path: Path, method: str) -> None:
    live = small_live(method)
    batch = present(live)[1]
    for node in ("n1", "n2", "n58"):
        for alpha in (0.2, 0.45):
            explanation, inspection = (
                live.explain(node, alpha),
                ns.inspect_node(batch, position=int(node[1:]), alpha=alpha),
            )
            columns = {name: [row[name] for row in explanation["candidates"]] for name in explanation["candidates"][0]}
            assert columns["probability"] == inspection.probabilities.tolist()
            assert columns["score"] == inspection.scores.tolist()
            assert columns["member"] == inspection.member.tolist()
            assert explanation["threshold"] == (inspection.threshold if np.isfinite(inspection.threshold) else None)
            assert ("every label" in explanation["reason"]) == (inspection.threshold == np.inf)
            in_set = [p > alpha for p in columns["p_value"]]
            assert in_set == columns["member"] or "best label" in explanation["reason"]


@pytest.mark.parametrize(("method", "kind"), [("split", str), ("split", int), ("naps", int), ("auto", int)])
def test_every_request_is_answered_whatever_the_ids_and_the_method(
    tmp_path: Path, method: str, kind: type[int] | type[str]
) -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 40)
    graph = ns.Graph.from_edge_index(rng.integers(0, 40, (2, 100)), num_nodes=40)
    y = np.where(np.arange(40) < 30, p.argmax(axis=1), -1)
    Live.start(graph, p, y, ids=[kind(i + 7) for i in range(40)], method=method).save(tmp_path / "store")
    with Client(make_app(Live.open(tmp_path / "store"))) as http:
        for turn in range(2):
            for node in (7, 20, 46):
                row = http.get(f"/sets/{node}").json()
                assert row["node"] == kind(node)
                explanation = http.get(f"/nodes/{node}")
                assert explanation.status_code == 200, explanation.text
                assert {name: explanation.json()[name] for name in row} == row
                assert explanation.json()["neighbours"]
            body = {"labels": [{"node": kind(40 + turn), "label": 0}]}
            assert http.post("/labels", json=body).is_success
            assert http.get("/status?history=true").is_success
            assert http.get("/metrics").is_success


def test_metrics_are_what_prometheus_reads(client: httpx.Client) -> None:
    client.get("/sets/n1")
    client.get("/sets/nobody")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.text)
    figures = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert figures["napsets_nodes",] == 60
    assert figures["napsets_labels",] == figures["napsets_judged_total",] == 30
    assert figures["napsets_requests_total", "GET", "/sets/{node}", "404"] == 1
    assert figures["napsets_request_seconds_bucket", "+Inf"] == figures["napsets_request_seconds_count",] == 2
    assert figures["napsets_alarm", "coverage"] == 0


def test_the_status_over_time_has_a_point_for_each_of_its_columns(client: httpx.Client) -> None:
    history = client.get("/status?history=true").json()["history"]
    assert len({len(column) for column in history.values()}) == 1
    assert len(history["judged"]) == 30
    assert history["judged"][-1] == 30


def test_the_description_has_an_example_for_every_body(client: httpx.Client) -> None:
    description = client.get("/openapi.json").json()
    bodies = [name for name in description["components"]["schemas"] if name.endswith("Body")]
    assert len(bodies) == 8
    for name in bodies:
        assert description["components"]["schemas"][name]["examples"]
    assert {
        "/sets",
        "/labels",
        "/nodes",
        "/edges",
        "/probabilities",
        "/status",
        "/metrics",
        "/livez",
        "/readyz",
    } <= set(description["paths"])


def test_a_fault_of_the_service_ends_its_answers_and_not_its_log(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live.open(store)
    monkeypatch.setattr(live, "predict", lambda *_: 1 / 0)
    with Client(make_app(live)) as http:
        assert http.get("/sets/n1").status_code == 503
        assert "start it again" in http.get("/readyz").json()["error"]
        assert http.get("/livez").status_code == 200
    with Live.open(store) as again:
        assert again.status()["nodes"] == 60
