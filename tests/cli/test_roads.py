"""Directed and weighted graphs from files: --direction, --weights-are and --radius."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.files import Reading, read_inputs, read_sets
from oracles import same_bits
from worlds import make_world, write

pytestmark = pytest.mark.world(lengths=True)


def thresholds(world, localiser, graph):
    method = ns.Method("aps", localiser)
    calibrated = method.calibrate_rows(
        graph, world.probabilities, world.labels, world.calibration, np.asarray(world.ids)
    )
    return calibrated.predict(world.rest, alpha=0.2).thresholds


def directed(world, **how):
    return ns.Graph.from_edge_index(world.edge_index, world.labels.size, directed=True, **how)


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_predict_follows_edges_as_asked(world, run, tmp_path, direction):
    target = tmp_path / "sets.parquet"
    done = run(
        "predict", *world.files, "--method", "naps", "--directed", "--direction", direction, "-a", 0.2, "-o", target,
        "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    file = read_sets(target)
    assert same_bits(file.sets.thresholds, thresholds(world, ns.Hops(direction=direction), directed(world)))
    assert file.metadata.get("direction", "out") == direction
    node = world.ids[world.rest[3]]
    flags = ["--method", "naps", "--directed", "--direction", direction, "-a", 0.2]
    answer = json.loads(run("inspect", *world.files, "--node", node, *flags, "--json").stdout)
    assert float(answer["threshold"]) == file.sets.thresholds[3]


@pytest.mark.parametrize("kind", ["lengths", "strengths"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_predict_goes_by_path_length(run, tmp_path, kind, suffix):
    world = make_world(tmp_path / "world", suffix=suffix, lengths=True)
    target = tmp_path / "sets.parquet"
    flags = [
        "--method",
        "naps-lengths",
        "--weights-are",
        kind,
        "--radius",
        1.5,
        "--decay",
        "gaussian",
        "--pool",
        5,
        "-a",
        0.2,
    ]
    flags += ["--directed", "--direction", "in", "--json"]
    done = run("predict", *world.files, *flags, "-o", target)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["method"], answer["radius"], answer["weights_are"]) == ("naps-lengths", 1.5, kind)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, world.edge_index.shape[1])
    localiser = ns.PathLengths(1.5, "gaussian", 5.0, direction="in")
    file = read_sets(target)
    assert same_bits(file.sets.thresholds, thresholds(world, localiser, directed(world, **{kind: weights})))
    node = world.ids[world.rest[3]]
    seen = run("inspect", *world.files, "--node", node, *flags)
    seen = json.loads(seen.stdout)
    assert float(seen["threshold"]) == file.sets.thresholds[3]
    assert all(0 < row["distance"] <= 1.5 for row in seen["neighbours"])


def test_a_weight_that_is_not_said_what_it_is_does_not_count_and_is_told_of(world, run, tmp_path):
    done = run("predict", *world.files, "--method", "naps", "-o", tmp_path / "sets.parquet")
    assert "column weight of" in done.output
    assert "--weights-are lengths or strengths" in done.output
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    assert inputs.graph.lengths is None


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, 0.0], "an edge of length 0 would make its two ends the same node"),
        ([1.0, -1.0], "entry 1 is -1"),
        (["far", "near"], "must hold numbers in its column weight"),
        ([None, 2.0], "must have no empty cell; the column weight has one"),
        (None, "must have the columns source, target, weight"),
    ],
)
def test_weights_that_are_no_lengths_are_refused(world, run, tmp_path, column, message):
    ends = {"source": world.ids[:2], "target": world.ids[2:4]}
    edges = write(tmp_path / "edges.parquet", ends if column is None else ends | {"weight": column})
    files = ["-e", edges, "-p", world.probabilities_file, "-l", world.labels_file]
    done = run("predict", *files, "--weights-are", "lengths", "--radius", 1, "-o", tmp_path / "sets.parquet")
    assert done.exit_code == 1
    assert message in done.output


def test_edges_to_unknown_nodes_take_their_weights_with_them(world, tmp_path):
    ends = {"source": [*world.ids[:2], 10**6], "target": [*world.ids[2:4], world.ids[0]], "weight": [1.0, 2.0, 9.0]}
    edges = write(tmp_path / "edges.parquet", ends)
    reading = Reading(skip_unknown=True, weights_are="lengths", directed=True)
    inputs = read_inputs(edges, world.probabilities_file, world.labels_file, reading=reading)
    assert sorted(inputs.graph.lengths.tolist()) == [1.0, 2.0]


def test_a_report_compares_by_path_length_and_direction(world, run, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    target = tmp_path / "report.html"
    done = run(
        "report", *world.files, "--methods", "split,naps,naps-lengths", "--weights-are", "lengths", "--radius", 4.0,
        "--directed", "--direction", "both", "-o", target, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert [row["method"] for row in json.loads(done.stdout)["results"]] == ["split", "naps", "naps-lengths"]
