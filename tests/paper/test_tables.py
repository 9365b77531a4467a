"""Tables, verdicts and figures, from rows whose numbers are known."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from napsets.paper import METHODS, QUICK, CoverageCell, RowStore
from napsets.paper.claims import claims_table, judge, paragraph
from napsets.paper.outputs import figures_of, sentences_of, tables_of, write_figures, write_tables
from napsets.paper.table import FORMATS, Spread, Table

SCOPE = replace(QUICK, seeds=(0, 1, 2), datasets=("amazon-computers",), models=("shadow-sage",))
SCOPE = replace(SCOPE, ablation_model="shadow-sage", ablation_hops=(2,))
METRICS = {"coverage": 0.90, "mean_size": 1.5, "size_given_coverage": 1.6, "sscv": 0.06, "pccv": 0.05}


def row(method, seed, protocol="strict", **measured):
    cell = CoverageCell(
        "amazon-computers", "shadow-sage", seed, protocol, method, 0 if method == "APS" else 2, repetitions=10
    )
    rest = {"infinite_rate": 0.0, "support": 500.0, "test_nodes": 12_000, "seconds": 0.1, "train_seconds": 1.0}
    rest |= {"empty_rate": 0.05, "singleton_rate": 0.6, "full_rate": 0.01, "eligible": 9_000}
    return cell.row(accuracy=0.8 + seed / 100, **{**METRICS, **rest, **measured})


@pytest.fixture
def rows():
    """NAPS: smaller sets in every seed, coverage off by more, SSCV now better and now worse, PCCV equal."""
    found = []
    for seed in range(3):
        for protocol in ("strict", "as-published"):
            found.append(row("APS", seed, protocol, mean_size=1.8 + seed / 100, coverage=0.901))
            for method in METHODS:
                if method != "APS":
                    noise = (-0.01, 0.012, 0.001)[seed]
                    found.append(
                        row(
                            method,
                            seed,
                            protocol,
                            mean_size=1.6 + seed / 50,
                            coverage=0.91 + seed / 1000,
                            sscv=0.06 + noise,
                        )
                    )
    return found


def test_a_table_has_four_forms_that_agree():
    table = Table(
        "t", "Title", ["Name", "x", "Δ y"], [["a|b_c", Spread(1.23456, 0.5), 0.25], ["d", None, -1.0]], {"x": 2}
    )
    assert table.text_rows() == [["a|b_c", "1.23 ± 0.50", "+0.250"], ["d", "–", "-1.000"]]
    assert "| a\\|b_c | 1.23 ± 0.50 | +0.250 |" in table.markdown()
    assert list(csv.reader(io.StringIO(table.csv()))) == [
        ["Name", "x", "x sd", "Δ y"], ["a|b_c", "1.23456", "0.5", "0.25"], ["d", "", "", "-1.0"],
    ]  # fmt: skip
    latex = table.latex()
    assert r"a$|$b\_c & 1.23 $\pm$ 0.50 & +0.250 \\" in latex
    assert latex.count(r"\begin{tabular}{lrr}") == 1
    assert table.rich().row_count == 2


def test_one_seed_has_no_spread():
    assert Table("t", "T", ["x"], [[Spread.of([2.0])]]).text_rows() == [["2.000"]]


def test_both_protocols_stand_beside_the_printed_number_with_the_differences(rows, tmp_path):
    store = RowStore(tmp_path)
    store.append("coverage", rows)
    tables = {table.name: table for table in tables_of("all", store, SCOPE)}
    size = tables["table2-mean-size"]
    assert list(size.columns) == [
        "Dataset", "Model", "Method", "strict", "as-published", "Printed", "Δ strict", "Δ as-published",
    ]  # fmt: skip
    naps = next(line for line in size.rows if line[2] == "NAPS")
    assert naps[3] == Spread(pytest.approx(1.62), pytest.approx(0.02))
    assert naps[5:7] == [1.66, pytest.approx(-0.04)]
    assert "the paper prints 1.03, a slip for 0.103" in tables["table3-pccv"].markdown()
    assert tables["table2-accuracy"].rows[0][2:] == [
        Spread(pytest.approx(0.81), pytest.approx(0.01)), 0.815, pytest.approx(-0.005), 3,
    ]  # fmt: skip


def test_datasets_that_are_not_there_are_listed_with_how_to_get_them(tmp_path):
    (table,) = tables_of("table1", RowStore(tmp_path), SCOPE)
    absent = [line[0] for line in table.rows if line[1] == "not available"]
    assert absent == ["Reddit2", "Flickr", "Amazon"]  # there are no rows at all
    assert "--root DIR" in table.markdown()
    assert table.rows[1][:2] == ["Reddit2", "printed"]
    assert 22_160 in table.rows[1]


def test_a_claim_holds_or_fails_where_the_seeds_agree_and_stays_open_where_they_do_not(rows):
    words = {verdict.claim.metric: verdict.word for verdict in judge(rows, SCOPE) if verdict.protocol == "strict"}
    assert words == {"mean_size": "holds", "coverage": "fails", "sscv": "open", "pccv": "open"}
    told = {verdict.claim.metric: verdict.printed for verdict in judge(rows, SCOPE)}
    assert told == {"mean_size": True, "coverage": True, "sscv": True, "pccv": True}


def test_the_paragraph_says_what_the_verdicts_say(rows):
    text = paragraph(rows, SCOPE)
    assert "On Amazon (3 training seeds, alpha 0.1, K = 2)" in text
    assert "smaller sets for 1 of 1 model (difference -0.19 to -0.19)" in text
    assert (
        "coverage nearer to 1 − alpha for 0 of 1 model (difference +0.010 to +0.010; the opposite for SD-SAGE)" in text
    )
    assert "undecided for SD-SAGE" in text
    worse = [{**r, "mean_size": 3.0} if r["method"] == "NAPS" else r for r in rows]
    assert "smaller sets for 0 of 1 model" in paragraph(worse, SCOPE)
    assert len(claims_table(rows, SCOPE).rows) == 2 * 3


def test_rows_measured_in_another_way_do_not_mix_in(rows, tmp_path):
    store = RowStore(tmp_path)
    other = CoverageCell("amazon-computers", "shadow-sage", 0, "strict", "NAPS", 2, repetitions=100)
    store.append("coverage", [*rows, {**rows[0], **other.row(), "mean_size": 99.0}])
    tables = {table.name: table for table in tables_of("table2", store, SCOPE)}
    assert max(line[3].mean for line in tables["table2-mean-size"].rows) < 2


def test_files_are_written_for_every_table_and_figure(rows, tmp_path):
    store = RowStore(tmp_path / "rows")
    store.append("coverage", rows)
    tables = tables_of("table2", store, SCOPE)
    files = write_tables(tables, tmp_path / "out", FORMATS)
    assert len(files) == len(tables) * 3 == 12
    assert all(file.stat().st_size > 0 for file in files)
    figures = write_figures(figures_of("ablation", store, SCOPE), tmp_path / "out")
    assert [file.name for file in figures] == [
        "ablation-strict.svg", "ablation-strict.png", "ablation-as-published.svg", "ablation-as-published.png",
    ]  # fmt: skip
    svg = figures[0].read_text()
    assert "Set size" in svg
    assert "NAPS-G" in svg
    assert figures[1].read_bytes().startswith(b"\x89PNG")


def test_no_rows_give_no_sentences(tmp_path):
    assert sentences_of("all", RowStore(tmp_path), SCOPE) == []
    assert figures_of("all", RowStore(tmp_path), SCOPE) == {}
