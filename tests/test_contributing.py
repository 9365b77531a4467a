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
from napsets.methods import METHODS, Method, list_methods, load, save
from napsets.scores import SCORES
from worlds import draw_world

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
    inputs = draw_world(0, 200, 3, 1200, other=1.0)
    del inputs["nodes"]
    return inputs


def test_each_is_about_five_lines():
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        body = [line for line in block.splitlines() if line.strip() and not re.match(r"from |import ", line)]
        assert len(body) <= 7


def test_each_table_got_its_entry(added):
    assert list(added.values()) == [["margin"], ["near-degree"], ["few-labels"], ["near-degree"]]
    assert list_methods()["near-degree"].startswith("Thresholds from labelled nodes with about as many neighbours")


def test_the_score_can_be_named(added, world):
    calibrated = ns.NAPS(score="margin").calibrate(**world)
    p = world["probabilities"]
    assert np.allclose(calibrated.score.matrix(np.arange(200)), p.max(axis=1, keepdims=True) - p)


def test_the_localiser_weighs_nodes_of_about_the_same_degree(added, world):
    near = ns.Method("aps", LOCALISERS["near-degree"]()).calibrate(**world)
    weights = near.local.weights(150)
    degrees = np.log1p(world["graph"].degrees)
    assert weights.weights == pytest.approx(np.exp(-np.abs(degrees[weights.nodes] - degrees[150])))
    expected = ns.weighted_quantile(weights.scores, weights.weights, 0.2)
    assert near.predict([150], alpha=0.2).thresholds[0] == expected


def test_the_level_keeps_a_third_of_the_labels_apart(added, world):
    few = Method("aps", Everyone(), LEVELS["few-labels"]()).calibrate(**world)
    assert isinstance(few.method.level, Exact)
    assert few.scored.level_nodes.size == 33


def test_all_of_it_is_compared_saved_and_loaded(added, world, tmp_path):
    comparison = compare(**world, nodes=np.arange(100, 200), methods=["split", "near-degree"], score="margin")
    assert [result.title for result in comparison] == ["Split margin", "Near degree"]
    calibrated = comparison["near-degree"].calibrated
    save(calibrated, tmp_path / "near.npz")
    again = load(tmp_path / "near.npz")
    nodes = np.arange(100, 200)
    assert np.array_equal(again.predict(nodes).thresholds, calibrated.predict(nodes).thresholds)
