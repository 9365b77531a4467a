"""What a killed run left is removed by a later one; drafts of living runs and other people's files are not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from napsets.files.paths import STALE, draft_mark, is_abandoned, replacing

KILLED = """
import os, signal, sys
from napsets.files.paths import replacing
with replacing(sys.argv[1]) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(target):
    """Return the name of the draft that a killed run left."""
    subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    (left,) = os.listdir(target.parent)
    return left


@pytest.mark.parametrize("next_target", ["sets.parquet", "another.csv"])
def test_what_a_killed_run_left_is_removed_by_the_next_that_writes_there(tmp_path, next_target):
    left = killed_while_writing(tmp_path / "sets.parquet")
    assert left.startswith(".sets.napsets-")
    with replacing(tmp_path / next_target) as draft:
        draft.write_text("whole")
    assert os.listdir(tmp_path) == [next_target]


def test_the_draft_of_a_living_run_stays(tmp_path):
    with replacing(tmp_path / "a.txt") as first:
        with replacing(tmp_path / "a.txt") as second:
            second.write_text("second")
        first.write_text("first")
    assert (tmp_path / "a.txt").read_text() == "first"


def test_other_peoples_hidden_files_stay(tmp_path):
    left = killed_while_writing(tmp_path / "a.txt")
    kept = [".a-12345678.txt", ".napsets-notes.txt", left.removeprefix("."), ".a.napsets-mine.txt"]
    for name in kept:
        (tmp_path / name).write_text("mine")
    (tmp_path / f"{left}.d.txt").mkdir()  # a folder is never a draft of a file
    (tmp_path / left.replace(".a.", ".link.")).symlink_to(tmp_path / kept[0])
    with replacing(tmp_path / "a.txt") as draft:
        draft.write_text("")
    assert {*kept, "a.txt", f"{left}.d.txt", left.replace(".a.", ".link.")} == set(os.listdir(tmp_path))


def test_only_age_tells_of_a_process_on_another_machine():
    name, now = re.sub(r"napsets-[0-9a-f]{8}", "napsets-00000000", f".a.{draft_mark()}.csv"), time.time()
    assert not is_abandoned(name, now - STALE + 60)
    assert is_abandoned(name, now - STALE - 60)
    assert not is_abandoned(name.removeprefix("."), 0.0)


def test_a_process_of_somebody_else_is_alive(monkeypatch):
    def refuse(process, number):
        raise PermissionError

    monkeypatch.setattr("os.kill", refuse)
    assert not is_abandoned(f".a.{draft_mark()}", time.time())


def test_long_names_leave_room_for_that_of_the_draft(tmp_path):
    target = tmp_path / ("n" * 250 + ".csv")
    with replacing(target) as draft:
        draft.write_text("x")
    assert target.exists()


def test_marks_name_no_machine():
    assert re.fullmatch(r"napsets-[0-9a-f]{8}-\d+-[0-9a-f]{8}", draft_mark())
