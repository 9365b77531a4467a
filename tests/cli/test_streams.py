"""Streams that are full, closed, gone or know ASCII only: the command says truly what is there, and no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import takewhile

import pytest

from worlds import make_world, write

MAIN = "from napsets.cli import main; main()"


def napsets(*arguments, shell="", **environment):
    """Run the command in a shell, with its streams redirected as `shell` says."""
    command = ["sh", "-c", f'exec "$0" "$@" {shell}', sys.executable, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def predict(world, target):
    return ["predict", *world.files, "--hops", 1, "-o", target]


@pytest.mark.parametrize(
    ("shell", "reason"), [(">/dev/full", "no space left on device"), (">&-", "bad file descriptor")]
)
def test_what_was_written_is_told_where_the_summary_cannot_be_printed(world, tmp_path, shell, reason):
    target = tmp_path / "sets.parquet"
    shown = napsets(*predict(world, target), shell=shell)
    assert shown.returncode == 1
    assert shown.stderr.splitlines()[-1] == (
        f"napsets predict: error: cannot write to standard output ({reason}); {target} was written completely."
    )
    assert "Traceback" not in shown.stderr
    assert target.exists()


def test_nobody_needs_to_read_what_is_said(world, tmp_path):
    shown = napsets(*predict(world, tmp_path / "sets.parquet"), "--quiet", shell="<&- >/dev/null 2>&-")
    assert shown.returncode == 0
    assert (tmp_path / "sets.parquet").exists()


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_notes_that_nobody_can_read_stop_nothing(world, shell):
    shown = napsets("homophily", "-e", world.edges, "-l", world.labels_file, "--json", shell=shell)
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["labelled"] == 60


@pytest.mark.parametrize("shell", [">/dev/full", ">&-"])
def test_help_that_cannot_be_printed_is_one_line(shell):
    shown = napsets("--help", shell=shell)
    assert shown.returncode == 1
    assert len(shown.stderr.splitlines()) == 1
    assert shown.stderr.startswith("napsets: error: cannot write to standard output")


def test_ascii_terminals_get_ascii(tmp_path):
    world = make_world(tmp_path / "world", degree=2)
    shown = napsets(*predict(world, tmp_path / "sets.parquet"), PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stdout.isascii(), shown.stderr.isascii()) == (0, True, True), shown.stderr
    assert "threshold inf" in shown.stdout
    numbers = takewhile(
        lambda line: ": average set size " not in line, shown.stdout.splitlines()[1:]
    )  # then come words
    widths = {len(line) for line in numbers if line}
    assert len(widths) == 1  # columns are as wide as what stands in them
    assert napsets("predict", "--help", PYTHONIOENCODING="ascii").stdout.isascii()


def test_json_for_ascii_streams_means_the_same(tmp_path):
    edges = write(tmp_path / "e.parquet", {"source": [1], "target": [2]})
    labels = write(tmp_path / "y.parquet", {"node": [1, 2], "label": ["né", "∞"]})
    shown = napsets("homophily", "-e", edges, "-l", labels, "--json", PYTHONIOENCODING="ascii")
    assert {row["class"] for row in json.loads(shown.stdout)["classes"]} == {"né", "∞"}


#: A module of that name which, while it is loaded, sends this process a signal and makes of it what libraries make.
SLOW_MODULE = """
import os, time
os.kill(os.getpid(), {number})
try:
    time.sleep(60)
except BaseException:
    raise RuntimeError("the module could not be loaded")
"""


@pytest.mark.parametrize("module", ["typer", "rich", "numpy", "pyarrow"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_modules_are_loaded_is_one_line(world, tmp_path, module, number):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / f"{module}.py").write_text(SLOW_MODULE.format(number=int(number)))
    path = os.pathsep.join([str(tmp_path / "slow"), os.environ.get("PYTHONPATH", "")])
    shown = napsets("homophily", "-e", world.edges, "-l", world.labels_file, "--quiet", PYTHONPATH=path)
    assert shown.returncode == 128 + number
    assert shown.stderr.endswith(": error: interrupted; nothing was written.\n")
    assert len(shown.stderr.splitlines()) == 1


def test_a_signal_that_is_ignored_on_purpose_stays_ignored(world):
    command = ["sh", "-c", 'trap "" INT; exec "$0" "$@"', sys.executable, "-c", f"import os, signal; {MAIN[:-6]}"]
    command[-1] += "os.kill(os.getpid(), signal.SIGINT); main()"
    shown = subprocess.run([*command, "datasets", "-q"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
