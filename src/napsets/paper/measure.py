"""Cells → rows: the experiments of Tables 1, 2 and 3 and of the ablation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from napsets.advice.theory import expected_homophily, node_homophily
from napsets.checks.arguments import FloatArray, IntArray
from napsets.datasets import NodeDataset
from napsets.errors import InvalidInputError
from napsets.evaluation import judgement
from napsets.evaluation.metrics import pccv
from napsets.paper.bench import Bench, eligible_nodes
from napsets.paper.cells import BASELINE, CoverageCell, DatasetCell, Row
from napsets.paper.protocols import Found, Protocol, protocol_of
from napsets.paper.setups import setup_of
from napsets.sets import PredictionSets, members

__all__ = ["METRICS", "dataset_row", "measure"]

#: The metrics of a row, each the median over repetitions of its value in one.
METRICS = tuple(
    name
    for name in judgement.METRICS
    if name not in ("nodes", "infinite") and not name.endswith(("_se", "_chance"))  # counts, and what is not measured
)


def dataset_row(cell: DatasetCell, data: NodeDataset) -> Row:
    """Return a row of Table 1."""
    graph = data.graph.subgraph(data.test)
    return cell.row(
        nodes=data.num_nodes,
        edges=data.graph.num_edges,
        features=data.num_features,
        classes=data.num_classes,
        test_nodes=int(data.test.size),
        test_edges=graph.num_edges,
        eligible=int(eligible_nodes(graph, setup_of(cell.dataset)).size),
        node_homophily=node_homophily(data.graph, data.labels),
        test_homophily=node_homophily(graph, data.labels[data.test]),
        expected_homophily=expected_homophily(data.labels),
    )


def measure(cells: Sequence[CoverageCell], bench: Bench) -> list[Row]:
    """Return the rows of cells that differ in method and alpha only: one search serves them all."""
    first = cells[0]
    methods = list(dict.fromkeys(cell.method for cell in cells))
    alphas = list(dict.fromkeys(cell.alpha for cell in cells))
    if any(_group(cell) != _group(first) for cell in cells) or (BASELINE in methods) != (first.hops == 0):
        raise InvalidInputError(f"`cells` must differ in method and alpha only, and {BASELINE} must have 0 hops, alone")
    start = time.perf_counter()
    protocol = protocol_of(first.protocol)
    values = _marginal(protocol, bench, first, methods, alphas)
    violations = _partitioned(protocol, bench, first, methods, alphas)
    seconds = (time.perf_counter() - start) / len(cells)
    rows = []
    for cell in cells:
        at = (methods.index(cell.method), alphas.index(cell.alpha))
        measured = {name: float(np.median(table[at])) for name, table in values.items()}
        measured["pccv"] = _median(violations[at])
        rows.append(
            cell.row(
                accuracy=bench.accuracy,
                **{name: measured[name] for name in METRICS},
                coverage_sd=float(values["coverage"][at].std(ddof=1)),
                infinite_rate=measured["infinite_rate"],
                support=measured["support"],
                eligible=int(bench.eligible.size),
                test_nodes=bench.graph.num_nodes,
                seconds=seconds,
                train_seconds=bench.train_seconds,
            )
        )
    return rows


def _group(cell: CoverageCell) -> tuple[object, ...]:
    return tuple(value for name, value in asdict(cell).items() if name not in ("method", "alpha"))


def _marginal(
    protocol: Protocol, bench: Bench, cell: CoverageCell, methods: list[str], alphas: list[float]
) -> dict[str, FloatArray]:
    """Return each metric of Table 2, and SSCV, in each repetition: arrays (methods, alphas, repetitions)."""
    drawn = bench.draws(cell.repetitions, cell.evaluated)
    calibration = np.stack([~bench.mask(nodes) for nodes in drawn])
    found = protocol.thresholds(bench, drawn, calibration, methods, cell.hops, alphas)
    names = [name for name in METRICS if name != "pccv"]
    shape = (len(methods), len(alphas), cell.repetitions)
    values = {name: np.full(shape, np.nan) for name in (*names, "infinite_rate", "support")}
    for repetition, (nodes, part) in enumerate(zip(drawn, found, strict=True)):
        for m, a, sets in _sets(bench, nodes, part, alphas):
            at = (m, a, repetition)
            worth = judgement.judge(sets, bench.labels, strata=bench.setup.strata)
            for name in names:
                values[name][at] = getattr(worth, name)
            values["infinite_rate"][at] = worth.infinite / worth.nodes
            values["support"][at] = np.median(sets.support)
    return values


def _partitioned(
    protocol: Protocol, bench: Bench, cell: CoverageCell, methods: list[str], alphas: list[float]
) -> FloatArray:
    """Return PCCV in each repetition: half of the eligible nodes calibrate, the other half is cut into balls."""
    halves = bench.halves(cell.repetitions)
    eligible = bench.mask(bench.eligible)
    calibration = np.stack([eligible & ~bench.mask(half) for half in halves])
    found = protocol.thresholds(bench, halves, calibration, methods, cell.hops, alphas)
    values = np.full((len(methods), len(alphas), cell.repetitions), np.nan)
    for repetition, (half, part) in enumerate(zip(halves, found, strict=True)):
        balls = protocol.parts(bench, half, repetition)
        for m, a, sets in _sets(bench, half, part, alphas):
            values[m, a, repetition] = pccv(sets, bench.labels, balls)
    return values


def _sets(
    bench: Bench, nodes: IntArray, found: Found, alphas: list[float]
) -> Iterator[tuple[int, int, PredictionSets]]:
    matrix = bench.score_matrix[nodes]
    for m, a in np.ndindex(found.values.shape[:2]):
        tau, support, size = found.values[m, a], found.support[m], found.effective_size[m]
        member = members(matrix, tau)
        yield m, a, PredictionSets(nodes, member, tau, support, size, alphas[a], num_nodes=bench.graph.num_nodes)


def _median(values: FloatArray) -> float:
    """Return the median of what is known; NaN where no repetition had a neighbourhood large enough."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")
