"""The p-values of all classes in a sets file: written on request, and read back as they were from every format."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import read_inputs, read_sets, write_prediction
from napsets.methods import make_method
from worlds import CLASSES, make_world

FORMATS = [".parquet", ".csv", ".tsv", ".csv.gz", ".jsonl", ".npz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("w"), nodes=400, ids="string")


@pytest.fixture(scope="module")
def inputs(folder):
    return read_inputs(folder.edges, folder.probabilities_file, folder.labels_file)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(("method", "wanted"), [("split", True), ("informed", True), ("informed", "smoothed")])
def test_every_format_gives_them_back(tmp_path, inputs, suffix, method, wanted):
    calibrated, target = inputs.calibrate(make_method(method)), tmp_path / f"s{suffix}"
    about = {"class_names": list(CLASSES)}
    write_prediction(inputs, target, calibrated, alpha=0.2, metadata=about, p_values=wanted)
    sets = read_sets(target).sets
    values = calibrated.p_values(inputs.nodes, smoothed=wanted == "smoothed")
    assert sorted(sets.class_names) == sorted(CLASSES)
    order = [CLASSES.index(name) for name in sets.class_names]
    np.testing.assert_array_equal(sets.p_values, values[:, order])
    if wanted is True:
        np.testing.assert_array_equal(sets.member, sets.p_values > 0.2)


def test_without_the_request_there_is_no_such_column(tmp_path, inputs):
    calibrated = inputs.calibrate(make_method("split"))
    write_prediction(inputs, tmp_path / "s.parquet", calibrated, alpha=0.1, metadata={})
    assert "p_values" not in pq.read_schema(tmp_path / "s.parquet").names
    assert read_sets(tmp_path / "s.parquet").sets.p_values is None


def test_a_table_of_sets_has_them_and_can_be_queried(tmp_path, inputs):
    calibrated = inputs.calibrate(make_method("split"))
    sets = calibrated.predict(inputs.nodes, 0.2, p_values=True).with_names(400, None, CLASSES)
    pq.write_table(sets.to_arrow(), tmp_path / "s.parquet")
    query = f"select count(*) from '{tmp_path / 's.parquet'}' where p_values.{CLASSES[1]} > 0.2"
    assert duckdb.sql(query).fetchall() == [(int(sets.member[:, 1].sum()),)]
    again = read_sets(tmp_path / "s.parquet", ids="integer").sets  # no metadata names the classes: the column does
    assert list(again.class_names) == list(CLASSES)
    np.testing.assert_array_equal(again.p_values, sets.p_values)
    numbered = calibrated.predict(inputs.nodes, 0.2, p_values=True).to_arrow()
    assert [field.name for field in numbered.schema.field("p_values").type] == ["0", "1", "2"]


def test_the_command_writes_them(tmp_path, folder, inputs, must_run):
    for kind in ("plain", "smoothed"):
        target = tmp_path / f"{kind}.csv"
        must_run("predict", "-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file,
            "--method", "split", "--p-values", kind, "--alpha", "0.2", "-o", target)  # fmt: skip
        sets = read_sets(target).sets
        calibrated = inputs.calibrate(make_method("split"))
        values = calibrated.p_values(inputs.nodes, smoothed=kind == "smoothed")
        np.testing.assert_array_equal(sets.p_values, values[:, [CLASSES.index(name) for name in sets.class_names]])
    target = tmp_path / "s.parquet"
    must_run("predict", "-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file,
        "--method", "informed", "--p-values", "smoothed", "-o", target)  # fmt: skip
    assert read_sets(target).metadata["p_values"] == "smoothed"


def test_a_calibrated_method_from_a_file_writes_the_same(tmp_path, folder, must_run):
    names = ["-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file, "--method", "informed"]
    must_run("calibrate", *names, "-o", tmp_path / "m.npz")
    must_run("predict", "--method-file", tmp_path / "m.npz", "--p-values", "plain", "-o", tmp_path / "saved.parquet")
    must_run("predict", *names, "--p-values", "plain", "-o", tmp_path / "files.parquet")
    saved, files = (read_sets(tmp_path / f"{name}.parquet").sets for name in ("saved", "files"))
    np.testing.assert_array_equal(saved.p_values, files.p_values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row | {"p_values": "0.3"}, "must hold a JSON object in each cell"),
        (lambda row: row | {"p_values": json.dumps({"x": 0.5})}, "no empty cell"),
        (lambda row: row | {"p_values": json.dumps(dict.fromkeys(CLASSES, 1.5))}, "must be from 0 to 1"),
        (lambda row: row | {"p_values": json.dumps(dict.fromkeys(CLASSES, "much"))}, "must hold a JSON object"),
    ],
)
def test_p_values_that_cannot_be_are_refused(tmp_path, inputs, change, message):
    import csv

    calibrated = inputs.calibrate(make_method("split"))
    write_prediction(inputs, tmp_path / "s.csv", calibrated, alpha=0.1, metadata={}, p_values=True)
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    rows[3] = change(rows[3])
    with open(tmp_path / "s.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(ns.FileFormatError, match=message):
        read_sets(tmp_path / "s.csv")


def test_what_has_none_is_refused(tmp_path, folder, inputs, run):
    naps = inputs.calibrate(make_method("naps"))
    with pytest.raises(ns.InvalidInputError, match="compares exchangeable nodes"):
        write_prediction(inputs, tmp_path / "s.parquet", naps, alpha=0.1, metadata={}, p_values=True)
    assert not (tmp_path / "s.parquet").exists()
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be True, False or 'smoothed'"):
        inputs.calibrate(make_method("split")).predict(inputs.nodes, p_values="rough")
    files = ["-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file]
    for options in (["--engine", "spark"], ["--task", "regression"]):
        done = run("predict", *files, *options, "--p-values", "plain", "-o", tmp_path / "t.parquet", code=2)
        assert "--p-values" in done.output
