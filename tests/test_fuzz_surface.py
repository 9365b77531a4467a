"""The public surface under hostile calls: an answer or an error of our own, never a crash or a foreign exception."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import napsets as ns
from oracles import same_bits

HERE = Path(__file__).parent
CALLS_OF_EVERY_RUN, ALL_CALLS, AT_A_TIME = 3000, 100_000, 10_000


def hostile_calls(folder: Path, calls: int, seed: int) -> dict:
    """Make calls in another process, which may die; then say in which call it was."""
    record = folder / "last call"
    path = os.pathsep.join([str(Path(ns.__file__).parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "hostile_calls.py"), str(calls), str(seed), str(record)],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(folder)},
    )  # fmt: skip
    last = record.read_text(encoding="utf-8") if record.exists() else "nothing was called"
    assert done.returncode == 0, f"ended with {done.returncode} in the call {last}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def check(report: dict) -> None:
    assert not report["problems"], json.dumps(report["problems"], indent=1, ensure_ascii=False)
    assert report["fine"] > report["refused"] > 0  # most arguments are right, and wrong ones were among them


def test_hostile_calls_are_answered_or_refused(tmp_path):
    check(hostile_calls(tmp_path, CALLS_OF_EVERY_RUN, seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + ALL_CALLS // AT_A_TIME))
def test_a_hundred_thousand_hostile_calls_are_answered_or_refused(tmp_path, seed):
    check(hostile_calls(tmp_path, AT_A_TIME, seed))


SIZE = 400


@pytest.mark.filterwarnings("ignore::napsets.NapsetsWarning")
@pytest.mark.parametrize("name", [name for name in ns.list_methods() if name != "by-community"])
def test_what_was_calibrated_does_not_change_with_the_callers_arrays(name):
    graph = ns.Graph.from_edge_index(np.random.default_rng(0).integers(SIZE, size=(2, 1200)), SIZE)
    p, y = np.random.default_rng(1).dirichlet(np.ones(3), SIZE), np.random.default_rng(2).integers(3, size=SIZE)
    arrays = {
        "probabilities": p.copy(), "labels": y.copy(), "calibration": np.arange(0, SIZE, 2),
        "ids": np.array([f"n{i}" for i in range(SIZE)]),
    }  # fmt: skip
    calibrated = ns.make_method(name).calibrate(graph, **arrays)
    again = ns.make_method(name).calibrate(graph, **{key: array.copy() for key, array in arrays.items()})
    for array in arrays.values():
        array[...] = "x" if array.dtype.kind == "U" else 1
    nodes = np.arange(1, SIZE, 2)
    one, other = (each.predict(nodes, 0.2) for each in (calibrated, again))
    assert same_bits(one.thresholds, other.thresholds)
    assert np.array_equal(one.member, other.member)
    assert np.array_equal(one.ids, other.ids)
    assert calibrated.predict([f"n{SIZE - 1}"]).nodes.tolist() == [SIZE - 1]
