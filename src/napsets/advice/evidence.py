"""The effects of every kind of evidence on a node's outputs, which together are the whole change.

An informed score of labels multiplies the model's probabilities by powers of several kinds of evidence and normalises
(see `napsets.scores.informed`). The normalisation belongs to all kinds together, so a kind by itself has no factor.
Here all kinds are let in evenly,

    P_t(y) ∝ P(y) · Π_k F_k(y)^t,   t from 0 to 1,

and each kind is charged with its own part of the normalisation along the way, C_k = ∫ E_{P_t}[log F_k] dt (the
Aumann–Shapley rule, which no order of the kinds can change). Then Π_k F_k(y)·exp(−C_k) = P'(y) / P(y): the factors
multiply to what changed P into P'.

Informed intervals are linear in the model's outputs and in mean residuals around the node (see
`napsets.scores.informed_intervals`), so their kinds add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.graph import Graph
from napsets.methods import Calibrated
from napsets.scores.base import Labelled
from napsets.scores.evidence import Evidence, log_floored
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import BoundInformed, evidence_of
from napsets.scores.informed_intervals import BoundInformedIntervals, residual_means, residual_sums

#: Points of the quadrature along the way from P to P'.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@dataclass(frozen=True, eq=False)
class EvidenceKind:
    """One kind of evidence about one node."""

    name: str
    #: What it counted: labels of each class (their total may be a fraction), or for intervals the labelled nodes. None
    #: for a kind that counts no labels.
    counts: FloatArray | None
    #: What it says by itself: the probabilities averaged, or the mean residual. None for a kind that has no such value.
    value: FloatArray | None
    #: Of sets, the factor of each class; of intervals, what it adds to each output.
    effect: FloatArray


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """The change of one node's outputs by evidence.

    Attributes
    ----------
    model, informed : numpy.ndarray
        The model's outputs, and those from which the prediction is made: probabilities of the classes, or the outputs
        of a regression model.
    multiplies : bool
        Whether effects are factors (of probabilities) or terms (of numbers). The product of all factors is
        ``informed / model``, the sum of all terms ``informed − model``; of probabilities below 10⁻⁶, ``informed`` over
        10⁻⁶.
    kinds : tuple of EvidenceKind
        Every kind of evidence, the model's recalibration among them.
    labelled : numpy.ndarray
        The neighbours whose labels, or targets, are evidence.
    truth : numpy.ndarray
        The labels, or targets, of these.
    similar, similar_truth : numpy.ndarray
        The nodes with the most similar features whose labels are evidence, the most similar first, and their labels.
    """

    model: FloatArray
    informed: FloatArray
    multiplies: bool
    kinds: tuple[EvidenceKind, ...]
    labelled: IntArray
    truth: FloatArray | IntArray
    similar: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    similar_truth: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def effects(self) -> FloatArray:
        """The effects of all kinds, shape (kinds, outputs)."""
        return np.stack([kind.effect for kind in self.kinds])


def even_factors(logs: FloatArray, start: FloatArray) -> FloatArray:
    """Return the factor of each kind and class, which multiply to the normalised product over the normalised start.

    Parameters
    ----------
    logs : array of shape (kinds, classes)
        The logarithm of what each kind multiplies probabilities by, up to a constant per kind.
    start : array of shape (classes,)
        The logarithm of the probabilities before.

    Examples
    --------
    >>> factors = even_factors(np.log([[2.0, 1.0], [6.0, 1.0]]), np.log([0.5, 0.5]))
    >>> np.round(factors.prod(axis=0) * 0.5, 4).tolist()
    [0.9231, 0.0769]
    """
    centred = logs - logs.mean(axis=1, keepdims=True)
    total = centred.sum(axis=0)
    way = start + 0.5 * (_POINTS[:, None] + 1.0) * total
    p = np.exp(way - way.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    charged = 0.5 * _WEIGHTS @ (p @ centred.T)
    # The quadrature's own error is shared out, so that the factors multiply exactly.
    missing = np.logaddexp.reduce(start + total) - np.logaddexp.reduce(start) - charged.sum()
    factors: FloatArray = np.exp(centred - (charged + missing / charged.size)[:, None])
    return factors


class EvidenceExplainer:
    """Explains the evidence for any node's labels; made once for many nodes, in O(edges × classes)."""

    def __init__(self, informed: BoundInformed, graph: Graph | None) -> None:
        self.informed, self.graph = informed, graph
        self.evidence = Evidence(
            informed.outputs, graph, informed.reference, nearest=informed.nearest, learned=informed.learned
        )

    def of(self, node: int) -> NodeEvidence:
        """Explain the change of one node's probabilities."""
        evidence, informed, rows = self.evidence, self.informed, np.array([node])
        exponents = np.array([getattr(informed.exponents, name) for name in evidence.names])
        features = evidence.features(rows)[0].T
        # The model's own probabilities are where it starts: only its exponent less 1 changes them.
        powers = exponents - np.array([name == "model" for name in evidence.names])
        logs, names = powers[:, None] * features, list(evidence.names)
        if informed.learned.recalibration is not None:
            logs = np.vstack([logs, evidence.recalibration(informed.learned, rows)])
            names.append("recalibration")
        model = informed.outputs[node].astype(np.float64)
        factors = even_factors(logs, log_floored(model))
        kinds = []
        for k, (name, factor) in enumerate(zip(names, factors, strict=True)):
            counts = np.expm1(features[k]) * PRIOR[name] * evidence.shares if name in PRIOR else None
            value = evidence.neighbour_outputs[node] if name == "around" else model if name == "model" else None
            kinds.append(EvidenceKind(name, counts, value, factor))
        informed_p = informed.probabilities[node].astype(np.float64)
        nearest = np.empty(0, dtype=np.int64) if informed.nearest is None else informed.nearest[node].astype(np.int64)
        similar = nearest[nearest >= 0]
        return NodeEvidence(
            model, informed_p, True, tuple(kinds), *_labelled(self.graph, node, informed.reference),
            similar, evidence.label_of[similar],
        )  # fmt: skip


