"""Labels around a node as evidence: the model's probabilities, corrected by what labelled neighbours say.

NAPS takes the scores of labelled neighbours and throws their labels away, which are the best evidence there is. Here
they are evidence:

    P'(y|v) ∝ P(y|v)^a · P̄(y|v)^c · Π_k E_k(y|v)^{b_k},   E_k(y|v) = (n_k(y) + κ_k π_y) / ((Σ_y n_k(y) + κ_k) π_y)

P̄ is the mean of what the model says of the neighbours and of their neighbours (P where there are none). The n_k count
labelled nodes with label y, never v itself (`napsets.scores.evidence` says which), π are the shares of labels in the
reference, drawn a little towards the mean predictions, and E_k is 1 where there is no evidence.

The exponents are fitted on the reference nodes by maximum likelihood (conditional logit, which is convex; a node's own
label is not among its evidence, so this is leave-one-out), with a ridge towards "no evidence, no change". A negative
exponent is what heterophily looks like. Reference labels may be used for anything once the level is exact, so the
guarantee holds whatever was fitted.

A last factor *recalibrates* the model: the exponential of a linear function of log P, log P̄ and the logarithm of the
degree, with coefficients of its own for every label (Dirichlet calibration), fitted likewise with a ridge towards 0. It
learns which labels the model confuses, those it predicts too often, and what nodes with many neighbours tend to be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    AnyArray,
    ArrayLike,
    FloatArray,
    Sealed,
    check_index,
    check_probabilities,
    sealed,
)
from napsets.errors import InvalidInputError
from napsets.features import Directions, Features, check_features, nearest_reference
from napsets.graph import Graph, check_graph
from napsets.randomness import node_uniforms
from napsets.scores.base import (
    SCORES,
    BoundAround,
    Labelled,
    bind,
    known_labels,
    make_score,
)
from napsets.scores.evidence import Evidence, fitted_rows
from napsets.scores.exponents import Exponents, Learned
from napsets.scores.linear import linear_scores
from napsets.scores.rows import APS

#: The most similar reference nodes that are evidence.
NEAREST = 25


@SCORES.add("informed")
@dataclass(frozen=True)
class Informed:
    """A score of probabilities that the labels around a node have corrected. Needs an exact level.

    Attributes
    ----------
    base : Score or str
        The score of the corrected probabilities.
    """

    base: Any = field(default_factory=APS)
    learns: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))

    def bind(
        self,
        outputs: AnyArray,
        u: FloatArray,
        graph: Graph | None,
        reference: Labelled,
        *,
        features: Features | None = None,
        learned: Learned | None = None,
    ) -> BoundInformed:
        """Learn from the reference labels, and return the score with their evidence.

        What was `learned` before, from other reference labels or another graph, may be passed.
        """
        if graph is None and features is None:
            raise InvalidInputError("`graph` or `features` must be given to a score of labels as evidence; got neither")
        directions = nearest = linear = None
        if features is not None:
            directions = None if learned is None else learned.directions
            directions = Directions.typical(features, u) if directions is None else directions
            nearest = nearest_reference(features, reference.nodes, u, NEAREST, directions)
            if learned is None:
                kept = fitted_rows(reference.nodes.size, outputs.shape[1])
                fitted = Labelled(reference.nodes[kept], reference.labels[kept])
                linear = linear_scores(features, directions, graph, fitted, outputs.shape[1])
        evidence = Evidence(outputs, graph, reference, nearest=nearest, linear=linear, learned=learned)
        if learned is None:
            learned = replace(evidence.fit(), directions=directions)
        inner = bind(self.base, sealed(evidence.probabilities(learned)), u, graph, reference)
        return BoundInformed(inner, outputs, learned, reference, nearest)


def informed_probabilities(
    probabilities: ArrayLike,
    graph: Graph | None,
    nodes: ArrayLike,
    labels: ArrayLike,
    *,
    features: Any = None,
    seed: int = 0,
) -> tuple[AnyArray, Exponents]:
    """Return the model's probabilities corrected by the labels of some nodes, and the exponents that were fitted.

    Parameters
    ----------
    probabilities : array of shape (nodes, classes)
        The model's probabilities.
    graph : Graph or None
        The graph; None if there are only features.
    nodes, labels : arrays
        The labelled nodes (indices or a boolean mask), and the label of each.
    features : array of shape (nodes, columns) or SciPy sparse matrix, optional
        By which nodes are similar.
    seed : int
        Decides which of equally similar nodes count.
    """
    p = check_probabilities(probabilities, num_nodes=None if graph is None else check_graph(graph).num_nodes)
    chosen = check_index("nodes", nodes, p.shape[0], unique=True)
    u = node_uniforms(np.arange(p.shape[0]), seed)
    table = None if features is None else check_features("features", features, p.shape[0])
    bound = Informed().bind(p, u, graph, Labelled(chosen, known_labels(labels, p[chosen])), features=table)
    return bound.probabilities, bound.exponents


@dataclass(frozen=True, eq=False)
class BoundInformed(Sealed, BoundAround):
    """A score of corrected probabilities, and how they were corrected."""

    inner: Any  #: the score of the corrected probabilities
    outputs: AnyArray  #: what the model itself said
    learned: Learned  #: what was learned from the reference
    reference: Labelled  #: the labels that are evidence, and from which the exponents were learned
    nearest: npt.NDArray[np.int32] | None = None  #: the reference nodes with the most similar features

    @property
    def exponents(self) -> Exponents:
        """The fitted exponent of each kind of evidence."""
        return self.learned.exponents


def evidence_of(bound: Any) -> BoundInformed | None:
    """Find the informed score in a chain of bound scores; None if there is none."""
    while bound is not None and not isinstance(bound, BoundInformed):
        bound = getattr(bound, "inner", None)
    return bound
