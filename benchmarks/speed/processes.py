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

compiling = Compiling()
event.register("numba:compile", compiling)
exec(sys.argv[1])
print(json.dumps({"compile_seconds": compiling.seconds}))
"""

_PREDICT = """
nodes, rng = {nodes}, np.random.default_rng(0)
edges, p = rng.integers(nodes, size=(2, 3 * nodes)), rng.dirichlet(np.ones(4), nodes)
labels, half = rng.integers(4, size=nodes), np.arange(nodes) < nodes // 2
graph = ns.Graph.from_edge_index(edges, nodes)
ns.{method}.calibrate(graph, p, labels, half).predict(~half, alpha=0.1)
"""

#: Neighbours mostly share a label, so that their labels are evidence and `Auto` does its whole work.
_AUTO = """
nodes, rng = 20_000, np.random.default_rng(0)
labels = np.sort(rng.integers(4, size=nodes))
source = rng.integers(nodes, size=3 * nodes)
target = (source + rng.integers(-2000, 2000, source.size)) % nodes
p = np.exp(rng.normal(size=(nodes, 4)) + np.eye(4)[labels])
p, half = p / p.sum(axis=1, keepdims=True), rng.random(nodes) < 0.5
graph = ns.Graph.from_edge_index([source, target], nodes)
ns.Auto().calibrate(graph, p, labels, half).predict(~half)
"""

#: What is done with an empty cache of kernels, by its name.
FIRST_USES = {
    "NAPS on 100 nodes": _PREDICT.format(method="NAPS()", nodes=100),
    "NAPS on 20,000 nodes": _PREDICT.format(method="NAPS()", nodes=20_000),
    "Auto on 20,000 nodes": _AUTO,
    "README's ten lines": None,  # as they are printed
}


def _ten_lines() -> str:
    """Return the first code of README."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return text.partition("```python\n")[2].partition("```")[0]


def first_use(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Calibrate and predict in a fresh process that finds no compiled kernel."""
    code = FIRST_USES[spec["work"]] or _ten_lines()
    with TemporaryDirectory(dir=folder) as cache:
        out, timing = _timed_process(["-c", _FIRST_USE, code], NUMBA_CACHE_DIR=cache)
    return {**timing, **json.loads(out.splitlines()[-1])}


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
