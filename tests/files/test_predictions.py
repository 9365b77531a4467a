"""NodePredictions: checked when made, written whole or not at all, read from anyone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.predictions import NodePredictions

ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]], dtype=np.float32)


@pytest.fixture
def predictions():
    return NodePredictions(
        nodes=[4, 2, 9, 0],
        probabilities=ROWS,
        labels=[0, 2, 2, -1],
        split=["train", "test", "test", "test"],
        dataset="toy",
        model="mlp",
        settings={"seed": 3, "rate": 0.1},
        class_names=["a", "b", "c"],
    )


def test_accuracy_is_that_of_the_labelled_test_nodes(predictions):
    assert predictions.accuracy == 0.5
    assert predictions.accuracy_on("train") == 1.0
    assert predictions.accuracy_on(None) == pytest.approx(2 / 3)
    assert np.isnan(predictions.accuracy_on("validation"))


def test_without_a_split_all_labelled_nodes_count():
    assert NodePredictions([0, 1], ROWS[:2], [0, 0]).accuracy == 0.5


def test_a_file_gives_back_every_bit(predictions, tmp_path):
    (tmp_path / "deep").mkdir()
    path = predictions.save(tmp_path / "deep" / "p.parquet")
    back = NodePredictions.load(path)
    assert back.probabilities.dtype == np.float32
    for name in ("nodes", "probabilities", "labels", "split"):
        assert np.array_equal(getattr(back, name), getattr(predictions, name))
    for name in ("dataset", "model", "settings", "class_names"):
        assert getattr(back, name) == getattr(predictions, name)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".parquet"])
def test_the_same_predictions_are_the_same_bytes(predictions, tmp_path, suffix):
    first, second = (predictions.save(tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert first == second


def test_a_failed_write_leaves_the_old_file_and_nothing_else(predictions, tmp_path, monkeypatch):
    path = predictions.save(tmp_path / "p.parquet")
    before = path.read_bytes()

    def full(table, path):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(pa.parquet, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        predictions.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_settings_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InvalidInputError, match="`settings` must be something that JSON can hold"):
        NodePredictions([0], [[1.0]], [0], settings={"model": object()}).save(tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fixed", [False, True])
def test_a_model_trained_elsewhere_needs_two_columns_only(tmp_path, fixed):
    kind = pa.list_(pa.float64(), 3) if fixed else pa.list_(pa.float64())
    rows = pa.array(ROWS.astype(float).tolist(), type=kind)
    pa.parquet.write_table(pa.table({"node": [0, 1, 2, 3], "probabilities": rows}), tmp_path / "p.parquet")
    back = NodePredictions.load(tmp_path / "p.parquet")
    assert np.allclose(back.probabilities, ROWS)
    assert (back.labels == -1).all()


def test_parts_whose_rows_differ_in_length_are_refused(tmp_path):
    (tmp_path / "p").mkdir()
    for part, row in enumerate([[0.5, 0.5], [0.2, 0.3, 0.5]]):
        pa.parquet.write_table(pa.table({"node": [part], "probabilities": [row]}), tmp_path / f"p/{part}.parquet")
    with pytest.raises(FileFormatError, match=r"the same number of entries in each row, .* has 3, the first has 2"):
        NodePredictions.load(tmp_path / "p")


def test_some_nodes_can_be_taken_by_id_in_any_order(predictions):
    some = predictions.take([9, 4])
    assert some.nodes.tolist() == [9, 4]
    assert np.array_equal(some.probabilities, ROWS[[2, 0]])
    assert some.split.tolist() == ["test", "train"]
    assert predictions.part("train").tolist() == [4]
    with pytest.raises(InvalidInputError, match="node 5 has none"):
        predictions.take([9, 5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [0, 0, 1, 2]}, "each once"),
        ({"nodes": [0, -1, 1, 2]}, "at least 0"),
        ({"nodes": [0, 1]}, "`probabilities` must have one row per node, 2; got 4"),
        ({"probabilities": ROWS * 2}, "sum to 1"),
        ({"labels": [0, 1, 2, 3]}, "`labels` must be from 0 to 2"),
        ({"split": ["train", "dev", "", ""]}, "got 'dev'"),
        ({"split": ["train"]}, r"got shape \(1,\)"),
        ({"class_names": ["a"]}, "`class_names` must have one name per class, 3; got 1"),
    ],
)
def test_bad_parts_are_refused_by_name(change, message):
    good = {"nodes": [4, 2, 9, 0], "probabilities": ROWS, "labels": [0, 2, 2, -1]}
    with pytest.raises(InvalidInputError, match=message):
        NodePredictions(**good | change)


def test_damaged_and_foreign_files_are_refused_by_name(predictions, tmp_path):
    path = predictions.save(tmp_path / "p.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match=r"p\.parquet is truncated"):
        NodePredictions.load(path)
    with pytest.raises(FileFormatError, match="there is none"):
        NodePredictions.load(tmp_path / "absent.parquet")
    pa.parquet.write_table(pa.table({"node": [1]}), path)
    with pytest.raises(FileFormatError, match=r"p\.parquet lacks probabilities"):
        NodePredictions.load(path)
    ragged = pa.table({"node": [1, 2], "probabilities": [[1.0], [0.2, 0.3, 0.5]]})
    pa.parquet.write_table(ragged, path)
    with pytest.raises(FileFormatError, match="the first has 1"):
        NodePredictions.load(path)
    pa.parquet.write_table(pa.table({"node": [1], "probabilities": [[0.4, 0.4]]}), path)
    with pytest.raises(FileFormatError, match=r"p\.parquet: `probabilities` must have rows that sum to 1"):
        NodePredictions.load(path)
    with pytest.raises(InvalidInputError, match=r"must end in \.parquet"):
        predictions.save(tmp_path / "p.csv")


def test_reading_and_writing_need_no_torch(predictions, tmp_path):
    path = predictions.save(tmp_path / "p.parquet")
    code = (
        "import sys; from napsets.files.predictions import NodePredictions;"
        f"NodePredictions.load({str(path)!r}); print([m for m in ('torch', 'numba') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


TAMPERED = {
    "a list": "[1, 2]",
    "a number": "7",
    "half an object": '{"dataset": ',
    "nesting without end": "[" * 100_000,
    "a dataset that is not a name": '{"dataset": 3}',
    "a model that is not a name": '{"model": ["sage"]}',
    "settings that are no mapping": '{"settings": [1]}',
    "class names that are a number": '{"class_names": 2}',
    "class names that are one text": '{"class_names": "ab"}',
    "class names that are a mapping": '{"class_names": {"a": 1, "b": 2}}',
    "too few class names": '{"class_names": ["a"]}',
}


@pytest.mark.parametrize("kind", TAMPERED)
@pytest.mark.parametrize("suffix", [".parquet"])
def test_metadata_that_was_tampered_with_is_refused_by_the_name_of_the_file(tmp_path, suffix, kind):
    path = tmp_path / f"bent{suffix}"
    text, rows = TAMPERED[kind], [[0.5, 0.5], [0.25, 0.75]]
    table = pa.table({"node": [0, 1], "probabilities": rows})
    pa.parquet.write_table(table.replace_schema_metadata({b"napsets": text.encode()}), path)
    with pytest.raises(FileFormatError, match=f"bent{suffix}"):
        NodePredictions.load(path)
