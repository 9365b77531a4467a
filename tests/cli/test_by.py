"""``--by``: coverage for each class, or for each group of a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import napsets as ns
from napsets.files import read_sets
from napsets.methods import make_method
from worlds import make_world, write

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


def expected(world, by, method="naps-exact"):
    calibrating = make_method(method, by=by)
    calibrated = calibrating.calibrate_rows(
        world.graph, world.probabilities, world.labels, world.calibration, world.ids
    )
    return calibrated.predict(world.rest, alpha=0.2)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_groups_of_a_file_are_those_of_an_array(must_run, tmp_path, suffix):
    world = make_world(tmp_path / "world", suffix=suffix, ids="string")
    groups = np.where(np.arange(world.ids.size) % 3 > 0, "north", "south")
    file = write(tmp_path / f"groups{suffix}", {"node": world.ids, "group": groups})
    target = tmp_path / "sets.parquet"
    must_run("predict", *world.files, "--method", "naps-exact", "--by", file, "-a", 0.2, "-o", target)
    written = read_sets(target)
    assert np.array_equal(np.sort(written.sets.thresholds), np.sort(expected(world, groups).thresholds))
    shown = json.loads(
        must_run(
            "inspect",
            *world.files,
            "--method",
            "naps-exact",
            "--by",
            file,
            "-a",
            0.2,
            "--node",
            world.ids[world.rest[0]],
            "--json",
        ).stdout
    )
    assert shown["threshold"] == written.sets.thresholds[written.ids.find(str(world.ids[world.rest[0]]))]


def test_a_node_without_a_group_is_judged_by_all(must_run, tmp_path):
    world = make_world(tmp_path / "world")
    some = world.ids[:-10]
    file = write(tmp_path / "groups.csv", {"node": some, "group": np.zeros(some.size, dtype=int)})
    groups = np.zeros(world.ids.size, dtype=int)
    groups[-10:] = -1
    must_run("predict", *world.files, "--method", "split", "--by", file, "-a", 0.2, "-o", tmp_path / "sets.parquet")
    sets = read_sets(tmp_path / "sets.parquet").sets
    assert np.array_equal(np.sort(sets.thresholds), np.sort(expected(world, groups, "split").thresholds))


def test_sets_are_judged_within_groups_of_a_file_beside_chance(must_run, run_json, tmp_path):
    world = make_world(tmp_path / "world", nodes=300)
    target = tmp_path / "sets.parquet"
    must_run("predict", *world.files, "--method", "split", "-o", target)
    groups = np.where(np.arange(world.ids.size) % 3 > 0, "north", "south")
    file = write(tmp_path / "groups.csv", {"node": world.ids, "group": groups})
    answer = run_json("evaluate", target, "--labels", world.truth, "--groups", file)
    split = make_method("split").calibrate_rows(None, world.probabilities, world.labels, world.calibration, world.ids)
    sets = split.predict(world.rest, 0.1)
    gap = ns.coverage_gap(sets, world.labels, groups)
    assert answer["gap_group"] == pytest.approx(gap.gap)
    assert answer["chance_group"] == pytest.approx(gap.chance)
    assert [row["coverage"] for row in answer["coverage_by_group"]] == pytest.approx(gap.coverage.tolist())
    assert "Coverage by group" in must_run("evaluate", target, "--labels", world.truth, "--groups", file).stdout
