"""What one measuring process does: load a graph, warm up, time one thing, tell the figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.speed import contenders, floor, graphs, processes
from benchmarks.speed.methods import run_method
from benchmarks.speed.published import answer
from napsets.checks.arguments import IntArray
from napsets.graph import Graph

#: The name of the task, its graph and settings, as JSON carries them.
Spec = dict[str, Any]
T = TypeVar("T")
ALPHA = 0.1


def peak_bytes() -> int:
    """Return the most memory that this process has held."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _timed(work: Callable[[], T]) -> tuple[T, Spec]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def _sources(graph: Graph, spec: Spec) -> IntArray:
    """Return all nodes, or a sample of them drawn from the seed."""
    count = spec.get("sources")
    if count is None or count >= graph.num_nodes:
        return np.arange(graph.num_nodes)
    return np.random.default_rng(1).choice(graph.num_nodes, count, replace=False)


def _scores(graph: Graph) -> np.ndarray:
    return np.random.default_rng(0).random(graph.num_nodes)


def warm_up(hops: int, threads: int | None) -> float:
    """Compile every kernel, or load it from the cache, on a graph that takes no time; return the seconds."""
    start = time.perf_counter()
    crowd, ring = np.random.default_rng(0).integers(600, size=(2, 6000)), np.arange(2000)
    small = Graph.from_edge_index(crowd, 600)
    long = Graph.from_edge_index(np.stack([ring, np.roll(ring, 1)]), ring.size)
    weights = contenders.decay_weights(max(hops, 3))
    for strategy in ("dense", "deep"):
        # Rows are pulled and pushed, of a graph renumbered and of one that is not worth renumbering for one node.
        for graph, nodes in ((small, np.arange(600)), (small, ring[:1]), (long, ring[:1])):
            contenders.by_napsets(graph, _scores(graph), nodes, weights, ALPHA, threads=threads, strategy=strategy)
    return time.perf_counter() - start


def _floor(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    library = folder / "floor.so"
    sources = _sources(graph, spec)
    graph = graph.along(spec.get("direction", "out"))
    floor.traverse(library, graph, sources[:64], spec["hops"], spec["threads"])
    reached, timing = _timed(lambda: floor.traverse(library, graph, sources, spec["hops"], spec["threads"]))
    return {**timing, "sources": sources.size, "reached": reached}


def _napsets(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    scores, sources, weights = _scores(graph), _sources(graph, spec), contenders.decay_weights(spec["hops"])
    threads, strategy = spec["threads"], spec.get("strategy")
    first = warm_up(spec["hops"], threads)
    loaded = peak_bytes()
    direction = spec.get("direction", "out")

    def work() -> tuple[Any, int]:
        searched = graph.along(direction)  # its rows are made on the clock
        return contenders.by_napsets(searched, scores, sources, weights, ALPHA, threads=threads, strategy=strategy)

    (_, reached), timing = _timed(work)
    timing |= {"sources": sources.size, "reached": reached, "first_seconds": first}
    timing |= {"peak_bytes": peak_bytes(), "loaded_bytes": loaded}
    if spec.get("touched"):
        timing["touched"] = _touched(graph, sources, spec["hops"])
    return timing


def _touched(graph: Graph, sources: IntArray, hops: int) -> int:
    """Count the edges that a search of one or two hops, one source at a time, reads."""
    rows = graph.degrees.astype(np.int64)
    if hops == 2:
        rows = rows + graph.to_scipy().astype(np.int64) @ rows
    return int(rows[sources].sum())


def _dijkstra(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    library, sources = folder / "dijkstra.so", _sources(graph, spec)
    floor.settle(library, graph, sources[:64], spec["radius"], spec["threads"])
    reached, timing = _timed(lambda: floor.settle(library, graph, sources, spec["radius"], spec["threads"]))
    return {**timing, "sources": sources.size, "reached": reached}


def _path_lengths(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    scores, sources, threads = _scores(graph), _sources(graph, spec), spec["threads"]
    contenders.by_path_lengths(graph, scores, sources[:64], spec["radius"], ALPHA, threads=threads)
    (_, reached), timing = _timed(
        lambda: contenders.by_path_lengths(graph, scores, sources, spec["radius"], ALPHA, threads=threads)
    )
    return {**timing, "sources": sources.size, "reached": reached, "peak_bytes": peak_bytes()}


def _networkx(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    scores, sources, weights = _scores(graph), _sources(graph, spec), contenders.decay_weights(spec["hops"])
    other = contenders.to_networkx(graph)
    (_, reached), timing = _timed(lambda: contenders.by_networkx(other, scores, sources, weights, ALPHA))
    return {**timing, "sources": sources.size, "reached": reached}


def _sparse_products(spec: Spec, folder: Path) -> Spec:
    graph = graphs.load(spec["graph"], folder)
    scores, sources, weights = _scores(graph), _sources(graph, spec), contenders.decay_weights(spec["hops"])
    contenders.by_sparse_products(graph, scores, sources[:8], weights, ALPHA)
    (_, reached), timing = _timed(lambda: contenders.by_sparse_products(graph, scores, sources, weights, ALPHA))
    return {**timing, "sources": sources.size, "reached": reached}


def _build(spec: Spec, folder: Path) -> Spec:
    about, timing = _timed(lambda: graphs.build(spec["graph"], folder))
    return {**timing, **about}


TASKS: dict[str, Callable[[Spec, Path], Spec]] = {
    "build": _build,
    "floor": _floor,
    "napsets": _napsets,
    "networkx": _networkx,
    "sparse products": _sparse_products,
    "first use": processes.first_use,
    "write files": processes.write_files,
    "predict files": processes.predict_files,
    "method": run_method,
    "dijkstra": _dijkstra,
    "path lengths": _path_lengths,
    "answer": answer,
}
