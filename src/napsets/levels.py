"""The level at which thresholds are taken: the nominal 1 − α, or one that is set on held-out labels.

*Nominal.* The threshold of a node is its local quantile at 1 − α. For split conformal prediction that is exact; for
local weights, its error depends on how much the neighbourhoods differ.

*Exact.* The labelled nodes are split into a reference part, which gives the thresholds, and a level part Q. Each
node v of Q is ranked: T_v = (t(v, S_v), S_v), with t the share of v's mass strictly below its score; pairs are compared
by t, then by score. T̂ is the ⌈(|Q|+1)(1−α)⌉-th smallest, and the set of a node is {y : (t(v, S(v,y)), S(v,y)) ≤ T̂}. If
the nodes of Q and the node to predict are exchangeable, so are their pairs, whatever the weights, the scores and the
reference labels are: 1−α ≤ P(Y ∈ set) ≤ 1−α + 1/(|Q|+1).

Since t grows with the score, that set is again one threshold per node: with τ₁ the smallest reference score at which
the mass reaches t̂ (of 1 + its total) and τ₂ the one at which it passes t̂, scores up to τ₁ have a smaller t, those
beyond τ₂ a larger one, and those between have t̂ itself and are in where they are at most ŝ. So τ = min(max(ŝ, τ₁), τ₂).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, Sealed
from napsets.checks.values import Registry, check_share, plain, shown
from napsets.errors import InvalidInputError
from napsets.localisers.base import Cut, Everyone, LocalThresholds, Reference
from napsets.quantile import ROUNDING

#: Levels by the name that files call them by.
LEVELS: Registry[Callable[..., Level]] = Registry("LEVELS")


@dataclass(frozen=True, order=True)
class Rank:
    """The rank of a score among a node's reference scores, and the score itself to break ties: T = (t, s)."""

    share: float
    score: float


def rank_place(held_out: int, alpha: float) -> int:
    """Return ⌈(|Q|+1)(1−α)⌉, the place of T̂ among the ranks, counted from 1; infinite T̂ if it exceeds `held_out`.

    As everywhere, one part in 10⁹ of rounding is forgiven: a place that is reached exactly counts as reached.
    """
    return math.ceil((1.0 - alpha) * (1.0 + held_out) * (1.0 - ROUNDING))


def fewest_ranks(alpha: float) -> int:
    """Return the fewest held-out labels for which T̂ is finite: ⌈(1−α)/α⌉, up to rounding."""
    share = (1.0 - alpha) * (1.0 - ROUNDING)  # n labels suffice where n ≥ share·(1 + n)
    return math.ceil(share / (1.0 - share))


#: The probabilities below the lower and below the upper end of the band of coverage.
TAILS = 0.5 - 0.5 * 0.95, 0.5 + 0.5 * 0.95


#: Of more judged nodes the beta-binomial law is a Beta law to all digits that are shown.
_MANY = 1_000_000


def coverage_band(labels: int, alpha: float, judged: int | None = None) -> tuple[float, float]:
    """Return the interval that holds the coverage of an exact method in 95 of 100 draws of the labels of its level.

    With n labels, of which the k-th smallest sets the level, the coverage of infinitely many nodes follows the Beta law
    of k and n + 1 − k. Where it is counted on `judged` nodes, the hits follow the beta-binomial law.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_band(1000, 0.1)]
    [0.881, 0.918]
    >>> [round(end, 3) for end in coverage_band(1000, 0.1, judged=500)]
    [0.866, 0.93]
    """
    from scipy.special import betaincinv

    place = rank_place(labels, alpha)
    if place > labels:  # thresholds are infinite
        return 1.0, 1.0
    if judged is None or judged > _MANY:
        a, b = (place, labels + 1 - place) if judged is None else _beta_law(labels, alpha, judged)
        low, high = (float(betaincinv(a, b, tail)) for tail in TAILS)
        return low, high
    below = hits_law(labels, alpha, judged)
    low, high = (min(int(np.searchsorted(below, tail)), judged) / judged for tail in TAILS)
    return low, high


def chance_band(count: int, target: float) -> tuple[float, float]:
    """Return the 95 % interval of the share of `count` nodes that are covered, each with probability `target`.

    Examples
    --------
    >>> chance_band(20, 0.9)
    (0.75, 1.0)
    """
    from scipy.special import bdtr, bdtrik  # scipy.stats takes far longer to import

    tails = np.array([0.025, 0.975])
    hits = np.ceil(bdtrik(tails, count, target))
    fewer = np.maximum(hits - 1, 0)  # rounding may have gone one too far
    low, high = np.where(bdtr(fewer, count, target) >= tails, fewer, hits) / count
    return float(low), float(high)


