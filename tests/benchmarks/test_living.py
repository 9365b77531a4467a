"""The page on living graphs shows the figures that were measured, all of them by one run."""

from __future__ import annotations

import json

from benchmarks import living


def test_the_page_shows_the_results():
    page = living.PAGE.read_text("utf-8")
    assert living.rendered(page, json.loads(living.RESULTS.read_text())) == page


def test_every_method_is_measured_alive_and_as_a_batch():
    figures = living.living("split", 2000)
    assert figures["replayed"] == 200
    assert figures["predict_1"]["p50_ms"] <= figures["predict_1"]["p99_ms"]
    results = {"methods": {"split": {"batch": living.batch("split", 2000), "living": figures}}}
    assert living.table(results).splitlines()[2].startswith("| `split` | ")
