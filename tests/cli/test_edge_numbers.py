"""Numbers at the edge: huge ones are refused in words, tiny ones are shown, and nothing is printed as nan."""

from __future__ import annotations

import re

import numpy as np
import pytest

from number_worlds import COLUMNS, IDS, KNOWN, REST, Y, number_files
from worlds import write


def scaled(folder, factor, score="cqr", **changes):
    """Return the files of the world of numbers, all of which are multiplied by a factor."""
    columns = {name: values * factor for name, values in COLUMNS[score].items()}
    tables = {"probabilities": {"node": IDS} | columns, "labels": {"node": IDS[KNOWN], "target": Y[KNOWN] * factor}}
    return number_files(folder, score, **(tables | changes))


@pytest.mark.parametrize("score", ["cqr", "absolute", "normalised"])
@pytest.mark.parametrize("where", ["outputs", "targets"])
def test_numbers_near_the_largest_are_refused_in_words(run, tmp_path, score, where):
    huge = {"outputs": {"labels": {"node": IDS[KNOWN], "target": Y[KNOWN]}}}
    huge["targets"] = {"probabilities": {"node": IDS} | COLUMNS[score]}
    files = scaled(tmp_path, 2e307, score, **huge[where])
    shown = run("predict", "--task", "regression", *files, "-o", tmp_path / "i.csv")
    assert shown.exit_code == 1
    assert f"`{where}` must be numbers of at most 1e+150 in size; row " in shown.stderr
    assert "overflow" not in shown.stderr


@pytest.mark.parametrize("score", ["cqr", "absolute", "normalised"])
@pytest.mark.parametrize("method", ["split", "informed", "auto"])
@pytest.mark.parametrize("factor", [1e140, 1e-140])
def test_other_huge_and_tiny_numbers_work(run, tmp_path, score, method, factor):
    files, target = scaled(tmp_path, factor, score), tmp_path / "i.csv"
    shown = run("predict", "--task", "regression", *files, "--method", method, "-o", target)
    assert shown.exit_code == 0, shown.stderr
    assert "encountered" not in shown.stderr
    truth = write(tmp_path / "truth.csv", {"node": IDS[REST], "target": Y[REST] * factor})
    judged = run("evaluate", target, "--labels", truth)
    assert judged.exit_code == 0, judged.stderr
    assert "encountered" not in judged.stderr


def test_intervals_of_a_file_near_the_largest_number_are_refused_in_words(run, tmp_path):
    row = {"node": ["a"], "lower": [-1.7e308], "upper": [1.7e308], "width": [np.inf], "threshold": [1.0]}
    row |= {"support": [3], "effective_size": [3.0], "alpha": [0.1], "prediction": [0.0]}
    truth = write(tmp_path / "truth.csv", {"node": ["a"], "target": [0.0]})
    shown = run("evaluate", write(tmp_path / "i.csv", row), "--labels", truth)
    assert shown.exit_code == 1
    assert "`lower` must be numbers of at most 1e+150 in size; row 0 has 1.7e+308" in shown.stderr
    assert "overflow" not in shown.stderr


@pytest.mark.parametrize(("factor", "exponent"), [(1e-9, "e-0"), (1e12, "e+1")])
def test_widths_are_shown_in_digits_that_say_something(run, tmp_path, factor, exponent):
    files, target = scaled(tmp_path, factor, "absolute"), tmp_path / "i.csv"
    truth = write(tmp_path / "truth.csv", {"node": IDS[REST], "target": Y[REST] * factor})
    arguments = ["--task", "regression", *files]
    shown = {
        "average interval width": run("predict", *arguments, "--method", "split", "-o", target),
        "median width": run("evaluate", target, "--labels", truth, "--edges", files[1]),
        r"\d+–\d+": run("evaluate", target, "--labels", truth, "--edges", files[1]),  # coverage by degree
        "interval": run("inspect", *arguments, "--method", "split", "--node", IDS[REST[0]]),
        "Split absolute": run("report", *arguments, "--methods", "split,naps", "-o", tmp_path / "r.html"),
    }
    for start, result in shown.items():
        assert result.exit_code == 0, result.stderr
        rows = [line for line in result.stdout.splitlines() if re.match(f" *{start}  ", line)]
        assert rows
        assert all(exponent in row for row in rows), rows


def test_truths_that_are_nan_are_named_for_what_they_are(run, tmp_path):
    files, target = number_files(tmp_path), tmp_path / "i.csv"
    assert run("predict", "--task", "regression", *files, "--method", "split", "-o", target).exit_code == 0
    unknown = write(tmp_path / "unknown.csv", {"node": IDS[REST], "target": np.full(REST.size, np.nan)})
    shown = run("evaluate", target, "--labels", unknown)
    assert shown.exit_code == 1
    assert "and that not all targets are empty or NaN" in shown.stderr
    some = np.where(np.arange(REST.size) < 40, np.nan, Y[REST])
    half = run("evaluate", target, "--labels", write(tmp_path / "half.csv", {"node": IDS[REST], "target": some}))
    assert half.exit_code == 0, half.stderr
    assert "40 of the 50 rows of `labels`" in half.stderr
    assert not re.search(r"\bnan\b", half.stdout)
