"""How long a deep search over a large graph goes on after Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.speed.runner import Bench
from benchmarks.speed.tasks import Spec


def seconds_to_stop(bench: Bench, name: str, hops: int, wait: float) -> Spec:
    """Start a search over all nodes, send SIGINT after `wait` seconds of it, and time how long it takes to end."""
    command = [sys.executable, "-m", "benchmarks.speed.interrupt", str(bench.folder), name, str(hops)]
    process = subprocess.Popen(
        command,
        env=bench.environment,
        cwd=bench.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "searching":
        raise RuntimeError("the search ended before it began")
    time.sleep(wait)
    start = time.perf_counter()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    seconds = time.perf_counter() - start
    if output.strip() != "interrupted":
        raise RuntimeError(f"the search ended with code {process.returncode}, not by the interrupt: {errors[-2000:]}")
    return {"task": "interrupt", "graph": name, "hops": hops, "wait": wait, "seconds": seconds}


def main(folder: str, name: str, hops: str) -> None:
    """Search all nodes of a graph until interrupted."""
    from benchmarks.speed import graphs
    from benchmarks.speed.contenders import by_napsets, decay_weights
    from benchmarks.speed.tasks import ALPHA, warm_up

    graph = graphs.load(name, Path(folder))
    warm_up(int(hops), None)
    scores = np.random.default_rng(0).random(graph.num_nodes)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born ignoring it
    print("searching", flush=True)
    try:
        by_napsets(graph, scores, np.arange(graph.num_nodes), decay_weights(int(hops)), ALPHA)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:4])
