"""The Amazon Computers graph that the package carries, and what a trained model said of it."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from napsets.datasets import amazon_predictions, load, random_split
from napsets.datasets.amazon import round_rows, unpack
from napsets.graph import Graph


@pytest.fixture(scope="module")
def amazon():
    return load("amazon-computers", seed=0)


def test_it_has_the_numbers_of_the_papers_table_1(amazon):
    assert amazon.num_nodes == 13_752
    assert amazon.graph.num_edges == 491_722
    assert amazon.num_features == 767
    assert amazon.num_classes == 10
    shares = np.bincount(amazon.labels) / amazon.num_nodes
    assert (shares**2).sum() == pytest.approx(0.208, abs=5e-4)


def test_its_node_homophily_is_the_papers(amazon):
    graph = amazon.graph
    row = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    agree = np.bincount(row, weights=amazon.labels[row] == amazon.labels[graph.indices], minlength=graph.num_nodes)
    assert (agree / np.maximum(graph.degrees, 1)).mean() == pytest.approx(0.785, abs=5e-4)
    assert (graph.degrees == 0).sum() == 281


def test_its_adjacency_is_symmetric_sorted_and_free_of_loops(amazon):
    graph = amazon.graph
    row = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    assert Graph.from_edge_index(np.stack([row, graph.indices]), graph.num_nodes) == graph


def test_its_features_are_binary_words(amazon):
    assert set(np.unique(amazon.features)) == {0.0, 1.0}
    assert amazon.features.sum(dtype=np.float64) == 3_675_081


def test_the_default_split_has_the_papers_sizes_and_follows_the_seed(amazon):
    assert [part.size for part in (amazon.train, amazon.validation, amazon.test)] == [752, 1000, 12_000]
    again, other = load("amazon-computers", seed=0), load("amazon-computers", seed=1)
    assert np.array_equal(amazon.train, again.train)
    assert not np.array_equal(amazon.train, other.train)
    everyone = np.concatenate([amazon.train, amazon.validation, amazon.test])
    assert np.array_equal(np.sort(everyone), np.arange(13_752))


def test_the_file_is_at_most_two_megabytes_and_names_its_licence():
    folder = files("napsets.datasets") / "data"
    assert len((folder / "amazon_computers.npz").read_bytes()) <= 2_000_000
    assert "MIT License" in (folder / "README.md").read_text()


def test_the_predictions_are_those_of_the_default_splits_test_nodes(amazon):
    predictions = amazon_predictions()
    assert np.array_equal(predictions.nodes, amazon.test)
    assert np.array_equal(predictions.labels, amazon.labels[amazon.test])
    assert set(predictions.split) == {"test"}
    assert (predictions.dataset, predictions.model) == ("amazon-computers", "graphsage-mean")
    assert (predictions.settings["seed"], predictions.settings["preset"]) == (0, "released-code")


def test_the_predictions_add_up_exactly_and_are_small():
    assert (amazon_predictions().probabilities.sum(axis=1, dtype=np.float64) == 1).all()
    assert len((files("napsets.datasets") / "data" / "amazon_computers_predictions.npz").read_bytes()) <= 300_000


def test_rounded_rows_give_what_is_lacking_to_those_that_lost_most():
    rows = np.array([[0.34, 0.33, 0.33], [1.0, 0.0, 0.0], [0.1, 0.2, 0.7]])
    assert (round_rows(rows, bits=2) * 4).tolist() == [[2, 1, 1], [4, 0, 0], [0, 1, 3]]


def test_loading_needs_neither_torch_nor_numba_nor_arrow():
    code = (
        "import sys, napsets.datasets as d; d.load('amazon-computers'); d.amazon_predictions();"
        "print([m for m in ('torch', 'numba', 'pyarrow', 'pandas', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def pack(path, graph, features, labels):
    """Write an undirected graph with binary features and fewer than 2¹⁶ nodes in the smallest layout that was tried."""
    row = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    upper = row < graph.indices
    row, column = row[upper], graph.indices[upper].astype(np.int64)
    first = np.diff(row, prepend=-1) != 0
    gaps = np.where(first, column - row, np.diff(column, prepend=0)).astype(np.uint16)
    np.savez_compressed(
        path,
        counts=np.bincount(row, minlength=graph.num_nodes).astype(np.uint16),
        gaps_high=(gaps >> 8).astype(np.uint8),  # the two bytes compress better apart
        gaps_low=(gaps & 255).astype(np.uint8),
        features=np.packbits(features.astype(bool), axis=1),
        num_features=np.int64(features.shape[1]),
        labels=labels.astype(np.uint8),
    )


@pytest.mark.parametrize("edges", [[[0, 0, 3], [1, 4, 2]], [[], []], [[3], [4]]])
def test_unpacking_gives_back_what_was_packed(tmp_path, edges):
    graph = Graph.from_edge_index(np.array(edges, dtype=np.int64), num_nodes=5)
    features = (np.arange(55).reshape(5, 11) % 3 == 0).astype(np.float32)
    labels = np.array([0, 1, 2, 1, 0])
    pack(tmp_path / "a.npz", graph, features, labels)
    unpacked = unpack(np.load(tmp_path / "a.npz"))
    assert unpacked[0] == graph
    assert np.array_equal(unpacked[1], features)
    assert np.array_equal(unpacked[2], labels)


def test_a_split_by_shares_takes_shares_of_the_nodes():
    assert [part.size for part in random_split(10, (0.5, 0.2, 0.3))] == [5, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((5, 5, 5), "at most 12 nodes; got 15"), ((1, 2), "three numbers"), ((-1, 2, 3), "at least 0")],
)
def test_impossible_split_sizes_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        random_split(12, sizes)
