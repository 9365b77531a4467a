"""The page's rows are the library's numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare
from napsets.report import ReportData, page_data
from napsets.report.data import wilson
from napsets.report.words import cards, cell, headline, method_table, percent, summary_table
from worlds import FOUR

TITLES = ["APS split", "NAPS", "NAPS-H", "NAPS-G"]


@pytest.fixture(scope="module")
def data(world: dict[str, Any]) -> ReportData:
    return page_data(compare(**world, alphas=CURVE_ALPHAS), dataset="blocks", model="noise")


def of_method(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == name]


def test_there_is_a_row_a_method_with_its_metrics(data: ReportData, comparison: Comparison, world) -> None:
    assert [row["method"] for row in data.methods] == TITLES
    assert [row["name"] for row in data.methods] == list(FOUR)
    for row, result in zip(data.methods, comparison, strict=True):
        assert row["coverage"] == result.coverage
        assert row["mean_size"] == result.mean_size
        assert row["pccv"] == result.pccv
        assert row["empty"] == (result.sets.sizes == 0).sum()
        assert row["full"] == (result.sets.sizes == 5).sum()
        assert row["low"] < row["coverage"] < row["high"]


def test_supported_nodes_are_those_with_a_finite_naps_threshold(data: ReportData, comparison: Comparison) -> None:
    finite = np.isfinite(comparison["naps"].sets.thresholds)
    assert 0 < finite.sum() < finite.size
    for row, result in zip(data.methods, comparison, strict=True):
        assert row["supported"] == finite.sum()
        assert row["supported_size"] == result.sets.sizes[finite].mean()


def test_the_lowest_neighbourhood_explains_pccv(data: ReportData) -> None:
    for row in data.methods:
        worst = max(abs(row["lowest"] - 0.9), abs(row["highest"] - 0.9))
        assert worst == pytest.approx(row["pccv"])


@pytest.mark.parametrize(("title", "name"), [*zip(TITLES, FOUR, strict=True)])
def test_classes_and_degrees_add_up_to_the_whole(
    data: ReportData, comparison: Comparison, title: str, name: str
) -> None:
    for rows in (data.by_class, data.by_degree):
        mine = of_method(rows, title)
        count = sum(row["nodes"] for row in mine)
        assert count == len(comparison[name].sets)
        assert sum(row["coverage"] * row["nodes"] for row in mine) / count == pytest.approx(comparison[name].coverage)


@pytest.mark.parametrize(("title", "name"), [*zip(TITLES, FOUR, strict=True)])
def test_set_sizes_add_up_to_all_nodes(data: ReportData, comparison: Comparison, title: str, name: str) -> None:
    mine = of_method(data.by_size, title)
    assert sum(row["nodes"] for row in mine) == len(comparison[name].sets)
    assert sum(row["share"] for row in mine) == pytest.approx(1)
    mean = sum(row["size"] * row["share"] for row in mine)
    assert mean == pytest.approx(comparison[name].mean_size)


def test_the_curve_runs_from_one_percent_to_a_half(data: ReportData) -> None:
    for title in TITLES:
        alphas = [row["alpha"] for row in of_method(data.curve, title)]
        assert alphas[0] == 0.01
        assert alphas[-1] == 0.5
        assert alphas == sorted(alphas)


def test_balls_carry_each_methods_coverage(data: ReportData, comparison: Comparison, world: dict[str, Any]) -> None:
    balls = ns.neighbourhood_partition(world["graph"], world["nodes"], min_size=10, seed=3)
    assert len(data.balls) == len(balls)
    covered = comparison["naps"].sets.contains(world["labels"])
    for row, members in zip(data.balls, balls, strict=True):
        inside = np.isin(comparison["naps"].sets.nodes, members)
        assert row["nodes"] == members.size
        assert row["NAPS"] == covered[inside].mean()
        assert row["judged"] == (members.size >= 30)
    assert data.left_out + sum(row["nodes"] for row in data.balls) == world["nodes"].size


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (7, 7), (90, 100), (1, 3)])
def test_intervals_are_wilsons(hits: int, count: int) -> None:
    expected = binomtest(hits, count).proportion_ci(0.95, method="wilson")
    assert wilson(hits, count) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_nodes_have_no_interval() -> None:
    assert all(math.isnan(end) for end in wilson(0, 0))


def test_class_names_must_match(world: dict[str, Any]) -> None:
    found = compare(**world, alphas=CURVE_ALPHAS)
    with pytest.raises(ns.InvalidInputError, match="`class_names` must have one name a class, 5; got 2"):
        page_data(found, class_names=["a", "b"])


def test_subgraphs_show_the_ids_of_the_graph_they_came_from(world: dict[str, Any]) -> None:
    keep = np.arange(100, 1500)
    calibration, nodes = (np.flatnonzero(np.isin(keep, world[name])) for name in ("calibration", "nodes"))
    found = page_data(
        compare(
            world["graph"].subgraph(keep),
            world["probabilities"][keep],
            world["labels"][keep],
            calibration,
            nodes,
            alphas=CURVE_ALPHAS,
        )
    )
    assert found.explorer.names == [str(node + 100) for node in found.explorer.nodes]


def test_sentences_say_what_the_rows_say(data: ReportData) -> None:
    aps, naps = data.methods[:2]
    text = headline(data)
    assert percent(naps["coverage"]) in text
    assert percent(aps["coverage"]) in text
    assert f"{naps['nodes']:,} nodes" in text
    by_name = {card["name"]: card for card in cards(data)}
    assert by_name["Coverage"]["value"] == percent(naps["coverage"])
    assert by_name["Too little support"]["value"] == f"{naps['infinite']:,}"
    assert by_name["Worst neighbourhood"]["value"] == percent(naps["lowest"])


def test_tables_have_a_line_a_method(data: ReportData) -> None:
    for table in (method_table(data), summary_table(data)):
        assert [line[0][0] for line in table] == TITLES
    assert summary_table(data)[1][1][0] == f"{data.methods[1]['empty']:,}"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (True, "yes"), (12345, "12,345"), (0.12345, "0.123"), (math.nan, "–"), ("x", "x")]
)
def test_cells_are_readable(value: object, text: str) -> None:
    assert cell(value) == text
