"""Everything a prediction needs, from files: the graph, the model's outputs, the truth and what to predict."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.compressed import WeightsAre, check_lengths
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import NodeIds, id_column, one_column, own_ids, places_of
from napsets.files.labels import NodeTruth, read_labels, read_nodes, read_targets
from napsets.files.outputs import (
    Block,
    IntervalScore,
    NodeOutputs,
    number_column,
    read_features,
    read_numbers,
    read_probabilities,
)
from napsets.files.reading import PLAIN, Reading
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

PathLike = str | os.PathLike[str]
Stage = Callable[[str], None]

#: The columns of edges that hold ids.
_ENDS = ("source", "target")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays on the places 0..n−1, and the ids and names that lead back to the files."""

    ids: NodeIds  #: the id of each node, in the order of the file of the model's outputs
    graph: Graph | None
    outputs: Block  #: what the model says, one row per node: probabilities, or numbers
    truth: IntArray | FloatArray  #: a class index for each node, −1 where unknown; or a number, NaN where unknown
    nodes: IntArray  #: what to predict: the nodes of a file, otherwise those whose truth is unknown
    class_names: list[str] | None = None  #: the classes, where there are some
    score: IntervalScore | None = None  #: the score whose columns the file of outputs has; None where any score will do
    notes: list[str] = field(default_factory=list)  #: what the user should know of how the files were read
    prediction: type[Prediction] = PredictionSets  #: what is to be predicted: sets or intervals
    integer_labels: bool = False  #: whether labels are integers in the files, as they then are in those written
    #: The nodes that the model was trained on, where a file names them.
    training: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    evidence: IntArray | None = None  #: the nodes whose truth only teaches, where a file names some
    features: Block | None = None  #: the features of each node, where there is a file of them

    @property
    def calibration(self) -> IntArray:
        """The nodes whose truth is known, and sets the level."""
        known = np.flatnonzero(self.prediction.known(self.truth))
        return known if self.evidence is None else np.setdiff1d(known, self.evidence, assume_unique=True)

    def calibrate(self, method: Any, calibration: IntArray | None = None) -> Any:
        """Calibrate a method on all nodes whose truth is known, or on some of them, with the evidence."""
        chosen = self.calibration if calibration is None else calibration
        return method.calibrate_rows(
            self.graph, self.outputs, self.truth, chosen, self.ids.keys,
            evidence=self.evidence, features=self.features if method.uses_features else None,
        )  # fmt: skip


