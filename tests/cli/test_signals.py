"""Ctrl-C and SIGTERM end every command at any moment: 130 or 143, one line that is true, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from napsets.files import read_sets
from stopping import run_stopped

#: A command is stopped in a few moments, and in the slow tests in many, evenly spread over its calls.
moments = pytest.mark.parametrize("many", [0, pytest.param(12, marks=pytest.mark.slow)])

pytestmark = pytest.mark.world(suffix=".csv", nodes=600)


INTERRUPTED = "interrupted; no file was left half-written."


class Command:
    """A command that runs in a folder of its own, and is stopped at the n-th call of one of our functions."""

    def __init__(self, folder, *arguments):
        self.folder, self.temporary = folder, folder.parent / "temporary"
        self.temporary.mkdir()
        folder.mkdir()
        self.arguments = list(map(str, arguments))

    def run(self, number=0, moment=0):
        """Return the exit code, standard error and the number of calls."""
        return run_stopped(number, moment, self.folder, self.temporary, self.arguments)

    def left(self):
        """Return the files that are there, and remove them."""
        paths = [path for root in (self.folder, self.temporary) for path in root.rglob("*") if path.is_file()]
        files = {path.name: path.read_bytes() for path in paths}
        for path in paths:
            path.unlink()
        return files


def check_stopped_anywhere(command, name, shares, many, whole=lambda files: True):
    code, errors, calls = command.run()
    assert code == 0, errors
    command.left()
    shares = [(moment + 0.5) / many for moment in range(many)] or shares
    for moment, share in enumerate(shares):
        number = (signal.SIGINT, signal.SIGTERM)[moment % 2]
        code, errors, _ = command.run(number, int(share * calls))
        files = command.left()
        assert code == 128 + number, errors
        assert "Traceback" not in errors
        assert not [file for file in files if file.startswith((".", "napsets-"))]
        last = errors.splitlines()[-1]
        assert [line for line in errors.splitlines() if "interrupted" in line] == [last]
        assert last in (f"{who}: error: {INTERRUPTED}" for who in ("napsets", f"napsets {name}"))
        assert whole(files)


@moments
@pytest.mark.parametrize("target", ["sets.parquet", "sets.csv.gz", "-"])
def test_predict_can_be_stopped_at_any_moment(world, tmp_path, target, many):
    def whole(files):
        for name, contents in files.items():
            (tmp_path / name).write_bytes(contents)
            assert len(read_sets(tmp_path / name).sets) == world.rest.size
        return True

    arguments = ["predict", *world.files, "--hops", 3, "-o", target]
    # Where to makes no difference before something is written.
    shares = (0.1, 0.5, 0.9) if target == "sets.parquet" else (0.95,)
    check_stopped_anywhere(Command(tmp_path / "run", *arguments), "predict", shares, many, whole)


@moments
def test_report_can_be_stopped_at_any_moment(world, tmp_path, many):
    def whole(files):
        return all(contents.rstrip().endswith(b"</html>") for contents in files.values())

    arguments = ["report", *world.files, "--methods", "split,naps", "-o", "report.html"]
    check_stopped_anywhere(Command(tmp_path / "run", *arguments), "report", (0.95,), many, whole)


@moments
@pytest.mark.parametrize("name", ["inspect", "evaluate", "homophily"])
def test_commands_that_write_nothing_can_be_stopped_at_any_moment(run, world, tmp_path, name, many):
    arguments = {
        "inspect": [*world.files, "--node", world.ids[0]],
        "evaluate": [tmp_path / "sets.csv", "-l", world.truth, "-e", world.edges],
        "homophily": ["-e", world.edges, "-l", world.labels_file],
    }
    if name == "evaluate":
        assert run("predict", *world.files, "-m", "split", "-o", tmp_path / "sets.csv").exit_code == 0
    check_stopped_anywhere(Command(tmp_path / "run", name, *arguments[name]), name, (0.7,), many)


@pytest.mark.parametrize(
    ("number", "after"), [(signal.SIGTERM, 0.5), pytest.param(signal.SIGINT, 0.0, marks=pytest.mark.slow)]
)
def test_demo_can_be_stopped_while_it_trains(tmp_path, number, after):
    pytest.importorskip("torch")
    command = Command(tmp_path / "run", "demo")
    process = subprocess.Popen(
        [sys.executable, "-m", "napsets", *command.arguments],
        cwd=command.folder,
        env=os.environ | {"TMPDIR": str(command.temporary)},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert any(line.startswith("training ") for line in process.stderr)
    time.sleep(after)  # training takes longer: this signal comes in the midst of compiled code
    process.send_signal(number)
    errors = process.communicate()[1]
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1].endswith(f": error: {INTERRUPTED}")
    assert "Traceback" not in errors
    # PyTorch Geometric writes the code of its layers into files of its own, and removes them when Python ends.
    assert [name for name in command.left() if not name.startswith("torch_geometric.")] == []


#: Stops itself at a chosen moment of writing a file.
AT = """
import os, signal, sys
from pathlib import Path
import napsets.files.paths as places
from napsets.cli import at_work, listen
from napsets.files.paths import discard_drafts
moment, target = sys.argv[1], Path(sys.argv[2])

def stop():
    os.kill(os.getpid(), signal.SIGTERM)

listen()
at_work("test", discard_drafts)
rename = Path.replace
if moment == "renamed":
    Path.replace = lambda *paths: (rename(*paths), stop())
with places.replacing(target) as draft:
    draft.write_text("whole")
    if moment == "written":
        stop()
stop()
"""


@pytest.mark.parametrize("moment", ["written", "renamed", "later"])
def test_a_file_is_there_whole_or_not_at_all_in_every_moment(tmp_path, moment):
    command = [sys.executable, "-c", AT, moment, "é.txt"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    there = moment != "written"
    assert shown.returncode == 128 + signal.SIGTERM
    assert shown.stderr == f"napsets test: error: {INTERRUPTED}\n"
    assert os.listdir(tmp_path) == ["é.txt"] * there
