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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from napsets.advice.theory import sbm_favours_naps
from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.text import percent
from napsets.datasets.synthetic import sbm_graph
from napsets.errors import InvalidInputError, imported
from napsets.graph import Graph
from napsets.localisers import Cut, Everyone, Hops, Reference
from napsets.randomness import node_uniforms
from napsets.scores import APS
from napsets.studies.study import DIFFERENCE, POSITIVE, SHARE, Cell, Row, columns
from napsets.studies.tables import Entry, Spread, Table, distinct, select

#: The classifier's belief in the label that only ν draws; every other label gets at least as much.
_LEAST = 0.05
_OTHERS = 3

#: From this many expected neighbours on, rounding a quantile up costs NAPS less than alpha/5 of coverage at alpha 0.1.
_ENOUGH_NEIGHBOURS = 50


@dataclass(frozen=True)
class BlockCell(Cell):
    """One point of the grid."""

    study: ClassVar[str] = "sbm"
    measured: ClassVar = {
        **columns("aps_gap aps_gap_easy aps_gap_hard naps_gap naps_gap_easy naps_gap_hard advantage", DIFFERENCE),
        **columns("aps_gap_se aps_gap_easy_se aps_gap_hard_se", POSITIVE),
        **columns("naps_gap_se naps_gap_easy_se naps_gap_hard_se advantage_se", POSITIVE),
        **columns("aps_bound naps_bound lemma_exact lemma_favours_naps", SHARE),
        **columns("lemma_mean_field neighbours seconds", POSITIVE),
    }
    common: ClassVar = ("n", "p_in", "p_out", "alpha", "draws", "seed")
    n: int  #: nodes in each block
    #: Probability of an edge within a block, and between the blocks.
    p_in: float
    p_out: float
    tv: float  #: total variation distance between the blocks' laws
    alpha: float = 0.1  #: error rate
    draws: int = 100  #: graphs drawn
    seed: int = 0  #: draws everything

    @property
    def title(self) -> str:  # noqa: D102
        return f"block model n={self.n} p_in={self.p_in:g} p_out={self.p_out:g}"

    @classmethod
    def compute(cls, cells: Sequence[BlockCell], laboratory: Any) -> list[Row]:  # noqa: D102
        return simulate(cells)


@dataclass(frozen=True)
class BlockGrid:
    """The study's grid: every combination is a cell."""

    n: tuple[int, ...] = (250, 1000)
    p_in: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    p_out: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
    tv: tuple[float, ...] = (0.1, 0.2, 0.4)
    draws: int = 100

    def cells(self, alpha: float) -> list[BlockCell]:
        """Return the cells of all combinations."""
        return [
            BlockCell(n, p_in, p_out, tv, alpha=alpha, draws=self.draws)
            for n, p_in, p_out, tv in product(self.n, self.p_in, self.p_out, self.tv)
        ]


def simulate(cells: Sequence[BlockCell]) -> list[Row]:
    """Return the rows of grid points that differ in `tv` only, and so can share their graphs.

    A row has gaps with their standard errors, bounds, and the lemma's verdict. A gap is 1 − alpha less the share
    covered, a mean over draws. ``*_gap`` is over all nodes, ``*_gap_easy`` and ``*_gap_hard`` over a block; ``*_se``
    are standard errors from the spread between draws, which are independent. ``advantage`` is the gap of APS less
    that of NAPS in the harder block, paired by draw.
    """
    first = cells[0]
    if any(cell.task != first.task for cell in cells):
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
    rounding the quantile up makes NAPS cover more than 1 − alpha whatever the neighbours are.
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
class BlockDraw:
    """A graph, the classifier's probabilities, labels as π₁ draws them, and the numbers that decide who gets ν's."""

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


def _draw(cell: BlockCell, rng: np.random.Generator) -> BlockDraw:
    graph, _ = sbm_graph(cell.n, cell.p_in, cell.p_out, int(rng.integers(2**31)))
    nodes = graph.num_nodes
    believed = _LEAST + (1.0 - (_OTHERS + 1) * _LEAST) * rng.dirichlet(np.ones(_OTHERS), nodes)
    probabilities = np.column_stack([believed, np.full(nodes, _LEAST)])
    # A label is drawn for each node in proportion to what is believed: what π₁ does.
    running = np.cumsum(believed, axis=1)
    labels: IntArray = np.sum(running < rng.random((nodes, 1)) * running[:, -1:], axis=1, dtype=np.int64)
    coin = rng.random(nodes)
    return BlockDraw(graph, probabilities, labels, coin, node_uniforms(np.arange(nodes), int(rng.integers(2**31))))


