"""CalibrationData: what calibration starts from, checked once; and labelled nodes with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    Sealed,
    as_column,
    check_index,
    check_row_count,
    check_scores,
    count_trained,
    frozen,
    sealed,
    training_nodes,
)
from napsets.checks.frames import align, check_class_names, counts_from_0, find_nodes, has_own_index, named_columns
from napsets.checks.values import Record, check_flag, check_names
from napsets.edges import node_names
from napsets.errors import InvalidInputError, warn
from napsets.features import Features, check_features
from napsets.graph import Graph, as_graph
from napsets.kernels.threads import Progress, stages
from napsets.levels import Level
from napsets.localisers import Reference
from napsets.predictions import Prediction, PredictionSets
from napsets.randomness import node_uniforms, split_order
from napsets.scores import BoundScore, Labelled, Score, bind, prediction_type


@dataclass(frozen=True, eq=False)
class Scored(Sealed):
    """Labelled nodes with their scores: those from which thresholds are computed, and those held out for the level."""

    #: The inputs of the calibration, without the truth: that of the labelled nodes stands below.
    data: CalibrationData
    score: Score  #: what they were scored with
    seed: int  #: seed of the uniform numbers and of the split
    u: FloatArray  #: the uniform number of every node
    bound: BoundScore  #: the score of every node
    reference: Reference  #: nodes, scores and graph
    #: The nodes held out for the level, and the score of each at its truth.
    level_nodes: IntArray
    level_scores: FloatArray
    #: The truth of the reference nodes and of the level nodes.
    labels: AnyArray
    level_labels: AnyArray
    #: Whether the score applies what was learned from earlier reference labels, as in a living graph.
    learned_before: bool = False

    @property
    def ids(self) -> AnyArray | None:
        """The user's names of all nodes; None if nodes are known by their positions."""
        return self.data.ids if self.data.named else None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes."""
        return self.data.class_names

    @property
    def evidence(self) -> bool:
        """Whether the reference is `evidence`, labels of any origin, and not a random part of the calibration nodes."""
        return self.data.evidence is not None

    @cached_property
    def calibration(self) -> IntArray:
        """All labelled nodes, in ascending order."""
        return sealed(np.sort(np.concatenate([self.reference.nodes, self.level_nodes])))

    @property
    def sample(self) -> IntArray:
        """The labelled nodes that must be a random sample: all of them, or all except the evidence."""
        return self.level_nodes if self.evidence else self.calibration

    def level_truth(self) -> tuple[IntArray, AnyArray]:
        """Return the nodes whose labels set the level (those held out, or all where none is), and their truth."""
        if self.level_nodes.size:
            return self.level_nodes, self.level_labels
        return self.reference.nodes[: self.labels.size], self.labels


@dataclass(frozen=True, eq=False)
class CalibrationData(Sealed):
    """The arguments of a calibration, checked once for all methods that use them."""

    graph: Graph | None  #: the graph whose neighbourhoods count
    outputs: AnyArray  #: the model's probabilities, or what else its scores are made of, one row per node
    truth: AnyArray  #: one label per node, −1 where unknown; or one number, NaN where unknown
    calibration: IntArray  #: the nodes whose truth may be used, in ascending order
    ids: AnyArray  #: what the nodes are called; their random numbers are drawn from it
    class_names: tuple[str, ...] | None = None  #: what the classes are called
    prediction: type[Prediction] = PredictionSets  #: what is to be predicted: `PredictionSets` or `PredictionIntervals`
    trained: int = 0  #: how many calibration nodes are in the `train_mask` of a graph of PyTorch Geometric
    training: BoolArray | None = None  #: which nodes are in that `train_mask`
    named: bool = False  #: whether `ids` are the user's names for nodes, which predictions are to know
    progress: Progress | None = None  #: where to report how far the calibration is
    #: The reference and the level nodes, where they are given instead of drawn from the ids.
    split: tuple[IntArray, IntArray] | None = None
    #: Labelled nodes of any origin, which are the reference; then all calibration nodes set the level.
    evidence: IntArray | None = None
    features: Features | None = None  #: by which nodes are similar, one row per node
    _scored: dict[Any, Scored] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        graph: object,
        outputs: ArrayLike,
        truth: ArrayLike,
        calibration: ArrayLike,
        *,
        evidence: ArrayLike | None = None,
        features: object = None,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        score: object = None,
        compares: bool = True,
        logits: bool = False,
    ) -> CalibrationData:
        """Make the data from the arguments of `calibrate`: rows with an index, logits, nodes named by their ids.

        Features are left out unless a method `compares` nodes by them.
        """
        prediction = prediction_type(score)
        outputs_name, truth_name = prediction.outputs_name, prediction.truth_name
        if prediction is PredictionSets:
            outputs, class_names = named_columns(outputs, check_names("class_names", class_names))
        labelled = (
            {"calibration": calibration} if evidence is None else {"calibration": calibration, "evidence": evidence}
        )
        # A mask has one entry per node, and is aligned as the rows are; nodes are not.
        masks = {name: nodes for name, nodes in labelled.items() if as_column(name, nodes).dtype == np.bool_}
        if features is None and compares and hasattr(graph, "edge_index"):
            features = getattr(graph, "x", None)  # of a graph of PyTorch Geometric
        if features is not None and not compares:
            warn("`features` are ignored: no method that is calibrated here compares nodes by them")
            features = None
        rows: Record = {outputs_name: outputs, truth_name: truth, **masks}
        if features is not None and not hasattr(features, "tocsr"):
            rows["features"] = features
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
        labelled |= {name: rows[name] for name in masks}
        named = ids is not None
        return cls.check(
            graph, outputs, truth, **labelled, ids=ids, class_names=class_names, score=score, named=named,
            features=rows.get("features", features),
        )  # fmt: skip

    @classmethod
    def check(
        cls,
        graph: object,
        outputs: ArrayLike,
        truth: ArrayLike,
        calibration: ArrayLike,
        *,
        evidence: ArrayLike | None = None,
        features: object = None,
        ids: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        score: object = None,
        named: bool = False,
    ) -> CalibrationData:
        """Check the arguments of a calibration; the requirements for `outputs` and `truth` depend on the score."""
        prediction = prediction_type(score)
        rows = prediction.check_outputs(outputs, num_nodes=graph.num_nodes if isinstance(graph, Graph) else None)
        mask = getattr(graph, "train_mask", None)
        if graph is not None and not isinstance(graph, Graph):
            graph = as_graph(graph, rows.shape[0], _node_ids(ids, rows.shape[0]) if named else None)
            check_row_count(prediction.outputs_name, rows, graph.num_nodes)
        y = prediction.check_truth(truth, rows)
        classes = rows.shape[1] if prediction is PredictionSets else 0
        names = _node_ids(ids, rows.shape[0])
        known_ids = names if named else None
        known = _labelled_nodes("calibration", calibration, y, prediction, known_ids)
        taught = None if evidence is None else _labelled_nodes("evidence", evidence, y, prediction, known_ids)
        if taught is not None:
            both, taught = taught.size, np.setdiff1d(taught, known, assume_unique=True)
            if not taught.size:
                raise InvalidInputError(
                    f"`evidence` must hold nodes outside `calibration`; all {both} are in both, and count as "
                    f"calibration. Leave it out to learn from half of `calibration`."
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
            training_nodes(mask, rows.shape[0]),
            named,
            evidence=taught,
            features=None if features is None else check_features("features", features, rows.shape[0], names),
        )

    def steps(self, *sizes: int) -> list[Progress | None]:
        """Return a report for each step of a calibration; together they count from 0 to the labelled nodes."""
        return stages(self.progress, sizes, self.calibration.size)

    def without_evidence(self) -> CalibrationData:
        """Return the same data for a method that learns nothing, with the calibration labels alone."""
        return self if self.evidence is None else replace(self, evidence=None, _scored={})

    def reference_size(self, level: Level) -> int:
        """Return the size of the reference part at a level: that of the evidence, where there is any."""
        return level.reference_size(self.calibration.size) if self.evidence is None else self.evidence.size

    def scored(self, score: Score, level: Level, seed: int) -> Scored:
        """Return the nodes scored, with as many reference nodes as the level needs; kept for the next call."""
        size = self.reference_size(level)
        key = (score, size, seed)
        try:
            return self._scored[key]
        except (KeyError, TypeError):  # a score of the user's own need not be hashable
            scored = self.scored_in_parts(score, seed, *self.parts(size, seed))
        with suppress(TypeError):
            self._scored[key] = scored
        return scored

    def forget(self) -> None:
        """Release the scores that were kept: their arrays have one row per node."""
        self._scored.clear()

    def scored_in_parts(
        self,
        score: Score,
        seed: int,
        reference: IntArray,
        held_out: IntArray,
        *,
        learned: Any = None,
        u: FloatArray | None = None,
    ) -> Scored:
        """Return the nodes scored, with the labelled nodes in two parts that are given, each in ascending order.

        What an informed score `learned` before may be passed, and the uniform numbers `u` if they are not to be drawn
        from the ids.
        """
        u = node_uniforms(self.ids, seed) if u is None else u
        known, held = (Labelled(nodes, self.truth[nodes]) for nodes in (reference, held_out))
        bound = bind(score, self.outputs, u, self.graph, known, learned, self.features)
        reference_scores = _scores_at(score, bound, reference, known.labels)
        labels = known.labels if bound.num_labels else None
        return Scored(
            replace(self, truth=self.truth[:0], progress=None, _scored={}),
            score,
            seed,
            u,
            bound,
            Reference(reference, reference_scores, self.outputs.shape[0], self.graph, bound.probabilities, u, labels),
            held_out,
            _scores_at(score, bound, held_out, held.labels) if held_out.size else np.empty(0),
            known.labels,
            held.labels,
            learned is not None,
        )

    def parts(self, size: int, seed: int) -> tuple[IntArray, IntArray]:
        """Return the reference and the level nodes: evidence and calibration, or the latter split by (seed, id)."""
        if self.evidence is not None:
            return self.evidence, self.calibration
        if size == self.calibration.size:
            return self.calibration, np.empty(0, dtype=np.int64)
        if self.split is not None:
            return self.split
        order = split_order(self.ids[self.calibration], seed)
        return self.calibration[np.sort(order[:size])], self.calibration[np.sort(order[size:])]


def _labelled_nodes(
    name: str, nodes: ArrayLike, truth: AnyArray, prediction: type[Prediction], ids: AnyArray | None
) -> IntArray:
    """Return the positions of labelled nodes, in ascending order, so that the order of the input changes no digit."""
    places = nodes if ids is None else find_nodes(name, nodes, ids, hint="a boolean mask")
    known = np.sort(check_index(name, places, truth.size, unique=True))
    if known.size == 0:
        raise InvalidInputError(f"`{name}` must hold at least one node; it is empty")
    unknown = known[~prediction.known(truth)[known]]
    if unknown.size:
        first = unknown[0] if ids is None else ids[unknown[0]]
        raise InvalidInputError(
            f"`{name}` must hold nodes whose {prediction.truth_name.removesuffix('s')} is known; {unknown.size} are "
            f"not, node {first} first"
        )
    return known


def _node_ids(ids: ArrayLike | None, size: int) -> AnyArray:
    """Return the names of the nodes: their numbers by default."""
    names = np.arange(size) if ids is None else frozen(as_column("ids", ids))
    if names.shape != (size,):
        raise InvalidInputError(f"`ids` must have one entry per node, {size}; got shape {names.shape}")
    return names


def _scores_at(score: Score, bound: BoundScore, nodes: IntArray, truth: AnyArray) -> FloatArray:
    """Return the scores of nodes at their truth, checked, because a user's score may return anything."""
    scores = bound.at(nodes, truth)
    try:
        return check_scores("scores", scores, size=nodes.size)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"`score` must give one number for each node and label; with {type(score).__name__}, {error}"
        ) from error


def known_to_model(data: CalibrationData, nodes: IntArray) -> int:
    """Count the nodes that are known to have trained the model."""
    return 0 if data.training is None else int(data.training[nodes].sum())


def on_training(known: int, nodes: int) -> str | None:
    """Return a warning if the model was trained on some of the nodes to predict."""
    if not known:
        return None
    return (
        f"{known:,} of the {nodes:,} nodes to predict are in `train_mask`: the model knows their labels, so their sets "
        f"say nothing about other nodes. Pass the nodes to predict, such as those of `test_mask`"
    )
