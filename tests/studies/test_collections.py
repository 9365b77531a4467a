"""Graphs kept as files in one layout, on a file small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest

from napsets import FileFormatError, InvalidInputError
from napsets.datasets import sbm
from studies import collections
from studies.collections import COLLECTION, TIMED, load, read_collected, split_seed

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
    assert not data.graph.directed
    assert data.graph.num_edges == 2 * NODES
    assert data.feature_rows(slice(None))[4].tolist() == [0, 5, 0]
    assert [part.size for part in (data.train, data.validation, data.test)] == [2, 2, 16]
    assert data.targets is None


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


def test_no_seed_draws_the_split_that_the_generator_with_that_seed_would(tmp_path):
    labels = np.zeros(1000, int)
    labels[np.random.default_rng(0).permutation(1000)[:200]] = 1  # as mines were laid
    parts = {
        "n": 1000, "adj_indptr": np.zeros(1001, int), "adj_indices": np.zeros(0, np.int32), "x_indptr": np.arange(1001),
        "x_indices": np.zeros(1000, np.int32), "x_data": np.ones(1000, np.float32), "x_shape": [1000, 1],
        "labels": labels,
    }  # fmt: skip
    data = load("minesweeper", root=write(tmp_path, "minesweeper", **parts), seed=0)
    assert 0.15 < data.labels[data.test].mean() < 0.25
    seeds = {split_seed(name, seed) for name in COLLECTION for seed in range(20)}
    assert len(seeds) == 20 * len(COLLECTION)
    assert not seeds & set(range(1000))
    again = load("minesweeper", root=tmp_path, seed=0)
    assert np.array_equal(data.train, again.train)
    assert not np.array_equal(data.train, load("minesweeper", root=tmp_path, seed=1).train)


def test_a_large_graph_is_read_with_its_published_split_and_without_features(tmp_path):
    """The layout of the file of Flickr: masks, and no features."""
    train, validation = np.arange(NODES) < 10, np.arange(NODES) >= 15
    masks = {"train_mask": train, "val_mask": validation, "test_mask": ~(train | validation)}
    parts = dict.fromkeys(("x_indptr", "x_indices", "x_data", "x_shape", "directed")) | masks
    data = load("flickr-graph", root=write(tmp_path, "flickr_graphsaint", **parts))
    assert (data.train.size, data.validation.tolist(), data.test.tolist()) == (10, [*range(15, 20)], [*range(10, 15)])
    assert (data.num_features, data.settings["split"]) == (0, "published")
    assert read_collected(tmp_path / "flickr_graphsaint.npz").name == "flickr-graphsaint"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_data": None}, "x_data"),
        ({"adj_indptr": np.arange(5)}, "adj_indptr must have 21 entries"),
        ({"labels": np.zeros(3, int)}, "one row for each of the 20 nodes"),
        ({"adj_indices": np.full(NODES, 99)}, "99"),
        ({"labels": None, "target": np.full(NODES, np.nan)}, "`target` must be finite"),
        ({"node_time": np.linspace(0, 1, NODES)}, "node_time must be whole numbers; got float64"),
        ({"node_time": np.arange(3)}, "one row for each of the 20 nodes"),
    ],
)
def test_damaged_files_are_named(tmp_path, changes, words):
    write(tmp_path, **changes)
    with pytest.raises(FileFormatError, match=words):
        load("cora-ml", root=tmp_path)


def test_a_missing_file_and_an_unknown_name_are_told(tmp_path):
    with pytest.raises(FileFormatError, match=r"cora_ml\.npz must be a file"):
        load("cora-ml", root=tmp_path)
    with pytest.raises(InvalidInputError, match="did you mean 'cora-ml'"):
        load("cora_ml", root=tmp_path)


def test_the_graphs_of_the_package_are_loaded_too():
    assert load("sbm", block_size=20, seed=3).graph == sbm(20, seed=3).graph


def described():
    """The cells of the lines of benchmarks/data/README.md that describe a graph, by its name."""
    lines = (collections.DATA / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if ".npz |" in line]
    return {name: rest for _, name, *rest in cells}


def test_the_files_of_the_project_are_what_the_table_says():
    assert set(described()) == {*COLLECTION, *TIMED}
    for name in COLLECTION:
        data = load(name)
        nodes, edges, features, classes = described()[name][:4]
        assert (nodes, features) == (f"{data.num_nodes:,}", f"{data.num_features:,}")
        if data.targets is None:  # the others are stored with directed edges and a number per node
            assert (edges, classes) == (f"{data.graph.num_edges:,}", str(data.num_classes))
        assert data.train.size + data.validation.size + data.test.size == data.num_nodes


@pytest.mark.filterwarnings("ignore:.*lacks:napsets.NapsetsWarning")
@pytest.mark.parametrize("name", TIMED)
def test_the_graphs_with_time_are_what_the_table_says_and_split_by_time(name):
    data = load(name)
    counts = (data.num_nodes, data.graph.num_edges // 2, data.num_features, data.num_classes)
    assert described()[name][:4] == [f"{count:,}" for count in counts]
    parts = [data.times[part] for part in (data.train, data.validation, data.test)]
    assert parts[0].max() <= parts[1].min() <= parts[1].max() <= parts[2].min()
    labelled = int((data.labels >= 0).sum())
    assert [part.size for part in parts] == [
        int(0.3 * labelled), int(0.5 * labelled) - int(0.3 * labelled), labelled - int(0.5 * labelled)
    ]  # fmt: skip
