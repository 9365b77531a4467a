"""What is measured: each section is a list of tasks, and returns rows that tables and plots are made from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.speed.graphs import node_series
from benchmarks.speed.interrupt import seconds_to_stop
from benchmarks.speed.methods import WORK
from benchmarks.speed.processes import FIRST_USES
from benchmarks.speed.runner import Bench
from benchmarks.speed.tasks import Spec


@dataclass(frozen=True)
class Effort:
    """How much to measure."""

    quick: bool
    rounds: int

    @property
    def hops(self) -> tuple[int, ...]:
        """The depths."""
        return (2, 3) if self.quick else (1, 2, 3, 4)

    @property
    def threads(self) -> list[int]:
        """The thread counts: 1, and powers of two up to the cores."""
        cores = len(os.sched_getaffinity(0))
        return sorted({1, cores} | {2**i for i in range(cores.bit_length()) if 2**i <= cores})


#: Nodes looked at where all would take too long, by depth; their time is scaled up and said to be so.
_SAMPLED = {
    "floor": {3: 1500, 4: 700},
    "networkx": {1: 2000, 2: 500, 3: 20, 4: 12},
    "sparse products": {1: 1024, 2: 1024, 3: 256, 4: 128},
    "torchcp": {1: 200, 2: 40, 3: 5, 4: 4},
}


def depth(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure every contender at every depth, on a graph like Reddit2's test nodes."""
    bench.build("reddit2-test")
    rows: list[Spec] = []
    most = effort.threads[-1]
    for hops in effort.hops:
        specs = [
            {"task": task, "threads": threads, "sources": _SAMPLED.get(task, {}).get(hops)}
            for threads in effort.threads
            for task in ("floor", "napsets")
        ]
        others = ["networkx", "sparse products"] + ["torchcp"] * bool(bench.torchcp_python)
        specs += [{"task": task, "threads": 1, "sources": _SAMPLED[task][hops]} for task in others]
        specs = [{**spec, "graph": "reddit2-test", "hops": hops} for spec in specs]
        rows += bench.rounds(f"{hops} hops", specs, effort.rounds)
        if hops > 2 and not effort.quick:  # once in full, to see how far the scaled figure can be trusted
            full = {"task": "floor", "threads": most, "sources": None, "graph": "reddit2-test", "hops": hops}
            rows += bench.rounds(f"{hops} hops, floor in full", [full], 1)
    return rows


