"""A sets file whose parts contradict each other, or what numbers can be, is refused by its name."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.errors import FileFormatError
from napsets.files import read_probabilities, read_sets
from napsets.files.prediction_file import REQUIRED
from napsets.predictions import PredictionSets

NAN, INFINITY = float("nan"), float("inf")

#: Three sets: {cat}, {} and {cat, dog}.
GOOD = {
    "node": [1, 2, 3],
    "labels": [["cat"], [], ["cat", "dog"]],
    "size": pa.array([1, 0, 2], pa.int32()),
    "threshold": [0.5, 0.0, INFINITY],
    "support": [12, 9, 0],
    "effective_size": [11.5, 9.0, 0.0],
    "alpha": [0.1, 0.1, 0.1],
}
ABOUT = {"napsets": "1.0", "class_names": ["cat", "dog"], "alpha": 0.1}


def parquet(path, about=ABOUT, **columns):
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    pq.write_table(pa.table(GOOD | columns).replace_schema_metadata({b"napsets": text}), path)
    return path


def csv(path, **columns):
    rows = zip(*(GOOD | {"size": [1, 0, 2]} | columns).values(), strict=True)
    lines = [",".join(REQUIRED[PredictionSets])]
    for node, labels, *numbers in rows:
        cell = labels if isinstance(labels, str) else json.dumps(labels)
        quoted = cell.replace('"', '""')
        lines.append(",".join([str(node), f'"{quoted}"', *map(str, numbers)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(path, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_sets(path)
    assert str(path) in str(caught.value)
    assert "truncated" not in str(caught.value)


def test_what_is_not_tampered_with_is_read_alike(tmp_path):
    paths = [parquet(tmp_path / "s.parquet"), csv(tmp_path / "s.csv")]
    for file in map(read_sets, paths):
        assert file.sets.sizes.tolist() == [1, 0, 2]
        assert file.sets.thresholds.tolist() == GOOD["threshold"]
        assert file.class_names == ["cat", "dog"]


#: A column, what is in it, and what is wrong with that; the same in every format.
NUMBERS = [
    ("alpha", [2.0] * 3, "`alpha` must lie strictly between 0 and 1"),
    ("alpha", [0.0] * 3, "`alpha` must lie strictly between 0 and 1"),
    ("alpha", [0.1, 0.1, 0.2], "one alpha for all rows; .* has 2 alphas"),
    ("threshold", [0.5, NAN, 0.5], "`thresholds` must hold numbers, none of them NaN"),
    ("effective_size", [1.0, NAN, 1.0], "`effective_size` must hold numbers, none of them NaN"),
    ("node", [1, 2, 1], "each node once; 1 ids are in .* more than once: 1"),
]


@pytest.mark.parametrize(("column", "values", "message"), NUMBERS)
def test_numbers_that_cannot_be_are_refused_in_every_format(tmp_path, column, values, message):
    refused(parquet(tmp_path / "s.parquet", **{column: values}), message)
    refused(csv(tmp_path / "s.csv", **{column: values}), message)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("labels", [["cat"], [], ["cat", "cow"]], "labels that are among the class_names of its metadata; .* 'cow'"),
        ("labels", [["cat"], [], ["cat", None]], "lists of names in its column labels; .* has an empty name"),
        ("labels", [["cat"], None, ["cat", "dog"]], "no empty cell; the column labels"),
        ("labels", [[["cat"]], [], [["cat"], ["dog"]]], "lists of names in its column labels; .* has list"),
        ("labels", ["cat", "", "dog"], "lists of names in its column labels; .* has string"),
        ("threshold", ["low", "low", "high"], "numbers in its column threshold; .* has string"),
        ("support", pa.array([1, None, 2]), "no empty cell; the column support"),
        ("alpha", [True, True, True], "numbers in its column alpha; .* has bool"),
        ("node", [1.0, 2.0, 3.0], "ids that are integers or strings"),
        ("node", pa.array([1, None, 3]), "an id in each row"),
    ],
)
def test_columns_of_another_kind_are_refused(tmp_path, column, values, message):
    refused(parquet(tmp_path / "s.parquet", **{column: values}), message)


@pytest.mark.parametrize(
    "about",
    [
        b"{", b"", b"\xff\xfe", b"9" * 5000, b"[" * 100_000, [1, 2], "cat", {"class_names": "cat"},
        {"class_names": {"cat": 0}}, {"class_names": ["cat", 3]}, {"class_names": []},
        {"class_names": ["cat", "dog", "cat"]},
    ],
)  # fmt: skip
def test_metadata_that_napsets_did_not_write_is_refused(tmp_path, about):
    message = "`sets` must have metadata as napsets writes them"
    refused(parquet(tmp_path / "s.parquet", about), message)
    rows = pa.table({"node": [1], "probabilities": [[0.5, 0.5]]})
    raw = about if isinstance(about, bytes) else json.dumps(about).encode()
    pq.write_table(rows.replace_schema_metadata({b"napsets": raw}), tmp_path / "p.parquet")
    with pytest.raises(FileFormatError, match=message.replace("sets", "probabilities", 1)):
        read_probabilities(tmp_path / "p.parquet")


def test_metadata_that_contradicts_the_columns_is_refused(tmp_path):
    refused(parquet(tmp_path / "b.parquet", ABOUT | {"class_names": ["cat"]}), "among the class_names")
    rows = pa.table({"node": [1], "probabilities": [[0.5, 0.5]]})
    three = json.dumps({"class_names": ["a", "b", "c"]}).encode()
    pq.write_table(rows.replace_schema_metadata({b"napsets": three}), tmp_path / "p.parquet")
    with pytest.raises(
        FileFormatError, match=r"as many entries in each row as its metadata names classes, 3; .* has 2"
    ):
        read_probabilities(tmp_path / "p.parquet")


@pytest.mark.parametrize(
    "cell",
    ["cat", "", "{}", "null", "3", '["cat", 3]', '[["cat"]]', "[null]", '["cat"', "[" * 100_000, "[true]", '"cat"'],
)
def test_cells_that_hold_no_array_of_names_are_refused(tmp_path, cell):
    refused(csv(tmp_path / "s.csv", labels=[cell, "[]", "[]"], size=[1, 0, 0]), "a JSON array in each cell")


def test_flipped_bytes_never_end_in_a_foreign_exception(tmp_path):
    rng = np.random.default_rng(0)
    for path in (parquet(tmp_path / "s.parquet"), csv(tmp_path / "s.csv")):
        whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        for _ in range(150):
            damaged = whole.copy()
            damaged[rng.integers(0, whole.size, 3)] = rng.integers(0, 256, 3)
            path.write_bytes(damaged.tobytes())
            try:
                read_sets(path)
            except FileFormatError as error:
                assert str(path) in str(error)  # noqa: PT017
