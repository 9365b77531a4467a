"""A result that is less than was hoped for says so, with the share it concerns and the command that does better."""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from napsets.cli._methods import full_note
from napsets.files import read_sets
from napsets.predictions import SetsSummary
from worlds import CLASSES, make_world, write


@pytest.fixture
def sparse(tmp_path):
    """Return a world where few nodes have enough labelled neighbours."""
    return make_world(tmp_path / "a sparse world", degree=2)


def note_of(shown) -> str:
    lines = [line for line in shown.stderr.splitlines() if line.startswith("note:")]
    notes = [line for line in lines if "because of too little support" in line]
    assert len(notes) == 1, shown.stderr
    return notes[0]


def command_in(note: str) -> list[str]:
    """Return the arguments of the command that a note ends with."""
    return shlex.split(note[note.index("napsets predict") :].partition(" (or ")[0])[1:]


def full_for_want_of_support(path) -> int:
    return int(np.isinf(read_sets(path).sets.thresholds).sum())


# -- predict -------------------------------------------------------------------------------------------------------


def test_sets_that_are_full_for_want_of_support_are_counted(tmp_path, run, sparse):
    shown = run("predict", *sparse.files, "--hops", 2, "-o", tmp_path / "s.parquet")
    short = full_for_want_of_support(tmp_path / "s.parquet")
    note = f"note: {short} of 60 sets ({100 * short / 60:.0f} %) contain every label because of too little support"
    assert note in note_of(shown)


def test_the_command_in_the_note_does_better(tmp_path, run, sparse):
    options = ["--decay", "1,0.5", "--no-empty", "--seed", 4, "--alpha", 0.2]
    shown = run("predict", *sparse.files, *options, "-o", tmp_path / "my sets.parquet")
    better = command_in(note_of(shown))
    assert better[-2:] == ["--fallback", "global"]
    again = run(*better)
    assert again.exit_code == 0, again.stderr
    assert "want of support" not in again.stderr
    file = read_sets(tmp_path / "my sets.parquet")
    assert full_for_want_of_support(tmp_path / "my sets.parquet") == 0
    kept = ("decay", "allow_empty", "seed", "alpha", "fallback")
    assert [file.metadata[name] for name in kept] == [[1.0, 0.5], False, 4, 0.2, "global"]


def test_settings_from_a_file_are_in_the_command(tmp_path, run, sparse):
    settings = tmp_path / "napsets.toml"
    settings.write_text("alpha = 0.25\n[predict]\nseed = 9\n")
    shown = run("predict", *sparse.files, "-m", "naps", "--config", settings, "-o", tmp_path / "s.parquet")
    better = command_in(note_of(shown))
    assert "--config" not in better
    assert {"--alpha", "0.25", "--seed", "9"} <= set(better)


def test_no_hops_are_pointed_out(tmp_path, run, world):
    shown = run("predict", *world.files, "--hops", 0, "-o", tmp_path / "s.parquet")
    assert shown.exit_code == 0
    note = note_of(shown)
    assert "60 of 60 sets (100 %)" in note
    better = command_in(note)
    assert better[better.index("--hops") + 1] == "2"
    run(*better)
    assert full_for_want_of_support(tmp_path / "s.parquet") < 60


def test_too_few_labels_for_any_threshold_are_pointed_out(tmp_path, run, world):
    shown = run("predict", *world.files, "--alpha", 0.005, "--fallback", "global", "-o", tmp_path / "s.parquet")
    note = note_of(shown)
    assert "there are 60 calibration nodes, and alpha = 0.005 needs 199 at least" in note
    assert run(*command_in(note)).exit_code == 0
    assert full_for_want_of_support(tmp_path / "s.parquet") == 0


def test_enough_support_needs_no_note(tmp_path, run, world):
    shown = run("predict", *world.files, "--alpha", 0.3, "--hops", 3, "-o", tmp_path / "s.parquet")
    assert "want of support" not in shown.stderr
    quiet = run("predict", *world.files, "--hops", 0, "-o", tmp_path / "s.parquet", "--quiet")
    assert quiet.stdout == ""
    assert quiet.stderr == ""


@pytest.mark.parametrize(("decay", "better"), [("geometric", "geometric"), ("1,0.5", "uniform")])
def test_spark_says_the_same_and_looks_further_where_nobody_stands_in(tmp_path, run, world, monkeypatch, decay, better):
    spark = pytest.importorskip("napsets.spark")
    summary = SetsSummary(np.array([0, 510, 0, 490]), infinite=490, unreached=490)
    monkeypatch.setattr(spark, "running_session", nullcontext)
    monkeypatch.setattr(spark, "predict_files", lambda **options: summary)
    plain = note_of(run("predict", *world.files, "--decay", decay, "-o", tmp_path / "s", "--engine", "spark"))
    assert command_in(plain)[command_in(plain).index("--fallback") + 1] == "global"
    exact = ("--method", "naps-exact", "--decay", decay)  # which has no such settings
    note = note_of(run("predict", *world.files, *exact, "-o", tmp_path / "s", "--engine", "spark"))
    assert "490 of 1,000 sets (49 %)" in note
    words = command_in(note)
    assert words[words.index("--hops") + 1] == "3"
    assert words[words.index("--decay") + 1] == better
    assert "--fallback" not in words
    assert words[words.index("--engine") + 1] == "spark"


