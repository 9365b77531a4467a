"""``napsets predict --task regression``: intervals from files to a file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import napsets as ns
from worlds import write

pytest.importorskip("typer")
pytestmark = pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
SIZE = 200
RNG = np.random.default_rng(0)
ENDS = RNG.integers(SIZE, size=(2, 700))
X = RNG.normal(size=SIZE)
Y = 2 * X + RNG.normal(size=SIZE)
IDS = np.array([f"n{i}" for i in range(SIZE)])
KNOWN, REST = np.arange(150), np.arange(150, 200)
COLUMNS = {
    "cqr": {"lower": 2 * X - 1, "upper": 2 * X + 1},
    "absolute": {"prediction": 2 * X},
    "normalised": {"prediction": 2 * X, "spread": 0.5 + np.abs(X)},
}


@pytest.fixture
def run():
    from typer.testing import CliRunner

    from napsets.cli import make_app

    def call(*arguments, code=0):
        done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(make_app(), [str(a) for a in arguments])
        assert done.exit_code == code, done.output
        return done

    return call


def files(folder, score, suffix=".parquet", **changes):
    tables = {
        "edges": {"source": IDS[ENDS[0]], "target": IDS[ENDS[1]]},
        "probabilities": {"node": IDS} | COLUMNS[score],
        "labels": {"node": IDS[KNOWN], "target": Y[KNOWN]},
    }
    tables |= changes
    return [
        text for name, columns in tables.items() for text in (f"--{name}", write(folder / f"{name}{suffix}", columns))
    ]


def predictor(score, method):
    graph = ns.Graph.from_edge_index(ENDS, SIZE)
    made = ns.make_method(method, score=score)
    outputs = np.column_stack(list(COLUMNS[score].values()))
    return made.calibrate(graph, outputs, np.where(np.arange(SIZE) < 150, Y, np.nan), KNOWN, ids=IDS)


@pytest.mark.parametrize("score", list(COLUMNS))
@pytest.mark.parametrize("method", ["split", "naps-exact", "informed", "auto"])
def test_the_columns_say_which_score_and_the_file_has_the_librarys_intervals(run, tmp_path, score, method):
    target = tmp_path / "out.parquet"
    done = run(
        "predict", "--task", "regression", *files(tmp_path, score), "--method", method, "-o", target, "--json"
    )  # fmt: skip
    expected = predictor(score, method).predict(REST, 0.1)
    table = pyarrow.parquet.read_table(target)
    assert table["node"].to_pylist() == IDS[REST].tolist()
    assert np.array_equal(table["lower"].to_numpy(), expected.lower)
    assert np.array_equal(table["upper"].to_numpy(), expected.upper)
    told = json.loads(done.stdout)
    assert (told["task"], told["score"], told["nodes"]) == ("regression", score, 50)
    assert told["mean_width"] == pytest.approx(expected.widths[np.isfinite(expected.widths)].mean())
    assert json.loads(table.schema.metadata[b"napsets"])["method"] == method


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz"])
def test_every_format_is_read_and_written(run, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    run("predict", "--task", "regression", *files(tmp_path, "cqr", suffix), "--method", "split", "-o", target)
    expected = predictor("cqr", "split").predict(REST, 0.1)
    if suffix == ".npz":
        found = np.load(target)["lower"]
    elif suffix == ".csv":
        found = pyarrow.csv.read_csv(target)["lower"].to_numpy()
    else:
        found = np.array([json.loads(line)["lower"] for line in target.read_text().splitlines()])
    assert np.allclose(found, expected.lower, rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": {"node": IDS, "a": X}}, "must have the columns lower and upper, or prediction"),
        ({"labels": {"node": IDS[KNOWN], "label": Y[KNOWN]}}, "target"),
        ({"labels": {"node": IDS[KNOWN], "target": np.full(150, np.nan)}}, "must have at least one target"),
        ({"probabilities": {"node": IDS, "lower": X, "upper": np.full(SIZE, np.inf)}}, "finite"),
    ],
)
def test_files_that_are_no_regression_are_refused_in_plain_words(run, tmp_path, changes, message):
    done = run(
        "predict", "--task", "regression", *files(tmp_path, "cqr", **changes), "-o", tmp_path / "out.parquet", code=1
    )  # fmt: skip
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "out.parquet").exists()
