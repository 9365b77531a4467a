"""What all cells of one dataset, model and seed share: the test subgraph, the scores, and who is drawn when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.datasets import NodeDataset
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import neighbourhood_partition
from napsets.files.predictions import NodePredictions
from napsets.graph import Graph
from napsets.localisers.neighbourhoods import CalibrationIndex, neighbourhood_thresholds
from napsets.paper.cells import CoverageCell
from napsets.paper.setups import CUTOFF_HOPS, Setup
from napsets.randomness import node_uniforms
from napsets.scores import APS

__all__ = ["Bench", "Predictor", "eligible_nodes"]

#: Gives the predictions of a cell's model on its dataset.
Predictor = Callable[[CoverageCell, NodeDataset], NodePredictions]

#: Keeps the streams of random numbers of one seed apart.
_EVALUATION, _HALVES = 1, 2


@dataclass(frozen=True, eq=False)
class Bench:
    """One trained model on the subgraph induced on a dataset's test nodes.

    Attributes
    ----------
    setup : Setup
        The dataset's settings.
    graph : Graph
        The test subgraph; its nodes are 0..n−1.
    labels, score_matrix : numpy.ndarray
        Truth, and the APS score of every label, of each of those nodes.
    eligible : numpy.ndarray
        Nodes that may be evaluated: the paper's N^cal.
    accuracy : float
        Of the model on all test nodes.
    seed : int
        Draws the repetitions.
    train_seconds : float
        How long the training took when it was run; NaN where that is not known.
    """

    setup: Setup
    graph: Graph
    labels: IntArray
    score_matrix: FloatArray
    eligible: IntArray
    accuracy: float
    seed: int
    train_seconds: float = float("nan")

    @classmethod
    def build(cls, setup: Setup, data: NodeDataset, predictions: NodePredictions, seed: int) -> Bench:
        """Score the test nodes of a dataset."""
        graph = data.graph.subgraph(data.test)
        ours = predictions.take(data.test)
        # u belongs to the node's id in the whole graph, wherever it stands in the subgraph.
        matrix = APS().matrix(ours.probabilities, node_uniforms(data.test, seed))
        seconds = float(predictions.settings.get("train_seconds", "nan"))
        eligible = eligible_nodes(graph, setup)
        return cls(setup, graph, data.labels[data.test], matrix, eligible, predictions.accuracy, seed, seconds)

    @cached_property
    def scores(self) -> FloatArray:
        """Score of each node at its label."""
        scores: FloatArray = self.score_matrix[np.arange(self.labels.size), self.labels]
        return scores

    @cached_property
    def index(self) -> CalibrationIndex:
        """All test nodes in the order of their scores; protocols choose among them."""
        return CalibrationIndex(self.graph, self.scores, np.arange(self.graph.num_nodes))

    def draws(self, repetitions: int, evaluated: int) -> list[IntArray]:
        """Return the evaluation nodes of each repetition, drawn from the eligible nodes without replacement."""
        if evaluated >= self.eligible.size:
            raise InvalidInputError(
                f"`evaluated` must be below the number of eligible nodes, {self.eligible.size}; got {evaluated}"
            )
        rng = np.random.default_rng([self.seed, _EVALUATION])
        return [np.sort(rng.choice(self.eligible, evaluated, replace=False)) for _ in range(repetitions)]

    def halves(self, repetitions: int) -> list[IntArray]:
        """Return the tested half of the eligible nodes in each repetition of PCCV."""
        rng = np.random.default_rng([self.seed, _HALVES])
        return [np.sort(rng.permutation(self.eligible)[: self.eligible.size // 2]) for _ in range(repetitions)]

    def balls(self, half: IntArray, repetition: int) -> list[IntArray]:
        """Cut a tested half into neighbourhoods of radius 2, the largest first."""
        seed = int(np.random.default_rng([self.seed, _HALVES, repetition]).integers(2**31))
        return neighbourhood_partition(self.graph, half, radius=2, min_size=1, seed=seed)

    def mask(self, nodes: IntArray) -> BoolArray:
        """Return which test nodes are among `nodes`."""
        mask: npt.NDArray[np.bool_] = np.zeros(self.graph.num_nodes, dtype=bool)
        mask[nodes] = True
        return mask


def eligible_nodes(graph: Graph, setup: Setup) -> IntArray:
    """Return the nodes with at least `cutoff` other test nodes within `CUTOFF_HOPS` hops of the test subgraph.

    Counted once, among all test nodes and before any draw. No label enters, so that it cannot leak one; a node
    then has a little less support in a repetition, whose evaluation nodes calibrate nothing.
    """
    everyone = np.arange(graph.num_nodes)
    index = CalibrationIndex(graph, np.zeros(graph.num_nodes), everyone)
    counts = neighbourhood_thresholds(index, everyone, np.ones(CUTOFF_HOPS), 0.5).hop_counts
    return np.flatnonzero(counts.sum(axis=1) >= setup.cutoff)
