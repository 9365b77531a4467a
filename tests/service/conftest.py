from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import napsets as ns
from napsets.live.live import Live

CLASSES = ("ham", "spam", "<script>alert(1)</script>")


def small_live(method: str = "split", **settings: Any) -> Live:
    """A living graph of 60 nodes called n0, n1, …, every other of which has a label."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet((0.6, 0.6, 0.6), 60)
    y = (p.cumsum(axis=1) > rng.random((60, 1))).argmax(axis=1)
    graph = ns.Graph.from_edge_index(rng.integers(0, 60, (2, 150)), num_nodes=60)
    ids = [f"n{i}" for i in range(60)]
    settings = {"alpha": 0.2, "seed": 3, "class_names": CLASSES, "method": method} | settings
    return Live.start(graph, p, np.where(np.arange(60) % 2 == 0, y, -1), ids=ids, **settings)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store on the disk, which nobody has open."""
    live = small_live()
    live.save(tmp_path / "store")
    live.close()
    return tmp_path / "store"


def missing(store: Path) -> dict[str, Any]:
    """Log the sets of a store, and return labels that are not in them, as a body for POST /labels."""
    with Live.open(store) as live:
        sets = live.predict(log=True)
    rows = np.flatnonzero(~sets.member.all(axis=1))
    labels = zip(sets.ids[rows].tolist(), sets.member[rows].argmin(axis=1).tolist(), strict=True)
    return {"labels": [{"node": node, "label": label} for node, label in labels]}


class Client:
    """A client of an application in this process; the application is started and stopped as a server would."""

    def __init__(self, app: Any, **headers: str) -> None:
        from starlette.testclient import TestClient

        self.http = TestClient(app, base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False)

    def __enter__(self) -> httpx.Client:
        return self.http.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.http.__exit__(*error)


@pytest.fixture
def client(store: Path) -> Iterator[httpx.Client]:
    from napsets.service.app import make_app

    with Client(make_app(Live.open(store))) as http:
        yield http
