"""The parameters that an informed score learns from the reference labels: exponents, and the shares of labels."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import AnyArray, FloatArray, IntArray, Sealed, sealed
from napsets.checks.values import Record
from napsets.errors import InvalidInputError
from napsets.features import Directions
from napsets.scores.base import Labelled

#: κ of each kind of evidence: this many labels weigh as much as the shares of labels in general.
PRIOR = {"near": 2.0, "alike": 10.0, "wide": 0.3, "similar_5": 2.0, "similar_25": 2.0}
#: Strength of the ridge, in the units of the log likelihood: what a handful of labels can move.
RIDGE = 3.0
_ROUNDS, _HALVINGS = 50, 30
#: Strength of the ridge on a recalibration, whose inputs have mean 0 and deviation 1: what some ten labels can move.
#: With more classes than this it is their number, because what is added is a sum of two terms for each of them.
RECALIBRATION_RIDGE = 10.0
#: Steps that a recalibration takes: a number that does not depend on last digits.
_STEPS = 40


@dataclass(frozen=True)
class Exponents:
    """The exponent of each kind of evidence: (1, 0, 0, …) is the model alone.

    Attributes
    ----------
    model : float
        The model's own probabilities.
    around : float
        The model's probabilities of the neighbours, and of their neighbours.
    near, alike, wide : float
        The labels of neighbours, of nodes with the same prediction, and of those that a random walk meets.
    similar_5, similar_25 : float
        The labels of the 5 and of the 25 nodes with the most similar features.
    linear : float
        A linear model of features.
    """

    model: float = 1.0
    around: float = 0.0
    near: float = 0.0
    alike: float = 0.0
    wide: float = 0.0
    similar_5: float = 0.0
    similar_25: float = 0.0
    linear: float = 0.0

    def odds(self, kind: str, shares: FloatArray | None = None) -> float:
        """Return the factor by which one label of a kind of evidence multiplies the odds of that label.

        With the `shares` of labels, the label is as frequent as that of a node drawn at random is on average; by
        default, a tenth of the nodes have it.
        """
        share = 0.1 if shares is None else float((np.asarray(shares) ** 2).sum())
        # The evidence of one such label, against that of none.
        one: float = math.log1p(1.0 / (PRIOR[kind] * share))
        # The five most similar nodes are among the 25.
        exponent = self.similar_5 + self.similar_25 if kind == "similar_5" else getattr(self, kind)
        return math.exp(exponent * one)


@dataclass(frozen=True, eq=False)
class Learned(Sealed):
    """The parameters learned from the reference labels: the part of an informed score that no other label changes."""

    kinds: tuple[str, ...]  #: the kinds of evidence, in their order
    exponents: Exponents  #: how much each kind counts
    #: For each kind, by how much the mean log-likelihood of the reference labels would fall without it, all else as it
    #: is.
    gains: tuple[float, ...]
    shares: FloatArray  #: the shares of labels, π
    table: FloatArray  #: for each predicted label, how many reference nodes with that prediction have each label
    #: What `fit_recalibration` gave; None where nothing was recalibrated.
    recalibration: FloatArray | None = None
    #: In a living graph, the labels that walks met at the last refit, one row per node.
    walked: FloatArray | None = None
    #: Along which features are compared, where there are features.
    directions: Directions | None = None
    #: What a linear model of features predicts for every node; None in a living graph, which does without it.
    linear: FloatArray | None = None

    def parts(self) -> tuple[Record, Record]:
        """Return the parts that a snapshot keeps: plain JSON, and arrays."""
        arrays = {"label_shares": self.shares, "alike_table": self.table}
        more = {"recalibration": self.recalibration, "walked": self.walked}
        if self.directions is not None:
            more |= {"column_weights": self.directions.weights, "directions": self.directions.vectors}
        described = {"kinds": list(self.kinds), "exponents": asdict(self.exponents), "gains": list(self.gains)}
        return described, arrays | {name: array for name, array in more.items() if array is not None}

    @classmethod
    def from_parts(cls, described: Record, arrays: Record, classes: int) -> Learned:
        """Rebuild the object from `parts`."""
        named = {name: float(value) for name, value in described["exponents"].items()}
        if not all(np.isfinite(value) for value in named.values()):
            raise InvalidInputError(f"`exponents` must be finite; got {named}")
        shares, table = arrays["label_shares"], arrays["alike_table"]
        if check_table_of("label_shares", shares, (classes,)).min() <= 0:
            raise InvalidInputError("`label_shares` must be positive")
        if check_table_of("alike_table", table, (classes, classes)).min() < 0:
            raise InvalidInputError("`alike_table` must be numbers from 0; some are less")
        recalibration, walked = arrays.get("recalibration"), arrays.get("walked")
        if recalibration is not None:
            inputs = 2 * classes + 2 if "around" in described["kinds"] else classes + 1
            check_table_of("recalibration", recalibration, (inputs, classes))
        if walked is not None:
            check_table_of("walked", walked, (walked.shape[0], classes))
        directions = None
        if "column_weights" in arrays:
            directions = Directions(arrays["column_weights"], arrays.get("directions"))
        gains = tuple(map(float, described["gains"]))
        return cls(
            tuple(described["kinds"]), Exponents(**named), gains, shares, table, recalibration, walked, directions
        )


def check_table_of(name: str, array: Any, shape: tuple[int, ...]) -> Any:
    """Check that an array of a file holds finite numbers in this shape."""
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise InvalidInputError(
            f"`{name}` must be finite numbers of shape {shape}; got {array.dtype} of shape {array.shape}"
        )
    return array


def alike_table(outputs: AnyArray, reference: Labelled) -> FloatArray:
    """Count the labels of the reference nodes with each prediction, shape (predicted, labels)."""
    classes = outputs.shape[1]
    table = np.zeros((classes, classes))
    np.add.at(table, (outputs[reference.nodes].argmax(axis=1), reference.labels), 1.0)
    return sealed(table)


def conditional_logit(features: FloatArray, labels: IntArray, offsets: FloatArray | float = 0.0) -> FloatArray:
    """Return the θ that minimise −Σ log softmax(offset + F θ)[label] + ridge/2·|θ − (1, 0, …)|², by Newton's method."""
    factors = features.shape[2]
    start = np.zeros(factors)
    start[0] = 1.0
    theta, rows = start.copy(), np.arange(labels.size)

    def loss(exponents: FloatArray) -> float:
        z = offsets + weighed(features, exponents)
        top, truth = _row_maxima(z), z[rows, labels]
        z -= top[:, None]
        likely = top + np.log(np.exp(z, out=z).sum(axis=1)) - truth
        return float(likely.sum() + 0.5 * RIDGE * ((exponents - start) ** 2).sum())

    now = loss(theta)
    order = np.einsum_path("nc,nci,ncj->ij", features[:, :, 0], features, features, optimize=True)[0]
    for _ in range(_ROUNDS):
        p = _softmax(offsets + weighed(features, theta))
        mean = np.einsum("nc,ncj->nj", p, features)
        gradient = (mean - features[rows, labels]).sum(axis=0) + RIDGE * (theta - start)
        spread = np.einsum("nc,nci,ncj->ij", p, features, features, optimize=order) - mean.T @ mean
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


