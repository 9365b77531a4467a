"""The page on other screens, in the dark, with odd results and with any number of methods."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare

from .conftest import check_scores, marks, shown_set

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

Open = Callable[..., Any]


def test_dark_mode_turns_page_and_charts_dark(page_file: Path, open_page: Open) -> None:
    def colours(page: Any) -> tuple[str, str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                getComputedStyle(document.querySelector('[data-chart="coverage"] .role-axis-label text')).fill]"""
        )

    light, dark = (colours(open_page(page_file, color_scheme=scheme)) for scheme in ("light", "dark"))
    assert light == ["rgb(247, 246, 243)", "rgb(103, 109, 118)"]
    assert dark == ["rgb(22, 24, 27)", "rgb(155, 160, 168)"]


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_needs_no_sideways_scrolling(page_file: Path, open_page: Open, width: int) -> None:
    page = open_page(page_file, width=width, height=800, phone=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    widest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.chart svg.marks')].map(e => e.getBoundingClientRect().right))"
    )
    assert widest <= width


EDGE_CASES: dict[str, dict[str, Any]] = {
    "no edges": {"graph": ns.Graph.from_edge_index(np.empty((2, 0), dtype=np.int64), num_nodes=1500)},
    "no hops": {"hops": 0},
    "four hops": {"hops": 4},
    "another score": {"score": ns.RAPS(penalty=0.3)},
    "one node": {"nodes": [3]},
    "words as ids": {"ids": np.array([f"<i>{i}</i> & co" for i in range(1500)])},
}


@pytest.mark.parametrize("case", EDGE_CASES)
def test_odd_results_make_a_quiet_page_too(case: str, world: dict[str, Any], open_page: Open, tmp_path: Path) -> None:
    keep = np.setdiff1d(world["calibration"], 3)
    path = ns.report.write_report(tmp_path / "report.html", **(world | {"calibration": keep} | EDGE_CASES[case]))
    page = open_page(path)
    assert page.inner_text("#node-title").startswith("Node ")
    if case == "words as ids":
        assert "<i>" in page.inner_text("#node-title")
    if case == "no edges":
        assert "neighbourhoods cannot be compared" in page.inner_text("#neighbourhoods")


def test_all_methods_of_the_table_fit_a_screen(world, open_page: Open, tmp_path) -> None:
    inputs = [world[key] for key in ("graph", "probabilities", "labels", "calibration")]

    def fits(name: str) -> bool:
        try:
            ns.make_method(name).calibrate(*inputs)
        except ns.NapsetsError:  # it needs features, lengths of edges or an extra
            return False
        return True

    names = [name for name in ns.methods() if not name.startswith("cf-gnn") and fits(name)]  # that one trains
    assert len(names) > 15
    comparison = compare(**(world | {"methods": names}), alphas=CURVE_ALPHAS)
    page = open_page(ns.report.write_page(tmp_path / "report.html", comparison), width=1440)
    assert marks(page, "coverage") == len(names)
    assert page.locator("#methods tbody tr").count() == len(names)
    cut = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"
    )
    assert page.evaluate(cut) == []


@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_methods_makes_a_quiet_page_that_fits(seven, world, open_page: Open, tmp_path, count) -> None:
    comparison = compare(**(world | {"methods": seven[:count]}), alphas=CURVE_ALPHAS)
    page = open_page(ns.report.write_page(tmp_path / "report.html", comparison), width=320, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert marks(page, "coverage") == count
    assert page.locator('input[name="shown"]').count() == count
    assert page.locator("#map-method option").count() == count - 1
    node = int(page.inner_text("#node-title").removeprefix("Node "))
    for m, result in enumerate(comparison):
        page.locator(".choice label").nth(m).click()
        row = int(np.flatnonzero(result.sets.nodes == node)[0])
        assert page.inner_text("#node-covers").startswith(f"{result.title} ")
        assert shown_set(page) == ([f"class {y}" for y in np.flatnonzero(result.sets.member[row])] or ["the empty set"])
        check_scores(page, result.calibrated.score.matrix(np.array([node]))[0])
        assert page.locator("#fact-mass").count() == (m < 6)
        if m < 6 and np.isfinite(result.sets.thresholds[row]):
            reached, needed = re.match(r"([\d.]+); needed ([\d.]+),", page.inner_text("#fact-mass")).groups()
            assert float(reached) >= float(needed) - 0.01
    if count == 7:
        colours = page.evaluate(
            """() => [...document.querySelectorAll('[data-chart="coverage"] .mark-symbol.role-mark path')]
                 .map(e => getComputedStyle(e).fill)"""
        )
        assert len(set(colours)) == 7
