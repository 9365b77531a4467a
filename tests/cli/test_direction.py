"""`--direction` means the same in every command: along edges, against them, or both ways."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.advice.theory import measure_homophily
from worlds import make_world, write

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


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_degrees_and_neighbourhoods_are_those_along_it(tmp_path, run, run_json, directed, direction):
    world, graph = directed
    target = tmp_path / "sets.parquet"
    assert run("predict", *world.files, "--method", "split", "-o", target).exit_code == 0
    flags = ["--edges", world.edges, "--directed", "--direction", direction, "--radius", 1, "--min-size", 2]
    answer = run_json("evaluate", target, "--labels", world.truth, *flags)
    degrees = graph.along(direction).degrees[world.rest]
    ends = [tuple(map(int, row["group"].split("–"))) for row in answer["coverage_by_degree"]]
    counts = [int(((degrees >= low) & (degrees <= high)).sum()) for low, high in ends]
    assert [row["nodes"] for row in answer["coverage_by_degree"]] == counts
    assert ends[-1][1] == degrees.max()
    # Balls are cut in the order of the sets file, which is that of `rest`.
    induced = graph.along(direction).subgraph(world.rest)
    balls = ns.neighbourhood_partition(induced, np.arange(world.rest.size), radius=1, min_size=2)
    assert answer["neighbourhoods"] == len(balls)


@pytest.fixture(params=["sets", "intervals"])
def predict_with(request, tmp_path, run, directed):
    """Return a function that makes a file of sets or of intervals with some flags, and the flags that judge it."""
    world, _ = directed
    files, truth = world.files, world.truth
    if request.param == "intervals":
        y = world.labels + 0.5
        outputs = write(tmp_path / "outputs.parquet", {"node": world.ids, "prediction": y - 0.25})
        known = {"node": world.ids[world.calibration], "target": y[world.calibration]}
        targets = write(tmp_path / "targets.parquet", known)
        files = ["--task", "regression", "--edges", world.edges, "--probabilities", outputs, "--labels", targets]
        truth = write(tmp_path / "numbers.parquet", {"node": world.ids[world.rest], "target": y[world.rest]})

    def make(suffix, *flags):
        target = tmp_path / f"made{suffix}"
        done = run("predict", *files, "--method", "split", *flags, "-o", target)
        assert done.exit_code == 0, done.output
        return ["evaluate", target, "--labels", truth, "--edges", world.edges, "--radius", 1, "--min-size", 2]

    return make


def said_by(run, *arguments):
    shown = run(*arguments, "--json")
    return " ".join(shown.stderr.split()), json.loads(shown.stdout)["coverage_by_degree"]


def test_a_file_is_judged_along_the_edges_that_it_was_made_with(run, predict_with):
    way = ["--directed", "--direction", "in"]
    flags = predict_with(".parquet", *way)
    notes, by_degree = said_by(run, *flags)
    assert f"evaluated with directed edges, --direction in, as {flags[1]} was made" in notes
    again, same = said_by(run, *flags, *way)
    assert (same, "evaluated with" in again) == (by_degree, False)
    notes, other = said_by(run, *flags, "--direction", "out")
    assert f"{flags[1]} was made with directed edges, --direction in, and is evaluated with directed edges, --" in notes
    assert other != by_degree


def test_other_edges_than_those_that_a_file_was_made_with_are_noted(run, predict_with):
    flags = predict_with(".parquet")
    assert "made" not in said_by(run, *flags)[0].replace(str(flags[1]), "")
    notes, _ = said_by(run, *flags, "--directed")
    assert f"{flags[1]} was made with undirected edges, and is evaluated with directed edges, --direction out" in notes


def test_a_file_that_does_not_say_how_it_was_made_is_judged_as_asked_for(run, predict_with):
    flags = predict_with(".csv", "--directed", "--direction", "in")
    for given_flags in ([], ["--directed"], ["--directed", "--direction", "in"]):
        assert "evaluated with" not in said_by(run, *flags, *given_flags)[0]


@pytest.mark.parametrize("command", ["homophily", "evaluate"])
def test_a_direction_that_edges_do_not_have_is_noted(tmp_path, run, directed, command):
    world, _ = directed
    run("predict", *world.files, "--method", "split", "-o", tmp_path / "s.parquet")
    inputs = ["s.parquet"] if command == "evaluate" else []
    arguments = [tmp_path / name for name in inputs] + labels_and_edges(world)
    arguments = [*arguments[:-1], world.truth] if command == "evaluate" else arguments
    shown = run(command, *arguments, "--direction", "in")
    assert shown.exit_code == 0, shown.output
    assert "--direction has no effect without --directed" in shown.stderr
    assert "has no effect" not in run(command, *arguments, "--direction", "in", "--directed").stderr


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


def test_a_direction_that_makes_no_difference_is_said_first(run, world):
    shown = run("homophily", "-e", world.edges, "-l", world.labels_file, "--direction", "in")
    assert shown.exit_code == 0, shown.output
    assert first_line(shown) == "note: --direction has no effect without --directed: edges go both ways"


def test_a_direction_that_makes_no_difference_is_said_before_sets_are_judged(run, world, tmp_path):
    target = tmp_path / "sets.csv"
    assert run("predict", *world.files, "--method", "split", "-o", target).exit_code == 0
    shown = run("evaluate", target, "-l", world.truth, "-e", world.edges, "--direction", "in")
    lines = shown.stderr.splitlines()
    note = "note: --direction has no effect without --directed: edges go both ways"
    assert lines.index(note) < lines.index("reading edges …")
