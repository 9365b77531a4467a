"""What comes in as an integer goes out as one; logits become probabilities; SQL reads what is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import softmax

import napsets as ns
from napsets.errors import FileFormatError
from napsets.files import Reading, read_inputs, read_probabilities, read_sets, write_prediction
from worlds import make_world, write


def as_files(folder, world, labels, suffix=".parquet"):
    """Write the world with lists of probabilities, so that classes are called 0, 1, 2, and labels as given."""
    folder.mkdir()
    table = pa.table({"node": world.ids, "probabilities": [row.tolist() for row in world.probabilities]})
    pq.write_table(table, folder / "p.parquet")
    return {
        "edges": world.edges,
        "probabilities": folder / "p.parquet",
        "labels": write(folder / f"y{suffix}", {"node": world.ids[world.calibration], "label": labels}),
    }


def written(path, inputs):
    calibrated = inputs.calibrate(ns.make_method("naps"))
    write_prediction(inputs, path, calibrated, alpha=0.1, metadata={"class_names": inputs.class_names})
    return calibrated.predict(inputs.nodes, 0.1)


@pytest.mark.parametrize("labels_suffix", [".parquet", ".csv"])
def test_integer_labels_stay_integers(tmp_path, labels_suffix):
    world = make_world(tmp_path / "world")
    files = as_files(tmp_path / "files", world, world.labels[world.calibration], labels_suffix)
    inputs = read_inputs(*files.values())
    assert inputs.integer_labels
    for suffix in (".parquet", ".csv"):
        expected = written(tmp_path / f"s{suffix}", inputs)
        sets_file = read_sets(tmp_path / f"s{suffix}")
        member = (
            sets_file.sets.member
            if sets_file.complete
            else sets_file.sets.member[:, [int(y) for y in sets_file.class_names]]
        )
        assert np.array_equal(member, expected.member)
    schema = pq.read_schema(tmp_path / "s.parquet")
    assert schema.field("labels").type == pa.list_(pa.field("element", pa.int64()))
    assert schema.field("prediction").type == pa.int64()
    assert '"[""' not in (tmp_path / "s.csv").read_text()


def test_text_that_looks_like_integers_stays_text(tmp_path):
    world = make_world(tmp_path / "world")
    inputs = read_inputs(*as_files(tmp_path / "files", world, world.labels[world.calibration].astype(str)).values())
    assert not inputs.integer_labels
    written(tmp_path / "s.parquet", inputs)
    assert pq.read_schema(tmp_path / "s.parquet").field("prediction").type == pa.string()


# -- logits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_become_probabilities_without_overflow(tmp_path, dtype):
    logits = np.array([[1000.0, 999.0, -1000.0], [-5000.0, -5000.0, -5001.0], [0.0, 0.0, 0.0]], dtype=dtype)
    path = write(tmp_path / "p.parquet", {"node": [1, 2, 3]} | {f"c{y}": logits[:, y] for y in range(3)})
    probabilities = read_probabilities(path, Reading(logits=True)).values
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(
        probabilities, softmax(logits.astype(float), axis=1), rtol=1e-6 if dtype == np.float32 else 1e-12
    )
    with pytest.raises(FileFormatError, match="add --logits"):
        read_probabilities(path)


def test_logits_that_are_no_numbers_are_refused_by_row(tmp_path):
    path = write(tmp_path / "p.parquet", {"node": [4, 5], "cat": [0.1, np.inf], "dog": [3.0, 1.0]})
    with pytest.raises(FileFormatError, match=r"finite numbers; row 1 of .* \(node 5\) has inf"):
        read_probabilities(path, Reading(logits=True))


# -- SQL -----------------------------------------------------------------------------------------------------------


def test_duckdb_reads_what_napsets_writes_and_napsets_what_duckdb_writes(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    world = make_world(tmp_path / "world")
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    expected = written(tmp_path / "s.parquet", inputs)
    for name in ("s.parquet",):
        size, cats, certain = duckdb.sql(
            f"SELECT avg(len(labels)), sum(list_contains(labels, 'cat')::INT), sum((size = 1)::INT) "
            f"FROM '{tmp_path / name}'"
        ).fetchall()[0]
        assert size == pytest.approx(expected.sizes.mean())
        assert cats == expected.member[:, 0].sum()
        assert certain == (expected.sizes == 1).sum()
    # What SQL makes of 0.5 is a decimal number.
    target = tmp_path / "p.parquet"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES (7, 0.5, 0.5), (3, 0.25, 0.75)) AS t(node, cat, dog)) TO '{target}'")
    assert pa.types.is_decimal(pq.read_schema(target).field("cat").type)
    assert read_probabilities(target).values.tolist() == [[0.5, 0.5], [0.25, 0.75]]
