"""The committed results: pages and figures follow from the rows, and cheap rows are computed again.

Training a network gives other last digits on another machine, so that rows about trained models are recomputed from
committed predictions; everything after them, and the block model, is the same on any machine.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from studies import drift, leaderboard, llm, paper, sets
from studies.block_model import BLOCKS, block_cells
from studies.coverage import COVERAGE, DATASETS
from studies.rows import Folders
from studies.tables import select, svg

from .conftest import register_peers

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
FOLDERS = Folders(RESULTS, ROOT / "benchmarks" / "data")
KINDS = (DATASETS, COVERAGE, BLOCKS, leaderboard.KIND, sets.KIND, drift.KIND, llm.KIND)


def assert_recomputed(kind, cells):
    """Compute the cells again and compare with the committed rows, to the last digits that NumPy versions share."""
    committed = {kind.key(row): row for row in kind.read(RESULTS)}
    rows = kind.compute(cells, FOLDERS)
    assert [kind.key(row) for row in rows] == [kind.key(cell) for cell in cells]
    for row in rows:
        kept = committed[kind.key(row)]
        for name, value in row.items():
            if "seconds" not in name and value == value:
                expected = pytest.approx(kept[name], rel=1e-9) if isinstance(value, float) else kept[name]
                assert value == expected, (row, name)


@pytest.fixture(scope="module")
def studies():
    """Page and figures of every study, by the name of the page."""
    paper_rows = paper.PaperRows.read(RESULTS, paper.FULL)
    with pytest.MonkeyPatch.context() as patch:
        register_peers(patch)  # whose rows the leaderboard shows
        cells = {study: [cell for scope in study.SCOPES for cell in scope.cells()] for study in (leaderboard, sets)}
    board, close = (study.KIND.rows_of(wanted, RESULTS) for study, wanted in cells.items())
    streams = drift.KIND.rows_of(drift.drift_cells(), RESULTS)
    papers = llm.KIND.rows_of(llm.llm_cells(), RESULTS)
    return {
        "reproduction": (paper.page(paper_rows), paper.figures(paper_rows)),
        "leaderboard": (leaderboard.page(board), leaderboard.figures(board)),
        "sets": (sets.page(close), sets.figures(close)),
        "drift": (drift.page(streams), drift.figures(streams)),
        "tasks/llm": (llm.page(papers), llm.figures(papers)),
    }


@pytest.mark.parametrize("page", ["reproduction", "leaderboard", "sets", "drift", "tasks/llm"])
def test_the_pages_of_the_documentation_follow_from_the_rows(studies, page):
    assert studies[page][0] == (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def test_the_figures_of_the_documentation_follow_from_the_rows(studies):
    """But for the names of gradients, which count the figures that a process has drawn."""
    pytest.importorskip("vl_convert")
    folders = {"reproduction": "figures", "tasks/llm": "tasks/figures"}
    for page, (_, charts) in studies.items():
        folder = ROOT / "docs" / folders.get(page, "figures")
        for name, chart in charts.items():
            committed = (folder / f"{name}.svg").read_text(encoding="utf-8")
            drawn, kept = (re.sub(r"gradient_\d+", "gradient", text) for text in (svg(chart), committed))
            assert drawn == kept, name
    names = {f"{name}.svg" for page, (_, charts) in studies.items() for name in charts if page != "tasks/llm"}
    assert names == {file.name for file in (ROOT / "docs" / "figures").iterdir()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.folder)
def test_every_row_has_settings_of_its_own(kind):
    rows = duckdb.read_parquet(f"{RESULTS}/{kind.folder}/*.parquet").fetchall()
    assert rows
    assert len(kind.read(RESULTS)) == len(rows)


def test_amazon_is_there_with_four_models_and_five_seeds_in_both_protocols():
    wanted = [cell for cell in paper.cells_of("all", paper.FULL)[COVERAGE] if cell["dataset"] == "amazon-computers"]
    # Seeds, protocols, then four methods of four models with two presets, and the ablation's other depths.
    assert len(wanted) == 5 * 2 * (2 * 4 * 4 + 3 * 3)
    assert set(map(COVERAGE.key, wanted)) <= set(map(COVERAGE.key, COVERAGE.read(RESULTS)))


@pytest.mark.parametrize("protocol", ["strict", "as-published"])
def test_rows_of_tables_2_and_3_follow_from_the_committed_predictions(protocol):
    where = {"dataset": "amazon-computers", "model": "graphsage-mean", "seed": 0, "preset": "graph_cp-6fc8783"}
    cells = paper.cells_of("table2", paper.FULL)[COVERAGE]
    cells = [cell for cell in cells if cell.items() >= (where | {"protocol": protocol}).items()]
    assert len(cells) == 4
    assert_recomputed(COVERAGE, cells)


def test_a_row_of_table_1_follows_from_its_settings():
    assert_recomputed(DATASETS, [{"dataset": "amazon-computers", "seed": 3}])


def test_rows_of_the_block_model_follow_from_their_settings():
    point = {"n": 250, "p_in": 0.1, "p_out": 0.05}
    assert_recomputed(BLOCKS, [cell for cell in block_cells(0.1) if cell.items() >= point.items()])


@pytest.mark.parametrize(
    ("study", "where", "methods"),
    [
        (leaderboard, ("squirrel-filtered", "graphsage-mean", 0.3, 0), ("split", "naps")),
        (leaderboard, ("cora-ml", "gcn", 0.05, 0), ("split", "naps-exact", "auto", "auto-small with features")),
        (sets, ("squirrel-filtered", "gcn", 0.3, 1), ("split", "naps", "naps-exact", "daps", "informed", "auto")),
        (sets, ("citeseer-full", "graphsage-mean", 0.05, 9), ("split", "thr", "naps-exact", "auto-small")),
        (sets, ("cora-ml", "gcn", 0.3, 5), ("informed with features", "auto with features")),
        (sets, ("squirrel-filtered", "gcn", 100, 39), ("thr", "auto-small", "auto-small with features")),
        (sets, ("amazon-computers", "graphsage-mean", 0.05, 0), ("split", "naps-exact")),
        (leaderboard, ("squirrel-filtered", "gcn", 0.3, 0), ("rlcp", "pagerank-exact", "edge-ex", "node-ex")),
        (leaderboard, ("cora-ml", "graphsage-mean", 0.05, 0), ("rlcp", "edge-ex")),
    ],
)
def test_rows_of_the_comparisons_follow_from_the_committed_predictions(study, where, methods):
    place = dict(zip(("dataset", "model", "share", "repetition"), where, strict=True)) | {"seed": 0, "alpha": 0.1}
    assert_recomputed(study.KIND, [place | {"method": method} for method in methods])


def test_the_sets_study_is_whole_and_needs_no_training():
    cells, rows = [*sets.FULL.cells(), *sets.FEW.cells()], sets.KIND.read(RESULTS)
    assert len(cells) == 12 * 2 * (2 * 10 * 11 + 40 * 6)
    assert set(map(sets.KIND.key, cells)) == set(map(sets.KIND.key, rows))
    for dataset, model in {(cell["dataset"], cell["model"]) for cell in cells} - {
        ("amazon-computers", "graphsage-mean")
    }:
        assert FOLDERS.predictions(f"{dataset}_{model}_0.parquet").exists()


def test_the_leaderboard_is_whole():
    assert set(map(leaderboard.KIND.key, leaderboard.FULL.cells())) == {
        leaderboard.KIND.key(row) for row in leaderboard.KIND.read(RESULTS)
    }


def test_with_fewer_than_15_labels_per_class_one_threshold_from_all_labels_is_used():
    few = select(sets.KIND.read(RESULTS), share=100)
    whole = {row["dataset"] for row in few if row["method"] in sets.AUTOMATIC and row["level_labels"] == 100}
    assert whole == {"amazon-computers", "cora-ml", "flickr-small"}  # of 10, 7 and 9 classes; the others have up to 6


def test_the_drift_study_is_whole_and_its_rows_follow_from_the_committed_predictions():
    cells = drift.drift_cells()
    assert set(map(drift.KIND.key, cells)) == set(map(drift.KIND.key, drift.KIND.read(RESULTS)))
    for cell in cells:
        assert FOLDERS.predictions(f"{cell['dataset']}_softmax_{cell['order']}_0.parquet").exists()
    for graph in ("metamath-nf", "eips"):
        assert_recomputed(drift.KIND, [cell for cell in cells if (cell["dataset"], cell["order"]) == (graph, "time")])
