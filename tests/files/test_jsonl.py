"""JSON Lines: one object per line, read and written wherever CSV is."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import napsets as ns
from napsets.errors import FileFormatError
from napsets.files import read_graph, read_inputs, read_labels, read_probabilities, read_sets, write_prediction
from napsets.files.formats import BATCH_ROWS, open_table
from worlds import make_world


def lines(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_it_says_what_parquet_says(tmp_path, suffix, ids):
    world = make_world(tmp_path, suffix=suffix, ids=ids)
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    assert inputs.graph == world.graph
    assert inputs.ids.take(np.arange(120)).to_pylist() == world.ids.tolist()
    assert np.array_equal(inputs.outputs, world.probabilities)  # JSON has every digit
    np.testing.assert_array_equal(inputs.calibration, world.calibration)
    assert read_graph(world.edges, world.labels_file).graph.num_edges == world.graph.num_edges


def test_probabilities_may_be_lists(tmp_path):
    path = lines(
        tmp_path / "p.jsonl", [{"node": "a", "probabilities": [1, 0]}, {"node": "b", "probabilities": [0.5, 0.5]}]
    )
    probabilities = read_probabilities(path)
    assert probabilities.values.tolist() == [[1, 0], [0.5, 0.5]]
    assert probabilities.class_names == ["0", "1"]


def test_text_that_looks_like_a_number_or_a_date_stays_text(tmp_path):
    rows = [{"node": name, "cat": 0.5, "dog": 0.5} for name in ("7", "007", "2024-01-01")]
    assert read_probabilities(lines(tmp_path / "p.jsonl", rows)).ids.take(np.arange(3)).to_pylist() == [
        "7", "007", "2024-01-01",
    ]  # fmt: skip


def test_empty_lines_and_a_byte_order_mark_are_passed_over(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"node": 1, "cat": 1.0}\n\n  \r\n{"node": 2, "cat": 1.0}')
    assert read_probabilities(path).ids.take(np.arange(2)).to_pylist() == [1, 2]


def test_a_key_that_is_missing_is_an_empty_cell(tmp_path):
    known = read_probabilities(lines(tmp_path / "p.jsonl", [{"node": i, "cat": 0.5, "dog": 0.5} for i in range(3)]))
    path = lines(tmp_path / "y.jsonl", [{"node": 0, "label": "dog"}, {"node": 1}, {"node": 2, "label": None}])
    labels = read_labels(path, known.ids, known.class_names).values
    assert labels.tolist() == [1, -1, -1]
    path = lines(tmp_path / "q.jsonl", [{"node": 0, "cat": 0.5, "dog": 0.5}, {"node": 1, "cat": 1.0}])
    with pytest.raises(FileFormatError, match="must have no empty cell; the column dog"):
        read_probabilities(path)


def test_many_rows_come_in_batches(tmp_path):
    rows = BATCH_ROWS + 5
    path = lines(tmp_path / "n.jsonl", [{"node": i} for i in range(rows)])
    assert [batch.num_rows for batch in open_table("nodes", path).batches(["node"])] == [BATCH_ROWS, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have at least one row"),
        ('[{"node": 1}]', r"line 1 of .* is \[\{.node.: 1\}\]. A file that is one long JSON array is not JSON Lines"),
        ('{"node": 1, "cat": 1}\n{"node": ', "line 2 of .* is none"),
        (
            '{"node": 1, "cat": 1}\n{"node": "a", "cat": 1}',
            r"one type in each column; node .* values of several types \(int, str\)",
        ),
        ('{"node": null, "cat": 1}', "must have an id in each row"),
        ('{"id": 1}', "lacks node. It has: id"),
        ("[" * 100_000, "nested too deeply|is none"),
    ],
)
def test_what_is_wrong_is_named_by_line(tmp_path, text, message):
    path = tmp_path / "n.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        read_probabilities(path)


def test_another_encoding_is_told(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_bytes('{"node": "né"}\n'.encode("latin-1"))
    with pytest.raises(FileFormatError, match="must be UTF-8 text"):
        read_probabilities(path)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("ids", ["integer", "string"])
def test_sets_are_written_and_read_back_infinite_thresholds_too(tmp_path, suffix, ids):
    world = make_world(tmp_path / "world", ids=ids, nodes=60, degree=3)
    inputs = read_inputs(world.edges, world.probabilities_file, world.labels_file)
    calibrated = inputs.calibrate(ns.make_method("naps", hops=1))
    path = tmp_path / f"s{suffix}"
    write_prediction(inputs, path, calibrated, alpha=0.2, metadata={})
    text = gzip.decompress(path.read_bytes()) if suffix.endswith(".gz") else path.read_bytes()
    first = json.loads(text.splitlines()[0])
    assert list(first)[:3] == ["node", "labels", "size"]
    expected = calibrated.predict(inputs.nodes, 0.2)
    sets_file = read_sets(path)
    assert np.isinf(expected.thresholds).any()
    assert np.array_equal(sets_file.sets.thresholds, expected.thresholds)
    assert sets_file.class_names == inputs.class_names
    assert np.array_equal(sets_file.sets.member, expected.member)
    assert sets_file.ids.take(np.arange(len(sets_file.ids))).to_pylist() == world.ids[world.rest].tolist()
