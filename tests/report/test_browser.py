"""The page in a real browser: quiet, offline, and usable by mouse, keyboard, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.report import ReportData, page_data
from screens import CUT_OFF, PAPER
from worlds import FOUR

from .conftest import CLASSES, explore, find, marks, tables, wait_for_marks

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def named(comparison: Comparison) -> ReportData:
    """What the page about sets shows, with the names of its classes."""
    return page_data(comparison, class_names=CLASSES)


@pytest.fixture(params=["sets", "intervals"])
def either(request: pytest.FixtureRequest, page_file: Path, intervals_file: Path) -> tuple[ReportData, Path]:
    """What a page about sets, or about intervals, shows, with its file."""
    if request.param == "sets":
        return request.getfixturevalue("named"), page_file
    return request.getfixturevalue("intervals_data"), intervals_file


def test_it_loads_in_silence_and_draws_every_chart_but_the_explorers(either, open_page: Open) -> None:
    data, path = either
    page = open_page(path, width=1440)
    drawn = page.locator("[data-chart] svg.marks")
    assert drawn.count() == len(data.specs) - 1
    for i in range(drawn.count()):
        box = drawn.nth(i).bounding_box()
        assert box["width"] > 200
        assert 60 < box["height"] < 700
    # Nothing but the title stands above the summary, and all of it is on the first screen.
    box = page.locator("#verdict").bounding_box()
    assert box["y"] < 200
    assert box["y"] + box["height"] < 900
    text = page.inner_text("#verdict").replace("\N{NO-BREAK SPACE}", " ")
    screen = data.screen
    assert page.inner_text("#verdict .result") == screen.result
    for part in (screen.example, screen.done, screen.method, screen.weak, *screen.steps, screen.command):
        assert part.replace("`", "") in text
    numbers = page.inner_text("#numbers").replace("\N{NO-BREAK SPACE}", " ")
    assert f"{data.verdict.headline}: {data.verdict.gain}." in numbers


def test_the_explorer_is_loaded_when_it_is_opened_and_shows_what_was_computed(either, open_page: Open) -> None:
    data, path = either
    page = open_page(path)
    assert page.locator("#node-tables .card").count() == 0
    explore(page)
    explorer = data.explorer
    for i in (explorer.start, 0, explorer.nodes.size - 1):
        for m, method in enumerate(data.listed):
            page.select_option("#method", str(m))
            find(page, explorer.names[i])
            shown = explorer.shown[i][m]
            page.wait_for_function(
                "([title, start]) => document.getElementById('node-title').innerText === title && "
                "document.getElementById('node-covers').innerText.startsWith(start)",
                arg=[f"Node {explorer.names[i]}", method.title],
            )
            assert page.locator("#node-set li").all_inner_texts() == (shown["outcome"] or ["the empty set"])
            verb = "covers" if shown["covers"] else "misses"
            assert (
                page.inner_text("#node-covers")
                == f"{method.title} {verb} the true {data.shown.words.label}, {shown['true']}."
            )
            assert page.inner_text("#node-reason") == shown["reason"]
            assert tables(page) == {table[0]: [list(row) for row in table[2]] for table in shown["tables"]}
            page.wait_for_function(
                "n => document.querySelectorAll('[data-chart=\"scores\"] .mark-rect path').length === n",
                arg=max(1, len(shown["bars"])),
            )
    page.click("#next")
    assert page.input_value("#search") in explorer.names
    page.select_option("#reason", "0")
    find(page, "nobody")
    assert "nobody is not among the" in page.inner_text("#search-message")


def test_an_address_leads_to_a_node(page_file: Path, sets_data: ReportData, open_page: Open) -> None:
    name = sets_data.explorer.names[3]
    page = open_page(page_file, fragment=f"#node={name}")
    page.wait_for_function("document.documentElement.dataset.explored === 'true'")
    assert page.inner_text("#node-title") == f"Node {name}"
    assert page.locator("#explorer").get_attribute("open") is not None


def test_charts_show_only_the_methods_chosen_and_tell_their_numbers(page_file, comparison, open_page: Open) -> None:
    page = open_page(page_file)
    assert marks(page, "tradeoff") >= 4 * 13
    for title in ("NAPS-G", "NAPS-H", "NAPS"):
        page.uncheck(f'input[name="shown"][value="{title}"]')
    page.wait_for_function(
        "document.querySelectorAll('[data-chart=\"tradeoff\"] .role-mark.layer_2_marks path').length === 13 || "
        "document.querySelectorAll('[data-chart=\"tradeoff\"] .mark-symbol.role-mark path').length === 13"
    )
    page.check('input[name="shown"][value="NAPS"]')
    page.locator('[data-numbers="by-class"] summary').click()
    rows = page.locator('[data-numbers="by-class"] tbody tr')
    rows.first.wait_for()
    assert rows.count() == 4 * 5
    assert "<b>delta</b>" in page.locator('[data-numbers="by-class"]').inner_text()
    page.locator('[data-chart="front"] .mark-symbol.role-mark path').last.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "Short of the target" in tooltip.inner_text()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_shows_the_summary_and_each_section_when_it_is_opened(either, open_page: Open, width: int) -> None:
    page = open_page(either[1], width=width, height=844, phone=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    if width < 500:
        assert page.locator("details.section[open]").count() == 0
        assert page.evaluate("document.documentElement.scrollHeight") < 7000
        assert page.locator("[data-chart] svg.marks").count() == 1  # the front
        for section in ("methods", "groups", "sizes"):
            page.click(f"#{section} > summary")
        wait_for_marks(page, "tradeoff", marks(page, "tradeoff"))
        page.wait_for_function("document.querySelectorAll('#groups [data-drawn=\"true\"]').length === 3")
    explore(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []


def test_it_prints_on_paper_in_light_without_controls(either, open_page: Open) -> None:
    page = open_page(either[1], **PAPER, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("#verdict").is_visible()
    for control in ("nav", "#finder"):
        assert page.locator(control).is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(35, 38, 43)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_dark_mode_turns_page_and_charts_dark(page_file: Path, open_page: Open) -> None:
    def colours(page: Any) -> tuple[str, str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                getComputedStyle(document.querySelector('[data-chart="front"] .role-axis-label text')).fill]"""
        )

    light, dark = (colours(open_page(page_file, color_scheme=scheme)) for scheme in ("light", "dark"))
    assert light == ["rgb(247, 246, 243)", "rgb(103, 109, 118)"]
    assert dark == ["rgb(22, 24, 27)", "rgb(155, 160, 168)"]


