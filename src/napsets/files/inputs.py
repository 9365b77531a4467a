"""Everything a prediction needs, from files: the graph, the model's outputs, the truth and what to predict."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import IntArray
from napsets.errors import FileFormatError, InvalidInputError
from napsets.files.edges import read_edges
from napsets.files.formats import open_table
from napsets.files.ids import NodeIds, all_ids
from napsets.files.labels import read_labels, read_nodes, read_targets
from napsets.files.outputs import read_numbers, read_probabilities
from napsets.files.reading import PLAIN, Reading
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals, PredictionSets

PathLike = str | os.PathLike[str]
Stage = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays on the places 0..n−1, and the ids and names that lead back to the files.

    Attributes
    ----------
    ids : NodeIds
        The id of each node, in the order of the file of the model's outputs.
    graph : Graph
        The graph.
    outputs : numpy.ndarray or None
        What the model says, one row per node: probabilities, or numbers.
    truth : numpy.ndarray
        A class index for each node, −1 where unknown; or a number, NaN where unknown.
    nodes : numpy.ndarray
        What to predict: the nodes of a file, otherwise those whose truth is unknown.
    class_names : list of str or None
        The classes, where there are some.
    score : Score or None
        The score whose columns the file of outputs has; None where any score will do.
    notes : list of str
        What the user should know of how the files were read.
    prediction : type
        What is to be predicted: `PredictionSets` or `PredictionIntervals`.
    integer_labels : bool
        Whether labels are integers in the files, as they then are in those that are written.
    training : numpy.ndarray
        The nodes that the model was trained on, where a file names them.
    """

    ids: NodeIds
    graph: Graph
    outputs: Any
    truth: npt.NDArray[Any]
    nodes: IntArray
    class_names: list[str] | None = None
    score: Any = None
    notes: list[str] = field(default_factory=list)
    prediction: type[Prediction] = PredictionSets
    integer_labels: bool = False
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
    files = _FILES[prediction]
    _check_headers(reading, edges=(edges, "source", "target"), labels=(truth, "node", files.column))
    if nodes is not None:
        _check_headers(reading, nodes=(nodes, "node"))
    stage(f"reading {prediction.outputs_name}")
    model = files.read_outputs(outputs, reading)
    inputs = _with_graph(model, edges, truth, nodes, reading, stage)
    if training is not None:
        inputs = _without(inputs, read_nodes(training, inputs.ids, reading, notes=inputs.notes))
    if inputs.calibration.size == 0:
        raise FileFormatError(f"`labels` must have at least one {files.column}; {os.fspath(truth)} has none")
    if predicting and inputs.nodes.size == 0:
        if nodes is not None:
            raise FileFormatError(f"`nodes` must name at least one node; {os.fspath(nodes)} names none")
        raise InvalidInputError(
            f"there is no node to predict: every node has a {files.column}. Pass --nodes, or leave some nodes out of "
            f"`labels`."
        )
    return inputs


def _without(inputs: Inputs, trained: IntArray) -> Inputs:
    """Return the inputs with the nodes that the model was trained on neither to predict nor with a truth."""
    files, seen = _FILES[inputs.prediction], np.zeros(len(inputs.ids), dtype=bool)
    seen[trained] = True
    labelled = int(seen[inputs.calibration].sum())
    if labelled:
        inputs.notes.append(
            f"{labelled:,} of the {inputs.calibration.size:,} {files.column}s are of nodes that the model was trained "
            f"on (--training): they do not calibrate"
        )
    truth = inputs.truth.copy()
    truth[seen] = files.unknown
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
    return _with_graph(_Model(known, None), edges, labels, nodes, reading, stage)


def read_truth(path: PathLike, inputs: Inputs, reading: Reading = PLAIN) -> npt.NDArray[Any]:
    """Read further truth of the same nodes; what should be known of it joins the notes of `inputs`."""
    return _FILES[inputs.prediction].read_truth(path, inputs.ids, inputs.class_names, reading, inputs.notes).values


def _check_headers(reading: Reading, **files: tuple[Any, ...]) -> None:
    """Refuse a file that is not there or lacks a column before the large ones are read."""
    for name, (path, *columns) in files.items():
        open_table(name, path, reading).require(*columns)


@dataclass(frozen=True, eq=False)
class _Model:
    """What a file of outputs says: its nodes, the numbers, and what else is known from it."""

    ids: NodeIds
    values: Any
    class_names: list[str] | None = None
    score: Any = None
    notes: list[str] = field(default_factory=list)
    prediction: type[Prediction] = PredictionSets


@dataclass(frozen=True, eq=False)
class _Truth:
    """What a file of labels, or of numbers, says."""

    values: npt.NDArray[Any]
    class_names: list[str] | None = None
    integers: bool = False


def _with_graph(
    model: _Model, edges: PathLike, truth: PathLike, nodes: PathLike | None, reading: Reading, stage: Stage
) -> Inputs:
    """Read graph, truth and the nodes to predict, where the nodes are known."""
    files, notes = _FILES[model.prediction], list(model.notes)
    stage("reading edges")
    graph = read_edges(edges, model.ids, reading, notes=notes)
    stage(f"reading {model.prediction.truth_name}")
    known = files.read_truth(truth, model.ids, model.class_names, reading, notes)
    has_truth = model.prediction.known(known.values)
    chosen = np.flatnonzero(~has_truth) if nodes is None else read_nodes(nodes, model.ids, reading, notes=notes)
    both = int(has_truth[chosen].sum())
    if both:
        notes.append(
            f"{both:,} of the nodes to predict have a {files.column}; it is left out of the threshold of its own node, "
            f"but not out of what all {files.column}s determine together (the level, the evidence)"
        )
    return Inputs(
        model.ids,
        graph,
        model.values,
        known.values,
        chosen,
        known.class_names,
        model.score,
        notes,
        model.prediction,
        known.integers,
    )


# -- what differs ------------------------------------------------------------------------------------------------------


class _Files(ABC):
    """How the files of one kind of prediction are read."""

    #: The column of the truth, and what it holds where that is unknown.
    column: str
    unknown: float

    @abstractmethod
    def read_outputs(self, path: PathLike, reading: Reading) -> _Model:
        """Read what the model says."""

    @abstractmethod
    def read_truth(
        self, path: PathLike, nodes: NodeIds, class_names: list[str] | None, reading: Reading, notes: list[str]
    ) -> _Truth:
        """Read what is known of nodes."""


class _LabelFiles(_Files):
    column, unknown = "label", -1

    def read_outputs(self, path: PathLike, reading: Reading) -> _Model:
        table = read_probabilities(path, reading)
        return _Model(table.ids, table.values, table.class_names)

    def read_truth(
        self, path: PathLike, nodes: NodeIds, class_names: list[str] | None, reading: Reading, notes: list[str]
    ) -> _Truth:
        labels = read_labels(path, nodes, class_names, reading, notes=notes)
        return _Truth(labels.values, labels.class_names, labels.integers)


class _NumberFiles(_Files):
    column, unknown = "target", math.nan

    def read_outputs(self, path: PathLike, reading: Reading) -> _Model:
        table = read_numbers(path, reading)
        return _Model(table.ids, table.values, None, table.score, table.notes, PredictionIntervals)

    def read_truth(
        self, path: PathLike, nodes: NodeIds, class_names: list[str] | None, reading: Reading, notes: list[str]
    ) -> _Truth:
        return _Truth(read_targets(path, nodes, reading, notes=notes))


_FILES: dict[type[Prediction], _Files] = {PredictionSets: _LabelFiles(), PredictionIntervals: _NumberFiles()}
