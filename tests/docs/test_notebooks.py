"""The notebooks run from the top in an empty namespace, and show what they are committed with."""

from __future__ import annotations

import pytest
from notebook_pages import page_of
from run_notebooks import NOTEBOOKS, code_cells, is_trained, read, run

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


def marked(path):
    trains = any(is_trained(cell) for cell in code_cells(read(path)))
    return pytest.param(path, id=path.stem, marks=[pytest.mark.gnn] if trains else [])


def printed(outputs) -> list[str]:
    """What a cell prints, line by line; how long something took is not a part of it."""
    texts = [output.get("text") or output["data"].get("text/plain", []) for output in outputs]
    lines = "".join(line for text in texts for line in text).splitlines()
    return [line.rstrip() for line in lines if not line.strip().startswith("seconds ")]


def kinds(outputs) -> list[list[str]]:
    return [sorted(output.get("data", ["text"])) for output in outputs]


def test_there_are_notebooks():
    assert len(PATHS) >= 4


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
@pytest.mark.parametrize("path", [marked(path) for path in PATHS])
def test_every_cell_runs_and_shows_what_is_committed(path):
    for extra in ("altair", "pyarrow"):
        pytest.importorskip(extra)
    notebook = read(path)
    for cell, outputs in zip(code_cells(notebook), run(notebook, path), strict=True):
        where = "".join(cell["source"])
        assert kinds(outputs) == kinds(cell["outputs"]), where
        if not is_trained(cell):
            assert printed(outputs) == printed(cell["outputs"]), where


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_of_the_format_that_jupyter_reads(path):
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert [cell["execution_count"] for cell in code_cells(notebook)] == [*range(1, len(code_cells(notebook)) + 1)]
    assert "/tmp/" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_page_of_a_notebook_has_its_text_its_code_and_what_it_shows(path):
    page, pictures = page_of(path)
    assert page.startswith("# ")
    assert path.name in page.split("\n\n")[1]
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        assert source.split("\n")[-1] in page
        for output in cell.get("outputs", []):
            assert "".join(output.get("text", [])).rstrip() in page
    drawn = path.read_text(encoding="utf-8").count('"image/svg+xml"')
    assert len(pictures) == drawn
    assert all(name in page and text.startswith("<svg") for name, text in pictures.items())
