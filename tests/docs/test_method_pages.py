"""Every method of the table has a section on a page, and the lines on it run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from napsets.localisers import LOCALISERS
from napsets.methods import ALIASES, METHODS, title
from napsets.scores import SCORES
from worlds import make_world

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "methods"
SECTIONS = ["Guarantee", "Cost", "Use it if", "Do not use it if", "Source"]
#: Methods whose extra is not always there, with what tells.
EXTRAS = {"by-community": "sknetwork"}
#: An alias stands on the page of its method.
NAMES = [name for name in METHODS if name not in ALIASES]


@pytest.fixture
def pages():
    """The pages, whose measured results import the studies, without the methods that these register."""
    pytest.importorskip("pyarrow")
    import method_pages

    tables = [(table, dict(table)) for table in (METHODS, SCORES, LOCALISERS)]
    yield method_pages
    for table, before in tables:
        table.clear()
        table.update(before)


def section_of(name: str) -> str:
    """The section of a method, on the page of its family."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")]
    (text,) = [text for text in texts if f"<!-- method {name} -->" in text]
    (section,) = [part for part in re.split(r"^(?=## )", text, flags=re.M) if f"<!-- method {name} -->" in part]
    return section


def test_every_method_has_a_section_and_every_section_a_method():
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md"))
    assert sorted(re.findall(r"^<!-- method ([a-z-]+) -->$", text, flags=re.M)) == sorted(NAMES)


def test_the_section_of_a_method_names_its_aliases():
    for alias, name in ALIASES.items():
        assert alias in METHODS
        assert f"`{alias}` " in section_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_section_says_what_to_know_in_the_same_order(name):
    text = section_of(name)
    assert text.startswith(f"## {title(name)} {{#{name}}}\n\n<!-- method {name} -->\n")
    assert [part for part in re.findall(r"^\*\*([^*]+?)\.?\*\*", text, flags=re.M) if part != "Definition"] == SECTIONS
    assert f"<!-- measured {name} -->" in text


def test_a_page_is_filled_with_what_the_code_says_and_what_was_measured(pages):
    text = pages.filled(section_of("naps"))
    assert "<!--" not in text
    assert f"**{ns.list_methods()['naps']}**" in text
    assert "`Hops`" in text
    board = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    for share in ("5 %", "30 %"):
        (row,) = re.findall(rf"^\| {share} \| .+$", text, flags=re.M)
        coverage, front = row.split(" | ")[4], row.split(" | ")[6]
        assert re.search(rf"^\| naps \| .*\| {coverage} \|.*\| {front} \|", board, flags=re.M), row


def test_a_page_says_whether_the_method_makes_intervals(pages):
    assert "It also gives [intervals]" in pages.header("naps-exact")
    assert "It is for classification only." in pages.header("by-class")


def test_a_method_that_was_not_measured_says_so(pages):
    assert pages.measured("unknown") == "Not on the [leaderboard](../leaderboard.md) yet."


@pytest.mark.parametrize("name", NAMES)
def test_the_line_of_python_runs(pages, name):
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    data = ns.datasets.dcsbm(300, mean_degree=12, num_classes=3, num_features=4, seed=0)
    probabilities = 0.6 * np.eye(3)[data.labels] + 0.4 * np.random.default_rng(0).dirichlet(np.ones(3), 300)
    known, new = np.split(np.random.default_rng(1).permutation(300), [150])
    names = {"ns": ns, "graph": data.graph, "labels": data.labels, "known": known, "new": new}
    exec(pages.python_line(name), names | {"probabilities": probabilities}, found := {})
    assert len(found["sets"]) == 150


@pytest.mark.parametrize("name", NAMES)
def test_the_command_runs(pages, name, tmp_path, monkeypatch, must_run):
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    world = make_world(tmp_path)
    world.edges.rename(tmp_path / "edges.parquet")
    world.probabilities_file.rename(tmp_path / "p.parquet")
    world.labels_file.rename(tmp_path / "y.parquet")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(pages.command_line(name).replace("\\\n", ""))
    must_run(*words[1:])
    assert (tmp_path / "sets.parquet").exists()
