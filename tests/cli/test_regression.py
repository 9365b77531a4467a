"""``napsets predict --task regression``: intervals from files to a file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from number_worlds import COLUMNS, ENDS, IDS, KNOWN, REST, SIZE, X, Y, number_files, number_predictor
from worlds import write

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


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_every_format_is_read_and_written(must_run, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    must_run(
        "predict", "--task", "regression", *number_files(tmp_path, "cqr", suffix), "--method", "split", "-o", target
    )
    expected = number_predictor("cqr", "split").predict(REST, 0.1)
    lower = pyarrow.csv.read_csv(target)["lower"].to_numpy()
    assert np.allclose(lower, expected.lower, rtol=1e-12)


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


def test_how_files_were_written_is_recorded(must_run, tmp_path):
    renamed = {"id": IDS[KNOWN], "target": Y[KNOWN]}
    files = number_files(tmp_path, suffix=".csv", labels=renamed)
    flags = ["--rename", "id=node", "--method", "split"]
    must_run("predict", "--task", "regression", *files, *flags, "-o", tmp_path / "out.parquet")
    about = json.loads(pyarrow.parquet.read_schema(tmp_path / "out.parquet").metadata[b"napsets"])
    assert (about["rename"], about["task"], about["score"]) == (["id=node"], "regression", "cqr")


@pytest.mark.parametrize(
    ("score", "names"),
    [
        ("cqr", {"lower": "q05", "upper": "q95"}),
        ("absolute", {"prediction": "yhat"}),
        ("normalised", {"prediction": "yhat", "spread": "sd"}),
    ],
)
def test_outputs_and_targets_may_be_called_otherwise_by_every_command(must_run, tmp_path, score, names):
    (tmp_path / "usual").mkdir()
    usual, target = number_files(tmp_path / "usual", score), tmp_path / "out.parquet"
    named_files = number_files(
        tmp_path,
        score,
        ".csv",
        edges={"src": IDS[ENDS[0]], "dst": IDS[ENDS[1]]},
        probabilities={"node": IDS} | {names[ours]: column for ours, column in COLUMNS[score].items()},
        labels={"node": IDS[KNOWN], "price": Y[KNOWN]},
    )
    called = {"src": "source", "dst": "target", "price": "target"} | {theirs: ours for ours, theirs in names.items()}
    flags = [*(f"--rename={theirs}={ours}" for theirs, ours in called.items()), "--json"]
    task, split = ["--task", "regression"], ["--method", "split"]

    def same(*arguments, one, other):
        answer, expected = (json.loads(must_run(*arguments, *files).stdout) for files in (one, other))
        return all(answer[key] == expected[key] for key in expected if key not in ("output", "seconds", "report"))

    must_run("predict", *task, *usual, *split, "-o", target)
    ends = pyarrow.parquet.read_table(target).select(["lower", "upper"])
    must_run("predict", *task, *named_files, *split, *flags, "-o", target)
    assert pyarrow.parquet.read_table(target).select(["lower", "upper"]).equals(ends)
    truth = [write(tmp_path / f"{name}.csv", {"node": IDS[REST], name: Y[REST]}) for name in ("price", "target")]
    assert same("evaluate", target, one=["-l", truth[0], *flags], other=["-l", truth[1], "--json"])
    node = ["inspect", "--node", "n160", *task, *split]
    assert same(*node, one=[*named_files, *flags], other=[*usual, "--json"])
    page = ["report", *task, "--methods", "split", "-o", tmp_path / "r.html"]
    assert same(*page, one=[*named_files, *flags], other=[*usual, "--json"])


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
