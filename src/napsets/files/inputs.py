"""Everything a prediction needs, from files: the graph, the probabilities, the labels and what to predict."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.checks.lengths import WeightsAre
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.classes import LabelsAre
from napsets.files.edges import read_edges
from napsets.files.formats import TableFile, arrow, open_table
from napsets.files.ids import IdKind, NodeIds, id_column, looks_integer
from napsets.files.labels import read_labels_and_kind, read_nodes
from napsets.files.probabilities import NodeProbabilities, read_probabilities
from napsets.graph import Graph

__all__ = ["Inputs", "alike", "read_graph", "read_inputs"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays on the places 0..n−1, and the ids and names that lead back to the files.

    Attributes
    ----------
    ids : NodeIds
        The id of each node, in the order of the file of probabilities.
    graph : Graph
        The graph.
    labels : numpy.ndarray
        A class index for each node, −1 where there is none.
    class_names : list of str
        The classes.
    nodes : numpy.ndarray
        What to predict: the nodes asked for, otherwise those without a label.
    probabilities : numpy.ndarray or None
        One row a node.
    notes : list of str
        What the user should know of how the files were read.
    integer_labels : bool
        Whether labels are integers in the files, as they then are in those that are written.
    """

    ids: NodeIds
    graph: Graph
    labels: IntArray
    class_names: list[str]
    nodes: IntArray
    probabilities: Any = None
    notes: list[str] = field(default_factory=list)
    integer_labels: bool = False

    @property
    def calibration(self) -> IntArray:
        """The nodes that have a label."""
        return np.flatnonzero(self.labels >= 0)

    def calibrate(self, method: Any, calibration: IntArray | None = None) -> Any:
        """Calibrate a method on all that has a label, or on some of it; what comes back gives sets."""
        chosen = self.calibration if calibration is None else calibration
        return method.calibrate(self.graph, self.probabilities, self.labels, calibration=chosen, ids=self.ids.keys)


def read_inputs(
    edges: PathLike,
    probabilities: PathLike,
    labels: PathLike,
    nodes: PathLike | None = None,
    *,
    directed: bool = False,
    ids: IdKind = "auto",
    skip_unknown: bool = False,
    labels_are: LabelsAre = "auto",
    logits: bool = False,
    weights_are: WeightsAre | None = None,
    predicting: bool = True,
    stage: Callable[[str], None] = lambda text: None,
) -> Inputs:
    """Read the files of a prediction.

    Parameters
    ----------
    edges, probabilities, labels, nodes : path
        The files; without `nodes`, the nodes without a label are to be predicted.
    directed : bool
        Follow edges from source to target only.
    ids, skip_unknown, weights_are
        As in `read_edges`.
    labels_are : {"auto", "names", "indices"}
        What a label is: a class's name or its number from 0. With "auto": names where every label is one, numbers where
        none is; a mixture is refused.
    logits : bool
        As in `read_probabilities`.
    predicting : bool
        Refuse files that leave no node to predict.
    stage : callable
        Told what is being read.
    """
    _check_headers(edges=edges, labels=labels, nodes=nodes)
    stage("reading probabilities")
    table: NodeProbabilities = read_probabilities(probabilities, ids=ids, logits=logits)
    read = _graph_and_labels(
        table.ids, table.class_names, edges, labels, nodes, directed, ids, skip_unknown, labels_are, stage,
        table.values, weights_are,
    )  # fmt: skip
    if read.calibration.size == 0:
        raise FileFormatError(f"`labels` must label at least one node; {os.fspath(labels)} labels none")
    if predicting and read.nodes.size == 0:
        raise InvalidInputError(
            "there is no node to predict: every node has a label. Pass --nodes, or leave some nodes out of `labels`."
        )
    return read


def read_graph(
    edges: PathLike,
    labels: PathLike,
    nodes: PathLike | None = None,
    *,
    directed: bool = False,
    ids: IdKind = "auto",
    stage: Callable[[str], None] = lambda text: None,
) -> Inputs:
    """Read a graph and labels without probabilities; the nodes are those that some file names."""
    stage("reading ids")
    sources = [("edges", edges, ("source", "target")), ("labels", labels, ("node",))]
    if nodes is not None:
        sources.append(("nodes", nodes, ("node",)))
    known = _all_ids([(open_table(name, path), columns) for name, path, columns in sources], ids)
    return _graph_and_labels(known, None, edges, labels, nodes, directed, ids, False, "auto", stage, None)


