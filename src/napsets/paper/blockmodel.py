"""The block-model study: the coverage gaps of APS and NAPS beside the bounds that Lemma 1 compares.

Two blocks of n nodes follow the laws π₁ and π₂ = (1−d)·π₁ + d·ν, where ν never agrees with π₁, so that their total
variation distance is exactly d. Under ν the label is always the one the classifier believes in least: block 2 is
the *harder* block, and with d ≤ 2·alpha its gap under APS comes close to the bound d/2. A bound that were too small
would therefore be seen to fail.

The lemma bounds the gap of any node, hence the mean over all nodes and the mean over either block; all are measured.
Averaged over both blocks APS has no gap at all, whatever d: of all nodes together, each calibrated on the others, a
share of at least 1 − alpha is always covered. What APS loses in the harder block it gains in the other. Where NAPS
helps is within blocks, so that is where the winner is decided.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from napsets.advice.theory import sbm_favours_naps
from napsets.checks.arguments import FloatArray, IntArray
from napsets.datasets.synthetic import sbm_graph
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.localisers import Cut, Everyone, Hops, Reference
from napsets.paper.cells import Cell, Row
from napsets.randomness import node_uniforms
from napsets.scores import APS

__all__ = ["BlockCell", "Draw", "informative", "lemma_boundary", "simulate"]

#: The classifier's belief in the label that only ν draws; every other label gets at least as much.
_LEAST = 0.05
_OTHERS = 3

#: From so many expected neighbours on, rounding a quantile up costs NAPS less than alpha/5 of coverage at alpha 0.1.
_ENOUGH_NEIGHBOURS = 50


@dataclass(frozen=True)
class BlockCell(Cell):
    """One point of the grid.

    Attributes
    ----------
    n : int
        Nodes in each block.
    p_in, p_out : float
        Probability of an edge within a block, and between the blocks.
    tv : float
        Total variation distance between the blocks' laws.
    alpha : float
        Error rate.
    draws : int
        Graphs drawn.
    seed : int
        Draws everything.
    """

    study: ClassVar[str] = "sbm"
    n: int
    p_in: float
    p_out: float
    tv: float
    alpha: float = 0.1
    draws: int = 100
    seed: int = 0


def simulate(cells: Sequence[BlockCell]) -> list[Row]:
    """Return the rows of grid points that differ in `tv` only, and so can share their graphs.

    A row has gaps with their standard errors, bounds, and the lemma's verdict. A gap is 1 − alpha less the share
    covered, a mean over draws. ``*_gap`` is over all nodes, ``*_gap_easy`` and ``*_gap_hard`` over a block; ``*_se``
    are standard errors from the spread between draws, which are independent. ``advantage`` is the gap of APS less
    that of NAPS in the harder block, paired by draw.
    """
    first = cells[0]
    if any(replace(cell, tv=first.tv) != first for cell in cells):
        raise InvalidInputError("`cells` must differ in tv only")
    start = time.perf_counter()
    rng = np.random.default_rng([first.seed, first.n, round(first.p_in * 1e6), round(first.p_out * 1e6)])
    gaps = np.empty((len(cells), first.draws, 2, 2))  # cell, draw, method, block
    for d in range(first.draws):
        drawn = _draw(first, rng)
        for c, cell in enumerate(cells):
            gaps[c, d] = _gaps(cell, drawn)
    seconds = (time.perf_counter() - start) / len(cells)
    return [_row(cell, gaps[c], seconds) for c, cell in enumerate(cells)]


def _row(cell: BlockCell, gaps: FloatArray, seconds: float) -> Row:
    measured: dict[str, float] = {}
    for m, method in enumerate(("aps", "naps")):
        sides = (("gap", gaps[:, m].mean(axis=1)), ("gap_easy", gaps[:, m, 0]), ("gap_hard", gaps[:, m, 1]))
        for name, values in sides:
            measured |= _summary(f"{method}_{name}", values)
    measured |= _summary("advantage", gaps[:, 0, 1] - gaps[:, 1, 1])
    verdict = sbm_favours_naps(cell.n, cell.p_in, cell.p_out)
    return cell.row(
        **measured,
        aps_bound=cell.tv / 2.0,
        naps_bound=cell.tv * verdict.exact,
        lemma_exact=verdict.exact,
        lemma_mean_field=verdict.mean_field,
        lemma_favours_naps=verdict.favours_naps,
        neighbours=cell.n * cell.p_out + (cell.n - 1) * cell.p_in,
        seconds=seconds,
    )


def informative(row: Row) -> bool:
    """Say whether a grid point is one where Lemma 1 decides the winner in the harder block.

    Two things must hold. (1) 0 < d ≤ 2·alpha: the gap under APS nearly attains its bound d/2; beyond, the gap stays
    at alpha however large d, and comparing bounds says little. (2) Enough neighbours are expected (50): with fewer,
    rounding the quantile up makes NAPS cover more than 1 − alpha whoever the neighbours are.
    """
    return bool(0 < row["tv"] <= 2 * row["alpha"] + 1e-12 and row["neighbours"] >= _ENOUGH_NEIGHBOURS)


def lemma_boundary(n: int, p_in: float, *, exact: bool = True) -> float:
    """Return the p_out at which Lemma 1's expression is 1/2: below it NAPS has the smaller bound.

    The mean-field form has a closed solution, ((n−1)·p_in + 1)/n; the exact one is found by bisection, as the
    expression grows with p_out. 1 where even p_out = 1 does not reach it.
    """
    if not exact:
        return min(1.0, ((n - 1) * p_in + 1.0) / n)
    low, high = 0.0, 1.0
    if sbm_favours_naps(n, p_in, high).favours_naps:
        return high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if sbm_favours_naps(n, p_in, middle).favours_naps else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class Draw:
    """A graph, the classifier's probabilities, labels as π₁ draws them, and who is the first to get ν's label."""

    graph: Graph
    probabilities: FloatArray
    labels: IntArray
    coin: FloatArray
    u: FloatArray

    def scores(self, tv: float) -> FloatArray:
        """Return each node's score at its label, where the second half of the nodes follows π₂ at distance `tv`."""
        labels = self.labels.copy()
        hard = np.arange(labels.size) >= labels.size // 2
        labels[hard & (self.coin < tv)] = _OTHERS
        return APS().at(self.probabilities, labels, self.u)


