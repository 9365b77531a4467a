"""Hypothesis strategies for the inputs of the method, awkward ones first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import napsets as ns
from searches import hop_thresholds

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
            "weights": weights,
            "alpha": float(self.alpha),
        }
        return hop_thresholds(**(arguments | options))

    def relabelled(self, order) -> Case:
        """The same case with node v called ``order[v]``."""
        return replace(
            self,
            edges=[(int(order[u]), int(order[v])) for u, v in self.edges],
            calibration=[int(order[v]) for v in self.calibration],
        )


#: Generators of random numbers: one draw, however much NumPy then makes of it.
generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def edge_lists(draw, num_nodes: int):
    """Sparse or dense, with hubs, repeated edges, self-loops, several components and isolated nodes."""
    kind = draw(st.sampled_from(["none", "random", "random", "hub", "path", "components", "complete"]))
    size, more, rng = draw(st.integers(0, 3 * num_nodes)), draw(st.integers(0, 4)), draw(generators)
    edges: list[tuple[int, int]] = []
    if kind == "random":
        edges = rng.integers(num_nodes, size=(size, 2)).tolist()
    elif kind == "hub":
        hub = int(rng.integers(num_nodes))
        edges = [(hub, v) for v in range(num_nodes)]
    elif kind == "path":
        edges = [(v, v + 1) for v in range(num_nodes - 1)]
    elif kind == "components":
        edges = [(v, v + 1) for v in range(num_nodes - 1) if v % 5]
    elif kind == "complete":
        edges = [(u, v) for u in range(num_nodes) for v in range(u)]
    edges += rng.integers(num_nodes, size=(more, 2)).tolist()
    return [tuple(edges[i]) for i in rng.permutation(len(edges))]


#: Few distinct values, so that ties are common; −0.0 and infinities are values like any other.
TIED = [0.0, -0.0, 0.25, 0.5, 0.5000000000000001, 1.0, float("inf"), -3.5]
any_scores = st.one_of(st.sampled_from(TIED), st.floats(allow_nan=False))


def scores_from(rng: np.random.Generator, count: int, values: list[float] | None) -> list[float]:
    """Scores among some values; by default tied ones, some between 0 and 1, and some of any size, by their bits."""
    scores = rng.choice(values or TIED, count)
    if values is None:
        kind, of_any_size = rng.integers(4, size=count), rng.integers(2**64, size=count, dtype=np.uint64).view(float)
        scores = np.select([kind == 1, (kind == 2) & ~np.isnan(of_any_size)], [rng.random(count), of_any_size], scores)
    return scores.tolist()


@st.composite
def cases(draw, max_nodes: int = 24, max_hops: int = 4, scores: list[float] | None = None):
    """A whole question: graph, calibration, scores, weights and alpha."""
    num_nodes, rng = draw(st.integers(1, max_nodes)), draw(generators)
    calibration = rng.permutation(num_nodes)[: draw(st.integers(1, num_nodes))].tolist()
    return Case(
        num_nodes=num_nodes,
        edges=draw(edge_lists(num_nodes)),
        directed=draw(st.sampled_from([False, False, True])),
        calibration=calibration,
        scores=scores_from(rng, len(calibration), scores),
        weights=draw(st.lists(st.sampled_from(WEIGHTS), min_size=1, max_size=max_hops)),
        alpha=draw(alphas),
    )


@st.composite
def probability_rows(draw, rows: int, classes: int, distinct: bool = False):
    """Rows on the simplex; with `distinct`, no two classes of a row are equally probable."""
    most, rng = draw(st.sampled_from([0, 1, 6])), draw(generators)
    if distinct:
        parts = rng.permuted(np.tile(np.arange(1.0, classes + 1), (rows, 1)), axis=1)
    else:
        parts = rng.integers(0, most + 1, (rows, classes)).astype(np.float64)
    parts[parts.sum(axis=1) == 0] = 1.0
    return parts / parts.sum(axis=1, keepdims=True)


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
    num_nodes, rng = draw(st.integers(2, max_nodes)), draw(generators)
    classes = classes or draw(st.integers(1, 5))
    pairs = np.array(draw(edge_lists(num_nodes)), dtype=np.int64).reshape(-1, 2)
    return Problem(
        graph=ns.Graph.from_edge_index(pairs.T, num_nodes),
        probabilities=draw(probability_rows(num_nodes, classes, distinct)),
        labels=rng.integers(classes, size=num_nodes),
        calibration=rng.permutation(num_nodes)[: draw(st.integers(1, num_nodes))],
        hops=draw(st.integers(1, 3)),
        decay=draw(st.sampled_from(["uniform", "hyperbolic", "geometric"])),
        alpha=float(draw(alphas)),
    )
