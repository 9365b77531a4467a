"""Judging a sets file by labels that became known."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import (
    GroupCoverage,
    coverage,
    coverage_by_class,
    coverage_by_degree,
    empty_rate,
    full_rate,
    mean_size,
    neighbourhood_partition,
    pccv,
    singleton_rate,
    size_given_coverage,
    sscv,
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

__all__ = ["Judged", "evaluate_sets", "graph_around", "judge"]


@dataclass(frozen=True, eq=False)
class Judged:
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
        What was left out.
    """

    file: SetsFile
    sets: PredictionSets
    labels: IntArray
    notes: list[str]


def judge(file: SetsFile, labels: str | os.PathLike[str], *, labels_are: LabelsAre = "auto") -> Judged:
    """Find the label of each set's node; sets without one, and labels without a set, are left out.

    Parameters
    ----------
    file : SetsFile
        The sets.
    labels : path
        As in `read_labels`.
    labels_are : {"auto", "names", "indices"}
        As in `read_labels`. Numbers need a file that lists its classes.
    """
    notes: list[str] = []
    sets = file.sets
    if file.complete:
        y, _ = read_labels(labels, file.ids, file.class_names, skip_unknown=True, labels_are=labels_are, notes=notes)
    else:
        y, classes = _labels_of_unlisted_classes(file, labels, labels_are, notes)
        missing = np.zeros((len(sets), len(classes) - sets.num_classes), dtype=bool)
        sets = replace(sets, member=np.hstack([sets.member, missing]), class_names=classes)
    rows = np.flatnonzero(y >= 0)
    if rows.size == 0:
        raise InvalidInputError(
            f"no node of `sets` has a label in {os.fspath(labels)}. Check that both files call the nodes alike."
        )
    return Judged(file, _rows(sets, rows), y, notes)


def _labels_of_unlisted_classes(
    file: SetsFile, labels: str | os.PathLike[str], labels_are: LabelsAre, notes: list[str]
) -> tuple[IntArray, list[str]]:
    """Read labels where the file does not list its classes: they are those of its sets, and those of the labels."""
    if labels_are == "indices":
        raise InvalidInputError(
            "`labels_are` must be names for sets that do not list their classes, as CSV cannot. Write the sets to "
            ".parquet or .npz, or label nodes by name."
        )
    y, found = read_labels(labels, file.ids, None, skip_unknown=True, notes=notes)
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


def evaluate_sets(judged: Judged, strata: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return coverage, sizes and SSCV under their usual names."""
    sets, y = judged.sets, judged.labels
    count, covered = len(sets), coverage(sets, y)
    return {
        "nodes": count,
        "unlabelled": len(judged.file.sets) - count,
        "alpha": sets.alpha,
        "coverage": covered,
        "coverage_se": math.sqrt(covered * (1.0 - covered) / count),
        "mean_size": mean_size(sets),
        "mean_size_se": float(sets.sizes.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        "size_given_coverage": size_given_coverage(sets, y),
        "sscv": sscv(sets, y, strata),
        "singleton_rate": singleton_rate(sets),
        "empty_rate": empty_rate(sets),
        "full_rate": full_rate(sets) if judged.file.complete else math.nan,
        "infinite": sets.infinite,
        "coverage_by_class": _group_rows(coverage_by_class(sets, y), list(sets.class_names or ())),
    }


def evaluate_on_graph(
    judged: Judged, graph: Graph, *, radius: int = 2, min_size: int = 30, seed: int = 0
) -> dict[str, Any]:
    """Return PCCV over neighbourhoods of the judged nodes, and coverage by degree; `graph` from `graph_around`."""
    sets = replace(judged.sets, num_nodes=graph.num_nodes)
    y = np.full(graph.num_nodes, -1, dtype=np.int64)
    y[: judged.labels.size] = judged.labels
    partition = neighbourhood_partition(graph, sets.nodes, radius=radius, min_size=min_size, seed=seed)
    by_degree = coverage_by_degree(sets, y, graph)
    names = ["{}–{}".format(*ends) for ends in cast("list[tuple[int, int]]", by_degree.group)]
    return {
        "pccv": pccv(sets, y, partition),
        "neighbourhoods": len(partition),
        "share_in_neighbourhoods": sum(part.size for part in partition) / len(sets),
        "coverage_by_degree": _group_rows(by_degree, names),
    }


def graph_around(edges: str | os.PathLike[str], ids: NodeIds, *, directed: bool = False) -> Graph:
    """Read the whole graph of an edges file; the nodes of `ids` keep their places, others come after them."""
    table = open_table("edges", edges)
    table.require("source", "target")
    kind: IdKind = "auto" if ids.is_string else "integer"
    parts = [ids.values]
    for batch in table.batches(["source", "target"]):
        parts += [id_column(table, batch, column, kind, known="sets") for column in ("source", "target")]
    everyone = NodeIds(arrow().chunked_array(alike("edges", parts)).unique(), "edges")
    return read_edges(edges, everyone, directed=directed)


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
