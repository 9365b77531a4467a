"""The store: many may append, none can damage."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.errors import FileFormatError
from napsets.studies import RowStore


def test_rows_come_back_as_they_went_in_each_key_once(tmp_path):
    store = RowStore(tmp_path)
    store.append("a", [{"key": "2", "x": 0.5, "word": "b"}, {"key": "1", "x": float("inf"), "word": None}])
    store.append("a", [{"key": "1", "x": float("inf"), "word": None}, {"key": "3", "more": 7}])
    rows = RowStore(tmp_path).rows("a")
    assert [row["key"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["x"] == float("inf")
    assert rows[1] == {"key": "2", "x": 0.5, "word": "b"}
    assert rows[2]["more"] == 7
    assert store.rows("b") == []


def test_compaction_leaves_one_file_and_every_row(tmp_path):
    store = RowStore(tmp_path)
    for i in range(7):
        store.append("a", [{"key": str(i), "value": i}])
    before = store.rows("a")
    store.compact("a")
    store.compact("a")
    assert len(list((tmp_path / "a").iterdir())) == 1
    assert RowStore(tmp_path).rows("a") == before


def test_a_truncated_file_is_named_in_the_error(tmp_path):
    store = RowStore(tmp_path)
    store.append("a", [{"key": "1"}])
    (file,) = (tmp_path / "a").iterdir()
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(FileFormatError, match=file.name):
        RowStore(tmp_path).rows("a")


@pytest.fixture(scope="module")
def committed():
    store = RowStore(Path(__file__).parents[2] / "results")
    return {study: store.rows(study)[0] for study in ("datasets", "coverage", "sbm")}


@pytest.mark.parametrize(
    ("study", "change", "message"),
    [
        ("coverage", {"coverage": 7.5}, "a coverage that is between 0 and 1; it has 7.5"),
        ("coverage", {"coverage": None}, "a coverage that is between 0 and 1; it has None"),
        ("coverage", {"mean_size": -1.0}, "a mean_size that is 0 or above; it has -1.0"),
        ("coverage", {"pccv": float("nan")}, "a pccv that is between 0 and 1; it has nan"),
        ("coverage", {"alpha": 0.2}, "the key of its settings"),
        ("coverage", {"method": "NAPS-X"}, "the key of its settings"),
        ("coverage", {"dataset": "nowhere"}, "the settings of the study 'coverage'"),
        ("coverage", {"version": 0}, "a version of the results from 1 to 1; it is of 0"),
        ("coverage", {"version": 2}, "a version of the results from 1 to 1; it is of 2"),
        ("sbm", {"p_in": 0.3}, "the key of its settings"),
        ("sbm", {"aps_gap": 1.5}, "a aps_gap that is between -1 and 1; it has 1.5"),
        ("sbm", {"neighbours": "many"}, "a neighbours that is 0 or above; it has 'many'"),
        ("datasets", {"seed": 9}, "the key of its settings"),
        ("datasets", {"nodes": None}, "a nodes that is 0 or above; it has None"),
        ("datasets", {"key": None}, "a key in each row; one has None"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_refused_by_its_name(tmp_path, committed, study, change, message):
    row = committed[study]
    RowStore(tmp_path).append(study, [row])
    assert RowStore(tmp_path).rows(study) == [row]
    RowStore(tmp_path).append(study, [row | change])
    named = repr(row["key"]) if "key" not in change else ".parquet"
    with pytest.raises(FileFormatError, match=f"{named}.* must (have|be of) {message}"):
        RowStore(tmp_path).rows(study)


def test_rows_of_an_earlier_version_keep_their_keys(tmp_path, committed, monkeypatch):
    monkeypatch.setattr("napsets.studies.study.RESULTS_VERSION", 2)
    RowStore(tmp_path).append("coverage", [committed["coverage"]])
    assert RowStore(tmp_path).rows("coverage") == [committed["coverage"]]


def test_other_peoples_files_are_neither_read_as_rows_nor_removed(tmp_path):
    (tmp_path / "datasets").mkdir()
    theirs = tmp_path / "datasets" / "mine.parquet"
    pq.write_table(pa.table({"x": [1]}), theirs)
    store = RowStore(tmp_path)
    store.append("datasets", [{"key": "k"}])
    with pytest.raises(FileFormatError, match="must have a key in each row"):
        store.compact("datasets")
    assert theirs.exists()


WRITER = """
import sys
from napsets.studies import RowStore
store, name = RowStore(sys.argv[1]), sys.argv[2]
for i in range(int(sys.argv[3])):
    store.append("a", [{"key": f"{name}-{i:04}", "value": float(i)}])
    if i % 5 == 4:
        store.compact("a")
"""


def writer(folder, name, count):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name, str(count)])


def test_writers_that_compact_at_the_same_time_lose_no_row(tmp_path):
    started = [writer(tmp_path, name, 25) for name in "xyz"]
    reader = RowStore(tmp_path)
    while any(process.poll() is None for process in started):
        reader.rows("a")  # reading in between must never fail
    assert [process.returncode for process in started] == [0, 0, 0]
    assert [row["key"] for row in RowStore(tmp_path).rows("a")] == [f"{n}-{i:04}" for n in "xyz" for i in range(25)]


def test_a_killed_writer_leaves_whole_rows_only(tmp_path):
    process = writer(tmp_path, "x", 1_000_000)
    while len(RowStore(tmp_path).rows("a")) < 8:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rows = RowStore(tmp_path).rows("a")
    assert [row["key"] for row in rows] == [f"x-{i:04}" for i in range(len(rows))]
    assert all(row["value"] == i for i, row in enumerate(rows))
