"""Pages of both kinds start with a verdict, readable on a screen, on paper and on a phone; many classes stay so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.levels import chance_band
from napsets.report import ReportData, page_data
from napsets.report.charts import charts
from napsets.report.summary import sentence, summarise
from screens import CUT_OFF, PAPER
from worlds import guess

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

MANY = 58
NAMES = [f"section {y:02d}: packages & <i>libraries</i>" for y in range(MANY)]
Open = Callable[..., Any]


def make_packages(seed: int = 2, n: int = 1800) -> dict[str, Any]:
    """58 classes, few of them large, on a ring whose nodes link to those near them."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, MANY + 1) ** 0.8
    labels = np.repeat(np.arange(MANY), np.ceil(n * share / share.sum()).astype(int))[:n]
    labels = labels[np.argsort(np.arange(n) // 130 + 0.3 * rng.random(n), kind="stable")]
    source = rng.integers(n, size=14 * n)
    ends = np.stack([source, (source + rng.integers(1, 60, size=source.size)) % n])
    kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(source.size) < 0.2)
    probabilities = guess(labels, 2.6, rng, MANY)
    order = rng.permutation(n)
    return {
        "graph": ns.Graph.from_edge_index(ends[:, kept], num_nodes=n),
        "probabilities": probabilities,
        "labels": labels,
        "calibration": order[: n // 2],
        "nodes": order[n // 2 :],
        "methods": ["split", "naps", "naps-exact", "informed", "auto"],
        "alphas": CURVE_ALPHAS,
    }


@pytest.fixture(scope="module")
def packages() -> Comparison:
    return compare(**make_packages())


@pytest.fixture(scope="module")
def many(packages: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "report.html"
    return ns.report.write_page(path, packages, class_names=NAMES, dataset="packages", model="noise")


@pytest.fixture(scope="module", params=["sets", "intervals"])
def either(request: pytest.FixtureRequest) -> tuple[ReportData, Path]:
    """What a page of many classes shows, and what one about intervals shows, with its file."""
    if request.param == "sets":
        data = page_data(request.getfixturevalue("packages"), class_names=NAMES)
        return data, request.getfixturevalue("many")
    return request.getfixturevalue("intervals_data"), request.getfixturevalue("intervals_file")


def test_it_loads_in_silence_and_draws_every_chart(either, keep_page: Open) -> None:
    data, path = either
    page = keep_page(path)
    places = page.locator("[data-chart]")
    assert places.count() == len(charts(data)) >= 14
    for i in range(places.count()):
        box = places.nth(i).locator("svg.marks").bounding_box()
        assert box["width"] > 200
        assert 60 < box["height"] < 600


def test_the_page_starts_with_the_verdict_in_the_words_of_the_library(either, open_page: Open) -> None:
    data, path = either
    page = open_page(path, width=1440)
    verdict = data.verdict
    assert verdict.method == "auto"
    summary, text = summarise(data, data.words), page.inner_text("#verdict").replace("\N{NO-BREAK SPACE}", " ")
    assert page.inner_text("#verdict .result") == summary.result
    for part in (summary.example, summary.done, f"Use {summary.method}", summary.weak, *summary.steps):
        assert part.replace("`", "") in text
    numbers = page.inner_text("#numbers").replace("\N{NO-BREAK SPACE}", " ")
    assert f"{verdict.headline}: {verdict.gain}." in numbers
    for part in (verdict.certainty, verdict.cost, verdict.choice, verdict.first_warning):
        assert sentence(part).replace("`", "") in numbers
    # Nothing but the title stands above it, and all of it is on the first screen.
    box = page.locator("#verdict").bounding_box()
    assert box["y"] < 200
    assert box["y"] + box["height"] < 900
    assert page.locator("[data-chart]").first.get_attribute("data-chart") == "front"
    assert page.locator('[data-chart="front"]').bounding_box()["y"] < 1200


def test_the_front_shows_every_method_and_rings_the_one_to_take(either, keep_page: Open) -> None:
    data, path = either
    page = keep_page(path)
    front = page.locator('[data-chart="front"]')
    methods = data.kind.titles
    named = front.locator(".role-mark.mark-text text").all_text_contents()
    assert set(named) <= set(methods)
    assert "Auto" in named
    assert front.locator(".mark-symbol.role-mark path").count() == len(methods) + 1
    page.uncheck('input[name="shown"][value="Auto"]')
    page.wait_for_function(
        """n => document.querySelectorAll('[data-chart="front"] .mark-symbol.role-mark path').length === n""",
        arg=len(methods) - 1,
    )
    page.locator('[data-numbers="front"] summary').click()
    rows = page.locator('[data-numbers="front"] tbody tr')
    rows.first.wait_for()
    assert rows.count() == len(methods)
    assert data.front_over in page.inner_text("#figure-front figcaption")
    assert re.fullmatch(r"\d+ neighbourhoods with \d+ % of the evaluation nodes", data.front_over)


def test_every_warning_stands_in_the_verdict_the_gravest_first(world: dict[str, Any], open_page: Open, tmp_path: Path):
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 1, kind="stable")
    biased = world | {"calibration": order[:60], "nodes": order[700:], "methods": ["split", "naps"]}
    compared = compare(**biased, alphas=CURVE_ALPHAS)
    warnings = compared.verdict().warnings
    assert len(warnings) >= 2
    page = open_page(ns.report.write_page(tmp_path / "report.html", compared))
    shown = [text.replace("\N{NO-BREAK SPACE}", " ") for text in page.locator("#numbers .warned dd").all_inner_texts()]
    assert shown == [sentence(warning).replace("`", "") for warning in warnings]
    assert any("in predicted class" in warning for warning in shown)
    assert any(warning.startswith("Only 60 labels set the level") for warning in shown)
    assert page.inner_text("#verdict .withdrawn").startswith("No promise of coverage can be made.")


def test_many_classes_come_worst_first_and_all_of_them_when_asked(packages: Comparison, many: Path, keep_page: Open):
    page = keep_page(many)
    axis = page.locator('[data-chart="by-class"] .role-axis-label').last.locator("text")
    judged = packages.labels[packages.baseline.sets.nodes]
    sizes = np.bincount(judged, minlength=MANY)
    there = int((sizes > 0).sum())
    shown = lambda: page.locator('[data-chart="by-class"] .mark-symbol.role-mark path').count()  # noqa: E731
    assert shown() == 20 * len(packages.results)
    assert axis.count() <= 20
    before = page.locator('[data-chart="by-class"] svg.marks').bounding_box()["height"]
    assert before < 600
    page.focus("#all-classes")
    page.keyboard.press("Enter")
    page.wait_for_function(
        """n => document.querySelectorAll('[data-chart="by-class"] .mark-symbol.role-mark path').length === n""",
        arg=there * len(packages.results),
    )
    assert page.locator('[data-chart="by-class"] svg.marks').bounding_box()["height"] > 2 * before
    assert page.get_attribute("#all-classes", "aria-expanded") == "true"
    assert page.inner_text("#all-classes") == "Show the 20 classes covered least"
    page.locator('[data-numbers="by-class"] summary').click()
    first = page.locator('[data-numbers="by-class"] tbody tr').first
    first.wait_for()
    covered = packages["auto"].sets.contains(packages.labels)
    shares = np.bincount(judged, weights=covered, minlength=MANY) / np.maximum(sizes, 1)
    low = np.array([chance_band(int(size), 0.9)[0] if size else 0.0 for size in sizes])
    worst = min((y for y in range(MANY) if sizes[y]), key=lambda y: (shares[y] >= low[y], shares[y], -sizes[y]))
    assert NAMES[worst] in first.inner_text()


def test_set_sizes_share_ranges_where_classes_are_many(many: Path, keep_page: Open) -> None:
    page = keep_page(many)
    for chart in ("sizes", "by-size"):
        ticks = page.locator(f'[data-chart="{chart}"] .role-axis-label').first.locator("text").all_text_contents()
        assert len(ticks) <= 14
    assert any("–" in tick for tick in ticks)


def test_a_nodes_many_labels_are_cut_and_shown_by_key(packages: Comparison, many: Path, keep_page: Open) -> None:
    page = keep_page(many)
    rows = page.locator("#node-labels tbody tr")
    assert 12 <= rows.count() < MANY
    assert page.locator("#node-labels tbody").inner_text().count("(true)") == 1
    page.focus("#all-labels")
    page.keyboard.press("Space")
    assert rows.count() == MANY
    assert page.evaluate("document.activeElement.id") == "all-labels"
    naps = next(m for m, result in enumerate(packages) if result.name == "naps")
    page.locator(".choice label").nth(naps).click()
    for result in (packages["naps"],):
        node = int(page.inner_text("#node-title").removeprefix("Node "))
        inside = int(result.sets.sizes[np.flatnonzero(result.sets.nodes == node)[0]])
        chips = page.locator("#node-set li").all_inner_texts()
        assert len(chips) <= 26
        if inside > 25:
            assert chips[-1] == f"and {inside - len(chips) + 1} more"


def test_every_group_chart_has_its_band_of_chance(either, keep_page: Open) -> None:
    data, path = either
    page = keep_page(path)
    names = [name for name in charts(data) if name.startswith("by-")]
    assert len(names) == 3
    for name in names:
        assert page.locator(f'[data-chart="{name}"] .mark-rule line[stroke="var(--band)"]').count() >= 5
    assert "chance" in page.inner_text("#groups > p")


def test_the_enlarged_curve_shades_where_a_method_that_keeps_its_promise_lies(either, keep_page: Open) -> None:
    page = keep_page(either[1])
    assert page.locator('[data-chart="gap"] .mark-area path[fill="var(--band)"]').count() == 1
    assert "if its coverage is right" in page.inner_text("#figure-gap figcaption")


def test_the_map_on_the_right_shows_the_recommended_method(either, keep_page: Open) -> None:
    data, path = either
    shown = keep_page(path).locator("#map-method option:checked").inner_text()
    assert shown == (data.kind.titles[1] if data.verdict.kept else data.verdict.title)


def test_a_neighbourhood_on_the_map_can_be_picked(either, keep_page: Open) -> None:
    data, path = either
    page = keep_page(path)
    page.locator('[data-chart="map-left"] .mark-symbol.role-mark path').first.click()
    detail = page.locator("#ball-detail")
    assert re.search(r"nodes, (\d+ % of them |mean target )", detail.locator("h3").inner_text())
    assert detail.locator("thead th").all_inner_texts() == ["Method", "Coverage", data.kind.ball_size.mean]
    assert detail.locator("tbody th").all_inner_texts() == data.kind.titles


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_cut_off_on_any_screen(either, open_page: Open, width: int) -> None:
    page = open_page(either[1], width=width, phone=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for m in range(5):
        page.locator(".choice label").nth(m).click()
        assert page.evaluate(CUT_OFF) == []


def test_it_prints_on_paper_in_light_without_controls(either, open_page: Open) -> None:
    page = open_page(either[1], **PAPER, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("#verdict").is_visible()
    for control in ("nav", "#finder", "#all-classes"):
        assert page.locator(control).is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(35, 38, 43)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_everything_that_acts_or_shows_has_a_name(either, keep_page: Open) -> None:
    page = keep_page(either[1])
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, select, button, [role=img], [role=region], svg[role]')]
          .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label')))
          .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("h1").count() == 1


def test_the_verdict_is_reached_by_keyboard_and_has_its_name(many: Path, keep_page: Open) -> None:
    page = keep_page(many)
    page.focus('nav a[href="#verdict"]')
    page.keyboard.press("Enter")
    assert page.url.endswith("#verdict")
    assert page.get_attribute("#verdict", "aria-labelledby") == "verdict-title"
    described = page.get_attribute('[data-chart="front"]', "aria-label")
    assert described.startswith("Mean set size of each method against the distance of its coverage")


def test_judged_nodes_and_their_share_in_neighbourhoods_are_said(packages: Comparison, many: Path, keep_page: Open):
    page = keep_page(many)
    assert "900 others to check them" in page.inner_text("#verdict")
    held = sum(part.size for part in packages.partition) / 900
    assert f"these contain {100 * held:.0f} % of the evaluation nodes" in page.inner_text("#neighbourhoods")
