"""What `make` and continuous integration run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from skips import lacking

ROOT = Path(__file__).parents[1]


def test_ci_runs_what_trains_a_second_time_with_other_last_digits():
    commands = re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text("utf-8"), flags=re.M)
    assert commands[:2] == ["test", "test-plain"]
    (recipe,) = re.findall(r"^test-plain:.*\n\t(.+)", (ROOT / "Makefile").read_text("utf-8"), flags=re.M)
    assert recipe.startswith("ATEN_CPU_CAPABILITY=default ")
    assert recipe.endswith('-m "gnn and not slow"')


def test_a_virtual_environment_that_failed_half_way_is_made_again(tmp_path):
    make = shutil.which("make") or lacking("no make", "apt-get install make")
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    fake = folder / "python"
    fake.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\nmkdir -p .venv/bin && touch .venv/bin/python && exit 1\n')
    fake.chmod(0o755)
    for _ in range(2):
        ran = subprocess.run([make, "lint", "PYTHON=./python"], cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode != 0
        assert "./python -m venv .venv" in ran.stdout
