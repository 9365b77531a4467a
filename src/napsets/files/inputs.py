"""Everything a prediction needs, from files: the graph, the model's outputs, the truth and what to predict."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.compressed import check_lengths
from napsets.errors import FileFormatError, InvalidInputError, arrow
from napsets.files.formats import TableFile, open_table
from napsets.files.ids import IdLookup, NodeIds, all_ids, id_column, one_width
from napsets.files.labels import NodeTruth, read_labels, read_nodes, read_targets
from napsets.files.outputs import NodeOutputs, number_column, read_numbers, read_probabilities
from napsets.files.reading import PLAIN, Reading
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

PathLike = str | os.PathLike[str]
Stage = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays on the places 0..n−1, and the ids and names that lead back to the files."""

    ids: NodeIds  #: the id of each node, in the order of the file of the model's outputs
    graph: Graph
    outputs: Any  #: what the model says, one row per node: probabilities, or numbers; or None
    truth: npt.NDArray[Any]  #: a class index for each node, −1 where unknown; or a number, NaN where unknown
    nodes: IntArray  #: what to predict: the nodes of a file, otherwise those whose truth is unknown
    class_names: list[str] | None = None  #: the classes, where there are some
    score: Any = None  #: the score whose columns the file of outputs has; None where any score will do
    notes: list[str] = field(default_factory=list)  #: what the user should know of how the files were read
    prediction: type[Prediction] = PredictionSets  #: what is to be predicted: sets or intervals
    integer_labels: bool = False  #: whether labels are integers in the files, as they then are in those written
    #: The nodes that the model was trained on, where a file names them.
    training: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def calibration(self) -> IntArray:
        """The nodes whose truth is known."""
        return np.flatnonzero(self.prediction.known(self.truth))

    def calibrate(self, method: Any, calibration: IntArray | None = None) -> Any:
        """Calibrate a method on all nodes whose truth is known, or on some of them."""
        chosen = self.calibration if calibration is None else calibration
        return method.calibrate_rows(self.graph, self.outputs, self.truth, chosen, self.ids.keys)


def read_inputs(
    edges: PathLike,
    outputs: PathLike,
    truth: PathLike,
    nodes: PathLike | None = None,
    reading: Reading = PLAIN,
    *,
    prediction: type[Prediction] = PredictionSets,
    predicting: bool = True,
    training: PathLike | None = None,
    stage: Stage = lambda text: None,
) -> Inputs:
    """Read the files of a prediction.

    Parameters
    ----------
    edges, outputs, truth, nodes : path
        The files; without `nodes`, the nodes whose truth is unknown are to be predicted.
    reading : Reading
        How they are read.
    prediction : type
        What is to be predicted. Of sets, the outputs are probabilities and the truth has the column ``label``; of
        intervals, the outputs are ``lower``, ``upper`` or ``prediction`` [, ``spread``], and the truth has ``target``.
    predicting : bool
        Refuse files that leave no node to predict.
    training : path, optional
        The nodes that the model was trained on, column ``node``: they are neither predicted nor labelled.
    stage : callable
        Called with what is being read.

    Examples
    --------
    >>> read_inputs("edges.csv", "p.csv", "y.csv", reading=Reading(ids="string", separator=";"))  # doctest: +SKIP
    """
    column = prediction.truth_column
    _check_headers(reading, edges=(edges, "source", "target"), labels=(truth, "node", column))
    if nodes is not None:
        _check_headers(reading, nodes=(nodes, "node"))
    stage(f"reading {prediction.outputs_name}")
    model = _OUTPUTS[prediction](outputs, reading)
    inputs = _with_graph(prediction, model, edges, truth, nodes, reading, stage)
    if training is not None:
        inputs = _without(inputs, read_nodes(training, inputs.ids, reading, notes=inputs.notes))
    if inputs.calibration.size == 0:
        raise FileFormatError(f"`labels` must have at least one {column}; {os.fspath(truth)} has none")
    if predicting and inputs.nodes.size == 0:
        if nodes is not None:
            raise FileFormatError(f"`nodes` must name at least one node; {os.fspath(nodes)} names none")
        raise InvalidInputError(
            f"there is no node to predict: every node has a {column}. Pass --nodes, or leave some nodes out of "
            f"`labels`."
        )
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


def read_graph(
    edges: PathLike,
    labels: PathLike,
    nodes: PathLike | None = None,
    reading: Reading = PLAIN,
    *,
    stage: Stage = lambda text: None,
) -> Inputs:
    """Read a graph and labels without probabilities; the nodes are those that some file names."""
    stage("reading ids")
    sources = [("edges", edges, ("source", "target")), ("labels", labels, ("node",))]
    if nodes is not None:
        sources.append(("nodes", nodes, ("node",)))
    known = all_ids([(open_table(name, path, reading), columns) for name, path, columns in sources])
    return _with_graph(PredictionSets, NodeOutputs(known, None), edges, labels, nodes, reading, stage)


def read_truth(path: PathLike, inputs: Inputs, reading: Reading = PLAIN) -> npt.NDArray[Any]:
    """Read further truth of the same nodes; what should be known of it joins the notes of `inputs`."""
    return _TRUTH[inputs.prediction](path, inputs.ids, inputs.class_names, reading, notes=inputs.notes).values


