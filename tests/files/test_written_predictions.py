"""A sets file also says which label is the most probable, by the probabilities that its sets were made of."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.files import describe_settings, read_inputs, read_sets, write_prediction
from napsets.files.prediction_columns import SETS
from napsets.localisers import Hops
from napsets.methods import make_method, methods
from worlds import CLASSES, make_world

FORMATS = [".parquet", ".csv", ".csv.gz", ".npz"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    world = make_world(tmp_path_factory.mktemp("w"), nodes=400, ids="string")
    return read_inputs(world.edges, world.probabilities_file, world.labels_file)


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.gnn] * (name == "cf-gnn")) for name in methods()]
)
def test_every_method_writes_the_most_probable_label(tmp_path, inputs, method):
    calibrated = inputs.calibrate(make_method(method))
    write_prediction(inputs, tmp_path / "s.parquet", calibrated, alpha=0.1, metadata={"class_names": list(CLASSES)})
    assert pq.read_schema(tmp_path / "s.parquet").names == [*SETS.required, *SETS.optional]
    file = read_sets(tmp_path / "s.parquet")
    p = calibrated.score.probabilities[inputs.nodes]
    np.testing.assert_array_equal(file.predictions, p.argmax(axis=1))
    np.testing.assert_array_equal(file.probabilities, p.max(axis=1))
    model = inputs.outputs[inputs.nodes].argmax(axis=1)
    assert (file.predictions == model).all() == (method not in ("informed", "auto", "auto-small", "cf-gnn"))


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_them_back(tmp_path, inputs, suffix):
    calibrated = inputs.calibrate(make_method("informed"))
    write_prediction(inputs, tmp_path / f"s{suffix}", calibrated, alpha=0.3, metadata={"class_names": list(CLASSES)})
    file = read_sets(tmp_path / f"s{suffix}")
    p = calibrated.score.probabilities[inputs.nodes]
    assert [file.class_names[y] for y in file.predictions] == [CLASSES[y] for y in p.argmax(axis=1)]
    np.testing.assert_array_equal(file.probabilities, p.max(axis=1))


def test_informed_predictions_are_right_more_often(tmp_path):
    world = make_world(tmp_path / "w", nodes=2000)
    right = {}
    for method in ("split", "informed"):
        path = tmp_path / f"{method}.parquet"
        read = read_inputs(world.edges, world.probabilities_file, world.labels_file)
        about = {"class_names": read.class_names}
        write_prediction(read, path, read.calibrate(make_method(method)), alpha=0.1, metadata=about)
        right[method] = (read_sets(path).predictions == world.labels[world.rest]).mean()
    assert right["informed"] > right["split"] + 0.05
    query = f"select count(*) from '{path}' where list_contains(labels, prediction)"
    assert duckdb.sql(query).fetchall()[0][0] > 0


def test_classes_that_look_like_numbers_stay_what_they_are_in_csv(tmp_path, inputs):
    odd = replace(inputs, class_names=["007", "7", "NA"])
    write_prediction(odd, tmp_path / "s.csv", odd.calibrate(make_method("split")), alpha=0.9, metadata={})
    file = read_sets(tmp_path / "s.csv")
    names = np.array(odd.class_names)[odd.outputs[odd.nodes].argmax(axis=1)]
    assert [file.class_names[y] for y in file.predictions] == names.tolist()
    assert (file.sets.sizes == 0).any()  # a class may be predicted though no set has it


def test_what_has_no_probabilities_to_show_writes_sets_alone(tmp_path, inputs):
    naps = ns.NAPS().calibrate(inputs.graph, inputs.outputs, inputs.truth, inputs.calibration)
    for suffix in FORMATS:
        write_prediction(inputs, tmp_path / f"s{suffix}", naps, alpha=0.1, metadata={})
        assert read_sets(tmp_path / f"s{suffix}").predictions is None
    assert pq.read_schema(tmp_path / "s.parquet").names == list(SETS.required)


def test_a_file_that_lacks_one_optional_column_keeps_the_others(tmp_path, inputs, monkeypatch):
    write_prediction(inputs, tmp_path / "s.parquet", inputs.calibrate(make_method("split")), alpha=0.1, metadata={})
    whole = read_sets(tmp_path / "s.parquet")
    monkeypatch.setattr(type(SETS), "optional", (*SETS.optional, "added later"))
    old = read_sets(tmp_path / "s.parquet")
    np.testing.assert_array_equal(old.predictions, whole.predictions)
    np.testing.assert_array_equal(old.probabilities, whole.probabilities)
    pq.write_table(pq.read_table(tmp_path / "s.parquet").drop_columns("probability"), tmp_path / "t.parquet")
    some = read_sets(tmp_path / "t.parquet")
    np.testing.assert_array_equal(some.predictions, whole.predictions)
    assert some.probabilities is None


def test_a_method_without_a_description_is_not_recorded():
    method = ns.Method(ns.APS(), Hops(2, lambda k: 1.0 / k))
    assert "method_description" not in describe_settings({}, None, nodes=3, calibration=2, method=method)
    known = describe_settings({}, None, nodes=3, calibration=2, method=ns.Method(ns.APS(), Hops(2)))
    assert known["method_description"] == ns.Method(ns.APS(), Hops(2)).describe()
