"""Files that are not as napsets would write them: other separators, other names of columns, names that say nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files import Reading, read_inputs, read_probabilities
from napsets.files.formats import open_table
from worlds import make_world, write


def rewritten(path, target, *, names=None, separator=","):
    """Write a Parquet file as CSV, with other names and another separator."""
    table = pa.parquet.read_table(path)
    table = table.rename_columns([(names or {}).get(name, name) for name in table.column_names])
    pa.csv.write_csv(table, target, pa.csv.WriteOptions(delimiter=separator))
    return target


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ";"), (".csv", "|"), (".csv", "\t"), (".tsv", None)])
def test_any_separator_gives_the_same_arrays(tmp_path, suffix, separator):
    world = make_world(tmp_path / "world")
    mark = separator or "\t"
    files = [
        rewritten(path, tmp_path / f"{path.stem}{suffix}", separator=mark)
        for path in (world.edges, world.probabilities_file, world.labels_file)
    ]
    inputs = read_inputs(*files, reading=Reading(separator=separator))
    assert inputs.graph == world.graph
    np.testing.assert_allclose(inputs.outputs, world.probabilities, rtol=1e-14)
    np.testing.assert_array_equal(inputs.calibration, world.calibration)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_columns_may_be_called_otherwise_in_all_files_or_in_one(tmp_path, suffix):
    world = make_world(tmp_path / "world")
    names = {
        "edges": {"source": "src", "target": "dst"},
        "probabilities": {"node": "id"},
        "labels": {"node": "uid", "label": "class"},
    }
    files = {}
    for path in (world.edges, world.probabilities_file, world.labels_file):
        table = pa.parquet.read_table(path)
        columns = {names[path.stem].get(name, name): table.column(name).to_pylist() for name in table.column_names}
        files[path.stem] = write(tmp_path / f"{path.stem}{suffix}", columns)
    reading = Reading(columns="node=id, source=src,target=dst,label=class, labels.node=uid")
    inputs = read_inputs(*files.values(), reading=reading)
    assert inputs.graph == world.graph
    assert inputs.class_names == ["cat", "dog", "owl"]
    assert inputs.ids.take(np.arange(120)).to_pylist() == world.ids.tolist()
    np.testing.assert_array_equal(inputs.calibration, world.calibration)


def test_a_column_that_has_the_name_by_chance_is_no_class(tmp_path):
    path = write(tmp_path / "p.csv", {"node": [1, 2], "id": ["x", "y"], "cat": [0.5, 0.2], "dog": [0.5, 0.8]})
    table = read_probabilities(path, Reading(columns="node=id"))
    assert table.ids.take(np.arange(2)).to_pylist() == ["x", "y"]
    assert table.class_names == ["cat", "dog"]


def test_text_stays_text_under_another_name(tmp_path):
    path = write(tmp_path / "p.csv", {"id": ["007", "7"], "cat": [0.5, 0.2], "dog": [0.5, 0.8]})
    assert read_probabilities(path, Reading(columns={"node": "id"})).ids.take(np.arange(2)).to_pylist() == ["007", "7"]


def test_what_an_npz_file_implies_has_no_other_name(tmp_path):
    np.savez(tmp_path / "e.npz", edge_index=np.array([[0, 1], [1, 2]]))
    np.savez(tmp_path / "p.npz", probabilities=np.full((3, 2), 0.5))
    np.savez(tmp_path / "y.npz", uid=np.array([0, 2]), label=np.array([1, 0]))
    files = [tmp_path / name for name in ("e.npz", "p.npz", "y.npz")]
    inputs = read_inputs(*files, reading=Reading(columns="node=uid,source=src,target=dst"))
    assert inputs.truth.tolist() == [1, -1, 0]
    assert inputs.graph.num_edges == 4


def test_a_column_that_is_not_there_is_called_what_the_user_calls_it(tmp_path):
    path = write(tmp_path / "y.csv", {"node": [1], "label": ["cat"]})
    with pytest.raises(FileFormatError) as caught:
        open_table("labels", path, Reading(columns="node=id")).require("node", "label")
    message = str(caught.value)
    assert "must have the columns id, label" in message
    assert "lacks id" in message
    assert "--columns says that node is called id; for this file alone, write --columns labels.node=…" in message


def test_who_has_another_name_is_told_how_to_say_so(tmp_path):
    path = write(tmp_path / "e.csv", {"src": [1], "dst": [2]})
    with pytest.raises(FileFormatError, match="Or say what it is called: --columns source=…"):
        open_table("edges", path).require("source", "target")
    path = write(tmp_path / "y.csv", {"Node": [1], "label": [2]})
    with pytest.raises(FileFormatError, match=r"Rename its column Node to node\. Or say .* --columns node=Node"):
        open_table("labels", path).require("node", "label")


def test_rows_go_by_the_names_of_napsets(tmp_path):
    path = write(tmp_path / "y.csv", {"id": [1], "label": ["cat"]})
    table = open_table("labels", path, Reading(columns="node=id"))
    assert [batch.column_names for batch in table.batches(["node", "label"])] == [["node", "label"]]


def test_where_a_name_says_nothing_the_format_is_asked_for(tmp_path):
    path = write(tmp_path / "p.csv", {"node": [1, 2], "cat": [0.5, 0.2], "dog": [0.5, 0.8]}).rename(tmp_path / "p")
    with pytest.raises(InvalidInputError, match="For other names, pass --format"):
        read_probabilities(path)
    assert read_probabilities(path, Reading(format="csv")).class_names == ["cat", "dog"]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"columns": "node"}, "`columns` must be names as in node=id,label=class; got 'node'"),
        ({"columns": "node="}, "`columns` must be names as in"),
        ({"columns": "node=a,node=b"}, "`columns` must name a column once; node is there twice"),
        ({"columns": "nod=a"}, "did you mean 'node'?"),
        ({"columns": "lables.node=a"}, "did you mean 'labels'?"),
        ({"columns": "edges.label=a"}, "`columns` must be one of labels; got 'edges'"),
        ({"separator": ";;"}, "`separator` must be one character, no quote and no line break; got ';;'"),
        ({"separator": '"'}, "`separator` must be one character"),
        ({"ids": "int"}, "`ids` must be one of auto, integer, string; got 'int'"),
        ({"labels_are": "numbers"}, "`labels_are` must be one of auto, names, indices; got 'numbers'"),
        ({"weights_are": "length"}, "did you mean 'lengths'?"),
        ({"format": "xlsx"}, "`format` must be one of parquet, csv, tsv, jsonl, npz; got 'xlsx'"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_can(reading, message):
    with pytest.raises(InvalidInputError) as caught:
        Reading(**reading)
    assert message in str(caught.value)


def test_a_plain_target_is_where_edges_go_and_the_target_of_a_node_is_named_with_its_file():
    columns = "target=dst,labels.target=price,prediction=yhat,probabilities.spread=sd,lower=q05,upper=q95"
    reading = Reading(columns=columns)
    assert reading.name_of("edges", "target") == "dst"
    assert reading.name_of("labels", "target") == "price"
    assert Reading(columns="target=dst").name_of("labels", "target") == "target"
    assert Reading(columns="labels.target=price").name_of("edges", "target") == "target"
    outputs = [reading.name_of("probabilities", name) for name in ("prediction", "spread", "lower", "upper")]
    assert outputs == ["yhat", "sd", "q05", "q95"]
    assert reading.name_of("sets", "lower") == "lower"


def test_who_calls_a_target_otherwise_is_told_the_whole_name_to_say(tmp_path):
    path = write(tmp_path / "y.csv", {"node": [1], "price": [2.5]})
    with pytest.raises(FileFormatError, match=r"--columns labels\.target=…"):
        open_table("labels", path, Reading(columns="target=dst")).require("node", "target")
