"""Evaluation of a file of predictions, sets or intervals, with labels or targets that became known."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, FloatArray, IntArray
from napsets.checks.values import Record, Values
from napsets.errors import InvalidInputError
from napsets.evaluation.finding_sentences import weak_facts
from napsets.evaluation.findings import weak_numbers
from napsets.evaluation.judgement import Judgement, judge_rows
from napsets.evaluation.kinds import kind_of
from napsets.evaluation.metrics import (
    FIFTHS,
    GroupCoverage,
    coverage_by_class,
    coverage_by_degree,
    finite_mean,
    groups_by_neighbourhood,
)
from napsets.files.labels import ClassNames, read_labels, read_targets
from napsets.files.prediction_file import PredictionFile
from napsets.files.reading import PLAIN, Reading
from napsets.graph import Graph
from napsets.groups import by_quantiles
from napsets.levels import chance_band, coverage_band, fewest_ranks
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class LabelledFile:
    """The rows of a file of predictions whose nodes have a truth."""

    file: PredictionFile  #: The file.
    prediction: Any  #: The rows that can be judged; `nodes` are rows of the file.
    #: A label for each row of the file, −1 where there is none; or a number, NaN where there is none.
    truth: AnyArray
    notes: list[str]  #: What was left out, and whether labels that calibrated judge.


def label_file(
    file: PredictionFile, truth: PathLike, reading: Reading = PLAIN, *, silent: bool = False
) -> LabelledFile:
    """Find the truth of each row's node; rows without one, and truth without a row, are left out.

    Parameters
    ----------
    file : PredictionFile
        The predictions.
    truth : path
        As in `read_labels` or `read_targets`.
    reading : Reading
        How to read the truth. Labels that are numbers of classes need a file that lists its classes.
    silent : bool
        Do not mention labels without a row in the notes.
    """
    notes: list[str] = []
    leaf = _LEAVES[type(file.prediction)]
    prediction, y = leaf.read_truth(file, truth, replace(reading, skip_unknown=True), notes)
    rows = np.flatnonzero(prediction.known(y))
    if rows.size == 0:
        raise InvalidInputError(
            f"no node of `sets` has a {prediction.truth_column} in {os.fspath(truth)}. Check that both files name the "
            f"nodes in the same way, and that not all {prediction.truth_column}s are empty or NaN."
        )
    notes = [note for note in notes if not (silent and note.startswith("left out:"))]
    return LabelledFile(file, prediction[rows], y, notes + labels_used_twice(rows.size, file.metadata))


def labels_used_twice(judged: int, metadata: Values) -> list[str]:
    """Count the judged nodes that also calibrated, as far as the counts in the file prove it.

    Examples
    --------
    >>> labels_used_twice(50, {"num_nodes": 100, "calibration": 50})
    []
    >>> labels_used_twice(60, {"num_nodes": 100, "calibration": 50})[0][:61]
    'at least 10 of the 60 evaluated nodes were calibration nodes '
    """
    labels, nodes = metadata.get("calibration"), metadata.get("num_nodes")
    both = 0 if labels is None or nodes is None else judged + labels - nodes
    if both <= 0:
        return []
    return [
        f"at least {both:,} of the {judged:,} evaluated nodes were calibration nodes ({labels:,} of all {nodes:,} "
        f"nodes were): coverage can mislead there, above all within groups. Evaluate on labels that did not calibrate"
    ]


def evaluate_file(
    labelled: LabelledFile,
    strata: Sequence[tuple[int, int]] | None = None,
    *,
    graph: Graph | None = None,
    radius: int = 2,
    min_size: int = 30,
    seed: int = 0,
    groups: npt.NDArray[np.str_] | None = None,
) -> Record:
    """Return the metrics of the predictions, under the usual names, for tables and JSON.

    ``coverage_low`` and ``coverage_high`` are the range of coverage in 95 of 100 draws, if it is at its target: the
    chance of the judged nodes and, where the file says how many labels set the level, of those too.

    Parameters
    ----------
    labelled : LabelledFile
        The predictions and the truth that judges them.
    strata : sequence of (low, high), optional
        As in `sscv`, for sets; by default `size_strata`.
    graph : Graph, optional
        From `read_graph_around`: adds PCCV over neighbourhoods of the judged nodes, and coverage by degree.
    radius, min_size, seed
        As in `neighbourhood_partition`.
    groups : numpy.ndarray, optional
        The name of the group of each node of the file, empty for none: adds coverage by group, compared with chance.
    """
    prediction, leaf = labelled.prediction, _LEAVES[type(labelled.prediction)]
    nodes, truth = prediction.nodes, labelled.truth[prediction.nodes]
    groupings: dict[str, AnyArray] = leaf.groups(truth)
    if graph is not None:
        groupings["degree"] = by_quantiles(graph.degrees, FIFTHS, nodes)[nodes]
        groupings["neighbourhood"] = groups_by_neighbourhood(graph, nodes, radius, min_size, seed)[nodes]
    if groups is not None:
        groupings["group"] = groups[nodes]
    ranges = kind_of(type(prediction)).check_strata(strata, prediction)
    neighbourhoods = groupings.get("neighbourhood")
    judgement = judge_rows(prediction, truth, strata=ranges, neighbourhoods=neighbourhoods, groups=groupings)
    metrics = judgement.row()
    if graph is None:
        del metrics["pccv"], metrics["pccv_chance"]
    labels = labelled.file.metadata.get("level_labels")
    # Where nothing is known of the labels, chance is that of the judged nodes alone.
    judged, alpha = len(prediction), prediction.alpha
    low, high = chance_band(judged, 1.0 - alpha) if labels is None else coverage_band(labels, alpha, judged)
    metrics |= {"unlabelled": len(labelled.file.prediction) - judged, "alpha": alpha}
    gaps = {what: gap for what, gap in judgement.gaps.items() if what in ("class", "group")}
    names = getattr(prediction, "class_names", None)
    found = [weak_numbers(gap, what, names, level_labels=labels) for what, gap in gaps.items()]
    metadata = labelled.file.metadata
    weak = [
        f"{weak_facts(numbers)}. {_what_helps(numbers['what'], alpha, metadata)}"
        for numbers in found
        if numbers["groups"]
    ]
    metrics |= {"coverage_low": low, "coverage_high": high, "weak": weak}
    metrics |= leaf.more(labelled.file, prediction, truth)
    if graph is not None:
        metrics["neighbourhoods"] = int(judgement.gaps["neighbourhood"].groups.size)
        metrics["share_in_neighbourhoods"] = judgement.gaps["neighbourhood"].share
        metrics["coverage_by_degree"] = leaf.by_degree(prediction, truth, graph, judgement, groupings["degree"])
    if groups is not None:
        gap = judgement.gaps["group"]
        metrics["coverage_by_group"] = [
            {"group": str(name), "count": int(count), "coverage": float(share)}
            | leaf.size_in_group(prediction.sizes[groupings["group"] == name])
            for name, count, share in zip(gap.groups, gap.sizes, gap.coverage, strict=True)
        ]
    return metrics


def _what_helps(what: str, alpha: float, metadata: Record) -> str:
    """Return a remedy for groups that are covered too little; the labels that calibrated are not in the file."""
    more = "What helps: more of their labels when the sets are made"
    described = metadata.get("method_description")
    if isinstance(described, Mapping) and described.get("groups") is not None:
        return more  # they have their own thresholds already
    one, by = ("class", "class") if what == "class" else ("group", "FILE")
    unless = "" if described else ", unless the sets were made with it"
    return (
        f"{more}, or `napsets predict --by {by}`{unless}: it gives each {one} its own threshold that has at least "
        f"{fewest_ranks(alpha)} of the labels that set the level"
    )


# -- what differs ------------------------------------------------------------------------------------------------------


class _Sets:
    def read_truth(
        self, file: PredictionFile, path: PathLike, reading: Reading, notes: list[str]
    ) -> tuple[Prediction, AnyArray]:
        """Return the file's prediction, with what the truth adds to it, and the truth of each row."""
        if file.complete:
            return file.sets, read_labels(path, file.ids, file.class_names, reading, notes=notes, strict=True).values
        y, classes = _labels_of_unlisted_classes(file, path, reading, notes)
        missing = np.zeros((len(file.sets), len(classes) - file.sets.num_classes), dtype=bool)
        return replace(file.sets, member=np.hstack([file.sets.member, missing]), class_names=classes), y

    def groups(self, truth: IntArray) -> Record:
        """Return the groups that follow from the truth alone."""
        return {"class": truth}

    def by_degree(
        self, sets: PredictionSets, truth: IntArray, graph: Graph, judgement: Judgement, groups: IntArray
    ) -> list[Record]:
        """Return coverage and size by the degree of the node."""
        # Labels count the classes here, whatever these are called.
        by_degree = coverage_by_degree(replace(sets, class_names=None), truth, graph, per="set")
        ranges: Any = by_degree.group
        return _group_rows(by_degree, [f"{low}–{high}" for low, high in ranges])

    def size_in_group(self, sizes: AnyArray) -> dict[str, float]:
        """Summarise the sizes in a group of the user's own."""
        return {}

    def more(self, file: PredictionFile, sets: PredictionSets, truth: IntArray) -> Record:
        """Compute the figures that only this kind of prediction has."""
        by_class = coverage_by_class(replace(sets, class_names=None), truth, per="set")
        rows = _group_rows(by_class, list(sets.class_names or ()))
        return ({} if file.complete else {"full_rate": math.nan}) | {"coverage_by_class": rows}


