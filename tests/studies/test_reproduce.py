"""`reproduce all --quick`, as a user runs it: one model is trained, everything else follows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from napsets.studies import METHODS, PROTOCOLS, QUICK, CoverageCell, Laboratory, cells_of
from napsets.studies.coverage import METRICS
from napsets.studies.paper_tables import median_band

from .conftest import drawn_coverage_law

pytestmark = pytest.mark.gnn


def reproduce(folder, *arguments):
    command = [sys.executable, "-m", "napsets", "reproduce", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    done = reproduce(folder, "all", "--quick", "--output", "out", "--page", "docs/reproduction.md")
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture(scope="module")
def rows(run):
    store = Laboratory(run[0] / "results").store
    return {study: store.rows(study) for study in ("datasets", "coverage", "sbm")}


def test_every_cell_has_a_row_with_every_metric(rows):
    wanted = {cell.key for cell in cells_of("all", QUICK) if getattr(cell, "dataset", "") not in ("flickr", "reddit2")}
    assert {row["key"] for study in rows.values() for row in study} == wanted
    assert {(r["protocol"], r["method"]) for r in rows["coverage"]} == {(p, m) for p in PROTOCOLS for m in METHODS}
    for row in rows["coverage"]:
        assert all(row[name] is not None for name in METRICS)
        assert 0.85 < row["coverage"] <= 1.0
        assert 0.7 < row["accuracy"] < 0.95
        assert row["mean_size"] < 10


def test_strict_split_conformal_covers_within_its_exact_band(run, rows):
    """The law of coverage given the scores (Beta-binomial where all are eligible); wrong by chance once in 10⁶."""
    laboratory = Laboratory(run[0] / "results")
    cell = CoverageCell.from_row(next(r for r in rows["coverage"] if (r["protocol"], r["method"]) == ("strict", "APS")))
    scored = laboratory.test_graph(cell)
    law = drawn_coverage_law(scored.scores, scored.mask(scored.eligible), cell.evaluated, cell.alpha)
    low, high = median_band(law, cell.repetitions, outside=1e-6)
    (row,) = [row for row in rows["coverage"] if row["key"] == cell.key]
    assert low <= row["coverage"] <= high
    single = median_band(law, 1, outside=1e-6)
    assert high - low < 0.7 * (single[1] - single[0])  # ten repetitions say more than one


def test_one_hop_is_the_same_for_all_decays_that_weigh_it_alike(rows):
    """At K = 1 NAPS and NAPS-H coincide; NAPS-G too where its first weight is 1, as published for Amazon."""
    for protocol in PROTOCOLS:
        first = {r["method"]: r for r in rows["coverage"] if (r["protocol"], r["hops"]) == (protocol, 1)}
        assert first["NAPS"]["mean_size"] == first["NAPS-H"]["mean_size"]
        assert (first["NAPS"]["mean_size"] == first["NAPS-G"]["mean_size"]) == (protocol == "as-published")


def test_tables_figures_and_page_are_written(run):
    folder, done = run
    names = {file.name for file in (folder / "out").rglob("*") if file.is_file()}
    tables = {
        "table1", "table2-accuracy", "table2-coverage", "table2-mean-size", "table2-size-given-coverage", "table3-sscv",
        "table3-pccv", "claims", "ablation", "sbm", "sbm-summary",
    }  # fmt: skip
    assert {f"{name}{suffix}" for name in tables for suffix in (".md", ".csv", ".tex")} <= names
    figures = {"ablation-strict", "ablation-as-published", "sbm-tv-0.2"}
    assert {f"{name}{suffix}" for name in figures for suffix in (".svg", ".png")} <= names
    page = (folder / "docs" / "reproduction.md").read_text()
    assert "On Amazon (1 training seed, alpha 0.1, K = 2), NAPS compares with APS as follows." in page
    for line in page.splitlines():
        if line.startswith("!["):
            assert (folder / "docs" / line.split("(")[1].rstrip(")")).exists()
    assert "Table 2: Coverage" in done.stdout
    assert "block model n=250" in done.stderr


def test_a_second_run_computes_nothing_and_says_the_same(run, rows):
    folder, done = run
    again = reproduce(folder, "all", "--quick")
    assert again.stdout == done.stdout
    store = Laboratory(folder / "results").store
    assert store.rows("coverage") == rows["coverage"]


def test_mistakes_are_one_line(tmp_path):
    wrong = reproduce(tmp_path, "table2", "--model", "graphsage-mena")
    assert wrong.returncode != 0
    assert "did you mean 'graphsage-mean'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr
