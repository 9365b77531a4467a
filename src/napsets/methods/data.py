"""CalibrationData: what calibration starts from, checked once; labelled nodes with their scores; and new nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    Sealed,
    as_column,
    check_index,
    check_integers,
    check_row_count,
    check_scores,
    count_trained,
    frozen,
    sealed,
)
from napsets.checks.frames import align, check_class_names, counts_from_0, find_nodes, has_own_index, named_columns
from napsets.checks.values import check_flag, check_names
from napsets.edges import compress, node_names
from napsets.errors import InvalidInputError
from napsets.graph import Graph, as_graph
from napsets.kernels.threads import Progress, stages
from napsets.levels import Full, Level
from napsets.localisers import Reference
from napsets.predictions import Prediction, PredictionSets
from napsets.randomness import node_uniforms, split_order
from napsets.scores import BoundScore, Labelled, bind, prediction_type
from napsets.scores.base import BoundRows, can_use_held_out
from napsets.scores.residuals import BoundIntervals


def _no_nodes() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Scored(Sealed):
    """Labelled nodes with their scores: those from which thresholds are computed, and those held out for the level."""

    score: Any  #: what they were scored with
    seed: int  #: seed of the uniform numbers and of the split
    u: FloatArray  #: the uniform number of every node
    bound: Any  #: the score of every node
    reference: Reference  #: nodes, scores and graph
    #: The nodes held out for the level, and the score of each at its truth.
    level_nodes: IntArray
    level_scores: FloatArray
    #: The truth of the reference nodes and of the level nodes; empty where it is not known any more: a file keeps it
    #: only for methods that have groups.
    labels: npt.NDArray[Any] = field(default_factory=_no_nodes)
    level_labels: npt.NDArray[Any] = field(default_factory=_no_nodes)
    ids: npt.NDArray[Any] | None = None  #: what the user calls all nodes, where they have names of their own
    class_names: tuple[str, ...] | None = None  #: what the classes are called
    #: The score with the evidence of the reference alone, where the held-out labels are evidence too in `bound`; None
    #: where it is not known any more, as in a method from a file.
    alone: Any = None

    def without_held_out_evidence(self) -> Scored:
        """Return the same nodes without the held-out labels as evidence, for an exact level that is not full."""
        if self.alone is None or self.alone is self.bound:
            return self
        scores = self.alone.at(self.level_nodes, self.level_labels)
        return replace(self, bound=self.alone, level_scores=scores)

    @cached_property
    def calibration(self) -> IntArray:
        """All labelled nodes, in ascending order."""
        return sealed(np.sort(np.concatenate([self.reference.nodes, self.level_nodes])))


@dataclass(frozen=True, eq=False)
class CalibrationData(Sealed):
    """The arguments of a calibration, checked once for all methods that use them."""

    graph: Graph | None  #: the graph whose neighbourhoods count
    outputs: npt.NDArray[Any]  #: the model's probabilities, or what else its scores are made of, one row per node
    truth: npt.NDArray[Any]  #: one label per node, −1 where unknown; or one number, NaN where unknown
    calibration: IntArray  #: the nodes whose truth may be used, in ascending order
    ids: npt.NDArray[Any]  #: what the nodes are called; their random numbers are drawn from it
    class_names: tuple[str, ...] | None = None  #: what the classes are called
    prediction: type[Prediction] = PredictionSets  #: what is to be predicted: `PredictionSets` or `PredictionIntervals`
    trained: int = 0  #: how many calibration nodes are in the `train_mask` of a graph of PyTorch Geometric
    named: bool = False  #: whether `ids` are the user's names for nodes, which predictions are to know
    progress: Any = None  #: where to report how far the calibration is
    #: The reference and the level nodes, where they are given instead of drawn from the ids.
    split: tuple[IntArray, IntArray] | None = None
    _scored: dict[Any, Scored] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        graph: Any,
        outputs: ArrayLike,
        truth: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        score: Any = None,
        logits: bool = False,
    ) -> CalibrationData:
        """Take what a user passes to `calibrate`: rows with an index of their own, logits, nodes named by their ids."""
        prediction = prediction_type(score)
        outputs_name, truth_name = prediction.outputs_name, prediction.truth_name
        if prediction is PredictionSets:
            outputs, class_names = named_columns(outputs, check_names("class_names", class_names))
        rows = {outputs_name: outputs, truth_name: truth, "calibration": calibration}
        if as_column("calibration", calibration).dtype != np.bool_:
            del rows["calibration"]  # these are nodes, and not one entry per node
        names = None if isinstance(graph, Graph) else node_names(graph)
        in_order = names is None or names.dtype.kind not in "iu" or counts_from_0(names)
        if names is not None and not in_order and counts_from_0(np.sort(names)):
            if ids is None and not any(map(has_own_index, rows.values())):
                raise InvalidInputError(
                    "`graph` must have its nodes 0..n−1 in this order, or row i could be node i as well as the i-th of "
                    "graph.nodes. Pass ids=range(n), or ids=list(graph.nodes), to say which"
                )
            if ids is None:
                graph, names = as_graph(graph, names.size, np.arange(names.size)), None
        rows, ids = align(rows, ids, names)
        if ids is None and names is not None and names.size == len(as_column(outputs_name, outputs)):
            plain_names = names.dtype.kind in "iu" or all(isinstance(name, str) for name in names)
            ids = names if plain_names and not counts_from_0(names) else None
        outputs = prediction.of_logits(rows[outputs_name]) if check_flag("logits", logits) else rows[outputs_name]
        truth = prediction.of_names(rows[truth_name], class_names)
        chosen = rows.get("calibration", calibration)
        named = ids is not None
        return cls.check(graph, outputs, truth, chosen, ids=ids, class_names=class_names, score=score, named=named)

    @classmethod
    def check(
        cls,
        graph: Any,
        outputs: ArrayLike,
        truth: ArrayLike,
        calibration: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        score: Any = None,
        named: bool = False,
    ) -> CalibrationData:
        """Refuse arguments that cannot be calibrated on; what `outputs` and `truth` must be depends on the score."""
        prediction = prediction_type(score)
        rows = prediction.check_outputs(outputs, num_nodes=graph.num_nodes if isinstance(graph, Graph) else None)
        mask = getattr(graph, "train_mask", None)
        if graph is not None and not isinstance(graph, Graph):
            graph = as_graph(graph, rows.shape[0], _node_ids(ids, rows.shape[0]) if named else None)
            check_row_count(prediction.outputs_name, rows, graph.num_nodes)
        y = prediction.check_truth(truth, rows)
        classes = rows.shape[1] if prediction is PredictionSets else 0
        names = _node_ids(ids, rows.shape[0])
        chosen = find_nodes("calibration", calibration, names, way="a boolean mask") if named else calibration
        # In ascending order, so that no last digit depends on the order in which they came.
        known = np.sort(check_index("calibration", chosen, y.size, unique=True))
        if known.size == 0:
            raise InvalidInputError("`calibration` must hold at least one node; it is empty")
        unknown = known[~prediction.known(y)[known]]
        if unknown.size:
            raise InvalidInputError(
                f"`calibration` must hold nodes whose {prediction.truth_name.removesuffix('s')} is known; "
                f"{unknown.size} are not, node {unknown[0]} first"
            )
        return cls(
            graph,
            frozen(rows),
            frozen(y),
            known,
            names,
            check_class_names(class_names, classes, score),
            prediction,
            count_trained(mask, known, rows.shape[0]),
            named,
        )

    def steps(self, *sizes: int) -> list[Progress | None]:
        """Return a report for each step of a calibration; together they count from 0 to the labelled nodes."""
        return stages(self.progress, sizes, self.calibration.size)

    def scored(self, score: Any, level: Level, seed: int) -> Scored:
        """Return the nodes scored, with as many reference nodes as the level needs; kept for the next call."""
        size = level.reference_size(self.calibration.size)
        key = (score, size, _uses_held_out(score, level), seed)
        try:
            return self._scored[key]
        except (KeyError, TypeError):  # a score of the user's own need not be hashable
            scored = self.scored_in_parts(score, seed, *self.parts(size, seed), level=level)
        with suppress(TypeError):
            self._scored[key] = scored
        return scored

    def forget(self) -> None:
        """Release the scores that were kept: their arrays have one row per node."""
        self._scored.clear()

    def scored_in_parts(
        self,
        score: Any,
        seed: int,
        reference: IntArray,
        held_out: IntArray,
        *,
        level: Level | None = None,
        learned: Any = None,
        u: FloatArray | None = None,
    ) -> Scored:
        """Return the nodes scored, with the labelled nodes in two parts that are given, each in ascending order.

        At a full `level` the held-out labels are evidence too. What an informed score `learned` from other reference
        labels may be passed, and the uniform numbers `u` if they are not to be drawn from the ids.
        """
        u = node_uniforms(self.ids, seed) if u is None else u
        known, held = (Labelled(nodes, self.truth[nodes]) for nodes in (reference, held_out))
        bag = held if _uses_held_out(score, level) else None
        if bag is not None or learned is not None:
            alone, bound = score.bind_with_bag(self.outputs, u, self.graph, known, bag, learned)
        else:
            alone = bound = bind(score, self.outputs, u, self.graph, known)
        reference_scores = _scores_at(score, alone, reference, known.labels)
        labels = known.labels if alone.num_labels else None
        return Scored(
            score,
            seed,
            u,
            bound,
            Reference(reference, reference_scores, self.outputs.shape[0], self.graph, alone.probabilities, u, labels),
            held_out,
            _scores_at(score, bound, held_out, held.labels) if held_out.size else np.empty(0),
            known.labels,
            held.labels,
            self.ids if self.named else None,
            self.class_names,
            alone,
        )

    def parts(self, size: int, seed: int) -> tuple[IntArray, IntArray]:
        """Split the calibration nodes by (seed, id) alone: a reference part of that size, and the level nodes."""
        if size == self.calibration.size:
            return self.calibration, np.empty(0, dtype=np.int64)
        if self.split is not None:
            return self.split
        order = split_order(self.ids[self.calibration], seed)
        return self.calibration[np.sort(order[:size])], self.calibration[np.sort(order[size:])]


def _node_ids(ids: ArrayLike | None, size: int) -> npt.NDArray[Any]:
    """Return what the nodes are called: their numbers by default."""
    names = np.arange(size) if ids is None else frozen(as_column("ids", ids))
    if names.shape != (size,):
        raise InvalidInputError(f"`ids` must have one entry per node, {size}; got shape {names.shape}")
    return names


def _scores_at(score: Any, bound: BoundScore, nodes: IntArray, truth: npt.NDArray[Any]) -> FloatArray:
    """Return the scores of nodes at their truth; a score of the user's own may give anything."""
    scores = bound.at(nodes, truth)
    try:
        return check_scores("scores", scores, size=nodes.size)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"`score` must give one number for each node and label; with {type(score).__name__}, {error}"
        ) from error


