"""The demo does the main job, end to end."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")


@pytest.mark.gnn
def test_demo_trains_compares_and_says_where_the_report_is(tmp_path, run):
    target = tmp_path / "demo.html"
    shown = run("demo", "--output", target, "--json")
    assert shown.exit_code == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["report"] == str(target)
    assert "<html" in target.read_text(encoding="utf-8")[:500]
    assert told["accuracy"] > 0.8
    rows = {row["method"]: row for row in told["results"]}
    assert list(rows) == ["APS", "NAPS", "NAPS-H", "NAPS-G"]
    for row in rows.values():
        assert row["nodes"] == 6000
        assert row["coverage"] > 0.9 - 4 * row["coverage_se"]
    assert rows["NAPS"]["pccv"] < rows["APS"]["pccv"]
