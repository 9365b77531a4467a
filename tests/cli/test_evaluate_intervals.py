"""`napsets evaluate` knows a file of intervals, and judges it by numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from number_worlds import IDS, REST, SIZE, Y, number_files
from worlds import write


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


def test_tables_stand_beside_chance(tmp_path, run):
    groups = write(tmp_path / "groups.csv", {"node": IDS, "group": np.array(["north", "south"])[np.arange(SIZE) % 2]})
    flags = [
        "--edges",
        tmp_path / "edges.parquet",
        "--groups",
        groups,
    ]
    shown, told = evaluated(tmp_path, run, *flags), told_by(evaluated(tmp_path, run, *flags, "--json"))
    lines = [line.split() for line in shown.stdout.splitlines()]
    for kind in ("degree", "width", "group"):
        row = next(line for line in lines if line[:1] == [kind] and len(line) > 5)
        names = ("gap", "chance", "worst", "worst_chance")
        assert row[1:5] == [f"{told[f'{name}_{kind}']:.4f}" for name in names]
    text = " ".join(shown.stdout.split())
    band = f"{100 * told['coverage_low']:.2f} % to {100 * told['coverage_high']:.2f} %"
    assert f"range that chance explains (95 of 100 cases) {band}" in text
    assert f"median width {told['median_width']:.4f}" in text
    assert f"coverage {100 * told['coverage']:.2f} % ± {196 * told['coverage_se']:.2f} %" in text
    assert "; ± 1.96 standard errors" in text
    assert f"north {told['coverage_by_group'][0]['count']}" in text
    assert "Coverage by degree" in text


def test_infinite_intervals_are_not_hidden_in_the_mean(tmp_path, run):
    told = told_by(evaluated(tmp_path, run, "--json", making=("--hops", 1)))
    assert 0 < told["infinite"] < 50
    assert told["mean_width"] == "Infinity"
    text = " ".join(evaluated(tmp_path, run, making=("--hops", 1)).stdout.split())
    assert f"average width ∞ ± – average width of the finite ones {told['finite_width']:.4f}" in text
    assert f"too little support (threshold ∞) {told['infinite']}" in text


def test_a_file_that_does_not_say_how_many_labels_there_were_is_noted(tmp_path, run):
    note = "the range that chance explains is that of the evaluated nodes alone"
    assert note in evaluated(tmp_path, run, suffix=".csv").stderr
    assert note not in evaluated(tmp_path, run).stderr


@pytest.mark.parametrize(("judged", "both"), [(np.arange(SIZE), 150), (np.arange(100, SIZE), 50), (REST, 0)])
def test_targets_that_calibrated_and_judge_are_noted_as_far_as_counts_prove_it(tmp_path, run, judged, both):
    everyone = write(tmp_path / "nodes.csv", {"node": IDS})
    evaluated(tmp_path, run, making=("--method", "split", "--nodes", everyone))
    truth = write(tmp_path / "some.csv", {"node": IDS[judged], "target": Y[judged]})
    shown = run("evaluate", tmp_path / "out.parquet", "--labels", truth)
    assert shown.exit_code == 0, shown.output
    said = " ".join(shown.stderr.split())
    told = f"at least {both} of the {judged.size} evaluated nodes were calibration nodes (150 of all 200 nodes"
    assert (told in said) == (both > 0)
    assert ("calibration nodes" in said) == (both > 0)
