"""How the cost of napsets.spark grows from 10^4 to 10^7 edges: with its defaults, and under both of its plans.

Each size is a random graph of mean degree 10 whose degrees fall off as a power law (expected degree of the i-th node
proportional to i^-1/2, so that E[d²] keeps growing), a tenth of its nodes labelled. A fixed number of targets is walked
from, 1 to 3 hops deep; the sets of one machine are compared bit for bit. Shuffled bytes and task time are Spark's own.

    python benchmarks/spark_growth.py --sizes 10000 100000 1000000 10000000

Sizes may be measured one at a time: each is added to those measured before. ``--plan`` measures one plan alone;
``--plan defaults`` what people get who name none: `predict_sets` on DataFrames and the command, each beside the same on
one machine, without the start of Spark. The goal is at most 10 s and three times what one machine takes.

The graph on every worker is measured from files to files, as processes of their own: the command on one machine against
the command on Spark, its start included. Beside the wall clock stand the seconds of processors that all processes of a
run have used, which tell the same on a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import napsets as ns
from napsets.localisers.neighbourhoods import hop_weights
from napsets.spark.join_tasks import SparkSettings
from napsets.spark.joins import Checkpoints, JoinsJob
from napsets.spark.session import start_session
from napsets.spark.tables import as_tables
from napsets.spark.walk import Walker, stored_edges
from spark_growth_page import render

CLASSES = 8
LABELLED = 0.1
#: Depths and numbers of targets; then two hops from every unlabelled node, while that takes no more than minutes.
WALKS = [(1, 2000), (2, 2000), (3, 100)]
EVERY_NODE_UP_TO = 10**7
RESULTS = Path(__file__).parent / "results"


def power_law_graph(edges: int, seed: int = 0) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng(seed)
    nodes = edges // 5
    cumulative = np.cumsum(np.arange(1, nodes + 1) ** -0.5)
    ends = np.searchsorted(cumulative, rng.random((2, edges)) * cumulative[-1])
    return rng.permutation(nodes)[ends], nodes


def write_tables(folder: Path, edge_index: np.ndarray, nodes: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(CLASSES, 0.5), nodes)
    y = rng.integers(0, CLASSES, nodes)
    calibration = np.flatnonzero(rng.random(nodes) < LABELLED)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(p.reshape(-1)), CLASSES).cast(pa.list_(pa.float64()))
    folder.mkdir()
    pq.write_table(pa.table({"source": edge_index[0], "target": edge_index[1]}), folder / "edges.parquet")
    pq.write_table(pa.table({"node": np.arange(nodes), "probabilities": lists}), folder / "probabilities.parquet")
    pq.write_table(pa.table({"node": calibration, "label": y[calibration]}), folder / "labels.parquet")
    chosen = np.setdiff1d(np.arange(nodes), calibration)
    return {"p": p, "y": y, "calibration": calibration, "targets": rng.permutation(chosen)}


def totals(spark: Any) -> tuple[int, float]:
    """Bytes written to shuffles and seconds of tasks, so far."""
    gateway = spark.sparkContext._gateway
    jvm = gateway.jvm
    empty = jvm.java.util.ArrayList()
    stages = (
        spark.sparkContext._jsc.sc()
        .statusStore()
        .stageList(empty, False, False, gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList())
    )
    listed = [stages.apply(i) for i in range(stages.size())]
    return sum(s.shuffleWriteBytes() for s in listed), sum(s.executorRunTime() for s in listed) / 1000


def measured(spark: Any, work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    # The store hears of a finished stage a moment after the action returns.
    time.sleep(1.0)
    bytes_before, seconds_before = totals(spark)
    began = time.perf_counter()
    result = work()
    wall = time.perf_counter() - began
    time.sleep(1.0)
    bytes_after, seconds_after = totals(spark)
    return result, {
        "seconds": wall,
        "task_seconds": seconds_after - seconds_before,
        "shuffle": bytes_after - bytes_before,
    }


def moments(graph: ns.Graph) -> dict[str, float]:
    d = graph.degrees.astype(np.float64)
    return {"stored": graph.num_edges, "d": d.mean(), "d2": (d**2).mean(), "largest": d.max()}


def expected_edges(m: dict[str, float], hops: int) -> float:
    """Edges that the walk from a random node follows, by the moments of the degrees alone: docs/scale.md."""
    branching = m["d2"] / m["d"] - 1.0
    per_hop = [m["d"], m["d2"], m["d2"] * branching]
    return float(sum(min(edges, m["stored"]) for edges in per_hop[:hops]))


def run_size(spark: Any, edges: int, folder: Path) -> list[dict[str, Any]]:
    edge_index, nodes = power_law_graph(edges)
    arrays = write_tables(folder, edge_index, nodes)
    graph = ns.Graph.from_edge_index(edge_index, num_nodes=nodes)
    read = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("edges", "probabilities", "labels")}
    targets = spark.createDataFrame(pa.table({"node": arrays["targets"][:1]}))
    tables = as_tables(**read, nodes=targets)
    settings = SparkSettings(hop_weights("uniform", 3), ns.APS(), 0.1, 0, True, tables.class_names)
    checkpoints = Checkpoints(spark, f"{folder}/napsets-growth")
    walker, cost = measured(spark, lambda: JoinsJob(tables, settings, True, None, kept=checkpoints).walker())
    rows = [{"edges": edges, "phase": "prepare", **moments(graph), **cost}]
    print(json.dumps(rows[-1]), file=sys.stderr)
    every = arrays["targets"].size
    for hops, wanted in WALKS + [(2, every)] * (dict(WALKS)[2] < every and edges <= EVERY_NODE_UP_TO):
        count = min(wanted, every)
        rows.append({"edges": edges, "phase": f"{hops} hops", **moments(graph), "targets": count})
        rows[-1] |= run_depth(spark, graph, arrays, walker, checkpoints, settings, tables, hops, count)
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def run_depth(
    spark: Any,
    graph: ns.Graph,
    arrays: dict[str, Any],
    walker: Walker,
    checkpoints: Checkpoints,
    settings: SparkSettings,
    tables: Any,
    hops: int,
    count: int,
) -> dict[str, Any]:
    nodes = arrays["targets"][:count]
    frame = spark.createDataFrame(pa.table({"node": nodes}))
    deep = Walker(walker.adjacency, hops, True)
    job = JoinsJob(tables, replace(settings, weights=hop_weights("uniform", hops)), True, None)
    chosen, cost = measured(
        spark, lambda: checkpoints.write(job.thresholds(deep, frame), f"hops-{hops}-{count}-{time.time_ns()}")
    )
    followed = deep.followed(frame).agg({"edges": "sum"}).first()[0]
    pairs = deep.followed(frame, stored_edges(deep)[1]).agg({"edges": "sum"}).first()[0]
    rows = {row["node"]: row for row in chosen.toArrow().to_pylist()}
    naps = ns.NAPS(hops=hops, seed=0).calibrate(graph, arrays["p"], arrays["y"], arrays["calibration"])
    began = time.perf_counter()
    sets = naps.predict(nodes, alpha=0.1)
    one_machine = time.perf_counter() - began
    got = [rows[node]["threshold"] if node in rows else np.inf for node in nodes.tolist()]
    exact = np.array(got).tobytes() == sets.thresholds.tobytes()
    predicted = expected_edges(moments(graph), hops) * count
    return cost | {
        "followed": followed,
        "pairs": pairs,
        "predicted": predicted,
        "exact": exact,
        "one_machine": one_machine,
    }


# -- the graph on every worker -------------------------------------------------------------------------------------

#: What computes: one machine, Spark on its cores, and Spark on one of them, to which all its processes are tied.
ENGINES = ("local", "local[2]", "local[1]")
#: Nodes asked for, at most, where a walk from one reaches a good part of the graph.
ASKED = {2: 10**9, 3: 10**9, 4: 100_000}


def run_graph_plan(edges: int, folder: Path, depths: list[int]) -> list[dict[str, Any]]:
    edge_index, nodes = power_law_graph(edges)
    targets = write_tables(folder, edge_index, nodes)["targets"]
    rows = []
    for hops, engine in [(hops, engine) for hops in depths for engine in ENGINES]:
        output = folder / f"sets-{hops}-{engine}.parquet"
        asked = targets[: ASKED.get(hops, 10**9)]
        pq.write_table(pa.table({"node": asked}), folder / "nodes.parquet")
        command = [sys.executable, "-m", "napsets", "predict", "--hops", str(hops), "-o", str(output), "--json"]
        command += [
            part
            for name in ("edges", "probabilities", "labels", "nodes")
            for part in (f"--{name}", f"{folder / name}.parquet")
        ]
        if engine != "local":
            command += ["--engine", "spark", "--master", engine, "--plan", "graph-on-every-worker"]
        alone = engine == "local[1]"
        threads = {"NAPSETS_THREADS": "1"} if alone else {}
        cost = watched(command, os.environ | {"PYSPARK_PYTHON": sys.executable} | threads, tied=alone)
        del cost["printed"]
        rows.append({"edges": edges, "phase": "graph", "hops": hops, "engine": engine} | cost)
        rows[-1]["targets"] = int(asked.size)
        if engine != "local":
            rows[-1]["exact"] = same_sets(folder / f"sets-{hops}-local.parquet", output)
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def same_sets(one: Path, other: Path) -> bool:
    columns = ["node", "size", "threshold", "support", "effective_size", "probability"]
    left, right = (pq.read_table(path, columns=columns).sort_by("node") for path in (one, other))
    return all(
        left[name].combine_chunks().to_numpy().tobytes() == right[name].combine_chunks().to_numpy().tobytes()
        for name in columns
    )


def watched(command: list[str], environment: dict[str, str], *, tied: bool = False) -> dict[str, Any]:
    """Run a command, tied to one core if so asked; return its wall time, and processor time and memory of all of it."""
    import psutil

    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    load = os.getloadavg()[0]
    if tied:
        command = ["taskset", "-c", "0", *command]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    root, own, shared, spent = psutil.Process(process.pid), 0, 0, {}
    while process.poll() is None:
        for child in [root, *children(root)]:
            with contextlib.suppress(psutil.Error):
                times = child.cpu_times()
                spent[child.pid] = times.user + times.system
                if "pyspark.daemon" in " ".join(child.cmdline()):
                    memory = child.memory_full_info()
                    own, shared = max(own, memory.uss), max(shared, memory.rss)
        time.sleep(0.5)
    wall = time.perf_counter() - began
    printed = process.stdout.read() if process.stdout else ""
    assert process.returncode == 0, f"{' '.join(command)}: {printed[-3000:]}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    waited = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = {"seconds": wall, "cpu": max(waited, sum(spent.values()))}
    return seconds | {"load": load, "own": own, "rss": shared, "printed": printed}


def children(root: Any) -> list[Any]:
    import psutil

    try:
        return list(root.children(recursive=True))
    except psutil.Error:
        return []


# -- defaults ------------------------------------------------------------------------------------------------------

#: What runs in a process of its own, with the folder of the tables as its argument; it prints the seconds it took.
START = """
import sys, time
import napsets as ns
began = time.perf_counter()
spark = ns.spark.start_session("local[2]")
spark.range(1).count()
"""
FUNCTION = (
    START
    + """
