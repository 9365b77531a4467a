"""Rows: nothing is computed twice, nothing is lost, and files are there whole or not at all."""

from __future__ import annotations

import math

import pytest

from studies.rows import Folders, Kind, kept_predictions

from .conftest import guess, small_graph


def squares(cells, folders):
    return [cell | {"square": cell["x"] ** 2} for cell in cells]


KIND = Kind("squares", ("x", "parity"), ("parity",), squares)
CELLS = [{"x": x, "parity": x % 2} for x in range(5)]


@pytest.fixture
def here(tmp_path):
    return Folders(tmp_path, tmp_path)


def kind(compute):
    return Kind(KIND.folder, KIND.settings, KIND.bundle, compute)


def test_rows_come_back_as_they_went_in(tmp_path):
    assert KIND.read(tmp_path) == []
    rows = [{"x": 0, "parity": 0, "square": 0.1}, {"x": 1, "parity": 1, "square": math.nan}]
    KIND.append(rows, tmp_path)
    KIND.append([], tmp_path)
    assert KIND.read(tmp_path) == [rows[0], rows[1] | {"square": None}]
    KIND.append([{"x": 2, "parity": 0, "curve": [0.5, math.inf]}], tmp_path)
    assert KIND.read(tmp_path)[2] == {"x": 2, "parity": 0, "square": None, "curve": [0.5, math.inf]}
    assert len(list((tmp_path / "squares").iterdir())) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_cell_becomes_one_row_and_every_bundle_one_file(here, jobs):
    notes = []
    assert KIND.run(CELLS, here, jobs=jobs, note=notes.append) == 5
    assert sorted(KIND.read(here.results), key=KIND.key) == squares(CELLS, here)
    assert len(list((here.results / "squares").iterdir())) == 2
    assert {note.split(" (")[1] for note in notes} == {"parity=0)", "parity=1)"}
    assert notes[-1].startswith("squares: 5 of 5")


def test_finished_cells_are_not_computed_again(here):
    KIND.run(CELLS[:3], here)
    computed = []
    later = kind(lambda cells, folders: computed.extend(cells) or squares(cells, folders))
    assert later.run(CELLS, here) == 2
    assert computed == [CELLS[4], CELLS[3]] or computed == [CELLS[3], CELLS[4]]
    assert later.run(CELLS, here) == 0


def test_an_interrupted_run_loses_the_bundle_under_way_and_goes_on_from_there(here):
    def interrupted(cells, folders):
        if cells[0]["parity"]:
            raise KeyboardInterrupt
        return squares(cells, folders)

    with pytest.raises(KeyboardInterrupt):
        kind(interrupted).run(CELLS, here)
    first = KIND.read(here.results)
    assert [row["x"] for row in first] == [0, 2, 4]
    assert KIND.run(CELLS, here) == 2
    assert KIND.read(here.results)[:3] == first


def test_a_model_is_trained_once_and_read_from_its_file_after_that(tmp_path):
    data, trainings, file = small_graph(0), [], tmp_path / "predictions" / "small.parquet"

    def train():
        trainings.append(1)
        return guess("gcn", 0, data)

    first, again = (kept_predictions(file, train) for _ in range(2))
    assert trainings == [1]
    assert (first.probabilities == again.probabilities).all()
    assert (first.split == data.split).all()
    assert (first.dataset, first.model) == (data.name, "gcn")
