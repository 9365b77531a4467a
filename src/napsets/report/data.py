"""What the page shows, as plain rows: computed by pure functions, rendered elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, BoolArray, IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import CURVE_ALPHAS, Comparison
from napsets.evaluation.metrics import GroupCoverage, coverage_by_class, coverage_by_degree, neighbourhood_partition
from napsets.evaluation.verdict import Verdict, evenness, gaps_of
from napsets.report.explorer import Explorer, explorer
from napsets.report.names import shown_name
from napsets.report.neighbourhoods import ball_of_nodes, quotient
from napsets.report.record import record_of
from napsets.report.shown import ShownMethod, focus, shown_methods
from napsets.sets import PredictionSets
from napsets.version import __version__

__all__ = ["ReportData", "Table", "chance_band", "page_data", "wilson"]

Row = dict[str, Any]
Table = tuple[str, Sequence[Mapping[str, Any]]]

#: Neighbourhoods with fewer nodes are not drawn; PCCV judges only those of `JUDGED_SIZE` or more, as in the paper.
DRAWN_SIZE, JUDGED_SIZE = 10, 30
#: The map holds so many neighbourhoods at most, the largest ones.
DRAWN_BALLS = 120
#: The 97.5 % point of the normal distribution: intervals are 95 % ones.
Z = 1.959963984540054


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that stands on the page.

    Attributes
    ----------
    title : str
        Heading.
    facts : list of (name, value)
        What was done, on what.
    alpha, hops
        As asked for.
    class_names : list of str
        One a class.
    comparison : Comparison
        The methods' sets and metrics.
    verdict : Verdict
        Which method to take, and how sure that is.
    shown : list of ShownMethod
        The methods, the baseline first.
    methods, curve, by_size, by_class, by_degree : list of dict
        Rows: a method each, and a method and an alpha, set size, class or range of degrees each. Classes come in the
        order of how many nodes they have, the largest first.
    front : list of dict
        Rows, a method each: its size and its gap over groups, with intervals, beside what chance gives.
    front_over : str
        What those groups are, in words.
    balls, links : list of dict
        Neighbourhoods with every method's coverage, and which of them are joined.
    left_out : int
        Nodes in no neighbourhood that is drawn.
    explorer : Explorer
        Some nodes with all that explains their sets.
    record : dict
        How the comparison was made, for programs (see `napsets.report.record`).
    tables : list of (title, rows)
        Reproduction tables.
    """

    title: str
    facts: list[tuple[str, str]]
    alpha: float
    hops: int
    class_names: list[str]
    comparison: Comparison
    verdict: Verdict
    shown: list[ShownMethod]
    methods: list[Row]
    curve: list[Row]
    by_size: list[Row]
    by_class: list[Row]
    by_degree: list[Row]
    front: list[Row]
    front_over: str
    balls: list[Row]
    links: list[Row]
    left_out: int
    explorer: Explorer
    record: Row
    tables: list[Table] = field(default_factory=list)