def _labels_of_unlisted_classes(
    file: PredictionFile, path: PathLike, reading: Reading, notes: list[str]
) -> tuple[IntArray, list[str]]:
    """Read labels where the file does not list its classes: they are those of its sets, and those of the labels."""
    labels = read_labels(path, file.ids, None, reading, notes=notes)
    names, listed = labels.class_names or [], ClassNames(file.class_names)
    places = [listed.named(name) for name in names]
    new = [name for name, place in zip(names, places, strict=True) if place < 0]
    if names and len(new) == len(names):
        notes.append(
            f"no set has any of the labels {', '.join(names[:5])}{', …' if len(names) > 5 else ''}. If those are class "
            f"numbers, write the sets to .parquet, which lists its classes"
        )
    rest = iter(range(len(listed), len(listed) + len(new)))
    codes = np.array([next(rest) if place < 0 else place for place in places] + [-1], dtype=np.int64)
    return codes[labels.values], [*file.class_names, *new]


def _group_rows(groups: GroupCoverage, names: list[str], size: str = "mean_size") -> list[Record]:
    return [
        {"group": name, "nodes": int(count), "coverage": float(share), size: float(average)}
        for name, count, share, average in zip(names, groups.count, groups.coverage, groups.mean_size, strict=True)
    ]


