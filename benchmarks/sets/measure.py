"""Measuring: some test nodes are labelled at random, every method makes sets of all others, and is judged on them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sets.predictions import prepare
from napsets.files.places import replacing
from napsets.paper.leaderboard.ground import Ground
from napsets.paper.leaderboard.measure import KINDS, draw, judge_method

__all__ = ["ALPHA", "KEY", "METHODS", "ROWS", "measure", "read_rows", "repetition_rows"]

ROWS = Path(__file__).parents[1] / "results" / "sets.parquet"
ALPHA = 0.1
METHODS = ("split", "naps", "naps-exact", "daps", "informed", "auto", "auto-small")
#: One row a combination of these.
KEY = ("dataset", "model", "share", "repetition", "method")
#: What coverage is to be even over.
GROUPS = KINDS
_SECONDS_BETWEEN_WRITES = 20.0


def repetition_rows(
    name: str, model: str, task: Ground, share: float, repetition: int, methods: Sequence[str] = METHODS
) -> list[dict[str, Any]]:
    """Measure all methods on one draw of labelled nodes, which is the same for every model."""
    drawn = draw(task, share, (name, f"{share:g}", repetition), repetition, ALPHA)
    rows = []
    for method in methods:
        judged = judge_method(method, drawn)
        worth, choice = judged.worth, judged.calibrated.choice
        row = {
            "dataset": name,
            "model": model,
            "share": share,
            "repetition": repetition,
            "method": method,
            "alpha": ALPHA,
            "labels": drawn.given.calibration.size,
            "level_labels": judged.level_labels,
            "exact": judged.calibrated.is_exact,
            "nodes": worth.nodes,
            "classes": judged.classes,
            "accuracy": task.accuracy,
            "coverage": worth.coverage,
            "mean_size": worth.mean_size,
            "empty_rate": worth.empty_rate,
            "full_rate": worth.full_rate,
            "choice": choice.name if choice is not None else "",
            "seconds": round(judged.seconds, 4),
        }
        for kind in GROUPS:
            gap = judged.gaps[kind]
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
        for name, model, task, share, repetition in _left(graphs, models, shares, repetitions, done):
            rows += repetition_rows(name, model, task, share, repetition)
            if time.monotonic() - written > _SECONDS_BETWEEN_WRITES:
                if path is not None:
                    write_rows(rows, path)
                written = time.monotonic()
                what = f"{name} {model} {share:g} repetition {repetition}"
                print(f"{written - start:6.0f} s  {len(rows):,} rows, last {what}", file=sys.stderr, flush=True)
    finally:
        if path is not None:
            write_rows(rows, path)
    return rows


def _left(
    graphs: Sequence[str], models: Sequence[str], shares: Sequence[float], repetitions: int, done: set[Any]
) -> Iterator[tuple[str, str, Ground, float, int]]:
    tasks: dict[tuple[str, str], Ground] = {}
    for repetition in range(repetitions):
        for graph in graphs:
            for model in models:
                for share in shares:
                    if (graph, model, share, repetition, METHODS[-1]) in done:
                        continue
                    if (graph, model) not in tasks:
                        tasks[graph, model] = prepare(graph, model)
                    yield graph, model, tasks[graph, model], share, repetition