began, folder = time.perf_counter(), sys.argv[1]
tables = (spark.read.parquet(f"{folder}/{name}.parquet") for name in ("edges", "probabilities", "labels", "nodes"))
ns.spark.predict_sets(spark, *tables, hops=2, pool=20).write.parquet(f"{folder}/sets-function")
print(time.perf_counter() - began)
"""
)
STARTED = START + "print(time.perf_counter() - began)\n"
ONE_MACHINE = """
import sys, time
import napsets as ns
from napsets.files import read_inputs
began, folder = time.perf_counter(), sys.argv[1]
names = ("edges", "probabilities", "labels", "nodes")
inputs = read_inputs(*(f"{folder}/{name}.parquet" for name in names))
sets = inputs.calibrate(ns.make_method("naps", hops=2, pool=20)).predict(inputs.nodes, 0.1)
print(time.perf_counter() - began)
"""


def run_defaults(edges: int, folder: Path) -> list[dict[str, Any]]:
    edge_index, nodes = power_law_graph(edges)
    targets = write_tables(folder, edge_index, nodes)["targets"]
    pq.write_table(pa.table({"node": targets}), folder / "nodes.parquet")
    command = [sys.executable, "-m", "napsets", "predict", "--method", "naps", "--pool", "20", "--json"]
    for name in ("edges", "probabilities", "labels", "nodes"):
        command += [f"--{name}", f"{folder / name}.parquet"]
    here, there = folder / "sets-here.parquet", folder / "sets-there.parquet"
    runs = {
        "start of Spark": [sys.executable, "-c", STARTED],
        "function, one machine": [sys.executable, "-c", ONE_MACHINE, str(folder)],
        "function, Spark": [sys.executable, "-c", FUNCTION, str(folder)],
        "command, one machine": [*command, "-o", str(here)],
        "command, Spark": [*command, "-o", str(there), "--engine", "spark"],
    }
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    rows = []
    for name, run in runs.items():
        cost = watched(run, environment)
        seconds = cost["seconds"] if name.startswith("command") else float(cost["printed"])
        rows.append({"edges": edges, "phase": "defaults", "run": name, "cpu": cost["cpu"], "load": cost["load"]})
        start = rows[0]["seconds"] if name == "command, Spark" else 0.0
        rows[-1] |= {"seconds": seconds - start, "targets": int(targets.size)}
        print(json.dumps(rows[-1]), file=sys.stderr)
    for row, output in ((rows[2], folder / "sets-function"), (rows[4], there)):
        row["exact"] = same_sets(here, output)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--output", type=Path, default=RESULTS / "spark_growth.md")
    parser.add_argument("--plan", choices=["all", "defaults", "joins", "graph-on-every-worker"], default="all")
    parser.add_argument("--hops", type=int, nargs="+", default=[2, 3, 4], help="of the graph on every worker")
    options = parser.parse_args()
    runs = {"defaults": run_defaults, "graph-on-every-worker": partial(run_graph_plan, depths=options.hops)}
    for name, run in runs.items():
        if options.plan not in ("all", name):
            continue
        with tempfile.TemporaryDirectory(prefix="spark-growth-") as work:
            for edges in options.sizes:
                keep(run(edges, Path(work, str(edges))), options.output)
                shutil.rmtree(Path(work, str(edges)))
    if options.plan in runs:
        return
    config = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "8"}
    spark = start_session("local[2]", config)
    spark.sparkContext.setLogLevel("ERROR")
    work = Path(tempfile.mkdtemp(prefix="spark-growth-"))
    try:
        run_size(spark, 2000, work / "warm-up")
        for edges in options.sizes:
            keep(run_size(spark, edges, work / str(edges)), options.output)
            shutil.rmtree(work / str(edges))
    finally:
        spark.stop()
        shutil.rmtree(work)
    print(options.output.read_text())


def keep(rows: list[dict[str, Any]], output: Path) -> None:
    """Put the rows of one size among those of others measured before, and write the page again."""
    store = output.with_suffix(".json")
    store.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(store.read_text()) if store.exists() else []

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        phase = row["phase"] if row["phase"] in ("graph", "defaults") else "joins"
        return row["edges"], phase, row.get("hops", 0)

    measured_now = {key(row) for row in rows}
    others = [row for row in known if key(row) not in measured_now]
    merged = sorted(others + rows, key=lambda row: row["edges"])
    store.write_text(json.dumps(merged, indent=1) + "\n")
    output.write_text(render(merged, __doc__.split("\n\n")[1].replace("\n", " ")))


if __name__ == "__main__":
    main()
