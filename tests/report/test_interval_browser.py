"""The page about intervals in a real browser: quiet, offline, correct, usable on any screen, by key and on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.evaluation.interval_comparison import IntervalComparison, compare_intervals
from napsets.report.words import sentence
from screens import CUT_OFF, PAPER
from worlds import make_numbers

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

Open = Callable[..., Any]
NAMES = np.array([f"<i>{i}</i> & co" for i in range(900)])


@pytest.fixture(scope="module")
def found() -> IntervalComparison:
    return compare_intervals(**make_numbers(), seed=3, ids=NAMES, alphas=CURVE_ALPHAS)


@pytest.fixture(scope="module")
def path(found: IntervalComparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("intervals") / "report.html"
    return ns.report.write_page(target, found, dataset="A ring & <i>co</i>", model="noise")


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "").replace("∞", "inf"))


def find(page: Any, name: str) -> None:
    page.fill("#search", name)
    page.press("#search", "Enter")


def test_it_loads_in_silence_with_the_verdict_first_and_draws_every_chart(found, path: Path, open_page: Open) -> None:
    page = open_page(path, viewport={"width": 1440, "height": 900})
    assert page.inner_text("h1") == "Prediction intervals for A ring & <i>co</i>"
    told = found.verdict()
    assert page.inner_text("#verdict-title") == "Take Auto"
    text = page.inner_text("#verdict")
    for part in (told.buys, told.sure, told.cost, told.choice, told.mind):
        assert sentence(part) in text
    charts = page.locator("[data-chart]")
    assert charts.count() == 15
    assert charts.first.get_attribute("data-chart") == "front"
    for i in range(charts.count()):
        box = charts.nth(i).locator("svg.marks").bounding_box()
        assert box["width"] > 200
        assert 60 < box["height"] < 500


def test_the_front_rings_the_method_to_take(found: IntervalComparison, path: Path, open_page: Open) -> None:
    page = open_page(path)
    front = page.locator('[data-chart="front"] .mark-symbol.role-mark path')
    assert front.count() == len(found.results) + 1
    assert f"{100 * found.finite.mean():.1f} % of the judged nodes where" in page.inner_text("#figure-front")
    page.uncheck('input[name="shown"][value="Auto"]')
    page.wait_for_function(
        """n => document.querySelectorAll('[data-chart="front"] .mark-symbol.role-mark path').length === n""",
        arg=len(found.results) - 1,
    )


@pytest.mark.parametrize("m", range(5))
def test_the_explorer_shows_the_interval_and_where_its_threshold_comes_from(found, path, open_page: Open, m) -> None:
    page = open_page(path)
    explorable = page.evaluate("JSON.parse(document.getElementById('data-explorer').textContent).names")
    alone = str(NAMES[895])
    page.locator(".choice label").nth(m).click()
    result = found.results[m]
    for name in [*explorable[::60], *([alone] if alone in explorable else [])]:
        node = int(np.flatnonzero(name == NAMES)[0])
        find(page, name)
        seen = inspect_node(result.calibrated, node)
        assert page.inner_text("#node-title") == f"Node {name}"
        told = page.inner_text("#node-set")
        if np.isinf(seen.threshold):
            assert told == "the whole line"
            assert page.inner_text("#fact-threshold") == "+∞"
        else:
            ends = [number(end) for end in told.split(" to ")]
            assert ends == pytest.approx([seen.lower, seen.upper], rel=1e-3, abs=1e-3)
            assert float(page.inner_text("#fact-threshold")) == pytest.approx(seen.threshold, abs=5.0001e-5)
        truth = found.targets[node]
        verb = "covers" if seen.lower <= truth <= seen.upper else "misses"
        assert page.inner_text("#node-covers").startswith(f"{result.title} {verb} the true target, ")
        assert page.inner_text("#node-reason") == seen.reason()
        assert page.inner_text("#fact-support") == f"{seen.support:,} calibration nodes"
        assert page.locator("#node-evidence").is_visible() == (seen.evidence is not None)
        rows = page.locator("#node-intervals tbody tr")
        assert rows.count() == len(found.results)
        assert verb in rows.nth(m).inner_text()
        if seen.evidence is not None:
            informed = page.locator("#node-outputs tbody tr").nth(1).locator("td").all_inner_texts()
            assert [number(one) for one in informed] == pytest.approx(seen.outputs, rel=1e-3, abs=1e-3)


def test_the_number_line_has_the_interval_the_model_and_the_targets_around(found, path: Path, open_page: Open) -> None:
    page = open_page(path)
    page.select_option("#reason", "1")
    line = page.locator('[data-chart="line"]')
    assert line.locator(".role-axis-label text").all_text_contents()[-5:] == [
        "Interval", "Model", "With evidence", "Targets at hop 1", "Targets at hop 2",
    ]  # fmt: skip
    spans = 'line[stroke="var(--good)"], line[stroke="var(--bad)"], line[stroke="var(--muted)"]'
    assert line.locator(".mark-rule.role-mark").locator(spans).count() == 3
    page.wait_for_function(
        """() => document.querySelectorAll('[data-chart="line"] .mark-symbol.role-mark path').length > 3"""
    )
    assert line.locator('.mark-rule.role-mark line[stroke="var(--target)"]').count() == 1
    page.locator(".choice label").nth(0).click()
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-chart="line"] .mark-rule.role-mark line')]
             .filter(e => e.getAttribute('stroke') === 'var(--muted)').length === 1"""
    )
    assert "the model's own quantiles." in page.inner_text("#line-text")


