"""``napsets evaluate --in-order``: the figures are those of the functions, in the order that was asked for."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

import napsets as ns
from worlds import guess

SIZE = 900


@pytest.fixture(scope="module")
def files(tmp_path_factory, must_run):
    """Sets of nodes of which the last third, in the order of `date`, is much harder; rows are in another order."""
    folder, rng = tmp_path_factory.mktemp("ordered"), np.random.default_rng(0)
    labels, date = rng.integers(3, size=SIZE), rng.permutation(SIZE)
    probabilities = guess(labels, np.where(date < 600, 2.5, 0.0), rng)
    rows = ["node,a,b,c", *(f"{i},{','.join(map(repr, map(float, row)))}" for i, row in enumerate(probabilities))]
    (folder / "probabilities.csv").write_text("\n".join(rows))
    known = np.flatnonzero(date < 300)
    (folder / "known.csv").write_text("\n".join(["node,label", *(f"{i},{'abc'[labels[i]]}" for i in known)]))
    later = np.flatnonzero(date >= 300)
    issued = date - rng.integers(1, 80, SIZE)
    days = (np.datetime64("2026-01-01") + date).astype(str)
    rows = [f"{i},{'abc'[labels[i]]},{issued[i]},{date[i]},{days[i]}" for i in later]
    (folder / "truth.csv").write_text("\n".join(["node,label,made,date,day", *rows]))
    edges = rng.integers(SIZE, size=(500, 2))
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in edges)]))
    must_run(
        "predict", "--edges", folder / "edges.csv", "--probabilities", folder / "probabilities.csv", "--labels",
        folder / "known.csv", "--method", "split", "--output", folder / "sets.parquet",
    )  # fmt: skip
    split = ns.SplitConformal().calibrate(probabilities, labels, known)
    sets = split.predict(later, 0.1)
    order = np.argsort(date[later])
    return folder, ~sets.contains(labels)[order], sets.sizes[order], np.argsort(order)


def evaluated(run, folder, column):
    call = ("evaluate", folder / "sets.parquet", "--labels", folder / "truth.csv", "--in-order", column)
    shown, text = run(*call, "--json"), run(*call)
    assert shown.exit_code == text.exit_code == 0, shown.output
    return json.loads(shown.stdout)["in_order"], text.stdout


def test_the_figures_are_those_of_the_functions_in_the_order_of_the_column(run, files):
    folder, missed, sizes, _ = files
    result, text = evaluated(run, folder, "date")
    lower, upper = ns.monitoring.coverage_interval(missed)
    assert result["labels"] == missed.size
    assert math.isclose(result["coverage"], 1 - missed.mean())
    assert result["coverage_interval"] == [lower[-1], upper[-1]]
    assert result["worst_window"] == ns.monitoring.worst_window(missed)._asdict()
    assert math.isclose(result["mean_size"], sizes.mean())
    rang = ns.monitoring.first_alarm(ns.monitoring.miss_alarm(missed, 0.1, labels=300))
    assert result["alarms"]["coverage"]["rang"] == rang > 250
    assert result["alarms"]["exchangeability"]["rang"] > 250
    assert result["alarms"]["coverage"]["time"] == 300 + rang - 1  # of the column
    assert f"after {rang} labels, at date {300 + rang - 1} (" in " ".join(text.split())


def test_without_the_number_of_labels_there_is_no_coverage_alarm(run, files, tmp_path):
    folder, sets = files[0], tmp_path / "sets.parquet"
    pq.write_table(pq.read_table(folder / "sets.parquet").replace_schema_metadata(None), sets)
    call = ("evaluate", sets, "--labels", folder / "truth.csv", "--in-order", "date")
    result = json.loads(run(*call, "--json").stdout)["in_order"]
    text = " ".join(run(*call).stdout.split())
    assert result["alarms"]["coverage"] == {"rang": None, "time": None, "log10_capital": None, "tests": 0}
    assert result["alarms"]["exchangeability"]["rang"] > 250
    assert "does not record how many labels set the level" in text


def test_dates_as_iso_has_them_are_an_order(run, files):
    by_number, by_day = (evaluated(run, files[0], column)[0] for column in ("date", "day"))
    assert by_day["worst_window"] == by_number["worst_window"]
    rang, time = (by_day["alarms"]["coverage"][name] for name in ("rang", "time"))
    assert rang == by_number["alarms"]["coverage"]["rang"]
    assert time == str(np.datetime64("2026-01-01") + int(by_number["alarms"]["coverage"]["time"]))


def test_the_order_of_the_rows_is_another(run, files):
    folder, missed, _, rows = files
    result, text = evaluated(run, folder, "rows")
    assert result["worst_window"] == ns.monitoring.worst_window(missed[rows])._asdict()
    assert result["alarms"]["exchangeability"]["rang"] is None  # the rows are in a random order
    assert "not raised" in text


def test_a_column_that_is_not_there_is_told(run, files):
    folder = files[0]
    done = run("evaluate", folder / "sets.parquet", "--labels", folder / "truth.csv", "--in-order", "hour")
    assert done.exit_code != 0
    assert "hour" in done.stderr


def test_numbers_that_are_text_are_sorted_as_numbers_and_dates_as_dates():
    from napsets.cli.evaluate import _sortable

    assert np.argsort(_sortable(["10", "9", "2"])).tolist() == [2, 1, 0]
    assert np.argsort(_sortable(["2024-02-01", "2023-12-31"])).tolist() == [1, 0]


def test_empty_cells_in_the_column_are_refused(run, files, tmp_path):
    folder = files[0]
    rows = (folder / "truth.csv").read_text().splitlines()
    rows[5] = ",".join([*rows[5].split(",")[:3], "", "2026-01-01"])
    (tmp_path / "truth.csv").write_text("\n".join(rows))
    done = run("evaluate", folder / "sets.parquet", "--labels", tmp_path / "truth.csv", "--in-order", "date")
    assert done.exit_code != 0
    assert "without empty cells" in done.stderr
