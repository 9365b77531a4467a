"""Where classes and labels meet, every command lets the user say what a label is."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from napsets.errors import FileFormatError, InvalidInputError
from napsets.evaluation.files import label_file
from napsets.files import Reading, read_inputs, read_sets
from napsets.predictions import SetsSummary
from worlds import make_world, write

CLASSES = ["1", "2", "3"]


@pytest.fixture
def world(tmp_path):
    """Return a world whose classes are called 1, 2, 3 and whose labels are those names or numbers from 0."""
    world = make_world(tmp_path)
    shares = {name: world.probabilities[:, y] for y, name in enumerate(CLASSES)}
    write(world.probabilities_file, {"node": world.ids} | shares)
    write(world.labels_file, {"node": world.ids[world.calibration], "label": world.labels[world.calibration]})
    write(world.truth, {"node": world.ids[world.rest], "label": world.labels[world.rest]})
    return world


def test_inputs_are_read_as_the_user_says(world):
    files = (world.edges, world.probabilities_file, world.labels_file)
    with pytest.raises(FileFormatError, match="can only be numbers"):
        read_inputs(*files)
    inputs = read_inputs(*files, reading=Reading(labels_are="indices"))
    assert inputs.truth[world.calibration].tolist() == world.labels[world.calibration].tolist()


@pytest.mark.parametrize("command", ["predict", "inspect", "report", "evaluate"])
def test_every_command_that_has_classes_and_labels_asks(tmp_path, run, world, command):
    run("predict", *world.files, "--labels-are", "indices", "-o", tmp_path / "s.parquet")
    arguments = {
        "predict": ["predict", *world.files, "-o", tmp_path / "t.parquet"],
        "inspect": ["inspect", *world.files, "--node", world.ids[0]],
        "report": ["report", *world.files, "--truth", world.truth, "-o", tmp_path / "r.html"],
        "evaluate": ["evaluate", tmp_path / "s.parquet", "--labels", world.truth],
    }[command]
    shown = run(*arguments)
    assert shown.exit_code == 1
    assert "add --labels-are indices" in shown.stderr
    shown = run(*arguments, "--labels-are", "indices")
    assert shown.exit_code == 0, shown.stderr


def test_spark_is_told_what_labels_are(tmp_path, run, world, monkeypatch):
    spark = pytest.importorskip("napsets.spark")
    answers = {}

    def predict_files(**options):
        answers.update(options)
        return SetsSummary(np.array([0, 30, 30, 0]), 0, 0)

    monkeypatch.setattr(spark, "running_session", nullcontext)
    monkeypatch.setattr(spark, "predict_files", predict_files)
    shown = run("predict", *world.files, "-o", tmp_path / "s", "--engine", "spark", "--labels-are", "indices")
    assert shown.exit_code == 0, shown.output
    assert answers["reading"].labels_are == "indices"


def test_sets_that_do_not_list_their_classes_can_only_be_judged_by_names(tmp_path, run, world):
    run("predict", *world.files, "--labels-are", "indices", "--fallback", "global", "-o", tmp_path / "s.csv")
    file = read_sets(tmp_path / "s.csv")
    with pytest.raises(InvalidInputError, match=r"`labels_are` must be names for sets that do not list their classes"):
        label_file(file, world.truth, Reading(labels_are="indices"))
    names = write(tmp_path / "n.parquet", {"node": world.ids[world.rest], "label": world.labels[world.rest] + 1.0})
    assert label_file(file, names).truth.tolist() == world.labels[world.rest].tolist()


def test_labels_that_no_set_has_are_pointed_out(tmp_path, run, world):
    run("predict", *world.files, "--labels-are", "indices", "-o", tmp_path / "s.csv")
    truth = write(tmp_path / "t.parquet", {"node": world.ids[world.rest], "label": ["x"] * world.rest.size})
    assert any(
        "no set has any of the labels x" in note for note in label_file(read_sets(tmp_path / "s.csv"), truth).notes
    )
