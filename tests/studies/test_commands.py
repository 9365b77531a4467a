"""``python -m studies`` as a user runs it, with short versions that really compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies import leaderboard, paper, sets
from studies.block_model import BLOCKS
from studies.coverage import COVERAGE, DATASETS, METRICS, PROTOCOLS, scored_graph
from studies.rows import Folders
from studies.setups import METHODS
from studies.tables import select

from .conftest import drawn_coverage_law, median_band

ROOT = Path(__file__).parents[2]


def python_m_studies(folder, *arguments):
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "studies", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    done = python_m_studies(folder, "all", "--quick", "--page", "docs/reproduction.md")
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture(scope="module")
def rows(run):
    return {kind: kind.read(run[0] / "results") for kind in (DATASETS, COVERAGE, BLOCKS)}


@pytest.mark.gnn
def test_every_cell_has_a_row_with_every_metric(rows):
    for kind, cells in paper.cells_of("all", paper.QUICK, quick=True).items():
        assert set(map(kind.key, rows[kind])) == set(map(kind.key, cells))
    places = {(row["protocol"], row["method"]) for row in rows[COVERAGE]}
    assert places == {(protocol, method) for protocol in PROTOCOLS for method in METHODS}
    for row in rows[COVERAGE]:
        assert all(row[name] is not None for name in (*METRICS, "pccv"))
        assert 0.85 < row["coverage"] <= 1.0
        assert 0.7 < row["accuracy"] < 0.95
        assert row["mean_size"] < 10


@pytest.mark.gnn
def test_strict_split_conformal_covers_within_its_exact_band(run, rows):
    """The law of coverage given the scores (Beta-binomial where all are eligible); wrong by chance once in 10⁶."""
    (row,) = select(rows[COVERAGE], protocol="strict", method="APS")
    scored = scored_graph(row, Folders(run[0] / "results", run[0]))
    law = drawn_coverage_law(scored.scores, scored.eligible, row["evaluated"], row["alpha"])
    low, high = median_band(law, row["repetitions"], outside=1e-6)
    assert low <= row["coverage"] <= high
    single = median_band(law, 1, outside=1e-6)
    assert high - low < 0.7 * (single[1] - single[0])  # ten repetitions say more than one


@pytest.mark.gnn
def test_the_page_is_written_with_its_figures_and_the_tables_are_printed(run):
    folder, done = run
    page = (folder / "docs" / "reproduction.md").read_text()
    assert "| Amazon | graph_cp-6fc8783 | strict | 1 | 0 of 1, 0 fail |" in page
    figures = [line.split("(")[1].rstrip(")") for line in page.splitlines() if line.startswith("![")]
    assert figures == [f"figures/{name}.svg" for name in ("ablation-strict", "ablation-as-published")]
    for figure in figures:
        assert (folder / "docs" / figure).read_text().startswith("<svg")
    assert "**Table 2: Coverage" in done.stdout
    assert "sbm: 4 of 4 (n=250" in done.stderr


@pytest.mark.parametrize("study", [leaderboard, sets], ids=["leaderboard", "sets"])
def test_methods_are_compared_in_several_processes_from_kept_predictions(studies, tmp_path, study):
    name = study.__name__.removeprefix("studies.")
    place = ("--dataset", "cora-ml", "--share", 0.3, "--repetitions", 1, "--method", "split", "--method", "naps-exact")
    place += ("--model", "gcn", "--model", "graphsage-mean", *(("--seeds", 1) if study is leaderboard else ()))
    (tmp_path / "predictions").symlink_to(ROOT / "results" / "predictions")
    code, printed, notes = studies(name, *place, "--results", tmp_path, "--jobs", 2, "--page", tmp_path / "page.md")
    assert code == 0
    assert "30 % labelled" in printed
    assert f"{name}: 4 of 4" in notes
    kept = {study.KIND.key(row): row for row in study.KIND.read(ROOT / "results")}
    rows = study.KIND.read(tmp_path)
    assert len(rows) == 4
    assert all(row["mean_size"] == kept[study.KIND.key(row)]["mean_size"] for row in rows)
    assert "cora-ml" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_mistakes_are_one_line(studies, tmp_path):
    assert "invalid choice: 'graphsage-mena'" in studies("table2", "--model", "graphsage-mena")[2]
    assert "unrecognized arguments: --seeds" in studies("sets", "--seeds", 3)[2]
    assert "--alpha: must lie strictly between 0 and 1; got 2" in studies("sbm", "--alpha", 2)[2]


@pytest.mark.parametrize(
    ("command", "dataset", "file"),
    [("sets", "dblp", "dblp.npz"), ("table1", "flickr-graph", "flickr_graphsaint.npz"), ("llm", None, "ogbn_arxiv.npz"),
     ("table2", "reddit2", "reddit2/adj_full.npz"), ("drift", "spack", "spack.npz")],
)  # fmt: skip
def test_a_graph_that_is_not_there_ends_with_the_reason(studies, tmp_path, command, dataset, file):
    named = () if dataset is None else ("--dataset", dataset)
    code, printed, _ = studies(command, *named, "--root", tmp_path, "--results", tmp_path)
    assert code == f"error: {tmp_path} (--root) does not hold {file}"  # text as an exit code is printed, and is 1
    assert printed == ""


def test_graphs_that_were_not_named_are_left_out_with_a_note(studies, tmp_path):
    _, printed, notes = studies("table1", "--seeds", 1, "--root", tmp_path, "--results", tmp_path)
    assert "left out: " in notes
    assert "reddit2/adj_full.npz" in notes
    assert "| Amazon | here |" in printed
