"""What a method promises: how many labels set its level, whether a theorem stands behind it, where coverage will lie.

With n labels that set the level, of which the k-th smallest does, k = ⌈(n+1)(1−α)⌉, the coverage of infinitely many
nodes follows the Beta law of k and n + 1 − k, and the hits among m judged nodes the beta-binomial law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import FloatArray, IntArray
from napsets.levels import TAILS, coverage_spread, rank_place

if TYPE_CHECKING:
    from napsets.methods import Calibrated

#: Of more judged nodes the beta-binomial law is a Beta law to all digits that are shown.
_MANY = 1_000_000


def level_labels(calibrated: Calibrated) -> int:
    """Return how many labels set the level: those held out, or all where none is."""
    scored = calibrated.scored
    return int(scored.level_nodes.size if calibrated.is_exact else scored.calibration.size)


def level_nodes(calibrated: Calibrated) -> tuple[IntArray, npt.NDArray[Any]]:
    """Return the nodes whose labels set the level, and their truth; none where a file did not keep the truth."""
    scored = calibrated.scored
    if calibrated.is_exact:
        nodes, truth = scored.level_nodes, scored.level_labels
    else:
        nodes, truth = scored.reference.nodes, scored.labels
    return nodes[: truth.size], truth


def is_proven(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for nodes labelled at random: an exact level, or weights that need none."""
    return calibrated.is_exact or bool(getattr(calibrated.method.localiser, "proven", False))


def is_shifted(calibrated: Calibrated) -> bool:
    """Return whether coverage is a theorem for the population that importance weights describe, if these are right."""
    return not calibrated.is_exact and bool(getattr(calibrated.method.localiser, "shifted", False))


def coverage_band(labels: int, alpha: float, judged: int | None = None) -> tuple[float, float]:
    """Return where coverage lies in 95 of 100 draws, if a method is exact: the Beta or beta-binomial law.

    Parameters
    ----------
    labels : int
        Labels that set the level.
    alpha : float
        Error rate.
    judged : int, optional
        Nodes on which coverage is counted; without, the coverage of infinitely many.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_band(1000, 0.1)]
    [0.881, 0.918]
    >>> [round(end, 3) for end in coverage_band(1000, 0.1, judged=500)]
    [0.866, 0.93]
    """
    from scipy.special import betaincinv

    if judged is None or rank_place(labels, alpha) > labels:
        return coverage_spread(labels, alpha)
    if judged > _MANY:
        shape = _beta_law(labels, alpha, judged)
        low, high = (float(betaincinv(*shape, tail)) for tail in TAILS)
        return low, high
    below = _hits_law(labels, alpha, judged)
    low, high = (min(int(np.searchsorted(below, tail)), judged) / judged for tail in TAILS)
    return low, high


def chance_band(count: int, target: float) -> tuple[float, float]:
    """Return where the coverage of this many nodes lies 95 times in 100, if each is covered with probability `target`.

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
    """Return how often an exact method would cover this few of the judged nodes, or fewer."""
    from scipy.special import betainc

    if rank_place(labels, alpha) > labels:
        return float(hits >= judged)
    if judged > _MANY:
        return float(betainc(*_beta_law(labels, alpha, judged), hits / judged))
    return float(_hits_law(labels, alpha, judged)[hits])


def _beta_law(labels: int, alpha: float, judged: int) -> tuple[float, float]:
    """Return the Beta law with the mean and the variance of the coverage of many nodes."""
    mean, total = rank_place(labels, alpha) / (labels + 1), labels + 1.0
    # Of a beta-binomial share the variance is m(1−m)(n+1+judged)/(judged·(n+2)), with n labels.
    total = judged * (total + 1.0) / (total + judged) - 1.0
    return mean * total, (1.0 - mean) * total


def _hits_law(labels: int, alpha: float, judged: int) -> FloatArray:
    """Return P(hits ≤ each of 0..judged): the beta-binomial law."""
    from scipy.special import betaln, gammaln

    a = rank_place(labels, alpha)
    b = labels + 1 - a
    hits = np.arange(judged + 1)
    ways = gammaln(judged + 1) - gammaln(hits + 1) - gammaln(judged - hits + 1)
    law: FloatArray = np.cumsum(np.exp(ways + betaln(hits + a, judged - hits + b) - betaln(a, b)))
    return law