def _gaps(cell: BlockCell, drawn: BlockDraw) -> FloatArray:
    """Return the coverage gaps of APS and NAPS (rows) in either block (columns), each node calibrated on others."""
    scores, nodes = drawn.scores(cell.tv), np.arange(2 * cell.n)
    reference, cut = Reference(nodes, scores, nodes.size, drawn.graph), [Cut(1.0 - cell.alpha)]
    aps, naps = (local.fit(reference).thresholds(nodes, cut).values[0] for local in (Everyone(), Hops(1)))
    covered = np.stack([scores <= aps, scores <= naps]).reshape(2, 2, cell.n)  # y is in the set if S ≤ τ
    gaps: FloatArray = (1.0 - cell.alpha) - covered.mean(axis=2)
    return gaps


def _summary(name: str, values: FloatArray) -> dict[str, float]:
    return {name: float(values.mean()), f"{name}_se": float(values.std(ddof=1) / np.sqrt(values.size))}


def _bound_holds(row: Row, name: str) -> bool:
    """Say whether a method's gaps, over all nodes and in either block, are at most four standard errors too large."""
    gaps = (f"{name}_gap", f"{name}_gap_easy", f"{name}_gap_hard")
    return all(row[gap] <= row[f"{name}_bound"] + 4.0 * row[f"{gap}_se"] for gap in gaps)


def _decided(rows: Sequence[Row]) -> list[Row]:
    """Return the informative points with a clear winner in the harder block."""
    return [row for row in rows if informative(row) and winner(row)]


def _is_named(row: Row) -> bool:
    """Say whether Lemma 1 names the winner."""
    return (winner(row) == "NAPS") == bool(row["lemma_favours_naps"])


def winner(row: Row) -> str | None:
    """Return who has the smaller gap in the harder block, if by more than three standard errors."""
    if abs(row["advantage"]) <= 3.0 * row["advantage_se"]:
        return None
    return "NAPS" if row["advantage"] > 0 else "APS"


def block_tables(rows: Sequence[Row]) -> list[Table]:
    """Return, for each size and distance, how often bounds held and the lemma named the winner; then every point."""
    lines: list[list[Entry]] = []
    for n, tv in sorted({(row["n"], row["tv"]) for row in rows}):
        points = select(rows, n=n, tv=tv)
        favoured = select(points, lemma_favours_naps=True)
        shares = (
            _share(points, lambda row: _bound_holds(row, "aps") and _bound_holds(row, "naps")),
            _share(_decided(points), _is_named),
            _share(favoured, lambda row: winner(row) == "NAPS"),
            _share(favoured, lambda row: row["naps_gap"] < row["aps_gap"]),
        )
        lines.append([n, tv, len(points), *shares])
    columns = ["n", "d", "Points", "Bounds hold", "Lemma 1 names the winner, where informative"]
    columns += ["NAPS wins where favoured, harder block", "NAPS wins where favoured, all nodes"]
    notes = [
        "Bounds hold: every gap is at most its bound plus four standard errors. A winner differs by more than three. "
        "Informative: d ≤ 2α and at least 50 neighbours expected."
    ]
    points = sorted(rows, key=lambda row: (row["n"], row["tv"], row["p_in"], row["p_out"]))
    return [
        Table("sbm-summary", "Block model: Lemma 1 against simulation", columns, lines, {"d": 1}, notes),
        Table.of("sbm", "Block model: every point of the grid", points, _POINT, for_screen=False),
    ]


def _gap(name: str) -> Callable[[Row], Entry]:
    return lambda row: Spread(row[name], row[f"{name}_se"])


#: The columns of a point of the grid.
_POINT: dict[str, Any] = {
    "n": "n",
    "p_in": "p_in",
    "p_out": "p_out",
    "d": "tv",
    "APS gap": _gap("aps_gap"),
    "APS gap, harder block": _gap("aps_gap_hard"),
    "APS bound": "aps_bound",
    "NAPS gap": _gap("naps_gap"),
    "NAPS gap, harder block": _gap("naps_gap_hard"),
    "NAPS bound": "naps_bound",
    "Lemma 1": "lemma_exact",
    "Mean field": "lemma_mean_field",
    "Lemma 1 favours": lambda row: "NAPS" if row["lemma_favours_naps"] else "APS",
    "Smaller gap in harder block": lambda row: winner(row) or "undecided",
    "Informative": lambda row: "yes" if informative(row) else "no",
}


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> str:
    return f"{sum(map(holds, rows))} of {len(rows)}"


