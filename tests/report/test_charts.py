"""Charts are made with Altair from the page's rows: they are valid, and every axis of coverage marks the target."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pytest

from napsets.evaluation.comparison import CURVE_ALPHAS
from napsets.report import ReportData, page_data
from napsets.report.charts import ticks
from napsets.report.rows import is_skewed, median_ends, range_names, set_size_groups, weakest_first
from worlds import compare_intervals, make_numbers


def test_every_chart_is_a_valid_specification_with_rows_and_the_methods(data: ReportData) -> None:
    assert {"front", "tradeoff", "up-to", "gap", "scores", "funnel"} < data.specs.keys()
    for name, spec in data.specs.items():
        alt.LayerChart.from_dict(spec)  # validates it
        params = {param["name"]: param["value"] for param in spec["params"]}
        if name != "scores":
            assert params["shown"] == data.shown.titles
            assert {row["method"] for row in spec["datasets"]["rows"]} <= set(data.shown.titles)
    assert len([name for name in data.specs if name.startswith("by-")]) == 3


def test_the_front_uses_every_judged_node_wherever_naps_gives_whole_lines() -> None:
    numbers = make_numbers(n=970, degree=6, labelled=485)
    compared = compare_intervals(**numbers, methods=["split", "naps", "naps-h"], alphas=CURVE_ALPHAS)
    assert 0 < np.isfinite(compared["naps"].sizes).sum() < 485
    data = page_data(compared)
    medians = [sorted(result.sizes.tolist())[242] for result in compared]
    assert [row["median_width"] for row in data.front] == medians
    drawn = data.specs["front"]["datasets"]["rows"]
    assert [row["method"] for row in drawn] == [
        result.title for result, median in zip(compared, medians, strict=True) if math.isfinite(median)
    ]
    assert all(math.isfinite(row["size_high"]) for row in drawn)


def test_the_target_is_a_mark_of_every_axis_of_coverage() -> None:
    assert ticks([0.41, 1.0], 0.9) == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    for target in (0.9, 0.95, 0.8, 0.925):
        for low in (0.0, 0.31, 0.62, 0.77):
            marks = ticks([low, 1.0], target)
            assert target in marks
            assert 3 <= len(marks) <= 9
            assert low - 1e-9 <= min(marks) <= max(marks) <= 1.0 + 1e-9


def test_classes_that_the_verdict_names_stand_before_all_others() -> None:
    covered = {"a": 0.95, "b": 0.70, "c": 0.60, "d": 0.50}
    rows = [
        {"method": "m", "class": name, "order": k, "coverage": share, "chance_low": 0.8, "nodes": 9}
        for k, (name, share) in enumerate(covered.items())
    ]
    assert [row["class"] for row in weakest_first(rows, "m", ["b", "c"])] == ["c", "b", "d", "a"]


def test_few_set_sizes_stand_alone_and_many_share_ranges() -> None:
    rows = [{"method": "m", "size": size, "nodes": 10, "coverage": size / 58} for size in range(59)]
    groups = set_size_groups(rows, 58, 0.9)
    names = [row["sizes"] for row in groups]
    assert names == ["0", "1", "2", "3", "4", "5–6", "7–9", "10–14", "15–21", "22–32", "33–48", "49–57", "58"]
    assert sum(row["nodes"] for row in groups) == 590
    assert groups[5]["coverage"] == pytest.approx(5.5 / 58)
    assert [row["sizes"] for row in set_size_groups(rows[:6], 5, 0.9)] == ["0", "1", "2", "3", "4", "5"]


def test_widths_are_skewed_where_a_few_are_far_wider() -> None:
    assert not is_skewed([np.array([1.0, 1.1, 1.2]), np.array([np.inf, 1.3])])
    assert is_skewed([np.array([0.01, 0.5, 10.0, np.inf])])
    assert not is_skewed([np.array([0.0, 0.5, 10.0])])
    assert not is_skewed([np.array([np.inf])])


def test_the_interval_of_a_median_lies_between_two_of_the_values() -> None:
    assert median_ends(np.arange(101.0)) == (50.0, 40.0, 60.0)
    assert median_ends(np.array([1.0, 2.0, np.inf])) == (2.0, 1.0, np.inf)
    assert range_names([(0, 0), (1, 4)]) == ["0", "1–4"]
