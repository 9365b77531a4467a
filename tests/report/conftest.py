"""A graph to report on, the page about it, and a real browser to read it with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.comparison import Comparison, compare
from skips import lacking

CLASSES = ["alpha", "beta & gamma", "<b>delta</b>", "epsilon", "zeta"]


def make_world(seed: int = 5, n: int = 1500, edges: int = 20000) -> dict[str, Any]:
    """Five classes that mostly link among themselves, scores that are harder in one class, ten nodes without edges."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=n)
    ends = rng.integers(n - 10, size=(2, edges))
    kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(edges) < 0.1)
    logits = (2.4 - 1.2 * (labels == 0))[:, None] * (np.arange(5) == labels[:, None]) + rng.normal(size=(n, 5))
    order = rng.permutation(n - 10)
    return {
        "graph": ns.Graph.from_edge_index(ends[:, kept], num_nodes=n),
        "probabilities": np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True),
        "labels": labels,
        "calibration": order[:750],
        "nodes": np.concatenate([order[750:], np.arange(n - 10, n)]),
        "seed": 3,
    }


@pytest.fixture(scope="session")
def world() -> dict[str, Any]:
    return make_world()


@pytest.fixture(scope="session")
def comparison(world: dict[str, Any]) -> Comparison:
    return compare(**world)


@pytest.fixture(scope="session")
def page_file(world: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = ("Table of <b>tests</b>", [{"method": "NAPS", "coverage": 0.9, "printed": None, "seeds": 1000}])
    path = tmp_path_factory.mktemp("report") / "report.html"
    return ns.report.write_report(
        path, **world, class_names=CLASSES, dataset="Blocks & <i>circles</i>", model="noise", tables=[table]
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        lacking("no chromium", "apt-get install chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield found
        found.close()