def _check_headers(reading: Reading, **files: tuple[Any, ...]) -> None:
    """Refuse a file that is not there or lacks a column before the large ones are read."""
    for name, (path, *columns) in files.items():
        open_table(name, path, reading).require(*columns)


def _with_graph(
    prediction: type[Prediction],
    model: NodeOutputs,
    edges: PathLike,
    truth: PathLike,
    nodes: PathLike | None,
    reading: Reading,
    stage: Stage,
) -> Inputs:
    """Read graph, truth and the nodes to predict, where the nodes are known."""
    column, notes = prediction.truth_column, list(model.notes)
    stage("reading edges")
    graph = read_edges(edges, model.ids, reading, notes=notes)
    stage(f"reading {prediction.truth_name}")
    known = _TRUTH[prediction](truth, model.ids, model.class_names, reading, notes=notes)
    has_truth = prediction.known(known.values)
    chosen = np.flatnonzero(~has_truth) if nodes is None else read_nodes(nodes, model.ids, reading, notes=notes)
    both = int(has_truth[chosen].sum())
    if both:
        notes.append(
            f"{both:,} of the nodes to predict have a {column}; it is left out of the threshold of its own node, "
            f"but not out of what all {column}s determine together (the level, the evidence)"
        )
    return Inputs(
        model.ids, graph, model.values, known.values, chosen, known.class_names, model.score, notes, prediction,
        known.integers,
    )  # fmt: skip


#: The readers of what a model says, and of the truth.
_OUTPUTS: dict[type[Prediction], Callable[[PathLike, Reading], NodeOutputs]] = {
    PredictionSets: read_probabilities,
    PredictionIntervals: read_numbers,
}
_TRUTH: dict[type[Prediction], Callable[..., NodeTruth]] = {
    PredictionSets: read_labels,
    PredictionIntervals: lambda path, nodes, _, reading, **more: NodeTruth(read_targets(path, nodes, reading, **more)),
}


def read_edges(
    path: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> Graph:
    """Read a table with the columns ``source`` and ``target`` into a graph on the places of `nodes`.

    npz may hold ``edge_index`` of shape (2, edges) instead. Edges to any other node are refused, or left out with
    ``skip_unknown``. `reading` says what a column ``weight`` means; by default it is not used, and `notes` says so.
    """
    table = open_table("edges", path, reading)
    meaning = reading.weights_are
    table.require("source", "target", *([] if meaning is None else ["weight"]))
    if meaning is None and "weight" in table.columns and notes is not None:
        notes.append(
            f"the column weight of {table.path} is not used: say what it holds with --weights-are lengths or strengths"
        )
    lookup = IdLookup(table, nodes)
    ends, weights = _read_edge_rows(table, lookup, weighted=meaning is not None)
    lookup.settle(notes)
    if not ends.size and notes is not None:
        notes.append(f"{table.path} has no rows: no node has a neighbour")
    # Checked before edges are left out, so that a message names the row that the file has.
    lengths = None
    if meaning is not None:
        try:
            lengths = check_lengths("weight", weights, weights.size, weights_are=meaning)
        except InvalidInputError as error:
            message = f"`edges` must have {meaning} in its column weight; in {table.path}, {error}"
            raise FileFormatError(message) from error
    if lookup.unknown:
        known = (ends >= 0).all(axis=0)
        ends, lengths = ends[:, known], None if lengths is None else lengths[known]
    return Graph.from_edge_index(ends, num_nodes=len(nodes), directed=reading.directed, lengths=lengths)


def read_graph_around(
    edges: str | os.PathLike[str], nodes: NodeIds, reading: Reading = PLAIN, *, notes: list[str] | None = None
) -> Graph:
    """Read the whole graph of an edges file; `nodes` keep their places, others come after them."""
    table = open_table("edges", edges, reading)
    table.require("source", "target")
    ends = ("source", "target")
    parts = [nodes.values]
    for batch in table.batches(ends):
        parts += [id_column(table, batch, column, like=nodes) for column in ends]
    everyone = NodeIds(arrow().chunked_array(one_width("edges", parts)).unique(), "edges")
    return read_edges(edges, everyone, reading, notes=notes)


def _read_edge_rows(table: TableFile, lookup: IdLookup, *, weighted: bool) -> tuple[npt.NDArray[Any], FloatArray]:
    """Return the ends as places, of shape (2, edges), and the weights; none where they do not count."""
    dtype = np.int32 if len(lookup.nodes) < 2**31 else np.int64
    columns = ["source", "target", *(["weight"] if weighted else [])]
    ends, weights, filled = [np.empty((2, 0), dtype=dtype)], [np.empty(0)], 0
    for batch in table.batches(columns):
        ends.append(np.array([lookup.places(batch, column) for column in columns[:2]], dtype=dtype))
        if weighted:
            weights.append(number_column(table, batch.column("weight"), "weight", filled).astype(np.float64))
        filled += batch.num_rows
    return np.concatenate(ends, axis=1), np.concatenate(weights)