def falls_short(hits: int, judged: int, labels: int, alpha: float) -> float:
    """Return the probability that an exact method covers at most `hits` of the judged nodes."""
    from scipy.special import betainc

    if rank_place(labels, alpha) > labels:
        return float(hits >= judged)
    if judged > _MANY:
        return float(betainc(*_beta_law(labels, alpha, judged), hits / judged))
    return float(hits_law(labels, alpha, judged)[hits])


def _beta_law(labels: int, alpha: float, judged: int) -> tuple[float, float]:
    """Return the Beta law with the mean and the variance of the coverage of many nodes."""
    mean, total = rank_place(labels, alpha) / (labels + 1), labels + 1.0
    # Of a beta-binomial share the variance is m(1−m)(n+1+judged)/(judged·(n+2)), with n labels.
    total = judged * (total + 1.0) / (total + judged) - 1.0
    return mean * total, (1.0 - mean) * total


def hits_law(labels: int, alpha: float, judged: int) -> FloatArray:
    """Return P(at most x of the judged nodes are covered), x = 0..judged, if nodes are exchangeable: beta-binomial."""
    from scipy.special import betaln, gammaln

    a = rank_place(labels, alpha)
    b = labels + 1 - a
    if b <= 0:  # the threshold is infinite, and everything is covered
        return np.append(np.zeros(judged), 1.0)
    hits = np.arange(judged + 1)
    ways = gammaln(judged + 1) - gammaln(hits + 1) - gammaln(judged - hits + 1)
    law: FloatArray = np.cumsum(np.exp(ways + betaln(hits + a, judged - hits + b) - betaln(a, b)))
    return law


#: Labels are few where another draw of them could cost this much coverage.
FEW = 0.05


def few_labels(labels: int, alpha: float) -> str | None:
    """Return a warning if labels are so few that another draw of them could cost much coverage, or give full sets."""
    needed = fewest_ranks(alpha)
    if labels < needed:
        return f"{labels:,} labels are too few to set a level at alpha = {alpha:g}, which takes {needed:,}"
    low, high = coverage_band(labels, alpha)
    if low >= 1.0 - alpha - FEW:
        return None
    return (
        f"{labels:,} labels are few: with others, coverage could be anywhere from {100 * low:.0f} to {100 * high:.0f} %"
    )


def high_alpha(alpha: float) -> str | None:
    """Return a warning if an error rate is so high that coverage was probably meant."""
    if alpha <= 0.5:
        return None
    return (
        f"alpha = {alpha:g} is the error rate: {100 * alpha:g} % of the predictions may miss the truth. For "
        f"{100 * alpha:g} % coverage, alpha must be {1 - alpha:.3g}"
    )


class FittedLevel(Protocol):
    """A level that knows the labels that were held out for it."""

    def cuts(self, alphas: Sequence[float]) -> list[Cut]:
        """Return the cuts at which local thresholds are needed."""
        ...

    def thresholds(self, local: LocalThresholds, nodes: IntArray, alphas: Sequence[float]) -> LocalThresholds:
        """Turn local thresholds at those cuts into thresholds of shape (alphas, nodes)."""
        ...

    def level(self, alpha: float) -> float:
        """Return the level at which the localiser answers: 1 − alpha, or the share of T̂."""
        ...


@runtime_checkable
class Level(Protocol):
    """The interface of a level: how many labels it holds out, and which level it computes from their ranks."""

    @property
    def holds_out_labels(self) -> bool:
        """Whether some labels are held out for the level, so that the others may be used for anything."""
        ...

    def reference_size(self, labelled: int) -> int:
        """Return the number of labelled nodes that give the thresholds; the others are held out."""
        ...

    def fit(self, reference: Reference, shares: FloatArray, scores: FloatArray) -> FittedLevel:
        """Return the level that the ranks of the held-out labels give."""
        ...