class _Intervals:
    def read_truth(
        self, file: PredictionFile, path: PathLike, reading: Reading, notes: list[str]
    ) -> tuple[Prediction, AnyArray]:
        return file.prediction, read_targets(path, file.ids, reading, notes=notes)

    def groups(self, truth: FloatArray) -> Record:
        return {}

    def by_degree(
        self, intervals: PredictionIntervals, truth: FloatArray, graph: Graph, judgement: Judgement, groups: IntArray
    ) -> list[Record]:
        gap, degrees = judgement.gaps["degree"], graph.degrees[intervals.nodes]
        rows = [groups == group for group in gap.groups]
        names = [f"{degrees[inside].min()}–{degrees[inside].max()}" for inside in rows]
        widths = np.array([finite_mean(intervals.widths[inside]) for inside in rows])
        return _group_rows(GroupCoverage([], gap.sizes, gap.coverage, widths), names, "mean_width")

    def size_in_group(self, sizes: AnyArray) -> dict[str, float]:
        return {"mean_width": finite_mean(sizes)}

    def more(self, file: PredictionFile, intervals: PredictionIntervals, truth: FloatArray) -> Record:
        return {}


_LEAVES: Mapping[type[Prediction], _Sets | _Intervals] = {PredictionSets: _Sets(), PredictionIntervals: _Intervals()}
