"""What only a page about intervals shows, in a real browser; `test_verdict_page.py` holds what both kinds do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import napsets as ns
from napsets.advice.inspection import inspect_node
from napsets.evaluation.comparison import CURVE_ALPHAS, compare_intervals
from worlds import make_numbers

from .conftest import NODE_NAMES, find, tables, texts

# The browser first: where there is none, no page is made in vain.
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

Open = Callable[..., Any]


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "").replace("∞", "inf"))


@pytest.mark.parametrize("m", range(5))
def test_the_explorer_shows_the_interval_and_where_its_threshold_comes_from(
    interval_comparison, intervals_file, keep_page: Open, m
) -> None:
    page = keep_page(intervals_file)
    explorable = page.evaluate("JSON.parse(document.getElementById('data-explorer').textContent).names")
    alone = str(NODE_NAMES[895])
    page.locator(".choice label").nth(m).click()
    result = interval_comparison.results[m]
    for name in [*explorable[::60], *([alone] if alone in explorable else [])]:
        node = int(np.flatnonzero(name == NODE_NAMES)[0])
        find(page, name)
        seen = inspect_node(result.calibrated, node)
        facts = ("node-title", "node-set", "fact-threshold", "node-covers", "node-reason", "fact-support")
        head, interval, threshold, covers, reason, support = texts(page, *facts)
        by_method, outputs = tables(page, "node-intervals", "node-outputs")
        assert head == f"Node {name}"
        if np.isinf(seen.threshold):
            assert interval == "the whole line"
            assert threshold == "+∞"
        else:
            ends = [number(end) for end in interval.split(" to ")]
            assert ends == pytest.approx([seen.lower, seen.upper], rel=1e-3, abs=1e-3)
            assert float(threshold) == pytest.approx(seen.threshold, abs=5.0001e-5)
        truth = interval_comparison.targets[node]
        verb = "covers" if seen.lower <= truth <= seen.upper else "misses"
        assert covers.startswith(f"{result.title} {verb} the true target, ")
        assert reason == seen.reason()
        assert support == f"{seen.support:,} calibration nodes"
        assert page.locator("#node-evidence").is_visible() == (seen.evidence is not None)
        assert len(by_method) == len(interval_comparison.results)
        assert any(verb in cell for cell in by_method[m])
        if seen.evidence is not None:
            assert [number(end) for end in outputs[1][1:]] == pytest.approx(seen.outputs, rel=1e-3, abs=1e-3)


def test_the_number_line_has_the_interval_the_model_and_the_targets_around(
    interval_comparison, intervals_file: Path, keep_page: Open
) -> None:
    page = keep_page(intervals_file)
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


def test_titles_and_captions_are_about_intervals_and_numbers_open_as_tables(
    interval_comparison, intervals_file, keep_page: Open
) -> None:
    page = keep_page(intervals_file)
    assert page.inner_text("h1") == "Prediction intervals for A ring & <i>co</i>"
    assert f"{100 * interval_comparison.finite.mean():.1f} % of the evaluation nodes where" in page.inner_text(
        "#figure-size"
    )
    page.locator('[data-numbers="widths"] summary').click()
    page.locator('[data-numbers="widths"] tbody tr').first.wait_for()
    assert page.locator('[data-numbers="widths"] thead th').all_inner_texts() == ["method", "width", "share"]


def test_it_is_used_by_keyboard(intervals_file: Path, keep_page: Open) -> None:
    page = keep_page(intervals_file)
    page.focus("#next")
    before = page.inner_text("#node-title")
    page.keyboard.press("Enter")
    assert page.inner_text("#node-title") != before
    page.focus('.choice input[value="4"]')
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#node-covers").startswith("Informed ")


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
    compared = compare_intervals(**(make_numbers() | CASES[case]), alphas=CURVE_ALPHAS)
    page = open_page(ns.report.write_page(tmp_path / "report.html", compared))
    assert page.inner_text("#node-title").startswith("Node ")
    if case == "no edges":
        assert "neighbourhoods cannot be compared" in page.inner_text("#neighbourhoods")
    if case == "too few labels":
        assert page.inner_text("#node-set") == "the whole line"
        assert "every interval is the whole line" in page.inner_text("#verdict")
    if case == "a prediction alone":
        assert "the model's own prediction" in page.inner_text("#line-text")
