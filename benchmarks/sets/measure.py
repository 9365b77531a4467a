"""Measuring: some test nodes are labelled at random, every method makes sets of all others, and is judged on them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import napsets as ns
from benchmarks.sets.predictions import Task, prepare
from napsets.files.places import replacing
from napsets.methods import Given

__all__ = ["ALPHA", "KEY", "METHODS", "ROWS", "measure", "read_rows", "repetition_rows"]

ROWS = Path(__file__).parents[1] / "results" / "sets.parquet"
ALPHA = 0.1
METHODS = ("split", "naps", "naps-exact", "daps", "informed", "auto", "auto-small")
#: One row a combination of these.
KEY = ("dataset", "model", "share", "repetition", "method")
#: What coverage is to be even over.
GROUPS = ("neighbourhood", "class", "degree", "confidence")
_SECONDS_BETWEEN_WRITES = 20.0


def draw(task: Task, share: float, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which nodes are labelled and which are not: the same for every model and method."""
    words = f"{task.graph_name}/{share:g}/{repetition}".encode()
    rng = np.random.default_rng(int.from_bytes(blake2b(words, digest_size=8).digest(), "big"))
    order = rng.permutation(task.labels.size)
    count = int(share * task.labels.size)
    return np.sort(order[:count]), np.sort(order[count:])


def repetition_rows(
    task: Task, share: float, repetition: int, methods: Sequence[str] = METHODS
) -> list[dict[str, Any]]:
    """Measure all methods on one draw of labelled nodes."""
    labelled, rest = draw(task, share, repetition)
    given = Given.check(task.graph, task.probabilities, task.labels, labelled)
    groups = {
        "neighbourhood": ns.groups_by_neighbourhood(task.graph, rest, radius=2, min_size=30, seed=repetition),
        "class": ns.groups_by_class(task.labels),
        "degree": ns.groups_by_degree(task.graph, 5, rest),
        "confidence": ns.groups_by_confidence(task.probabilities, 5, rest),
    }
    rows = []
    for name in methods:
        start = time.perf_counter()
        calibrated = ns.make_method(name, seed=repetition, alpha=ALPHA).fit(given)
        sets = calibrated.predict(rest, ALPHA, threads=1)
        seconds = time.perf_counter() - start
        kept_apart = calibrated.scored.apart.size
        row = {
            "dataset": task.graph_name,
            "model": task.model,
            "share": share,
            "repetition": repetition,
            "method": name,
            "alpha": ALPHA,
            "labels": labelled.size,
            "level_labels": kept_apart or labelled.size,
            "exact": calibrated.is_exact,
            "nodes": rest.size,
            "classes": sets.num_classes,
            "accuracy": task.accuracy,
            "coverage": ns.coverage(sets, task.labels),
            "mean_size": ns.mean_size(sets),
            "empty_rate": ns.empty_rate(sets),
            "full_rate": ns.full_rate(sets),
            "choice": calibrated.choice.name if calibrated.choice is not None else "",
            "seconds": round(seconds, 4),
        }
        for kind, group in groups.items():
            gap = ns.coverage_gap(sets, task.labels, group)
            row |= {f"gap_{kind}": gap.gap, f"excess_{kind}": gap.excess}
            row |= {f"groups_{kind}": gap.groups.size, f"in_groups_{kind}": gap.share}
        rows.append(row)
    return rows


def read_rows(path: Path = ROWS) -> list[dict[str, Any]]:
    """Return the rows measured so far."""
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.exists() else []
    return rows


def write_rows(rows: list[dict[str, Any]], path: Path = ROWS) -> None:
    """Write all rows, whole or not at all, in the order of their keys."""
    ordered = sorted(rows, key=lambda row: tuple(row[name] for name in KEY))
    with replacing(path) as draft:
        pq.write_table(pa.Table.from_pylist(ordered), draft, compression="zstd")


def measure(
    graphs: Sequence[str], models: Sequence[str], shares: Sequence[float], repetitions: int, path: Path | None = ROWS
) -> list[dict[str, Any]]:
    """Measure what is not measured yet; what is done is kept when it is stopped. Without a path nothing is kept."""
    rows = [] if path is None else read_rows(path)
    done = {tuple(row[name] for name in KEY) for row in rows}
    written, start = time.monotonic(), time.monotonic()
    try:
        # Repetition by repetition, so that whenever it is stopped all graphs have about as many.
        for task, share, repetition in _left(graphs, models, shares, repetitions, done):
            rows += repetition_rows(task, share, repetition)
            if time.monotonic() - written > _SECONDS_BETWEEN_WRITES:
                if path is not None:
                    write_rows(rows, path)
                written = time.monotonic()
                what = f"{task.graph_name} {task.model} {share:g} repetition {repetition}"
                print(f"{written - start:6.0f} s  {len(rows):,} rows, last {what}", file=sys.stderr, flush=True)
    finally:
        if path is not None:
            write_rows(rows, path)
    return rows


def _left(
    graphs: Sequence[str], models: Sequence[str], shares: Sequence[float], repetitions: int, done: set[Any]
) -> Iterator[tuple[Task, float, int]]:
    tasks: dict[tuple[str, str], Task] = {}
    for repetition in range(repetitions):
        for graph in graphs:
            for model in models:
                for share in shares:
                    if (graph, model, share, repetition, METHODS[-1]) in done:
                        continue
                    if (graph, model) not in tasks:
                        tasks[graph, model] = prepare(graph, model)
                    yield tasks[graph, model], share, repetition
