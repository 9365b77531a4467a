"""The page's rows are the library's numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare
from napsets.methods import METHODS
from napsets.report import ReportData, page_data
from napsets.report.charts import size_groups
from napsets.report.rows import chance_band, wilson
from napsets.report.words import cards, cell, method_table, percent, summary_table
from worlds import FOUR, never_supported

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


def test_supported_nodes_are_those_where_every_method_has_a_finite_threshold(data, comparison: Comparison) -> None:
    finite = np.isfinite([result.sets.thresholds for result in comparison]).all(axis=0)
    assert 0 < finite.sum() < finite.size
    for row, result in zip(data.methods, comparison, strict=True):
        assert row["supported"] == finite.sum()
        assert row["supported_size"] == result.sets.sizes[finite].mean()


def test_a_method_without_support_anywhere_is_passed_over(world, comparison: Comparison, monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    among = compare(**(world | {"methods": [*FOUR, "nowhere"], "alphas": CURVE_ALPHAS}))
    rows = page_data(among).methods
    finite = np.isfinite([result.sets.thresholds for result in comparison]).all(axis=0)
    assert [row["supported"] for row in rows] == [finite.sum()] * 5
    assert [row["supported_size"] for row in rows[:4]] == [result.sets.sizes[finite].mean() for result in comparison]
    assert np.isnan(rows[4]["supported_size"])


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


def test_cards_say_what_the_rows_say(data: ReportData) -> None:
    naps = data.methods[1]
    by_name = {card["name"]: card for card in cards(data)}
    assert by_name["Coverage"]["value"] == percent(naps["coverage"])
    assert by_name["Too little support"]["value"] == f"{naps['infinite']:,}"
    assert by_name["Worst neighbourhood"]["value"] == percent(naps["lowest"])
    held = sum(part.size for part in data.comparison.partition) / naps["nodes"]
    note = f"{naps['neighbourhoods']} neighbourhoods compared, with {percent(held, 0)} of the judged nodes"
    assert by_name["Worst neighbourhood"]["note"].endswith(note)


def test_the_page_is_about_the_method_to_take_or_the_first_beside_it(world: dict[str, Any], data: ReportData) -> None:
    assert data.verdict.method == "split"
    assert (data.explorer.focus, data.record["method"]) == (1, "naps")
    other = page_data(compare(**(world | {"methods": ["split", "naps", "informed"]}), alphas=CURVE_ALPHAS))
    assert other.verdict.method == "informed"
    assert (other.explorer.focus, other.record["method"]) == (2, "informed")


def test_the_front_has_each_methods_size_and_gap_beside_chance(world: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(1500, size=9000)
    ring = ns.Graph.from_edge_index([source, (source + rng.integers(1, 40, size=9000)) % 1500], num_nodes=1500)
    compared = compare(**(world | {"graph": ring}), alphas=CURVE_ALPHAS)
    found = page_data(compared)
    groups = ns.groups_by_neighbourhood(ring, world["nodes"], seed=3)
    assert [row["method"] for row in found.front] == TITLES
    assert [row["taken"] for row in found.front] == [one.name == found.verdict.method for one in compared]
    for row, result in zip(found.front, compared, strict=True):
        gap = ns.coverage_gap(result.sets, world["labels"], groups)
        assert gap.groups.size > 3
        assert (row["mean_size"], row["gap"], row["chance"]) == (result.mean_size, gap.gap, gap.chance)
        assert row["gap_low"] < row["gap"] < row["gap_high"]
    held = f"which hold {100 * gap.share:.0f} % of the judged nodes"
    assert found.front_over == f"{gap.groups.size} neighbourhoods, {held}"


def test_without_neighbourhoods_the_front_is_over_degrees(world: dict[str, Any]) -> None:
    lone = ns.Graph.from_edge_index(np.arange(1500).reshape(2, 750), num_nodes=1500)
    found = page_data(compare(**(world | {"graph": lone}), alphas=CURVE_ALPHAS))
    assert found.front_over == "1 groups by degree, which hold 100 % of the judged nodes"
    assert all(row["gap_low"] == row["gap"] == row["gap_high"] for row in found.front)


def test_classes_come_with_the_largest_first(data: ReportData) -> None:
    mine = of_method(data.by_class, "NAPS")
    assert [row["order"] for row in mine] == [0, 1, 2, 3, 4]
    sizes = [row["nodes"] for row in mine]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("count", [1, 20, 333])
def test_chance_bands_are_binomial(count: int) -> None:
    low, high = chance_band(count, 0.9)
    assert binom.cdf(round(low * count) - 1, count, 0.9) <= 0.025 <= binom.cdf(round(low * count), count, 0.9)
    assert binom.cdf(round(high * count) - 1, count, 0.9) <= 0.975 <= binom.cdf(round(high * count), count, 0.9)


def test_every_group_has_its_chance_band(data: ReportData) -> None:
    for row in [*data.by_class, *data.by_degree, *size_groups(data.by_size, 5, 0.9)]:
        if row["nodes"]:
            assert (row["chance_low"], row["chance_high"]) == chance_band(row["nodes"], 0.9)


def test_few_set_sizes_stand_alone_and_many_share_ranges() -> None:
    rows = [{"method": "m", "size": size, "nodes": 10, "share": 10 / 590, "coverage": size / 58} for size in range(59)]
    names = [row["sizes"] for row in size_groups(rows, 58, 0.9)]
    assert names == ["0", "1", "2", "3", "4", "5–6", "7–9", "10–14", "15–21", "22–32", "33–48", "49–57", "58"]
    found = size_groups(rows, 58, 0.9)
    assert sum(row["nodes"] for row in found) == 590
    assert sum(row["share"] for row in found) == pytest.approx(1)
    assert found[5]["coverage"] == pytest.approx(5.5 / 58)
    assert [row["sizes"] for row in size_groups(rows[:6], 5, 0.9)] == ["0", "1", "2", "3", "4", "5"]


def test_tables_have_a_line_a_method(data: ReportData) -> None:
    for table in (method_table(data), summary_table(data)):
        assert [line[0][0] for line in table] == TITLES
    assert summary_table(data)[1][1][0] == f"{data.methods[1]['empty']:,}"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (True, "yes"), (12345, "12,345"), (0.12345, "0.123"), (math.nan, "–"), ("x", "x")]
)
def test_cells_are_readable(value: object, text: str) -> None:
    assert cell(value) == text
