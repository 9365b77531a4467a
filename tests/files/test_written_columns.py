"""A sets file also has the most probable label of each node and, on request, the p-values of all classes."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import describe_settings, read_inputs, read_sets, write_prediction
from napsets.files.prediction_file import GUESSES, REQUIRED
from napsets.localisers import Hops
from napsets.methods import list_methods, make_method
from napsets.predictions import PredictionSets
from worlds import CLASSES, make_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("w"), nodes=400, ids="string")


@pytest.fixture(scope="module")
def inputs(folder):
    return read_inputs(folder.edges, folder.probabilities_file, folder.labels_file)


def rows_of(path):
    """Return the rows of a CSV as dictionaries of text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def p_values_of(path):
    """Return the p-values in a file, one column per class."""
    if path.suffix == ".parquet":
        cells = pq.read_table(path)["p_values"].to_pylist()
    else:
        cells = [json.loads(row["p_values"]) for row in rows_of(path)]
    return np.array([[cell[name] for name in CLASSES] for cell in cells])


@pytest.mark.parametrize("method", list_methods())
def test_every_method_writes_the_most_probable_label(tmp_path, inputs, method):
    calibrated = inputs.calibrate(make_method(method))
    write_prediction(inputs, tmp_path / "s.parquet", calibrated, alpha=0.1, metadata={"class_names": list(CLASSES)})
    table = pq.read_table(tmp_path / "s.parquet")
    assert table.column_names == [*REQUIRED[PredictionSets], *GUESSES[PredictionSets]]
    p = calibrated.score.probabilities[inputs.nodes]
    assert table["prediction"].to_pylist() == [CLASSES[y] for y in p.argmax(axis=1)]
    np.testing.assert_array_equal(table["probability"].to_numpy(), p.max(axis=1))
    same = (p.argmax(axis=1) == inputs.outputs[inputs.nodes].argmax(axis=1)).all()
    assert same == (method not in ("informed", "auto", "auto-small"))


def test_informed_predictions_are_right_more_often(tmp_path):
    world = make_world(tmp_path / "w", nodes=2000)
    truth, right = [CLASSES[y] for y in world.labels[world.rest]], {}
    for method in ("split", "informed"):
        path = tmp_path / f"{method}.parquet"
        read = read_inputs(world.edges, world.probabilities_file, world.labels_file)
        write_prediction(read, path, read.calibrate(make_method(method)), alpha=0.1, metadata={})
        right[method] = np.mean(np.array(pq.read_table(path)["prediction"].to_pylist()) == truth)
    assert right["informed"] > right["split"] + 0.05
    query = f"select count(*) from '{path}' where list_contains(labels, prediction)"
    assert duckdb.sql(query).fetchall()[0][0] > 0


def test_classes_that_look_like_numbers_stay_what_they_are_in_csv(tmp_path, inputs):
    odd = replace(inputs, class_names=["007", "7", "NA"])
    write_prediction(odd, tmp_path / "s.csv", odd.calibrate(make_method("split")), alpha=0.9, metadata={})
    names = np.array(odd.class_names)[odd.outputs[odd.nodes].argmax(axis=1)]
    assert [row["prediction"] for row in rows_of(tmp_path / "s.csv")] == names.tolist()
    sets = read_sets(tmp_path / "s.csv").sets
    assert (sets.sizes == 0).any()
    assert set(sets.class_names) == {"007", "7", "NA"}  # a class may be predicted though no set has it


def test_a_method_without_a_description_is_not_recorded():
    method = ns.Method(ns.APS(), Hops(2, lambda k: 1.0 / k))
    assert "method_description" not in describe_settings({}, None, nodes=3, calibration=2, method=method)
    known = describe_settings({}, None, nodes=3, calibration=2, method=ns.Method(ns.APS(), Hops(2)))
    assert known["method_description"] == ns.Method(ns.APS(), Hops(2)).describe()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize(("method", "wanted"), [("split", True), ("informed", True), ("informed", "smoothed")])
def test_p_values_are_written_on_request(tmp_path, inputs, suffix, method, wanted):
    calibrated, target = inputs.calibrate(make_method(method)), tmp_path / f"s{suffix}"
    about = {"class_names": list(CLASSES)}
    write_prediction(inputs, target, calibrated, alpha=0.2, metadata=about, p_values=wanted)
    values = calibrated.p_values(inputs.nodes, smoothed=wanted == "smoothed")
    np.testing.assert_array_equal(p_values_of(target), values)
    if wanted is True and suffix == ".parquet":
        np.testing.assert_array_equal(read_sets(target).sets.member, values > 0.2)


def test_a_table_of_sets_has_them_and_can_be_queried(tmp_path, inputs):
    calibrated = inputs.calibrate(make_method("split"))
    sets = calibrated.predict(inputs.nodes, 0.2, p_values=True).with_names(400, None, CLASSES)
    pq.write_table(sets.to_arrow(), tmp_path / "s.parquet")
    query = f"select count(*) from '{tmp_path / 's.parquet'}' where p_values.{CLASSES[1]} > 0.2"
    assert duckdb.sql(query).fetchall() == [(int(sets.member[:, 1].sum()),)]
    numbered = calibrated.predict(inputs.nodes, 0.2, p_values=True).to_arrow()
    assert [field.name for field in numbered.schema.field("p_values").type] == ["0", "1", "2"]


def test_the_command_writes_them_also_from_a_method_file(tmp_path, folder, inputs, must_run):
    files = ["-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file, "--method", "informed"]
    must_run("calibrate", *files, "-o", tmp_path / "m.npz")
    must_run("predict", "--method-file", tmp_path / "m.npz", "--p-values", "plain", "-o", tmp_path / "saved.parquet")
    must_run("predict", *files, "--p-values", "plain", "-o", tmp_path / "plain.parquet")
    must_run("predict", *files, "--p-values", "smoothed", "-o", tmp_path / "smoothed.parquet")
    calibrated = inputs.calibrate(make_method("informed"))
    np.testing.assert_array_equal(p_values_of(tmp_path / "saved.parquet"), p_values_of(tmp_path / "plain.parquet"))
    smoothed = p_values_of(tmp_path / "smoothed.parquet")
    np.testing.assert_array_equal(smoothed, calibrated.p_values(inputs.nodes, smoothed=True))
    assert read_sets(tmp_path / "smoothed.parquet").metadata["p_values"] == "smoothed"


def test_what_has_no_p_values_is_refused(tmp_path, folder, inputs, run):
    naps = inputs.calibrate(make_method("naps"))
    with pytest.raises(ns.InvalidInputError, match="compares exchangeable nodes"):
        write_prediction(inputs, tmp_path / "s.parquet", naps, alpha=0.1, metadata={}, p_values=True)
    assert not (tmp_path / "s.parquet").exists()
    with pytest.raises(ns.InvalidInputError, match="`p_values` must be True, False or 'smoothed'"):
        inputs.calibrate(make_method("split")).predict(inputs.nodes, p_values="rough")
    files = ["-e", folder.edges, "-p", folder.probabilities_file, "-l", folder.labels_file]
    options = ["--task", "regression", "--p-values", "plain", "-o", tmp_path / "t.parquet"]
    assert "--p-values" in run("predict", *files, *options, code=2).output
