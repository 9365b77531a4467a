"""How the cost of napsets.spark grows with the graph: one machine, the plan graph and the plan joins.

Each size is a random graph of mean degree 10 whose degrees fall off as a power law (expected degree of the i-th node
proportional to i^-1/2), a tenth of its nodes labelled. `napsets predict` runs from files to files, two hops for every
unlabelled node, each time in a process of its own; the start of Spark is measured separately. The processor seconds of
all processes of a run are the same on a machine that is busy with other things. The sets are compared bit for bit.

    python benchmarks/spark_growth.py --sizes 10000 100000 1000000

The plan joins is measured up to ``--joins-up-to`` edges. The goal of the plan graph is at most 10 s, with the start of
Spark, and three times what one machine takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES = 8
LABELLED = 0.1
RESULTS = Path(__file__).parent / "results"
NAMES = ("edges", "probabilities", "labels")

START = """
import napsets as ns
ns.spark.start_session("local[2]").range(1).count()
"""


def power_law_graph(edges: int, seed: int = 0) -> tuple[np.ndarray, int]:
    """Return the ends of edges whose expected degrees follow a power law, and the number of nodes."""
    rng = np.random.default_rng(seed)
    nodes = edges // 5
    cumulative = np.cumsum(np.arange(1, nodes + 1) ** -0.5)
    ends = np.searchsorted(cumulative, rng.random((2, edges)) * cumulative[-1])
    return rng.permutation(nodes)[ends], nodes


def write_tables(folder: Path, edge_index: np.ndarray, nodes: int) -> None:
    """Write edges, random probabilities and the labels of a tenth of the nodes."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(CLASSES, 0.5), nodes)
    y = rng.integers(0, CLASSES, nodes)
    calibration = np.flatnonzero(rng.random(nodes) < LABELLED)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(p.reshape(-1)), CLASSES).cast(pa.list_(pa.float64()))
    pq.write_table(pa.table({"source": edge_index[0], "target": edge_index[1]}), folder / "edges.parquet")
    pq.write_table(pa.table({"node": np.arange(nodes), "probabilities": lists}), folder / "probabilities.parquet")
    pq.write_table(pa.table({"node": calibration, "label": y[calibration]}), folder / "labels.parquet")


def watched(command: list[str]) -> dict[str, float]:
    """Run a command; return its wall time, and the processor time of all its processes."""
    began = time.perf_counter()
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    spent: dict[int, float] = {}
    while process.poll() is None:
        try:
            root = psutil.Process(process.pid)
            for child in [root, *root.children(recursive=True)]:
                times = child.cpu_times()
                spent[child.pid] = times.user + times.system
        except psutil.Error:
            pass
        time.sleep(0.1)
    errors = process.stderr.read() if process.stderr else ""
    assert process.returncode == 0, f"{' '.join(command)}: {errors[-3000:]}"
    return {"seconds": time.perf_counter() - began, "cpu": sum(spent.values())}


def same_sets(one: Path, other: Path) -> bool:
    """Whether two files of sets agree in every bit."""
    columns = ["node", "size", "threshold", "support", "effective_size", "probability"]
    left, right = (pq.read_table(path, columns=columns).sort_by("node") for path in (one, other))
    return all(
        left[name].combine_chunks().to_numpy().tobytes() == right[name].combine_chunks().to_numpy().tobytes()
        for name in columns
    )


def run_size(edges: int, folder: Path, joins: bool) -> list[dict[str, Any]]:
    """Measure one size."""
    edge_index, nodes = power_law_graph(edges)
    write_tables(folder, edge_index, nodes)
    command = [sys.executable, "-m", "napsets", "predict", "--method", "naps", "--quiet"]
    for name in NAMES:
        command += [f"--{name}", f"{folder / name}.parquet"]
    runs = {
        "start of Spark": [sys.executable, "-c", START],
        "one machine": [*command, "-o", str(folder / "one.parquet")],
    }
    for plan in ("graph", "joins")[: 1 + joins]:
        runs[plan] = [*command, "-o", str(folder / plan), "--engine", "spark", "--master", "local[2]", "--plan", plan]
    rows = []
    for name, run in runs.items():
        rows.append({"edges": edges, "run": name, "load": os.getloadavg()[0]} | watched(run))
        if name in ("graph", "joins"):
            rows[-1]["exact"] = same_sets(folder / "one.parquet", folder / name)
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def page(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table."""
    lines = ["# Spark and one machine", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    lines += ["| edges | run | seconds | processor seconds | load before | same bits |", "|--:|---|--:|--:|--:|---|"]
    for row in rows:
        same = {True: "yes", False: "no", None: ""}[row.get("exact")]
        numbers = f"{row['seconds']:.1f} | {row['cpu']:.1f} | {row['load']:.1f}"
        lines.append(f"| {row['edges']:,} | {row['run']} | {numbers} | {same} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all sizes and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--joins-up-to", type=int, default=10**6)
    parser.add_argument("--output", type=Path, default=RESULTS / "spark_growth.md")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for edges in options.sizes:
        with tempfile.TemporaryDirectory(prefix="spark-growth-") as work:
            rows += run_size(edges, Path(work), edges <= options.joins_up_to)
    options.output.write_text(page(rows))


if __name__ == "__main__":
    main()
