"""After a warm-up no process compiles anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PREDICT = """
import json
import numpy as np, napsets as ns
from numba.core import event
from napsets.kernels import search

rng = np.random.default_rng(0)
with event.install_recorder("numba:compile") as compiled:
    for nodes, degree in ((3000, 2), (3000, 40), (12_000, 8)):
        graph = ns.Graph.from_edge_index(rng.integers(nodes, size=(2, degree * nodes)), nodes)
        p, y, half = rng.dirichlet(np.ones(4), nodes), rng.integers(4, size=nodes), np.arange(nodes) < nodes // 2
        for predictor in (ns.NAPS(3), ns.NAPS(exact=True, pool=5.0), ns.Auto()):
            predictor.calibrate(graph, p, y, half).predict(~half, alpha=0.1)
print(json.dumps([[e.data["dispatcher"].py_func.__name__ for _, e in compiled.buffer], search._KERNELS._kept]))
"""


@pytest.mark.slow  # compiles everything: half a minute of processor time
def test_a_warm_up_leaves_nothing_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "napsets", "warm-up", "--json"]
    warmed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(warmed.stdout)["seconds"] > 1
    assert "compiling kernels, once on this machine" in warmed.stderr
    done = subprocess.run([sys.executable, "-c", PREDICT], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], True]
