"""A sets file is judged by the labels that became known, and by no others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import napsets as ns
from napsets.errors import InvalidInputError
from napsets.evaluation.files import evaluate_file, label_file
from napsets.files import NodeIds, read_graph_around, read_inputs, read_prediction, write_prediction
from worlds import CLASSES, write

STRATA = [(0, 1), (2, 3)]


def predicted(world, path):
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    naps = inputs.calibrate(ns.NAPS(hops=2))
    write_prediction(inputs, path, naps, alpha=0.2, metadata={"class_names": inputs.class_names})
    return naps.predict(world.rest, alpha=0.2)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_metrics_are_those_of_the_library(tmp_path, world, suffix):
    sets = predicted(world, tmp_path / f"sets{suffix}")
    result = evaluate_file(label_file(read_prediction(tmp_path / f"sets{suffix}"), world.truth), STRATA)
    y = world.labels
    assert result["nodes"] == len(sets)
    assert result["unlabelled"] == 0
    assert result["coverage"] == ns.coverage(sets, y)
    assert result["mean_size"] == ns.mean_size(sets)
    assert result["size_given_coverage"] == ns.size_given_coverage(sets, y)
    assert result["sscv"] == ns.sscv(sets, y, STRATA)
    assert result["singleton_rate"] == ns.singleton_rate(sets)
    assert result["empty_rate"] == ns.empty_rate(sets)
    assert result["infinite"] == np.isinf(sets.thresholds).sum()
    if suffix == ".csv":
        assert np.isnan(result["full_rate"])  # a CSV does not say what all classes are
    else:
        assert result["full_rate"] == ns.full_rate(sets)
    by_class = {row["group"]: row["coverage"] for row in result["coverage_by_class"]}
    np.testing.assert_array_equal([by_class[name] for name in CLASSES], ns.coverage_by_class(sets, y).coverage)


@pytest.mark.parametrize(
    ("metadata", "helps"),
    [
        ({}, ", or `napsets predict --by class`, unless the sets were made with it: it gives each class its own thre"),
        (
            {"groups": None},
            ", or `napsets predict --by class`: it gives each class its own threshold that has at least 4 ",
        ),
        ({"groups": {"name": "class"}}, ""),
    ],
)
def test_thresholds_per_class_are_advised_only_where_the_sets_have_none(tmp_path, world, metadata, helps):
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    naps = inputs.calibrate(ns.NAPS(hops=2))
    described = {"method_description": metadata} if metadata else {}
    told = {"class_names": inputs.class_names, **described}
    write_prediction(inputs, tmp_path / "sets.parquet", naps, alpha=0.2, metadata=told)
    sets = naps.predict(world.rest, alpha=0.2)
    missed = world.rest[~sets.member[:, 0]]  # all of them are said to be of the first class
    truth = write(tmp_path / "truth.csv", {"node": world.ids[missed], "label": np.full(missed.size, CLASSES[0])})
    weak = evaluate_file(label_file(read_prediction(tmp_path / "sets.parquet"), truth))["weak"]
    assert len(weak) == 1
    assert f"What helps: more of their labels when the sets are made{helps}" in weak[0]
    assert ("--by" in weak[0]) == bool(helps)


def test_neighbourhoods_and_degrees_are_those_of_the_whole_graph(tmp_path, world):
    sets = predicted(world, tmp_path / "sets.parquet")
    file = read_prediction(tmp_path / "sets.parquet")
    graph = read_graph_around(world.edges, file.ids)[1]
    result = evaluate_file(label_file(file, world.truth), STRATA, graph=graph, radius=1, min_size=3)
    np.testing.assert_array_equal(graph.degrees[: len(sets)], world.graph.degrees[world.rest])
    by_degree = ns.coverage_by_degree(sets, world.labels, world.graph)
    assert [row["coverage"] for row in result["coverage_by_degree"]] == by_degree.coverage.tolist()
    assert result["coverage_by_degree"][0]["group"] == "{}–{}".format(*by_degree.group[0])
    assert result["neighbourhoods"] > 1
    parts = ns.neighbourhood_partition(graph, np.arange(len(sets)), radius=1, min_size=3)
    assert result["pccv"] == ns.pccv(sets, world.labels, [world.rest[part] for part in parts]) <= 0.8


def test_edges_may_name_ids_that_are_too_large_for_the_type_of_the_sets(tmp_path):
    edges = write(tmp_path / "e.parquet", {"source": [1, 2], "target": [2, 10**12]})
    _, graph = read_graph_around(edges, NodeIds(pa.array([2, 1], pa.int8())))
    assert graph == ns.Graph.from_edge_index([[1, 0], [0, 2]], num_nodes=3)


def test_sets_without_a_label_are_counted_and_left_out(tmp_path, world):
    sets = predicted(world, tmp_path / "sets.parquet")
    half = world.rest[::2]
    truth = write(tmp_path / "half.parquet", {"node": world.ids[half], "label": world.labels[half]})
    labelled = label_file(read_prediction(tmp_path / "sets.parquet"), truth)
    result = evaluate_file(labelled, STRATA)
    assert (result["nodes"], result["unlabelled"]) == (half.size, len(sets) - half.size)
    covered = sets.contains(world.labels)[::2]
    assert result["coverage"] == covered.mean()


def test_labels_without_a_set_are_noted_and_left_out(tmp_path, world):
    predicted(world, tmp_path / "sets.parquet")
    everyone = write(tmp_path / "all.parquet", {"node": world.ids, "label": world.labels})
    labelled = label_file(read_prediction(tmp_path / "sets.parquet"), everyone)
    assert len(labelled.prediction) == world.rest.size
    assert labelled.notes[0].startswith("left out: 60 rows of `labels`")
    silent = label_file(read_prediction(tmp_path / "sets.parquet"), everyone, silent=True)
    assert silent.notes == labelled.notes[1:]


def test_files_without_a_common_node_are_refused(tmp_path, world):
    predicted(world, tmp_path / "sets.parquet")
    other = write(tmp_path / "other.parquet", {"node": pa.array([10**9]), "label": ["cat"]})
    with pytest.raises(InvalidInputError, match="no node of `sets` has a label"):
        label_file(read_prediction(tmp_path / "sets.parquet"), other)


def test_a_label_that_no_set_has_is_a_class_too(tmp_path, world):
    predicted(world, tmp_path / "sets.csv")
    truth = write(tmp_path / "t.parquet", {"node": world.ids[world.rest[:2]], "label": ["cow", "cow"]})
    result = evaluate_file(label_file(read_prediction(tmp_path / "sets.csv"), truth), STRATA)
    assert result["coverage"] == 0.0
    assert result["coverage_by_class"][-1]["group"] == "cow"
