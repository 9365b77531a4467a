"""``napsets report --task regression`` and ``--features``: pages from files, and what the terminal says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.evaluation.comparison import CURVE_ALPHAS, compare
from napsets.evaluation.judgement import halves
from number_worlds import COLUMNS, ENDS, IDS, KNOWN, REST, SIZE, Y, number_files
from worlds import CLASSES, make_world, write

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
GRAPH = ns.Graph.from_edge_index(ENDS, SIZE)


def compared(score, calibration, nodes, **settings):
    outputs = np.column_stack(list(COLUMNS[score].values()))
    return compare(GRAPH, outputs, Y, IDS[calibration], IDS[nodes], score=score, ids=IDS, **settings)


@pytest.mark.parametrize("score", list(COLUMNS))
def test_the_report_compares_the_intervals_of_the_files(run_json, tmp_path, score):
    truth = write(tmp_path / "truth.parquet", {"node": IDS[REST], "target": Y[REST]})
    target = tmp_path / "report.html"
    answer = run_json("report", "--task", "regression", *number_files(tmp_path, score), "--truth", truth, "-o", target)
    comparison = compared(score, KNOWN, REST, alphas=CURVE_ALPHAS)
    assert [row["coverage"] for row in answer["results"]] == [result.coverage for result in comparison]
    assert [row["median_width"] for row in answer["results"]] == pytest.approx(
        [result.median_width for result in comparison]
    )
    assert answer["verdict"]["lines"] == list(comparison.verdict().lines)
    assert "Prediction intervals on a graph" in target.read_text(encoding="utf-8")


def test_without_truth_half_of_the_targets_judges_and_the_table_says_widths(run, tmp_path):
    target = tmp_path / "report.html"
    flags = ["report", "--task", "regression", *number_files(tmp_path), "--methods", "split,naps,naps-exact"]
    shown = run(*flags, "--seed", 3, "-o", target)
    assert shown.exit_code == 0, shown.stderr
    calibration, nodes = halves(KNOWN, 3)
    comparison = compared(
        "cqr", calibration, nodes, methods=["split", "naps", "naps-exact"], seed=3, alphas=CURVE_ALPHAS
    )
    words = " ".join(shown.stdout.split())
    assert f"{nodes.size} nodes at alpha = 0.1, 2 hops" in words
    assert f"{100 * comparison['naps'].infinite_rate:.1f} %" in words
    assert f"the intervals of all methods are finite on {100 * comparison.finite.mean():.1f} % of the nodes" in words
    assert " ".join(comparison.verdict().lines) in words


@pytest.fixture(params=["labels", "numbers"])
def both_files(request, tmp_path):
    """Return the files of a report, and a function that writes the truth of some nodes, moved where asked for."""
    if request.param == "numbers":
        files, ids, known = ["--task", "regression", *number_files(tmp_path)], IDS, KNOWN
        columns = {"target": Y}
    else:
        world = make_world(tmp_path / "world")
        files, ids, known = world.files, world.ids, world.calibration
        columns = {"label": np.array(CLASSES)[world.labels]}

    def truth(nodes):
        judging = {key: column[nodes] for key, column in columns.items()}
        return ["--truth", write(tmp_path / "judging.csv", {"node": ids[nodes], **judging})]

    flags = ["report", *files, "--methods", "split", "-o", tmp_path / "report.html"]
    return flags, truth, known, np.setdiff1d(np.arange(len(ids)), known)


def test_labels_that_are_truth_too_judge_and_that_is_said(run, both_files):
    flags, truth, known, rest = both_files
    some = known[:40]
    shown = run(*flags, *truth(np.concatenate([some, rest])), "--json")
    answer = json.loads(shown.stdout)
    assert (answer["calibration"], answer["results"][0]["nodes"]) == (known.size - 40, rest.size + 40)
    text = " ".join(shown.stderr.split())
    assert f"40 of the {known.size} nodes of --labels are also in --truth: they are used only to evaluate" in text
    assert "--truth" not in run(*flags, *truth(rest)).stderr


def test_truth_that_leaves_no_label_to_calibrate_is_refused_by_name(run, both_files, tmp_path):
    flags, truth, known, rest = both_files
    shown = run(*flags, *truth(np.concatenate([known, rest])))
    assert shown.exit_code == 2
    text = " ".join(shown.stderr.replace("│", " ").split())
    assert f"--truth: must leave labels to calibrate on: all {known.size} nodes of --labels are in it" in text
    assert not (tmp_path / "report.html").exists()


def test_predict_says_its_verdict_on_intervals(run, run_json, tmp_path):
    flags = ["predict", "--task", "regression", *number_files(tmp_path), "-o", tmp_path / "out.parquet"]
    verdict = run_json(*flags)["verdict"]
    shown = run(*flags)
    assert " ".join(verdict["lines"]) in " ".join(shown.stdout.split())
    assert verdict["lines"][0].startswith("Auto (method chosen automatically): average interval width ")
    naps = run_json(*flags, "--method", "naps")
    assert naps["infinite"] > 0
    share = 100 * naps["infinite"] / naps["nodes"]
    assert (
        f" ({share:.1f} % of them are the whole line, which is not counted in the average)"
        in naps["verdict"]["lines"][0]
    )
