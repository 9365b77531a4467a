"""What a living graph costs: a label, an edge, a set, a replay, in time and memory; writes results/living.json.

A random graph with a million nodes and ten million edges (``--nodes`` for fewer), ten classes and a tenth of the nodes
labelled. Times are processor times, so that other work on the machine counts less. A run that measures all methods at
the full size writes the results and the table in ``docs/live.md``; ``--render`` writes the table alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import napsets as ns
from napsets.methods.data import CalibrationData
from napsets.scores.informed import evidence_of

RESULTS = Path(__file__).parent / "results" / "living.json"
PAGE = Path(__file__).parents[1] / "docs" / "live.md"
START, END = "<!-- costs: start -->", "<!-- costs: end -->"
CLASSES, NODES = 10, 1_000_000
METHODS = ["split", "naps", "naps-exact", "informed", "auto"]


def world(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edges, probabilities and labels of a random graph with ten edges per node."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, nodes, (2, 10 * nodes))
    p = rng.gamma(0.5, size=(nodes, CLASSES)).astype(np.float32) + 1e-6
    p /= p.sum(axis=1, keepdims=True)
    labels = (p.cumsum(axis=1) > rng.random((nodes, 1))).argmax(axis=1)
    return edges, p, labels


def peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def spread(seconds: list[float]) -> dict[str, float]:
    """Return median, 99th percentile and mean in milliseconds."""
    ms = 1000.0 * np.array(seconds)
    return {"p50_ms": float(np.median(ms)), "p99_ms": float(np.quantile(ms, 0.99)), "mean_ms": float(ms.mean())}


def timed(work: Any, rounds: int) -> dict[str, float]:
    """Return how long each of several rounds takes."""
    seconds = []
    for i in range(rounds):
        start = time.process_time()
        work(i)
        seconds.append(time.process_time() - start)
    return spread(seconds)


def batch(method: str, nodes: int) -> dict[str, Any]:
    """Measure the memory of a batch calibration, and how long it takes to predict 1,000 nodes, and to score them.

    What scores are made of is computed for all nodes when a batch is calibrated; a living graph computes it for those
    that are asked for. So the share of 1,000 nodes in that time is measured too, without the fit.
    """
    edges, p, labels = world(nodes)
    graph = ns.Graph.from_edge_index(edges, nodes)
    known = np.random.default_rng(1).choice(nodes, nodes // 10, replace=False)
    start = time.process_time()
    calibrated = ns.make_method(method).calibrate(graph, p, labels, known)
    seconds = time.process_time() - start
    queried = np.setdiff1d(np.arange(nodes), known)[:: max(1, nodes // 2000)][:1000]
    calibrated.predict(queried, 0.1, threads=1)  # compiles what it needs
    times = timed(lambda i: calibrated.predict(queried, 0.1, threads=1), 5)
    figures = {"calibrate_s": seconds, "predict_1000": times, "peak_mib": peak()}
    chosen, scored, informed = calibrated.method, calibrated.scored, evidence_of(calibrated.score)
    data = CalibrationData.check(graph, p, labels, known)
    parts = scored.reference.nodes, scored.level_nodes
    learned = None if informed is None else informed.learned
    start = time.process_time()
    data.scored_in_parts(chosen.score, chosen.seed, *parts, learned=learned)
    return figures | {"scores_1000_ms": 1000.0 * (time.process_time() - start) * 1000.0 / nodes}


def living(method: str, nodes: int) -> dict[str, Any]:
    """Measure the same graph alive."""
    edges, p, labels = world(nodes)
    rng = np.random.default_rng(1)
    known = rng.choice(nodes, nodes // 10, replace=False)
    warm_up(method)
    live = ns.Live(method)
    start = time.process_time()
    live.add_nodes(np.arange(nodes), p)
    live.add_edges(*edges)
    built = time.process_time() - start
    start = time.process_time()
    live.add_labels(known, labels[known])
    replayed = time.process_time() - start
    rest = np.setdiff1d(np.arange(nodes), known)
    queried = rng.permutation(rest)
    rounds = min(2000, queried.size // 2)
    figures: dict[str, Any] = {"build_s": built, "replay_s": replayed, "replayed": known.size}
    figures["predict_1"] = timed(lambda i: live.predict([int(queried[i])]), rounds)
    figures["label"] = timed(lambda i: live.add_labels([int(queried[i])], labels[queried[i : i + 1]]), rounds)
    figures["edge"] = timed(lambda i: live.add_edges([int(queried[i])], [int(queried[-1 - i])]), rounds)
    many = rest[:: max(1, nodes // 2000)][:1000]
    live.predict(many)
    figures["predict_1000"] = timed(lambda i: live.predict(many), 5)
    figures["peak_mib"] = peak()
    return figures


def warm_up(method: str) -> None:
    """Compile what is needed, on a small graph."""
    edges, p, labels = world(2000)
    live = ns.Live.start(edges, p, labels, np.arange(500), method=method)
    live.predict()
    live.predict([600])
    live.add_edges([0], [1])
    live.add_labels([700], [1])
    live.predict([600])


def measured(kind: str, method: str, nodes: int) -> dict[str, Any]:
    """Return the figures of one kind and method, measured in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.living", "--nodes", str(nodes), "--one", kind, method]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(method, kind, json.dumps(figures), flush=True)
    return figures


def table(results: dict[str, Any]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [
        "| method | 10⁵ labels replayed | one label, as its own call | one edge | one set: median, 99th percentile "
        "| 1,000 sets, and as a multiple of the batch | memory, and as a multiple of the batch |",
        "|---|---|---|---|---|---|---|",
    ]
    for method, kinds in results["methods"].items():
        batch, live = kinds["batch"], kinds["living"]
        one, many = live["predict_1"], live["predict_1000"]["p50_ms"]
        in_batch = batch["predict_1000"]["p50_ms"] + batch.get("scores_1000_ms", 0.0)
        rows.append(
            f"| `{method}` | {live['replay_s']:.1f} s | {live['label']['mean_ms']:.2f} ms | "
            f"{live['edge']['mean_ms']:.2f} ms | {one['p50_ms']:.2f} ms, {one['p99_ms']:.2f} ms | "
            f"{many:.1f} ms, {many / in_batch:.1f} | "
            f"{live['peak_mib']:,.0f} MiB, {live['peak_mib'] / batch['peak_mib']:.1f} |"
        )
    return "\n".join(rows)


def rendered(page: str, results: dict[str, Any]) -> str:
    """Return a page with the table of the results between its marks."""
    return f"{page.split(START)[0]}{START}\n\n{table(results)}\n\n{END}{page.split(END)[1]}"


def main() -> None:
    """Measure each method, and write the results of a whole run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.living", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "METHOD"), help="measure one, and print it")
    parser.add_argument("--render", action="store_true", help="write the table from the results that are there")
    arguments = parser.parse_args()
    if arguments.one:
        kind, method = arguments.one
        print(json.dumps({"batch": batch, "living": living}[kind](method, arguments.nodes)))
        return
    if not arguments.render:
        kinds, methods = ("batch", "living"), arguments.methods
        figures = {method: {kind: measured(kind, method, arguments.nodes) for kind in kinds} for method in methods}
        results = {"nodes": arguments.nodes, "methods": figures}
        print(table(results))
        if (arguments.nodes, arguments.methods) != (NODES, METHODS):
            return
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")


if __name__ == "__main__":
    main()
