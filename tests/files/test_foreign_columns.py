"""A column that is not a class is called by its name, and not called a truncated file or logits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from napsets.errors import FileFormatError
from napsets.files import read_probabilities
from worlds import write

ROWS = {"node": [1, 2, 3], "cat": [0.5, 0.25, 1.0], "dog": [0.5, 0.75, 0.0]}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("name", ["city", "label", "split", "source"])
def test_a_column_of_text_is_named(tmp_path, suffix, name):
    path = write(tmp_path / f"p{suffix}", ROWS | {name: ["Rome", "Oslo", "Bonn"]})
    with pytest.raises(FileFormatError) as caught:
        read_probabilities(path)
    message = str(caught.value)
    assert f"column {name}" in message
    assert "--ignore-columns" in message
    assert str(path) in message
    assert "truncated" not in message


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "extra", [[0, 7, 12], [3.5, -1.0, 2.5], [0.5, 0.1, 0.9], [10**12, 10**13, 10**17], [math.nan, 1.0, 2.0]]
)
def test_a_column_of_numbers_that_is_no_class_is_named(tmp_path, suffix, extra):
    path = write(tmp_path / f"p{suffix}", {"node": ROWS["node"], "age": extra} | ROWS)
    with pytest.raises(FileFormatError) as caught:
        read_probabilities(path)
    assert "without the column age: if that is not a class, add --ignore-columns age" in str(caught.value)
    assert "softmax" not in str(caught.value)


def test_a_column_is_blamed_only_where_every_bad_row_is_its_fault(tmp_path):
    size = 70_000
    table = {"node": np.arange(size), "a": np.full(size, 0.5), "b": np.full(size, 0.5), "c": np.zeros(size)}
    table["c"][10] = 2.0
    with pytest.raises(FileFormatError, match=r"1 of the 70,000 rows .* without the column c"):
        read_probabilities(write(tmp_path / "one.parquet", table))
    table["a"][size - 1] = 3.0
    with pytest.raises(FileFormatError, match=r"2 of the 70,000 rows .* softmax"):
        read_probabilities(write(tmp_path / "two.parquet", table))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_class_may_be_called_as_other_files_call_their_columns(tmp_path, suffix):
    names = ["source", "target", "label", "labels", "split"]
    path = write(tmp_path / f"p{suffix}", {"node": [1, 2]} | {name: [0.2, 0.2] for name in names})
    assert read_probabilities(path).class_names == names
