"""What the page about sets shows, as plain rows: computed by pure functions, rendered elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.comparison import Comparison
from napsets.evaluation.metrics import coverage_by_class, coverage_by_degree
from napsets.evaluation.side_by_side import finite_together
from napsets.evaluation.verdict import Verdict
from napsets.report.explorer import Explorer, explorer
from napsets.report.names import shown_name
from napsets.report.record import record_of
from napsets.report.rows import (
    Row,
    Table,
    Z,
    check_curve,
    cover_rows,
    curve_rows,
    cut_balls,
    facts,
    front_rows,
    group_rows,
    node_names,
    range_names,
    share_row,
)
from napsets.report.shown import ShownMethod, focus, shown_methods

__all__ = ["ReportData", "page_data"]


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
    check_curve(found)
    names = _class_names(class_names, found.given.outputs.shape[1])
    shown = shown_methods(found)
    verdict = found.verdict(names)
    about = focus(found, verdict)
    sizes = [(result.mean_size, result.mean_size_se) for result in found]
    front, front_over = front_rows(found, shown, verdict, sizes, "mean_size")
    balls = cut_balls(found)
    by_class, by_degree = (
        [coverage_by_class(result.sets, y) for result in found],
        [coverage_by_degree(result.sets, y, graph) for result in found],
    )
    return ReportData(
        title=title or (f"Prediction sets for {dataset}" if dataset else "Prediction sets on a graph"),
        facts=facts(found, dataset, model, kinds=f", {len(names)} classes"),
        alpha=found.alpha,
        hops=found.hops,
        class_names=names,
        comparison=found,
        verdict=verdict,
        shown=shown,
        methods=_method_rows(found, shown, y),
        curve=curve_rows(found, shown, {"mean_size": "curve_size"}),
        by_size=_size_rows(found, shown, y),
        by_class=_largest_first(group_rows(shown, by_class, found.alpha, "class", names)),
        by_degree=group_rows(shown, by_degree, found.alpha, "degree", range_names(by_degree[0].group)),
        front=front,
        front_over=front_over,
        balls=balls.rows(found, shown, lambda inside: _mostly(y[found.nodes[inside]], names), "size"),
        links=balls.links,
        left_out=balls.left_out,
        explorer=explorer(graph, found, y, names=node_names(found, ids), ball=balls.of_node, focus=about),
        record=record_of(found, settings or {}, found.results[about].name),
        tables=list(tables or []),
    )


def _class_names(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return [f"class {y}" for y in range(count)]
    if len(names) != count:
        raise InvalidInputError(f"`class_names` must have one name a class, {count}; got {len(names)}")
    return [shown_name(name) for name in names]


def _method_rows(found: Comparison, shown: Sequence[ShownMethod], labels: IntArray) -> list[Row]:
    supported = finite_together([result.sets.thresholds for result in found])
    rows = []
    for result, row in zip(found, cover_rows(found, shown), strict=True):
        sets, told = result.sets, result.sets.summary()
        covered = sets.contains(labels)
        # A method that has support nowhere is passed over, and has no size where it has.
        mine = supported & np.isfinite(sets.thresholds)
        rows.append(
            row
            | {
                "size_low": result.mean_size - Z * result.mean_size_se,
                "size_high": result.mean_size + Z * result.mean_size_se,
                "empty": told.empty,
                "singletons": told.singletons,
                "full": told.full,
                "supported": int(supported.sum()),
                "supported_coverage": float(covered[mine].mean()) if mine.any() else math.nan,
                "supported_size": float(sets.sizes[mine].mean()) if mine.any() else math.nan,
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
                rows.append(row | share_row(covered[mine]))
    return rows


def _largest_first(rows: list[Row]) -> list[Row]:
    """Return rows whose groups are numbered anew, the largest first."""
    sizes = {row["order"]: row["nodes"] for row in rows}
    place = {group: p for p, group in enumerate(sorted(sizes, key=lambda group: (-sizes[group], group)))}
    found = [row | {"order": place[row["order"]]} for row in rows]
    return sorted(found, key=lambda row: row["order"])


def _mostly(labels: IntArray, names: Sequence[str]) -> Row:
    """Return which class most of some nodes have, and how many of them."""
    counts = np.bincount(labels, minlength=len(names))
    return {"class": names[int(counts.argmax())], "class_share": float(counts.max() / counts.sum())}
