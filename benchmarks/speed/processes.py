"""Whole processes, as a user starts them: the first use after an installation, and ``napsets predict`` on files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

__all__ = ["first_use", "predict_files", "write_files"]

_CLASSES = 4

#: Prints the seconds of processor time that compiling took.
_FIRST_USE = """
import json, sys, time
import numpy as np, napsets as ns
from numba.core import event

class Compiling(event.Listener):
    seconds, depth, began = 0.0, 0, 0.0
    def on_start(self, _):
        self.began = time.process_time() if self.depth == 0 else self.began
        self.depth += 1
    def on_end(self, _):
        self.depth -= 1
        self.seconds += time.process_time() - self.began if self.depth == 0 else 0.0

nodes, rng = int(sys.argv[1]), np.random.default_rng(0)
edges, p = rng.integers(nodes, size=(2, 3 * nodes)), rng.dirichlet(np.ones(4), nodes)
labels, half = rng.integers(4, size=nodes), np.arange(nodes) < nodes // 2
compiling = Compiling()
event.register("numba:compile", compiling)
graph = ns.Graph.from_edge_index(edges, nodes)
ns.NAPS().calibrate(graph, p, labels, half).predict(~half, 0.1)
print(json.dumps({"compile_seconds": compiling.seconds}))
"""


def first_use(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make a graph, calibrate and predict in a fresh process that finds no compiled kernel."""
    with TemporaryDirectory(dir=folder) as cache:
        out, told = _timed_process(["-c", _FIRST_USE, str(spec["nodes"])], NUMBA_CACHE_DIR=cache)
    return {**told, **json.loads(out)}


def write_files(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write one graph twice, with the ids 0..n−1 in any order and with names made from them."""
    import pyarrow as pa
    from pyarrow import parquet

    nodes, rng = spec["nodes"], np.random.default_rng(0)
    ends, p = rng.integers(nodes, size=(2, spec["edges"])), rng.dirichlet(np.ones(_CLASSES), nodes)
    labelled = rng.choice(nodes, nodes // 10, replace=False)
    classes = pa.array([f"class-{y}" for y in rng.integers(_CLASSES, size=labelled.size)])
    numbers = rng.permutation(nodes)
    for kind, ids in {"integer": pa.array(numbers), "string": pa.array([f"user-{i}" for i in numbers])}.items():
        chances = {f"class-{y}": p[:, y].astype(np.float32) for y in range(_CLASSES)}
        tables = {
            "edges": {"source": ids.take(pa.array(ends[0])), "target": ids.take(pa.array(ends[1]))},
            "probabilities": {"node": ids, **chances},
            "labels": {"node": ids.take(pa.array(labelled)), "label": classes},
        }
        for name, columns in tables.items():
            parquet.write_table(pa.table(columns), folder / f"{kind}-{name}.parquet")
    return {}


def predict_files(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run ``napsets predict`` on the files with one kind of ids."""
    kind = spec["ids"]
    files = [text for name in ("edges", "probabilities", "labels") for text in (f"--{name}", f"{kind}-{name}.parquet")]
    output = ["--output", f"{kind}-sets.parquet", "--quiet"]
    return _timed_process(["-m", "napsets", "predict", *files, *output], cwd=folder)[1]


def _timed_process(
    arguments: list[str], *, cwd: Path | None = None, **environment: str
) -> tuple[str, dict[str, float]]:
    """Run Python; return what it printed, the seconds that passed and those that it used processors for."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=cwd,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return done.stdout, {"seconds": seconds, "cpu_seconds": used}
