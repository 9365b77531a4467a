"""The targets of labelled neighbours shift a model's quantiles: evidence for node regression.

Each quantile that the model gives becomes a linear function of its own outputs and of the mean residuals (target less
the model's best guess) of labelled nodes one and two hops away,

    q'(v) = c + Σ_j a_j·output_j(v) + b_1·r_1(v) + b_2·r_2(v),   r_k(v) = Σ residuals / (number + κ),

fitted on the reference labels with the pinball loss of that quantile (linear quantile regression, an exact linear
programme). A node's own target is not among its evidence. It learns from labels, and so needs an exact level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, sealed
from napsets.checks.values import check_count, check_share, plain
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals
from napsets.scores.base import SCORES, Labelled, make_score, require_graph
from napsets.scores.evidence import evenly
from napsets.scores.residuals import CQR, BoundIntervals, IntervalScore

#: κ: this many labelled neighbours without a residual every node is thought to have.
RESIDUAL_PRIOR = 1.0
#: Reference nodes that a quantile is fitted on at most.
_MOST_FITTED = 20_000
#: Reference nodes for each number that is fitted; with fewer the model's own quantiles stay as they are.
_FEWEST_EACH = 10


@SCORES.add("informed-intervals")
@dataclass(frozen=True)
class InformedIntervals:
    """Intervals whose ends are shifted by the targets of labelled neighbours. Needs an exact level.

    Attributes
    ----------
    base : IntervalScore or str
        The score of the shifted outputs: "cqr", "absolute" or "normalised".
    hops : int
        1 looks at neighbours alone, 2 at their neighbours too.
    low : float
        Which quantile the lower output of `CQR` is to be; the upper one is 1 − low.
    """

    base: Any = field(default_factory=CQR)
    hops: int = 2
    low: float = 0.05
    learns: ClassVar[bool] = True
    prediction: ClassVar[type[Prediction]] = PredictionIntervals

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        if not isinstance(self.base, IntervalScore):
            raise InvalidInputError(f"`base` must be a score of numbers; got {type(self.base).__name__}")
        object.__setattr__(self, "hops", check_count("hops", self.hops, minimum=1, maximum=2))
        if not 0.0 < check_share("low", self.low) < 0.5:
            raise InvalidInputError(f"`low` must lie between 0 and 0.5; got {self.low:g}")
        object.__setattr__(self, "low", plain(self.low))

    def bind(
        self, outputs: AnyArray, u: FloatArray, graph: Graph | None, reference: Labelled
    ) -> BoundInformedIntervals:
        """Learn from the reference targets, and return the score with their evidence."""
        graph, model = require_graph(graph), self.base.check(outputs)
        features = _features(model, residual_sums(graph, self.base.centre(model), reference, self.hops))
        coefficients = self._fit(features, model, reference)
        shifted = sealed(self._shifted(features, model, coefficients))
        return BoundInformedIntervals(self.base, shifted, model, sealed(coefficients), reference)

    def _fit(self, features: FloatArray, model: FloatArray, reference: Labelled) -> FloatArray:
        """Fit each output by quantile regression on the reference; keep the model's own output if that fails."""
        coefficients = np.eye(model.shape[1], features.shape[1], k=1)
        if reference.nodes.size >= _FEWEST_EACH * features.shape[1]:
            kept = evenly(reference.nodes.size, _MOST_FITTED)
            nodes, targets = reference.nodes[kept], np.asarray(reference.labels, dtype=np.float64)[kept]
            for column, usual in self.base.quantiles.items():
                level = {0.05: self.low, 0.95: 1.0 - self.low}.get(usual, usual)
                beta = quantile_regression(features[nodes], targets, level)
                if beta is not None:  # otherwise the model's own quantile stays
                    coefficients[column] = beta
        return coefficients

    def _shifted(self, features: FloatArray, model: FloatArray, coefficients: FloatArray) -> FloatArray:
        shifted = model.copy()
        for column in self.base.quantiles:
            shifted[:, column] = features @ coefficients[column]
        checked: FloatArray = self.base.check(shifted)
        return checked