@LEVELS.add("nominal")
@dataclass(frozen=True)
class Nominal:
    """Thresholds at 1 − alpha.

    Attributes
    ----------
    fallback : {"full", "global"}
        What a node gets whose mass falls short: every label, or the threshold of all reference nodes together.
    """

    fallback: Literal["full", "global"] = "full"

    def __post_init__(self) -> None:
        if not isinstance(self.fallback, str) or self.fallback not in ("full", "global"):
            raise InvalidInputError(f"`fallback` must be 'full' or 'global'; got {shown(self.fallback)}")

    @property
    def holds_out_labels(self) -> bool:
        """No labels are held out."""
        return False

    def reference_size(self, labelled: int) -> int:
        """Return the number of labelled nodes: all of them."""
        return labelled

    def fit(self, reference: Reference, shares: FloatArray, scores: FloatArray) -> _FittedNominal:
        """Return the level for these reference nodes; there are no other labels to look at."""
        return _FittedNominal(self.fallback, reference)


@dataclass(frozen=True, eq=False)
class _FittedNominal:
    fallback: str
    reference: Reference

    def cuts(self, alphas: Sequence[float]) -> list[Cut]:
        return [Cut(1.0 - alpha) for alpha in alphas]

    def thresholds(self, local: LocalThresholds, nodes: IntArray, alphas: Sequence[float]) -> LocalThresholds:
        if self.fallback == "full" or not np.isinf(local.values).any():
            return local
        everyone = Everyone().fit(self.reference).thresholds(nodes, self.cuts(alphas))
        short = np.isposinf(local.values)
        # Which nodes fall back depends on alpha, and so does what their thresholds rest on.
        which = short[0] if len(alphas) == 1 else short
        return LocalThresholds(
            np.where(short, everyone.values, local.values),
            np.where(which, everyone.support, local.support),
            np.where(which, everyone.effective_size, local.effective_size),
        )

    def level(self, alpha: float) -> float:
        return 1.0 - alpha


@LEVELS.add("exact")
@dataclass(frozen=True)
class Exact:
    """Thresholds at a level set on held-out labels, so that coverage holds for any localiser and score.

    Attributes
    ----------
    share : float
        Which share of the labelled nodes is the reference part. With more, the level is unsteady; with less, little
        is learned: `docs/informed.md` has what was measured.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < check_share("share", self.share) < 1.0:
            raise InvalidInputError(f"`share` must lie strictly between 0 and 1; got {shown(self.share)}")
        object.__setattr__(self, "share", plain(self.share))

    @property
    def holds_out_labels(self) -> bool:
        """Some labels are held out."""
        return True

    def reference_size(self, labelled: int) -> int:
        """Return the size of the reference part: at least one node, and not all of them."""
        if labelled < 2:
            raise InvalidInputError(
                f"`calibration` must hold at least two nodes for an exact level; it holds {labelled}"
            )
        return min(max(round(self.share * labelled), 1), labelled - 1)

    def fit(self, reference: Reference, shares: FloatArray, scores: FloatArray) -> FittedExact:
        """Return the level that the ranks (shares, scores) of the held-out labels give."""
        order = np.lexsort((scores, shares))
        return FittedExact(shares[order], scores[order])


@dataclass(frozen=True, eq=False)
class FittedExact(Sealed):
    """The ranks of the held-out labels, ascending: by share, then by score."""

    shares: FloatArray
    scores: FloatArray

    def quantile(self, alpha: float) -> Rank | None:
        """Return T̂, or None if there are too few labels."""
        place = rank_place(self.shares.size, alpha)
        if place > self.shares.size:
            return None
        return Rank(float(self.shares[place - 1]), float(self.scores[place - 1]))

    def cuts(self, alphas: Sequence[float]) -> list[Cut]:
        """Return the cuts where the mass reaches the share of T̂ and where it passes it, for each alpha."""
        return [
            cut
            for rank in map(self.quantile, alphas)
            for cut in (
                [Cut(2.0), Cut(2.0)] if rank is None else [Cut(rank.share, "at least"), Cut(rank.share, "above")]
            )
        ]

    def thresholds(self, local: LocalThresholds, nodes: IntArray, alphas: Sequence[float]) -> LocalThresholds:
        """Return min(max(ŝ, τ₁), τ₂) for each alpha."""
        values = np.full((len(alphas), nodes.size), np.inf)
        for a, alpha in enumerate(alphas):
            rank = self.quantile(alpha)
            if rank is not None:
                reached, passed = local.values[2 * a], local.values[2 * a + 1]
                values[a] = np.minimum(np.maximum(rank.score, reached), passed)
        return LocalThresholds(values, local.support, local.effective_size)

    def level(self, alpha: float) -> float:
        """Return the share of T̂, or infinity if there are too few labels."""
        rank = self.quantile(alpha)
        return math.inf if rank is None else rank.share
