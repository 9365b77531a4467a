"""The demo does the main job, end to end."""

from __future__ import annotations

import re

import pytest

import napsets as ns

pytest.importorskip("torch")
pytestmark = pytest.mark.gnn


def test_demo_trains_compares_and_says_where_the_report_is(run_json, tmp_path):
    """Holds for any training: accuracy was 0.851 with seed 0, coverage 0.892 to 0.903."""
    target = tmp_path / "demo.html"
    result = run_json("demo", "--output", target)
    assert result["report"] == str(target)
    assert "<html" in target.read_text(encoding="utf-8")[:500]
    assert result["accuracy"] > 0.8
    rows = {row["method"]: row for row in result["results"]}
    assert list(rows) == ["split", "naps", "naps-exact", "informed", "auto", "thr"]
    for row in rows.values():
        assert row["nodes"] == 6000
        assert row["coverage"] > 0.9 - 4 * row["coverage_se"]
    assert rows["auto"]["mean_size"] < rows["split"]["mean_size"]


def test_demo_recommends_a_method_that_beats_split_aps_and_says_by_how_much(run, tmp_path, monkeypatch):
    """In the lines of the report; from committed predictions, whose digits no processor changes."""
    committed = ns.datasets.amazon_predictions()
    monkeypatch.setattr(ns.gnn, "train", lambda *_, **__: committed)
    shown = run("demo", "--output", tmp_path / "demo.html", "--methods", "split,naps,auto")
    assert shown.exit_code == 0, shown.stderr
    assert f"accuracy {committed.accuracy:.3f} on" in shown.stdout
    rows = [re.search(rf"^ *{title} .*$", shown.stdout, re.M) for title in ("Split APS", "Auto")]
    split, auto = (float(re.findall(r"\b\d\.\d{3}\b", row[0])[0]) for row in rows)  # the gap over classes
    assert auto < split
    words = " ".join(shown.stdout.split())
    match = re.search(
        r"Use Auto: average set size ([\d.]+), compared with ([\d.]+) for split APS \(−([\d.]+) %, 95 % interval "
        r"−([\d.]+) to −([\d.]+) %\)\. Coverage is .*? Coverage: [\d.]+ % of the 6,000 evaluation nodes are covered "
        r"\(target 90 %; with other random labels it would lie between [\d.]+ and [\d.]+ % in 95 of 100 cases\)\. It "
        r"was chosen without the labels of these nodes\. Cost: 3,000 of the 6,000 labels are used only to ",
        words,
    )
    assert match is not None, words
    size, plain, share, most, least = map(float, match.groups())
    assert 100 * (1 - size / plain) == pytest.approx(share, abs=0.7)  # sizes are rounded to two digits
    assert most > share > least > 10
    assert size < 0.85 * plain
    assert "Evaluated on the 6,000 test nodes that were not used to calibrate" in words
    assert "`python -m studies` evaluates, as the paper does, only nodes with 50 or more test nodes" in words
    page = (tmp_path / "demo.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert f"average set size {match[1]}, compared with {match[2]} for split APS (−{match[3]} %" in page
