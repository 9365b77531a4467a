"""The rows of a page, about sets or about intervals, are the library's numbers."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom, binom, binomtest

import napsets as ns
from napsets.checks.text import percent
from napsets.evaluation.comparison import CURVE_ALPHAS, compare, compare_intervals
from napsets.levels import chance_band
from napsets.report import ReportData, page_data
from napsets.report.chart_parts import wilson
from napsets.report.summary import Vocabulary, cell, summarise
from worlds import FOUR, make_numbers

#: The column of the mean size in rows of groups.
SIZE = {"set": "mean_size", "interval": "mean_width"}


def of_method(rows: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == title]


def hits(data: ReportData, m: int) -> np.ndarray:
    """Whether a method covers each of the judged nodes, counted one by one."""
    prediction = data.comparison.results[m].prediction
    truth = data.comparison.truth[data.comparison.nodes].tolist()
    if hasattr(prediction, "lower"):
        return np.array([a <= y <= b for a, b, y in zip(prediction.lower, prediction.upper, truth, strict=True)])
    return np.array([bool(prediction.member[row, y]) for row, y in enumerate(truth)])


def test_there_is_a_row_per_method_with_its_metrics(data: ReportData) -> None:
    assert [row["method"] for row in data.methods] == [method.title for method in data.shown]
    for m, (row, result) in enumerate(zip(data.methods, data.comparison, strict=True)):
        assert row["name"] == result.name
        assert row["coverage"] == result.coverage == pytest.approx(hits(data, m).mean())
        assert row["low"] < row["coverage"] < row["high"]
        for name in ("pccv", "infinite", *result.measures):
            assert row[name] == getattr(result, name) or math.isnan(row[name])


def test_the_lowest_neighbourhood_explains_pccv(data: ReportData) -> None:
    for row in data.methods:
        worst = max(abs(row["lowest"] - 0.9), abs(row["highest"] - 0.9))
        assert worst == pytest.approx(row["pccv"])


def test_groups_add_up_to_the_whole_each_with_its_chance_band(data: ReportData) -> None:
    names = [name for name in ("by_class", "by_degree", "by_width", "by_prediction") if hasattr(data, name)]
    assert len(names) >= 2
    for name in names:
        for result, title in zip(data.comparison, data.kind.titles, strict=True):
            rows = of_method(getattr(data, name), title)
            count = sum(row["nodes"] for row in rows)
            assert count == data.comparison.nodes.size
            assert sum(row["coverage"] * row["nodes"] for row in rows) / count == pytest.approx(result.coverage)
            for row in rows:
                assert (row["chance_low"], row["chance_high"]) == chance_band(row["nodes"], 0.9)
                assert row[SIZE[data.comparison.prediction.noun]] >= 0


def test_the_curve_runs_from_one_percent_to_a_half(data: ReportData) -> None:
    for result, title in zip(data.comparison, data.kind.titles, strict=True):
        rows = of_method(data.curve, title)
        assert [row["alpha"] for row in rows] == list(CURVE_ALPHAS)
        assert [row["coverage"] for row in rows] == result.curve_coverage.tolist()
        assert [row["gap"] for row in rows] == pytest.approx(result.curve_coverage - 1 + np.array(CURVE_ALPHAS))


def test_the_band_is_where_a_method_that_keeps_its_promise_would_be(data: ReportData) -> None:
    calibrated = data.comparison.results[data.explorer.focus].calibrated
    labels = (calibrated.scored.level_nodes if calibrated.is_exact else calibrated.scored.calibration).size
    nodes = data.comparison.nodes.size
    for row, alpha in zip(data.band, CURVE_ALPHAS, strict=True):
        place = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
        if place > labels:
            assert row["gap_low"] == row["gap_high"] == pytest.approx(alpha)
            continue
        law = betabinom(nodes, place, labels + 1 - place)
        assert row["gap_low"] == pytest.approx(law.ppf(0.025) / nodes - (1 - alpha))
        assert row["gap_high"] == pytest.approx(law.ppf(0.975) / nodes - (1 - alpha))


def test_neighbourhoods_carry_each_methods_coverage_and_size(data: ReportData) -> None:
    comparison = data.comparison
    balls = ns.neighbourhood_partition(comparison.graph, comparison.nodes, min_size=10, seed=3)
    assert len(data.balls) == len(balls) > 0
    for m, (result, title) in enumerate(zip(comparison, data.kind.titles, strict=True)):
        covered = hits(data, m)
        for row, members in zip(data.balls, balls, strict=True):
            inside = np.isin(comparison.nodes, members)
            sizes = [size for size in result.sizes[inside].tolist() if math.isfinite(size)]
            assert row["nodes"] == members.size
            assert row["judged"] == (members.size >= 30)
            assert row[title] == pytest.approx(covered[inside].mean())
            assert row[f"{title} {data.kind.ball_size.field}"] == pytest.approx(sum(sizes) / len(sizes))
    assert data.left_out + sum(row["nodes"] for row in data.balls) == comparison.nodes.size


def test_the_front_has_the_sizes_of_all_judged_nodes_and_the_gaps(data: ReportData) -> None:
    typical = {"set": np.mean, "interval": np.median}[data.comparison.prediction.noun]
    for row, result in zip(data.front, data.comparison, strict=True):
        size = row[data.kind.curve_size.field]
        assert result.sizes.size == data.comparison.nodes.size
        assert size == pytest.approx(typical(result.sizes))
        assert row["size_low"] < size < row["size_high"]
        assert row["taken"] == (result.name == data.verdict.method)
        gap = result.gaps["neighbourhood"]
        if gap.groups.size > 2:
            assert (row["gap"], row["chance"]) == (gap.gap, gap.chance)


def test_the_first_screen_says_whether_chance_explains_the_distance_from_the_target(data: ReportData) -> None:
    noun = {"set": "class", "interval": "value"}[data.comparison.prediction.noun]
    reasons = {0.89: "; 89 is within the range of chance", 0.90: "", 0.7: "; 70 is less than chance usually explains"}
    for coverage, reason in reasons.items():
        verdict = replace(data.verdict, coverage=coverage, band=(0.87, 0.93))
        done = summarise(replace(data, verdict=verdict), Vocabulary()).done
        assert f"contains the true {noun} for 90 of 100 nodes{reason}. " in done
        assert ("less than chance usually explains" in verdict.certainty) == (coverage < 0.87)
    weak = summarise(replace(data, verdict=replace(data.verdict, weak=())), Vocabulary()).weak
    assert weak == {"class": "No class or group", "value": "No group"}[noun] + " of nodes clearly misses the target."


def test_the_first_screen_has_one_word_for_one_thing_and_explains_it_once(data: ReportData) -> None:
    first = summarise(data, Vocabulary())
    shown = " ".join((first.withdrawn, first.result, first.example, first.done, first.method, first.weak, *first.steps))
    size = data.comparison.prediction.size_text(data.verdict.size)
    assert f"{size} on average" in first.result
    assert shown.count("each node (each item of the graph)") == 1
    assert "item of the graph" not in summarise(data, Vocabulary.parse("package, section")).done
    if data.kind.noun == "list":
        assert re.findall(r"[\w ]{11}\bsets?\b", shown) == ["prediction set"]
        assert re.findall(r"\w+ labels?\b", shown) == ["their labels"]
        sizes: Any = data.comparison[data.verdict.method].sizes
        longer = " and “" in first.example and np.quantile(sizes, 0.9, method="nearest") <= 1
        assert first.example.startswith("Some lists are longer: node" if longer else "For example, node")
        assert first.example.count("“") >= 2
        empty = round(100 * float(np.mean(sizes == 0)))
        assert (f" {empty} of 100 lists are empty, " in first.example) == (empty > 0)
    assert "even" not in re.findall(r"\w+", shown)


def test_the_front_has_each_methods_gap_beside_chance(world: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(1500, size=9000)
    ring = ns.Graph.from_edge_index([source, (source + rng.integers(1, 40, size=9000)) % 1500], num_nodes=1500)
    comparison = compare(**(world | {"graph": ring}), alphas=CURVE_ALPHAS)
    data = page_data(comparison)
    groups = ns.groups_by_neighbourhood(ring, world["nodes"], seed=3)
    for row, result in zip(data.front, comparison, strict=True):
        gap = ns.coverage_gap(result.sets, world["labels"], groups)
        assert gap.groups.size > 3
        assert (row["mean_size"], row["gap"], row["chance"]) == (result.mean_size, gap.gap, gap.chance)
        assert row["gap_low"] < row["gap"] < row["gap_high"]
    held = f"with {100 * gap.share:.0f} % of the evaluation nodes"
    assert data.front_over == f"{gap.groups.size} neighbourhoods {held}"


def test_without_neighbourhoods_the_front_is_over_degrees(world: dict[str, Any]) -> None:
    lone = ns.Graph.from_edge_index(np.arange(1500).reshape(2, 750), num_nodes=1500)
    data = page_data(compare(**(world | {"graph": lone}), alphas=CURVE_ALPHAS))
    assert data.front_over == "1 group by degree with 100 % of the evaluation nodes"
    assert all(row["gap_low"] == row["gap"] == row["gap_high"] for row in data.front)


def test_the_page_is_about_the_method_to_take_or_the_first_beside_it(world: dict[str, Any], data: ReportData) -> None:
    taken = [result.name for result in data.comparison].index(data.verdict.method)
    assert data.explorer.focus == max(taken, 1)
    assert data.record["method"] == data.comparison.results[max(taken, 1)].name
    assert {row["method"] for row in data.front if row["taken"]} == {data.shown[taken].title}


def test_the_verdict_decides_what_the_page_is_about(world: dict[str, Any], sets_data: ReportData) -> None:
    assert (sets_data.verdict.method, sets_data.record["method"]) == ("split", "naps")
    other = page_data(compare(**(world | {"methods": ["split", "naps", "informed"]}), alphas=CURVE_ALPHAS))
    assert (other.verdict.method, other.explorer.focus, other.record["method"]) == ("informed", 2, "informed")


def test_cards_and_tables_say_what_the_rows_say(data: ReportData) -> None:
    row = data.methods[[result.name for result in data.comparison].index(data.verdict.method)]
    cards = {card["name"]: card for card in data.kind.cards(data)}
    assert cards["Coverage"]["value"] == percent(row["coverage"])
    assert cards["Worst neighbourhood"]["value"] == percent(row["lowest"])
    held = sum(part.size for part in data.comparison.partition) / row["nodes"]
    count = f"{row['neighbourhoods']} neighbourhood{'s' * (row['neighbourhoods'] != 1)}"
    note = f"{count} compared, with {percent(held, 0)} of the evaluation nodes"
    assert cards["Worst neighbourhood"]["note"].endswith(note)
    assert list(cards.values())[-1]["value"] == f"{row['infinite']:,}"
    for table in (data.kind.method_table(data), data.kind.size_table(data)):
        assert [cells[0][0] for cells in table] == data.kind.titles
    for cells, row in zip(data.kind.size_table(data), data.methods, strict=True):
        assert cells[-1][0] == f"{row['infinite']:,}"


def test_the_truth_of_a_neighbour_is_shown_only_where_it_calibrates(data: ReportData) -> None:
    """Truth that judges is shown of the node itself, and of nobody else."""
    explorer, truth = data.explorer, data.comparison.truth
    shown = getattr(explorer, "neighbour_label", None)
    known = ~np.isnan(explorer.neighbour_target) if shown is None else shown >= 0
    shown = explorer.neighbour_target if shown is None else shown
    calibrates = set(data.comparison.data.calibration.tolist())
    position = {str(name): node for node, name in enumerate(data.names.tolist())}
    nodes = np.array([position[name] for name in explorer.neighbour_names])
    assert known.tolist() == [node in calibrates for node in nodes.tolist()]
    assert np.array_equal(shown[known], truth[nodes[known]])


def test_a_page_wants_the_error_rates_that_it_draws() -> None:
    compared = compare_intervals(**make_numbers(n=300, labelled=150), methods=["split"])
    with pytest.raises(ns.InvalidInputError, match="must hold the error rates that the page draws"):
        page_data(compared)


def test_class_names_must_match(comparison, interval_comparison) -> None:
    with pytest.raises(ns.InvalidInputError, match="`class_names` must have one name per class, 5; got 2"):
        page_data(comparison, class_names=["a", "b"])
    with pytest.raises(ns.InvalidInputError, match="`class_names` must be left out of a page about intervals; got 2"):
        page_data(interval_comparison, class_names=["a", "b"])


def test_ids_must_have_an_entry_per_node(data: ReportData) -> None:
    with pytest.raises(ns.InvalidInputError, match=r"`ids` must have one entry per node, \d+; got shape \(2,\)"):
        page_data(data.comparison, ids=["a", "b"])


def test_subgraphs_show_the_ids_of_the_graph_they_came_from(world: dict[str, Any]) -> None:
    keep = np.arange(100, 1500)
    calibration, nodes = (np.flatnonzero(np.isin(keep, world[name])) for name in ("calibration", "nodes"))
    part = [world["graph"].subgraph(keep), world["probabilities"][keep], world["labels"][keep]]
    data = page_data(compare(*part, calibration, nodes, methods=FOUR, alphas=CURVE_ALPHAS))
    assert data.explorer.names == [str(node + 100) for node in data.explorer.nodes]


def test_the_same_comparison_gives_the_same_bytes_and_every_chart_has_its_place(data, tmp_path: Path) -> None:
    paths = [ns.report.write_page(tmp_path / name, data.comparison) for name in ("a.html", "b.html")]
    first, second = (path.read_text("utf-8") for path in paths)
    assert first == second
    places = re.findall(r'data-chart="([^"]+)"', first.split('<script type="application/json"')[0])
    specs = re.search(r'id="data-specs">(.*?)</script>', first, re.DOTALL)
    assert specs is not None
    assert sorted(places) == sorted(json.loads(specs[1]))
    assert len(first) < 3_000_000


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (7, 7), (90, 100), (1, 3)])
def test_intervals_of_shares_are_wilsons(hits: int, count: int) -> None:
    expected = binomtest(hits, count).proportion_ci(0.95, method="wilson")
    assert wilson(hits, count) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_nodes_have_no_interval() -> None:
    assert all(math.isnan(end) for end in wilson(0, 0))


@pytest.mark.parametrize("count", [1, 20, 333])
def test_chance_bands_are_binomial(count: int) -> None:
    low, high = chance_band(count, 0.9)
    assert binom.cdf(round(low * count) - 1, count, 0.9) <= 0.025 <= binom.cdf(round(low * count), count, 0.9)
    assert binom.cdf(round(high * count) - 1, count, 0.9) <= 0.975 <= binom.cdf(round(high * count), count, 0.9)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (True, "yes"), (12345, "12,345"), (0.12345, "0.123"), (math.nan, "–"), ("x", "x")]
)
def test_cells_are_readable(value: object, text: str) -> None:
    assert cell(value) == text
