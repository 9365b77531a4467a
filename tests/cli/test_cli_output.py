"""Tables fit a terminal, numbers are written for people, and JSON is JSON."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from napsets.cli._output import Output, number, percent
from napsets.cli.report import comparison_table
from worlds import make_world


def test_the_comparison_fits_80_columns():
    row = {"method": "naps-h", "title": "NAPS exact", "coverage": 0.9072}
    row |= {"coverage_se": 0.0038, "mean_size": 12.15, "mean_size_se": 0.03, "gap_class": 0.051, "gap_degree": 0.02}
    row |= {"singleton_rate": 0.0004, "nodes": 6000, "alpha": 0.1, "hops": 2}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_table([row]))
    shown = console.export_text()
    assert "90.7±0.7 %" in shown
    assert "<1 %" in shown
    assert "12.15±0.06" in shown
    assert "…" not in shown
    assert "0.051  " in shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1234, "1,234"), (0.5, "0.5000"), (math.inf, "∞"), (math.nan, "–"), (None, "–")]
)
def test_numbers_are_written_for_people(value, shown):
    assert number(value) == shown


def test_shares_are_written_for_people():
    assert percent(0.125) == "12.50 %"
    assert percent(math.nan) == "–"


def test_json_has_no_numbers_that_json_lacks(capsys):
    Output(json=True).result({"a": np.float64("inf"), "b": [np.int64(3), float("nan")], "c": {"d": -math.inf}})
    answer = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert answer == {"a": "Infinity", "b": [3, None], "c": {"d": "-Infinity"}}


def test_a_command_says_once_that_it_compiles_unless_it_is_quiet(tmp_path):
    world = make_world(tmp_path, nodes=60_000, degree=10)  # more than NumPy would search
    command = [sys.executable, "-m", "napsets", "predict", *world.files, "--hops", "1"]
    command += ["-o", str(tmp_path / "sets.parquet")]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, later = (
        subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr for _ in range(2)
    )
    assert first.count("note: compiling kernels, once on this machine") == 1
    assert "compiling" not in later
    env["NUMBA_CACHE_DIR"] = str(tmp_path / "other")
    quiet = subprocess.run([*command, "--quiet"], env=env, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
