"""The rows of a page about intervals are the library's numbers, counted slowly here."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom, binom

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.cli._comparison import interval_comparison_table
from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.evaluation.interval_comparison import IntervalComparison, compare_intervals
from napsets.methods import METHODS
from napsets.report.interval_data import IntervalReportData, interval_page_data, is_skewed
from napsets.report.interval_words import interval_cards, interval_table, width_table
from worlds import make_numbers, never_supported


@pytest.fixture(scope="module")
def found() -> IntervalComparison:
    return compare_intervals(**make_numbers(), seed=3, alphas=CURVE_ALPHAS)


@pytest.fixture(scope="module")
def data(found: IntervalComparison) -> IntervalReportData:
    return interval_page_data(found, dataset="ring", model="noise")


def of_method(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == name]


def hits(found: IntervalComparison, m: int) -> list[bool]:
    made = found.results[m].intervals
    truth = found.targets[found.nodes]
    return [bool(a <= y <= b) for a, b, y in zip(made.lower, made.upper, truth, strict=True)]


def test_the_front_has_widths_where_all_are_finite_and_the_gaps(data, found: IntervalComparison) -> None:
    finite = [all(math.isfinite(result.sizes[i]) for result in found) for i in range(found.nodes.size)]
    assert data.shared == pytest.approx(sum(finite) / len(finite))
    for row, result in zip(data.front, found, strict=True):
        assert row["shared_width"] == pytest.approx(result.sizes[np.array(finite)].mean())
        assert row["size_low"] < row["shared_width"] < row["size_high"]
        assert (row["gap"], row["chance"]) == (result.gaps["neighbourhood"].gap, result.gaps["neighbourhood"].chance)
    assert [row["method"] for row in data.front if row["taken"]] == ["Auto"]


@pytest.mark.parametrize("m", range(5))
def test_widths_are_a_distribution_that_ends_where_intervals_have_no_end(data, found: IntervalComparison, m) -> None:
    result = found.results[m]
    rows = of_method(data.widths, result.title)
    widths = result.sizes.tolist()
    for row in rows:
        assert row["share"] == pytest.approx(sum(width <= row["width"] for width in widths) / len(widths))
    assert rows[-1]["share"] == pytest.approx(1 - result.infinite_rate)
    assert [row["width"] for row in rows] == sorted(row["width"] for row in rows)


def test_widths_are_skewed_where_a_few_are_far_wider() -> None:
    assert not is_skewed([np.array([1.0, 1.1, 1.2]), np.array([np.inf, 1.3])])
    assert is_skewed([np.array([0.01, 0.5, 10.0, np.inf])])
    assert not is_skewed([np.array([0.0, 0.5, 10.0])])
    assert not is_skewed([np.array([np.inf])])


@pytest.mark.parametrize("m", range(5))
@pytest.mark.parametrize(("kind", "name"), [("by_degree", "degree"), ("by_prediction", "prediction")])
def test_fifths_hold_all_nodes_and_the_coverage_of_each(data, found: IntervalComparison, m, kind, name) -> None:
    values = (found.graph.degrees if name == "degree" else found.predicted)[found.nodes]
    covered, sizes = hits(found, m), found.results[m].sizes
    rows = of_method(getattr(data, kind), found.results[m].title)
    assert sum(row["nodes"] for row in rows) == found.nodes.size
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


def test_each_methods_own_widths_make_its_fifths(data, found: IntervalComparison) -> None:
    for m, result in enumerate(found):
        rows = of_method(data.by_width, result.title)
        assert sum(row["nodes"] for row in rows) == found.nodes.size
        share = sum(row["nodes"] * row["coverage"] for row in rows) / found.nodes.size
        assert share == pytest.approx(sum(hits(found, m)) / found.nodes.size)
        assert [row["coverage"] for row in rows] == pytest.approx(result.gaps["width"].coverage.tolist())
    assert of_method(data.by_width, "NAPS")[-1]["to"] == "∞"


def test_the_band_is_where_an_exact_method_would_be(data, found: IntervalComparison) -> None:
    labels = int(found["auto"].calibrated.scored.apart.size)
    for row, alpha in zip(data.band, CURVE_ALPHAS, strict=True):
        place = math.ceil((labels + 1) * (1 - alpha) - 1e-9)
        if place > labels:
            assert row["gap_low"] == row["gap_high"] == pytest.approx(alpha)
            continue
        law = betabinom(found.nodes.size, place, labels + 1 - place)
        assert row["gap_low"] == pytest.approx(law.ppf(0.025) / found.nodes.size - (1 - alpha))
        assert row["gap_high"] == pytest.approx(law.ppf(0.975) / found.nodes.size - (1 - alpha))


def test_neighbourhoods_have_the_coverage_of_their_nodes(data, found: IntervalComparison) -> None:
    assert data.balls
    balls = ns.neighbourhood_partition(found.graph, found.nodes, min_size=10, seed=3)
    for row, ball in zip(data.balls, balls, strict=False):
        inside = np.isin(found.nodes, ball)
        assert row["nodes"] == ball.size
        assert row["target"] == pytest.approx(found.targets[ball].mean())
        assert row["Auto"] == pytest.approx(np.array(hits(found, 4))[inside].mean())
        assert row["Auto width"] == pytest.approx(found["auto"].sizes[inside].mean())


def test_the_explorer_has_the_librarys_intervals_and_its_words(data, found: IntervalComparison) -> None:
    explored = data.explorer
    assert explored.columns == ["lower", "upper"]
    for i in range(0, explored.nodes.size, 29):
        node = int(explored.nodes[i])
        assert explored.target[i] == found.targets[node]
        for m, result in enumerate(found):
            seen = inspect_node(result.calibrated, node)
            assert (explored.lower[m, i], explored.upper[m, i]) == (seen.lower, seen.upper)
            assert explored.thresholds[m, i] == seen.threshold
            assert explored.told[m][i] == seen.reason()
            s = explored.scored[m]
            assert np.array_equal(explored.outputs[s, i], seen.outputs)
            assert np.array_equal(explored.model[i], found.given.outputs[node])
            e = explored.informed[s]
            assert (e >= 0) == (seen.evidence is not None)
            if seen.evidence is not None:
                assert explored.speaking[e, i] == len(seen.evidence.voices)
                for v, voice in enumerate(seen.evidence.voices[:6]):
                    assert explored.neighbour_names[explored.voices[e, i, v]] == str(voice.node)
                    assert explored.neighbour_target[explored.voices[e, i, v]] == voice.target
                    assert explored.voice_shifts[e, i, v] == pytest.approx(voice.shifts, rel=1e-5)


def test_a_target_that_judges_is_shown_of_its_own_node_alone(data, found: IntervalComparison) -> None:
    """Neighbours show the targets of those that calibrate, and of nobody else."""
    calibrates = set(found.given.calibration.tolist())
    for name, target in zip(data.explorer.neighbour_names, data.explorer.neighbour_target.tolist(), strict=True):
        assert math.isnan(target) == (int(name) not in calibrates)


def test_cards_and_tables_say_the_numbers(data, found: IntervalComparison) -> None:
    told = {card["name"]: card["value"] for card in interval_cards(data)}
    assert told["Coverage"] == f"{100 * found['auto'].coverage:.1f} %"
    assert told["Mean width"] == f"{found['auto'].mean_width:.3g}"
    assert told["The whole line"] == str(found["auto"].infinite)
    table = interval_table(data)
    assert [row[0][0] for row in table] == [result.title for result in found]
    naps = table[1]
    assert naps[2] == ("∞", "")
    assert naps[4][0] == f"{100 * found['naps'].infinite_rate:.1f} %"
    assert width_table(data)[1][5][0] == str(found["naps"].infinite)


def test_where_one_mean_is_infinite_the_card_says_where_all_are_finite() -> None:
    found = compare_intervals(**make_numbers(), methods=["split", "naps"], alphas=CURVE_ALPHAS)
    card = next(card for card in interval_cards(interval_page_data(found)) if card["name"] == "Mean width")
    assert card["value"] == "∞"
    shared = found.shared_widths()
    assert f"where all are finite {shared[1][0]:.3g} against CQR split {shared[0][0]:.3g}" in card["note"]


def test_a_method_of_whole_lines_alone_is_named_where_all_others_are_finite(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    found = compare_intervals(**make_numbers(), methods=["split", "naps", "nowhere"], alphas=CURVE_ALPHAS)
    data = interval_page_data(found)
    title = found["nowhere"].title
    assert (data.shared, data.shared_by) == (found.finite.mean(), f"all methods but {title}")
    widths = [row[3][0] for row in interval_table(data)]
    assert widths == [*(f"{row['shared_width']:.3g}" for row in data.front[:2]), "∞"]
    page = ns.report.write_page(tmp_path / "page.html", found).read_text(encoding="utf-8")
    assert f"{100 * data.shared:.1f} % of the judged nodes where the intervals of all methods but {title} are" in page
    shown = str(interval_comparison_table(found.rows()).renderables[0])
    assert f"the intervals of all methods but {title} are finite on {data.shared:.1%} of the nodes" in shown
    base_first = compare_intervals(**make_numbers(), methods=["nowhere", "naps"], alphas=CURVE_ALPHAS)
    notes = [card["note"] for card in interval_cards(interval_page_data(base_first)) if card["name"] == "Mean width"]
    assert notes[0].endswith(f"where all are finite {base_first.shared_widths()[1][0]:.3g}")  # against nothing


def test_a_page_wants_the_error_rates_that_it_draws() -> None:
    found = compare_intervals(**make_numbers(n=300, labelled=150), methods=["split"])
    with pytest.raises(ns.InvalidInputError, match="must hold the error rates that the page draws"):
        interval_page_data(found)


def test_the_same_comparison_gives_the_same_bytes_and_every_chart_has_its_place(found, tmp_path) -> None:
    first, second = (ns.report.write_page(tmp_path / name, found).read_text("utf-8") for name in ("a.html", "b.html"))
    assert first == second
    places = re.findall(r'data-chart="([^"]+)"', first.split('<script type="application/json"')[0])
    specs = re.search(r'id="data-specs">(.*?)</script>', first, re.DOTALL)
    assert specs is not None
    assert sorted(places) == sorted(json.loads(specs[1]))
    assert len(first) < 3_000_000