def test_everything_that_acts_or_shows_has_a_name_and_the_keyboard_is_enough(either, open_page: Open) -> None:
    page = open_page(either[1])
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, select, button, [role=img], [role=region], summary')]
          .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label')))
          .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert page.locator("h1").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#explorer > summary")
    page.keyboard.press("Enter")
    page.wait_for_function("document.documentElement.dataset.explored === 'true'")
    before = page.inner_text("#node-title")
    page.focus("#next")
    page.keyboard.press("Enter")
    page.wait_for_function("before => document.getElementById('node-title').innerText !== before", arg=before)


EDGE_CASES: dict[str, dict[str, Any]] = {
    "no edges": {"graph": ns.Graph.from_edge_index(np.empty((2, 0), dtype=np.int64), num_nodes=1500)},
    "four hops, another score": {"hops": 4, "score": ns.RAPS(penalty=0.3)},
    "one node": {"nodes": [3], "hops": 0},
    "one method, words as ids": {"methods": ["split"], "ids": np.array([f"<i>{i}</i> & co" for i in range(1500)])},
}


@pytest.mark.parametrize("case", EDGE_CASES)
def test_odd_results_make_a_quiet_page_too(case: str, world: dict[str, Any], open_page: Open, tmp_path: Path) -> None:
    keep = np.setdiff1d(world["calibration"], 3)
    path = ns.report.write_report(tmp_path / "report.html", **(world | {"calibration": keep} | EDGE_CASES[case]))
    page = open_page(path, width=390)
    explore(page)
    assert page.inner_text("#node-title").startswith("Node ")
    if "words" in case:
        assert "<i>" in page.inner_text("#node-title")
    if case == "no edges":
        page.click("#neighbourhoods > summary")
        assert "neighbourhoods cannot be compared" in page.inner_text("#neighbourhoods")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_all_methods_of_the_table_fit_a_screen(world, open_page: Open, tmp_path) -> None:
    inputs = [world[key] for key in ("graph", "probabilities", "labels", "calibration")]

    def fits(name: str) -> bool:
        try:
            ns.make_method(name).calibrate(*inputs)
        except ns.NapsetsError:  # it needs features, lengths of edges or an extra
            return False
        return True

    names = [name for name in ns.list_methods() if fits(name)]
    assert len(names) > len(FOUR)
    comparison = compare(**(world | {"methods": names}), alphas=CURVE_ALPHAS)
    page = open_page(ns.report.write_page(tmp_path / "report.html", comparison), width=1440)
    assert page.locator("#methods table tbody tr").first.is_visible()
    assert page.evaluate(CUT_OFF) == []


def test_every_warning_stands_on_the_page_the_gravest_first(world: dict[str, Any], open_page: Open, tmp_path: Path):
    predicted = world["probabilities"].argmax(axis=1)
    order = np.argsort(predicted == 1, kind="stable")
    biased = world | {"calibration": order[:60], "nodes": order[700:], "methods": ["split", "naps"]}
    compared = compare(**biased, alphas=CURVE_ALPHAS)
    warnings = compared.verdict().warnings
    assert len(warnings) >= 2
    page = open_page(ns.report.write_page(tmp_path / "report.html", compared))
    shown = [text.replace("\N{NO-BREAK SPACE}", " ") for text in page.locator("#numbers .warned dd").all_inner_texts()]
    assert shown == [f"{text[:1].upper()}{text[1:]}.".replace("`", "") for text in warnings]
    assert page.inner_text("#verdict .withdrawn").startswith("No promise of coverage can be made.")


def test_many_classes_come_worst_first_and_all_of_them_when_asked(open_page: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n, classes = 1200, 40
    y = np.arange(n) % classes
    p = rng.dirichlet(np.ones(classes), n) + 0.3 * np.eye(classes)[y]
    graph = ns.Graph.from_edge_index(rng.integers(n, size=(2, 5000)), num_nodes=n)
    order = rng.permutation(n)
    compared = compare(
        graph, p / p.sum(axis=1, keepdims=True), y, order[:600], order[600:], methods=["split", "naps"],
        alphas=CURVE_ALPHAS,
    )  # fmt: skip
    page = open_page(ns.report.write_page(tmp_path / "report.html", compared))
    button = page.locator('button[data-of="by-class"]')
    shown = lambda: marks(page, "by-class")  # noqa: E731
    before = shown()
    height = page.locator('[data-chart="by-class"] svg.marks').bounding_box()["height"]
    assert button.inner_text() == "Show all 40"
    button.click()
    page.wait_for_function(
        "n => document.querySelectorAll('[data-chart=\"by-class\"] .mark-symbol.role-mark path').length > n", arg=before
    )
    assert page.locator('[data-chart="by-class"] svg.marks').bounding_box()["height"] > 1.5 * height
    assert button.get_attribute("aria-expanded") == "true"
