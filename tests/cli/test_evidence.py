"""`--evidence FILE`: labels of any origin beside those of `--labels`, in every command that calibrates."""

from __future__ import annotations

import numpy as np
import pytest

import napsets as ns
from napsets.files import read_sets
from worlds import CLASSES, make_world, write

pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")


@pytest.fixture
def world(tmp_path):
    return make_world(tmp_path / "world", nodes=600, ids="string")


@pytest.fixture
def evidence(world):
    """Nodes of one class and a few others, none of which calibrates."""
    own = world.labels[world.rest]
    return np.sort(np.concatenate([world.rest[own == y][: 74 if y == 1 else 3] for y in range(3)]))


@pytest.fixture
def files(world, evidence, tmp_path):
    labels = np.array(CLASSES)[world.labels[evidence]]
    return [
        *world.files,
        "--evidence",
        write(tmp_path / "evidence.csv", {"node": world.ids[evidence], "label": labels}),
    ]


def calibrated(world, evidence, name):
    arrays = world.graph, world.probabilities, world.labels, world.calibration
    return ns.make_method(name).calibrate_rows(*arrays, world.ids, evidence=evidence)


@pytest.mark.parametrize("name", ["auto", "informed", "naps-exact"])
def test_predict_gives_what_the_library_gives(tmp_path, run_json, world, evidence, files, name):
    target = tmp_path / "sets.parquet"
    answer = run_json("predict", *files, "-m", name, "-o", target)
    nodes = np.setdiff1d(world.rest, evidence)
    expected = calibrated(world, evidence, name).predict(nodes, 0.1)
    file = read_sets(target)
    assert file.ids.take(np.arange(nodes.size)).to_pylist() == world.ids[nodes].tolist()
    np.testing.assert_array_equal(file.sets.thresholds, expected.thresholds)
    assert (answer["calibration"], answer["evidence_labels"]) == (300, 80)
    assert file.metadata["level_labels"] == 300
    assert answer["verdict"]["evidence"] == 80
    assert any("80 labels are evidence, and all 300 calibration labels set the level" in line
               for line in answer["verdict"]["lines"])  # fmt: skip


def test_a_saved_method_predicts_the_same(tmp_path, run_json, world, files):
    answer = run_json("calibrate", *files, "-m", "informed", "-o", tmp_path / "method.npz")
    assert (answer["calibration"], answer["evidence_labels"]) == (300, 80)
    run_json("predict", "--method-file", tmp_path / "method.npz", "-o", tmp_path / "saved.parquet")
    run_json("predict", *files, "-m", "informed", "-o", tmp_path / "sets.parquet")
    saved, plain = (read_sets(tmp_path / f"{name}.parquet") for name in ("saved", "sets"))
    assert saved.ids.values.equals(plain.ids.values)
    np.testing.assert_array_equal(saved.sets.member, plain.sets.member)


def test_a_report_teaches_with_it_and_says_who_could_not_learn(tmp_path, run_json, must_run, world, files):
    page = tmp_path / "report.html"
    flags = ["--methods", "split,informed", "-o", page]
    answer = run_json("report", *files, *flags)
    assert (answer["calibration"], answer["evidence_labels"]) == (150, 80)
    assert answer["results"][0]["nodes"] == 150
    sentence = "80 more labels as evidence, which Split APS cannot learn from and ran without"
    assert sentence in page.read_text(encoding="utf-8")
    assert sentence in " ".join(must_run("report", *files, *flags).stdout.split())


def test_labels_that_judge_a_report_do_not_teach(tmp_path, run, run_json, world, evidence, files):
    truth = write(tmp_path / "judged.csv", {"node": world.ids[evidence[:30]], "label": np.array(["dog"] * 30)})
    answer = run_json("report", *files, "--methods", "split,informed", "--truth", truth, "-o", tmp_path / "r.html")
    assert (answer["calibration"], answer["evidence_labels"], answer["results"][0]["nodes"]) == (300, 50, 30)
    everything = write(
        tmp_path / "all.csv", {"node": world.ids[world.rest], "label": np.array(CLASSES)[world.labels[world.rest]]}
    )
    shown = run("report", *files, "--truth", everything, "-o", tmp_path / "r.html")
    assert shown.exit_code == 2
    assert "must have labels of nodes that are not in --truth" in " ".join(shown.stderr.replace("│", " ").split())


def test_nodes_in_both_files_calibrate(tmp_path, run, run_json, world, evidence, files):
    both = np.concatenate([evidence, world.calibration[:40]])
    wrong = np.concatenate([np.array(CLASSES)[world.labels[evidence]], ["cat"] * 40])
    mixed = write(tmp_path / "mixed.csv", {"node": world.ids[both], "label": wrong})
    run_json("predict", *files, "-m", "naps-exact", "-o", tmp_path / "one.parquet")
    shown = run("predict", *world.files, "--evidence", mixed, "-m", "naps-exact", "-o", tmp_path / "two.parquet")
    assert "40 nodes are in `evidence` and in `labels`: they calibrate" in " ".join(shown.stderr.split())
    one, two = (read_sets(tmp_path / f"{name}.parquet").sets for name in ("one", "two"))
    np.testing.assert_array_equal(one.thresholds, two.thresholds)


def test_what_cannot_teach_is_refused(tmp_path, run, world, files):
    shown = run("predict", *files, "-m", "naps", "-o", tmp_path / "s.parquet")
    assert shown.exit_code != 0
    said = " ".join(shown.stderr.split())
    assert "`evidence` must be left out here, where it has nothing to teach" in said
    assert said.endswith("Use --method auto, informed or naps-exact, which learn from it.")
    again = [*world.files, "--evidence", world.labels_file]
    shown = run("predict", *again, "-o", tmp_path / "s.parquet")
    assert "300 of nodes that have one there, and those calibrate" in " ".join(shown.stderr.split())
    assert not (tmp_path / "s.parquet").exists()


def test_training_nodes_may_teach_though_they_never_calibrate(tmp_path, run_json, world, evidence, files):
    trained = write(tmp_path / "trained.csv", {"node": world.ids[np.concatenate([evidence, world.calibration[:50]])]})
    answer = run_json("predict", *files, "-m", "informed", "--training", trained, "-o", tmp_path / "s.parquet")
    assert (answer["calibration"], answer["evidence_labels"]) == (250, 80)


def test_targets_teach_intervals(tmp_path, run_json):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    targets = x + rng.normal(size=400)
    ring = np.arange(400)
    edges = write(tmp_path / "e.csv", {"source": ring, "target": np.roll(ring, 1)})
    outputs = write(tmp_path / "p.csv", {"node": ring, "lower": x - 1, "upper": x + 1})
    labels = write(tmp_path / "y.csv", {"node": ring[:100], "target": targets[:100]})
    taught = write(tmp_path / "r.csv", {"node": ring[100:220], "target": targets[100:220]})
    command = ["predict", "--task", "regression", "-e", edges, "-p", outputs, "-l", labels, "-m", "informed"]
    answer = run_json(*command, "--evidence", taught, "-o", tmp_path / "i.parquet")
    assert (answer["calibration"], answer["evidence_labels"], answer["nodes"]) == (100, 120, 180)