def block_paragraph(rows: Sequence[Row]) -> str:
    """Return what the rows of the study show, in a paragraph."""
    if not rows:
        return ""
    held = sum(_bound_holds(row, name) for row in rows for name in ("aps", "naps"))
    decided, favoured = _decided(rows), select(rows, lemma_favours_naps=True)
    against = [row for row in favoured if row["naps_gap"] - row["aps_gap"] > 4 * row["naps_gap_se"]]
    largest = max((row["naps_gap"] - row["aps_gap"] for row in against), default=0.0)
    tight = [row["aps_gap_hard"] / row["aps_bound"] for row in rows if informative(row)]
    text = (
        f"Over {len(rows)} grid points, {held} of {2 * len(rows)} bounds held within four standard errors. "
        f"Where the lemma is informative, the gap of APS in the harder block reaches "
        f"{percent(min(tight, default=0), 0)} to {percent(max(tight, default=0), 0)} of its bound, and of the "
        f"{len(decided)} such points with a clear winner in that block Lemma 1 names it in "
        f"{sum(map(_is_named, decided))}. "
    )
    if against:
        return text + (
            "Read literally, as a statement about gaps averaged over all nodes, the lemma is contradicted at "
            f"{len(against)} of the {len(favoured)} points where it favours NAPS (by {largest:.4f} at most): its proof "
            "compares bounds, and averaged over both blocks APS has no gap for NAPS to improve on."
        )
    return text + (
        "Averaged over all nodes no point contradicts the lemma, but there APS has no gap to improve on either: its "
        f"mean gap is {max(abs(row['aps_gap']) for row in rows):.4f} at most."
    )


def block_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return where NAPS wins in the harder block, with Lemma 1's boundary: one map per distance, one panel per n."""
    figures = {}
    for tv in distinct(rows, "tv"):
        here = select(rows, tv=tv)
        reach = max(abs(row["advantage"]) for row in here)
        charts = [_block_panel(select(here, n=n), n, reach) for n in distinct(here, "n")]
        title = f"Gap of APS less gap of NAPS in the harder block, d = {tv:g}"
        figures[f"sbm-tv-{tv:g}"] = imported("altair", "report").hconcat(*charts).properties(title=title)
    return figures


def _block_panel(rows: Sequence[Row], n: int, reach: float) -> Any:
    alt = imported("altair", "report")
    points = [{name: row[name] for name in ("p_in", "p_out", "advantage")} for row in rows]
    ends, heights = distinct(rows, "p_in"), distinct(rows, "p_out")
    span = [ends[0] * (ends[-1] / ends[0]) ** (i / 60) for i in range(61)]
    lines = [
        {"p_in": p, "p_out": lemma_boundary(n, p, exact=exact), "boundary": name}
        for exact, name in ((True, "Lemma 1, exact"), (False, "mean field"))
        for p in span
    ]
    lines = [line for line in lines if line["p_out"] <= heights[-1]]
    x = alt.X("p_in:Q", title="p_in", **_log_axis(alt, ends))
    y = alt.Y("p_out:Q", title="p_out", **_log_axis(alt, heights))
    shade = alt.Color(
        "advantage:Q",
        scale=alt.Scale(domain=[-reach, 0, reach], range=["#D55E00", "#F5F5F5", "#0072B2"]),
        legend=alt.Legend(title="NAPS better if > 0", orient="bottom"),
    )
    squares = alt.Chart(alt.Data(values=points)).mark_square(size=700, opacity=1, stroke="#888888").encode(x, y, shade)
    dash = alt.StrokeDash("boundary:N", legend=alt.Legend(title=None, orient="bottom"))
    drawn = alt.Chart(alt.Data(values=lines)).mark_line(color="black").encode(x, y, strokeDash=dash)
    return alt.layer(squares, drawn).properties(width=300, height=300, title=f"n = {n:,} nodes a block")


def _log_axis(alt: Any, values: list[float]) -> dict[str, Any]:
    """Return a logarithmic axis that shows these values and leaves room for a square around the outermost."""
    scale = alt.Scale(type="log", domain=[values[0] / 1.5, values[-1] * 1.5], nice=False)
    return {"scale": scale, "axis": alt.Axis(values=values, grid=False, format="~g")}
