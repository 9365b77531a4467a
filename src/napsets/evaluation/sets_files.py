"""Judging a sets file by labels that became known."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.gaps import CoverageGap, coverage_gap
from napsets.evaluation.groups import groups_by_class, groups_by_degree, groups_of_partition
from napsets.evaluation.judgement import judge
from napsets.evaluation.metrics import (
    GroupCoverage,
    coverage_by_class,
    coverage_by_degree,
    neighbourhood_partition,
)
from napsets.files.classes import ClassNames, LabelsAre
from napsets.files.edges import read_edges
from napsets.files.formats import arrow, open_table
from napsets.files.ids import IdKind, NodeIds, id_column
from napsets.files.inputs import alike
from napsets.files.labels import read_labels
from napsets.files.sets_reader import SetsFile
from napsets.graph import Graph
from napsets.sets import PredictionSets

__all__ = ["LabelledSets", "by_named_group", "evaluate_sets", "graph_around", "label_sets", "labels_used_twice"]


@dataclass(frozen=True, eq=False)
class LabelledSets:
    """The sets of a file whose nodes have a label.

    Attributes
    ----------
    file : SetsFile
        The file.
    sets : PredictionSets
        The sets that can be judged; `nodes` are rows of the file.
    labels : numpy.ndarray
        A label for each row of the file, −1 where there is none.
    notes : list of str
        What was left out, and whether labels that calibrated judge.
    """

    file: SetsFile
    sets: PredictionSets
    labels: IntArray
    notes: list[str]


def label_sets(
    file: SetsFile,
    labels: str | os.PathLike[str],
    *,
    ids: IdKind = "auto",
    labels_are: LabelsAre = "auto",
    silent: bool = False,
) -> LabelledSets:
    """Find the label of each set's node; sets without one, and labels without a set, are left out.

    Parameters
    ----------
    file : SetsFile
        The sets.
    labels : path
        As in `read_labels`.
    ids : {"auto", "integer", "string"}
        How to read ids, as those of the sets were read.
    labels_are : {"auto", "names", "indices"}
        As in `read_labels`. Numbers need a file that lists its classes.
    silent : bool
        Say nothing in the notes of labels without a set.
    """
    notes: list[str] = []
    sets = file.sets
    if file.complete:
        y, _ = read_labels(
            labels, file.ids, file.class_names, ids=ids, skip_unknown=True, labels_are=labels_are, notes=notes
        )
    else:
        y, classes = _labels_of_unlisted_classes(file, labels, ids, labels_are, notes)
        missing = np.zeros((len(sets), len(classes) - sets.num_classes), dtype=bool)
        sets = replace(sets, member=np.hstack([sets.member, missing]), class_names=classes)
    rows = np.flatnonzero(y >= 0)
    if rows.size == 0:
        raise InvalidInputError(
            f"no node of `sets` has a label in {os.fspath(labels)}. Check that both files call the nodes alike."
        )
    told = [note for note in notes if not (silent and note.startswith("left out:"))]
    return LabelledSets(file, _rows(sets, rows), y, told + labels_used_twice(rows.size, file.metadata))


def labels_used_twice(judged: int, metadata: Mapping[str, Any]) -> list[str]:
    """Say how many of the judged nodes calibrated, as far as the counts that a file records prove it.

    Examples
    --------
    >>> labels_used_twice(50, {"num_nodes": 100, "calibration": 50})
    []
    >>> labels_used_twice(60, {"num_nodes": 100, "calibration": 50})[0][:47]
    'at least 10 of the 60 judged nodes calibrated, '
    """
    labels, nodes = metadata.get("calibration"), metadata.get("num_nodes")
    both = 0 if labels is None or nodes is None else judged + labels - nodes
    if both <= 0:
        return []
    return [
        f"at least {both:,} of the {judged:,} judged nodes calibrated, for {labels:,} of all {nodes:,} nodes did: "
        f"coverage can mislead there, within groups above all. Judge by labels that calibrated nothing"
    ]


def _labels_of_unlisted_classes(
    file: SetsFile, labels: str | os.PathLike[str], ids: IdKind, labels_are: LabelsAre, notes: list[str]
) -> tuple[IntArray, list[str]]:
    """Read labels where the file does not list its classes: they are those of its sets, and those of the labels."""
    if labels_are == "indices":
        raise InvalidInputError(
            "`labels_are` must be names for sets that do not list their classes, as CSV cannot. Write the sets to "
            ".parquet or .npz, or label nodes by name."
        )
    y, found = read_labels(labels, file.ids, None, ids=ids, skip_unknown=True, notes=notes)
    listed = ClassNames(file.class_names)
    places = [listed.named(name) for name in found]
    new = [name for name, place in zip(found, places, strict=True) if place < 0]
    if found and len(new) == len(found):
        notes.append(
            f"no set has any of the labels {', '.join(found[:5])}{', …' if len(found) > 5 else ''}. If those are class "
            f"numbers, write the sets to .parquet or .npz, which list their classes"
        )
    rest = iter(range(len(listed), len(listed) + len(new)))
    codes = np.array([next(rest) if place < 0 else place for place in places] + [-1], dtype=np.int64)
    return codes[y], [*file.class_names, *new]


def evaluate_sets(
    labelled: LabelledSets,
    strata: Sequence[tuple[int, int]],
    *,
    graph: Graph | None = None,
    radius: int = 2,
    min_size: int = 30,
    seed: int = 0,
    groups: npt.NDArray[np.str_] | None = None,
) -> dict[str, Any]:
    """Return what the sets are worth, under the usual names, for tables and JSON.

    Parameters
    ----------
    labelled : LabelledSets
        The sets and the labels that judge them.
    strata : sequence of (low, high)
        As in `sscv`.
    graph : Graph, optional
        From `graph_around`: adds PCCV over neighbourhoods of the judged nodes, and coverage by degree.
    radius, min_size, seed
        As in `neighbourhood_partition`.
    groups : numpy.ndarray, optional
        The name of the group of each node of the file, empty for none: adds coverage by group, beside chance.
    """
    sets, y = labelled.sets, labelled.labels
    on_graph: dict[str, Any] = {}
    partition = None
    if graph is not None:
        sets = replace(sets, num_nodes=graph.num_nodes)
        y = np.append(y, np.full(graph.num_nodes - y.size, -1, dtype=np.int64))
        partition = neighbourhood_partition(graph, sets.nodes, radius=radius, min_size=min_size, seed=seed)
        on_graph = _on_graph(sets, y, graph, partition)
    found: dict[str, Any] = dict(_groups(sets, y, graph, partition))
    if groups is not None:
        found["group"] = np.append(groups, np.zeros(y.size - groups.size, dtype=groups.dtype))
        on_graph["coverage_by_group"] = by_named_group(coverage_gap(sets, y, found["group"]))
    worth = judge(sets, y, strata=strata, partition=partition, groups=found).row()
    if graph is None:
        del worth["pccv"], worth["pccv_chance"]
    if not labelled.file.complete:
        worth["full_rate"] = math.nan
    told = {"unlabelled": len(labelled.file.sets) - len(sets), "alpha": sets.alpha}
    by_class = _group_rows(coverage_by_class(sets, y), list(sets.class_names or ()))
    return worth | told | {"coverage_by_class": by_class} | on_graph


def by_named_group(gap: CoverageGap) -> list[dict[str, Any]]:
    """Return coverage within groups that have names, for tables and JSON."""
    return [
        {"group": str(name), "count": int(count), "coverage": float(share)}
        for name, count, share in zip(gap.groups, gap.sizes, gap.coverage, strict=True)
    ]


def _groups(
    sets: PredictionSets, labels: IntArray, graph: Graph | None, partition: list[IntArray] | None
) -> dict[str, IntArray]:
    """Return the groups that can be had from sets and labels, and from the graph where there is one."""
    groups = {"class": groups_by_class(labels)}
    if graph is not None:
        groups["degree"] = groups_by_degree(graph, nodes=sets.nodes)
        groups["neighbourhood"] = groups_of_partition(partition or [], graph.num_nodes)
    return groups


def _on_graph(sets: PredictionSets, labels: IntArray, graph: Graph, partition: list[IntArray]) -> dict[str, Any]:
    by_degree = coverage_by_degree(sets, labels, graph)
    names = ["{}–{}".format(*ends) for ends in cast("list[tuple[int, int]]", by_degree.group)]
    return {
        "neighbourhoods": len(partition),
        "share_in_neighbourhoods": sum(part.size for part in partition) / len(sets),
        "coverage_by_degree": _group_rows(by_degree, names),
    }


def graph_around(
    edges: str | os.PathLike[str], nodes: NodeIds, *, directed: bool = False, ids: IdKind = "auto"
) -> Graph:
    """Read the whole graph of an edges file; `nodes` keep their places, others come after them."""
    table = open_table("edges", edges)
    table.require("source", "target")
    asked = ids == "integer"
    kind: IdKind = "string" if ids == "string" else "auto" if nodes.is_string else "integer"
    parts = [nodes.values]
    for batch in table.batches(["source", "target"]):
        parts += [id_column(table, batch, column, kind, asked=asked, known="sets") for column in ("source", "target")]
    everyone = NodeIds(arrow().chunked_array(alike("edges", parts)).unique(), "edges")
    return read_edges(edges, everyone, directed=directed, ids=ids)


def _rows(sets: PredictionSets, rows: IntArray) -> PredictionSets:
    return replace(
        sets,
        nodes=sets.nodes[rows],
        member=sets.member[rows],
        thresholds=sets.thresholds[rows],
        support=sets.support[rows],
        effective_size=sets.effective_size[rows],
    )


def _group_rows(groups: GroupCoverage, names: list[str]) -> list[dict[str, Any]]:
    return [
        {"group": name, "nodes": int(count), "coverage": float(share), "mean_size": float(size)}
        for name, count, share, size in zip(names, groups.count, groups.coverage, groups.mean_size, strict=True)
    ]
