"""Cells: what a row is called."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from napsets.studies import FULL, QUICK, SETUPS, BlockCell, CoverageCell, DatasetCell, cells_of, study

CELL = CoverageCell("amazon-computers", "graphsage-mean", 0, "strict", "NAPS", 2)


def test_equal_settings_have_the_same_key_and_every_single_change_another():
    changes = {
        "dataset": "reddit2", "model": "shadow-gcn", "seed": 1, "protocol": "as-published", "method": "NAPS-H",
        "hops": 3, "alpha": 0.2, "repetitions": 99, "evaluated": 999, "preset": "paper", "inference": "exact",
    }  # fmt: skip
    assert set(changes) == {field.name for field in fields(CoverageCell)}
    keys = [replace(CELL, **{name: value}).key for name, value in changes.items()]
    assert len({CELL.key, *keys}) == 1 + len(keys)
    assert replace(CELL).key == CELL.key


def test_the_key_knows_the_datasets_settings_and_the_codes_version(monkeypatch):
    before = CELL.key
    with monkeypatch.context() as patch:
        patch.setitem(SETUPS, CELL.dataset, replace(SETUPS[CELL.dataset], cutoff=51))
        assert CELL.key != before
    monkeypatch.setattr(study, "RESULTS_VERSION", study.RESULTS_VERSION + 1)
    assert CELL.key != before


def test_cells_of_different_studies_never_share_a_key():
    assert DatasetCell("amazon-computers", 0).key != CELL.key
    assert BlockCell(100, 0.1, 0.1, 0.1).key != BlockCell(100, 0.1, 0.1, 0.2).key


def test_a_row_begins_with_the_columns_of_the_contract():
    row = CELL.row(coverage=0.9)
    assert list(row)[:8] == ["key", "dataset", "model", "seed", "protocol", "method", "hops", "alpha"]
    assert row["coverage"] == 0.9


@pytest.mark.parametrize("scope", [FULL, QUICK])
def test_everything_is_the_union_of_the_parts_and_holds_nothing_twice(scope):
    parts = [cell for target in ("table1", "table2", "table3", "ablation", "sbm") for cell in cells_of(target, scope)]
    together = cells_of("all", scope)
    assert set(together) == set(parts)
    assert len(set(together)) == len(together)
    assert cells_of("table2", scope) == cells_of("table3", scope)


def test_the_full_scope_has_all_of_the_papers_tables():
    wanted = [cell for cell in cells_of("table2", FULL) if cell.dataset == "amazon-computers"]
    assert len(wanted) == 5 * 4 * 2 * 2 * 4  # seeds, models, inferences, protocols, methods
    assert {(cell.repetitions, cell.evaluated, cell.alpha) for cell in wanted} == {(100, 1000, 0.1)}
    assert {cell.hops for cell in wanted if cell.method != "APS"} == {2}
    assert {cell.hops for cell in cells_of("ablation", FULL) if cell.method == "NAPS"} == {1, 2, 3, 4}


def test_the_former_name_of_the_room_gives_the_same_things():
    import napsets as ns

    assert set(ns.paper.__all__) == set(ns.studies.__all__)
    assert all(getattr(ns.paper, name) is getattr(ns.studies, name) for name in ns.studies.__all__)
