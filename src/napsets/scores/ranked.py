"""Conformal scores: probabilities → how badly each label fits (small is good).

A score is a small frozen object with two methods. `matrix(probabilities, u)` gives S[node, y] for every label;
`at(probabilities, labels, u)` gives only the entry at each node's label, to the same bits, without the rest.
A score knows nothing of graphs. To add one that depends on a label's probability, rank and cumulative sum,
subclass `RankScore` and write its formula; any other needs just the two methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_array,
    check_count,
    check_flag,
    check_labels,
    check_number,
    check_probabilities,
    shown,
)
from napsets.checks.names import choose
from napsets.errors import InvalidInputError

__all__ = ["APS", "RAPS", "SAPS", "SCORES", "THR", "RankScore", "Score", "aps_scores", "make_score"]

#: A larger price of a rank would drown the probabilities, and in the end overflow.
LARGEST_PENALTY = 1e100

#: Rows handled at a time, so that temporaries stay in the cache however many nodes there are.
_CHUNK_ENTRIES = 1 << 18


@runtime_checkable
class Score(Protocol):
    """What a predictor asks of a score."""

    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes)."""
        ...

    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,)."""
        ...


@dataclass(frozen=True)
class Ranked:
    """What `RankScore.formula` sees; arrays that broadcast against each other, in float64."""

    probability: FloatArray
    cumulative: FloatArray  #: sum of the probabilities down to and including this label's
    rank: IntArray  #: 1 for the most probable label
    largest: FloatArray  #: the row's largest probability
    u: FloatArray


class RankScore(ABC):
    """A score that is a formula in a label's probability, rank and cumulative sum."""

    randomized: bool = True

    @abstractmethod
    def formula(self, x: Ranked) -> FloatArray:
        """Score of each entry."""

    @property
    def fixed_u(self) -> float:
        """The u that the deterministic form uses for every node: the one with the largest score."""
        return 0.0

    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes), in float64."""
        from napsets.kernels.ranking import rank_all

        p = check_probabilities(probabilities)
        uniforms = self._uniforms(u, p.shape[0])
        result = np.empty(p.shape)
        for rows in _chunks(p):
            cumulative = np.empty(p[rows].shape)
            rank = np.empty(p[rows].shape, dtype=np.int64)
            rank_all(p[rows], cumulative, rank)
            chunk = p[rows].astype(np.float64)
            largest = chunk.max(axis=1, keepdims=True)
            result[rows] = self.formula(Ranked(chunk, cumulative, rank, largest, uniforms[rows, None]))
        return result

    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,); the same bits as ``matrix(...)[i, labels[i]]``."""
        from napsets.kernels.ranking import rank_labels

        p = check_probabilities(probabilities)
        y = _known_labels(labels, p)
        cumulative, largest = np.empty(y.size), np.empty(y.size)
        rank = np.empty(y.size, dtype=np.int64)
        rank_labels(p, y, cumulative, rank, largest)
        probability = p[np.arange(y.size), y].astype(np.float64)
        return self.formula(Ranked(probability, cumulative, rank, largest, self._uniforms(u, y.size)))

    def _uniforms(self, u: ArrayLike | None, size: int) -> FloatArray:
        if not self.randomized:
            return np.full(size, self.fixed_u)
        if u is None:
            raise InvalidInputError(
                f"`u` must be given to a randomised {type(self).__name__}, one number in [0, 1] a node; got None"
            )
        array = as_array("u", u)
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(f"`u` must hold numbers in [0, 1]; got dtype {array.dtype}")
        array = array.astype(np.float64, copy=False)
        if array.ndim == 0:
            array = np.full(size, float(array))
        if array.shape != (size,):
            raise InvalidInputError(f"`u` must have one entry a node, {size}; got shape {array.shape}")
        outside = ~((array >= 0) & (array <= 1))  # NaN among them
        if outside.any():
            i = int(outside.argmax())
            raise InvalidInputError(f"`u` must lie in [0, 1]; entry {i} is {array[i]:g}")
        return array


@dataclass(frozen=True)
class APS(RankScore):
    """Adaptive prediction sets: S(x, y) = (cumulative sum down to and including y) − u·p_y (`eq:aps_score`).

    Attributes
    ----------
    randomized : bool
        With False, u = 0: sets are larger and cover at least as often.
    """

    randomized: bool = True

    def __post_init__(self) -> None:
        check_flag("randomized", self.randomized)

    def formula(self, x: Ranked) -> FloatArray:  # noqa: D102
        return x.cumulative - x.u * x.probability