def fit_recalibration(inputs: FloatArray, labels: IntArray, offsets: FloatArray, start: FloatArray) -> FloatArray:
    """Return nearly the B that minimise −Σ log softmax(offset + (x, 1) B)[label] + ridge/2·|B|², x with deviation 1.

    Dirichlet calibration (Kull et al., 2019) with an offset. Böhning's bound on the curvature, ½ XᵀX, is the same for
    all labels and steps; Nesterov's momentum, begun again wherever it leads uphill, makes up for its caution. What is
    returned, like `start`, has the shape (inputs + 1, labels): the coefficients of the inputs as they came, and
    constants last.
    """
    centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    x = np.column_stack([(inputs - centre) * scale, np.ones(labels.size)])
    ridge = max(RECALIBRATION_RIDGE, offsets.shape[1])
    bound = np.linalg.inv(0.5 * (x.T @ x) + ridge * np.eye(x.shape[1]))
    truth = np.zeros(offsets.shape)
    truth[np.arange(labels.size), labels] = 1.0
    now = ahead = np.vstack([start[:-1] * spread[:, None], start[-1] + centre @ start[:-1]])
    momentum = 1.0
    for _ in range(_STEPS):
        z = x @ ahead
        z += offsets
        residuals = _softmax(z)
        residuals -= truth
        gradient = x.T @ residuals + ridge * ahead
        new = ahead - bound @ gradient
        step = new - now
        if (gradient * step).sum() > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead, now = new + (momentum - 1.0) / following * step, new
        momentum = following
    coefficients = now[:-1] * scale[:, None]
    constants = now[-1] - centre @ coefficients
    return np.vstack([coefficients, constants])


def recalibrated(inputs: FloatArray, recalibration: FloatArray) -> FloatArray:
    """Return (x, 1) B, summed in the order of the inputs: the same for one row as for many."""
    total = np.repeat(recalibration[-1][None, :], inputs.shape[0], axis=0)
    for j in range(inputs.shape[1]):
        total += inputs[:, j, None] * recalibration[j]
    return total


def likelihood_gains(
    features: FloatArray, labels: IntArray, theta: FloatArray, offsets: FloatArray
) -> tuple[float, ...]:
    """Return the fall of the mean log-likelihood of labels without each factor, all else unchanged."""

    def mean(exponents: FloatArray) -> float:
        z = _softmax(offsets + weighed(features, exponents))
        return float(np.log(z[np.arange(labels.size), labels]).mean()) if labels.size else 0.0

    whole = mean(theta)
    return tuple(whole - mean(np.where(np.arange(theta.size) == j, 0.0, theta)) for j in range(theta.size))


def weighed(features: FloatArray, theta: FloatArray) -> FloatArray:
    """Return Σ_j θ_j·F[:, :, j], summed in the order of the factors: the same for one row as for many."""
    z: FloatArray = theta[0] * features[:, :, 0]
    for j in range(1, theta.size):
        z += theta[j] * features[:, :, j]
    return z


def _softmax(z: FloatArray) -> FloatArray:
    """Return the softmax of each row, written over the rows."""
    z -= _row_maxima(z)[:, None]
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def _row_maxima(z: FloatArray) -> FloatArray:
    """Return the largest entry of each row: column by column, which is several times faster for few columns."""
    largest = z[:, 0].copy()
    for j in range(1, z.shape[1]):
        np.maximum(largest, z[:, j], out=largest)
    return largest
