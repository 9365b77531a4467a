"""Files as people have them are read, or refused with the option that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.errors import FileFormatError, InvalidInputError
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
    with pytest.raises(FileFormatError, match="If it is not a class, add --ignore-columns split"):
        read(tmp_path, text, ignore_columns="year")
    with pytest.raises(FileFormatError, match=r"They all would without the column year: .* add --ignore-columns year"):
        read(tmp_path, text, ignore_columns="split")
    inputs = read(tmp_path, text, ignore_columns="split, year")
    assert inputs.class_names == ["cat", "dog"]
    assert inputs.outputs.tolist() == [[0.5, 0.5], [0.25, 0.75], [1, 0], [0, 1]]
    with pytest.raises(
        FileFormatError, match=r"`ignore_columns` must name columns of `probabilities`; .* no column month"
    ):
        read(tmp_path, text, ignore_columns=["month"])


def test_labels_that_are_no_class_are_left_out_on_request(tmp_path):
    labels = LABELS + "3,axolotl\n4,axolotl\n"
    with pytest.raises(FileFormatError, match=r"has 1 other: 'axolotl'.* add --skip-unknown"):
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
def test_rounded_rows_and_percentages_are_normalised_on_request(tmp_path, rows, hint):
    text = table(*rows, head="node,cat,dog,owl")
    with pytest.raises(FileFormatError, match=rf"{hint}[^.]*: add --normalise"):
        read(tmp_path, text)
    outputs = read(tmp_path, text, normalise=True).outputs
    np.testing.assert_allclose(outputs.sum(axis=1), 1.0)
    np.testing.assert_allclose(outputs[0], 1 / 3)
    with pytest.raises(InvalidInputError, match="`normalise` must be False with logits"):
        Reading(logits=True, normalise=True)


def test_two_classes_may_be_off_by_the_whole_rounding(tmp_path):
    rows = table("1,0.51,0.5", "2,0.34,0.65", "3,1,0", "4,0,1", head="node,cat,dog")
    np.testing.assert_allclose(read(tmp_path, rows, normalise=True).outputs[0, 0], 51 / 101)


def test_rows_that_are_no_probabilities_are_not_normalised(tmp_path):
    with pytest.raises(FileFormatError, match=r"sums to 1\.7"):
        read(tmp_path, table("1,0.9,0.8", "2,0.5,0.5", "3,1,0", "4,0,1"), normalise=True)


@pytest.mark.parametrize("edges", ["1,2\n2,3\n3,4\n", "1,2,0.5\n2,3,1\n3,4,2\n"])
def test_lists_of_edges_need_no_header(tmp_path, edges):
    plain, headless = read(tmp_path, GOOD), read(tmp_path, GOOD, edges=edges)
    assert np.array_equal(plain.graph.indices, headless.graph.indices)
    assert headless.graph.num_edges == 6


@pytest.mark.parametrize(("mark", "first"), [("", "source,target"), (",7", "source,target,weight")])
def test_edges_between_names_say_which_header_they_need(tmp_path, mark, first):
    with pytest.raises(FileFormatError, match=f"first line is an edge already, put the line {first} before it"):
        read(tmp_path, GOOD, edges=f"ann,bob{mark}\nbob,cy{mark}\n")


def test_cells_between_spaces_say_which_separator_reads_them(tmp_path):
    with pytest.raises(FileFormatError, match="separated by ' ': say so with --separator ' '"):
        read(tmp_path, GOOD, edges="ann bob\nbob cy\n")


def test_semicolons_with_decimal_commas_say_what_to_write(tmp_path):
    text = table("1;0,5;0,5", "2;0,25;0,75", head="node;cat;dog")
    with pytest.raises(FileFormatError, match=r"seem to be separated by ';': .* with decimal points, not commas"):
        read(tmp_path, text)


def test_edges_with_tabs_need_no_header_either(tmp_path):
    (tmp_path / "e.tsv").write_text("1\t2\n2\t3\n3\t4\n")
    read(tmp_path, GOOD)
    inputs = read_inputs(tmp_path / "e.tsv", tmp_path / "p.csv", tmp_path / "y.csv")
    assert inputs.graph.num_edges == 6


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


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        ('"0,5","0,5"', "Write decimal points instead of decimal commas: 0.5"),
        ("50 %,50 %", "Write shares instead of percentages: 0.5"),
    ],
)
def test_decimal_commas_and_percentages_are_refused_with_the_right_hint(tmp_path, cells, hint):
    with pytest.raises(FileFormatError, match=hint):
        read(tmp_path, table(f"1,{cells}", f"2,{cells}", f"3,{cells}", f"4,{cells}"))
    typed = pa.table({"node": [1, 2], "cat": [cells.split('"')[1] if '"' in cells else "50 %"] * 2, "dog": [0.5, 0.5]})
    pq.write_table(typed, tmp_path / "p.parquet")
    with pytest.raises(FileFormatError, match=hint):
        read_inputs(tmp_path / "e.csv", tmp_path / "p.parquet", tmp_path / "y.csv")
