"""Datasets read from files: the GraphSAINT layout, and the user's own."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse

from napsets.datasets import from_files, load
from napsets.errors import FileFormatError, InvalidInputError, NapsetsError

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
    data = load("flickr", root=raw)
    assert data.name == "flickr"
    assert data.graph.num_edges == 4
    assert data.labels.tolist() == [1, 0, 1, 0]
    assert (data.train.tolist(), data.validation.tolist(), data.test.tolist()) == ([0, 1], [2], [3])
    assert np.array_equal(data.features, FEATURES)


def test_the_raw_subfolder_that_pytorch_geometric_makes_is_found(raw, tmp_path_factory):
    root = tmp_path_factory.mktemp("pyg")
    raw.rename(root / "raw")
    assert load("reddit2", root=root).num_nodes == 4


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_a_truncated_file_is_named(raw, file):
    whole = (raw / file).read_bytes()
    (raw / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=file):
        load("flickr", root=raw)


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"])
def test_a_missing_file_is_named_and_nothing_is_downloaded_over_the_rest(raw, file):
    (raw / file).unlink()
    with pytest.raises(FileFormatError, match=f"lacks {file}"):
        load("flickr", root=raw)


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
        load("flickr", root=raw)


def test_without_a_folder_the_message_lists_the_files():
    with pytest.raises(InvalidInputError, match=r"`root` must name the folder.*adj_full.npz"):
        load("flickr")


@pytest.mark.gnn
def test_a_failed_download_leaves_nothing_behind_and_says_what_to_do(tmp_path, monkeypatch):
    import torch_geometric.datasets

    def unreachable(root):
        (tmp_path / "probe").touch()
        raise OSError("no route to host")

    monkeypatch.setattr(torch_geometric.datasets, "Flickr", unreachable)
    with pytest.raises(NapsetsError, match=r"no route to host.*by hand"):
        load("flickr", root=tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


# -- the user's own files --------------------------------------------------------------------------------------

EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}
FEATURE_TABLE = {"node": ["d", "a", "b", "c"], "height": [0.0, 1.0, 2.0, 3.0], "width": [4, 5, 6, 7]}
LABELS = {
    "node": ["a", "b", "c"],
    "label": ["dog", "cat", "dog"],
    "split": ["train", "train", "validation"],
}


def write(path, columns):
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_with_names_for_nodes_and_classes_are_read(tmp_path, suffix):
    paths = [
        write(tmp_path / f"{name}{suffix}", columns)
        for name, columns in (("edges", EDGES), ("features", FEATURE_TABLE), ("labels", LABELS))
    ]
    data = from_files(*paths)
    assert data.node_ids.tolist() == ["d", "a", "b", "c"]
    assert data.features.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert data.class_names == ("cat", "dog")
    assert data.labels.tolist() == [-1, 1, 0, 1]
    assert data.graph.neighbours(3).tolist() == [0, 2]
    assert (data.train.tolist(), data.validation.tolist(), data.test.tolist()) == ([1, 2], [3], [])


def test_npz_files_are_read_and_a_split_is_drawn_where_none_is_given(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "e.npz", source=rng.integers(0, 40, 99), target=rng.integers(0, 40, 99))
    np.savez(tmp_path / "l.npz", node=np.arange(40), label=np.arange(40) % 2)
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.random_array((40, 5), rng=rng, format="csr"))
    paths = (tmp_path / "e.npz", tmp_path / "x.npz", tmp_path / "l.npz")
    data = from_files(*paths, sizes=(20, 10, 10), seed=4, name="mine")
    assert data.name == "mine"
    assert data.node_ids is None
    assert scipy.sparse.issparse(data.features)
    assert [data.train.size, data.validation.size, data.test.size] == [20, 10, 10]
    assert np.array_equal(data.train, from_files(*paths, sizes=(20, 10, 10), seed=4).train)


def test_a_list_column_holds_features_too(tmp_path):
    edges = write(tmp_path / "e.csv", {"source": [0], "target": [1]})
    features = write(tmp_path / "x.parquet", {"node": [0, 1], "features": [[1.0, 2.0], [3.0, 4.0]]})
    labels = write(tmp_path / "l.csv", {"node": [0, 1], "label": [0, 1], "split": ["train", "train"]})
    assert from_files(edges, features, labels).features.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("which", "columns", "message"),
    [
        ("edges", {"from": ["a"], "to": ["b"]}, "must have the columns source, target; .* It has: from, to"),
        ("edges", {"source": ["a"], "target": ["z"]}, "1 row of `edges`"),
        ("features", {"node": ["a", "a"], "x": [0, 1]}, "must have each node once"),
        (
            "features",
            {"node": ["a", "b", "c", "d"], "x": ["p", "q", "r", "s"]},
            "must hold numbers in its column x",
        ),
        ("features", {"node": ["a", "b", "c", "d"], "x": [1.0, None, 2.0, 3.0]}, "no empty cell; the column x"),
        ("labels", {"node": ["a", "a"], "label": [0, 1]}, "must have each node once"),
        ("labels", {"node": ["a"], "label": [-3]}, "at least 0"),
        ("labels", {"node": ["a"], "label": [0.5]}, "class names or whole class numbers"),
        ("labels", LABELS | {"split": ["train", "train", "dev"]}, "got 'dev'"),
    ],
)
def test_bad_tables_are_refused_with_the_files_name(tmp_path, which, columns, message):
    good = {"edges": EDGES, "features": FEATURE_TABLE, "labels": LABELS}
    paths = [write(tmp_path / f"{name}.parquet", table) for name, table in (good | {which: columns}).items()]
    with pytest.raises(FileFormatError, match=message) as caught:
        from_files(*paths)
    assert f"{which}.parquet" in str(caught.value)


def test_a_truncated_parquet_file_is_named(tmp_path):
    paths = [
        write(tmp_path / f"{name}.parquet", columns)
        for name, columns in (("edges", EDGES), ("features", FEATURE_TABLE), ("labels", LABELS))
    ]
    paths[0].write_bytes(paths[0].read_bytes()[:40])
    with pytest.raises(FileFormatError, match=r"edges.parquet"):
        from_files(*paths)


def test_an_unknown_kind_of_file_is_refused(tmp_path):
    (tmp_path / "e.txt").write_text("0 1")
    with pytest.raises(InvalidInputError, match=r"must be a file that ends in \.parquet, .*\.npz"):
        from_files(tmp_path / "e.txt", tmp_path / "e.txt", tmp_path / "e.txt")


# -- one reader for the library and the command ----------------------------------------------------------------


def dataset(tmp_path, features, edges="source,target\n", labels="node,label\n", **options):
    """Read a dataset from the text of three CSV files."""
    for name, text in (("features", features), ("edges", edges), ("labels", labels)):
        (tmp_path / f"{name}.csv").write_text(text)
    return from_files(tmp_path / "edges.csv", tmp_path / "features.csv", tmp_path / "labels.csv", **options)


def test_007_and_7_are_two_nodes(tmp_path):
    data = dataset(
        tmp_path,
        "node,x\n007,1\n7,2\n8,3\n",
        "source,target\n007,8\n",
        "node,label,split\n007,cat,train\n7,dog,train\n",
    )
    assert data.node_ids.tolist() == ["007", "7", "8"]
    assert data.labels.tolist() == [0, 1, -1]
    assert data.graph.neighbours(2).tolist() == [0]
    assert data.graph.neighbours(1).tolist() == []


def test_ids_are_those_that_the_command_reads(tmp_path):
    from napsets.files import read_probabilities

    for ids in (["007", "7", "NA"], ["7", "12", "-3"], ["a", "1e3", "+1"]):
        text = "".join(f"{node},1.0\n" for node in ids)
        data = dataset(tmp_path, "node,x\n" + text, labels=f"node,label,split\n{ids[0]},cat,train\n")
        (tmp_path / "p.csv").write_text("node,x\n" + text)
        known = read_probabilities(tmp_path / "p.csv").ids
        assert data.node_ids.tolist() == known.take(np.arange(3)).to_pylist()


@pytest.mark.parametrize(("ids", "expected"), [("auto", [7, 12]), ("integer", [7, 12]), ("string", ["7", "12"])])
def test_ids_are_what_the_user_says(tmp_path, ids, expected):
    data = dataset(tmp_path, "node,x\n7,1\n12,2\n", labels="node,label,split\n7,0,train\n", ids=ids)
    assert data.node_ids.tolist() == expected


def test_only_an_empty_label_is_missing(tmp_path):
    labels = "node,label,split\na,NA,train\nb,null,train\nc,,test\n"
    data = dataset(tmp_path, "node,x\na,1\nb,2\nc,3\n", labels=labels)
    assert data.class_names == ("NA", "null")
    assert data.labels.tolist() == [0, 1, -1]


def test_whole_numbers_with_a_decimal_point_are_class_indices(tmp_path):
    labels = "node,label,split\na,0.0,train\nb,1.0,train\nc,,test\n"
    data = dataset(tmp_path, "node,x\na,1\nb,2\nc,3\n", labels=labels)
    assert data.class_names is None
    assert data.labels.tolist() == [0, 1, -1]


def test_text_that_a_typed_file_holds_is_a_name_even_if_it_looks_like_a_number(tmp_path):
    edges = write(tmp_path / "e.parquet", {"source": [1], "target": [2]})
    features = write(tmp_path / "x.parquet", {"node": [1, 2], "x": [0.0, 1.0]})
    labels = write(tmp_path / "l.parquet", {"node": [1, 2], "label": ["1", "2"], "split": ["train", "train"]})
    assert from_files(edges, features, labels).class_names == ("1", "2")


@pytest.mark.parametrize("array", [[[0, 1], [1, 2], [2, 0]], [[0, 1, 2], [1, 2, 0], [1, 1, 1]]])
def test_an_edge_index_of_another_shape_is_refused(tmp_path, array):
    np.savez(tmp_path / "e.npz", edge_index=np.array(array))
    np.savez(tmp_path / "x.npz", features=np.ones((3, 2)))
    np.savez(tmp_path / "l.npz", label=np.array([0, 1, 0]))
    with pytest.raises(FileFormatError, match=r"edge_index of shape \(2, edges\)"):
        from_files(tmp_path / "e.npz", tmp_path / "x.npz", tmp_path / "l.npz")


def test_every_edge_has_two_ends(tmp_path):
    np.savez(tmp_path / "e.npz", source=np.arange(3), target=np.arange(2))
    np.savez(tmp_path / "x.npz", features=np.ones((3, 2)))
    np.savez(tmp_path / "l.npz", label=np.array([0, 1, 0]))
    with pytest.raises(FileFormatError, match="arrays of one length"):
        from_files(tmp_path / "e.npz", tmp_path / "x.npz", tmp_path / "l.npz")
