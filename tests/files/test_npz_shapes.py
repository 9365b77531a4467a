"""Arrays of another shape or kind than a table needs are refused, not read as something else."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.errors import FileFormatError
from napsets.files import read_edges, read_labels, read_probabilities
from worlds import write

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])


@pytest.fixture
def nodes(tmp_path):
    np.savez(tmp_path / "p.npz", probabilities=np.full((4, 2), 0.5))
    return read_probabilities(tmp_path / "p.npz").ids


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (PAIRS, r"shape \(2, edges\); .*e\.npz has shape \(4, 2\)\. Transpose it: edge_index\.T"),
        (np.vstack([PAIRS.T, np.ones(4, dtype=int)]), r"has shape \(3, 4\)\. Keep sources and targets alone"),
        (PAIRS.ravel(), r"has shape \(8,\)\. Put sources and targets into one row each: np\.stack"),
        (PAIRS.T[None], r"has shape \(1, 2, 4\)"),
        (np.array(3), r"has shape \(\)"),
        (PAIRS.T.astype(float), r"integers in its array edge_index; .* has dtype float64\. .*\.astype\(\"int64\"\)"),
        (PAIRS.T.astype(object), r"integers in its array edge_index; .* has Python objects\. .*\.astype\(\"int64\"\)"),
        (PAIRS.T.astype(complex), "numbers or text in its array edge_index; .* has dtype complex128"),
    ],
)
def test_an_edge_index_has_one_shape(tmp_path, nodes, array, message):
    np.savez(tmp_path / "e.npz", edge_index=array)
    with pytest.raises(FileFormatError, match=message):
        read_edges(tmp_path / "e.npz", nodes)


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "<i4", ">u2"])
def test_an_edge_index_is_read_in_any_byte_order(tmp_path, nodes, dtype):
    np.savez(tmp_path / "e.npz", edge_index=PAIRS.T.astype(dtype))
    assert read_edges(tmp_path / "e.npz", nodes) == ns.Graph.from_edge_index(PAIRS.T, num_nodes=4)


def test_edges_are_said_once(tmp_path, nodes):
    np.savez(tmp_path / "e.npz", edge_index=PAIRS.T, source=PAIRS[:, 0], target=PAIRS[:, 1])
    with pytest.raises(FileFormatError, match=r"either edge_index or source and target; .* holds both"):
        read_edges(tmp_path / "e.npz", nodes)


def test_every_edge_has_two_ends(tmp_path, nodes):
    np.savez(tmp_path / "e.npz", source=np.arange(3), target=np.arange(2))
    with pytest.raises(FileFormatError, match=r"arrays of one length; .*'source': 3, 'target': 2"):
        read_edges(tmp_path / "e.npz", nodes)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"probabilities": np.full(4, 0.5)}, r"one column per class .* array probabilities; .* has shape \(4,\)"),
        ({"probabilities": np.full((2, 2, 2), 0.5)}, r"has shape \(2, 2, 2\)"),
        ({"probabilities": np.array(1.0)}, r"has shape \(\)"),
        ({"probabilities": np.empty((3, 0))}, "at least one entry in each row"),
        ({"probabilities": np.full((4, 2), 0.5), "node": np.eye(4, dtype=int)}, r"one dimension in its array node"),
        ({"node": np.array(1), "a": np.array(1.0)}, r"one dimension in its array node; .* has shape \(\)"),
        ({"node": np.arange(2), "a": np.ones(2, dtype="M8[s]")}, "numbers or text in its array a; .* datetime64"),
    ],
)
def test_probabilities_are_a_matrix_or_columns(tmp_path, arrays, message):
    np.savez(tmp_path / "q.npz", **arrays)
    with pytest.raises(FileFormatError, match=message):
        read_probabilities(tmp_path / "q.npz")


def test_labels_have_one_dimension(tmp_path, nodes):
    np.savez(tmp_path / "y.npz", label=np.eye(4, dtype=int))
    with pytest.raises(FileFormatError, match=r"one dimension in its array label; .*y\.npz has shape \(4, 4\)"):
        read_labels(tmp_path / "y.npz", nodes, ["a", "b"])


def test_python_objects_are_refused_with_what_to_write_instead(tmp_path, nodes):
    texts = np.array(["a", "b"], dtype=object)
    np.savez(tmp_path / "y.npz", node=np.arange(2), label=texts)
    with pytest.raises(FileFormatError, match=r"numbers or text in its array label; .* label\.astype\(str\) instead"):
        read_labels(tmp_path / "y.npz", nodes, None)
    np.savez(tmp_path / "p.npz", node=texts, probabilities=np.ones((2, 2), dtype=object))
    with pytest.raises(FileFormatError, match=r"Python objects\. Write (node\.astype\(str\)|probab.*float64)"):
        read_probabilities(tmp_path / "p.npz")


def test_a_name_that_is_nearly_right_is_pointed_out(tmp_path, nodes):
    np.savez(tmp_path / "y.npz", node=np.arange(2), labels=np.arange(2))
    with pytest.raises(FileFormatError, match=r"lacks label\. .* Rename its array labels to label\."):
        read_labels(tmp_path / "y.npz", nodes, None)
    write(tmp_path / "y.csv", {"Node": [0, 1], "label": [0, 1]})
    with pytest.raises(FileFormatError, match=r"lacks node\. .* Rename its column Node to node\."):
        read_labels(tmp_path / "y.csv", nodes, None)


def test_parts_of_a_folder_have_the_same_columns(tmp_path, nodes):
    (tmp_path / "e.parquet").mkdir()
    write(tmp_path / "e.parquet" / "0.parquet", {"source": [0], "target": [1]})
    write(tmp_path / "e.parquet" / "1.parquet", {"source": [0], "to": [1]})
    with pytest.raises(FileFormatError, match=r"the same columns in all its parts; .*1\.parquet lacks target"):
        read_edges(tmp_path / "e.parquet", nodes)


def test_parts_of_a_folder_have_ids_of_one_type(tmp_path):
    (tmp_path / "p.parquet").mkdir()
    write(tmp_path / "p.parquet" / "0.parquet", {"node": [0], "a": [1.0]})
    write(tmp_path / "p.parquet" / "1.parquet", {"node": ["x"], "a": [1.0]})
    with pytest.raises(
        FileFormatError, match=r"ids of one type in all its parts; .*p\.parquet has int64 and large_str"
    ):
        read_probabilities(tmp_path / "p.parquet")
