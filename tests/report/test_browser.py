"""The page in a real browser: quiet, offline, correct, and usable by mouse, keyboard, phone and printer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse.csgraph

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.localisers.neighbourhoods import hop_weights
from napsets.methods import make_method, title
from worlds import FOUR

from .conftest import CLASSES, find, marks, shown_set, tables, texts, wait_for_marks

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

ARTIFACTS = Path(__file__).parents[2] / "artifacts"

TITLES = [title(name) for name in FOUR]

Open = Callable[..., Any]


def test_it_loads_in_silence_without_any_request_and_draws_every_chart(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    assert page.locator("[data-chart] svg.marks").count() == 14
    assert page.get_attribute('[data-chart="by-class"]', "aria-label") == "Coverage of each method by true class"
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / "report.png", full_page=True)
    assert (ARTIFACTS / "report.png").stat().st_size > 50_000


def test_headline_numbers_are_the_librarys(page_file: Path, keep_page: Open, comparison: Comparison) -> None:
    page = keep_page(page_file)
    first = page.inner_text(".cards .value >> nth=0")
    assert first == f"{100 * comparison.best.coverage:.1f} %"
    rows = page.locator("#methods tbody tr").all_inner_texts()
    for row, result in zip(rows, comparison, strict=False):
        assert row.strip().startswith(result.title)
        assert f"{100 * result.coverage:.1f} %" in row
        assert f"± {100 * result.coverage_se:.1f}" in row
        assert f"{result.mean_size:.2f}" in row


@pytest.mark.parametrize("m", range(len(FOUR)), ids=FOUR)
def test_the_explorer_shows_the_numbers_that_the_library_computes(page_file, keep_page, comparison, world, m) -> None:
    page = keep_page(page_file)
    explorable = page.evaluate("JSON.parse(document.getElementById('data-explorer').textContent).names")
    sets = comparison.results[m].sets
    labels = world["labels"]
    calibrates = np.isin(np.arange(1500), world["calibration"])
    naps = ns.NAPS(seed=3).calibrate(world["graph"], world["probabilities"], labels, world["calibration"])
    scores = naps.calibrated_.score.matrix(np.arange(naps.calibrated_.num_nodes))
    page.locator(".choice label").nth(m).click()
    isolated = str(1495)
    assert isolated in explorable
    for name in [*explorable[::45], isolated]:
        node = int(name)
        find(page, node)
        row = int(np.flatnonzero(sets.nodes == node)[0])
        facts = ("node-title", "fact-threshold", "fact-support", "fact-effective", "node-covers")
        head, threshold, support, effective, covers = texts(page, *facts)
        assert head == f"Node {node}"
        if np.isinf(sets.thresholds[row]):
            assert threshold == "+∞"
        else:
            assert float(threshold) == pytest.approx(sets.thresholds[row], abs=5.0001e-5)
        assert support == f"{sets.support[row]:,} calibration nodes"
        assert float(effective) == pytest.approx(sets.effective_size[row], abs=0.0501)
        inside = [CLASSES[y] for y in np.flatnonzero(sets.member[row])]
        assert shown_set(page) == (inside or ["the empty set"])
        verb = "covers" if sets.member[row, labels[node]] else "misses"
        assert covers == f"{TITLES[m]} {verb} the true label, {CLASSES[labels[node]]}."
        by_hop, by_label = tables(page, "node-hops", "node-labels")
        check_hops(by_hop, world["graph"], node, calibrates, getattr(make_method(FOUR[m]).localiser, "decay", None))
        check_labels(by_label, scores[node], sets.member[row], labels[node])


def check_hops(rows: list[list[str]], graph: ns.Graph, node: int, calibrates: np.ndarray, decay: str | None) -> None:
    adjacency = graph.to_scipy().astype(np.float64)
    distance = scipy.sparse.csgraph.dijkstra(adjacency, indices=node, unweighted=True, limit=2)
    assert len(rows) == 2
    for k, cells in enumerate(rows, start=1):
        assert cells[:3] == [str(k), f"{(distance == k).sum():,}", f"{(distance[calibrates] == k).sum():,}"]
        assert cells[3] == ("–" if decay is None else f"{hop_weights(decay, 2)[k - 1]:.3f}")


def check_labels(rows: list[list[str]], scores: np.ndarray, member: np.ndarray, truth: int) -> None:
    order = np.argsort(scores, kind="stable")
    for (name, _, score, verdict), y in zip(rows, order, strict=True):
        assert name == CLASSES[y] + (" (true)" if y == truth else "")
        assert float(score) == pytest.approx(scores[y], abs=5.0001e-5)
        assert verdict == ("in set" if member[y] else "out")


def test_the_drawing_and_the_scores_follow_the_node_and_the_method(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    find(page, 1495)
    assert page.locator("#drawing .below, #drawing .above, #drawing .other").count() == 0
    assert "no neighbours" in page.inner_text("#drawing-text")
    assert "no finite threshold" in page.inner_text("#scores-text")
    page.select_option("#reason", "1")
    assert page.locator("#drawing .below, #drawing .above").count() > 0
    assert page.locator("#drawing title").first.text_content().startswith("Node ")
    bars = page.locator('[data-chart="scores"] .mark-rect path')
    local = bars.count()
    assert local > 3
    page.locator(".choice label").nth(0).click()
    page.wait_for_function(
        "n => document.querySelectorAll('[data-chart=\"scores\"] .mark-rect path').length !== n", arg=local
    )
    assert page.locator("#fact-support").inner_text() == "750 calibration nodes"


def test_a_neighbour_that_can_be_explored_is_a_click_away(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    page.select_option("#reason", "1")
    link = page.locator("#drawing .link").first
    target = link.get_attribute("aria-label").removeprefix("Explore node ")
    link.click()
    assert page.inner_text("#node-title") == f"Node {target}"
    assert page.url.endswith(f"#node={target}")


def test_a_node_that_is_not_in_the_page_is_said_so(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    before = page.inner_text("#node-title")
    find(page, "nobody")
    assert "Node nobody is not among the" in page.inner_text("#search-message")
    assert page.inner_text("#node-title") == before


def test_an_address_leads_to_a_node(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file, fragment="#node=1495")
    assert page.inner_text("#node-title") == "Node 1495"


def test_charts_show_only_the_methods_chosen(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    assert marks(page, "coverage") == 4
    page.uncheck('input[name="shown"][value="NAPS-G"]')
    page.uncheck('input[name="shown"][value="Split APS"]')
    wait_for_marks(page, "coverage", 2)
    assert marks(page, "curve") == 2 * 13
    for name in ("NAPS", "NAPS-H"):
        page.uncheck(f'input[name="shown"][value="{name}"]')
    wait_for_marks(page, "coverage", 0)
    for name in ("Split APS", "NAPS", "NAPS-H"):
        page.check(f'input[name="shown"][value="{name}"]')
    wait_for_marks(page, "coverage", 3)


def test_hovering_tells_the_numbers(page_file: Path, keep_page: Open, comparison: Comparison) -> None:
    page = keep_page(page_file)
    page.locator('[data-chart="coverage"] .mark-symbol.role-mark path').nth(1).hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "NAPS" in tooltip.inner_text()
    assert f"{100 * comparison['naps'].coverage:.1f}\N{NO-BREAK SPACE}%" in tooltip.inner_text()


def test_a_neighbourhood_on_the_map_can_be_picked(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    circles = page.locator('[data-chart="map-left"] .mark-symbol.role-mark path')
    circles.first.click()
    detail = page.locator("#ball-detail")
    assert "nodes" in detail.locator("h3").inner_text()
    assert [row.split("\t")[0].strip() for row in detail.locator("tbody tr").all_inner_texts()] == TITLES
    button = detail.locator("button").first
    name = button.inner_text()
    button.click()
    assert page.inner_text("#node-title") == f"Node {name}"


def test_the_right_map_follows_the_method_chosen(page_file: Path, keep_page: Open) -> None:
    page = keep_page(page_file)
    circles = page.locator('[data-chart="map-right"] .mark-symbol.role-mark path')
    labels = lambda: [circles.nth(i).get_attribute("aria-label") for i in range(circles.count())]  # noqa: E731
    before = labels()
    page.select_option("#map-method", "NAPS-G")
    page.wait_for_function(
        """before => document.querySelectorAll('[data-chart="map-right"] .mark-symbol.role-mark path')[0]
           .getAttribute('aria-label') !== before""",
        arg=before[0],
    )
    assert labels() != before


def test_numbers_of_a_chart_open_as_a_table(page_file: Path, keep_page: Open, comparison: Comparison) -> None:
    page = keep_page(page_file)
    page.locator('[data-numbers="by-class"] summary').click()
    rows = page.locator('[data-numbers="by-class"] tbody tr')
    rows.first.wait_for()
    assert rows.count() == 4 * 5
    assert "<b>delta</b>" in page.locator('[data-numbers="by-class"]').inner_text()


def test_the_keyboard_is_enough(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus('input[name="shown"][value="Split APS"]')
    page.keyboard.press("Space")
    wait_for_marks(page, "coverage", 3)
    page.focus("#search")
    page.keyboard.press("Delete")
    page.keyboard.type("1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator('#matches [aria-selected="true"]').inner_text()
    assert page.get_attribute("#search", "aria-activedescendant")
    page.keyboard.press("Enter")
    assert page.inner_text("#node-title") == f"Node {chosen}"
    assert page.locator("#matches").is_hidden()
    page.keyboard.type("1")
    page.keyboard.press("Escape")
    assert page.locator("#matches").is_hidden()
    page.focus("#next")
    page.keyboard.press("Enter")
    assert page.inner_text("#node-title") != f"Node {chosen}"
    page.focus('.choice input[value="1"]')
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#node-covers").startswith("NAPS-H ")
    page.focus("#ball-choice")
    page.keyboard.press("ArrowDown")
    assert page.locator("#ball-detail h3").count() == 1


@pytest.fixture(scope="module")
def informed(world: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    names = np.array([f"<i>{i}</i> & co" for i in range(1500)])
    comparison = compare(**(world | {"methods": ["split", "informed", "naps", "auto"]}), alphas=CURVE_ALPHAS, ids=names)
    path = tmp_path_factory.mktemp("informed") / "report.html"
    return comparison, ns.report.write_page(path, comparison, class_names=CLASSES)


def test_labels_that_spoke_are_named_with_what_the_model_said_by_itself(informed, world, open_page: Open) -> None:
    comparison, path = informed
    page = open_page(path)
    explorable = page.evaluate("JSON.parse(document.getElementById('data-explorer').textContent).names")
    for name in explorable[::60]:
        node = int(re.search(r"\d+", name)[0])
        find(page, name)
        for m, result in enumerate(comparison):
            page.locator(".choice label").nth(m).click()
            seen = inspect_node(result.calibrated, node).evidence
            assert page.locator("#node-evidence").is_visible() == (seen is not None)
            head = page.locator("#node-labels thead th").all_inner_texts()
            assert ("Model" in head) == ("Informed" in head) == (seen is not None)
            if seen is None:
                continue
            cells, lines = tables(page, "node-labels", "node-voices")
            shares = {row[0].removesuffix(" (true)"): row[1:3] for row in cells}
            for y, label in enumerate(CLASSES):
                values = [float(text.removesuffix(" %")) / 100 for text in shares[label]]
                assert values == pytest.approx([seen.model[y], seen.informed[y]], abs=0.00051)
            expected = [
                [f"<i>{voice.node}</i> & co", CLASSES[voice.label], str(voice.hop)] for voice in seen.voices[:6]
            ]
            assert [line[:3] for line in lines] == expected
            odds = [float(line[3].removeprefix("× ")) for line in lines]
            assert odds == pytest.approx([voice.odds for voice in seen.voices[:6]], abs=0.00501)
            assert seen.sentence in page.inner_text("#evidence-text")
    ARTIFACTS.mkdir(exist_ok=True)
    page.locator(".two.explorer").screenshot(path=ARTIFACTS / "evidence.png")


def test_lone_nodes_hear_nobody_and_names_stay_text_on_a_phone(informed, open_page: Open) -> None:
    _, path = informed
    page = open_page(path, width=320, height=800)
    page.locator(".choice label").nth(1).click()
    find(page, "<i>1495</i> & co")
    assert "No labelled node counts as evidence here." in page.inner_text("#evidence-text")
    assert page.locator("#node-voices").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("i, b").count() == 0
