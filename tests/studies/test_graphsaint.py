"""The GraphSAINT layout, on files small enough to check by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from napsets import FileFormatError, InvalidInputError
from studies.collections import load, read_graphsaint
from studies.coverage import dataset_row

ADJACENCY = scipy.sparse.csr_matrix(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]))
FEATURES = np.arange(12.0).reshape(4, 3)


@pytest.fixture
def raw(tmp_path):
    scipy.sparse.save_npz(tmp_path / "adj_full.npz", ADJACENCY)
    np.save(tmp_path / "feats.npy", FEATURES)
    (tmp_path / "class_map.json").write_text(json.dumps({"0": 1, "1": 0, "2": 1, "3": 0}))
    (tmp_path / "role.json").write_text(json.dumps({"tr": [0, 1], "va": [2], "te": [3]}))
    return tmp_path


def test_the_graphsaint_layout_is_read_with_its_published_split(raw):
    data = read_graphsaint(raw, name="flickr")
    assert data.name == "flickr"
    assert data.graph.num_edges == 4
    assert data.labels.tolist() == [1, 0, 1, 0]
    assert (data.train.tolist(), data.validation.tolist(), data.test.tolist()) == ([0, 1], [2], [3])
    assert np.array_equal(data.features, FEATURES)


def test_the_raw_subfolder_that_pytorch_geometric_makes_is_read(raw, tmp_path_factory):
    root = tmp_path_factory.mktemp("pyg")
    (root / "reddit2").mkdir()
    raw.rename(root / "reddit2" / "raw")
    assert load("reddit2", root=root).num_nodes == 4


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_a_truncated_file_is_named(raw, file):
    whole = (raw / file).read_bytes()
    (raw / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=file):
        read_graphsaint(raw)


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_a_missing_file_is_named(raw, file):
    (raw / file).unlink()
    with pytest.raises(FileFormatError, match=f"lacks {file}"):
        read_graphsaint(raw)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("class_map.json", {"0": 1, "1": 0, "2": 1, "9": 0}, "ids from 0 to 3"),
        ("class_map.json", {"0": -4, "1": 0}, "classes of at least 0"),
        ("class_map.json", {"0": [0, 1]}, "multi-label"),
        ("role.json", {"tr": [0, 1], "va": [1], "te": [3]}, "must not overlap"),
        ("role.json", {"tr": [0, 1]}, "role.json"),
    ],
)
def test_contradictions_between_files_are_refused(raw, file, content, message):
    (raw / file).write_text(json.dumps(content))
    with pytest.raises(InvalidInputError, match=message):
        read_graphsaint(raw)


def test_without_the_folder_the_message_lists_the_files(tmp_path):
    with pytest.raises(FileFormatError, match=r"raw files of 'flickr'; .* lacks adj_full.npz, feats"):
        load("flickr", root=tmp_path)


@pytest.mark.skipif(
    "NAPSETS_GRAPHS" not in os.environ, reason="NAPSETS_GRAPHS names no folder with flickr_graphsaint.npz"
)
def test_the_papers_flickr_graph_is_the_same_in_both_layouts(tmp_path):
    source = Path(os.environ["NAPSETS_GRAPHS"])
    with np.load(source / "flickr_graphsaint.npz") as parts:
        size, indptr, indices, labels = (parts[name] for name in ("n", "adj_indptr", "adj_indices", "labels"))
        masks = {"tr": "train_mask", "va": "val_mask", "te": "test_mask"}
        roles = {role: np.flatnonzero(parts[mask]).tolist() for role, mask in masks.items()}
    adjacency = scipy.sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(int(size), int(size)))
    scipy.sparse.save_npz(tmp_path / "adj_full.npz", adjacency)
    np.save(tmp_path / "feats.npy", np.zeros((int(size), 1)))
    (tmp_path / "class_map.json").write_text(json.dumps({str(node): int(label) for node, label in enumerate(labels)}))
    (tmp_path / "role.json").write_text(json.dumps(roles))
    cell = {"dataset": "flickr-graph", "seed": 0}
    rows = [dataset_row(cell, data) for data in (read_graphsaint(tmp_path), load("flickr-graph", root=source))]
    assert rows[0] == rows[1] | {"features": 1}
    assert (rows[0]["nodes"], rows[0]["edges"], rows[0]["classes"]) == (89_250, 899_756, 7)
    assert (rows[0]["test_nodes"], rows[0]["test_edges"], rows[0]["eligible"]) == (22_313, 58_636, 5_229)
    assert rows[0]["edge_homophily"] == pytest.approx(0.3195, abs=5e-5)
