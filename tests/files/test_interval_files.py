"""A file of intervals is read back as it was written, and refused where its parts contradict each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import napsets as ns
from napsets.errors import FileFormatError
from napsets.files import read_inputs, read_prediction, write_prediction
from number_worlds import IDS, REST, number_files, number_predictor
from oracles import same_bits
from worlds import make_world, write

SUFFIXES = [".parquet", ".csv", ".tsv", ".csv.gz"]


def written(folder, target, method="naps", **settings):
    """Write the intervals of a local method, some of which are the whole line; return them."""
    paths = number_files(folder)[1::2]
    inputs = read_inputs(*paths, prediction=ns.PredictionIntervals)
    calibrated = inputs.calibrate(ns.make_method(method, score="cqr", hops=1, **settings))
    write_prediction(inputs, target, calibrated, alpha=0.1, metadata={"task": "regression", "alpha": 0.1})
    return calibrated.predict(REST, 0.1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_read_is_what_was_written(tmp_path, suffix):
    intervals = written(tmp_path, tmp_path / f"out{suffix}")
    assert 0 < intervals.infinite < len(intervals)
    file = read_prediction(tmp_path / f"out{suffix}")
    assert file.ids.values.to_pylist() == IDS[REST].tolist()
    for name in ("lower", "upper", "thresholds", "support", "effective_size", "centre"):
        assert same_bits(getattr(file.prediction, name), getattr(intervals, name)), name
    assert file.prediction.alpha == 0.1
    kept = suffix == ".parquet"
    assert file.metadata == ({"task": "regression", "alpha": 0.1} if kept else {})


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_threshold_of_minus_infinity_is_no_whole_line(tmp_path, suffix):
    columns = {
        "node": [3, 4], "lower": [1.0, -np.inf], "upper": [1.0, np.inf], "width": [0.0, np.inf],
        "threshold": [-np.inf, np.inf], "support": [3, 0], "effective_size": [3.0, 0.0], "alpha": [0.1, 0.1],
    }  # fmt: skip
    file = read_prediction(write(tmp_path / f"out{suffix}", columns))
    assert file.prediction.thresholds.tolist() == [-np.inf, np.inf]
    assert file.prediction.lower.tolist() == [1.0, -np.inf]
    assert file.prediction.infinite == 1
    assert file.prediction.centre is None  # which a file need not have


def test_intervals_of_the_library_are_read_from_its_own_table(tmp_path):
    intervals = number_predictor("absolute", "split").predict(REST, 0.2)
    pa.parquet.write_table(intervals.to_arrow(), tmp_path / "own.parquet")
    file = read_prediction(tmp_path / "own.parquet")
    assert same_bits(file.prediction.upper, intervals.upper)
    assert file.ids.values.to_pylist() == intervals.row_names.tolist()


def test_a_sets_file_holds_no_intervals(tmp_path):
    world = make_world(tmp_path / "w")
    sets = ns.SplitConformal().calibrate(world.probabilities, world.labels, world.calibration).predict(world.rest)
    pa.parquet.write_table(sets.to_arrow(), tmp_path / "sets.parquet")
    assert isinstance(read_prediction(tmp_path / "sets.parquet").prediction, ns.PredictionSets)
    with pytest.raises(FileFormatError, match="`sets` must have the columns node, labels, size"):
        read_prediction(world.labels_file)


ROWS = {
    "node": [3, 4], "lower": [0.0, 1.0], "upper": [2.0, 4.0], "width": [2.0, 3.0], "threshold": [0.5, 0.7],
    "support": [3, 9], "effective_size": [3.0, 9.0], "alpha": [0.1, 0.1], "prediction": [1.0, 2.5],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": [0.0, 5.0]}, "`lower` must be at most `upper`; row 1 goes from 5 to 4"),
        ({"upper": [2.0, np.nan]}, "`upper` must hold numbers, none of them NaN"),
        ({"upper": ["a", "b"]}, "`sets` must hold numbers in its column upper"),
        ({"threshold": [0.5, np.nan]}, "`thresholds` must hold numbers, none of them NaN"),
        ({"alpha": [0.1, 0.2]}, "`sets` must have one alpha for all rows"),
        ({"alpha": [1.5, 1.5]}, "`alpha` must lie strictly between 0 and 1"),
        ({"node": [3, 3]}, "3"),
        ({name: [] for name in ROWS}, "`sets` must have at least one row"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(tmp_path, changes, message):
    path = write(tmp_path / "out.parquet", ROWS | changes)
    with pytest.raises(FileFormatError, match=message):
        read_prediction(path)
