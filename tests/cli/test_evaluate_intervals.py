"""`napsets evaluate` knows a file of intervals, and judges it by numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.levels import coverage_band
from number_worlds import ENDS, IDS, REST, SIZE, Y, number_files, number_predictor
from worlds import write

SUFFIXES = [".parquet", ".csv", ".tsv", ".csv.gz"]


def evaluated(tmp_path, run, *flags, suffix=".parquet", making=("--method", "naps-exact")):
    """Write intervals, and judge them by the targets of the nodes that had none."""
    given, target = number_files(tmp_path), tmp_path / f"out{suffix}"
    done = run("predict", "--task", "regression", *given, *making, "-o", target)
    assert done.exit_code == 0, done.output
    truth = write(tmp_path / "truth.parquet", {"node": IDS[REST], "target": Y[REST]})
    return run("evaluate", target, "--labels", truth, *flags)


def told_by(shown):
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_format_that_predict_writes_is_known_and_judged(tmp_path, run, suffix):
    told = told_by(evaluated(tmp_path, run, "--json", suffix=suffix))
    intervals = number_predictor("cqr", "naps-exact").predict(REST, 0.1)
    assert told["task"] == "regression"
    assert (told["nodes"], told["unlabelled"]) == (50, 0)
    assert told["coverage"] == ns.coverage(intervals, Y)
    assert told["median_width"] == pytest.approx(np.median(intervals.widths))
    assert told["infinite"] == intervals.infinite
    kept = suffix == ".parquet"
    assert told["settings"].get("level_labels") == (75 if kept else None)
    expected = coverage_band(75, 0.1, 50) if kept else (0.82, 0.98)
    assert (told["coverage_low"], told["coverage_high"]) == expected


def test_tables_stand_beside_chance_with_under_and_over_apart(tmp_path, run):
    groups = write(tmp_path / "groups.csv", {"node": IDS, "group": np.array(["north", "south"])[np.arange(SIZE) % 2]})
    flags = ["--edges", tmp_path / "edges.parquet", "--groups", groups, "--radius", 1, "--min-size", 4]
    shown, told = evaluated(tmp_path, run, *flags), told_by(evaluated(tmp_path, run, *flags, "--json"))
    lines = [line.split() for line in shown.stdout.splitlines()]
    for kind in ("degree", "neighbourhood", "width", "group"):
        row = next(line for line in lines if line[:1] == [kind] and len(line) > 7)
        names = ("gap", "chance", "under", "over", "worst", "worst_chance")
        assert row[1:7] == [f"{told[f'{name}_{kind}']:.4f}" for name in names]
    text = " ".join(shown.stdout.split())
    band = f"{100 * told['coverage_low']:.2f} % to {100 * told['coverage_high']:.2f} %"
    assert f"range that chance explains (95 of 100 cases) {band}" in text
    assert f"median width {told['median_width']:.4f}" in text
    assert "intervals that are the whole line" in text
    assert "PCCV expected by chance, if every interval met the target" in text
    assert f"north {told['coverage_by_group'][0]['count']}" in text
    assert "Coverage by degree" in text


def test_infinite_intervals_are_not_hidden_in_the_mean(tmp_path, run):
    told = told_by(evaluated(tmp_path, run, "--json", making=("--hops", 1)))
    assert 0 < told["infinite"] < 50
    assert told["mean_width"] == "Infinity"
    text = " ".join(evaluated(tmp_path, run, making=("--hops", 1)).stdout.split())
    assert f"average width ∞ ± – average width of the finite ones {told['finite_width']:.4f}" in text
    assert f"intervals that are the whole line {100 * told['infinite_rate']:.2f} %" in text


def test_ids_are_read_as_asked_and_strangers_passed_over_in_silence(tmp_path, run):
    ids = np.arange(SIZE)
    tables = {
        "edges": {"source": ids[ENDS[0]], "target": ids[ENDS[1]]},
        "labels": {"node": ids[:150], "target": Y[:150]},
    }
    given = number_files(tmp_path, suffix=".csv", probabilities={"node": ids, "prediction": Y}, **tables)
    target = tmp_path / "out.csv"
    assert run("predict", "--task", "regression", *given, "--method", "split", "-o", target).exit_code == 0
    everyone = write(tmp_path / "all.parquet", {"node": ids.astype(str), "target": Y})
    shown = run("evaluate", target, "--labels", everyone, "--ids", "string", "--json")
    assert "left out: 150 rows of `labels`" in shown.stderr
    assert told_by(shown)["coverage"] == 1.0
    silent = run("evaluate", target, "--labels", everyone, "--ids", "string", "--skip-unknown")
    assert silent.exit_code == 0
    assert "left out" not in silent.stderr


def test_a_file_that_does_not_say_how_many_labels_there_were_is_noted(tmp_path, run):
    note = "the range that chance explains is that of the evaluated nodes alone"
    assert note in evaluated(tmp_path, run, suffix=".csv").stderr
    assert note not in evaluated(tmp_path, run).stderr


def test_intervals_come_from_standard_input(tmp_path, run):
    there = evaluated(tmp_path, run, "--json", suffix=".csv")
    flags = ["--format", "csv", "--labels", str(tmp_path / "truth.parquet"), "--json"]
    piped = run("evaluate", "-", *flags, stdin=(tmp_path / "out.csv").read_bytes())
    assert told_by(piped) == told_by(there) | {"sets": "-"}


@pytest.mark.parametrize("flags", [["--strata", "0-1"], ["--labels-are", "names"]])
def test_what_only_sets_have_is_wrong_use(tmp_path, run, flags):
    shown = evaluated(tmp_path, run, *flags)
    assert shown.exit_code == 2
    assert "is for sets of labels" in " ".join(shown.stderr.replace("│", " ").split())


def test_labels_in_place_of_targets_are_refused_in_plain_words(tmp_path, run):
    evaluated(tmp_path, run)
    labels = write(tmp_path / "labels2.csv", {"node": IDS[REST], "label": ["a"] * 50})
    shown = run("evaluate", tmp_path / "out.parquet", "--labels", labels)
    assert shown.exit_code == 1
    assert "`labels` must have the columns node, target" in " ".join(shown.stderr.split())


@pytest.mark.parametrize(("judged", "both"), [(np.arange(SIZE), 150), (np.arange(100, SIZE), 50), (REST, 0)])
def test_targets_that_calibrated_and_judge_are_noted_as_far_as_counts_prove_it(tmp_path, run, judged, both):
    everyone = write(tmp_path / "nodes.csv", {"node": IDS})
    evaluated(tmp_path, run, making=("--method", "split", "--nodes", everyone))
    truth = write(tmp_path / "some.csv", {"node": IDS[judged], "target": Y[judged]})
    shown = run("evaluate", tmp_path / "out.parquet", "--labels", truth, "--skip-unknown")
    assert shown.exit_code == 0, shown.output
    said = " ".join(shown.stderr.split())
    told = f"at least {both} of the {judged.size} evaluated nodes were calibration nodes (150 of all 200 nodes"
    assert (told in said) == (both > 0)
    assert ("calibration nodes" in said) == (both > 0)
