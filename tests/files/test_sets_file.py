"""The sets file: written as it is made, whole or not at all, and readable everywhere."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import napsets as ns
from napsets.errors import FileFormatError
from napsets.files import describe_settings, read_sets, writing_rows
from napsets.files.prediction_file import REQUIRED, prediction_schema
from napsets.files.writers import ROW_GROUP
from napsets.predictions import PredictionSets
from worlds import write

FORMATS = [".parquet", ".csv", ".csv.gz"]
NAMES = ["cat", "a,b", "ü\"'"]


def some_sets(count: int = 4) -> ns.PredictionSets:
    member = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)
    thresholds = np.array([0.1 + 0.2, 0.01, np.inf, 0.625])
    rows = np.arange(count) % 4
    return ns.PredictionSets(
        np.arange(count),
        member[rows],
        thresholds[rows],
        np.array([12, 9, 0, 3])[rows],
        np.array([11.5, 9.0, 0.0, 2.25])[rows],
        0.1,
        class_names=NAMES,
    )


def writing_sets(path: Path, id_type: pa.DataType, metadata: dict):
    return writing_rows(path, prediction_schema(PredictionSets, id_type, metadata, guesses=False))


def write_sets(path: Path, ids: pa.Array, pieces: int = 1) -> Path:
    sets = some_sets(len(ids))
    table = sets.to_arrow().set_column(0, "node", ids)
    metadata = describe_settings({"alpha": 0.1, "hops": 2}, NAMES, nodes=9, calibration=5)
    step = -(-len(ids) // pieces)
    with writing_sets(path, ids.type, metadata) as writer:
        for start in range(0, len(ids), step):
            writer(table.slice(start, step))
    return path


@pytest.fixture
def parquet(tmp_path):
    return write_sets(tmp_path / "sets.parquet", pa.array(["x", "y", "né", "007"]))


EXPECTED = [["cat", "ü\"'"], [], NAMES, ["a,b"]]


def test_columns_have_the_names_and_types_that_are_promised(parquet):
    schema = pq.read_schema(parquet)
    assert tuple(schema.names) == REQUIRED[PredictionSets]
    kinds = ["string", "list<element: string>", "int32", "double", "int64", "double", "double"]
    assert [str(kind) for kind in schema.types] == kinds


def test_settings_and_version_are_in_the_metadata(parquet):
    about = json.loads(pq.read_schema(parquet).metadata[b"napsets"])
    assert about == {
        "napsets": ns.__version__,
        "class_names": NAMES,
        "num_nodes": 9,
        "calibration": 5,
        "alpha": 0.1,
        "hops": 2,
    }


def test_polars_reads_it(parquet):
    frame = pl.read_parquet(parquet)
    assert frame["labels"].to_list() == EXPECTED
    assert frame["node"].to_list() == ["x", "y", "né", "007"]
    assert frame["threshold"].is_infinite().to_list() == [False, False, True, False]
    assert frame["threshold"][0] == 0.1 + 0.2


def test_rows_are_written_in_groups(tmp_path):
    path = write_sets(tmp_path / "sets.parquet", pa.array(np.arange(3 * ROW_GROUP)), pieces=2)
    assert pq.ParquetFile(path).metadata.row_group(0).num_rows == ROW_GROUP
    assert read_sets(path).sets.sizes.sum() == 6 * 3 * ROW_GROUP // 4


@pytest.mark.parametrize("ids", [pa.array([5, -2, 2**60, 0]), pa.array(["5", "b", "né", "NA"])])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_comes_back_as_it_was(tmp_path, suffix, ids):
    file = read_sets(write_sets(tmp_path / f"sets{suffix}", ids, pieces=2))
    wrote = some_sets()
    assert file.ids.take(np.arange(4)).to_pylist() == ids.to_pylist()
    named = [[file.class_names[y] for y in labels] for labels in file.sets.labels()]
    assert [sorted(names) for names in named] == [sorted(names) for names in EXPECTED]
    assert file.class_names == (sorted(NAMES) if ".csv" in suffix else NAMES)
    for name in ("thresholds", "support", "effective_size"):
        np.testing.assert_array_equal(getattr(file.sets, name), getattr(wrote, name))
    assert file.sets.alpha == 0.1
    assert file.complete == (".csv" not in suffix)


@pytest.mark.parametrize("suffix", [*FORMATS])
def test_a_threshold_below_every_score_comes_back_from_every_format(tmp_path, suffix):
    """An exact level may ask for nothing at a large alpha: nobody is in the set."""
    sets = some_sets()
    low = replace(sets, thresholds=np.where(sets.sizes == 0, -np.inf, sets.thresholds))
    path = tmp_path / f"sets{suffix}"
    with writing_sets(path, pa.int64(), describe_settings({"alpha": 0.1}, NAMES, nodes=9, calibration=5)) as writer:
        writer(low.to_arrow())
    assert read_sets(path).sets.thresholds.tolist() == low.thresholds.tolist()


def test_csv_is_read_by_others_with_the_labels_as_json(tmp_path):
    frame = pd.read_csv(write_sets(tmp_path / "sets.csv.gz", pa.array([4, 3, 2, 1])))
    assert [json.loads(text) for text in frame["labels"]] == EXPECTED
    assert np.isinf(frame["threshold"][2])


@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_is_left_behind_when_it_goes_wrong(tmp_path, suffix):
    path = tmp_path / f"sets{suffix}"
    path.write_text("what was there before")
    table = some_sets().to_arrow()

    def fail() -> None:
        with writing_sets(path, pa.int64(), {}) as writer:
            writer(table)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "what was there before"


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_same_sets_are_the_same_bytes_whenever_and_under_whatever_name(tmp_path, suffix, monkeypatch):
    ids = pa.array(["x", "y", "né", "007"])
    first = write_sets(tmp_path / f"first{suffix}", ids).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    now = time.localtime(2e9)
    monkeypatch.setattr("time.localtime", lambda *when: now)
    assert write_sets(tmp_path / f"second{suffix}", ids).read_bytes() == first


def test_a_folder_of_parts_carries_the_settings_in_a_file_beside_them(tmp_path, parquet):
    about = pq.read_schema(parquet).metadata[b"napsets"]
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / "_napsets.json").write_bytes(about)
    for i in range(2):
        part = pq.read_table(parquet).slice(2 * i, 2).replace_schema_metadata(None)
        pq.write_table(part, folder / f"part-{i}.parquet")
    file = read_sets(folder)
    assert file.metadata == json.loads(about)
    assert (file.class_names, file.complete) == (NAMES, True)
    np.testing.assert_array_equal(file.sets.member, some_sets().member)


def test_other_files_are_no_sets(tmp_path):
    path = write(tmp_path / "x.parquet", {"node": [1], "labels": ["cat"]})
    with pytest.raises(FileFormatError, match=r"`sets` must have the columns .* lacks size, threshold"):
        read_sets(path)
    (tmp_path / "x.csv").write_text(",".join(REQUIRED[PredictionSets]) + "\n1,cat,1,0.5,3,3.0,0.1\n")
    with pytest.raises(FileFormatError, match=r"a JSON array in each cell of its column labels, .* has 'cat'"):
        read_sets(tmp_path / "x.csv")
