"""What `predict` and `report` say of what they made: the verdict, its settings, and who judges."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.levels import coverage_band
from napsets.methods import make_method
from worlds import CLASSES, make_world, write


@pytest.fixture
def larger(tmp_path):
    return make_world(tmp_path / "larger", nodes=600, degree=12)


def test_predict_prints_its_verdict(run, run_json, larger, tmp_path):
    target = tmp_path / "sets.parquet"
    shown = run("predict", *larger.files, "-o", target)
    verdict = run_json("predict", *larger.files, "-o", target)["verdict"]
    words = " ".join(shown.stdout.split())
    assert " ".join(verdict["lines"]) in words
    assert verdict["lines"][0].startswith("Auto (method chosen automatically): average set size ")
    assert (verdict["method"], verdict["nodes"], verdict["judged"]) == ("auto", 300, 0)
    assert verdict["labels"] == 300


def test_predict_warns_once_and_in_options(must_run, larger, tmp_path):
    shown = must_run("predict", *larger.files, "-m", "split", "--alpha", 0.9, "-o", tmp_path / "sets.csv")
    said = " ".join((shown.stdout + shown.stderr).split())
    assert said.count("alpha = 0.9 is the error rate") == 1
    assert "For 90 % coverage, pass `--alpha 0.1`." in said


@pytest.mark.parametrize("method", ["split", "naps", "naps-exact"])
def test_predict_promises_what_is_proven(run_json, larger, tmp_path, method):
    answer = run_json("predict", *larger.files, "--method", method, "-o", tmp_path / "sets.parquet")
    verdict, apart = answer["verdict"], 150 if method == "naps-exact" else 0
    assert verdict["size"] == answer["mean_size"]
    assert (verdict["apart"], verdict["proven"]) == (apart, method != "naps")
    low, high = coverage_band(apart or 300, 0.1)
    promise = f"it lies between {100 * low:.1f} and {100 * high:.1f} % in 95 of 100 draws of labels"
    assert (promise in verdict["lines"][1]) == (method != "naps")


def test_predict_warns_of_labels_that_are_of_one_kind(run_json, tmp_path):
    world = make_world(tmp_path / "world", nodes=900, degree=10)
    order = np.argsort(world.probabilities[:, 1], kind="stable")
    kept = order[:300]
    labels = write(
        tmp_path / "labels.parquet", {"node": world.ids[kept], "label": np.array(CLASSES)[world.labels[kept]]}
    )
    files = [*world.files[:4], "--labels", labels]
    verdict = run_json("predict", *files, "-o", tmp_path / "sets.parquet")["verdict"]
    assert any(text.startswith("only 149 labels set the level") for text in verdict["warnings"])
    assert verdict["lines"][0].startswith("No promise of coverage can be made: ")
    drift = next(text for text in verdict["warnings"] if "differ from the predicted nodes in predicted class: " in text)
    assert "nodes predicted to be dog make up " in drift


def test_the_report_says_the_verdict_of_the_comparison(run_json, larger, tmp_path):
    answer = run_json("report", *larger.files, "--truth", larger.truth, "-o", tmp_path / "report.html")
    comparison = ns.evaluation.comparison.compare(
        larger.graph, larger.probabilities, larger.labels, larger.ids[np.sort(larger.calibration)],
        larger.ids[larger.rest], ids=larger.ids, alphas=ns.evaluation.comparison.CURVE_ALPHAS,
    )  # fmt: skip
    assert answer["verdict"]["lines"] == list(comparison.verdict(CLASSES).lines)


def test_fallback_and_level_are_settings_of_report_and_predict(run_json, larger, tmp_path):
    target = tmp_path / "report.html"
    flags = ["--methods", "split,naps", "--fallback", "global", "--level", "exact", "--hops", 1, "--pool", 3]
    answer = run_json("report", *larger.files, *flags, "-o", target)
    assert [row["infinite"] for row in answer["results"]] == [0, 0]
    node = larger.ids[larger.calibration[0]]
    naps = ["--node", node, "--method", "naps", "--fallback", "global", "--hops", 1, "--pool", 3]
    seen, plain = (run_json("inspect", *larger.files, *naps, "--level", level) for level in ("exact", "nominal"))
    assert seen["threshold"] != plain["threshold"]
    half = run_json("predict", *larger.files, "--level", "exact", "-o", tmp_path / "sets.parquet")
    assert (half["method"], half["level"], half["verdict"]["apart"]) == ("naps", "exact", 150)


def test_a_level_is_that_of_the_method_made():
    assert type(make_method("naps", level="exact").level) is ns.Exact
    assert make_method("naps-exact", level="nominal").level == ns.Nominal()
    assert make_method("split", level=ns.Exact(0.3)).level == ns.Exact(0.3)
    assert make_method("auto", level="exact") == make_method("auto")
    with pytest.raises(ns.InvalidInputError, match="level"):
        make_method("naps", level="exactly")
    with pytest.raises(ns.InvalidInputError, match="`level` must be exact for a score that learns from labels"):
        make_method("informed", level="nominal")
