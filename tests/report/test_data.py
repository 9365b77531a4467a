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
from napsets.cli.report import comparison_table
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.findings import Finding
from napsets.evaluation.results import Comparison
from napsets.levels import chance_band
from napsets.methods import METHODS
from napsets.report import ReportData, page_data, render
from napsets.report.first_screen import Commands, first_screen
from napsets.report.rows import wilson
from napsets.report.words import cell
from worlds import FOUR, compare_intervals, make_numbers, never_supported

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
    assert [row["method"] for row in data.methods] == data.shown.titles
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
    groupings = [group for group in data.parts.groupings if group.field != "sizes"]
    assert len(groupings) >= 2
    for group in groupings:
        for result, title in zip(data.comparison, data.shown.titles, strict=True):
            rows = of_method(group.rows, title)
            count = sum(row["nodes"] for row in rows)
            assert count == data.comparison.nodes.size
            assert sum(row["coverage"] * row["nodes"] for row in rows) / count == pytest.approx(result.coverage)
            for row in rows:
                assert (row["chance_low"], row["chance_high"]) == chance_band(row["nodes"], 0.9)
                assert row[SIZE[data.comparison.prediction.noun]] >= 0


def test_sizes_up_to_each_size_are_a_distribution(data: ReportData) -> None:
    field = data.parts.up_to_measure.field
    for result, title in zip(data.comparison, data.shown.titles, strict=True):
        rows, sizes = of_method(data.parts.up_to, title), result.sizes.tolist()
        assert [row[field] for row in rows] == sorted(row[field] for row in rows)
        for row in rows:
            assert row["share"] == pytest.approx(sum(size <= row[field] for size in sizes) / len(sizes))
        assert rows[-1]["share"] == pytest.approx(np.isfinite(result.sizes).mean())


def test_the_curve_runs_from_one_percent_to_a_half(data: ReportData) -> None:
    for result, title in zip(data.comparison, data.shown.titles, strict=True):
        rows = of_method(data.curve, title)
        assert [row["alpha"] for row in rows] == list(CURVE_ALPHAS)
        assert [row["coverage"] for row in rows] == result.curve_coverage.tolist()
        assert [row["gap"] for row in rows] == pytest.approx(result.curve_coverage - 1 + np.array(CURVE_ALPHAS))


def test_the_band_is_where_a_method_that_keeps_its_promise_would_be(data: ReportData) -> None:
    calibrated = data.comparison.results[data.shown.place].calibrated
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
    for m, (result, title) in enumerate(zip(comparison, data.shown.titles, strict=True)):
        covered = hits(data, m)
        for row, members in zip(data.balls, balls, strict=True):
            inside = np.isin(comparison.nodes, members)
            sizes = [size for size in result.sizes[inside].tolist() if math.isfinite(size)]
            assert row["nodes"] == members.size
            assert row["judged"] == (members.size >= 30)
            assert row[title] == pytest.approx(covered[inside].mean())
            assert row[f"{title} {data.parts.ball_size.field}"] == pytest.approx(sum(sizes) / len(sizes))
    assert data.left_out + sum(row["nodes"] for row in data.balls) == comparison.nodes.size


def test_the_front_has_the_sizes_of_all_judged_nodes_and_the_gaps(data: ReportData) -> None:
    typical = {"set": np.mean, "interval": np.median}[data.comparison.prediction.noun]
    for row, result in zip(data.front, data.comparison, strict=True):
        size = row[data.parts.size.field]
        assert result.sizes.size == data.comparison.nodes.size
        assert size == pytest.approx(typical(result.sizes))
        assert row["size_low"] < size < row["size_high"]
        assert row["taken"] == (result.name == data.verdict.method)
        gap = result.gaps["neighbourhood"]
        if gap.groups.size >= 5:
            assert (row["gap"], row["chance"]) == (gap.under, gap.chance / 2)


def screen(data: ReportData, **changes: Any) -> Any:
    return first_screen(data.shown, data.parts, replace(data.verdict, **changes), Commands())


