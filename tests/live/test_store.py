"""The log is the truth: what is damaged is refused with nothing lost, and a kill loses nothing that was answered."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import napsets as ns
from napsets.errors import FileFormatError, InvalidInputError


@pytest.fixture
def store(tmp_path):
    """The folder of a living graph with ten batches: 40 nodes, then nine of labels."""
    rng = np.random.default_rng(1)
    live = ns.Live("split", alpha=0.3)
    live.add_nodes(np.arange(40), rng.dirichlet(np.ones(3), 40))
    for first in range(0, 27, 3):
        live.add_labels(np.arange(first, first + 3), rng.integers(0, 3, 3))
    live.save(tmp_path / "store")
    return tmp_path / "store"


def change(store, *statements):
    """Write to the log behind its back."""
    with closing(sqlite3.connect(store / "log.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def contents(store):
    with closing(sqlite3.connect(store / "log.sqlite")) as connection:
        return connection.execute("SELECT * FROM log ORDER BY first").fetchall()


@pytest.mark.parametrize(
    ("damage", "whole"),
    [
        (["DELETE FROM log WHERE first = (SELECT MAX(first) FROM log)"], 64),  # truncated
        (["DELETE FROM log WHERE first = 47"], 46),  # a row is missing
        (["UPDATE log SET payload = zeroblob(8) WHERE first = 50"], 49),  # changed
        (
            [
                "UPDATE log SET first = -1 WHERE first = 44",
                "UPDATE log SET first = 44 WHERE first = 47",
                "UPDATE log SET first = 47 WHERE first = -1",
            ],
            43,
        ),  # reordered
    ],
)
def test_a_damaged_log_is_refused_and_what_is_before_the_damage_saved(store, damage, whole, tmp_path):
    change(store, *damage)
    before = contents(store)
    with pytest.raises(FileFormatError, match=f"Events 1 to {whole} are whole"):
        ns.Live.open(store)
    assert contents(store) == before
    assert ns.Live.recover(store, tmp_path / "saved") == whole
    with ns.Live.open(tmp_path / "saved") as live:
        assert live.status()["events"] == whole
    assert contents(store) == before


def test_a_log_of_another_version_is_refused(store):
    change(store, "UPDATE meta SET value = '2' WHERE name = 'version'")
    with pytest.raises(FileFormatError, match=r"must hold a log of version 1; .* holds version '2'"):
        ns.Live.open(store)


def test_a_file_cut_in_the_middle_is_refused(store):
    ns.Live.open(store).close()
    log = store / "log.sqlite"
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="Nothing was changed"):
        ns.Live.open(store)
    assert log.read_bytes() == data[: len(data) // 2]


@pytest.mark.parametrize("damage", ["delete", "cut", "edited", "of another log"])
def test_a_snapshot_is_never_needed_nor_believed(store, damage, tmp_path):
    with ns.Live.open(store) as live:
        expected = live.status(), live.predict().thresholds
    snapshot = store / "snapshot.npz"
    if damage == "delete":
        snapshot.unlink()
    elif damage == "cut":
        snapshot.write_bytes(snapshot.read_bytes()[:-40])
    elif damage == "edited":  # indices that kernels would follow anywhere
        with np.load(snapshot) as file:
            arrays = dict(file)
        arrays["labels"][3], arrays["offsets"][5:] = 10**9, 10**12
        np.savez(snapshot, **arrays)
    else:
        other = ns.Live("split", alpha=0.3)
        other.add_nodes(np.arange(67), np.full((67, 3), 1 / 3))
        other.save(tmp_path / "other")
        snapshot.write_bytes((tmp_path / "other" / "snapshot.npz").read_bytes())
    with ns.Live.open(store) as live:
        assert live.status() == expected[0]
        assert np.array_equal(live.predict().thresholds, expected[1])


def test_a_batch_with_a_known_key_does_nothing_again(store):
    with ns.Live.open(store) as live:
        live.add_labels([30], [1], key="a")
        before = live.status()
        live.add_labels([30], [1], key="a")
        assert live.status() == before
        with pytest.raises(InvalidInputError, match="'a' is that of another"):
            live.add_labels([31], [1], key="a")


def test_what_is_read_only_or_closed_changes_nothing(store):
    with ns.Live.open(store, read_only=True) as live, pytest.raises(InvalidInputError, match="read_only"):
        live.add_labels([30], [1])
    with pytest.raises(InvalidInputError, match="closed"):
        live.add_labels([30], [1])


WRITER = """
import sys
import napsets as ns
with ns.Live.open(sys.argv[1]) as live:
    for node in range(10_000):
        live.add_nodes([f"new {node}"], [[0.2, 0.3, 0.5]])
        print(node, flush=True)
"""


def test_a_kill_loses_nothing_that_was_answered(store):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(store)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    answered = 3 + len(process.stdout.read().split())
    process.wait()
    with ns.Live.open(store) as live:
        assert answered <= live.status()["nodes"] - 40 <= answered + 1


@pytest.mark.parametrize("folder", ["", "."])
def test_the_folder_that_one_works_in_is_not_replaced_by_a_store(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="`path` must be a new folder"):
        ns.Live("split").save(folder)
    assert not list(tmp_path.iterdir())
