"""Labels around a node as evidence: the model's probabilities, corrected by what labelled neighbours say.

NAPS takes the scores of labelled neighbours and throws their labels away, which are the best evidence there is. Here
they speak:

    P'(y|v) ∝ P(y|v)^a · P̄(y|v)^c · Π_k E_k(y|v)^{b_k},   E_k(y|v) = (n_k(y) + κ_k π_y) / ((Σ_y n_k(y) + κ_k) π_y)

P̄ is the mean of what the model says of the neighbours and of their neighbours (P where there are none). The n_k count
reference nodes with label y, never v itself: *near*, the neighbours; *far*, the neighbours' neighbours, of which each
neighbour passes on its share (their number divided by its degree); *alike*, the nodes for which the model's first
choice is the same. π are the shares of labels in the reference, and E_k is 1 where there is no evidence.

The exponents are fitted on the reference nodes by maximum likelihood (conditional logit, which is convex; a node's own
label is not among its evidence, so this is leave-one-out), with a ridge towards "no evidence, no change". A negative
exponent is what heterophily looks like. Reference labels may be used for anything once the level is exact, so the
guarantee holds whatever was fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    check_count,
    check_index,
    check_labels,
    check_probabilities,
)
from napsets.checks.frozen import Sealed, frozen, sealed
from napsets.errors import InvalidInputError
from napsets.graph import Graph, check_graph
from napsets.scores.base import BOUND, SCORES, Labelled, bind, known_labels, make_score
from napsets.scores.ranks import APS

__all__ = ["BoundInformed", "Evidence", "Exponents", "Informed", "evidence_of", "informed_probabilities"]

#: A probability below it counts as this much: one confident mistake must not outweigh all evidence.
_LEAST = 1e-6
#: Strength of the ridge, in the units of the log likelihood: what a handful of labels can move.
RIDGE = 3.0
#: κ of each kind of evidence: so many labels weigh as much as the shares of labels in general.
PRIOR = {"near": 2.0, "far": 1.0, "alike": 10.0}
#: Reference nodes that the exponents are fitted on, at the most: a handful of numbers needs no more.
_MOST_FITTED = 1 << 14
#: Nodes × classes whose evidence is weighed, or fitted, at a time: what bounds the memory beside a few matrices.
_ENTRIES, _FITTED_ENTRIES = 1 << 19, 1 << 21
_ROUNDS, _HALVINGS = 50, 30


@dataclass(frozen=True)
class Exponents:
    """How much each source counts: (1, 0, 0, 0, 0) is the model alone.

    Attributes
    ----------
    model : float
        The model's own probabilities.
    around : float
        What the model says of the neighbours.
    near, far, alike : float
        The labels of neighbours, of neighbours' neighbours, and of nodes with the same prediction.
    """

    model: float = 1.0
    around: float = 0.0
    near: float = 0.0
    far: float = 0.0
    alike: float = 0.0

    def explain(self, shares: FloatArray | None = None) -> str:
        """Say in one line what a labelled neighbour does to the odds of its label.

        Parameters
        ----------
        shares : array, optional
            The shares of labels: the label meant is then as frequent as that of a node drawn at random is on average.
            By default, a label that a tenth of the nodes have.
        """
        share = 0.1 if shares is None else float((np.asarray(shares) ** 2).sum())
        prior = PRIOR["near"]
        # E(y) with one neighbour of label y, against E of any other label.
        odds = ((1.0 + prior * share) / (prior * share)) ** self.near
        way = "multiplies" if odds >= 1 else "divides"
        return f"a labelled neighbour {way} the odds of its label by {max(odds, 1 / odds):.1f}"


@SCORES.add("informed")
@dataclass(frozen=True)
class Informed:
    """A score of probabilities that the labels around a node have corrected. Needs an exact level.

    Attributes
    ----------
    base : Score or str
        The score of the corrected probabilities.
    hops : int
        1 looks at the labels of neighbours alone, 2 at those of their neighbours too; 0 at no labels of neighbours.
    """

    base: Any = field(default_factory=APS)
    hops: int = 2
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        object.__setattr__(self, "hops", check_count("hops", self.hops, maximum=2))

    def bind(
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None
    ) -> BoundInformed:
        """Fit the exponents on the reference labels, and return the score of the corrected probabilities."""
        if graph is None or reference is None:
            raise InvalidInputError("`graph` must be given to a score that looks at the labels around a node; got None")
        evidence = Evidence(outputs, graph, reference, self.hops)
        exponents = evidence.fit()
        probabilities = sealed(evidence.probabilities(exponents))
        inner = bind(self.base, probabilities, u, graph, reference)
        return BoundInformed(inner, outputs, exponents, reference)


def informed_probabilities(
    probabilities: ArrayLike, graph: Graph, nodes: ArrayLike, labels: ArrayLike, *, hops: int = 2
) -> tuple[npt.NDArray[Any], Exponents]:
    """Return the model's probabilities corrected by the labels of some nodes, and the exponents that were fitted.

    Parameters
    ----------
    probabilities : array of shape (nodes, classes)
        What the model says.
    graph : Graph
        The graph.
    nodes, labels : arrays
        The labelled nodes (indices or a boolean mask), and the label of each.
    hops : int
        As in `Informed`.
    """
    p = check_probabilities(probabilities, num_nodes=check_graph(graph).num_nodes)
    chosen = check_index("nodes", nodes, p.shape[0], unique=True)
    y = known_labels(labels, p[chosen])
    evidence = Evidence(p, graph, Labelled(chosen, y), check_count("hops", hops, maximum=2))
    exponents = evidence.fit()
    return evidence.probabilities(exponents), exponents


class Evidence:
    """What is known of every node and label beside the model's own word, as logarithms of odds.

    Takes O(edges × classes) time and O(nodes × classes) memory.
    """

    def __init__(self, outputs: npt.NDArray[Any], graph: Graph, reference: Labelled, hops: int) -> None:
        self.outputs, self.graph, self.reference, self.hops = outputs, graph, reference, hops
        nodes, classes = outputs.shape
        self.names = ("model", "around", *("near", "far")[:hops], "alike")
        counts = np.bincount(reference.labels, minlength=classes) + 1.0
        self.shares: FloatArray = counts / counts.sum()
        means = graph.neighbour_means(outputs.astype(np.float64))
        alone = graph.degrees == 0
        means[alone] = outputs[alone]
        further = graph.neighbour_means(means)
        further[alone] = outputs[alone]
        self.around = 0.5 * (means + further)
        self.label_of = np.full(nodes, -1, dtype=np.int64)
        self.label_of[reference.nodes] = reference.labels
        self.counts: dict[str, FloatArray] = {}
        if hops >= 1:
            self.counts["near"] = graph.neighbour_labels(self.label_of, classes)
        if hops == 2:
            part = 1.0 / np.maximum(graph.degrees, 1)
            passed = graph.neighbour_sums(part[:, None] * self.counts["near"])
            # What a node's own label comes back as, over each neighbour that has an edge back to it.
            passed[reference.nodes, reference.labels] -= sums_over_way_back(graph, part)[reference.nodes]
            self.counts["far"] = np.maximum(passed, 0.0)  # rounding may leave less than nothing
        self.predicted = outputs.argmax(axis=1)
        self.table = np.zeros((classes, classes))
        np.add.at(self.table, (self.predicted[reference.nodes], reference.labels), 1.0)

    def features(self, rows: IntArray) -> FloatArray:
        """Return the logarithms of all factors, shape (rows, classes, factors)."""
        parts = [np.log(np.maximum(p[rows].astype(np.float64), _LEAST)) for p in (self.outputs, self.around)]
        for name in self.names[2:]:
            counts = self._alike(rows) if name == "alike" else self.counts[name][rows]
            prior = PRIOR[name] * self.shares
            parts.append(np.log((counts + prior) / ((counts.sum(axis=1, keepdims=True) + PRIOR[name]) * self.shares)))
        return np.stack(parts, axis=2)

    def _alike(self, rows: IntArray) -> FloatArray:
        """Count the labels of reference nodes with the same prediction, a node's own left out."""
        counts: FloatArray = self.table[self.predicted[rows]]
        known = np.flatnonzero(self.label_of[rows] >= 0)
        counts[known, self.label_of[rows[known]]] -= 1.0
        return counts

    def fit(self) -> Exponents:
        """Return the exponents under which the reference labels are most likely, near "the model alone"."""
        nodes, labels = self.reference.nodes, self.reference.labels
        most = max(100, min(_MOST_FITTED, _FITTED_ENTRIES // self.outputs.shape[1]))
        if nodes.size > most:
            kept = np.linspace(0, nodes.size - 1, most).astype(np.int64)
            nodes, labels = nodes[kept], labels[kept]
        found = _conditional_logit(self.features(nodes), labels)
        return Exponents(**dict(zip(self.names, found.tolist(), strict=True)))

    def probabilities(self, exponents: Exponents) -> npt.NDArray[Any]:
        """Return the corrected probabilities of all nodes, as wide as the model's."""
        theta = np.array([getattr(exponents, name) for name in self.names])
        out = np.empty_like(self.outputs)
        step = max(1, _ENTRIES // out.shape[1])
        for start in range(0, out.shape[0], step):
            rows = np.arange(start, min(start + step, out.shape[0]))
            out[rows] = _softmax(_weighed(self.features(rows), theta))
        return out


@BOUND.add("informed")
@dataclass(frozen=True, eq=False)
class BoundInformed(Sealed):
    """A score of corrected probabilities, and how they were corrected.

    Attributes
    ----------
    inner : BoundScore
        The score of the corrected probabilities.
    outputs : numpy.ndarray
        What the model itself said.
    exponents : Exponents
        What was fitted.
    reference : Labelled
        Whose labels spoke.
    """

    inner: Any
    outputs: npt.NDArray[Any]
    exponents: Exponents
    reference: Labelled

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", frozen(self.outputs))

    @property
    def probabilities(self) -> npt.NDArray[Any]:
        """The corrected probabilities, a row a node."""
        found: npt.NDArray[Any] = self.inner.probabilities
        return found

    def at(self, nodes: IntArray, labels: IntArray) -> FloatArray:
        """Scores of the given nodes at the given labels."""
        found: FloatArray = self.inner.at(nodes, labels)
        return found

    def matrix(self, nodes: IntArray) -> FloatArray:
        """Scores of the given nodes at every label."""
        found: FloatArray = self.inner.matrix(nodes)
        return found

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        described, arrays = self.inner.parts()
        said = {name: getattr(self.exponents, name) for name in Exponents.__dataclass_fields__}
        arrays |= {
            "outputs": self.outputs,
            "evidence_nodes": self.reference.nodes,
            "evidence_labels": self.reference.labels,
        }
        return {"name": "informed", "inner": described, "exponents": said}, arrays

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundInformed:
        """Put together what `parts` gave."""
        inner = BOUND[described["inner"]["name"]].from_parts(described["inner"], arrays)
        said = {name: float(value) for name, value in described["exponents"].items()}
        if not all(np.isfinite(value) for value in said.values()):
            raise InvalidInputError(f"`exponents` must be finite; got {said}")
        size, classes = inner.probabilities.shape
        outputs = check_probabilities(arrays["outputs"], num_nodes=size)
        nodes = check_index("evidence_nodes", arrays["evidence_nodes"], size, unique=True)
        labels = check_labels(arrays["evidence_labels"], size=nodes.size, num_classes=classes)
        return cls(inner, outputs, Exponents(**said), Labelled(nodes, labels))


def evidence_of(bound: Any) -> BoundInformed | None:
    """Return the informed score in a chain of bound scores, wherever it stands; None where there is none."""
    while bound is not None and not isinstance(bound, BoundInformed):
        bound = getattr(bound, "inner", None)
    return bound


def sums_over_way_back(graph: Graph, values: FloatArray) -> FloatArray:
    """Return, for each node, the sum of the values of its neighbours that have it as a neighbour too."""
    if not graph.directed:
        sums: FloatArray = graph.neighbour_sums(values[:, None])[:, 0]
        return sums
    one_way = graph.to_scipy()
    both: FloatArray = one_way.multiply(one_way.T).tocsr() @ values
    return both


def _conditional_logit(features: FloatArray, labels: IntArray) -> FloatArray:
    """Return the θ that minimise −Σ log softmax(F θ)[label] + ridge/2·|θ − (1, 0, …)|², by Newton's method."""
    factors = features.shape[2]
    start = np.zeros(factors)
    start[0] = 1.0
    theta, rows = start.copy(), np.arange(labels.size)

    def loss(exponents: FloatArray) -> float:
        z = _weighed(features, exponents)
        top = z.max(axis=1)
        likely = top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - z[rows, labels]
        return float(likely.sum() + 0.5 * RIDGE * ((exponents - start) ** 2).sum())

    now = loss(theta)
    for _ in range(_ROUNDS):
        p = _softmax(_weighed(features, theta))
        mean = np.einsum("nc,ncj->nj", p, features)
        gradient = (mean - features[rows, labels]).sum(axis=0) + RIDGE * (theta - start)
        spread = np.einsum("nc,nci,ncj->ij", p, features, features, optimize=True) - mean.T @ mean
        step = np.linalg.solve(spread + RIDGE * np.eye(factors), gradient)
        size = 1.0
        for _ in range(_HALVINGS):
            new = loss(theta - size * step)
            if new <= now:
                break
            size /= 2.0
        else:
            break
        theta = theta - size * step
        if now - new < 1e-10 * (1.0 + abs(now)):
            break
        now = new
    return theta


def _weighed(features: FloatArray, theta: FloatArray) -> FloatArray:
    """Return Σ_j θ_j·F[:, :, j], summed in the order of the factors: the same for one row as for many."""
    z: FloatArray = theta[0] * features[:, :, 0]
    for j in range(1, theta.size):
        z = z + theta[j] * features[:, :, j]
    return z


def _softmax(z: FloatArray) -> FloatArray:
    raised = np.exp(z - z.max(axis=1, keepdims=True))
    total: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return total
