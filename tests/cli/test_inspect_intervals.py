"""`napsets inspect --task regression` explains the interval that `napsets predict` wrote."""

from __future__ import annotations

import pytest

from napsets.advice.inspection import inspect_node
from number_worlds import COLUMNS, IDS, KNOWN, REST, Y, number_files, number_predictor

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


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
        for row, model, used in zip(evidence["outputs"], seen.model, seen.outputs, strict=True):
            adds = [kind["adds"][row["output"]] for kind in evidence["kinds"]]
            assert model + sum(adds) == pytest.approx(used)
        for row, place in zip(evidence["labelled"], seen.evidence.labelled, strict=False):
            assert row == {"node": IDS[place], "target": Y[place]}


def test_tables_say_what_was_said_shifted_and_by_whom(tmp_path, run):
    files = number_files(tmp_path)
    shown = run("inspect", "--node", "n160", "--task", "regression", *files, "--method", "informed")
    text = " ".join(shown.stdout.split())
    for part in (
        "Node n160 at alpha = 0.1", "[lower − τ, upper + τ]", "The model's outputs and the terms of the interval",
        "Evidence: what the terms of a column add up to is its shift", "residuals of labelled neighbours",
        "mean residual", "Labelled neighbours (",
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
