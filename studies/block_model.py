"""The block-model study: the coverage gaps of APS and NAPS, and the bounds that Lemma 1 compares.

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
from dataclasses import dataclass
from itertools import product

import numpy as np

import napsets as ns
from napsets.datasets import sbm_graph
from napsets.localisers import Cut, Everyone, Hops, Reference
from napsets.scores import APS
from studies.rows import Kind
from studies.tables import Entry, Floats, Ints, Row, Table, percent, select

#: The classifier's belief in the label that only ν draws; every other label gets at least as much.
_LEAST = 0.05
_OTHERS = 3

#: From this many expected neighbours on, rounding a quantile up costs NAPS less than alpha/5 of coverage at alpha 0.1.
_ENOUGH_NEIGHBOURS = 50

_DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
#: The points of the grid are all combinations: nodes per block, probabilities of an edge within a block and between the
#: blocks, and total variation distances between the blocks' laws. Each is measured on as many graphs as `draws` says.
FULL = {"n": (250, 1000), "p_in": _DENSITIES, "p_out": _DENSITIES, "tv": (0.1, 0.2, 0.4), "draws": (100,)}
QUICK = {"n": (250,), "p_in": (0.1, 0.4), "p_out": (0.1, 0.4), "tv": (0.2,), "draws": (20,)}


def block_cells(alpha: float, *, quick: bool = False) -> list[Row]:
    """Return the cells of the grid."""
    grid = QUICK if quick else FULL
    return [dict(zip(grid, point, strict=True)) | {"alpha": alpha, "seed": 0} for point in product(*grid.values())]


def simulate(cells: Sequence[Row]) -> list[Row]:
    """Return the rows of grid points that differ in `tv` only, and so can share their graphs.

    A row has gaps with their standard errors, bounds, and the lemma's verdict. A gap is 1 − alpha less the share
    covered, a mean over draws. ``*_gap`` is over all nodes, ``*_gap_easy`` and ``*_gap_hard`` over a block; ``*_se``
    are standard errors from the spread between draws, which are independent. ``advantage`` is the gap of APS less
    that of NAPS in the harder block, paired by draw.
    """
    start, first = time.perf_counter(), cells[0]
    rng = np.random.default_rng([first["seed"], first["n"], *(round(first[p] * 1e6) for p in ("p_in", "p_out"))])
    gaps = np.empty((len(cells), first["draws"], 2, 2))  # cell, draw, method, block
    for d in range(first["draws"]):
        drawn = draw(first, rng)
        for c, cell in enumerate(cells):
            gaps[c, d] = _gaps(cell, drawn)
    seconds = (time.perf_counter() - start) / len(cells)
    return [_row(cell, gaps[c], seconds) for c, cell in enumerate(cells)]


def _row(cell: Row, gaps: Floats, seconds: float) -> Row:
    measured: dict[str, float] = {}
    for m, method in enumerate(("aps", "naps")):
        sides = (("gap", gaps[:, m].mean(axis=1)), ("gap_easy", gaps[:, m, 0]), ("gap_hard", gaps[:, m, 1]))
        for name, values in sides:
            measured |= _summary(f"{method}_{name}", values)
    measured |= _summary("advantage", gaps[:, 0, 1] - gaps[:, 1, 1])
    verdict = ns.sbm_favours_naps(cell["n"], cell["p_in"], cell["p_out"])
    return {
        **cell,
        **measured,
        "aps_bound": cell["tv"] / 2.0,
        "naps_bound": cell["tv"] * verdict.exact,
        "lemma_exact": verdict.exact,
        "lemma_mean_field": verdict.mean_field,
        "lemma_favours_naps": verdict.favours_naps,
        "neighbours": cell["n"] * cell["p_out"] + (cell["n"] - 1) * cell["p_in"],
        "seconds": seconds,
    }


BLOCKS = Kind(
    "sbm",
    ("n", "p_in", "p_out", "tv", "alpha", "draws", "seed"),
    ("n", "p_in", "p_out", "alpha", "draws", "seed"),
    lambda cells, folders: simulate(cells),
)


def informative(row: Row) -> bool:
    """Whether a grid point is one where Lemma 1 decides the winner in the harder block.

    Two things must hold. (1) 0 < d ≤ 2·alpha: the gap under APS nearly attains its bound d/2; beyond, the gap stays
    at alpha however large d, and comparing bounds says little. (2) Enough neighbours are expected (50): with fewer,
    rounding the quantile up makes NAPS cover more than 1 − alpha whatever the neighbours are.
    """
    return bool(0 < row["tv"] <= 2 * row["alpha"] + 1e-12 and row["neighbours"] >= _ENOUGH_NEIGHBOURS)


@dataclass(frozen=True, eq=False)
class BlockDraw:
    """A graph, a classifier's probabilities, labels drawn from π₁, and coins that replace some by labels from ν."""

    graph: ns.Graph
    probabilities: Floats
    labels: Ints
    coin: Floats
    u: Floats

    def scores(self, tv: float) -> Floats:
        """Return each node's score at its label, where the second half of the nodes follows π₂ at distance `tv`."""
        labels = self.labels.copy()
        hard = np.arange(labels.size) >= labels.size // 2
        labels[hard & (self.coin < tv)] = _OTHERS
        return APS().at(self.probabilities, labels, self.u)


