"""One comparison serves both the table on the terminal and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from napsets import datasets
from napsets.evaluation import comparison
from worlds import make_world


@pytest.fixture
def searches(monkeypatch) -> list[int]:
    """How many nodes each comparison searched around."""
    seen: list[int] = []
    search = comparison.find_thresholds

    def counting(calibrated, nodes, *arguments, **options):
        seen.append(len(nodes))
        return search(calibrated, nodes, *arguments, **options)

    monkeypatch.setattr(comparison, "find_thresholds", counting)
    return seen


def test_report_compares_once(tmp_path, run, searches):
    world = make_world(tmp_path, nodes=100)
    shown = run("report", *world.files, "--truth", world.truth, "-o", tmp_path / "r.html", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert searches == [50]
    naps = json.loads(shown.stdout)["results"][1]
    page = (tmp_path / "r.html").read_text(encoding="utf-8").replace("\xa0", " ")  # numbers keep their units
    assert f"{100 * naps['coverage']:.1f} %" in page


def test_demo_compares_once(tmp_path, run, monkeypatch, searches):
    gnn = pytest.importorskip("napsets.gnn", exc_type=ImportError)
    small = datasets.dcsbm(1000, mean_degree=10, num_classes=3, num_features=4, seed=0)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 1000)
    guessed = datasets.NodePredictions(np.arange(1000), p, small.labels, np.full(1000, "test"), "small", "guess", {})
    monkeypatch.setattr(datasets, "load", lambda name, seed: small)
    monkeypatch.setattr(gnn, "train", lambda data, **settings: guessed)
    shown = run("demo", "-o", tmp_path / "r.html", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert len(searches) == 1


def test_a_comparison_keeps_the_labels_that_judged(tmp_path):
    world = make_world(tmp_path, nodes=100)
    labels = world.labels.copy()
    compared = comparison.compare(world.graph, world.probabilities, labels, world.calibration, world.rest)
    labels[:] = 0
    assert np.array_equal(compared.labels, world.labels)