@dataclass(frozen=True)
class RAPS(RankScore):
    """Regularised APS (Angelopoulos et al., 2021): APS + penalty · max(0, rank − free_ranks).

    Attributes
    ----------
    penalty : float
        The paper's λ.
    free_ranks : int
        The paper's k_reg: so many labels enter a set without penalty.
    randomized : bool
        As in `APS`.
    """

    penalty: float = 0.01
    free_ranks: int = 2
    randomized: bool = True

    def __post_init__(self) -> None:
        check_flag("randomized", self.randomized)
        check_count("free_ranks", self.free_ranks, maximum=2**31 - 1)
        check_number("penalty", self.penalty, largest=LARGEST_PENALTY)

    def formula(self, x: Ranked) -> FloatArray:  # noqa: D102
        return x.cumulative - x.u * x.probability + float(self.penalty) * np.maximum(0, x.rank - self.free_ranks)


@dataclass(frozen=True)
class SAPS(RankScore):
    """Sorted APS (Huang et al., 2024): only the largest probability is kept, ranks stand for the others.

    S = u·p_max for the top label, p_max + (rank − 2 + u)·weight for the others.

    Attributes
    ----------
    weight : float
        The paper's λ, the price of a rank.
    randomized : bool
        With False, u = 1.
    """

    weight: float = 0.1
    randomized: bool = True

    def __post_init__(self) -> None:
        check_flag("randomized", self.randomized)
        check_number("weight", self.weight, largest=LARGEST_PENALTY)

    @property
    def fixed_u(self) -> float:
        """SAPS grows with u."""
        return 1.0

    def formula(self, x: Ranked) -> FloatArray:  # noqa: D102
        return np.where(x.rank == 1, x.u * x.largest, x.largest + (x.rank - 2 + x.u) * float(self.weight))


@dataclass(frozen=True)
class THR:
    """Threshold score (Sadinle et al., 2019): S(x, y) = 1 − p_y. The smallest sets on average; ignores u."""

    def matrix(self, probabilities: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of every label, shape (nodes, classes), in float64."""
        return 1.0 - check_probabilities(probabilities).astype(np.float64)

    def at(self, probabilities: ArrayLike, labels: ArrayLike, u: ArrayLike | None = None) -> FloatArray:
        """Scores of the given labels, shape (nodes,)."""
        p = check_probabilities(probabilities)
        y = _known_labels(labels, p)
        return 1.0 - p[np.arange(y.size), y].astype(np.float64)


#: Scores by the name that settings, files and the command line call them by.
SCORES: dict[str, type[APS] | type[RAPS] | type[SAPS] | type[THR]] = {
    "aps": APS,
    "raps": RAPS,
    "saps": SAPS,
    "thr": THR,
}


def make_score(score: object) -> Score:
    """Return a score from itself or from its name, with its usual settings.

    Examples
    --------
    >>> make_score("raps")
    RAPS(penalty=0.01, free_ranks=2, randomized=True)
    """
    if isinstance(score, str):
        return choose("score", score, SCORES)()
    if isinstance(score, type) or not isinstance(score, Score):
        hint = f" (write {score.__name__}() with brackets)" if isinstance(score, type) else ""
        raise InvalidInputError(
            f"`score` must be one of {', '.join(SCORES)}, or have the methods matrix and at; got {shown(score)}{hint}"
        )
    return score


def aps_scores(probabilities: ArrayLike, u: ArrayLike) -> FloatArray:
    """Return the randomised APS score of every label, shape (nodes, classes): `APS().matrix`.

    Examples
    --------
    >>> aps_scores([[0.5, 0.3, 0.2]], u=[0.0]).tolist()
    [[0.5, 0.8, 1.0]]
    """
    return APS().matrix(probabilities, u)


def _chunks(p: npt.NDArray[Any]) -> list[slice]:
    step = max(1, _CHUNK_ENTRIES // p.shape[1])
    return [slice(start, start + step) for start in range(0, p.shape[0], step)]


def _known_labels(labels: ArrayLike, p: npt.NDArray[Any]) -> IntArray:
    y = check_labels(labels, size=p.shape[0], num_classes=p.shape[1])
    if (y < 0).any():
        raise InvalidInputError(f"`labels` must be known to be scored; entry {int((y < 0).argmax())} is −1")
    return y