def _uses_held_out(score: Any, level: Level | None) -> bool:
    """Return whether the held-out labels are evidence too: at a full level, for a score that can use them."""
    return isinstance(level, Full) and can_use_held_out(score)


# -- nodes that were not there at calibration --------------------------------------------------------------------------


def with_new_nodes(calibrated: Any, outputs: ArrayLike, edges: ArrayLike | None, ids: ArrayLike | None) -> Any:
    """Return the same method calibrated on the same labels, split alike, with new nodes and edges in the graph.

    What was chosen stays chosen; what is fitted is fitted on the graph as it is then. In `edges`, n, n+1, … are the new
    nodes where n were there; by default they are also called so.
    """
    scored: Scored = calibrated.scored
    before = model_outputs(calibrated)
    if before is None:
        raise InvalidInputError(
            f"`method` must keep what the model said, to score new nodes; {type(calibrated.score).__name__} does not. "
            f"Calibrate again, with the new nodes in the graph."
        )
    rows = calibrated.prediction.check_outputs(outputs)
    rows = rows.reshape(-1, 1) if rows.ndim < before.ndim else rows  # one number per node
    if rows.shape[1:] != before.shape[1:]:
        raise InvalidInputError(
            f"`{calibrated.prediction.outputs_name}` must have as many columns as at calibration, {before.shape[1:]}; "
            f"got {rows.shape[1:]}"
        )
    size = before.shape[0] + rows.shape[0]
    names = np.arange(before.shape[0], size) if ids is None else as_column("ids", ids)
    if names.shape != (rows.shape[0],):
        raise InvalidInputError(f"`ids` must have one entry per new node, {rows.shape[0]}; got shape {names.shape}")
    if scored.ids is not None and ids is None:
        raise InvalidInputError("`ids` must name the new nodes, as calibrate(...) was given names; got None")
    u = np.concatenate([scored.u, node_uniforms(names, scored.seed)])
    every = None if scored.ids is None else np.concatenate([scored.ids.astype(object), names.astype(object)])
    graph = _with_edges(scored.reference.graph, edges, before.shape[0], size)
    together = np.concatenate([before, rows.astype(before.dtype, copy=False)])
    method, bound, old = calibrated.method, scored.bound, scored.reference
    if isinstance(bound, BoundRows) or type(bound) is BoundIntervals:
        # Scores of nodes that were there stay as they are: no label is needed, only the graph is another.
        rows_alone = isinstance(bound, BoundRows)
        bound = BoundRows(bound.score, together, u) if rows_alone else BoundIntervals(bound.score, together)
        reference = replace(old, num_nodes=size, graph=graph, probabilities=bound.probabilities, u=u)
        return method.on(replace(scored, u=u, bound=bound, reference=reference, ids=every))
    if scored.labels.size != old.nodes.size:
        raise InvalidInputError(
            "`calibrated` must know its labels to score new nodes, and a file does not keep them; calibrate again"
        )
    truth = np.full(size, -1, dtype=np.asarray(scored.labels).dtype)
    truth[old.nodes], truth[scored.level_nodes] = scored.labels, scored.level_labels
    names = np.arange(size) if every is None else every
    data = CalibrationData(graph, together, truth, scored.calibration, names, scored.class_names, calibrated.prediction)
    parts = old.nodes, scored.level_nodes
    return method.on(data.scored_in_parts(method.score, method.seed, *parts, level=method.level, u=u))


