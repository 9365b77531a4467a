"""Running cells: nothing twice, nothing lost."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest

from napsets.errors import InvalidInputError
from napsets.studies import QUICK, SETUPS, BlockCell, CoverageCell, Laboratory, cells_of, is_available
from napsets.studies.block_model import BlockGrid

from .conftest import guess

SCOPE = replace(
    QUICK,
    datasets=("small", "flickr"),
    models=("graphsage-mean", "shadow-gcn"),
    seeds=(0, 1),
    repetitions=5,
    evaluated=100,
    ablation_datasets=("small",),
    ablation_hops=(1, 2),
    blocks=BlockGrid(n=(60,), p_in=(0.3,), p_out=(0.1,), tv=(0.1, 0.2), draws=3),
)


def there(laboratory):
    return {study: laboratory.store.rows(study) for study in ("datasets", "coverage", "sbm")}


def test_every_cell_whose_dataset_is_there_becomes_one_row(laboratory):
    ran = laboratory.run(cells_of("all", SCOPE))
    rows = there(laboratory)
    wanted = [cell for cell in cells_of("all", SCOPE) if getattr(cell, "dataset", "") != "flickr"]
    assert ran == len(wanted)
    assert {row["key"] for study in rows.values() for row in study} == {cell.key for cell in wanted}
    assert len(rows["coverage"]) == 2 * 2 * (
        2 * 4 + 3
    )  # protocols, seeds, (models × methods, and one hop of the first)
    assert {row["dataset"] for row in rows["datasets"]} == {"small"}


def test_finished_cells_are_not_run_again(laboratory, small, tmp_path):
    laboratory.run(cells_of("table2", SCOPE))
    before = there(laboratory)

    def never(*_):
        raise AssertionError("a finished cell was run again")

    again = Laboratory(tmp_path / "results", predictor=never)
    assert again.run(cells_of("table3", SCOPE)) == 0
    assert there(again) == before


def test_an_interrupted_run_loses_the_task_under_way_and_goes_on_from_there(laboratory, small, tmp_path):
    cells = cells_of("table2", SCOPE)

    def interrupt(cell, data):
        if (cell.model, cell.seed) == ("shadow-gcn", 0):
            raise KeyboardInterrupt
        return guess(cell, data)

    stopped = Laboratory(tmp_path / "results", predictor=interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(cells)
    first = stopped.store.rows("coverage")
    assert {(row["model"], row["seed"]) for row in first} == {("graphsage-mean", 0)}
    assert len(first) == 2 * 4
    assert laboratory.run(cells) == len([c for c in cells if c.dataset == "small"]) - len(first)
    whole = {row["key"]: row for row in laboratory.store.rows("coverage")}
    assert all(whole[row["key"]] == row for row in first)


def test_what_another_run_finishes_in_the_meantime_is_left_to_it(laboratory, small, tmp_path):
    other = Laboratory(tmp_path / "results", predictor=guess)
    cells = cells_of("table2", SCOPE)
    calls = []

    def progress(done, total):
        if not calls:
            other.run(cells)
        calls.append((done, total))

    assert laboratory.run(cells, progress=progress) == 0
    assert calls[-1] == (32, 32)


def test_a_model_is_loaded_once_for_all_its_cells(small, tmp_path):
    calls = []

    def count(cell, data):
        calls.append((cell.model, cell.seed))
        return guess(cell, data)

    Laboratory(tmp_path, predictor=count).run(cells_of("all", SCOPE))
    assert sorted(calls) == sorted(set(calls))
    assert len(calls) == 4


def test_progress_counts_cells_up_to_the_total(laboratory):
    seen, stages = [], []
    laboratory.run(cells_of("sbm", SCOPE), progress=lambda *now: seen.append(now), stage=stages.append)
    assert seen == [(0, 2), (2, 2)]  # the two points share their graphs
    assert len(stages) == 1
    assert "block model n=60" in stages[0]


@pytest.mark.parametrize("protocol", ["strict", "as-published"])
def test_a_run_leaves_no_model_in_memory(laboratory, small, monkeypatch, protocol):
    graphs = []
    prepare = CoverageCell.prepare

    def watched(*arguments):
        scored = prepare(*arguments)
        graphs.append(weakref.ref(scored))
        return scored

    monkeypatch.setattr(CoverageCell, "prepare", watched)
    laboratory.run(cells_of("table2", replace(SCOPE, protocols=(protocol,))))
    gc.collect()
    assert graphs
    assert not any(scored() for scored in graphs)


def test_datasets_from_files_are_available_where_the_files_are(tmp_path):
    assert is_available("amazon-computers")
    assert not is_available("flickr", tmp_path)
    (tmp_path / "flickr" / "raw").mkdir(parents=True)
    for name in ("adj_full.npz", "feats.npy", "class_map.json", "role.json"):
        (tmp_path / "flickr" / "raw" / name).touch()
    assert is_available("flickr", tmp_path)


def test_a_stranger_among_the_cells_is_refused(laboratory):
    with pytest.raises(InvalidInputError, match="cells of a study; got Setup"):
        laboratory.run([SETUPS["amazon-computers"]])

    class Stranger(BlockCell):
        study = "elsewhere"

    with pytest.raises(InvalidInputError, match="cells of a study; got Stranger"):
        laboratory.run([Stranger(30, 0.2, 0.1, 0.1, draws=2)])
    assert laboratory.run([BlockCell(30, 0.2, 0.1, 0.1, draws=2)]) == 1
