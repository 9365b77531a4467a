"""A file of intervals is judged by the numbers that became known, and by no others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom

import napsets as ns
from napsets.evaluation.files import evaluate_file, label_file
from napsets.files import read_graph_around, read_inputs, read_prediction, write_prediction
from number_worlds import ENDS, IDS, REST, SIZE, Y, number_files
from worlds import write

GRAPH = ns.Graph.from_edge_index(ENDS, SIZE)


def predicted(folder, target, about=None):
    """Write intervals of neighbourhoods, some of which are the whole line, and return them."""
    inputs = read_inputs(*number_files(folder)[1::2], prediction=ns.PredictionIntervals)
    calibrated = inputs.calibrate(ns.make_method("naps", score="cqr", hops=1))
    write_prediction(inputs, target, calibrated, alpha=0.2, metadata={"alpha": 0.2} | (about or {}))
    return calibrated.predict(REST, 0.2)


def truth(folder, nodes=REST, suffix=".parquet"):
    return write(folder / f"truth{suffix}", {"node": IDS[nodes], "target": Y[nodes]})


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_metrics_are_those_of_the_library(tmp_path, suffix):
    intervals = predicted(tmp_path, tmp_path / f"out{suffix}")
    labelled = label_file(read_prediction(tmp_path / f"out{suffix}"), truth(tmp_path, suffix=suffix))
    result = evaluate_file(labelled)
    finite = intervals.widths[np.isfinite(intervals.widths)]
    assert 0 < intervals.infinite < len(intervals)
    assert (result["nodes"], result["unlabelled"], result["alpha"]) == (50, 0, 0.2)
    assert result["coverage"] == ns.coverage(intervals, Y)
    assert result["mean_width"] == np.inf
    assert result["finite_width"] == pytest.approx(finite.mean())
    assert result["median_width"] == np.median(intervals.widths)
    assert (result["infinite"], result["infinite_rate"]) == (intervals.infinite, intervals.infinite / 50)
    assert "pccv" not in result
    low, high = binom.ppf([0.025, 0.975], 50, 0.8) / 50
    assert (result["coverage_low"], result["coverage_high"]) == (low, high)


def test_where_the_file_says_how_many_labels_set_the_level_their_chance_counts_too(tmp_path):
    predicted(tmp_path, tmp_path / "out.parquet", {"level_labels": 99})
    result = evaluate_file(label_file(read_prediction(tmp_path / "out.parquet"), truth(tmp_path)))
    low, high = betabinom.ppf([0.025, 0.975], 50, 80, 20) / 50
    assert (result["coverage_low"], result["coverage_high"]) == (low, high)
    assert low < binom.ppf(0.025, 50, 0.8) / 50


def test_neighbourhoods_and_degrees_are_those_of_the_whole_graph(tmp_path):
    intervals = predicted(tmp_path, tmp_path / "out.parquet")
    file = read_prediction(tmp_path / "out.parquet")
    graph = read_graph_around(tmp_path / "edges.parquet", file.ids)[1]
    result = evaluate_file(label_file(file, truth(tmp_path)), graph=graph, radius=1, min_size=3)
    np.testing.assert_array_equal(graph.degrees[:50], GRAPH.degrees[REST])
    covered, degrees = intervals.contains(Y), GRAPH.degrees[REST]
    for row in result["coverage_by_degree"]:
        low, high = map(int, row["group"].split("–"))
        mine = (degrees >= low) & (degrees <= high)
        assert (row["nodes"], row["coverage"]) == (mine.sum(), covered[mine].mean())
        finite = intervals.widths[mine & np.isfinite(intervals.widths)]
        assert row["mean_width"] == pytest.approx(finite.mean() if finite.size else np.nan, nan_ok=True)
    assert sum(row["nodes"] for row in result["coverage_by_degree"]) == 50
    groups = np.full(SIZE, -1)
    groups[REST] = ns.groups_by_degree(GRAPH, nodes=REST)[REST]
    gap = ns.coverage_gap(intervals, Y, groups)
    for name, value in gap.row().items():
        assert result[f"{name}_degree"] == value
    parts = ns.neighbourhood_partition(graph, np.arange(50), radius=1, min_size=3)
    assert result["neighbourhoods"] == len(parts) > 1
    assert result["pccv"] == ns.pccv(intervals, Y, [REST[part] for part in parts])
    assert result["under_neighbourhood"] + result["over_neighbourhood"] == pytest.approx(result["gap_neighbourhood"])


def test_groups_of_ones_own_stand_beside_chance(tmp_path):
    intervals = predicted(tmp_path, tmp_path / "out.parquet")
    names = np.array(["a", "b", ""])[np.arange(50) % 3]
    labelled = label_file(read_prediction(tmp_path / "out.parquet"), truth(tmp_path))
    result = evaluate_file(labelled, groups=names)
    gap = ns.coverage_gap(intervals, Y[REST], names, per="set")
    assert {name: result[f"{name}_group"] for name in gap.row()} == gap.row()
    covered = intervals.contains(Y)
    for row in result["coverage_by_group"]:
        mine = names == row["group"]
        assert (row["count"], row["coverage"]) == (mine.sum(), covered[mine].mean())
    assert [row["group"] for row in result["coverage_by_group"]] == ["a", "b"]
