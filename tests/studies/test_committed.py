"""The committed results: every row is called what its settings say, and cheap ones are computed again.

Training a network gives other last digits on another machine, so that rows about trained models are recomputed from
committed predictions; everything after them, and the block model, is the same on any machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from napsets.studies import FULL, STUDIES, BlockCell, CoverageCell, DatasetCell, Laboratory, cells_of
from napsets.studies.laboratory import cell_kinds
from napsets.studies.leaderboard import LeaderboardCell
from napsets.studies.sets import SetsCell, goals
from napsets.studies.standings import make_standings

ROOT = Path(__file__).parents[2]
#: The model whose predictions are committed.
MODEL, SEED = "graphsage-mean", 0


@pytest.fixture(scope="module")
def laboratory():
    return Laboratory(ROOT / "results", ROOT / "benchmarks" / "data")


def compared(rows):
    """Everything but the time it took."""
    return {row["key"]: {name: row[name] for name in row if "seconds" not in name} for row in rows}


def assert_recomputed(laboratory, cells):
    """Compute the cells again and compare with the committed rows, to the last digits that NumPy versions share."""
    committed = compared(laboratory.store.rows(cells[0].study))
    for row in laboratory.compute(cells):
        kept = committed[row["key"]]
        for name, value in row.items():
            if "seconds" not in name:
                expected = pytest.approx(kept[name], rel=1e-9) if isinstance(value, float) else kept[name]
                assert value == expected, (row, name)


@pytest.mark.parametrize("study", cell_kinds())
def test_every_row_is_called_what_its_settings_and_the_codes_version_say(laboratory, study):
    rows = laboratory.store.rows(study)
    assert rows
    assert [row["key"] for row in rows] == [cell_kinds()[study].from_row(row).key for row in rows]


def test_amazon_is_there_with_four_models_and_five_seeds_in_both_protocols(laboratory):
    rows = {row["key"] for row in laboratory.store.rows("coverage")}
    wanted = [cell for cell in cells_of("all", FULL) if isinstance(cell, CoverageCell) and cell.dataset[:6] == "amazon"]
    # Seeds, protocols, then four methods of four models with both inferences, and the ablation's other depths.
    assert len(wanted) == 5 * 2 * (2 * 4 * 4 + 3 * 3)
    assert {cell.key for cell in wanted} <= rows


@pytest.mark.parametrize("protocol", ["strict", "as-published"])
def test_rows_of_tables_2_and_3_follow_from_the_committed_predictions(laboratory, protocol):
    where = ("amazon-computers", MODEL, SEED, protocol, FULL.inferences[0])
    cells = [c for c in cells_of("table2", FULL) if (c.dataset, c.model, c.seed, c.protocol, c.inference) == where]
    assert laboratory.predictor.path(cells[0]).exists()
    for method in ([cells[0]], cells[1:]):
        assert_recomputed(laboratory, method)


def test_a_row_of_table_1_follows_from_its_settings(laboratory):
    assert_recomputed(laboratory, [DatasetCell("amazon-computers", 3)])


def test_rows_of_the_block_model_follow_from_their_settings(laboratory):
    draws = FULL.blocks.draws
    assert_recomputed(laboratory, [BlockCell(250, 0.1, 0.05, tv, draws=draws) for tv in FULL.blocks.tv])


@pytest.mark.parametrize(
    ("where", "methods"),
    [
        (("squirrel-filtered", "graphsage-mean", 0, 0.3, 0), ("split", "naps", "informed", "auto")),
        (("cora-ml", "gcn", 0, 0.05, 0), ("split", "naps-exact", "auto-small")),
    ],
)
def test_rows_of_the_leaderboard_follow_from_the_committed_predictions(laboratory, where, methods):
    assert_recomputed(laboratory, [LeaderboardCell(*where, method) for method in methods])


@pytest.mark.parametrize(
    "where",
    [
        ("squirrel-filtered", "gcn", 0, 0.3, 3),
        ("citeseer-full", "graphsage-mean", 0, 0.05, 19),
        ("amazon-computers", "graphsage-mean", 0, 0.05, 0),
    ],
)
def test_rows_of_the_sets_study_follow_from_the_committed_predictions(laboratory, where):
    methods = STUDIES["sets"].full.methods if where[0] == "squirrel-filtered" else ("split", "naps-exact", "auto")
    assert_recomputed(laboratory, [SetsCell(*where, method) for method in methods])


def test_the_sets_study_is_whole_and_needs_no_training(laboratory):
    study = STUDIES["sets"]
    cells = study.cells(study.full)
    assert len(cells) == 12 * 2 * 2 * 20 * 7
    assert {cell.key for cell in cells} == {row["key"] for row in laboratory.store.rows("sets")}
    for cell in {(cell.dataset, cell.model): cell for cell in cells}.values():
        assert cell.shipped_predictions() is not None or laboratory.predictor.path(cell).exists()
    reached = goals(make_standings(laboratory.store.rows("sets"), by_model=True), study.full.models)
    assert [goal.met for goal in reached] == [True] * 8


def test_the_drift_study_is_whole_and_its_rows_follow_from_the_committed_predictions(laboratory):
    study = STUDIES["drift"]
    cells = study.cells(study.scope(False, {}))
    assert {cell.key for cell in cells} == {row["key"] for row in laboratory.store.rows("drift")}
    for cell in {cell.model_names: cell for cell in cells}.values():
        assert laboratory.predictor.path(cell).exists()
    for graph in ("metamath-nf", "eips"):
        assert_recomputed(laboratory, [cell for cell in cells if (cell.dataset, cell.order) == (graph, "time")])


@pytest.mark.parametrize(
    ("name", "page"), [("all", "reproduction"), ("leaderboard", "leaderboard"), ("sets", "sets"), ("drift", "drift")]
)
def test_the_pages_of_the_documentation_are_what_the_rows_say(laboratory, name, page):
    study = STUDIES[name]
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert text == study.text(study.rows(laboratory.store, study.scope(False, {})))