def test_the_first_screen_says_whether_chance_explains_the_distance_from_the_target(data: ReportData) -> None:
    noun = data.shown.words.label
    reasons = {0.89: "; 89 is within the range of chance", 0.90: "", 0.7: "; 70 is less than chance usually explains"}
    for coverage, reason in reasons.items():
        done = screen(data, coverage=coverage, band=(0.87, 0.93)).done
        assert f"contains the true {noun} for 90 of 100 nodes{reason}. " in done
    weak = {"class": "No class or group", "value": "No group"}[noun]
    assert screen(data, findings=()).weak == f"{weak} of nodes clearly misses the target."
    biased = Finding("trained on labels", {"labels": 3}, True, ("sample",))
    assert screen(data, findings=(biased,)).weak.startswith("Among the labelled nodes, no ")


def test_the_first_screen_has_one_word_for_one_thing_and_explains_it_once(data: ReportData) -> None:
    first = data.screen
    shown = " ".join((first.withdrawn, first.result, first.example, first.done, first.method, first.weak, *first.steps))
    sizes = data.comparison[data.verdict.method].sizes
    average = data.comparison.prediction.size_text(float(sizes[np.isfinite(sizes)].mean()))
    assert "on average" in first.result.lower()
    assert average in first.result
    assert shown.count("each node (each item of the graph)") == 1
    if data.shown.words.item == "list":
        assert re.findall(r"[\w ]{11}\bsets?\b", shown) == ["prediction set"]
        assert re.findall(r"\w+ labels?\b", shown) == ["their labels"]
        longer = " and “" in first.example and np.quantile(sizes, 0.9) <= 1
        assert first.example.startswith("Some lists are longer: node" if longer else "For example, node")
        empty = round(100 * float(np.mean(sizes == 0)))
        assert (f" {empty} of 100 lists are empty, " in first.example) == (empty > 0)


def test_a_users_words_stand_on_the_whole_page(comparison: Comparison) -> None:
    data = page_data(comparison, words="package, section")
    text = re.sub(r"<(style|script|code)[^>]*>.*?</\1>|<[^>]+>", " ", render(data), flags=re.DOTALL)
    kept = ("Calibration nodes", "Evaluation nodes", "calibration nodes", "calibration node")  # terms of the glossary
    for term in kept:
        text = text.replace(term, "")
    for method in data.listed:
        text = text.replace(method.text, "")
    assert re.findall(r"[^.]*\b(?:nodes?|class(?:es)?)\b[^.]*", re.sub(r"class \d", "", text)) == []
    assert text.count("package") > 20
    assert text.count("section") > 10


def test_the_first_screen_needs_no_command_where_nothing_can_be_run(data: ReportData) -> None:
    nothing = Commands(lambda method: "", lambda method, node: "")
    made = first_screen(data.shown, data.parts, data.verdict, nothing)
    assert made.command == ""
    assert "--help" in made.steps[-1] or made.steps
    assert data.screen.command == f"comparison[{data.verdict.method!r}].calibrated.predict()"
    scope = {"comparison": data.comparison, "napsets": ns}
    assert len(eval(data.screen.command, scope)) > 0
    name = data.comparison.results[data.shown.place].name
    if data.comparison.ids is None and data.comparison.graph.original_ids is None and isinstance(data.first_id, int):
        assert eval(data.commands.inspect(name, data.first_id), scope).node == data.first_id


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
        assert (row["mean_size"], row["gap"], row["chance"]) == (result.mean_size, gap.under, gap.chance / 2)
        assert row["gap_low"] <= row["gap"] <= row["gap_high"]
    held = f"with {100 * gap.share:.0f} % of the evaluation nodes"
    assert data.front_over == f"{gap.groups.size} neighbourhoods {held}"


def test_without_neighbourhoods_the_front_is_over_degrees(world: dict[str, Any]) -> None:
    lone = ns.Graph.from_edge_index(np.arange(1500).reshape(2, 750), num_nodes=1500)
    data = page_data(compare(**(world | {"graph": lone}), alphas=CURVE_ALPHAS))
    assert data.front_over == "1 group by degree with 100 % of the evaluation nodes"
    assert all(row["gap_low"] == row["gap"] == row["gap_high"] for row in data.front)


def test_the_page_is_about_the_method_to_take_or_the_first_beside_it(world: dict[str, Any], data: ReportData) -> None:
    taken = [result.name for result in data.comparison].index(data.verdict.method)
    assert (data.shown.place, data.shown.taken) == (max(taken, 1), taken)
    assert {row["method"] for row in data.front if row["taken"]} == {data.listed[taken].title}