def read_inputs(
    edges: PathLike | None,
    outputs: PathLike,
    truth: PathLike,
    nodes: PathLike | None = None,
    reading: Reading = PLAIN,
    *,
    prediction: type[Prediction] = PredictionSets,
    predicting: bool = True,
    training: PathLike | None = None,
    evidence: PathLike | None = None,
    features: PathLike | None = None,
    stage: Stage = lambda text: None,
) -> Inputs:
    """Read the files of a prediction.

    Parameters
    ----------
    edges, outputs, truth, nodes : path
        The files; without `edges` there is no graph, and without `nodes` the nodes whose truth is unknown are to be
        predicted.
    reading : Reading
        How they are read.
    prediction : type
        What is to be predicted. Of sets, the outputs are probabilities and the truth has the column ``label``; of
        intervals, the outputs are ``lower``, ``upper`` or ``prediction`` [, ``spread``], and the truth has ``target``.
    predicting : bool
        Refuse files that leave no node to predict.
    training : path, optional
        The nodes that the model was trained on, column ``node``: they are neither predicted nor labelled.
    evidence : path, optional
        Truth of any origin, a file like `truth`: it teaches, and that of `truth` sets the level. A node in both has
        the truth that `truth` says.
    features : path, optional
        The features by which nodes are compared, as in `read_features`.
    stage : callable
        Called with what is being read.
    """
    column = prediction.truth_column
    known = ("node", column if reading.header else "label")
    wanted = (("edges", edges, _ENDS), ("labels", truth, known), ("nodes", nodes, ("node",)))
    _check_headers(reading, *wanted, ("labels", evidence, known))
    stage(f"reading {prediction.outputs_name}")
    model = _OUTPUTS[prediction](outputs, reading)
    notes, graph = list(model.notes), None
    if edges is not None:
        stage("reading edges")
        graph = read_edges(edges, model.ids, reading, notes=notes)
    stage(f"reading {prediction.truth_name}")
    labels = _TRUTH[prediction](truth, model.ids, model.class_names, reading, notes=notes)
    has_truth = prediction.known(labels.values)
    chosen = np.flatnonzero(~has_truth) if nodes is None else read_nodes(nodes, model.ids, reading, notes=notes)
    both = int(has_truth[chosen].sum())
    if both:
        notes.append(
            f"{both:,} of the nodes to predict have a {column}; it is left out of the threshold of its own node, "
            f"but not out of what all {column}s determine together (the level, the evidence)"
        )
    inputs = Inputs(
        model.ids, graph, model.values, labels.values, chosen, labels.class_names, model.score, notes, prediction,
        labels.integers,
    )  # fmt: skip
    if features is not None:
        stage("reading features")
        inputs = replace(inputs, features=read_features(features, inputs.ids, reading))
    if training is not None:
        inputs = _without(inputs, read_nodes(training, inputs.ids, reading, notes=inputs.notes))
    if inputs.calibration.size == 0:
        raise FileFormatError(f"`labels` must have at least one {column}; {os.fspath(truth)} has none")
    if evidence is not None:
        stage("reading evidence")
        inputs = _with_evidence(inputs, evidence, reading, only_unlabelled=nodes is None)
    if predicting and inputs.nodes.size == 0:
        if nodes is not None:
            raise FileFormatError(f"`nodes` must name at least one node; {os.fspath(nodes)} names none")
        raise InvalidInputError(
            f"there is no node to predict: every node has a {column}. Pass --nodes, or leave some nodes out of "
            f"`labels`."
        )
    arrow().default_memory_pool().release_unused()  # else what reading needed stays with the process
    return inputs


def _without(inputs: Inputs, trained: IntArray) -> Inputs:
    """Return the inputs with the nodes that the model was trained on neither to predict nor with a truth."""
    seen = np.zeros(len(inputs.ids), dtype=bool)
    seen[trained] = True
    labelled = int(seen[inputs.calibration].sum())
    if labelled:
        inputs.notes.append(
            f"{labelled:,} of the {inputs.calibration.size:,} {inputs.prediction.truth_column}s are of nodes that the "
            f"model was trained on (--training): they do not calibrate"
        )
    truth = inputs.truth.copy()
    truth[seen] = inputs.prediction.unknown
    return replace(inputs, truth=truth, nodes=inputs.nodes[~seen[inputs.nodes]], training=np.flatnonzero(seen))


def _with_evidence(inputs: Inputs, path: PathLike, reading: Reading, *, only_unlabelled: bool) -> Inputs:
    """Return the inputs with further truth, which only teaches; its nodes are not predicted, unless a file says so."""
    taught, known = read_truth(path, inputs, reading), inputs.prediction.known
    chosen = known(taught) & ~known(inputs.truth)
    both = int((known(taught) & known(inputs.truth)).sum())
    column = inputs.prediction.truth_column
    if not chosen.any():
        raise FileFormatError(
            f"`evidence` must have a {column} of at least one node that has none in `labels`; {os.fspath(path)} has "
            f"{f'{both:,} of nodes that have one there, and those calibrate' if both else 'none'}"
        )
    if both:
        inputs.notes.append(f"{both:,} nodes are in `evidence` and in `labels`: they calibrate")
    nodes = inputs.nodes[~chosen[inputs.nodes]] if only_unlabelled else inputs.nodes
    overlap = int(chosen[nodes].sum())
    if overlap:
        inputs.notes.append(f"{overlap:,} of the nodes to predict are evidence, from whose {column}s methods learn")
    truth = np.where(chosen, taught, inputs.truth)
    return replace(inputs, truth=truth, nodes=nodes, evidence=np.flatnonzero(chosen))


