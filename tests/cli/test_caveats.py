"""Caveats about the labels are printed where the labels are used."""

from __future__ import annotations

import numpy as np
import pytest

from worlds import CLASSES, make_world, write


@pytest.mark.parametrize("command", ["predict", "inspect", "homophily"])
def test_rows_without_a_label_are_counted(tmp_path, run, world, command):
    labels = [*world.labels[world.calibration].tolist(), None]
    names = [None if y is None else ("cat", "dog", "owl")[y] for y in labels]
    write(world.labels_file, {"node": [*world.ids[world.calibration], world.ids[world.rest[0]]], "label": names})
    arguments = {
        "predict": [*world.files, "-o", tmp_path / "s.parquet"],
        "inspect": [*world.files, "--node", world.ids[0]],
        "homophily": ["-e", world.edges, "-l", world.labels_file],
    }[command]
    shown = run(command, *arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "note: 1 of the 61 rows of `labels`" in shown.stderr


def test_the_truth_of_a_report_is_noted_too(tmp_path, run):
    world = make_world(tmp_path, nodes=300)
    write(world.truth, {"node": world.ids[world.rest], "label": world.labels[world.rest]})
    shown = run("report", *world.files, "--methods", "split", "--truth", world.truth, "-o", tmp_path / "r.html")
    assert shown.exit_code == 0, shown.stderr
    assert f"the labels of {world.truth} are not names of classes and were read as class numbers" in shown.stderr


def test_labels_that_calibrated_and_judge_are_noted_as_far_as_counts_prove_it(tmp_path, run, world):
    everyone = write(tmp_path / "everyone.csv", {"node": world.ids, "label": np.array(CLASSES)[world.labels]})
    target = tmp_path / "sets.parquet"
    assert run("predict", *world.files, "--nodes", everyone, "--method", "split", "-o", target).exit_code == 0
    said = " ".join(run("evaluate", target, "--labels", everyone).stderr.split())
    assert "at least 60 of the 120 evaluated nodes were calibration nodes (60 of all 120 nodes" in said
    assert "calibrated" not in run("evaluate", target, "--labels", world.truth).stderr
