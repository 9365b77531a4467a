"""The explorer's data: for some nodes and every method, what `napsets inspect` says, with the scores to draw.

It is packed (gzip, base64), and the page unpacks it when the explorer is opened.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.advice.evidence import Explainer, explainer_of
from napsets.advice.explanation import Explained, TextTable
from napsets.advice.inspection import IntervalInspection, SetInspection, inspect_row
from napsets.advice.threshold import NodeInspection
from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.checks.text import shown_name
from napsets.methods import Calibrated
from napsets.report.charts import HOP_COLOURS
from napsets.report.parts import Parts, Shown
from napsets.report.rows import Row

#: How many nodes can be explored, and how many of them are shown for each reason.
EXPLORED_NODES, NODES_PER_REASON = 100, 15
#: With more methods or classes there is room for fewer nodes: entries of all tables.
_ENTRIES = 12_000
#: Labels that a node's table shows, the best first; and those that are named as its set.
_LABELS, _NAMED = 12, 24
#: Labelled neighbours that are named.
_NEIGHBOURS = 8
#: Bins of a histogram of scores.
BINS = 40
#: Columns of `Explorer.reason`.
RANDOM, FOCUS_COVERS, FOCUS_MISSES, TOO_LITTLE, EMPTY, LARGEST = range(6)


@dataclass(frozen=True, eq=False)
class Explorer:
    """Nodes that can be looked at, and what explains their predictions.

    Attributes
    ----------
    nodes : numpy.ndarray
        The nodes, ascending.
    names : list of str
        What they are called.
    reasons : list of str
        Why a node can be explored.
    reason : numpy.ndarray
        Shape (nodes, reasons): why each node was chosen.
    start : int
        The place of the node that is shown first.
    shown : list of list of dict
        For each node and method: the prediction, facts, tables, bars of scores, and marks among them.
    """

    nodes: IntArray
    names: list[str]
    reasons: list[str]
    reason: BoolArray
    start: int
    shown: list[list[Row]]

    @property
    def counted(self) -> list[tuple[int, str, int]]:
        """The reasons that some nodes were chosen for: place, name, and how many nodes."""
        counts = self.reason.sum(axis=0).tolist()
        return [(r, name, counts[r]) for r, name in enumerate(self.reasons) if counts[r]]


def explore(shown: Shown, parts: Parts, progress: Callable[[int, int], None] | None = None) -> Explorer:
    """Choose nodes and explain the prediction of every method for each."""
    comparison, place = shown.comparison, shown.place
    entries = len(shown.titles) * (20 + min(len(parts.class_names), _LABELS))
    rows, reason = _sample(shown, max(20, min(EXPLORED_NODES, _ENTRIES // entries)))
    methods = [result.calibrated for result in comparison]
    explainers = _explainers(methods)
    edges = [_edges(method) for method in methods]
    explained: list[list[Row]] = []
    for done, row in enumerate(rows.tolist()):
        of_node = []
        for result, explainer, ends in zip(comparison, explainers, edges, strict=True):
            node = int(comparison.nodes[row])
            evidence = None if explainer is None else explainer.of(node)
            seen = inspect_row(result.calibrated, result.prediction, row, evidence)
            of_node.append(_of(shown, parts, result.calibrated, seen, ends))
        explained.append(of_node)
        if progress is not None:
            progress(done + 1, rows.size)
    supports = np.array([of_node[place]["support"] for of_node in explained])
    # It opens with a node where the method makes the difference, with fair support.
    telling = np.flatnonzero(reason[:, FOCUS_COVERS] & (supports > 0))
    candidates = telling if telling.size else np.arange(rows.size)
    baseline, other = shown.titles[0], shown.titles[place]
    return Explorer(
        nodes=comparison.nodes[rows],
        names=[shown_name(name) for name in shown.names[comparison.nodes[rows]].tolist()],
        reasons=[
            "random", f"{other} covers, {baseline} misses", f"{baseline} covers, {other} misses", "too little support",
            *parts.extremes,
        ],
        reason=reason,
        start=int(candidates[np.abs(supports[candidates] - 100).argmin()]),
        shown=explained,
    )  # fmt: skip


def pack(text: str) -> str:
    """Return text as gzip in base64; the same text gives the same bytes."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _sample(shown: Shown, limit: int) -> tuple[IntArray, BoolArray]:
    """Choose rows of the judged nodes: some for each telling reason, and as many random ones as there is room for."""
    result, covered = shown.comparison.results[shown.place], shown.covered()
    short = np.isinf(result.prediction.thresholds)
    # The largest among those with a finite threshold: those without one are a reason of their own.
    sizes = np.sort(result.sizes[~short])
    large = ~short & (result.sizes >= (sizes[-NODES_PER_REASON:][0] if sizes.size else 0))
    marks = {
        FOCUS_COVERS: covered[shown.place] & ~covered[0],
        FOCUS_MISSES: covered[0] & ~covered[shown.place],
        TOO_LITTLE: short,
        EMPTY: result.sizes == 0,
        LARGEST: large,
    }
    rng = np.random.default_rng(shown.comparison.settings["seed"])
    reason = np.zeros((result.nodes, 1 + len(marks)), dtype=bool)
    share = max(1, min(NODES_PER_REASON, limit // (2 * reason.shape[1])))
    for column, mark in marks.items():
        reason[rng.permutation(np.flatnonzero(mark))[:share], column] = True
    room = limit - int(reason.any(axis=1).sum())
    reason[rng.permutation(result.nodes)[:room], RANDOM] = True
    rows = np.flatnonzero(reason.any(axis=1))
    rows = rows[np.argsort(shown.comparison.nodes[rows], kind="stable")]
    return rows, reason[rows]


def _explainers(methods: Sequence[Calibrated]) -> list[Explainer | None]:
    """Return the explanation of evidence for each method; methods of one score share it."""
    once: dict[int, Explainer | None] = {}
    for method in methods:
        if id(method.score) not in once:
            once[id(method.score)] = explainer_of(method)
    return [once[id(method.score)] for method in methods]


def _edges(method: Calibrated) -> FloatArray:
    """Return the ends of the bins in which the scores of a method's calibration nodes are counted."""
    reference = method.scored.reference
    low, high = float(reference.scores.min()), float(reference.scores.max())
    if reference.predicted is not None:  # scores of labels lie between 0 and 1, at the least
        low, high = min(0.0, low), max(1.0, high)
    elif low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, BINS + 1)


def _of(shown: Shown, parts: Parts, calibrated: Calibrated, seen: NodeInspection, edges: FloatArray) -> Row:
    """Return the entry of the page for one node and method."""
    names = shown.names
    explained = Explained(
        seen, lambda nodes: [shown_name(name) for name in names[nodes].tolist()], shown.comparison.truth,
        parts.class_names, _NEIGHBOURS,
    )  # fmt: skip
    truth, put = shown.comparison.truth[seen.node], shown.words.put
    facts = [[put(name), value] for name, value in explained.head().rows if name not in ("set", "interval")]
    tables = [_shortened(table, parts, seen, truth) for table in explained.tables(calibration=False)]
    if isinstance(seen, SetInspection):
        outcome, covers = _named(seen, parts.class_names), bool(seen.member[truth])
        true = parts.class_names[int(truth)]
        marks = [
            [name, float(score), bool(inside)]
            for name, score, inside in zip(parts.class_names, seen.scores, seen.member, strict=True)
        ]
    else:
        assert isinstance(seen, IntervalInspection)
        endless = np.isinf(seen.threshold)
        outcome = [shown.words.full if endless else f"{seen.lower:.5g} to {seen.upper:.5g}"]
        covers, true = bool(seen.lower <= truth <= seen.upper), f"{truth:.5g}"
        score = np.clip(calibrated.score.at(np.array([seen.node]), np.array([truth]))[0], edges[0], edges[-1])
        marks = [[true, float(score), covers]]
    return {
        "outcome": outcome, "true": true, "covers": covers, "facts": facts, "reason": put(seen.reason()),
        "tables": [_worded(table, parts.class_names, put) for table in tables],
        "bars": _bars(seen, edges), "marks": marks, "low": float(edges[0]), "high": float(edges[-1]),
        "threshold": seen.threshold if np.isfinite(seen.threshold) else None, "support": seen.support,
    }  # fmt: skip


def _worded(table: TextTable, classes: Sequence[str], put: Callable[[str], str]) -> list[Any]:
    """Return a table for the page, with the user's words in what is no name of a class or node."""
    head = [name if name in classes else put(name) for name in table.head]
    kinds = table.head[0] == "kind"  # of evidence; elsewhere rows are of nodes and classes
    rows = [[put(str(row[0])), *row[1:]] if kinds else list(row) for row in table.rows]
    return [put(table.title), head, rows, table.left, put(table.note)]


def _named(seen: SetInspection, classes: Sequence[str]) -> list[str]:
    """Return the labels of a set, the best first; of many only some, and how many more there are."""
    inside = np.flatnonzero(seen.member)
    inside = inside[np.argsort(seen.scores[inside], kind="stable")]
    more = [f"and {inside.size - _NAMED} more"] if inside.size > _NAMED else []
    return [classes[y] for y in inside[:_NAMED]] + more


def _shortened(table: TextTable, parts: Parts, seen: NodeInspection, truth: float) -> TextTable:
    """Return a table of labels with the best of many and the true one; other tables unchanged."""
    if len(table.rows) <= _LABELS or not isinstance(seen, SetInspection):
        return table
    true = parts.class_names[int(truth)]
    rows = [row for r, row in enumerate(table.rows) if r < _LABELS or row[0] == true]
    return TextTable(table.title, table.head, rows, table.left, f"{len(rows)} of {len(table.rows)} are shown.")


def _bars(seen: NodeInspection, edges: FloatArray) -> list[Row]:
    """Return the weighted histogram of the scores that a threshold is a quantile of, by hop where hops count."""
    bars = []
    for hop in np.unique(seen.neighbour_hops).tolist():
        inside = seen.neighbour_hops == hop
        scores, weights = seen.neighbour_scores[inside], seen.neighbour_weights[inside]
        counts = np.histogram(scores, bins=edges)[0]
        masses = np.histogram(scores, bins=edges, weights=weights)[0]
        name = "all calibration nodes" if hop == 0 else f"hop {hop}" if hop <= HOP_COLOURS else "later hops"
        bars += [
            {"group": name, "from": float(edges[b]), "to": float(edges[b + 1]), "count": int(counts[b]),
             "mass": round(float(masses[b]), 6)}
            for b in np.flatnonzero(counts)
        ]  # fmt: skip
    return bars
