"""Only an empty cell is missing: classes, nodes and columns may be called NA, null or nan."""

from __future__ import annotations

import json

import numpy as np
import pytest

from napsets.files import read_edges, read_graph, read_labels, read_nodes, read_probabilities, read_sets
from napsets.files.prediction_file import REQUIRED
from napsets.predictions import PredictionSets
from worlds import write

#: What readers of CSV like to take for nothing.
WORDS = ["NA", "N/A", "null", "NULL", "nan", "NaN", "n/a", "#N/A", "-nan", "None", "#NA", "-NaN", "1.#IND", "<NA>"]


def ids_of(table) -> list[str]:
    return table.ids.take(np.arange(len(table.ids))).to_pylist()


@pytest.fixture
def called_so(tmp_path):
    """Return probabilities of nodes that are called so, for classes that are called so too."""
    share = 1 / len(WORDS)
    rows = [",".join(["node", *WORDS]), *(",".join([word, *[repr(share)] * len(WORDS)]) for word in WORDS)]
    (tmp_path / "p.csv").write_text("\n".join(rows) + "\n")
    return read_probabilities(tmp_path / "p.csv")


def test_nodes_and_classes_may_be_called_so(called_so):
    assert ids_of(called_so) == WORDS
    assert called_so.class_names == WORDS


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_labels_may_be_called_so_in_every_format(tmp_path, called_so, suffix):
    path = write(tmp_path / f"y{suffix}", {"node": WORDS, "label": WORDS})
    notes: list[str] = []
    labels = read_labels(path, called_so.ids, WORDS, notes=notes).values
    assert labels.tolist() == list(range(len(WORDS)))
    assert notes == []


def test_edges_and_nodes_may_name_nodes_that_are_called_so(tmp_path, called_so):
    (tmp_path / "e.csv").write_text("source,target\nNA,null\nnan,NaN\n")
    assert read_edges(tmp_path / "e.csv", called_so.ids).num_edges == 4
    (tmp_path / "n.csv").write_text("node\n#N/A\nNA\n")
    assert read_nodes(tmp_path / "n.csv", called_so.ids).tolist() == [WORDS.index("#N/A"), 0]


@pytest.mark.parametrize("cell", ["", '""', "-1", "-1.0"])
def test_rows_without_a_label_are_counted(tmp_path, cell):
    (tmp_path / "e.csv").write_text("source,target\n1,2\n")
    (tmp_path / "y.csv").write_text(f"node,label\n1,cat\n2,{cell}\n3,{cell}\n")
    inputs = read_graph(tmp_path / "e.csv", tmp_path / "y.csv")
    assert inputs.truth.tolist() == [0, -1, -1]
    assert inputs.class_names == ["cat"]
    assert inputs.notes[0].startswith("2 of the 3 rows of `labels`")


@pytest.mark.parametrize("kind", ["integers", "texts", "numbers"])
def test_a_class_may_be_called_minus_one(tmp_path, kind):
    known = read_probabilities(write(tmp_path / "p.parquet", {"node": [5, 6], "-1": [0.5, 0.5], "1": [0.5, 0.5]}))
    column = {"integers": [-1, 1], "texts": ["-1", "1"], "numbers": [-1.0, 1.0]}[kind]
    path = write(tmp_path / "y.parquet", {"node": [5, 6], "label": column})
    assert read_labels(path, known.ids, known.class_names).values.tolist() == [0, 1]


def test_a_set_may_hold_a_class_that_is_called_so(tmp_path):
    cell = json.dumps(WORDS).replace('"', '""')
    rows = [f'NA,"{cell}",{len(WORDS)},0.5,3,3.0,0.1', "nan,[],0,0.5,3,3.0,0.1"]
    (tmp_path / "s.csv").write_text("\n".join([",".join(REQUIRED[PredictionSets]), *rows]) + "\n")
    file = read_sets(tmp_path / "s.csv")
    assert sorted(file.class_names) == sorted(WORDS)
    assert ids_of(file) == ["NA", "nan"]
