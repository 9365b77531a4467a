"""Files that are not as napsets would write them: other separators, other names of columns, names that say nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from napsets.errors import InvalidInputError
from napsets.files import NodeIds, Reading, read_inputs, read_probabilities, read_targets
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


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_may_have_other_names(tmp_path, suffix):
    world = make_world(tmp_path / "world")
    names = {"source": "src", "target": "dst", "node": "uid", "label": "class"}
    files = []
    for path in (world.edges, world.probabilities_file, world.labels_file):
        table = pa.parquet.read_table(path)
        columns = {names.get(name, name): table.column(name).to_pylist() for name in table.column_names}
        files.append(write(tmp_path / f"{path.stem}{suffix}", columns))
    inputs = read_inputs(*files, reading=Reading(rename={old: new for new, old in names.items()}))
    assert inputs.graph == world.graph
    assert inputs.class_names == ["cat", "dog", "owl"]
    assert inputs.ids.take(np.arange(120)).to_pylist() == world.ids.tolist()
    np.testing.assert_array_equal(inputs.calibration, world.calibration)


def test_without_a_header_columns_come_in_the_documented_order(tmp_path):
    world = make_world(tmp_path / "world")
    files = []
    for path in (world.edges, world.probabilities_file, world.labels_file):
        pa.csv.write_csv(
            pa.parquet.read_table(path), tmp_path / f"{path.stem}.csv", pa.csv.WriteOptions(include_header=False)
        )
        files.append(tmp_path / f"{path.stem}.csv")
    names = {"0": "cat", "1": "dog", "2": "owl"}
    inputs = read_inputs(*files, reading=Reading(header=False, rename=names))
    assert inputs.graph == world.graph
    assert inputs.class_names == ["cat", "dog", "owl"]
    np.testing.assert_allclose(inputs.outputs, world.probabilities, rtol=1e-14)
    np.testing.assert_array_equal(inputs.calibration, world.calibration)
    targets = tmp_path / "t.csv"
    targets.write_text("7,1.5\n9,2.5\n")
    ids = NodeIds(pa.array([9, 7]))
    assert read_targets(targets, ids, Reading(header=False)).tolist() == [2.5, 1.5]


def test_text_stays_text_under_another_name(tmp_path):
    path = write(tmp_path / "p.csv", {"id": ["007", "7"], "cat": [0.5, 0.2], "dog": [0.5, 0.8]})
    assert read_probabilities(path, Reading(rename={"id": "node"})).ids.take(np.arange(2)).to_pylist() == ["007", "7"]


def test_rows_go_by_the_names_of_napsets(tmp_path):
    path = write(tmp_path / "y.csv", {"id": [1], "label": ["cat"]})
    table = open_table("labels", path, Reading(rename={"id": "node"}))
    assert table.read(["node", "label"], ["node", "label"]).column_names == ["node", "label"]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"separator": ";;"}, "`separator` must be one character, no quote and no line break; got ';;'"),
        ({"separator": '"'}, "`separator` must be one character"),
        ({"weights_are": "length"}, "did you mean 'lengths'?"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_can(reading, message):
    with pytest.raises(InvalidInputError) as caught:
        Reading(**reading)
    assert message in str(caught.value)


@pytest.mark.parametrize("classes", [20, 5000])
def test_the_blocks_of_a_csv_have_many_rows_however_many_columns_there_are(tmp_path, classes, monkeypatch):
    """Each block takes time for every column: with few rows per block, time is quadratic in the number of columns."""
    from napsets.files import outputs

    columns = {f"c{i}": np.full(100, 1 / classes) for i in range(classes)}
    pa.csv.write_csv(pa.table({"node": np.arange(100), **columns}), tmp_path / "p.csv")
    blocks, read = [], outputs.id_column
    monkeypatch.setattr(outputs, "id_column", lambda *given: blocks.append(given) or read(*given))
    assert read_probabilities(tmp_path / "p.csv", Reading()).values.shape == (100, classes)
    assert len(blocks) == 1
