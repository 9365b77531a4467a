"""What a label means does not hang on the other labels: names, or numbers, and never a guess between the two."""

from __future__ import annotations

import numpy as np
import pytest

from napsets.errors import FileFormatError
from napsets.files import Reading, read_labels, read_probabilities
from worlds import write

CLASSES = ["1", "2", "3"]


@pytest.fixture
def nodes(tmp_path):
    return read_probabilities(write(tmp_path / "p.parquet", {"node": [10, 11, 12], "a": [1.0, 1.0, 1.0]})).ids


def labels_of(tmp_path, nodes, column, classes=CLASSES, suffix=".parquet", *, notes=None, **reading) -> list[int]:
    path = write(tmp_path / f"y{suffix}", {"node": [10, 11, 12][: len(column)], "label": column})
    return read_labels(path, nodes, classes, Reading(**reading), notes=notes).values.tolist()


def test_numbers_are_read_as_such_where_no_label_is_a_name_and_that_is_noted(tmp_path, nodes):
    notes: list[str] = []
    assert labels_of(tmp_path, nodes, [0, 2, 1], ["cat", "dog", "owl"], notes=notes) == [0, 2, 1]
    assert len(notes) == 1
    assert "were read as class numbers from 0 (0 is 'cat', 1 is 'dog', 2 is 'owl')" in notes[0]


def test_where_names_are_numbers_from_0_there_is_nothing_to_note(tmp_path, nodes):
    notes: list[str] = []
    assert labels_of(tmp_path, nodes, [2, 0, 1], ["0", "1", "2"], notes=notes) == [2, 0, 1]
    assert notes == []


# -- whole numbers with a decimal point ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("as_text", [False, True])
def test_two_point_zero_is_two_in_every_format(tmp_path, nodes, suffix, as_text):
    column = [2.0, 1.0, 3.0]
    column = ["2.0", "1.0", "3."] if as_text else column
    assert labels_of(tmp_path, nodes, column, suffix=suffix) == [1, 0, 2]
    numbers = ["2.0", "0.0"] if as_text else [2.0, 0.0]
    assert labels_of(tmp_path, nodes, numbers, ["cat", "dog", "owl"], suffix=suffix) == [2, 0, -1]


def test_a_class_that_is_called_two_point_zero_is_meant_by_that_name(tmp_path, nodes):
    assert labels_of(tmp_path, nodes, ["2.0", "2", "1"], ["1", "2", "2.0"]) == [2, 1, 0]


def test_columns_that_pandas_named_after_floats_are_found_by_whole_numbers(tmp_path, nodes):
    assert labels_of(tmp_path, nodes, [1, 2], ["1.0", "2.0", "3.0"]) == [0, 1, -1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_without_class_names_numbers_are_the_same_classes_in_every_format(tmp_path, nodes, suffix):
    path = write(tmp_path / f"y{suffix}", {"node": [10, 11, 12], "label": [10.0, 9.0, 10.0]})
    labels = read_labels(path, nodes, None)
    assert labels.class_names == ["9", "10"]
    assert labels.values.tolist() == [1, 0, 1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("value", [0.5, 1e300, float("inf")])
def test_other_numbers_are_no_labels(tmp_path, nodes, suffix, value):
    with pytest.raises(FileFormatError, match=r"`labels` must be class names .* class numbers .* 1 other"):
        labels_of(tmp_path, nodes, [value, 1.0], suffix=suffix)


def test_measurements_are_no_classes(tmp_path, nodes):
    for suffix in (".csv", ".parquet"):
        path = write(tmp_path / f"y{suffix}", {"node": [10, 11], "label": [0.5, 2.0]})
        with pytest.raises(FileFormatError, match=r"whole class numbers; .* has '0\.5'"):
            read_labels(path, nodes, None)


def test_half_precision_labels_are_numbers_too(tmp_path, nodes):
    assert labels_of(tmp_path, nodes, np.array([2, np.nan, 1], dtype=np.float16)) == [1, -1, 0]