def nodes(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure time against the size of the graph, all nodes at 2 hops."""
    names = node_series(effort.quick)
    bench.build(*names)
    most = effort.threads[-1]
    specs = [
        {"task": task, "graph": name, "hops": 2, "threads": most, "sources": None, "touched": True}
        for name in names
        for task in ("floor", "napsets")
    ]
    return bench.rounds("growing graphs", specs, effort.rounds)


def growth(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure some nodes of large graphs, with the memory that it takes."""
    wanted = [("reddit2-full", 2, 20_000)]
    if not effort.quick:
        wanted += [("reddit2-full", 1, 20_000), ("products", 1, 100_000), ("products", 2, 100_000)]
    bench.build(*dict.fromkeys(name for name, _, _ in wanted))
    specs = [
        {"task": task, "graph": name, "hops": hops, "threads": effort.threads[-1], "sources": count, "touched": True}
        for name, hops, count in wanted
        for task in ("floor", "napsets")
    ]
    return bench.rounds("large graphs", specs, effort.rounds)


#: Graphs, depths and numbers of sources over which the choice of strategy is judged.
_CHOICES = [
    ("reddit2-test", 1, None), ("reddit2-test", 2, None), ("reddit2-test", 3, 2048), ("reddit2-test", 4, 1024),
    ("reddit2-test", 3, 40), ("amazon-test", 1, None), ("amazon-test", 2, None), ("amazon-test", 3, 2048),
    ("lattice", 2, None), ("lattice", 5, 50_000), ("thin", 1, None), ("thin", 2, 50_000), ("thin", 3, 20_000),
    ("thin", 4, 5120), ("reddit2-full", 1, 20_000), ("reddit2-full", 2, 5120), ("reddit2-full", 3, 1024),
    ("products", 1, 50_000), ("products", 2, 10_000), ("products", 3, 512),
]  # fmt: skip


_QUICK_CHOICES = [("reddit2-test", 2, None), ("reddit2-test", 3, 40), ("lattice", 2, None)]


def choice(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure each strategy forced, and the one that is chosen, over graphs that favour different ones."""
    rows: list[Spec] = []
    chosen = [entry for entry in _CHOICES if not effort.quick or entry in _QUICK_CHOICES]
    for name, hops, count in chosen:
        bench.build(name)
        specs = [
            {"task": "napsets", "graph": name, "hops": hops, "threads": 1, "sources": count, "strategy": strategy}
            for strategy in (None, "dense", "deep")
            if hops > 1 or strategy != "deep"
        ]
        rows += bench.rounds(f"choice: {name}, {hops} hops", specs, min(effort.rounds, 3))
    return rows


def interrupt(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure the seconds between Ctrl-C and the end of a deep search."""
    name = "reddit2-full" if effort.quick else "products"
    bench.build(name)
    waits = (1.0, 3.0) if effort.quick else (0.3, 1.0, 2.0, 4.0, 6.0, 8.0)
    return [seconds_to_stop(bench, name, hops=4, wait=wait) for wait in waits]


def first(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure the first use after an installation, when no kernel is compiled."""
    return bench.rounds("first use", [{"task": "first use", "work": work} for work in FIRST_USES], effort.rounds)


def ids(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure ``napsets predict`` on one graph whose ids are integers, and strings."""
    size = {"nodes": 10**5, "edges": 5 * 10**5} if effort.quick else {"nodes": 10**6, "edges": 5 * 10**6}
    bench.run({"task": "write files", **size})
    specs = [{"task": "predict files", "ids": kind, **size} for kind in ("integer", "string")]
    for spec in specs:  # kernels are compiled before the clock starts
        bench.run(spec)
    return bench.rounds("kinds of ids", specs, effort.rounds)


def methods(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure what other methods cost compared with NAPS, and evidence on a million nodes from 100,000 labels."""
    bench.build("reddit2-test")
    specs: list[Spec] = [{"task": "method", "graph": "reddit2-test", "work": work} for work in WORK]
    rows = bench.rounds("methods", specs, effort.rounds)
    if not effort.quick:
        bench.build("million")
        far = {"task": "method", "graph": "million", "work": "informed: evidence and fit", "labelled": 100_000}
        rows += bench.rounds("a million nodes", [far], effort.rounds)
    return rows


def roads(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure directed hops beside the bare traversal, and path lengths beside bare shortest paths."""
    most = effort.threads[-1]
    bench.build("reddit2-test-directed", "lattice-lengths", "amazon-test-lengths")
    rows: list[Spec] = []
    for direction in ("out", "in", "both"):
        shared = {"graph": "reddit2-test-directed", "hops": 2, "sources": None, "threads": most, "direction": direction}
        rows += bench.rounds(
            f"two hops {direction}", [{"task": task, **shared} for task in ("floor", "napsets")], effort.rounds
        )
    for name, radius, count in (("lattice-lengths", 2.0, 20_000), ("amazon-test-lengths", 0.1, 4_000)):
        for threads in effort.threads:
            shared = {"graph": name, "radius": radius, "sources": count, "threads": threads}
            tasks = [{"task": task, **shared} for task in ("dijkstra", "path lengths")]
            rows += bench.rounds(f"{name}, {threads} threads", tasks, effort.rounds)
    return rows


def published(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure every method of the table on Amazon Computers."""
    from napsets.methods import METHODS

    bench.build("amazon-test")
    specs: list[Spec] = [
        {"task": "answer", "graph": "amazon-test", "labelled": 0.3, "method": name} for name in METHODS
    ]
    return bench.rounds("all methods", specs, effort.rounds)


def learned(bench: Bench, effort: Effort) -> list[Spec]:
    """Measure the methods that learn from labels: calibration and sets of all nodes."""
    rows: list[Spec] = []
    sizes = [("amazon-test", 0.5, 10), ("grown-100000", 0.1, 3)] + [("million", 0.1, 1)] * (not effort.quick)
    for name, labelled, runs in sizes:
        bench.build(name)
        shared = {"task": "answer", "graph": name, "labelled": labelled, "sources": None, "runs": runs}
        methods = [{**shared, "method": method} for method in ("informed", "auto")]
        rows += bench.rounds(f"learned: {name}", methods, effort.rounds)
    return rows


SECTIONS: dict[str, Callable[[Bench, Effort], list[Spec]]] = {
    "depth": depth,
    "nodes": nodes,
    "growth": growth,
    "choice": choice,
    "interrupt": interrupt,
    "first": first,
    "ids": ids,
    "methods": methods,
    "roads": roads,
    "published": published,
    "learned": learned,
}
