"""What only a page about sets shows: set sizes, classes, and what holds where methods have support."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.results import Comparison
from napsets.levels import chance_band
from napsets.methods import METHODS
from napsets.report import ReportData, page_data
from napsets.report.sets_page import _weakest_first, size_groups
from worlds import FOUR, never_supported


def of_method(rows: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["method"] == title]


def supported(comparison: Comparison) -> np.ndarray:
    finite = np.isfinite([result.sets.thresholds for result in comparison])
    return finite[finite.mean(axis=1) >= 0.5].all(axis=0)  # methods of mostly full sets would leave hardly any node


def test_empty_and_full_sets_are_counted(sets_data: ReportData, comparison: Comparison) -> None:
    for row, cells, result in zip(sets_data.methods, sets_data.kind.size_table(sets_data), comparison, strict=True):
        assert row["empty"] == (result.sets.sizes == 0).sum()
        assert row["full"] == (result.sets.sizes == 5).sum()
        assert cells[1][0] == f"{row['empty']:,}"


def test_supported_nodes_are_those_where_every_method_has_a_finite_threshold(sets_data, comparison) -> None:
    finite = supported(comparison)
    assert 0 < finite.sum() < finite.size
    for row, result in zip(sets_data.methods, comparison, strict=True):
        assert row["supported"] == finite.sum()
        assert row["supported_size"] == result.sets.sizes[finite & np.isfinite(result.sets.thresholds)].mean()


def test_a_method_without_support_anywhere_is_passed_over(world, comparison: Comparison, monkeypatch) -> None:
    monkeypatch.setitem(METHODS, "nowhere", never_supported)
    rows = page_data(compare(**(world | {"methods": [*FOUR, "nowhere"], "alphas": CURVE_ALPHAS}))).methods
    finite = supported(comparison)
    assert [row["supported"] for row in rows] == [finite.sum()] * 5
    own = [finite & np.isfinite(result.sets.thresholds) for result in comparison]
    sizes = [result.sets.sizes[nodes].mean() for result, nodes in zip(comparison, own, strict=True)]
    assert [row["supported_size"] for row in rows[:4]] == sizes
    assert np.isnan(rows[4]["supported_size"])


@pytest.mark.parametrize("m", range(len(FOUR)), ids=FOUR)
def test_set_sizes_add_up_to_all_nodes(sets_data: ReportData, comparison: Comparison, m: int) -> None:
    result = comparison.results[m]
    rows = of_method(sets_data.by_size, result.title)
    assert sum(row["nodes"] for row in rows) == len(result.sets)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert sum(row["size"] * row["share"] for row in rows) == pytest.approx(result.mean_size)


def test_classes_that_the_recommended_method_covers_too_rarely_come_first(sets_data: ReportData) -> None:
    orders = []
    for method in {row["method"] for row in sets_data.by_class}:
        rows = of_method(sets_data.by_class, method)
        assert [row["order"] for row in rows] == [0, 1, 2, 3, 4]
        orders.append([(row["coverage"] >= row["chance_low"], row["coverage"]) for row in rows])
    assert any(keys == sorted(keys) for keys in orders)


def test_classes_that_the_verdict_names_stand_before_all_others() -> None:
    covered = {"a": 0.95, "b": 0.70, "c": 0.60, "d": 0.50}
    rows = [
        {"method": "m", "class": name, "order": k, "coverage": share, "chance_low": 0.8, "nodes": 9}
        for k, (name, share) in enumerate(covered.items())
    ]
    assert [row["class"] for row in _weakest_first(rows, "m", ["b", "c"])] == ["c", "b", "d", "a"]


def test_every_size_has_its_chance_band(sets_data: ReportData) -> None:
    for row in size_groups(sets_data.by_size, 5, 0.9):
        if row["nodes"]:
            assert (row["chance_low"], row["chance_high"]) == chance_band(row["nodes"], 0.9)


def test_few_set_sizes_stand_alone_and_many_share_ranges() -> None:
    rows = [{"method": "m", "size": size, "nodes": 10, "share": 10 / 590, "coverage": size / 58} for size in range(59)]
    groups = size_groups(rows, 58, 0.9)
    names = [row["sizes"] for row in groups]
    assert names == ["0", "1", "2", "3", "4", "5–6", "7–9", "10–14", "15–21", "22–32", "33–48", "49–57", "58"]
    assert sum(row["nodes"] for row in groups) == 590
    assert sum(row["share"] for row in groups) == pytest.approx(1)
    assert groups[5]["coverage"] == pytest.approx(5.5 / 58)
    assert [row["sizes"] for row in size_groups(rows[:6], 5, 0.9)] == ["0", "1", "2", "3", "4", "5"]
