"""What only a page about intervals shows: widths, fifths of the nodes, and what explains an interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.cli.report import comparison_table
from napsets.evaluation.comparison import CURVE_ALPHAS, compare_intervals
from napsets.evaluation.results import Comparison
from napsets.methods import METHODS
from napsets.report import ReportData, page_data
from napsets.report.charts import charts
from napsets.report.intervals_page import is_skewed
from worlds import make_numbers, never_supported


@pytest.fixture
def compared(interval_comparison: Comparison) -> Comparison:
    return interval_comparison


@pytest.fixture
def data(intervals_data: ReportData) -> ReportData:
    return intervals_data


def of_method(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == name]


def hits(compared: Comparison, m: int) -> list[bool]:
    intervals = compared.results[m].intervals
    truth = compared.targets[compared.nodes]
    return [bool(a <= y <= b) for a, b, y in zip(intervals.lower, intervals.upper, truth, strict=True)]


@pytest.mark.parametrize("m", range(5))
def test_widths_are_a_distribution_that_ends_where_intervals_have_no_end(data, compared: Comparison, m) -> None:
    result = compared.results[m]
    rows = of_method(data.widths, result.title)
    widths = result.sizes.tolist()
    for row in rows:
        assert row["share"] == pytest.approx(sum(width <= row["width"] for width in widths) / len(widths))
    assert rows[-1]["share"] == pytest.approx(1 - result.infinite_rate)
    assert [row["width"] for row in rows] == sorted(row["width"] for row in rows)


def test_widths_are_compared_where_all_are_finite_and_neighbourhoods_have_their_mean_target(data, compared) -> None:
    finite = [all(math.isfinite(result.sizes[i]) for result in compared) for i in range(compared.nodes.size)]
    assert data.shared == pytest.approx(sum(finite) / len(finite))
    balls = ns.neighbourhood_partition(compared.graph, compared.nodes, min_size=10, seed=3)
    for row, ball in zip(data.balls, balls, strict=False):
        assert row["target"] == pytest.approx(compared.targets[ball].mean())


def mean_width_card(comparison: Comparison) -> dict[str, Any]:
    data = page_data(comparison)
    return next(card for card in data.kind.cards(data) if card["name"] == "Mean width")


def test_widths_are_skewed_where_a_few_are_far_wider() -> None:
    assert not is_skewed([np.array([1.0, 1.1, 1.2]), np.array([np.inf, 1.3])])
    assert is_skewed([np.array([0.01, 0.5, 10.0, np.inf])])
    assert not is_skewed([np.array([0.0, 0.5, 10.0])])
    assert not is_skewed([np.array([np.inf])])


@pytest.mark.parametrize("m", range(5))
@pytest.mark.parametrize(("kind", "name"), [("by_degree", "degree"), ("by_prediction", "prediction")])
def test_fifths_hold_all_nodes_and_the_coverage_of_each(data, compared: Comparison, m, kind, name) -> None:
    values = (compared.graph.degrees if name == "degree" else compared.predicted)[compared.nodes]
    covered, sizes = hits(compared, m), compared.results[m].sizes
    rows = of_method(getattr(data, kind), compared.results[m].title)
    assert sum(row["nodes"] for row in rows) == compared.nodes.size
    order = sorted(values.tolist())
    lows = sorted({order[k * len(order) // 5] for k in range(5)})
    for row, low, high in zip(rows, lows, [*lows[1:], math.inf], strict=True):
        mine = [i for i, value in enumerate(values.tolist()) if low <= value < high]
        assert row["nodes"] == len(mine)
        assert row["coverage"] == pytest.approx(sum(covered[i] for i in mine) / len(mine))
        finite = [float(sizes[i]) for i in mine if math.isfinite(sizes[i])]
        assert row["mean_width"] == pytest.approx(sum(finite) / len(finite))
        band = binom.ppf([0.025, 0.975], len(mine), 0.9) / len(mine)
        assert (row["chance_low"], row["chance_high"]) == pytest.approx(tuple(band))


def test_each_methods_own_widths_make_its_fifths(data, compared: Comparison) -> None:
    for m, result in enumerate(compared):
        rows = of_method(data.by_width, result.title)
        assert sum(row["nodes"] for row in rows) == compared.nodes.size
        share = sum(row["nodes"] * row["coverage"] for row in rows) / compared.nodes.size
        assert share == pytest.approx(sum(hits(compared, m)) / compared.nodes.size)
        assert [row["coverage"] for row in rows] == pytest.approx(result.gaps["width"].coverage.tolist())
    assert of_method(data.by_width, "NAPS")[-1]["to"] == "∞"


def test_the_explorer_has_the_librarys_intervals_and_its_words(data, compared: Comparison) -> None:
    explored = data.explorer
    assert explored.columns == ["lower", "upper"]
    for i in range(0, explored.nodes.size, 29):
        node = int(explored.nodes[i])
        assert explored.target[i] == compared.targets[node]
        for m, result in enumerate(compared):
            seen = inspect_node(result.calibrated, node)
            assert (explored.lower[m, i], explored.upper[m, i]) == (seen.lower, seen.upper)
            assert explored.thresholds[m, i] == seen.threshold
            assert explored.threshold_text[m][i] == seen.reason()
            s = explored.scored[m]
            assert np.array_equal(explored.outputs[s, i], seen.outputs)
            assert np.array_equal(explored.model[i], compared.data.outputs[node])
            e = explored.informed[s]
            assert (e >= 0) == (seen.evidence is not None)
            if seen.evidence is not None:
                assert explored.speaking[e, i] == len(seen.evidence.voices)
                for v, voice in enumerate(seen.evidence.voices[:6]):
                    assert explored.neighbour_names[explored.voices[e, i, v]] == data.names[voice.node]
                    assert explored.neighbour_target[explored.voices[e, i, v]] == voice.target
                    assert explored.voice_shifts[e, i, v] == pytest.approx(voice.shifts, rel=1e-5)


def test_cards_and_tables_say_the_numbers(data, compared: Comparison) -> None:
    values = {card["name"]: card["value"] for card in data.kind.cards(data)}
    assert values["Coverage"] == f"{100 * compared['auto'].coverage:.1f} %"
    assert values["Mean width"] == f"{compared['auto'].mean_width:.3g}"
    assert values["The whole line"] == str(compared["auto"].infinite)
    table = data.kind.method_table(data)
    assert [row[0][0] for row in table] == [result.title for result in compared]
    naps = table[1]
    assert naps[2] == ("∞", "")
    assert naps[4][0] == f"{100 * compared['naps'].infinite_rate:.1f} %"
    assert data.kind.size_table(data)[1][5][0] == str(compared["naps"].infinite)


@pytest.mark.parametrize("degree", [4, 6, 7])
def test_the_front_uses_all_485_nodes_wherever_naps_gives_whole_lines(degree: int) -> None:
    numbers = make_numbers(n=970, degree=degree, labelled=485)
    compared = compare_intervals(**numbers, methods=["split", "naps", "naps-h"], alphas=CURVE_ALPHAS)
    assert compared.nodes.size == 485
    assert 0 < np.isfinite(compared["naps"].sizes).sum() < 485
    data = page_data(compared)
    medians = [sorted(result.sizes.tolist())[242] for result in compared]
    assert [row["median_width"] for row in data.front] == medians
    drawn = charts(data)["front"]
    assert [row["method"] for row in drawn["data"]["values"]] == [
        result.title for result, median in zip(compared, medians, strict=True) if math.isfinite(median)
    ]
    assert all(math.isfinite(row["size_high"]) for row in drawn["data"]["values"])


def test_where_the_mean_is_infinite_the_card_says_where_all_are_finite() -> None:
    compared = compare_intervals(**make_numbers(), methods=["naps", "split"], alphas=CURVE_ALPHAS)
    card = mean_width_card(compared)
    assert compared.best.name == "naps"
    assert card["value"] == "∞"
    assert card["note"] == f"where all are finite {compared.shared_sizes()[0][0]:.3g}"


def test_a_method_of_whole_lines_alone_is_named_where_all_others_are_finite(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    compared = compare_intervals(**make_numbers(), methods=["split", "naps", "nowhere"], alphas=CURVE_ALPHAS)
    data = page_data(compared)
    title = compared["nowhere"].title
    assert (data.shared, data.shared_by) == (compared.finite.mean(), f"all methods except {title}")
    widths = [row[3][0] for row in data.kind.method_table(data)]
    assert widths == [*(f"{row['shared_width']:.3g}" for row in data.methods[:2]), "∞"]
    page = ns.report.write_page(tmp_path / "page.html", compared).read_text(encoding="utf-8")
    assert (
        f"{100 * data.shared:.1f} % of the evaluation nodes where the intervals of all methods except {title} are"
        in page
    )
    assert f"Not drawn, because most of its intervals are the whole line: {title}. " in page
    shown_table = comparison_table(compared.rows(), ns.PredictionIntervals)
    assert "∞" in [str(cell) for cell in shown_table.renderables[1].columns[3].cells]
    shown = str(shown_table.renderables[0])
    assert f"the intervals of all methods except {title} are finite on {100 * data.shared:.1f} % of the nodes" in shown
    card = mean_width_card(compare_intervals(**make_numbers(), methods=["nowhere", "naps"], alphas=CURVE_ALPHAS))
    assert (card["value"], card["note"]) == ("∞", "")
