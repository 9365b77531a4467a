"""Drafts say who writes them: those of the dead are removed, those of the living and other people's files are not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from napsets.files import drafts as _drafts
from napsets.files.drafts import draft_mark, is_abandoned
from napsets.files.places import replacing

KILLED = """
import os, signal, sys
from napsets.files.places import replacing
with replacing(sys.argv[1]) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(target):
    subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)


@pytest.mark.parametrize("next_target", ["sets.parquet", "another.csv"])
def test_what_a_killed_run_left_is_removed_by_the_next_that_writes_there(tmp_path, next_target):
    killed_while_writing(tmp_path / "sets.parquet")
    (left,) = os.listdir(tmp_path)
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
    killed_while_writing(tmp_path / "a.txt")
    (left,) = os.listdir(tmp_path)
    kept = [".a-12345678.txt", ".napsets-notes.txt", left.removeprefix("."), ".a.napsets-mine.txt"]
    for name in kept:
        (tmp_path / name).write_text("mine")
    (tmp_path / f"{left}.d.txt").mkdir()  # a folder is never a draft of a file
    (tmp_path / left.replace(".a.", ".link.")).symlink_to(tmp_path / kept[0])
    with replacing(tmp_path / "a.txt") as draft:
        draft.write_text("")
    assert {*kept, "a.txt", f"{left}.d.txt", left.replace(".a.", ".link.")} == set(os.listdir(tmp_path))


def changed_mark(**changes):
    place, pid, started, number = draft_mark().split("-")[1:]
    parts = {"place": place, "pid": pid, "started": started, "number": number} | changes
    return ".a.napsets-" + "-".join(parts.values())


def test_only_age_tells_of_a_process_on_another_machine():
    name, now = changed_mark(place="00000000", pid="1"), time.time()
    assert not is_abandoned(name, now - 3600)
    assert is_abandoned(name, now - _drafts.STALE - 60)


def test_a_number_that_another_process_has_now_does_not_protect_a_draft():
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("needs to know when a process began")
    assert not is_abandoned(changed_mark(), 0.0)
    assert is_abandoned(changed_mark(started="7"), time.time())


def test_a_process_that_was_killed_is_gone_before_anybody_has_asked_how_it_ended():
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("needs to know the state of a process")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = changed_mark(pid=str(child.pid), started=str(_drafts._started(child.pid)))
    assert not is_abandoned(name, time.time())
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still there to be asked
    assert is_abandoned(name, time.time())
    child.communicate()


def test_a_process_of_somebody_else_is_alive(monkeypatch):
    def refuse(pid, number):
        raise PermissionError

    monkeypatch.setattr("os.kill", refuse)
    assert not is_abandoned(changed_mark(), 0.0)


def test_where_the_system_tells_nothing_only_age_counts(monkeypatch):
    monkeypatch.setattr(_drafts, "_CAN_ASK", False)
    assert not is_abandoned(changed_mark(pid="999999999"), time.time())


def test_long_names_leave_room_for_that_of_the_draft(tmp_path):
    target = tmp_path / ("n" * 250 + ".csv")
    with replacing(target) as draft:
        draft.write_text("x")
    assert target.exists()


def test_marks_name_no_machine():
    assert re.fullmatch(r"napsets-[0-9a-f]{8}-\d+-\d+-[0-9a-f]{8}", draft_mark())
