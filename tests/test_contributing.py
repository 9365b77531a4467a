"""What CONTRIBUTING shows is code that runs: a score, a localiser, a level and a method, each used and saved."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import compare
from napsets.levels import LEVELS, Exact
from napsets.localisers import LOCALISERS, Everyone
from napsets.methods import METHODS, Method, load, make_method, methods, save
from napsets.scores import SCORES

TABLES = (SCORES, LOCALISERS, LEVELS, METHODS)
ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.fixture
def added():
    """Run the page's code, and take back what it entered when the test is over."""
    before = {id(table): set(table) for table in TABLES}
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCKS:
        exec(compile(block, "CONTRIBUTING.md", "exec", dont_inherit=True), names)
    yield {id(table): sorted(set(table) - before[id(table)]) for table in TABLES}
    for table in TABLES:
        for name in set(table) - before[id(table)]:
            del table[name]


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    graph = ns.Graph.from_edge_index(rng.integers(200, size=(2, 1200)), num_nodes=200)
    p = 0.5 * np.eye(3)[labels] + 0.5 * rng.dirichlet(np.ones(3), 200)
    return {"graph": graph, "probabilities": p, "labels": labels, "calibration": np.arange(100)}


def test_each_is_about_five_lines():
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        body = [line for line in block.splitlines() if line.strip() and not re.match(r"from |import ", line)]
        assert len(body) <= 7


def test_each_table_got_its_entry(added):
    assert list(added.values()) == [["margin"], ["even-hops"], ["few-labels"], ["even"]]
    assert methods()["even"].startswith("NAPS on every second hop")


def test_the_score_can_be_named(added, world):
    made = ns.NAPS(score="margin").calibrate(**world)
    p = world["probabilities"]
    assert np.allclose(made.calibrated_.score.matrix(np.arange(200)), p.max(axis=1, keepdims=True) - p)


def test_the_localiser_sees_every_second_hop(added, world):
    found = make_method("even", hops=2).calibrate(**world).predict(np.arange(100, 200), alpha=0.2)
    expected = ns.NAPS(hops=2, decay=[0.0, 1.0]).calibrate(**world).predict(np.arange(100, 200), alpha=0.2)
    assert np.array_equal(found.thresholds, expected.thresholds)


def test_the_level_keeps_a_third_of_the_labels_apart(added, world):
    few = Method("aps", Everyone(), LEVELS["few-labels"]()).calibrate(**world)
    assert isinstance(few.method.level, Exact)
    assert few.scored.apart.size == 33


def test_all_of_it_is_compared_saved_and_loaded(added, world, tmp_path):
    found = compare(**world, nodes=np.arange(100, 200), methods=["split", "even"], score="margin")
    assert [result.title for result in found] == ["MARGIN split", "Even"]
    calibrated = found["even"].calibrated
    save(calibrated, tmp_path / "even.npz")
    _, again = load(tmp_path / "even.npz")
    nodes = np.arange(100, 200)
    assert np.array_equal(again.predict(nodes).thresholds, calibrated.predict(nodes).thresholds)
