"""Hypothesis strategies for the inputs of the method, awkward ones first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import napsets as ns

#: Weights and alphas are rational, so that an oracle can be exact; many make (1−α)(1+Σw) a reachable plateau.
ALPHAS = [
    Fraction(a, b) for a, b in [(1, 2), (1, 3), (1, 4), (1, 5), (1, 10), (1, 20), (2, 5), (3, 10), (9, 10), (1, 7)]
]
WEIGHTS = [Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 4), Fraction(0), Fraction(3), Fraction(7, 10)]

alphas = st.sampled_from(ALPHAS)


@dataclass(frozen=True)
class Case:
    """A graph as an edge list, who calibrates with which score, and what is asked."""

    num_nodes: int
    edges: list[tuple[int, int]]
    directed: bool
    calibration: list[int]
    scores: list[float]
    weights: list[Fraction]
    alpha: Fraction

    @property
    def graph(self) -> ns.Graph:
        pairs = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        return ns.Graph.from_edge_index(pairs.T, self.num_nodes, directed=self.directed)

    @property
    def nodes(self):
        return np.arange(self.num_nodes)

    def thresholds(self, **options):
        """What napsets gives for every node."""
        weights = [float(w) for w in self.weights]
        arguments = {
            "graph": self.graph,
            "scores": self.scores,
            "calibration": self.calibration,
            "nodes": self.nodes,
            "hop_weights": weights,
            "alpha": float(self.alpha),
        }
        return ns.hop_thresholds(**(arguments | options))

    def relabelled(self, order) -> Case:
        """The same case with node v called ``order[v]``."""
        return replace(
            self,
            edges=[(int(order[u]), int(order[v])) for u, v in self.edges],
            calibration=[int(order[v]) for v in self.calibration],
        )


@st.composite
def edge_lists(draw, num_nodes: int):
    """Sparse or dense, with hubs, repeated edges, self-loops, several components and isolated nodes."""
    node = st.integers(0, num_nodes - 1)
    kind = draw(st.sampled_from(["none", "random", "random", "hub", "path", "components", "complete"]))
    edges: list[tuple[int, int]] = []
    if kind == "random":
        edges = draw(st.lists(st.tuples(node, node), max_size=3 * num_nodes))
    elif kind == "hub":
        hub = draw(node)
        edges = [(hub, v) for v in range(num_nodes)]
    elif kind == "path":
        edges = [(v, v + 1) for v in range(num_nodes - 1)]
    elif kind == "components":
        edges = [(v, v + 1) for v in range(num_nodes - 1) if v % 5]
    elif kind == "complete":
        edges = [(u, v) for u in range(num_nodes) for v in range(u)]
    edges += draw(st.lists(st.tuples(node, node), max_size=4))
    return draw(st.permutations(edges)) if len(edges) < 30 else edges


#: Few distinct values, so that ties are common; −0.0 and infinities are values like any other.
tied_scores = st.sampled_from([0.0, -0.0, 0.25, 0.5, 0.5000000000000001, 1.0, float("inf"), -3.5])
any_scores = st.one_of(tied_scores, st.floats(allow_nan=False))


@st.composite
def cases(draw, max_nodes: int = 24, max_hops: int = 4, scores=any_scores):
    """A whole question: graph, calibration, scores, weights and alpha."""
    num_nodes = draw(st.integers(1, max_nodes))
    calibration = draw(st.lists(st.integers(0, num_nodes - 1), min_size=1, unique=True))
    return Case(
        num_nodes=num_nodes,
        edges=draw(edge_lists(num_nodes)),
        directed=draw(st.sampled_from([False, False, True])),
        calibration=calibration,
        scores=draw(st.lists(scores, min_size=len(calibration), max_size=len(calibration))),
        weights=draw(st.lists(st.sampled_from(WEIGHTS), min_size=1, max_size=max_hops)),
        alpha=draw(alphas),
    )


@st.composite
def probability_rows(draw, rows: int, classes: int, distinct: bool = False):
    """Rows on the simplex; with `distinct`, no two classes of a row are equally probable."""
    if distinct:
        parts = [draw(st.permutations(range(1, classes + 1))) for _ in range(rows)]
    else:
        parts = [draw(st.lists(st.integers(0, 6), min_size=classes, max_size=classes)) for _ in range(rows)]
    array = np.array(parts, dtype=np.float64).reshape(rows, classes)
    array[array.sum(axis=1) == 0] = 1.0
    return array / array.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Problem:
    """What the predictors take."""

    graph: ns.Graph
    probabilities: np.ndarray
    labels: np.ndarray
    calibration: np.ndarray
    hops: int
    decay: str
    alpha: float


@st.composite
def problems(draw, max_nodes: int = 20, classes: int | None = None, distinct: bool = False):
    """A classifier's probabilities and labels on a random graph, and the predictor's settings."""
    num_nodes = draw(st.integers(2, max_nodes))
    classes = classes or draw(st.integers(1, 5))
    pairs = np.array(draw(edge_lists(num_nodes)), dtype=np.int64).reshape(-1, 2)
    return Problem(
        graph=ns.Graph.from_edge_index(pairs.T, num_nodes),
        probabilities=draw(probability_rows(num_nodes, classes, distinct)),
        labels=np.array(draw(st.lists(st.integers(0, classes - 1), min_size=num_nodes, max_size=num_nodes))),
        calibration=np.array(draw(st.lists(st.integers(0, num_nodes - 1), min_size=1, unique=True))),
        hops=draw(st.integers(1, 3)),
        decay=draw(st.sampled_from(["uniform", "hyperbolic", "geometric"])),
        alpha=float(draw(alphas)),
    )