def test_cards_and_tables_say_what_the_rows_say(data: ReportData) -> None:
    row = data.methods[data.shown.taken]
    cards = {name: (value, note) for name, value, note in data.cards}
    assert cards["Coverage"][0] == percent(row["coverage"])
    assert cards["Worst neighbourhood"][0] == percent(row["lowest"])
    held = sum(part.size for part in data.comparison.partition) / row["nodes"]
    count = f"{row['neighbourhoods']} neighbourhood{'s' * (row['neighbourhoods'] != 1)}"
    assert cards["Worst neighbourhood"][1].endswith(
        f"{count} compared, with {percent(held, 0)} of the evaluation nodes"
    )
    assert data.cards[-1][1] == f"{row['infinite']:,}"
    for table in (data.parts.table(data.methods), data.parts.sizes(data.methods)):
        assert [cells[0][0] for cells in table.rows] == data.shown.titles
        assert all(len(cells) == len(table.head) for cells in table.rows)
    for cells, row in zip(data.parts.sizes(data.methods).rows, data.methods, strict=True):
        assert cells[-1][0] == f"{row['infinite']:,}"


def test_the_neighbourhoods_listed_are_those_covered_least(data: ReportData) -> None:
    title = data.shown.titles[data.shown.place]
    judged = sorted(ball[title] for ball in data.balls if ball["nodes"] >= 30)
    assert [ball[title] for ball in data.worst] == judged[:6]


def supported(comparison: Comparison) -> np.ndarray:
    finite = np.isfinite([result.prediction.thresholds for result in comparison])
    return finite[finite.mean(axis=1) >= 0.5].all(axis=0)  # methods of mostly full sets would leave hardly any node


def test_supported_nodes_are_those_where_every_method_that_has_support_has_it(world, comparison, monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    rows = page_data(compare(**(world | {"methods": [*FOUR, "nowhere"], "alphas": CURVE_ALPHAS}))).methods
    finite = supported(comparison)
    assert 0 < finite.sum() < finite.size
    assert [row["supported"] for row in rows] == [finite.sum()] * 5
    own = [finite & np.isfinite(result.sets.thresholds) for result in comparison]
    sizes = [result.sets.sizes[nodes].mean() for result, nodes in zip(comparison, own, strict=True)]
    assert [row["supported_size"] for row in rows[:4]] == sizes
    assert np.isnan(rows[4]["supported_size"])


def test_set_sizes_add_up_to_all_nodes(sets_data: ReportData, comparison: Comparison) -> None:
    for result, row, cells in zip(
        comparison, sets_data.methods, sets_data.parts.sizes(sets_data.methods).rows, strict=True
    ):
        rows = of_method(sets_data.parts.details["by_size"], result.title)
        assert sum(row["nodes"] for row in rows) == len(result.sets)
        assert sum(row["size"] * row["share"] for row in rows) == pytest.approx(result.mean_size)
        assert row["empty"] == (result.sets.sizes == 0).sum()
        assert row["full"] == (result.sets.sizes == 5).sum()
        assert cells[1][0] == f"{row['empty']:,}"


def test_a_method_of_whole_lines_alone_is_named_where_all_others_are_finite(monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    compared = compare_intervals(**make_numbers(), methods=["naps", "split", "nowhere"], alphas=CURVE_ALPHAS)
    data = page_data(compared)
    title = compared["nowhere"].title
    assert data.parts.details["shared"] == compared.finite.mean()
    table = data.parts.table(data.methods)
    assert any(f"of all methods except {title} are finite" in note for _, note in table.head)
    assert [row[3][0] for row in table.rows] == [*(f"{row['shared_width']:.3g}" for row in data.methods[:2]), "∞"]
    shown_table = comparison_table(compared.rows(), ns.PredictionIntervals)
    shown = str(shown_table.renderables[0])
    share = 100 * data.parts.details["shared"]
    assert f"the intervals of all methods except {title} are finite on {share:.1f} % of the nodes" in shown
    name, value, note = data.cards[1]
    assert (name, value) == ("Mean width", "∞")
    assert note.endswith(f"where all are finite {compared.shared_sizes()[0][0]:.3g}") or data.verdict.method != "naps"


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