class IntervalEvidenceExplainer:
    """Explains the evidence for any node's interval; made once for many nodes, in O(edges)."""

    def __init__(self, informed: BoundInformedIntervals, graph: Graph) -> None:
        self.informed, self.graph = informed, graph
        centre = informed.score.centre(informed.model)
        self.sums = residual_sums(graph, centre, informed.reference, informed.hops)
        self.means = residual_means(self.sums)

    def of(self, node: int) -> NodeEvidence:
        """Explain the shift of one node's outputs."""
        informed = self.informed
        model, coefficients = informed.model[node], informed.coefficients
        columns = model.size + 1
        shift = coefficients[:, :columns] @ np.concatenate([[1.0], model]) - model
        kinds = [EvidenceKind("recalibration", None, None, shift)]
        for name, sums, means, weights in zip(
            ("near", "far"), self.sums, self.means, coefficients[:, columns:].T, strict=False
        ):
            mean = means[node]
            kinds.append(EvidenceKind(name, sums[node, 1:], np.array([mean]), weights * mean))
        labelled = _labelled(self.graph, node, informed.reference)
        return NodeEvidence(model, informed.outputs[node], False, tuple(kinds), *labelled)


def _labelled(graph: Graph | None, node: int, reference: Labelled) -> tuple[IntArray, FloatArray | IntArray]:
    """Return the reference nodes among a node's neighbours, ascending, and their labels or targets."""
    if graph is None:
        return reference.nodes[:0], reference.labels[:0]
    near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    listed = np.flatnonzero(np.isin(reference.nodes, near) & (reference.nodes != node))
    listed = listed[np.argsort(reference.nodes[listed], kind="stable")]
    return reference.nodes[listed], reference.labels[listed]


Explainer = EvidenceExplainer | IntervalEvidenceExplainer


def explainer_of(calibrated: Calibrated) -> Explainer | None:
    """Return the explainer of evidence; None if predictions are based on the model alone."""
    graph, bound = calibrated.graph, calibrated.score
    if isinstance(bound, BoundInformedIntervals) and graph is not None:
        return IntervalEvidenceExplainer(bound, graph)
    informed = evidence_of(bound)
    return None if informed is None else EvidenceExplainer(informed, graph)