@dataclass(frozen=True, eq=False)
class BoundInformedIntervals(BoundIntervals):
    """A score of shifted outputs, and how they were shifted."""

    model: FloatArray  #: the model's own outputs
    #: A row for each output: c, then a_j of each of the model's outputs, then b_1 and, with two hops, b_2. An output
    #: that was left as it is has a_j = 1 of itself, and 0 of all else.
    coefficients: FloatArray
    reference: Labelled  #: the targets that are evidence, and from which the coefficients were learned

    @property
    def hops(self) -> int:
        """Largest distance, in hops, of the labelled nodes that are evidence."""
        return int(self.coefficients.shape[1] - self.model.shape[1] - 1)


def _features(model: FloatArray, sums: list[FloatArray]) -> FloatArray:
    """Return the regressors: 1, the model's outputs, and the mean residuals around each node."""
    return np.column_stack([np.ones(model.shape[0]), model, *residual_means(sums)])


def residual_means(sums: list[FloatArray]) -> list[FloatArray]:
    """Return the mean residuals of labelled nodes at each hop, from the output of `residual_sums`."""
    return [hop[:, 0] / (hop[:, 1] + RESIDUAL_PRIOR) for hop in sums]


def residual_sums(graph: Graph, centre: FloatArray, reference: Labelled, hops: int) -> list[FloatArray]:
    """For each hop, the sum and the number of residuals around each node, without the node itself.

    Two hops are counted by walks.
    """
    known = np.zeros((centre.size, 2))  # residuals, and a one for each node that has one
    known[reference.nodes, 0] = np.asarray(reference.labels, dtype=np.float64) - centre[reference.nodes]
    known[reference.nodes, 1] = 1.0
    near = graph.neighbour_sums(known)
    if hops == 1:
        return [near]
    part = 1.0 / np.maximum(graph.degrees, 1)
    passed = graph.neighbour_sums(part[:, None] * near)
    # What a node's own residual comes back as, over each neighbour that has an edge back to it.
    passed -= sums_over_way_back(graph, part)[:, None] * known
    passed[:, 1] = np.maximum(passed[:, 1], 0.0)  # rounding may leave less than nothing
    return [near, passed]


def sums_over_way_back(graph: Graph, values: FloatArray) -> FloatArray:
    """For each node, sum the values of its neighbours to which it is a neighbour, too."""
    if not graph.directed:
        return graph.neighbour_sums(values[:, None])[:, 0]
    one_way = graph.to_scipy()
    sums: FloatArray = one_way.multiply(one_way.T).tocsr() @ values
    return sums


def quantile_regression(features: FloatArray, targets: FloatArray, level: float) -> FloatArray | None:
    """Minimise Σ ρ(targets − features·β) over β, with the pinball loss ρ at `level`; None if the solver fails.

    The dual linear programme: maximise Σ d·y under Xᵀd = (1 − level)·Xᵀ1 and 0 ≤ d ≤ 1; β are the prices of its
    constraints.

    Examples
    --------
    >>> quantile_regression(np.ones((5, 1)), np.array([3.0, 1.0, 9.0, 5.0, 7.0]), 0.5).round(6).tolist()
    [5.0]
    """
    import scipy.optimize  # which takes a while to import

    scale, unit = np.abs(features).max(axis=0), float(np.abs(targets).max()) or 1.0
    scale[scale == 0.0] = 1.0
    scaled = features / scale
    solved = scipy.optimize.linprog(
        -targets / unit, A_eq=scaled.T, b_eq=(1.0 - level) * scaled.sum(axis=0), bounds=(0.0, 1.0), method="highs"
    )
    if solved.status != 0:
        return None
    coefficients: FloatArray = -np.asarray(solved.eqlin.marginals) * unit / scale
    return coefficients