def page_data(
    comparison: Comparison,
    *,
    class_names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    title: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    tables: Sequence[Table] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ReportData:
    """Compute the page's contents.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned, with ``alphas=CURVE_ALPHAS``.
    class_names : sequence of str, optional
        What the classes are called.
    ids : array, optional
        What the nodes are called, if not as in the comparison.
    title, dataset, model : str, optional
        What stands at the top of the page.
    tables : sequence of (title, rows), optional
        Reproduction tables, each a title and a list of dictionaries.
    settings : mapping, optional
        More that ``napsets inspect --like`` should know: how the files were read.
    """
    found, graph, y = comparison, comparison.graph, comparison.labels
    if found.alphas != CURVE_ALPHAS:
        raise InvalidInputError(
            f"`comparison` must hold the error rates that the page draws, {len(CURVE_ALPHAS)} of them; it holds "
            f"{len(found.alphas)}. Make it with compare(..., alphas=CURVE_ALPHAS)."
        )
    names = _class_names(class_names, found.given.outputs.shape[1])
    shown, seed = shown_methods(found), found.settings.seed
    verdict = found.verdict(names)
    about = focus(found, verdict)
    front, front_over = _front_rows(found, shown, verdict)
    chosen = found.baseline.sets.nodes
    balls = neighbourhood_partition(graph, chosen, min_size=DRAWN_SIZE, seed=seed)[:DRAWN_BALLS]
    ball = ball_of_nodes(balls, graph.num_nodes)
    joined = quotient(graph, balls, seed)
    return ReportData(
        title=title or (f"Prediction sets for {dataset}" if dataset else "Prediction sets on a graph"),
        facts=_facts(found, dataset, model),
        alpha=found.alpha,
        hops=found.hops,
        class_names=names,
        comparison=found,
        verdict=verdict,
        shown=shown,
        methods=_method_rows(found, shown, y),
        curve=_curve_rows(found, shown),
        by_size=_size_rows(found, shown, y),
        by_class=_largest_first(
            _group_rows(found, shown, [coverage_by_class(r.sets, y) for r in found], "class", names)
        ),
        by_degree=_group_rows(found, shown, [coverage_by_degree(r.sets, y, graph) for r in found], "degree", None),
        front=front,
        front_over=front_over,
        balls=_ball_rows(found, shown, y, names, ball, joined.position),
        links=[
            {"source": int(a), "target": int(b), "edges": int(e)}
            for a, b, e in zip(joined.source, joined.target, joined.edges, strict=True)
        ],
        left_out=int((ball[chosen] < 0).sum()),
        explorer=explorer(graph, found, y, names=_node_names(found, ids), ball=ball, focus=about),
        record=record_of(found, settings or {}, found.results[about].name),
        tables=list(tables or []),
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


def _class_names(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [f"class {y}" for y in range(count)]
    if len(names) != count:
        raise InvalidInputError(f"`class_names` must have one name a class, {count}; got {len(names)}")
    return [shown_name(name) for name in names]


def _node_names(found: Comparison, ids: ArrayLike | None) -> npt.NDArray[Any]:
    graph = found.graph
    given = found.ids if ids is None else np.asarray(ids)
    if given is None:
        given = np.arange(graph.num_nodes) if graph.original_ids is None else graph.original_ids
    if given.shape != (graph.num_nodes,):
        raise InvalidInputError(f"`ids` must have one entry a node, {graph.num_nodes}; got shape {given.shape}")
    return given


def _facts(found: Comparison, dataset: str | None, model: str | None) -> list[tuple[str, str]]:
    graph = found.graph
    nodes, classes = found.given.outputs.shape
    halves = graph.num_edges if graph.directed else graph.num_edges // 2
    facts = [
        ("Dataset", dataset or ""),
        ("Model", model or ""),
        ("Graph", f"{nodes:,} nodes, {halves:,} edges, {classes} classes"),
        ("Calibration", f"{found.given.calibration.size:,} labelled nodes"),
        ("Judged on", f"{len(found.baseline.sets):,} other nodes"),
        ("Neighbourhood", f"{found.hops} hop{'s' * (found.hops != 1)}"),
        ("Error rate", f"alpha = {found.alpha:g}"),
        ("Score", type(found.settings.score).__name__),
        ("Seed", str(found.settings.seed)),
        ("Made with", f"napsets {__version__}"),
    ]
    return [(name, value) for name, value in facts if value]


def _share_row(covered: BoolArray) -> Row:
    low, high = wilson(float(covered.sum()), covered.size)
    return {"coverage": float(covered.mean()) if covered.size else math.nan, "low": low, "high": high}


def _method_rows(found: Comparison, shown: Sequence[ShownMethod], labels: IntArray) -> list[Row]:
    supported = np.all([np.isfinite(result.sets.thresholds) for result in found], axis=0)
    held = sum(part.size for part in found.partition) / len(found.baseline.sets)
    rows = []
    for method, result, row in zip(shown, found, found.rows(), strict=True):
        sets, told = result.sets, result.sets.summary()
        covered = sets.contains(labels)
        parts = [_rows_of(sets, part) for part in found.partition]
        shares = [float(covered[part].mean()) for part in parts]
        rows.append(
            row
            | _share_row(covered)
            | {
                "method": method.title,
                "name": method.name,
                "size_low": result.mean_size - Z * result.mean_size_se,
                "size_high": result.mean_size + Z * result.mean_size_se,
                "empty": told.empty,
                "singletons": told.singletons,
                "full": told.full,
                "supported": int(supported.sum()),
                "supported_coverage": float(covered[supported].mean()) if supported.any() else math.nan,
                "supported_size": float(sets.sizes[supported].mean()) if supported.any() else math.nan,
                "neighbourhoods": len(parts),
                "in_neighbourhoods": held,
                "lowest": min(shares, default=math.nan),
                "highest": max(shares, default=math.nan),
            }
        )
    return rows


def _rows_of(sets: PredictionSets, nodes: IntArray) -> IntArray:
    order = np.argsort(sets.nodes, kind="stable")
    return order[np.searchsorted(sets.nodes[order], nodes)]


def _curve_rows(found: Comparison, shown: Sequence[ShownMethod]) -> list[Row]:
    rows = []
    for method, result in zip(shown, found, strict=True):
        for a, alpha in enumerate(found.alphas):
            share = float(result.curve_coverage[a])
            low, high = wilson(share * len(result.sets), len(result.sets))
            target = round(1.0 - alpha, 6)
            rows.append(
                {
                    "method": method.title,
                    "alpha": alpha,
                    "target": target,
                    "coverage": share,
                    "mean_size": float(result.curve_size[a]),
                    "gap": share - target,
                    "gap_low": low - target,
                    "gap_high": high - target,
                }
            )
    return rows


def _size_rows(found: Comparison, shown: Sequence[ShownMethod], labels: IntArray) -> list[Row]:
    rows = []
    for method, result in zip(shown, found, strict=True):
        sizes, covered = result.sets.sizes, result.sets.contains(labels)
        for size in range(result.sets.num_classes + 1):
            mine = sizes == size
            if mine.any() or size <= int(sizes.max()):
                row = {"method": method.title, "size": size, "nodes": int(mine.sum()), "share": float(mine.mean())}
                rows.append(row | _share_row(covered[mine]))
    return rows


def _front_rows(found: Comparison, shown: Sequence[ShownMethod], verdict: Verdict) -> tuple[list[Row], str]:
    """Return size and gap of each method, over the groups that the verdict looks at."""
    kind, gaps = gaps_of(found)
    over = f"{gaps[0].groups.size} {'neighbourhoods' if kind == 'neighbourhood' else 'groups by degree'}"
    over += f", which hold {100 * gaps[0].share:.0f} % of the judged nodes"
    rows = []
    for method, result, gap in zip(shown, found, gaps, strict=True):
        spread = evenness(gap, replace(gap, coverage=np.full(gap.groups.size, 1.0 - found.alpha)))
        half = 0.0 if math.isnan(spread.low) else spread.high - spread.value
        room = 0.0 if math.isnan(result.mean_size_se) else Z * result.mean_size_se
        rows.append(
            {
                "method": method.title,
                "taken": result.name == verdict.method,
                "mean_size": result.mean_size,
                "size_low": result.mean_size - room,
                "size_high": result.mean_size + room,
                "coverage": result.coverage,
                "gap": gap.gap,
                "gap_low": max(0.0, gap.gap - half),
                "gap_high": gap.gap + half,
                "chance": gap.chance,
                "excess": gap.excess,
            }
        )
    return rows, over


def _largest_first(rows: list[Row]) -> list[Row]:
    """Return rows whose groups are numbered anew, the largest first."""
    sizes = {row["order"]: row["nodes"] for row in rows}
    place = {group: p for p, group in enumerate(sorted(sizes, key=lambda group: (-sizes[group], group)))}
    found = [row | {"order": place[row["order"]]} for row in rows]
    return sorted(found, key=lambda row: row["order"])


def _group_rows(
    found: Comparison,
    shown: Sequence[ShownMethod],
    groups: Sequence[GroupCoverage],
    name: str,
    group_names: Sequence[str] | None,
) -> list[Row]:
    rows = []
    bands: dict[int, tuple[float, float]] = {}
    for method, grouped in zip(shown, groups, strict=True):
        for g, group in enumerate(grouped.group):
            count, share = int(grouped.count[g]), float(grouped.coverage[g])
            if count == 0:
                continue
            low, high = wilson(share * count, count)
            if count not in bands:
                bands[count] = chance_band(count, 1.0 - found.alpha)
            rows.append(
                {
                    "method": method.title,
                    name: group_names[g] if group_names is not None else _range(group),
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


def _range(group: Any) -> str:
    low, high = group
    return str(low) if low == high else f"{low}–{high}"


def _ball_rows(
    found: Comparison,
    shown: Sequence[ShownMethod],
    labels: IntArray,
    names: list[str],
    ball: IntArray,
    position: Any,
) -> list[Row]:
    nodes = found.baseline.sets.nodes
    mine = ball[nodes]
    covered = [result.sets.contains(labels) for result in found]
    rows = []
    for b in range(position.shape[0]):
        inside = mine == b
        counts = np.bincount(labels[nodes[inside]], minlength=len(names))
        row: Row = {
            "ball": b,
            "x": float(position[b, 0]),
            "y": float(position[b, 1]),
            "nodes": int(inside.sum()),
            "judged": bool(inside.sum() >= JUDGED_SIZE),
            "class": names[int(counts.argmax())],
            "class_share": float(counts.max() / counts.sum()),
        }
        for method, result, hit in zip(shown, found, covered, strict=True):
            row[method.title] = float(hit[inside].mean())
            row[f"{method.title} size"] = float(result.sets.sizes[inside].mean())
        rows.append(row)
    return rows
