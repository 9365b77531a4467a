"""Rows that pages about sets and about intervals share: computed by pure functions, drawn elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import GroupCoverage, neighbourhood_partition
from napsets.evaluation.side_by_side import CURVE_ALPHAS, SideBySide
from napsets.evaluation.verdict import Verdict, evenness, gaps_of
from napsets.report.neighbourhoods import ball_of_nodes, quotient
from napsets.report.shown import ShownMethod
from napsets.version import __version__

__all__ = ["DRAWN_SIZE", "JUDGED_SIZE", "Balls", "Row", "Table", "Z", "chance_band", "check_curve", "cover_rows"]
__all__ += ["curve_rows", "cut_balls", "facts", "finite_mean", "front_rows", "group_rows", "node_names", "range_names"]
__all__ += ["share_row", "wilson"]

Row = dict[str, Any]
Table = tuple[str, Sequence[Mapping[str, Any]]]

#: Neighbourhoods with fewer nodes are not drawn; PCCV judges only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: The map holds so many neighbourhoods at most, the largest ones.
DRAWN_BALLS = 120
#: The 97.5 % point of the normal distribution: intervals are 95 % ones.
Z = 1.959963984540054


def check_curve(found: SideBySide[Any]) -> None:
    """Refuse a comparison without the error rates that a page draws."""
    if found.alphas != CURVE_ALPHAS:
        raise InvalidInputError(
            f"`comparison` must hold the error rates that the page draws, {len(CURVE_ALPHAS)} of them; it holds "
            f"{len(found.alphas)}. Make it with compare(..., alphas=CURVE_ALPHAS)."
        )


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(90, 100)]
    [0.826, 0.945]
    """
    if count == 0:
        return math.nan, math.nan
    share, weight = hits / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def chance_band(count: int, target: float) -> tuple[float, float]:
    """Return where the coverage of so many nodes lies 95 times in 100, if each is covered with probability `target`.

    Examples
    --------
    >>> chance_band(20, 0.9)
    (0.75, 1.0)
    """
    from scipy.stats import binom

    ends = np.asarray(binom.ppf([0.025, 0.975], count, target)) / count
    return float(ends[0]), float(ends[1])


def node_names(found: SideBySide[Any], ids: ArrayLike | None) -> npt.NDArray[Any]:
    """Return what the nodes are called on the page."""
    graph = found.graph
    given = found.ids if ids is None else np.asarray(ids)
    if given is None:
        given = np.arange(graph.num_nodes) if graph.original_ids is None else graph.original_ids
    if given.shape != (graph.num_nodes,):
        raise InvalidInputError(f"`ids` must have one entry a node, {graph.num_nodes}; got shape {given.shape}")
    return given


def facts(found: SideBySide[Any], dataset: str | None, model: str | None, *, kinds: str = "") -> list[tuple[str, str]]:
    """Return what was done, on what; `kinds` says what else the graph has."""
    graph, nodes = found.graph, found.given.outputs.shape[0]
    halves = graph.num_edges if graph.directed else graph.num_edges // 2
    told = [
        ("Dataset", dataset or ""),
        ("Model", model or ""),
        ("Graph", f"{nodes:,} nodes, {halves:,} edges{kinds}"),
        ("Calibration", f"{found.given.calibration.size:,} labelled nodes"),
        ("Judged on", f"{found.nodes.size:,} other nodes"),
        ("Neighbourhood", f"{found.hops} hop{'s' * (found.hops != 1)}"),
        ("Error rate", f"alpha = {found.alpha:g}"),
        ("Score", type(found.settings.score).__name__),
        ("Seed", str(found.settings.seed)),
        ("Made with", f"napsets {__version__}"),
    ]
    return [(name, value) for name, value in told if value]


def share_row(covered: BoolArray) -> Row:
    """Return coverage with its 95 % interval."""
    low, high = wilson(float(covered.sum()), covered.size)
    return {"coverage": float(covered.mean()) if covered.size else math.nan, "low": low, "high": high}


def cover_rows(found: SideBySide[Any], shown: Sequence[ShownMethod]) -> list[Row]:
    """Return the metrics of each method, its coverage with an interval, and its worst and best neighbourhood."""
    held = sum(part.size for part in found.partition) / found.nodes.size
    rows = []
    for method, result, row in zip(shown, found, found.rows(), strict=True):
        covered = result.made.contains(found.given.labels)
        shares = [float(covered[_rows_of(found.nodes, part)].mean()) for part in found.partition]
        rows.append(
            row
            | share_row(covered)
            | {
                "method": method.title,
                "name": method.name,
                "neighbourhoods": len(shares),
                "in_neighbourhoods": held,
                "lowest": min(shares, default=math.nan),
                "highest": max(shares, default=math.nan),
            }
        )
    return rows


def _rows_of(judged: IntArray, nodes: IntArray) -> IntArray:
    order = np.argsort(judged, kind="stable")
    return order[np.searchsorted(judged[order], nodes)]


