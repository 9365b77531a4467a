"""Scores that use only a node's own row of probabilities: APS and its relatives, THR, and sharpened probabilities.

APS, RAPS and SAPS are formulas in a label's probability, rank and cumulative sum. To add such a score, subclass
`RankScore`, write its formula and give it a name with ``@SCORES.add("name")``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, as_array
from napsets.checks.values import check_count, check_flag, check_number, plain
from napsets.errors import InvalidInputError
from napsets.scores.base import SCORES, CheckedRows, make_score, score_rows

#: A larger price of a rank would drown the probabilities, and in the end overflow.
LARGEST_PENALTY = 1e100

#: Rows handled at a time, so that temporaries stay in the cache however many nodes there are.
_CHUNK_ENTRIES = 1 << 18


@dataclass(frozen=True)
class Ranked:
    """The arguments of `RankScore.formula`: arrays that broadcast against each other, in float64."""

    probability: FloatArray
    cumulative: FloatArray  #: sum of the probabilities down to and including this label's
    rank: IntArray  #: 1 for the most probable label
    largest: FloatArray  #: the row's largest probability
    u: FloatArray


class RankScore(CheckedRows):
    """A score that is a formula in a label's probability, rank and cumulative sum."""

    randomized: bool = True

    @abstractmethod
    def formula(self, x: Ranked) -> FloatArray:
        """Score of each entry."""

    @property
    def fixed_u(self) -> float:
        """The u of the deterministic form, the same for every node: the one with the largest score."""
        return 0.0

    def _matrix(self, p: AnyArray, u: FloatArray) -> FloatArray:
        from napsets.kernels.ranking import rank_all

        uniforms = u if self.randomized else np.full(p.shape[0], self.fixed_u)
        result = np.empty(p.shape)
        for rows in _chunks(p):
            cumulative = np.empty(p[rows].shape)
            rank = np.empty(p[rows].shape, dtype=np.int64)
            rank_all(p[rows], cumulative, rank)
            chunk = p[rows].astype(np.float64)
            largest = chunk.max(axis=1, keepdims=True)
            result[rows] = self.formula(Ranked(chunk, cumulative, rank, largest, uniforms[rows, None]))
        return result

    def _at(self, p: AnyArray, y: IntArray, u: FloatArray) -> FloatArray:
        from napsets.kernels.ranking import rank_labels

        cumulative, largest = np.empty(y.size), np.empty(y.size)
        rank = np.empty(y.size, dtype=np.int64)
        rank_labels(p, y, cumulative, rank, largest)
        probability = p[np.arange(y.size), y].astype(np.float64)
        uniforms = u if self.randomized else np.full(y.size, self.fixed_u)
        return self.formula(Ranked(probability, cumulative, rank, largest, uniforms))

    def _uniforms(self, u: ArrayLike | None, size: int) -> FloatArray:
        if not self.randomized:
            return np.full(size, self.fixed_u)
        if u is None:
            raise InvalidInputError(
                f"`u` must be given to a randomised {type(self).__name__}, one number in [0, 1] per node; got None"
            )
        array = as_array("u", u)
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(f"`u` must hold numbers in [0, 1]; got dtype {array.dtype}")
        array = array.astype(np.float64, copy=False)
        if array.ndim == 0:
            array = np.full(size, float(array))
        if array.shape != (size,):
            raise InvalidInputError(f"`u` must have one entry per node, {size}; got shape {array.shape}")
        outside = ~((array >= 0) & (array <= 1))  # NaN among them
        if outside.any():
            i = int(outside.argmax())
            raise InvalidInputError(f"`u` must lie in [0, 1]; entry {i} is {array[i]:g}")
        return array


@SCORES.add("aps")
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