def test_sets_that_are_full_though_there_is_support_are_noted_with_a_command_that_does_better(tmp_path, run):
    world = make_world(tmp_path / "a world", degree=12)
    even = {name: np.full(world.ids.size, share) for name, share in (("cat", 0.5), ("dog", 0.3), ("owl", 0.2))}
    write(world.probabilities_file, {"node": world.ids} | even)
    flags = ["--no-empty", "--score", "thr", "-o", tmp_path / "s.parquet"]
    shown = run("predict", *world.files, *flags)
    sets = read_sets(tmp_path / "s.parquet").sets
    full = int(((sets.sizes == 3) & np.isfinite(sets.thresholds)).sum())
    assert full >= 30
    notes = [line for line in shown.stderr.splitlines() if "hardly distinguish the classes" in line]
    assert len(notes) == 1, shown.stderr
    assert (
        f"note: {full} of 60 sets ({100 * full / 60:.0f} %) contain every label although they have support" in notes[0]
    )
    better = command_in(notes[0])
    assert better[better.index("--alpha") + 1] == "0.2"
    assert run(*better).exit_code == 0
    assert read_sets(tmp_path / "s.parquet").sets.sizes.mean() < sets.sizes.mean()


@pytest.mark.parametrize(
    ("infinite", "full_rate", "classes", "noted"),
    [(0, 0.5, 3, True), (0, 0.49, 3, False), (60, 1.0, 3, False), (20, 0.9, 3, True), (0, 1.0, 1, False)],
)
def test_full_sets_are_noted_where_neither_support_nor_a_lone_class_explains_them(infinite, full_rate, classes, noted):
    context = SimpleNamespace(command_path="napsets predict", command=SimpleNamespace(params=[]), params={})
    result = {"nodes": 60, "infinite": infinite, "full_rate": full_rate, "classes": classes, "alpha": 0.1}
    assert (full_note(result, context) is not None) == noted


# -- labels --------------------------------------------------------------------------------------------------------


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
    shown = run("report", *world.files, "--truth", world.truth, "-o", tmp_path / "r.html")
    assert shown.exit_code == 0, shown.stderr
    assert f"the labels of {world.truth} are not names of classes and were read as class numbers" in shown.stderr


# -- evaluate ------------------------------------------------------------------------------------------------------


def evaluated(tmp_path, run, world, *flags, suffix=".parquet"):
    run("predict", *world.files, "-o", tmp_path / f"s{suffix}")
    shown = run("evaluate", tmp_path / f"s{suffix}", "--labels", world.truth, "--edges", world.edges, *flags)
    assert shown.exit_code == 0, shown.stderr
    return shown


def test_a_pccv_of_few_neighbourhoods_is_called_so(tmp_path, run, world):
    shown = evaluated(tmp_path, run, world, "--radius", 1, "--min-size", 4)
    told = json.loads(evaluated(tmp_path, run, world, "--radius", 1, "--min-size", 4, "--json").stdout)
    count, share = told["neighbourhoods"], told["share_in_neighbourhoods"]
    assert 0 < count < 10
    assert 0 < share < 1
    assert f"PCCV ({count} neighbourhoods, {100 * share:.2f} % of the nodes)" in shown.stdout
    assert "PCCV expected by chance, if every set met the target" in shown.stdout
    assert "Average |coverage − target| over groups" in shown.stdout
    row = next(line.split() for line in shown.stdout.splitlines() if line.split()[:1] == ["neighbourhood"])
    names = ("gap", "chance", "under", "over", "worst", "worst_chance")
    assert row[1:7] == [f"{told[f'{name}_neighbourhood']:.4f}" for name in names]
    assert (
        f"note: PCCV means little: {count} neighbourhoods of radius 1 with at least 4 evaluated nodes" in shown.stderr
    )
    assert f"contain {100 * share:.2f} % of the nodes" in shown.stderr
    assert "--min-size 1" in shown.stderr


def test_a_pccv_without_any_neighbourhood_has_a_reason(tmp_path, run, world):
    shown = evaluated(tmp_path, run, world, "--min-size", 1000)
    assert "note: PCCV is not known: 0 neighbourhoods of radius 2 with at least 1000 evaluated nodes" in shown.stderr


def test_full_sets_that_are_not_known_have_a_reason(tmp_path, run, world):
    shown = evaluated(tmp_path, run, world, suffix=".csv")
    assert "classes not listed" in shown.stdout
    assert (
        f"the number of full sets is not known, because {tmp_path / 's.csv'} does not list its classes" in shown.stderr
    )
    assert "is not known" not in evaluated(tmp_path, run, world, "--min-size", 1).stderr


@pytest.mark.parametrize("alpha", ["2.0", "nan"])
def test_an_alpha_that_cannot_be_is_refused(tmp_path, run, alpha):
    columns = "node,labels,size,threshold,support,effective_size,alpha"
    (tmp_path / "s.csv").write_text(f'{columns}\n1,"[""cat""]",1,0.5,3,3.0,{alpha}\n')
    truth = write(tmp_path / "y.csv", {"node": [1], "label": ["cat"]})
    shown = run("evaluate", tmp_path / "s.csv", "--labels", truth)
    assert shown.exit_code == 1
    assert "each alpha of `sets` must be strictly between 0 and 1" in shown.stderr


def test_labels_that_calibrated_and_judge_are_noted_as_far_as_counts_prove_it(tmp_path, run, world):
    everyone = write(tmp_path / "everyone.csv", {"node": world.ids, "label": np.array(CLASSES)[world.labels]})
    target = tmp_path / "sets.parquet"
    assert run("predict", *world.files, "--nodes", everyone, "--method", "split", "-o", target).exit_code == 0
    said = " ".join(run("evaluate", target, "--labels", everyone).stderr.split())
    assert "at least 60 of the 120 evaluated nodes were calibration nodes (60 of all 120 nodes" in said
    assert "calibrated" not in run("evaluate", target, "--labels", world.truth).stderr
