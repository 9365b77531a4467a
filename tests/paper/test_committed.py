"""The committed results: every row is called what its settings say, and cheap ones are computed again.

Training a network gives other last digits on another machine, so that rows of Tables 2 and 3 are recomputed from one
model's committed predictions; everything after them, and the block model, is the same on any machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from napsets.paper import FULL, BlockCell, CoverageCell, DatasetCell, Laboratory, cells_of
from napsets.paper.page import page_text

ROOT = Path(__file__).parents[2]
#: The model whose predictions are committed.
MODEL, SEED = "graphsage-mean", 0
KINDS = {"datasets": DatasetCell, "coverage": CoverageCell, "sbm": BlockCell}


@pytest.fixture(scope="module")
def laboratory():
    return Laboratory(ROOT / "results")


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


@pytest.mark.parametrize("study", KINDS)
def test_every_row_is_called_what_its_settings_and_the_codes_version_say(laboratory, study):
    rows = laboratory.store.rows(study)
    assert rows
    assert [row["key"] for row in rows] == [KINDS[study].from_row(row).key for row in rows]


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


def test_the_page_of_the_documentation_is_what_the_rows_say(laboratory):
    assert (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8") == page_text(laboratory.store, FULL)