def _check_headers(**paths: PathLike | None) -> None:
    """Refuse a file that is not there or lacks a column before the large ones are read."""
    columns = {"edges": ("source", "target"), "labels": ("node", "label"), "nodes": ("node",)}
    for name, path in paths.items():
        if path is not None:
            open_table(name, path).require(*columns[name])


def _graph_and_labels(
    known: NodeIds,
    class_names: list[str] | None,
    edges: PathLike,
    labels: PathLike,
    nodes: PathLike | None,
    directed: bool,
    ids: IdKind,
    skip_unknown: bool,
    labels_are: LabelsAre,
    stage: Callable[[str], None],
    probabilities: Any,
    weights_are: WeightsAre | None = None,
) -> Inputs:
    notes: list[str] = []
    stage("reading edges")
    graph = read_edges(
        edges, known, directed=directed, ids=ids, skip_unknown=skip_unknown, weights_are=weights_are, notes=notes
    )
    stage("reading labels")
    y, names, integers = read_labels_and_kind(
        labels, known, class_names, ids=ids, skip_unknown=skip_unknown, labels_are=labels_are, notes=notes
    )
    if nodes is None:
        chosen = np.flatnonzero(y < 0)
    else:
        chosen = read_nodes(nodes, known, ids=ids, skip_unknown=skip_unknown, notes=notes)
    both = int((y[chosen] >= 0).sum())
    if both:
        notes.append(
            f"{both:,} of the nodes to predict have a label; it is left out of the threshold of its own node, not "
            f"out of what all labels decide together: a level, evidence"
        )
    return Inputs(known, graph, y, names, chosen, probabilities, notes, integers)


def _all_ids(tables: list[tuple[TableFile, tuple[str, ...]]], ids: IdKind) -> NodeIds:
    pa = arrow()
    seen: dict[str, Any] = {}
    for table, columns in tables:
        table.require(*columns)
        parts = []
        for batch in table.batches(columns):
            parts += [id_column(table, batch, column, "string" if ids == "string" else "auto") for column in columns]
        if parts:
            seen[table.name] = (table, pa.chunked_array(alike(table.name, parts)).unique())
    if not seen:
        raise FileFormatError("`edges` and `labels` must name at least one node; they are empty")
    texts = {name: column for name, (table, column) in seen.items() if not pa.types.is_integer(column.type)}
    integers = [name for name in seen if name not in texts]
    guessed = all(not seen[name][0].typed and looks_integer(column) for name, column in texts.items())
    if integers and texts and not guessed:
        raise FileFormatError(
            f"ids must be of one kind in all files: those of `{integers[0]}` are integers, those of "
            f"`{next(iter(texts))}` are text. Write them alike, or pass --ids string to read all of them as text."
        )
    numbers = guessed and ids != "string"
    found = [column.cast(pa.int64()) if numbers and name in texts else column for name, (_, column) in seen.items()]
    return NodeIds(pa.concat_arrays(alike("edges", found)).unique(), "edges")


def alike(name: str, columns: list[Any]) -> list[Any]:
    """Bring ids that came as integers of several widths to one; `name` is the argument they came from."""
    pa = arrow()
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return columns
    if not all(pa.types.is_integer(kind) for kind in kinds):
        told = " and ".join(sorted(str(kind) for kind in kinds))
        raise FileFormatError(
            f"ids must be of one kind in all files and columns; those of `{name}` are {told}. Write them alike, or "
            f"pass --ids string to read all of them as text."
        )
    ends = [pa.compute.min_max(column).as_py() for column in columns if len(column)]
    large = any(end["max"] >= 2**63 for end in ends)
    if large and any(end["min"] < 0 for end in ends):
        raise FileFormatError(f"ids must fit into 64 bits together; `{name}` has negative ones and others above 2^63")
    return [column.cast(pa.uint64() if large else pa.int64()) for column in columns]
