"""One rule for everything that is written: never an input, never something that is no file of ours to replace."""

from __future__ import annotations

import os

import pytest

from napsets.errors import InvalidInputError
from napsets.files.paths import check_apart, check_output


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.html"
    path.write_text("input")
    return path


NAMES = [
    "itself", "relative", "dots", "missing dots", "far dots", "symlink", "hard link", "link to a link",
    "link to its folder", "dots behind a link",
]  # fmt: skip


@pytest.mark.parametrize("how", NAMES)
def test_an_input_is_refused_under_any_name(tmp_path, source, how, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "y").symlink_to(tmp_path)
    output = tmp_path / "out.html"
    if how == "symlink":
        output.symlink_to(source)
    elif how == "hard link":
        output.hardlink_to(source)
    elif how == "link to a link":
        (tmp_path / "other").symlink_to(source)
        output.symlink_to("other")
    paths = {
        "itself": source,
        "relative": "in.html",
        "dots": tmp_path / "x" / ".." / "in.html",
        "missing dots": tmp_path / "nosuch" / ".." / "in.html",
        "far dots": tmp_path / "nosuch" / "b" / ".." / "c" / ".." / ".." / "in.html",
        "link to its folder": tmp_path / "y" / "in.html",
        "dots behind a link": tmp_path / "y" / "nosuch" / ".." / "in.html",
    }
    with pytest.raises(InvalidInputError, match=r"`output` would overwrite the input .*in\.html, or lie in it"):
        check_apart(paths.get(how, output), [source])


def test_a_folder_is_no_file_to_write(tmp_path):
    with pytest.raises(InvalidInputError, match=r"`page` must be a file; .* is a folder. Name a file in it"):
        check_output(tmp_path, name="page")


def test_an_output_inside_an_input_folder_is_refused(tmp_path):
    (tmp_path / "edges.parquet").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "edges.parquet")
    for inside in ("edges.parquet/sets.csv", "edges.parquet/deep/er/sets.csv", "link/sets.csv"):
        with pytest.raises(InvalidInputError, match=r"`output` would overwrite the input .*, or lie in it"):
            check_apart(tmp_path / inside, [tmp_path / "edges.parquet"])


def test_a_name_with_another_ending_is_refused_with_those_that_fit(tmp_path):
    with pytest.raises(InvalidInputError, match=r"`page` must be a file that ends in \.html, \.htm; got .*x\.pdf"):
        check_output(tmp_path / "x.pdf", suffixes=[".html", ".htm"], name="page")
    assert check_output(tmp_path / "x.HTML", suffixes=[".html", ".htm"]) == tmp_path / "x.HTML"


def test_pipes_and_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InvalidInputError, match="is a device or a pipe"):
        check_output(tmp_path / "pipe.csv")


def test_what_may_be_written_is_left_as_it_is(tmp_path, source):
    check_output(source)
    check_output(tmp_path / "x.csv")
    check_apart(tmp_path / "x.csv", [source])
    with pytest.raises(InvalidInputError, match=r"in a folder that exists; there is no folder .*new\. Make it first"):
        check_output(tmp_path / "new" / "x.csv")
    assert os.listdir(tmp_path) == ["in.html"]
    assert source.read_text() == "input"
