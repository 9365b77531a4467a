"""Targets are numbers; what is none is refused or counted, and quantiles that look swapped are noticed."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from napsets.errors import FileFormatError
from napsets.files.ids import NodeIds
from napsets.files.inputs import read_inputs
from napsets.files.labels import read_targets
from napsets.predictions import PredictionIntervals
from number_worlds import IDS, SIZE, X, number_files
from worlds import write

NODES = NodeIds(pa.array(["a", "b", "c", "d"]), "probabilities", "p.csv")


def targets_of(path):
    notes: list[str] = []
    return read_targets(path, NODES, notes=notes), notes


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_without_a_target_are_counted(tmp_path, suffix):
    columns = {"node": ["a", "b", "c"], "target": [1.5, np.nan, -np.inf]}
    targets, notes = targets_of(write(tmp_path / f"y{suffix}", columns))
    assert np.array_equal(targets, [1.5, np.nan, np.nan, np.nan], equal_nan=True)
    assert notes == [
        f"2 of the 3 rows of `labels` ({tmp_path / f'y{suffix}'}) have no target: an empty cell, NaN or infinite"
    ]


def test_an_empty_cell_is_counted_and_a_node_that_is_absent_is_not(tmp_path):
    (tmp_path / "y.csv").write_text("node,target\na,1.5\nb,\n")
    targets, notes = targets_of(tmp_path / "y.csv")
    assert np.array_equal(targets, [1.5, np.nan, np.nan, np.nan], equal_nan=True)
    assert "1 of the 2 rows" in notes[0]
    (tmp_path / "y.csv").write_text("node,target\na,1.5\nb,2\n")
    assert targets_of(tmp_path / "y.csv")[1] == []


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime.datetime(2026, 1, day) for day in (1, 2)]),
        pa.array([datetime.date(2026, 1, day) for day in (1, 2)]),
        pa.array([[1.0], [2.0]]),
        pa.array([{"price": 1.0}, {"price": 2.0}]),
        pa.array([True, False]),
        pa.array([b"1", b"2"]),
    ],
    ids=lambda column: str(column.type),
)
def test_what_is_no_number_is_refused_by_its_type(tmp_path, column):
    pa.parquet.write_table(pa.table({"node": ["a", "b"], "target": column}), tmp_path / "y.parquet")
    with pytest.raises(FileFormatError) as caught:
        targets_of(tmp_path / "y.parquet")
    message = f"`labels` must hold numbers in its column target; {tmp_path / 'y.parquet'} has "
    assert str(caught.value).startswith(message + str(column.type).partition("<")[0])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.uint8()),
        pa.array([1, 2], pa.float32()),
        pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.0")]),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_of_every_type_are_targets(tmp_path, column):
    pa.parquet.write_table(pa.table({"node": ["a", "b"], "target": column}), tmp_path / "y.parquet")
    assert targets_of(tmp_path / "y.parquet")[0].tolist()[:2] == [1.0, 2.0]


def test_integers_beyond_the_last_digit_of_a_float_are_numbers_too(tmp_path):
    path = write(tmp_path / "y.parquet", {"node": ["a"], "target": [2**53 + 1]})
    assert targets_of(path)[0][0] == 2.0**53


@pytest.mark.parametrize(("swapped", "noted"), [(0, False), (SIZE // 2, False), (SIZE // 2 + 1, True), (SIZE, True)])
def test_quantiles_that_cross_in_most_rows_are_said_to_look_swapped(tmp_path, swapped, noted):
    high = np.where(np.arange(SIZE) < swapped, -1.0, 1.0)
    files = number_files(tmp_path, probabilities={"node": IDS, "lower": 2 * X - high, "upper": 2 * X + high})
    notes = [note for note in read_inputs(*files[1::2], prediction=PredictionIntervals).notes if "swapped" in note]
    assert len(notes) == noted
    if noted:
        assert f"lower is above upper in {swapped:,} of the 200 rows of `probabilities`" in notes[0]
