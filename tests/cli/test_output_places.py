"""Where commands write: one rule, kept before any work is done."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from worlds import make_world


def message_of(shown):
    return " ".join(shown.output.replace("│", " ").split())


@pytest.fixture
def work(monkeypatch):
    """Fail if anything is read, trained or run."""

    def fail(*arguments, **options):
        pytest.fail("work was done before the output was looked at")

    monkeypatch.setattr("napsets.cli._options.read_inputs", fail)
    monkeypatch.setattr("napsets.datasets.load", fail)


#: Commands that write, what they call their output, and the option of an input.
WRITING = [
    *(("predict", "--output", ".csv", flag) for flag in ("--labels", "--nodes", "--features", "--by", "--config")),
    *(("report", "--output", ".html", flag) for flag in ("--edges", "--truth", "--features", "--config")),
    ("demo", "--output", ".html", "--config"),
]


@pytest.mark.parametrize(("command", "output", "suffix", "flag"), WRITING)
def test_no_command_overwrites_an_input(run, world, tmp_path, work, command, output, suffix, flag):
    """By its name or another one, which `tests/files/test_outputs.py` has all kinds of."""
    source, link = tmp_path / f"source{suffix}", tmp_path / "world" / f"link{suffix}"
    source.write_text("# mine\n")
    link.hardlink_to(source)
    before = sorted(os.listdir(tmp_path))
    files = dict(zip(world.files[::2], world.files[1::2], strict=True)) if command in ("predict", "report") else {}
    for target in (source, link):
        named = files | {flag: source, output: target}
        shown = run(command, *(text for option in named.items() for text in option))
        assert shown.exit_code == 2
        assert "would overwrite the input" in message_of(shown)
        assert source.read_text() == "# mine\n"
        assert sorted(os.listdir(tmp_path)) == before  # no folder was made


def in_a_shell(command, *arguments):
    """Run the command in a shell, which knows the arguments as $1, $2, …"""
    program = "from napsets.cli import main; main()"
    shell = ["sh", "-c", command.replace("napsets", f"'{sys.executable}' -c '{program}'"), "sh", *map(str, arguments)]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


def test_standard_output_is_no_input(world):
    before = world.labels_file.read_bytes()
    shown = in_a_shell('napsets homophily -e "$1" -l "$2" --json >> "$2"', world.edges, world.labels_file)
    assert shown.returncode == 2
    assert "standard output is the input" in " ".join(shown.stderr.replace("│", " ").split())
    assert world.labels_file.read_bytes() == before


def test_the_file_that_standard_input_comes_from_is_an_input(tmp_path):
    world = make_world(tmp_path, suffix=".csv")
    before = world.labels_file.read_bytes()
    files = (world.edges, world.probabilities_file, world.labels_file)
    shown = in_a_shell('napsets predict -e "$1" -p "$2" -l - -o "$3" < "$3"', *files)
    assert shown.returncode == 2
    assert world.labels_file.read_bytes() == before


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_is_written_into_an_input_folder(run, world, tmp_path, work, command):
    folder = tmp_path / "edges.parquet"
    folder.mkdir()
    world.edges.rename(folder / "part-0.parquet")
    output = folder / {"predict": "sets.parquet", "report": "report.html"}[command]
    shown = run(command, "--edges", folder, *world.files[2:], "-o", output)
    assert shown.exit_code == 2
    assert "would overwrite the input" in message_of(shown)
    assert os.listdir(folder) == ["part-0.parquet"]
