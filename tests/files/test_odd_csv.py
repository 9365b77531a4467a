"""CSV as other programs write it is read as it is meant, or refused for what it is."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from napsets.errors import FileFormatError
from napsets.files import read_edges, read_inputs, read_labels, read_nodes, read_probabilities
from worlds import write


@pytest.fixture
def nodes(tmp_path):
    return read_probabilities(write(tmp_path / "k.parquet", {"node": ["x", "y"], "cat": [1.0, 1.0]})).ids


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_marks_and_quotes_make_no_difference(tmp_path, nodes, ending, mark, quote, last):
    lines = [f"{quote}node{quote},{quote}label{quote}", f"{quote}x{quote},{quote}cat{quote}", "y,cat"]
    text = mark + ending.join(lines) + ending * last
    (tmp_path / "y.csv").write_bytes(text.encode())
    assert read_labels(tmp_path / "y.csv", nodes, ["cat"]).values.tolist() == [0, 0]


def test_a_quoted_line_break_is_part_of_a_name_wherever_blocks_end(tmp_path):
    ids = ["\nline\nbreak," * (i % 5 + 1) + str(i) for i in range(60_000)]  # more than a block of a megabyte
    path = write(tmp_path / "p.csv", {"node": ids, "a": np.ones(len(ids))})
    assert read_probabilities(path).ids.take(np.arange(len(ids))).to_pylist() == ids


def test_a_header_alone_is_a_table_without_rows(tmp_path, nodes):
    (tmp_path / "e.csv").write_text("source,target\n")
    (tmp_path / "y.csv").write_text("node,label\n")
    (tmp_path / "n.csv").write_text("node\n")
    assert read_edges(tmp_path / "e.csv", nodes).num_edges == 0
    assert read_nodes(tmp_path / "n.csv", nodes).size == 0
    with pytest.raises(FileFormatError, match="must have at least one label"):
        read_inputs(tmp_path / "e.csv", tmp_path / "k.parquet", tmp_path / "y.csv")
    (tmp_path / "p.csv").write_text("node,cat\n")
    with pytest.raises(FileFormatError, match="`probabilities` must have at least one row"):
        read_probabilities(tmp_path / "p.csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("header", ["node,label", "node,läbel"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_text_that_is_not_utf_8_is_refused_with_how_to_save_it(tmp_path, nodes, encoding, header, suffix):
    content = f"{header}\nx,kätzchen\ny,hund\n".encode(encoding)
    (tmp_path / f"y{suffix}").write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    with pytest.raises(FileFormatError, match=r"`labels` must be UTF-8 text; .*y\.csv.* is not: .* Save it as UTF-8"):
        read_labels(tmp_path / f"y{suffix}", nodes, None)