def curve_rows(found: SideBySide[Any], shown: Sequence[ShownMethod], sizes: Mapping[str, str]) -> list[Row]:
    """Return coverage found and asked for of each method at each error rate, and its size by other names."""
    rows = []
    for method, result in zip(shown, found, strict=True):
        for a, alpha in enumerate(found.alphas):
            share = float(result.curve_coverage[a])
            low, high = wilson(share * result.nodes, result.nodes)
            target = round(1.0 - alpha, 6)
            rows.append(
                {"method": method.title, "alpha": alpha, "target": target, "coverage": share}
                | {name: float(getattr(result, curve)[a]) for name, curve in sizes.items()}
                | {"gap": share - target, "gap_low": low - target, "gap_high": high - target}
            )
    return rows


def front_rows(
    found: SideBySide[Any],
    shown: Sequence[ShownMethod],
    verdict: Verdict,
    sizes: Iterable[tuple[float, float]],
    name: str,
) -> tuple[list[Row], str]:
    """Return size and gap of each method, over the groups that the verdict looks at, and what those are in words.

    Sizes come with their standard errors, and stand in the column `name`.
    """
    kind, gaps = gaps_of(found)
    over = f"{gaps[0].groups.size} {'neighbourhoods' if kind == 'neighbourhood' else 'groups by degree'}"
    over += f", which hold {100 * gaps[0].share:.0f} % of the judged nodes"
    rows = []
    for method, result, gap, (size, error) in zip(shown, found, gaps, sizes, strict=True):
        spread = evenness(gap, replace(gap, coverage=np.full(gap.groups.size, 1.0 - found.alpha)))
        half = 0.0 if math.isnan(spread.low) else spread.high - spread.value
        room = 0.0 if math.isnan(error) else Z * error
        rows.append(
            {
                "method": method.title,
                "taken": result.name == verdict.method,
                name: size,
                "size_low": size - room,
                "size_high": size + room,
                "coverage": result.coverage,
                "gap": gap.gap,
                "gap_low": max(0.0, gap.gap - half),
                "gap_high": gap.gap + half,
                "chance": gap.chance,
                "excess": gap.excess,
            }
        )
    return rows, over


def group_rows(
    shown: Sequence[ShownMethod], groups: Sequence[GroupCoverage], alpha: float, name: str, called: Sequence[str]
) -> list[Row]:
    """Return coverage of each method in each group that has nodes, beside where chance would put it."""
    rows = []
    bands: dict[int, tuple[float, float]] = {}
    for method, grouped in zip(shown, groups, strict=True):
        for g, group in enumerate(called):
            count, share = int(grouped.count[g]), float(grouped.coverage[g])
            if count == 0:
                continue
            low, high = wilson(share * count, count)
            if count not in bands:
                bands[count] = chance_band(count, 1.0 - alpha)
            rows.append(
                {
                    "method": method.title,
                    name: group,
                    "order": g,
                    "nodes": count,
                    "coverage": share,
                    "low": low,
                    "high": high,
                    "chance_low": bands[count][0],
                    "chance_high": bands[count][1],
                    "mean_size": float(grouped.mean_size[g]),
                }
            )
    return rows


def range_names(groups: Sequence[Any]) -> list[str]:
    """Return ranges of whole numbers in words.

    Examples
    --------
    >>> range_names([(0, 0), (1, 4)])
    ['0', '1–4']
    """
    return [str(low) if low == high else f"{low}–{high}" for low, high in groups]


@dataclass(frozen=True, eq=False)
class Balls:
    """The neighbourhoods that the map draws.

    Attributes
    ----------
    of_node : numpy.ndarray
        The neighbourhood of each node, −1 for none.
    position : numpy.ndarray
        Where each is drawn.
    links : list of dict
        Which are joined.
    left_out : int
        Judged nodes in none.
    """

    of_node: IntArray
    position: FloatArray
    links: list[Row]
    left_out: int

    def rows(
        self, found: SideBySide[Any], shown: Sequence[ShownMethod], about: Callable[[BoolArray], Row], name: str
    ) -> list[Row]:
        """Return a row a neighbourhood: each method's coverage and, behind the word `name`, its mean size.

        `about` says more of the judged nodes that it is given marks of.
        """
        covered = [result.made.contains(found.given.labels) for result in found]
        rows = []
        for b, (x, y) in enumerate(self.position.tolist()):
            inside = self.of_node[found.nodes] == b
            row: Row = {"ball": b, "x": x, "y": y, "nodes": int(inside.sum())}
            row |= {"judged": bool(inside.sum() >= JUDGED_SIZE)} | about(inside)
            for method, result, hit in zip(shown, found, covered, strict=True):
                row[method.title] = float(hit[inside].mean())
                row[f"{method.title} {name}"] = finite_mean(result.sizes[inside])
            rows.append(row)
        return rows


def finite_mean(values: npt.NDArray[Any]) -> float:
    """Return the mean of what is finite; NaN where nothing is."""
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else math.nan


def cut_balls(found: SideBySide[Any]) -> Balls:
    """Cut the judged nodes into neighbourhoods and lay them out."""
    graph, seed = found.graph, found.settings.seed
    parts = neighbourhood_partition(graph, found.nodes, min_size=DRAWN_SIZE, seed=seed)[:DRAWN_BALLS]
    ball, joined = ball_of_nodes(parts, graph.num_nodes), quotient(graph, parts, seed)
    links = [
        {"source": int(a), "target": int(b), "edges": int(e)}
        for a, b, e in zip(joined.source, joined.target, joined.edges, strict=True)
    ]
    return Balls(ball, joined.position, links, int((ball[found.nodes] < 0).sum()))