def model_outputs(calibrated: Any) -> npt.NDArray[Any] | None:
    """Return what the model said of the nodes, before evidence or a correction changed it; None if that is not kept."""
    bound = calibrated.score
    while bound is not None:
        for name in ("model", "outputs", "probabilities"):
            if isinstance(bound, BoundRows | BoundIntervals) or name != "probabilities":
                rows: npt.NDArray[Any] | None = getattr(bound, name, None)
                if rows is not None:
                    return rows
        bound = getattr(bound, "inner", None)
    return None


def _with_edges(graph: Graph | None, edges: ArrayLike | None, before: int, size: int) -> Graph | None:
    """Return the graph with new nodes and edges, each of which has a new node at one end at least."""
    if graph is None:
        if edges is not None:
            raise InvalidInputError("`edges` must be None for a method that was calibrated without a graph")
        return None
    ends: IntArray = check_integers("edges", np.empty((2, 0), dtype=np.int64) if edges is None else edges, ndim=2)
    if ends.shape[0] != 2:
        raise InvalidInputError(f"`edges` must have shape (2, edges); got {ends.shape}")
    if ends.size and not (ends.min() >= 0 and ends.max() < size):
        raise InvalidInputError(
            f"`edges` must hold nodes from 0 to {size - 1}, of which {before} to {size - 1} are new; got "
            f"{int(ends.min() if ends.min() < 0 else ends.max())}"
        )
    if ends.size and (ends.max(axis=0) < before).any():
        pair = ends[:, int((ends.max(axis=0) < before).argmax())]
        raise InvalidInputError(
            f"`edges` must each have a new node at one end; {pair[0]} to {pair[1]} joins two that were there before"
        )
    if graph.lengths is not None:
        raise InvalidInputError("`edges` must have lengths in this graph; calibrate again, with the new nodes in it")
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    indptr, indices, _ = compress(
        np.concatenate([source, ends[0]]), np.concatenate([graph.indices, ends[1]]), size, graph.directed
    )
    return Graph._from_rows(indptr, indices, graph.directed)
