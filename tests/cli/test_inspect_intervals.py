"""`napsets inspect --task regression` explains the interval that `napsets predict` wrote."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet
import pytest

from napsets.advice.inspection import inspect_node
from number_worlds import COLUMNS, IDS, KNOWN, REST, Y, number_files, number_predictor
from worlds import write

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")

FLAGS: dict[str, list[object]] = {
    "defaults": [],
    "local": ["--hops", 1, "--decay", "geometric", "--alpha", 0.2],
    "global": ["--fallback", "global", "--hops", 1],
    "exact": ["--method", "naps-exact", "--seed", 3],
    "informed": ["--method", "informed", "--alpha", 0.3],
    "directed": ["--directed", "--direction", "in", "--hops", 2, "--ids", "string"],
    "by degree": ["--by", "degree", "--method", "split"],
    "drawn": ["--method", "rlcp"],
}


def number(value):
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_rows_of_a_file_of_intervals_are_explained_like_it(tmp_path, run, run_json, flags, suffix):
    files, target = number_files(tmp_path), tmp_path / f"intervals{suffix}"
    done = run("predict", "--task", "regression", *files, *flags, "-o", target)
    assert done.exit_code == 0, done.output
    table = np.load(target) if suffix == ".npz" else pyarrow.parquet.read_table(target)
    columns = {
        name: np.asarray(table[name]) for name in ("node", "lower", "upper", "threshold", "support", "prediction")
    }
    for row in [0, 20, int(columns["threshold"].argmax())]:
        answer = run_json("inspect", "--node", columns["node"][row], "--like", target, *files)
        for name in ("lower", "upper", "threshold", "support", "prediction"):
            assert number(answer[name]) == columns[name][row], name
        assert (answer["task"], answer["score"]) == ("regression", "cqr")
        assert (answer["calibration"], answer["labelled"]) == (150, 150)
        # Nothing hangs on the file but its settings.
        again = run_json("inspect", "--node", columns["node"][row], "--task", "regression", *files, *flags)
        assert again | {"like": str(target)} == answer


def test_a_row_that_the_files_do_not_give_is_noted_and_no_other(tmp_path, run):
    files, target = number_files(tmp_path), tmp_path / "intervals.parquet"
    assert run("predict", "--task", "regression", *files, "--method", "split", "-o", target).exit_code == 0
    flags = ["inspect", "--node", "n160", "--like", target]
    same = run(*flags, *files)
    assert "differ" not in same.stderr
    assert "Calibrated on all 150 labelled nodes, as intervals.parquet was." in same.stdout
    written = number_predictor("cqr", "split").predict([160], 0.1)
    ends = f"[{written.lower[0]:.6g}, {written.upper[0]:.6g}] at the threshold {written.thresholds[0]:.6g}"
    note = f"note: {target} has {ends} for this node: the files or settings differ"
    outputs = {"node": IDS, "lower": COLUMNS["cqr"]["lower"] - 1e-4, "upper": COLUMNS["cqr"]["upper"] + 1e-4}
    for changes in (
        {"labels": {"node": IDS[KNOWN], "target": 1e6 * Y[KNOWN]}},
        {"labels": {"node": IDS[:100], "target": Y[:100]}},
        {"probabilities": outputs, "labels": {"node": IDS[KNOWN], "target": Y[KNOWN]}},
    ):
        shown = run(*flags, *number_files(tmp_path, **changes))
        assert note in shown.stderr
        count = len(changes["labels"]["node"])
        assert ("as intervals.parquet was" in shown.stdout) == (count == 150)
        assert f"Calibrated on all {count} labelled nodes" in shown.stdout


def test_the_whole_line_of_a_file_is_no_other_than_itself(tmp_path, run):
    files, target = number_files(tmp_path), tmp_path / "intervals.parquet"
    run("predict", "--task", "regression", *files, "--hops", 1, "--alpha", 0.001, "-o", target)
    assert "differ" not in run("inspect", "--node", "n160", "--like", target, *files).stderr
    shown = run("inspect", "--node", "n160", "--like", target, *files, "--method", "split", "--alpha", 0.2)
    assert f"{target} has [−∞, ∞] at the threshold ∞ for this node" in shown.stderr


def test_a_file_of_another_kind_is_named_and_not_a_flag_that_was_not_given(tmp_path, run):
    files, target = number_files(tmp_path), tmp_path / "intervals.parquet"
    run("predict", "--task", "regression", *files, "--method", "split", "-o", target)
    shown = run("inspect", "--node", "n160", "--like", target, *files, "--task", "classification")
    assert shown.exit_code == 2
    text = " ".join(shown.stderr.replace("│", " ").split())
    assert f"--task: must be regression, or left out: {target} holds intervals" in text
    shown = run("inspect", "--node", "n160", "--like", target, *number_files(tmp_path, "absolute"))
    assert shown.exit_code == 1
    assert "its score is cqr, and that of the columns of these files is absolute" in " ".join(shown.stderr.split())


@pytest.mark.parametrize("score", COLUMNS)
def test_what_is_told_is_what_the_library_finds(tmp_path, run_json, score):
    files = number_files(tmp_path, score)
    calibrated = number_predictor(score, "informed")
    for node in (REST[0], KNOWN[4]):
        seen = inspect_node(calibrated, node, 0.1)
        answer = run_json(
            "inspect", "--node", IDS[node], "--task", "regression", *files, "--method", "informed", "--neighbours", 3
        )
        assert (answer["lower"], answer["upper"], answer["width"]) == (seen.lower, seen.upper, seen.width)
        assert answer["target"] == (Y[node] if node in KNOWN else None)
        assert answer["reason"] == seen.reason()
        assert answer["rule"] == seen.rule
        assert [row["output"] for row in answer["outputs"]] == list(COLUMNS[score])
        assert [row["model"] for row in answer["outputs"]] == seen.model.tolist()
        assert [row["used"] for row in answer["outputs"]] == seen.outputs.tolist()
        near = seen.neighbours[seen.nearest(3)]
        assert [row["node"] for row in answer["neighbours"]] == IDS[near].tolist()
        assert [row["target"] for row in answer["neighbours"]] == Y[near].tolist()
        evidence = answer["evidence"]
        for o, name in enumerate(evidence["outputs"]):
            adds = [term["adds"][name] for term in evidence["terms"]]
            assert sum(adds) == pytest.approx(seen.outputs[o])
            assert [term["coefficients"][name] for term in evidence["terms"]] == seen.evidence.coefficients[o].tolist()
        assert evidence["speaking"] == len(seen.evidence.voices)
        for row, voice in zip(evidence["voices"], seen.evidence.voices, strict=False):
            assert row["node"] == IDS[voice.node]
            assert (row["hop"], row["target"], row["residual"]) == (voice.hop, Y[voice.node], voice.residual)
            assert list(row["moves"].values()) == voice.shifts.tolist()


def test_tables_say_what_was_said_shifted_and_by_whom(tmp_path, run):
    files = number_files(tmp_path)
    shown = run("inspect", "--node", "n160", "--task", "regression", *files, "--method", "informed")
    text = " ".join(shown.stdout.split())
    for part in (
        "Node n160 at alpha = 0.1", "[lower − τ, upper + τ]", "The model's outputs and the terms of the interval",
        "Neighbours' targets as evidence: one labelled neighbour whose target is 1 above the model's best guess moves",
        "near: mean residual of", "Labelled nodes that are evidence, the strongest first (10 of", "moves lower",
        "Calibration nodes with scores nearest to τ (10 of 75 in reach)", "Calibrated on all 150 labelled nodes.",
    ):  # fmt: skip
        assert part in text
    shown = run("inspect", "--node", "n160", "--task", "regression", *files, "--hops", 1)
    assert "Neighbourhood by hop" in shown.stdout
    assert "The model's outputs\n" in shown.stdout
    assert "evidence" not in shown.stdout


def test_the_whole_line_has_both_ends_at_infinity(tmp_path, run, run_json):
    files = number_files(tmp_path)
    flags = ["--node", "n160", "--task", "regression", *files, "--hops", 1, "--alpha", 0.001]
    answer = run_json("inspect", *flags)
    assert (answer["lower"], answer["upper"]) == ("-Infinity", "Infinity")
    assert answer["reason"].endswith("the threshold is ∞ and the interval is the whole line.")
    assert "[−∞, ∞]" in run("inspect", *flags).stdout


def test_groups_of_a_file_and_foreign_columns_are_found_again(tmp_path, run, run_json):
    groups = write(tmp_path / "groups.csv", {"node": IDS, "group": np.array(["a", "b"])[np.arange(IDS.size) % 2]})
    files = number_files(tmp_path, suffix=".csv", labels={"id": IDS[KNOWN], "target": Y[KNOWN]})
    target = tmp_path / "intervals.parquet"
    flags = ["--by", groups, "--method", "split", "--columns", "labels.node=id"]
    assert run("predict", "--task", "regression", *files, *flags, "-o", target).exit_code == 0
    table = pyarrow.parquet.read_table(target)
    for row in (0, 1):
        answer = run_json("inspect", "--node", table["node"][row].as_py(), "--like", target, *files)
        assert answer["threshold"] == table["threshold"][row].as_py()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--task", "regression", "--logits"], "works without --logits and --features"),
        (["--task", "regression", "--score", "absolute"], "must be cqr for a file with the columns lower, upper"),
        (["--task", "numbers"], "'numbers' is not one of"),
    ],
)
def test_what_cannot_be_explained_is_wrong_use(tmp_path, run, flags, message):
    shown = run("inspect", "--node", "n160", *number_files(tmp_path), *flags)
    assert shown.exit_code == 2
    assert message in " ".join(shown.stderr.replace("│", " ").split())


def test_a_record_of_intervals_without_their_columns_is_refused(tmp_path, run):
    files, target = number_files(tmp_path), tmp_path / "intervals.parquet"
    run("predict", "--task", "regression", *files, "--method", "split", "-o", target)
    table = pyarrow.parquet.read_table(target)
    pyarrow.parquet.write_table(table.drop_columns(["upper"]), target)
    shown = run("inspect", "--node", "n160", "--like", target, *files)
    assert shown.exit_code == 2
    assert "upper" in shown.stderr
    other = table.schema.metadata[b"napsets"].replace(b'"regression"', b'"dancing"')
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"napsets": other}), target)
    shown = run("inspect", "--node", "n160", "--like", target, *files)
    assert "must be one of classification, regression" in " ".join(shown.stderr.replace("│", " ").split())
