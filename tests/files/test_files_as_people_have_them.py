"""Files as people have them are read, or refused with the option that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.errors import FileFormatError
from napsets.files import read_inputs
from napsets.files.reading import Reading

EDGES = "source,target\n1,2\n2,3\n3,4\n"
LABELS = "node,label\n1,cat\n2,dog\n"


def read(folder: Path, probabilities: str, *, labels: str = LABELS, edges: str = EDGES, **options):
    paths = [folder / name for name in ("e.csv", "p.csv", "y.csv")]
    for path, text in zip(paths, (edges, probabilities, labels), strict=True):
        path.write_text(text)
    return read_inputs(*paths, reading=Reading(**options))


def table(*rows: str, head: str = "node,cat,dog") -> str:
    return "\n".join([head, *rows, ""])


GOOD = table("1,0.5,0.5", "2,0.25,0.75", "3,1,0", "4,0,1")


def test_columns_that_are_no_class_are_left_out_by_name(tmp_path):
    text = table(
        "1,2020,0.5,0.5,a", "2,2021,0.25,0.75,b", "3,2022,1,0,c", "4,2022,0,1,d", head="node,year,cat,dog,split"
    )
    with pytest.raises(FileFormatError, match="If the column is not a class, add --ignore-columns split"):
        read(tmp_path, text, ignore_columns=["year"])
    with pytest.raises(FileFormatError, match=r"They all would without the column year: .* add --ignore-columns year"):
        read(tmp_path, text, ignore_columns=["split"])
    inputs = read(tmp_path, text, ignore_columns=["split", "year"])
    assert inputs.class_names == ["cat", "dog"]
    assert inputs.outputs.tolist() == [[0.5, 0.5], [0.25, 0.75], [1, 0], [0, 1]]
    with pytest.raises(
        FileFormatError, match=r"`ignore_columns` must name columns of `probabilities`; .* no column month"
    ):
        read(tmp_path, text, ignore_columns=["month"])


def test_labels_that_are_no_class_are_left_out_on_request(tmp_path):
    labels = LABELS + "3,axolotl\n4,axolotl\n"
    with pytest.raises(FileFormatError, match=r"has 1 other label: 'axolotl'.* add --skip-unknown"):
        read(tmp_path, GOOD, labels=labels)
    inputs = read(tmp_path, GOOD, labels=labels, skip_unknown=True)
    assert inputs.truth.tolist() == [0, 1, -1, -1]
    assert any("labels that are not classes: 'axolotl'" in note for note in inputs.notes)
    numbers = read(tmp_path, GOOD, labels="node,label\n1,0\n2,1\n3,7\n", skip_unknown=True)
    assert numbers.truth.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        (["1,0.33,0.33,0.33", "2,0.2,0.3,0.5", "3,0.67,0.17,0.17", "4,1,0,0"], "They sum to 1 except for rounding"),
        (["1,33,33,33", "2,20,30,50", "3,67,17,17", "4,100,0,0"], "They sum to 100, as percentages do"),
    ],
)
def test_rounded_rows_and_percentages_are_recognised(tmp_path, rows, hint):
    with pytest.raises(FileFormatError, match=rf"{hint}: divide each row by its sum"):
        read(tmp_path, table(*rows, head="node,cat,dog,owl"))


def test_a_folder_of_parquet_parts_needs_no_suffix(tmp_path):
    plain = read(tmp_path, GOOD)
    folder = tmp_path / "probabilities"
    folder.mkdir()
    for part, rows in enumerate((slice(0, 2), slice(2, 4))):
        columns = {"node": [1, 2, 3, 4][rows], "cat": plain.outputs[rows, 0], "dog": plain.outputs[rows, 1]}
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").write_text("")
    inputs = read_inputs(tmp_path / "e.csv", folder, tmp_path / "y.csv")
    assert np.array_equal(inputs.outputs, plain.outputs)
