"""Judging a file of intervals by numbers that became known."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import coverage_gap
from napsets.evaluation.groups import groups_by_degree, groups_of_partition
from napsets.evaluation.interval_judgement import judge_intervals
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.evaluation.promises import coverage_band
from napsets.evaluation.sets_files import by_named_group, labels_used_twice
from napsets.files.ids import IdKind
from napsets.files.intervals_reader import IntervalsFile
from napsets.files.regression import read_targets
from napsets.graph import Graph
from napsets.intervals import PredictionIntervals

__all__ = ["LabelledIntervals", "evaluate_intervals", "label_intervals"]


@dataclass(frozen=True, eq=False)
class LabelledIntervals:
    """The intervals of a file whose nodes have a target.

    Attributes
    ----------
    file : IntervalsFile
        The file.
    intervals : PredictionIntervals
        The intervals that can be judged; `nodes` are rows of the file.
    targets : numpy.ndarray
        A number for each row of the file, NaN where there is none.
    notes : list of str
        What was left out, and whether targets that calibrated judge.
    """

    file: IntervalsFile
    intervals: PredictionIntervals
    targets: FloatArray
    notes: list[str]


def label_intervals(
    file: IntervalsFile, targets: str | os.PathLike[str], *, ids: IdKind = "auto", silent: bool = False
) -> LabelledIntervals:
    """Find the target of each interval's node; intervals without one, and targets without an interval, are left out.

    Parameters
    ----------
    file : IntervalsFile
        The intervals.
    targets : path
        As in `read_targets`.
    ids, silent
        As in `label_sets`.
    """
    notes: list[str] = []
    y = read_targets(targets, file.ids, ids=ids, skip_unknown=True, notes=notes)
    rows = np.flatnonzero(~np.isnan(y))
    if rows.size == 0:
        raise InvalidInputError(
            f"no node of `sets` has a target in {os.fspath(targets)}. Check that both files call the nodes alike."
        )
    told = ([] if silent else notes) + labels_used_twice(rows.size, file.metadata)
    return LabelledIntervals(file, file.intervals[rows], y, told)


def evaluate_intervals(
    labelled: LabelledIntervals,
    *,
    graph: Graph | None = None,
    radius: int = 2,
    min_size: int = 30,
    seed: int = 0,
    groups: npt.NDArray[np.str_] | None = None,
) -> dict[str, Any]:
    """Return what the intervals are worth, under the usual names, for tables and JSON.

    ``coverage_low`` and ``coverage_high`` are where chance puts coverage in 95 of 100 draws, if it is as asked for: of
    the judged nodes and, where the file says how many labels set the level, of those too.

    Parameters
    ----------
    labelled : LabelledIntervals
        The intervals and the targets that judge them.
    graph, radius, min_size, seed, groups
        As in `evaluate_sets`.
    """
    intervals, y = labelled.intervals, labelled.targets
    found: dict[str, Any] = {}
    told: dict[str, Any] = {}
    partition = None
    if graph is not None:
        intervals = replace(intervals, num_nodes=graph.num_nodes)
        y = np.append(y, np.full(graph.num_nodes - y.size, np.nan))
        partition = neighbourhood_partition(graph, intervals.nodes, radius=radius, min_size=min_size, seed=seed)
        found["degree"] = groups_by_degree(graph, nodes=intervals.nodes)
        found["neighbourhood"] = groups_of_partition(partition, graph.num_nodes)
        told = {
            "neighbourhoods": len(partition),
            "share_in_neighbourhoods": sum(part.size for part in partition) / len(intervals),
            "coverage_by_degree": _by_degree(intervals, y, graph, found["degree"]),
        }
    if groups is not None:
        found["group"] = np.append(groups, np.zeros(y.size - groups.size, dtype=groups.dtype))
        gap = coverage_gap(intervals, y, found["group"])
        own = found["group"][intervals.nodes]
        told["coverage_by_group"] = [
            row | {"mean_width": _finite_mean(intervals.widths[own == row["group"]])} for row in by_named_group(gap)
        ]
    worth = judge_intervals(intervals, y, partition=partition, groups=found).row()
    if graph is None:
        del worth["pccv"], worth["pccv_chance"]
    low, high = _band(len(intervals), intervals.alpha, labelled.file.metadata.get("level_labels"))
    worth |= {"unlabelled": len(labelled.file.intervals) - len(intervals), "alpha": intervals.alpha}
    return worth | {"coverage_low": low, "coverage_high": high} | told


def _band(judged: int, alpha: float, labels: int | None) -> tuple[float, float]:
    """Return where chance puts coverage: that of the judged nodes alone, where nothing is known of the labels."""
    if labels is not None:
        return coverage_band(labels, alpha, judged)
    from scipy.stats import binom

    low, high = (float(binom.ppf(tail, judged, 1.0 - alpha)) / judged for tail in (0.025, 0.975))
    return low, high


def _by_degree(intervals: PredictionIntervals, y: FloatArray, graph: Graph, groups: IntArray) -> list[dict[str, Any]]:
    """Return coverage and width by the degree of the node, under the names of `evaluate_sets`."""
    gap = coverage_gap(intervals, y, groups)
    degrees, own = graph.degrees[intervals.nodes], groups[intervals.nodes]
    return [
        {
            "group": f"{degrees[own == group].min()}–{degrees[own == group].max()}",
            "nodes": int(count),
            "coverage": float(share),
            "mean_width": _finite_mean(intervals.widths[own == group]),
        }
        for group, count, share in zip(gap.groups, gap.sizes, gap.coverage, strict=True)
    ]


def _finite_mean(widths: FloatArray) -> float:
    """Return the mean of finite widths; NaN where there is none."""
    finite = widths[np.isfinite(widths)]
    return float(finite.mean()) if finite.size else math.nan
