"""The charts that both kinds of pages share."""

from __future__ import annotations

from napsets.report.method_charts import _heights


def row(size, gap):
    return {"mean_size": size, "gap": gap}


def test_names_of_points_that_lie_together_stand_apart():
    together = [row(4.67, 0.021), row(4.67, 0.021), row(4.6, 0.0212), row(4.7, 0.022)]
    heights = _heights(together, "mean_size", (4.5, 5.3), (0.0, 0.08))
    assert len(set(heights)) == 4
    assert _heights([row(4.5, 0.02), row(5.3, 0.02), row(4.5, 0.07)], "mean_size", (4.5, 5.3), (0.0, 0.08)) == [-10] * 3