def draw(cell: Row, rng: np.random.Generator) -> BlockDraw:
    """Draw a graph with its labels and the classifier's probabilities."""
    graph, _ = sbm_graph(cell["n"], cell["p_in"], cell["p_out"], int(rng.integers(2**31)))
    nodes = graph.num_nodes
    believed = _LEAST + (1.0 - (_OTHERS + 1) * _LEAST) * rng.dirichlet(np.ones(_OTHERS), nodes)
    probabilities = np.column_stack([believed, np.full(nodes, _LEAST)])
    # π₁ draws each label in proportion to the probabilities.
    running = np.cumsum(believed, axis=1)
    labels: Ints = np.sum(running < rng.random((nodes, 1)) * running[:, -1:], axis=1, dtype=np.int64)
    coin = rng.random(nodes)
    return BlockDraw(graph, probabilities, labels, coin, ns.node_uniforms(np.arange(nodes), int(rng.integers(2**31))))


def _gaps(cell: Row, drawn: BlockDraw) -> Floats:
    """Return the coverage gaps of APS and NAPS (rows) in either block (columns), each node calibrated on others."""
    scores, nodes, target = drawn.scores(cell["tv"]), np.arange(2 * cell["n"]), 1.0 - cell["alpha"]
    reference = Reference(nodes, scores, nodes.size, drawn.graph)
    aps, naps = (local.fit(reference).thresholds(nodes, [Cut(target)]).values[0] for local in (Everyone(), Hops(1)))
    covered = np.stack([scores <= aps, scores <= naps]).reshape(2, 2, cell["n"])  # y is in the set if S ≤ τ
    gaps: Floats = target - covered.mean(axis=2)
    return gaps


def _summary(name: str, values: Floats) -> dict[str, float]:
    return {name: float(values.mean()), f"{name}_se": float(values.std(ddof=1) / np.sqrt(values.size))}


def _bound_holds(row: Row, name: str) -> bool:
    """Whether a method's gaps, over all nodes and in either block, are at most four standard errors too large."""
    gaps = (f"{name}_gap", f"{name}_gap_easy", f"{name}_gap_hard")
    return all(row[gap] <= row[f"{name}_bound"] + 4.0 * row[f"{gap}_se"] for gap in gaps)


def winner(row: Row) -> str | None:
    """Return the method with the smaller gap in the harder block, if by more than three standard errors."""
    if abs(row["advantage"]) <= 3.0 * row["advantage_se"]:
        return None
    return "NAPS" if row["advantage"] > 0 else "APS"


def block_table(rows: Sequence[Row]) -> Table:
    """Return, for each size and distance, how often bounds held and the lemma named the winner."""
    lines: list[list[Entry]] = []
    for n, tv in sorted({(row["n"], row["tv"]) for row in rows}):
        points = select(rows, n=n, tv=tv)
        held = sum(all(_bound_holds(row, name) for name in ("aps", "naps")) for row in points)
        decided = [row for row in points if informative(row) and winner(row)]
        named = sum((winner(row) == "NAPS") == bool(row["lemma_favours_naps"]) for row in decided)
        lines.append([n, tv, len(points), f"{held} of {len(points)}", f"{named} of {len(decided)}"])
    columns = ["n", "d", "Points", "Bounds hold", "Lemma 1 names the winner, where informative"]
    notes = [
        "Bounds hold: every gap is at most its bound plus four standard errors. A winner, in the harder block, differs "
        "by more than three. Informative: d ≤ 2α and at least 50 neighbours expected."
    ]
    return Table("Block model: Lemma 1 against simulation", columns, lines, {"d": 1}, notes)


def block_paragraph(rows: Sequence[Row]) -> str:
    """Return a paragraph on the results."""
    if not rows:
        return ""
    favoured = select(rows, lemma_favours_naps=True)
    against = [row for row in favoured if row["naps_gap"] - row["aps_gap"] > 4 * row["naps_gap_se"]]
    tight = [row["aps_gap_hard"] / row["aps_bound"] for row in rows if informative(row)]
    return (
        f"Where the lemma is informative, the gap of APS in the harder block reaches {percent(min(tight, default=0))} "
        f"to {percent(max(tight, default=0))} of its bound. Read literally, as a statement about gaps averaged over "
        f"all nodes, the lemma is contradicted at {len(against)} of the {len(favoured)} points where it favours NAPS: "
        "its proof compares bounds, and averaged over both blocks APS has no gap for NAPS to improve on."
    )
