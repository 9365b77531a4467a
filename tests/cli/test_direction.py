"""`--direction` means the same in every command: along edges, against them, or both ways."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.advice.theory import measure_homophily
from worlds import make_world

DIRECTIONS = ["out", "in", "both"]


@pytest.fixture
def directed(tmp_path):
    world = make_world(tmp_path / "w", nodes=240, degree=4)
    return world, ns.Graph.from_edge_index(world.edge_index, 240, directed=True)


def known(world):
    return np.where(np.isin(np.arange(240), world.calibration), world.labels, -1)


def labels_and_edges(world):
    return ["--edges", world.edges, "--labels", world.labels_file]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_homophily_is_that_of_the_neighbours_along_it(run_json, directed, direction):
    world, graph = directed
    answer = run_json("homophily", *labels_and_edges(world), "--directed", "--direction", direction)
    homophily = measure_homophily(graph.along(direction), known(world), num_classes=3)
    assert answer["homophily"] == pytest.approx(homophily.mean)
    assert answer["without_labelled_neighbour"] == homophily.unmet
    assert answer["edges"] == graph.along(direction).num_edges


def first_line(shown):
    return shown.stderr.splitlines()[0]


@pytest.mark.parametrize("command", ["predict", "inspect", "report"])
def test_what_a_method_ignores_is_said_before_the_work_begins(run, world, tmp_path, command):
    target = tmp_path / ("report.html" if command == "report" else "sets.csv")
    rest = {"predict": ["-o", target], "inspect": ["--node", world.ids[0]], "report": ["-o", target]}[command]
    methods = ["--methods", "split,informed"] if command == "report" else ["--method", "split"]
    shown = run(command, *world.files, *methods, "--directed", "--direction", "in", *rest)
    assert shown.exit_code == 0, shown.output
    who = "the methods split, informed ignore" if command == "report" else "the method split ignores"
    assert first_line(shown) == f"note: {who} --direction"


def test_what_no_method_of_the_demo_knows_is_said_before_it_trains(run, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr("napsets.datasets.load", lambda *arguments, **options: 1 / 0)
    shown = run("demo", "--methods", "split", "--hops", 3, "-o", tmp_path / "demo.html")
    assert first_line(shown) == "note: the method split ignores --hops"


def test_a_score_that_a_method_ignores_is_named(run, world, tmp_path):
    shown = run("predict", *world.files, "--method", "thr", "--score", "raps", "-o", tmp_path / "sets.csv")
    assert first_line(shown) == "note: the method thr ignores --score"
