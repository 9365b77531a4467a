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
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, as_array, check_count, check_index, check_scores, check_share, plain
from napsets.checks.frozen import frozen, sealed
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.predictions import Prediction, PredictionIntervals
from napsets.scores.base import BOUND, SCORES, Labelled, check_around, make_score
from napsets.scores.evidence import sums_over_way_back
from napsets.scores.residuals import CQR, BoundIntervals, IntervalScore

__all__ = ["RESIDUAL_PRIOR", "BoundInformedIntervals", "InformedIntervals", "neighbour_residuals", "residual_sums"]

#: κ: this many labelled neighbours without a residual every node is thought to have.
RESIDUAL_PRIOR = 1.0
#: Reference nodes that a quantile is fitted on at the most.
_MOST_FITTED = 20_000
#: Reference nodes for each number that is fitted; with fewer the model's own quantiles stay as they are.
_FEWEST_EACH = 10


@SCORES.add("informed-intervals")
@dataclass(frozen=True)
class InformedIntervals:
    """Intervals whose ends the targets of labelled neighbours have shifted. Needs an exact level.

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
        self, outputs: npt.NDArray[Any], u: FloatArray, graph: Graph | None, reference: Labelled | None
    ) -> BoundInformedIntervals:
        """Fit on the reference labels, and return the score of the shifted outputs."""
        if graph is None or reference is None:
            raise InvalidInputError("`graph` must be given to a score that looks at the labels around a node; got None")
        own = self.base.check(check_around(outputs, graph, reference, numbers=True))
        features = np.column_stack(
            [np.ones(own.shape[0]), own, *neighbour_residuals(graph, self.base.centre(own), reference, self.hops)]
        )
        shifted, coefficients = own.copy(), np.eye(own.shape[1], features.shape[1], k=1)
        if reference.nodes.size >= _FEWEST_EACH * features.shape[1]:
            kept = np.linspace(0, reference.nodes.size - 1, min(reference.nodes.size, _MOST_FITTED)).astype(np.int64)
            nodes, targets = reference.nodes[kept], np.asarray(reference.labels, dtype=np.float64)[kept]
            for column, usual in self.base.quantiles.items():
                level = {0.05: self.low, 0.95: 1.0 - self.low}.get(usual, usual)
                beta = quantile_regression(features[nodes], targets, level)
                if beta is not None:  # otherwise the model's own quantile stays
                    shifted[:, column], coefficients[column] = features @ beta, beta
        return BoundInformedIntervals(self.base, sealed(shifted), own, sealed(coefficients), reference)


@BOUND.add("informed-intervals")
@dataclass(frozen=True, eq=False)
class BoundInformedIntervals(BoundIntervals):
    """A score of shifted outputs, and how they were shifted.

    Attributes
    ----------
    score : IntervalScore
        The score of the shifted outputs.
    outputs : numpy.ndarray
        The shifted outputs.
    model : numpy.ndarray
        What the model itself said.
    coefficients : numpy.ndarray
        A row for each output: c, then a_j of each of the model's outputs, then b_1 and, with two hops, b_2. An output
        that was left as it is has a_j = 1 of itself, and 0 of all else.
    reference : Labelled
        Whose targets spoke.
    """

    model: FloatArray
    coefficients: FloatArray
    reference: Labelled

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("model", "coefficients"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def hops(self) -> int:
        """How far the labelled nodes may be that spoke."""
        return int(self.coefficients.shape[1] - self.model.shape[1] - 1)

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a file keeps of it: a description, and arrays."""
        described, arrays = super().parts()
        return described, arrays | {
            "model_outputs": self.model,
            "coefficients": self.coefficients,
            "evidence_nodes": self.reference.nodes,
            "evidence_targets": np.asarray(self.reference.labels, dtype=np.float64),
        }

    @classmethod
    def from_parts(cls, described: dict[str, Any], arrays: dict[str, Any]) -> BoundInformedIntervals:
        """Put together what `parts` gave, checking it."""
        plain = BoundIntervals.from_parts(described, arrays)
        rows, columns = plain.outputs.shape
        model = plain.score.check(arrays["model_outputs"])
        if model.shape[0] != rows:
            raise InvalidInputError(f"`model_outputs` must have one row per node, {rows}; got {model.shape[0]}")
        coefficients = as_array("coefficients", arrays["coefficients"])
        if coefficients.ndim != 2 or coefficients.shape[0] != columns or coefficients.shape[1] - columns not in (2, 3):
            raise InvalidInputError(
                f"`coefficients` must have a row for each of {columns} outputs, and a column for the constant, each "
                f"output and one or two hops; got shape {coefficients.shape}"
            )
        if coefficients.dtype.kind != "f" or not np.isfinite(coefficients).all():
            raise InvalidInputError(f"`coefficients` must be finite numbers; got dtype {coefficients.dtype}")
        nodes = check_index("evidence_nodes", arrays["evidence_nodes"], rows, unique=True)
        targets: Any = check_scores("evidence_targets", arrays["evidence_targets"], size=nodes.size)
        if not np.isfinite(targets).all():
            raise InvalidInputError("`evidence_targets` must be finite; some are not")
        return cls(plain.score, plain.outputs, model, coefficients, Labelled(nodes, targets))


def neighbour_residuals(graph: Graph, centre: FloatArray, reference: Labelled, hops: int) -> list[FloatArray]:
    """Return the mean residuals of labelled nodes one hop and, by walks, two hops away; a node's own left out."""
    return [sums[:, 0] / (sums[:, 1] + RESIDUAL_PRIOR) for sums in residual_sums(graph, centre, reference, hops)]


def residual_sums(graph: Graph, centre: FloatArray, reference: Labelled, hops: int) -> list[FloatArray]:
    """Return, for each hop, the sum of residuals around each node and how many there are; its own is left out."""
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


def quantile_regression(features: FloatArray, targets: FloatArray, level: float) -> FloatArray | None:
    """Return the β that minimise Σ ρ(targets − features·β) of the pinball loss at `level`; None if none is found.

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
    beta: FloatArray = -np.asarray(solved.eqlin.marginals) * unit / scale
    return beta
