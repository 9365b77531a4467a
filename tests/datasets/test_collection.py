"""Graphs kept as files in one layout, on a file small enough to check by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napsets.datasets import DATASETS, load, read_collected
from napsets.datasets.registry import COLLECTION, TIMED, by_quantiles, split_seed
from napsets.errors import FileFormatError, InvalidInputError, NapsetsWarning

# A ring of 20 nodes, stored one way: each has an edge to the next.
NODES = 20
PARTS = {
    "n": np.int64(NODES),
    "adj_indptr": np.arange(NODES + 1),
    "adj_indices": np.roll(np.arange(NODES, dtype=np.int32), -1),
    "x_indptr": np.arange(NODES + 1),
    "x_indices": np.arange(NODES, dtype=np.int32) % 3,
    "x_data": np.arange(1, NODES + 1, dtype=np.float32),
    "x_shape": np.array([NODES, 3]),
    "directed": np.bool_(True),
    "labels": np.zeros(NODES, np.int32),
}


def write(folder, name="cora_ml", **changes):
    parts = {key: value for key, value in (PARTS | changes).items() if value is not None}
    np.savez_compressed(folder / f"{name}.npz", **parts)
    return folder


def test_a_graph_of_the_collection_is_read_with_all_its_nodes_split(tmp_path):
    data = load("cora-ml", root=write(tmp_path))
    assert data.name == "cora-ml"
    assert data.graph.undirected
    assert data.graph.num_edges == 2 * NODES
    assert data.feature_rows(slice(None))[4].tolist() == [0, 5, 0]
    assert [part.size for part in (data.train, data.validation, data.test)] == [2, 2, 16]
    assert data.targets is None
    assert load("cora-ml", root=tmp_path, sizes=(0.5, 0.2, 0.2)).train.size == 10


def test_direction_is_kept_where_it_is_asked_for_and_stored(tmp_path):
    write(tmp_path, "cora_ml_directed")
    data = load("cora-ml-directed", root=tmp_path)
    assert not data.graph.undirected
    assert data.graph.neighbours(0).tolist() == [1]
    assert load("cora-ml-directed", root=tmp_path, directed=False).graph.neighbours(0).tolist() == [1, 19]
    write(tmp_path, directed=np.bool_(False))
    with pytest.raises(InvalidInputError, match="`directed` must be False for 'cora-ml'"):
        load("cora-ml", root=tmp_path, directed=True)


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
def test_numbers_are_cut_into_fifths_and_kept(tmp_path):
    target = np.random.default_rng(3).normal(size=NODES)
    data = load("wiki-squirrel-traffic", root=write(tmp_path, "wiki_squirrel_traffic", labels=None, target=target))
    assert data.num_classes == 5
    assert np.bincount(data.labels).tolist() == [4] * 5
    assert np.array_equal(data.targets, target)
    assert not data.targets.flags.writeable
    assert data.labels[target.argmin()] == 0
    assert data.labels[target.argmax()] == 4
    assert "quantiles" in data.settings["classes"]


def test_equal_numbers_fall_into_the_same_class():
    classes = by_quantiles(np.array([1.0, 1.0, 1.0, 1.0, 5.0]), 5)
    assert np.unique(classes[:4]).size == 1
    assert classes[4] > classes[0]


def test_no_seed_draws_the_split_that_the_generator_with_that_seed_would(tmp_path):
    labels = np.zeros(1000, int)
    labels[np.random.default_rng(0).permutation(1000)[:200]] = 1  # as mines were laid
    parts = {
        "n": 1000, "adj_indptr": np.zeros(1001, int), "adj_indices": np.zeros(0, np.int32), "x_indptr": np.arange(1001),
        "x_indices": np.zeros(1000, np.int32), "x_data": np.ones(1000, np.float32), "x_shape": [1000, 1],
        "directed": False, "labels": labels,
    }  # fmt: skip
    data = load("minesweeper", root=write(tmp_path, "minesweeper", **parts), seed=0)
    assert 0.15 < data.labels[data.test].mean() < 0.25
    seeds = {split_seed(name, seed) for name in COLLECTION for seed in range(20)}
    assert len(seeds) == 20 * len(COLLECTION)
    assert not seeds & set(range(1000))
    again = load("minesweeper", root=tmp_path, seed=0)
    assert np.array_equal(data.train, again.train)
    assert not np.array_equal(data.train, load("minesweeper", root=tmp_path, seed=1).train)


def test_a_file_of_ones_own_may_have_any_name(tmp_path):
    data = read_collected(write(tmp_path, "my_ring") / "my_ring.npz", directed=True)
    assert data.name == "my-ring"
    assert data.graph.num_edges == NODES


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_data": None}, "x_data"),
        ({"adj_indptr": np.arange(5)}, "adj_indptr must have 21 entries"),
        ({"labels": np.zeros(3, int)}, "one row for each of the 20 nodes"),
        ({"adj_indices": np.full(NODES, 99)}, "99"),
        ({"labels": None, "target": np.full(NODES, np.nan)}, "`target` must be finite"),
    ],
)
def test_damaged_files_are_named(tmp_path, changes, words):
    write(tmp_path, **changes)
    with pytest.raises(FileFormatError, match=words):
        load("cora-ml", root=tmp_path)


def test_a_missing_root_file_or_option_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match=r"`root` must name the folder that holds cora_ml\.npz"):
        load("cora-ml")
    with pytest.raises(FileFormatError, match=r"cora_ml\.npz must be a file"):
        load("cora-ml", root=tmp_path)
    with pytest.raises(InvalidInputError, match="`size` must be an option of 'cora-ml', which takes root, seed, dir"):
        load("cora-ml", root=tmp_path, size=3)


def test_the_files_of_the_project_are_what_the_table_says():
    folder = Path(__file__).parents[2] / "benchmarks" / "data"
    for name, summary in COLLECTION.items():
        assert DATASETS[name].source == "files in `root`"
        data = load(name, root=folder)
        assert summary.split(": ")[1].startswith(f"{data.num_nodes:,} nodes, ")
        assert summary.endswith(f"{data.num_features:,} features, {data.num_classes} classes")
        assert data.train.size + data.validation.size + data.test.size == data.num_nodes


@pytest.mark.filterwarnings("ignore:.*lacks:napsets.NapsetsWarning")
@pytest.mark.parametrize("name", TIMED)
def test_the_graphs_with_time_are_what_the_table_says_and_split_by_time(name):
    data = load(name, root=Path(__file__).parents[2] / "benchmarks" / "data")
    summary = TIMED[name].split(": ")[1]
    assert summary == (
        f"{data.num_nodes:,} nodes, {data.graph.num_edges:,} edges, {data.num_features:,} features, "
        f"{data.num_classes} classes"
    )
    parts = [data.times[part] for part in (data.train, data.validation, data.test)]
    assert parts[0].max() <= parts[1].min() <= parts[1].max() <= parts[2].min()
    labelled = int((data.labels >= 0).sum())
    assert [part.size for part in parts] == [
        int(0.3 * labelled), int(0.5 * labelled) - int(0.3 * labelled), labelled - int(0.5 * labelled)
    ]  # fmt: skip


def test_targets_must_be_one_a_node(tmp_path):
    data = load("cora-ml", root=write(tmp_path))
    from dataclasses import replace

    with pytest.raises(InvalidInputError, match="`targets` must have one entry per node"):
        replace(data, targets=[1.0])
    with pytest.warns(NapsetsWarning, match="lacks"):
        replace(data, labels=np.arange(NODES))


@pytest.mark.parametrize(("name", "edges"), [("cora-ml", 8_416), ("squirrel-filtered", 65_578)])
def test_the_directed_graphs_that_come_with_the_project_go_one_way(name, edges):
    root = Path(__file__).parents[2] / "benchmarks" / "data"
    one_way, both = load(f"{name}-directed", root=root), load(name, root=root)
    assert one_way.graph.directed
    assert one_way.graph.num_edges == edges
    assert f"{edges:,} edges" in COLLECTION[f"{name}-directed"]
    assert one_way.graph.both_ways == both.graph
    assert np.array_equal(one_way.labels, both.labels)
