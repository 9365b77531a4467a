"""The charts that every page has."""

from __future__ import annotations

from typing import Any

from napsets.report.chart_parts import coverage, ticks
from napsets.report.charts import _names


def rows(*points: tuple[float, float], taken: int = 0, chance: float = 0.0) -> list[dict[str, Any]]:
    return [
        {"method": f"method {i}", "mean_size": size, "gap": gap, "taken": i == taken, "chance": chance}
        | {"size_low": size, "size_high": size, "gap_low": gap, "gap_high": gap}
        for i, (size, gap) in enumerate(points)
    ]


def test_names_of_points_that_lie_together_stand_apart() -> None:
    together = rows((4.67, 0.021), (4.67, 0.021), (4.6, 0.0212), (4.7, 0.022))
    places = _names(together, "mean_size", (4.5, 5.3), (0.0, 0.08))
    assert len(set(places.values())) == len(places) >= 2
    apart = rows((4.5, 0.02), (5.3, 0.02), (4.5, 0.07))
    assert {m: place[2] for m, place in _names(apart, "mean_size", (4.5, 5.3), (0.0, 0.08)).items()} == {
        0: "left", 1: "right", 2: "left",
    }  # fmt: skip


def test_the_recommended_method_is_named_however_crowded_it_is() -> None:
    crowd = rows(*((4.6 + 0.01 * k, 0.02 + 0.0005 * k) for k in range(8)), taken=5)
    places = _names(crowd, "mean_size", (4.5, 5.3), (0.0, 0.08))
    assert 5 in places
    assert len(places) < 8


def test_a_name_is_kept_off_the_line_of_chance_and_off_the_intervals() -> None:
    line = 300.0 * (1.0 - 0.02 / 0.08)  # in pixels from the top, as the point itself
    dx, dy, _ = _names(rows((4.6, 0.02), chance=0.02), "mean_size", (4.5, 5.3), (0.0, 0.08))[0]
    assert (dx, dy) == (12, -12)
    assert line + dy + 4.0 < line
    broad = [rows((4.6, 0.02))[0] | {"size_high": 5.0}]
    assert _names(broad, "mean_size", (4.5, 5.3), (0.0, 0.08))[0][1] != 4


def test_the_target_is_a_mark_of_every_axis_of_coverage() -> None:
    for target in (0.9, 0.95, 0.8, 0.925):
        for low in (0.0, 0.31, 0.62, 0.77):
            marks = ticks([low, 1.0], target)
            assert target in marks
            assert 3 <= len(marks) <= 9
            assert low - 1e-9 <= min(marks) <= max(marks) <= 1.0 + 1e-9
    assert 0.9 in coverage(domain=[0.5, 1.2], target=0.9)["axis"]["values"]
