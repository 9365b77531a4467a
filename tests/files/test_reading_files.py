"""Parquet and CSV say the same; what is wrong in a file is named, counted and listed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files import Reading, read_edges, read_graph, read_inputs, read_labels, read_nodes, read_probabilities
from worlds import CLASSES, make_world, write

FORMATS = [".parquet", ".csv", ".csv.gz"]
ROWS = {"node": [7, 3, 5], "cat": [0.5, 0.2, 0.1], "dog": [0.5, 0.8, 0.9]}


@pytest.fixture
def nodes(tmp_path):
    """Return the ids 7, 3 and 5, at the places 0, 1 and 2."""
    return read_probabilities(write(tmp_path / "known.parquet", ROWS)).ids


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_arrays(tmp_path, suffix, ids):
    world = make_world(tmp_path, suffix=suffix, ids=ids)
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    assert inputs.graph == world.graph
    assert inputs.ids.take(np.arange(120)).to_pylist() == world.ids.tolist()
    np.testing.assert_allclose(inputs.outputs, world.probabilities, rtol=1e-14)
    np.testing.assert_array_equal(inputs.calibration, world.calibration)
    np.testing.assert_array_equal(inputs.truth[world.calibration], world.labels[world.calibration])
    np.testing.assert_array_equal(inputs.nodes, world.rest)
    assert inputs.class_names == list(CLASSES)


def test_a_folder_of_parquet_parts_is_one_table(tmp_path):
    folder = tmp_path / "p.parquet"
    folder.mkdir()
    for part in range(3):
        write(folder / f"part-{part}.parquet", {name: [column[part]] for name, column in ROWS.items()})
    (folder / "_SUCCESS").touch()
    table = read_probabilities(folder)
    assert table.ids.take(np.arange(3)).to_pylist() == ROWS["node"]
    assert table.values[:, 0].tolist() == ROWS["cat"]


def test_a_list_column_takes_its_class_names_from_the_metadata(tmp_path):
    rows = pa.table({"node": [4, 9], "label": [0, -1], "probabilities": [[0.5, 0.5], [0.1, 0.9]]})
    about = {b"napsets": b'{"class_names": ["yes", "no"]}'}
    pq.write_table(rows.replace_schema_metadata(about), tmp_path / "p.parquet")
    table = read_probabilities(tmp_path / "p.parquet")
    assert table.class_names == ["yes", "no"]
    labels = read_labels(tmp_path / "p.parquet", table.ids, table.class_names).values
    assert labels.tolist() == [0, -1]


def test_numbers_keep_their_width(tmp_path):
    narrow = {"node": [1], "a": np.array([0.25], dtype=np.float32), "b": np.array([0.75], dtype=np.float32)}
    assert read_probabilities(write(tmp_path / "n.parquet", narrow)).values.dtype == np.float32
    mixed = narrow | {"b": np.array([0.75])}
    assert read_probabilities(write(tmp_path / "m.parquet", mixed)).values.dtype == np.float64


# -- ids -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["7", "12"], [7, 12]),
        (["007", "12"], ["007", "12"]),
        *(([str(far)], [far]) for far in (2**60, -(2**60), 922 * 10**16 - 1)),
        ([str(2**64)], [str(2**64)]),
    ],
)
def test_ids_of_a_csv_are_integers_of_64_bits_where_all_look_so(tmp_path, written, ids):
    (tmp_path / "p.csv").write_text("\n".join(["node,a,b", *(f"{node},0.5,0.5" for node in written), ""]))
    assert read_probabilities(tmp_path / "p.csv").ids.take(np.arange(len(ids))).to_pylist() == ids


def test_a_csv_beside_typed_ids_takes_their_kind(tmp_path, nodes):
    (tmp_path / "n.csv").write_text("node\n5\n7\n")
    assert read_nodes(tmp_path / "n.csv", nodes).tolist() == [2, 0]
    (tmp_path / "odd.csv").write_text("node\n5\nx9\n")
    with pytest.raises(FileFormatError, match=r"lacks: 'x9'; the first is in line 3"):
        read_nodes(tmp_path / "odd.csv", nodes)


def test_categories_of_text_are_text(tmp_path):
    column = pa.array(["u", "v", "u"]).dictionary_encode()
    known = read_probabilities(write(tmp_path / "p.parquet", ROWS | {"node": ["u", "v", "w"]})).ids
    edges = write(tmp_path / "e.parquet", {"source": column, "target": pa.array(["v", "w", "w"])})
    assert read_edges(edges, known).num_edges == 6


# -- labels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["dog", None, "cat"]),
        pa.array(["dog", "", "cat"]),
        pa.array([1, -1, 0]),
        pa.array([1.0, float("nan"), 0.0]),
        pa.array(["1", "-1", "0"]),
        pa.array(["dog", None, "cat"]).dictionary_encode(),
    ],
)
def test_labels_are_names_or_numbers_and_may_be_missing(tmp_path, nodes, column):
    path = write(tmp_path / "y.parquet", {"node": [7, 3, 5], "label": column})
    labels = read_labels(path, nodes, ["cat", "dog"])
    assert labels.values.tolist() == [1, -1, 0]
    assert labels.class_names == ["cat", "dog"]


def test_a_label_that_is_a_name_is_not_read_as_a_number(tmp_path, nodes):
    path = write(tmp_path / "y.parquet", {"node": [7, 3], "label": [1, 2]})
    assert read_labels(path, nodes, ["2", "1"]).values.tolist() == [1, 0, -1]


# -- probabilities -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"node": [1]}, "one column per class in addition to node"),
        ({"a": [1.0]}, r"must have the column node; .* lacks node\. It has: a"),
        (
            {"node": [1], "a": ["x"]},
            r"in its column a; .* has string there\. If it is not a class, add --ign",
        ),
        ({"node": [1], "a": pa.array([None], pa.float64())}, "must have no empty cell"),
        ({"node": [1, 2], "probabilities": [[0.5, 0.5], [1.0]]}, "row 1 of .* has 1, the first has 2"),
        ({"node": [1], "probabilities": ["[1.0]"]}, "must hold a list of numbers"),
        ({"node": pa.array([], pa.int64()), "a": pa.array([], pa.float64())}, "at least one row"),
    ],
)
def test_tables_of_another_shape_are_refused(tmp_path, columns, message):
    with pytest.raises(FileFormatError, match=message):
        read_probabilities(write(tmp_path / "p.parquet", columns))


# -- damaged files -------------------------------------------------------------------------------------------------


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz"])
def test_a_truncated_file_is_called_so(tmp_path, suffix):
    world = make_world(tmp_path, suffix=suffix)
    damage(world.probabilities_file)
    with pytest.raises(FileFormatError, match=r"`probabilities` must be a whole file .* truncated or of another kind"):
        read_probabilities(world.probabilities_file)


def test_columns_are_checked_before_anything_large_is_read(tmp_path):
    world = make_world(tmp_path)
    damage(world.probabilities_file)
    write(tmp_path / "edges.parquet", {"from": [1], "to": [2]})
    with pytest.raises(FileFormatError, match=r"`edges` must have the columns source, target; .* lacks source, target"):
        read_inputs(tmp_path / "edges.parquet", world.probabilities_file, world.labels_file)


# -- graphs without probabilities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_without_probabilities_the_nodes_are_those_that_some_file_names(tmp_path, ids):
    world = make_world(tmp_path, ids=ids)
    inputs = read_graph(world.edges, world.labels_file)
    assert sorted(inputs.ids.take(np.arange(len(inputs.ids))).to_pylist()) == sorted(world.ids.tolist())
    assert inputs.graph.num_edges == world.graph.num_edges
    assert inputs.calibration.size == world.calibration.size


def test_csv_edges_beside_typed_labels_take_their_kind(tmp_path):
    with gzip.open(tmp_path / "e.csv.gz", "wt") as stream:
        stream.write("source,target\n1,2\n2,3\n")
    labels = write(tmp_path / "y.parquet", {"node": pa.array([1, 3], pa.int32()), "label": ["a", "b"]})
    inputs = read_graph(tmp_path / "e.csv.gz", labels)
    assert inputs.ids.take(np.arange(3)).to_pylist() == [1, 3, 2]  # those of the labels come first
    (tmp_path / "x.csv").write_text("source,target\na,b\n")
    assert read_graph(tmp_path / "x.csv", labels).ids.values.to_pylist() == ["1", "3", "a", "b"]


def test_directed_edges_are_followed_one_way(tmp_path):
    world = make_world(tmp_path)
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file, reading=Reading(directed=True))
    assert inputs.graph.directed
    assert inputs.graph == ns.Graph.from_edge_index(world.edge_index, num_nodes=120, directed=True)


def test_labels_of_all_nodes_leave_nothing_to_predict(tmp_path):
    world = make_world(tmp_path)
    everyone = write(tmp_path / "all.parquet", {"node": world.ids, "label": world.labels})
    with pytest.raises(InvalidInputError, match="there is no node to predict"):
        read_inputs(world.edges, world.probabilities_file, everyone)
    nobody = write(tmp_path / "none.parquet", {"node": world.ids, "label": np.full(120, -1)})
    with pytest.raises(FileFormatError, match="must have at least one label"):
        read_inputs(world.edges, world.probabilities_file, nobody)


def test_parquet_is_read_in_batches_that_cross_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1], 100_000).astype(np.float32)
    table = pa.table({"node": np.arange(100_000), "a": p[:, 0], "b": p[:, 1]})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=7_777)
    np.testing.assert_array_equal(read_probabilities(tmp_path / "p.parquet").values, p)


def test_parts_of_a_folder_have_the_columns_and_types_of_the_first(tmp_path, nodes):
    (tmp_path / "e.parquet").mkdir()
    write(tmp_path / "e.parquet" / "0.parquet", {"source": [7], "target": [3]})
    write(tmp_path / "e.parquet" / "1.parquet", {"source": [7], "to": [3]})
    with pytest.raises(FileFormatError, match=r"an id in each row; the column target has an empty cell in row 1 of"):
        read_edges(tmp_path / "e.parquet", nodes)
    (tmp_path / "p.parquet").mkdir()
    write(tmp_path / "p.parquet" / "0.parquet", {"node": [0], "a": [1.0]})
    write(tmp_path / "p.parquet" / "1.parquet", {"node": ["x"], "a": [1.0]})
    with pytest.raises(FileFormatError, match=r"`probabilities` must be a whole file .*p\.parquet"):
        read_probabilities(tmp_path / "p.parquet")
