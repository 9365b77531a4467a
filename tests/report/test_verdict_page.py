"""The page starts with a verdict, to be read on a screen, on paper or on a phone; many classes stay readable."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison, compare
from napsets.report.data import page_data
from napsets.report.words import sentence
from screens import CUT_OFF, PAPER

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

MANY = 58
NAMES = [f"section {y:02d}: packages & <i>libraries</i>" for y in range(MANY)]
Open = Callable[..., Any]


def make_packages(seed: int = 2, n: int = 2600) -> dict[str, Any]:
    """58 classes, few of them large, on a ring whose nodes link to those near them."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, MANY + 1) ** 0.8
    labels = np.repeat(np.arange(MANY), np.ceil(n * share / share.sum()).astype(int))[:n]
    labels = labels[np.argsort(np.arange(n) // 130 + 0.3 * rng.random(n), kind="stable")]
    source = rng.integers(n, size=14 * n)
    ends = np.stack([source, (source + rng.integers(1, 60, size=source.size)) % n])
    kept = (labels[ends[0]] == labels[ends[1]]) | (rng.random(source.size) < 0.2)
    logits = 2.6 * (np.arange(MANY) == labels[:, None]) + rng.normal(size=(n, MANY))
    order = rng.permutation(n)
    return {
        "graph": ns.Graph.from_edge_index(ends[:, kept], num_nodes=n),
        "probabilities": np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True),
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


def test_the_page_starts_with_the_verdict_in_the_words_of_the_library(
    packages: Comparison, many: Path, open_page: Open
):
    page = open_page(many, viewport={"width": 1440, "height": 900})
    told = packages.verdict(NAMES)
    assert told.method == "auto"
    assert page.inner_text("#verdict-title") == "Take Auto"
    text = page.inner_text("#verdict")
    for part in (told.buys, told.sure, told.cost, told.choice, told.mind):
        assert sentence(part) in text
    # Nothing but the title stands above it, and all of it is on the first screen.
    box = page.locator("#verdict").bounding_box()
    assert box["y"] < 200
    assert box["y"] + box["height"] < 900
    assert page.locator("[data-chart]").first.get_attribute("data-chart") == "front"
    assert page.locator('[data-chart="front"]').bounding_box()["y"] < 500


def test_the_front_shows_every_method_and_rings_the_one_to_take(packages: Comparison, many: Path, open_page: Open):
    page = open_page(many)
    front = page.locator('[data-chart="front"]')
    assert sorted(front.locator(".role-mark.mark-text text").all_text_contents()) == sorted(r.title for r in packages)
    assert front.locator(".mark-symbol.role-mark path").count() == len(packages.results) + 1
    page.uncheck('input[name="shown"][value="Auto"]')
    page.wait_for_function(
        """n => document.querySelectorAll('[data-chart="front"] .mark-symbol.role-mark path').length === n""",
        arg=len(packages.results) - 1,
    )
    page.locator('[data-numbers="front"] summary').click()
    rows = page.locator('[data-numbers="front"] tbody tr')
    rows.first.wait_for()
    assert rows.count() == len(packages.results)
    held = page_data(packages, class_names=NAMES).front_over
    assert held in page.inner_text("#figure-front figcaption")
    assert re.fullmatch(r"\d+ neighbourhoods, which hold \d+ % of the judged nodes", held)


def test_every_warning_stands_in_the_verdict_the_gravest_first(world: dict[str, Any], open_page: Open, tmp_path: Path):
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 1, kind="stable")
    biased = world | {"calibration": order[:60], "nodes": order[700:], "methods": ["split", "naps"]}
    found = compare(**biased, alphas=CURVE_ALPHAS)
    warnings = found.verdict().warnings
    assert len(warnings) >= 2
    page = open_page(ns.report.write_page(tmp_path / "report.html", found))
    told = page.locator("#verdict .warned dd").all_inner_texts()
    assert told == [sentence(one) for one in warnings]
    assert "in predicted class" in told[0]
    assert any(one.startswith("60 labels are few") for one in told)


def test_many_classes_come_largest_first_and_all_of_them_when_asked(packages: Comparison, many: Path, open_page: Open):
    page = open_page(many)
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
    assert page.inner_text("#all-classes") == "Show the 20 largest classes"
    page.locator('[data-numbers="by-class"] summary').click()
    first = page.locator('[data-numbers="by-class"] tbody tr').first
    first.wait_for()
    assert NAMES[int(sizes.argmax())] in first.inner_text()


def test_set_sizes_share_ranges_where_classes_are_many(many: Path, open_page: Open) -> None:
    page = open_page(many)
    for chart in ("sizes", "by-size"):
        ticks = page.locator(f'[data-chart="{chart}"] .role-axis-label').first.locator("text").all_text_contents()
        assert len(ticks) <= 14
    assert any("–" in tick for tick in ticks)


def test_a_nodes_many_labels_are_cut_and_shown_by_key(packages: Comparison, many: Path, open_page: Open) -> None:
    page = open_page(many)
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


@pytest.mark.parametrize("chart", ["by-class", "by-degree", "by-size"])
def test_every_group_chart_has_its_band_of_chance(many: Path, open_page: Open, chart: str) -> None:
    page = open_page(many)
    bands = page.evaluate(
        """chart => [...document.querySelectorAll(`[data-chart="${chart}"] .mark-rule line`)]
             .filter(e => e.getAttribute('stroke') === 'var(--band)').length""",
        chart,
    )
    assert bands >= 5
    assert "chance" in page.inner_text("#groups > p")


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_is_cut_off_on_any_screen(many: Path, open_page: Open, width: int) -> None:
    page = open_page(many, viewport={"width": width, "height": 900}, is_mobile=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for m in range(5):
        page.locator(".choice label").nth(m).click()
        assert page.evaluate(CUT_OFF) == []


def test_nothing_is_cut_off_on_paper(many: Path, open_page: Open) -> None:
    page = open_page(many, viewport=PAPER)
    page.emulate_media(media="print")
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("#verdict").is_visible()
    assert page.locator("#all-classes").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_verdict_is_reached_by_keyboard_and_has_its_name(many: Path, open_page: Open) -> None:
    page = open_page(many)
    page.focus('nav a[href="#verdict"]')
    page.keyboard.press("Enter")
    assert page.url.endswith("#verdict")
    assert page.get_attribute("#verdict", "aria-labelledby") == "verdict-title"
    described = page.get_attribute('[data-chart="front"]', "aria-label")
    assert described.startswith("Mean set size of each method against the distance of its coverage")


def test_judged_nodes_and_their_share_in_neighbourhoods_are_said(packages: Comparison, many: Path, open_page: Open):
    page = open_page(many)
    assert page.inner_text(".judged").startswith("Judged on 1,300 nodes with known labels that did not calibrate")
    held = sum(part.size for part in packages.partition) / 1300
    assert f"these hold {100 * held:.0f} % of the judged nodes" in page.inner_text("#neighbourhoods")