def _draw(cell: BlockCell, rng: np.random.Generator) -> Draw:
    graph, _ = sbm_graph(cell.n, cell.p_in, cell.p_out, int(rng.integers(2**31)))
    nodes = graph.num_nodes
    believed = _LEAST + (1.0 - (_OTHERS + 1) * _LEAST) * rng.dirichlet(np.ones(_OTHERS), nodes)
    probabilities = np.column_stack([believed, np.full(nodes, _LEAST)])
    labels, coin = _labels(believed, rng), rng.random(nodes)
    return Draw(graph, probabilities, labels, coin, node_uniforms(np.arange(nodes), int(rng.integers(2**31))))


def _labels(weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a column for each row, in proportion to its weights: what π₁ does."""
    running = np.cumsum(weights, axis=1)
    height = rng.random((weights.shape[0], 1)) * running[:, -1:]
    labels: IntArray = np.sum(running < height, axis=1, dtype=np.int64)
    return labels


def _gaps(cell: BlockCell, drawn: Draw) -> FloatArray:
    """Return the coverage gaps of APS and NAPS (rows) in either block (columns), each node calibrated on others."""
    scores, nodes = drawn.scores(cell.tv), np.arange(2 * cell.n)
    reference, cut = Reference(nodes, scores, nodes.size, drawn.graph), [Cut(1.0 - cell.alpha)]
    aps, naps = (local.fit(reference).thresholds(nodes, cut).values[0] for local in (Everyone(), Hops(1)))
    covered = np.stack([scores <= aps, scores <= naps]).reshape(2, 2, cell.n)  # y is in the set if S ≤ τ
    gaps: FloatArray = (1.0 - cell.alpha) - covered.mean(axis=2)
    return gaps


def _summary(name: str, values: FloatArray) -> dict[str, float]:
    return {name: float(values.mean()), f"{name}_se": float(values.std(ddof=1) / np.sqrt(values.size))}
