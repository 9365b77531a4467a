"""Other people's text is shown, never obeyed: control characters and markup in names of classes, nodes and files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from napsets.cli._output import Output, table
from worlds import write

ESCAPES = "\x1b[31mred\x1b[0m"
CLASSES = [ESCAPES, "\x9b2J", "[bold]x[/]", "a\rb\u202ec"]
OBEYED = {"\x1b", "\x9b", "\r", "\u202e", "\x07", "\x00", "\u2028"}


@pytest.fixture
def files(tmp_path):
    """Six nodes in a ring, with names that a terminal would obey."""
    ids = [f"{name}{i}" for i, name in enumerate([ESCAPES, "[/]", "\x07", "\x00", "\u2028", "plain"])]
    p = np.full((6, 4), 0.25)
    names = [
        write(tmp_path / "e.parquet", {"source": ids, "target": [*ids[1:], ids[0]]}),
        write(tmp_path / "p.parquet", {"node": ids} | {name: p[:, i] for i, name in enumerate(CLASSES)}),
        write(tmp_path / "y.parquet", {"node": ids[:4], "label": CLASSES}),
    ]
    return [str(part) for pair in zip(("-e", "-p", "-l"), names, strict=True) for part in pair]


def check(shown, code=0):
    assert shown.exit_code == code, shown.output
    assert not OBEYED & set(shown.stdout + shown.stderr)
    return shown


def test_tables_show_names_as_they_are(run, files, tmp_path):
    edges, labels = files[1], files[5]
    shown = check(run("homophily", "-e", edges, "-l", labels))
    assert r"\x1b[31mred\x1b[0m" in shown.stdout
    assert "[bold]x[/]" in shown.stdout
    check(run("predict", *files, "-o", tmp_path / "s.parquet"))
    check(run("evaluate", tmp_path / "s.parquet", "-l", labels), 1)
    seen = check(run("inspect", "--node", "[/]1", *files))
    assert "Node [/]1 at alpha" in seen.stdout


def test_json_says_the_same_by_its_own_escapes(run, files):
    shown = check(run("homophily", "-e", files[1], "-l", files[5], "--json"))
    assert {row["class"] for row in json.loads(shown.stdout)["classes"]} == set(CLASSES)


def test_errors_and_wrong_use_show_what_came(run, files, tmp_path):
    check(run("inspect", "--node", ESCAPES, *files), 1)
    check(run("predict", *files[2:], "-e", tmp_path / f"{ESCAPES}.csv", "-o", tmp_path / "s.csv"), 1)
    check(run("predict", *files, "-o", tmp_path / f"{ESCAPES}.txt"), 2)
    check(run("predict", *files, "--decay", ESCAPES, "-o", tmp_path / "s.csv"), 2)
    check(run("predict", *files, f"--{ESCAPES}"), 2)
    check(run(ESCAPES), 2)
    check(run("predict", *files[2:], "-e", tmp_path / f"{ESCAPES}.csv", "-o", tmp_path / "s.csv", "--debug"), 1)


def test_notes_progress_and_lines_of_text_are_shown(capsys):
    output = Output()
    output.note(f"{ESCAPES}[bold]")
    with output.steps() as steps:
        steps.stage(f"training {ESCAPES}")
    output.result({}, f"The report is at /tmp/[/]{ESCAPES}", table(ESCAPES, [ESCAPES], [[ESCAPES]]))
    captured = capsys.readouterr()
    assert not OBEYED & set(captured.out + captured.err)
    assert "[bold]" in captured.err
    assert "/tmp/[/]" in captured.out