@pytest.mark.parametrize("chart", ["by-width", "by-prediction", "by-degree"])
def test_every_group_chart_has_its_band_of_chance(path: Path, open_page: Open, chart: str) -> None:
    page = open_page(path)
    bands = page.locator(f'[data-chart="{chart}"] .mark-rule line[stroke="var(--band)"]')
    assert bands.count() >= 15


def test_the_enlarged_curve_has_its_band_of_chance_and_numbers_open_as_tables(path: Path, open_page: Open) -> None:
    page = open_page(path)
    assert page.locator('[data-chart="gap"] .mark-area path[fill="var(--band)"]').count() == 1
    page.locator('[data-numbers="widths"] summary').click()
    page.locator('[data-numbers="widths"] tbody tr').first.wait_for()
    assert page.locator('[data-numbers="widths"] thead th').all_inner_texts() == ["method", "width", "share"]


def test_a_neighbourhood_on_the_map_can_be_picked(found: IntervalComparison, path: Path, open_page: Open) -> None:
    page = open_page(path)
    page.locator('[data-chart="map-left"] .mark-symbol.role-mark path').first.click()
    detail = page.locator("#ball-detail")
    assert "mean target" in detail.locator("h3").inner_text()
    assert detail.locator("thead th").all_inner_texts() == ["Method", "Coverage", "Mean width"]
    assert detail.locator("tbody tr").count() == len(found.results)


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_cut_off_on_any_screen(path: Path, open_page: Open, width: int) -> None:
    page = open_page(path, viewport={"width": width, "height": 900}, is_mobile=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for m in range(5):
        page.locator(".choice label").nth(m).click()
        assert page.evaluate(CUT_OFF) == []


def test_it_prints_on_paper_in_light_without_controls(path: Path, open_page: Open) -> None:
    page = open_page(path, viewport=PAPER, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("#verdict").is_visible()
    assert page.locator("nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_it_is_used_by_keyboard_and_everything_has_a_name(path: Path, open_page: Open) -> None:
    page = open_page(path)
    page.focus("#next")
    before = page.inner_text("#node-title")
    page.keyboard.press("Enter")
    assert page.inner_text("#node-title") != before
    page.focus('.choice input[value="4"]')
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#node-covers").startswith("Informed ")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, select, button, [role=img], [role=region], svg[role]')]
          .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label')))
          .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []


CASES: dict[str, dict[str, Any]] = {
    "no edges": {"graph": ns.Graph.from_edge_index(np.empty((2, 0), dtype=np.int64), num_nodes=900)},
    "no hops": {"hops": 0},
    "one node": {"nodes": [895]},
    "one method": {"methods": ["split"]},
    "a prediction alone": {"outputs": make_numbers()["outputs"].mean(axis=1), "score": "absolute"},
    "too few labels": {"calibration": [1, 2, 3], "methods": ["split", "naps"]},
    "far apart": {"targets": np.exp(3 * make_numbers()["targets"]), "methods": ["split", "naps", "naps-exact"]},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
def test_odd_results_make_a_quiet_page_too(case: str, open_page: Open, tmp_path: Path) -> None:
    found = compare_intervals(**(make_numbers() | CASES[case]), alphas=CURVE_ALPHAS)
    page = open_page(ns.report.write_page(tmp_path / "report.html", found))
    assert page.inner_text("#node-title").startswith("Node ")
    if case == "no edges":
        assert "nothing to compare" in page.inner_text("#neighbourhoods")
    if case == "too few labels":
        assert page.inner_text("#node-set") == "the whole line"
        assert "every interval is the whole line" in page.inner_text("#verdict")
    if case == "a prediction alone":
        assert "the model's own prediction" in page.inner_text("#line-text")