@SCORES.add("raps")
@dataclass(frozen=True)
class RAPS(RankScore):
    """Regularised APS (Angelopoulos et al., 2021): APS + penalty · max(0, rank − free_ranks).

    Attributes
    ----------
    penalty : float
        The paper's λ.
    free_ranks : int
        The paper's k_reg: this many labels enter a set without penalty.
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
        for name in ("penalty", "free_ranks"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    def formula(self, x: Ranked) -> FloatArray:  # noqa: D102
        return x.cumulative - x.u * x.probability + float(self.penalty) * np.maximum(0, x.rank - self.free_ranks)


@SCORES.add("saps")
@dataclass(frozen=True)
class SAPS(RankScore):
    """Sorted APS (Huang et al., 2024): the largest probability is kept, the others are replaced by their ranks.

    S = u·p_max for the top label, p_max + (rank − 2 + u)·weight for the others.

    Attributes
    ----------
    weight : float
        The paper's λ, the cost of one rank.
    randomized : bool
        With False, u = 1.
    """

    weight: float = 0.1
    randomized: bool = True

    def __post_init__(self) -> None:
        check_flag("randomized", self.randomized)
        check_number("weight", self.weight, largest=LARGEST_PENALTY)
        object.__setattr__(self, "weight", plain(self.weight))

    @property
    def fixed_u(self) -> float:
        """SAPS grows with u."""
        return 1.0

    def formula(self, x: Ranked) -> FloatArray:  # noqa: D102
        return np.where(x.rank == 1, x.u * x.largest, x.largest + (x.rank - 2 + x.u) * float(self.weight))


def aps_scores(probabilities: ArrayLike, u: ArrayLike) -> FloatArray:
    """Return the randomised APS score of every label, shape (nodes, classes): `APS().matrix`.

    Examples
    --------
    >>> aps_scores([[0.5, 0.3, 0.2]], u=[0.0]).tolist()
    [[0.5, 0.8, 1.0]]
    """
    return APS().matrix(probabilities, u)


def _chunks(p: AnyArray) -> list[slice]:
    step = max(1, _CHUNK_ENTRIES // p.shape[1])
    return [slice(start, start + step) for start in range(0, p.shape[0], step)]


@SCORES.add("thr")
@dataclass(frozen=True)
class THR(CheckedRows):
    """Threshold score (Sadinle et al., 2019): S(x, y) = 1 − p_y. The smallest sets on average; ignores u."""

    def _matrix(self, p: AnyArray, u: Any) -> FloatArray:
        return 1.0 - p.astype(np.float64)

    def _at(self, p: AnyArray, y: IntArray, u: Any) -> FloatArray:
        return 1.0 - p[np.arange(y.size), y].astype(np.float64)


_LARGEST_POWER = 100.0
_LEAST = 1e-12  # probabilities below it count as this much, or an unlikely label could never come back


@SCORES.add("sharpened")
@dataclass(frozen=True)
class Sharpened(CheckedRows):
    """Another score, applied to probabilities that are raised to a power and normalised.

    Cumulative sums of a power above 1 grow faster at the top of the ranking: sets become smaller on average, and a
    little less even. Coverage is as exact as before, because every node is treated alike.

    Attributes
    ----------
    base : Score or str
        The score, which must use only a node's own row.
    power : float
        1 changes nothing; 2 is what a temperature of ½ does.
    """

    base: Any = field(default_factory=APS)
    power: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", make_score(self.base))
        if not all(callable(getattr(self.base, name, None)) for name in ("matrix", "at")):
            raise InvalidInputError(f"`base` must score rows alone; {type(self.base).__name__} does not")
        if not check_number("power", self.power, largest=_LARGEST_POWER):
            raise InvalidInputError("`power` must be more than 0; got 0")
        object.__setattr__(self, "power", plain(self.power))

    def _matrix(self, p: AnyArray, u: FloatArray) -> FloatArray:
        return score_rows(self.base, "matrix", self._sharpened(p), u)

    def _at(self, p: AnyArray, y: IntArray, u: FloatArray) -> FloatArray:
        return score_rows(self.base, "at", self._sharpened(p), y, u)

    def _uniforms(self, u: Any, size: int) -> Any:
        return self.base._uniforms(u, size) if isinstance(self.base, CheckedRows) else u

    def _sharpened(self, probabilities: AnyArray) -> npt.NDArray[np.float64]:
        p = probabilities.astype(np.float64)
        if not p.size:
            return p
        # Relative to the largest, so that no power of a small number vanishes before it is compared.
        raised = np.power(np.maximum(p, _LEAST) / p.max(axis=1, keepdims=True), float(self.power))
        sharpened: npt.NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
        return sharpened
