"""``napsets predict --task regression``: intervals from files to a file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from number_worlds import COLUMNS, IDS, KNOWN, REST, SIZE, X, Y, number_files, number_predictor

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


@pytest.mark.parametrize("score", list(COLUMNS))
@pytest.mark.parametrize("method", ["split", "naps-exact", "informed", "auto"])
def test_the_columns_say_which_score_and_the_file_has_the_librarys_intervals(must_run, tmp_path, score, method):
    target = tmp_path / "out.parquet"
    done = must_run(
        "predict", "--task", "regression", *number_files(tmp_path, score), "--method", method, "-o", target, "--json"
    )  # fmt: skip
    expected = number_predictor(score, method).predict(REST, 0.1)
    table = pyarrow.parquet.read_table(target)
    assert table["node"].to_pylist() == IDS[REST].tolist()
    assert np.array_equal(table["lower"].to_numpy(), expected.lower)
    assert np.array_equal(table["upper"].to_numpy(), expected.upper)
    answer = json.loads(done.stdout)
    assert (answer["task"], answer["score"], answer["nodes"]) == ("regression", score, 50)
    assert answer["mean_width"] == pytest.approx(expected.widths[np.isfinite(expected.widths)].mean())
    assert json.loads(table.schema.metadata[b"napsets"])["method"] == method


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": {"node": IDS, "a": X}}, "must have the columns lower and upper, or prediction"),
        ({"labels": {"node": IDS[KNOWN], "label": Y[KNOWN]}}, "target"),
        ({"labels": {"node": IDS[KNOWN], "target": np.full(150, np.nan)}}, "must have at least one target"),
        ({"probabilities": {"node": IDS, "lower": X, "upper": np.full(SIZE, np.inf)}}, "finite"),
    ],
)
def test_files_that_are_no_regression_are_refused_in_plain_words(must_run, tmp_path, changes, message):
    files = number_files(tmp_path, "cqr", **changes)
    done = must_run("predict", "--task", "regression", *files, "-o", tmp_path / "out.parquet", code=1)
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "out.parquet").exists()


def test_a_node_that_has_a_target_is_noted_once_and_its_own_target_is_left_out(must_run, tmp_path):
    files = number_files(tmp_path, nodes={"node": IDS[140:160]})
    done = must_run("predict", "--task", "regression", *files, "-o", tmp_path / "out.parquet", "--method", "split")
    assert "10 of the nodes to predict have a target; it is left out of the threshold of its own node" in done.stderr
    assert "calibration nodes" not in done.stderr
    expected = number_predictor("cqr", "split").predict(np.arange(140, 160), 0.1)
    assert np.array_equal(pyarrow.parquet.read_table(tmp_path / "out.parquet")["lower"].to_numpy(), expected.lower)


@pytest.mark.parametrize("method", ["split", "naps", "auto"])
def test_intervals_of_a_saved_method_are_those_of_the_files(must_run, run, tmp_path, method):
    files = ("--task", "regression", *number_files(tmp_path, "cqr"), "--method", method)
    method_file, saved, direct = tmp_path / "method.npz", tmp_path / "saved.csv", tmp_path / "direct.csv"
    must_run("calibrate", *files, "-o", method_file)
    must_run("predict", *files, "-o", direct)
    shown = must_run("predict", "--method-file", method_file, "-o", saved).stdout
    assert "average interval width" in shown
    assert saved.read_text() == direct.read_text()
    refused = run("predict", "--method-file", method_file, "--p-values", "plain", "-o", saved, code=2)
    assert "intervals have no candidates" in refused.stderr


@pytest.mark.parametrize("command", [["predict"], ["calibrate"], ["inspect", "--node", "n160"]])
def test_a_method_for_classification_is_refused_with_those_for_regression(run, tmp_path, command):
    output = (
        []
        if command[0] == "inspect"
        else ["-o", tmp_path / ("out.npz" if command[0] == "calibrate" else "out.parquet")]
    )
    files = number_files(tmp_path, "cqr")
    refused = run(*command, "--task", "regression", *files, "--method", "thr", *output, code=2)
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert "thr is for classification; with --task regression, use one of split, naps" in said
    assert "--method" in said


@pytest.mark.world(suffix=".csv")
def test_a_score_of_numbers_is_not_blamed_on_the_method(run, world, tmp_path):
    files = ("-e", world.edges, "-p", world.probabilities_file, "-l", world.labels_file)
    refused = run("predict", *files, "--score", "cqr", "-o", tmp_path / "sets.csv", code=1)
    assert "`outputs` must have a column for each of lower and upper with CQR" in " ".join(refused.stderr.split())