def read_graph(
    edges: PathLike, labels: PathLike, reading: Reading = PLAIN, *, stage: Stage = lambda text: None
) -> Inputs:
    """Read a graph and labels without probabilities; the nodes are those of the labels, then those of the edges."""
    stage("reading edges")
    notes: list[str] = []
    table = open_table("labels", labels, reading)
    table.require("node", "label")
    ids, graph = read_graph_around(edges, own_ids(table, id_column(table, table.read(["node"]))), reading, notes=notes)
    stage("reading labels")
    known = read_labels(table, ids, None, reading, notes=notes)
    nothing = np.empty((len(ids), 0))
    return Inputs(ids, graph, nothing, known.values, np.flatnonzero(known.values < 0), known.class_names, notes=notes)


def read_truth(path: PathLike, inputs: Inputs, reading: Reading = PLAIN) -> IntArray | FloatArray:
    """Read further truth of the same nodes; what should be known of it joins the notes of `inputs`."""
    return _TRUTH[inputs.prediction](path, inputs.ids, inputs.class_names, reading, notes=inputs.notes).values


def _check_headers(reading: Reading, *files: tuple[str, PathLike | None, Sequence[str]]) -> None:
    """Raise for a file that is not there or lacks a column before the large ones are read."""
    for name, path, columns in files:
        if path is not None:
            open_table(name, path, reading).require(*columns)


#: The readers of what a model says, and of the truth.
_OUTPUTS: dict[type[Prediction], Callable[[PathLike, Reading], NodeOutputs]] = {
    PredictionSets: read_probabilities,
    PredictionIntervals: read_numbers,
}
_TRUTH: dict[type[Prediction], Callable[..., NodeTruth]] = {
    PredictionSets: read_labels,
    PredictionIntervals: lambda path, nodes, _, reading, **more: NodeTruth(read_targets(path, nodes, reading, **more)),
}


def read_edges(path: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None) -> Graph:
    """Read a table with the columns ``source`` and ``target`` into a graph on the places of `nodes`.

    Edges to any other node are refused, or left out with ``skip_unknown``. `reading` says what a column ``weight``
    means; by default it is not used, and `notes` says so.
    """
    table = open_table("edges", path, reading)
    meaning = reading.weights_are
    columns = [*_ENDS, *([] if meaning is None else ["weight"])]
    table.require(*columns)
    if meaning is None and "weight" in table.columns and notes is not None:
        notes.append(
            f"the column weight of {table.path} is not used: say what it holds with --weights-are lengths or strengths"
        )
    rows = table.read(columns, _ENDS)
    ids = [id_column(table, rows, column) for column in columns[:2]]
    lengths = None
    if meaning is not None:
        weights = number_column(table, rows.column("weight"), "weight", ids[0]).astype(np.float64)
        lengths = _lengths(table, weights, meaning)
    del rows
    ends = np.stack([places_of(table, nodes, column, notes) for column in ids])
    del ids
    if not ends.size and notes is not None:
        notes.append(f"{table.path} has no rows: no node has a neighbour")
    known = (ends >= 0).all(axis=0)
    if not known.all():
        ends, lengths = ends[:, known], None if lengths is None else lengths[known]
    return Graph.from_edge_index(ends, num_nodes=len(nodes), directed=reading.directed, lengths=lengths)


def _lengths(table: TableFile, weights: FloatArray, meaning: WeightsAre) -> FloatArray:
    """Return the lengths of edges, or raise for the first weight that cannot be one."""
    wrong = ~(np.isfinite(weights) & (weights > 0 if meaning == "strengths" else weights >= 0))
    try:
        return check_lengths("weight", weights, weights.size, weights_are=meaning)
    except InvalidInputError as error:
        first = f" The first is in {table.at(int(wrong.argmax()), path=False)}." if wrong.any() else ""
        message = f"`edges` must have {meaning} in its column weight; in {table.path}, {error}.{first}"
        raise FileFormatError(message) from error


def read_graph_around(
    edges: PathLike, nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> tuple[NodeIds, Graph]:
    """Read the whole graph of an edges file, and its ids; `nodes` keep their places, others come after them."""
    table = open_table("edges", edges, reading)
    table.require(*_ENDS)
    rows = table.read(_ENDS, _ENDS)
    ends = [id_column(table, rows, column) for column in _ENDS]
    ids = NodeIds(one_column(nodes.values, *ends).unique(), "edges")
    return ids, read_edges(table, ids, reading, notes=notes)
