"""How many calibration labels coverage needs: what the law of the coverage of an exact level says, in closed form."""

from __future__ import annotations

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.values import check_alpha, check_share
from napsets.errors import InvalidInputError
from napsets.levels import fewest_ranks
from napsets.quantile import ROUNDING

#: No answer is larger: the search holds one number per candidate.
_MOST = 10_000_000
#: Candidates whose laws are evaluated at a time.
_BLOCK = 1 << 18


def labels_needed(alpha: float = 0.1, within: float = 0.02, confidence: float = 0.95) -> int:
    """Compute the number of random labels that keep coverage within `within` of its target.

    Sets that are calibrated on n labels cover a share of all other nodes that depends on which n nodes were labelled.
    At an exact level, and for split conformal prediction, this share follows the Beta law of k and n + 1 − k with
    k = ⌈(n + 1)(1 − alpha)⌉. The answer is the smallest n from which on it lies within 1 − alpha ± `within` with
    probability `confidence`. Where half of the labels teach and the others set the level, it counts the latter.

    Parameters
    ----------
    alpha : float
        Error rate.
    within : float
        The largest acceptable distance of coverage from 1 − alpha.
    confidence : float
        The probability with which it must be kept.

    Returns
    -------
    int
        The number of calibration labels.

    Examples
    --------
    >>> labels_needed(alpha=0.1, within=0.02)
    854
    >>> labels_needed(alpha=0.1, within=0.05)
    131
    """
    from scipy.special import ndtri

    alpha = check_alpha(alpha)
    within, confidence = _inner_share("within", within), _inner_share("confidence", confidence)
    # The Beta law is nearly normal with variance alpha(1−alpha)/n; beyond three times that many labels it cannot fail.
    most = 3 * int((ndtri(0.5 + 0.5 * confidence) / within) ** 2 * alpha * (1.0 - alpha)) + 20 * fewest_ranks(alpha)
    if most > _MOST:
        raise InvalidInputError(f"`within` must allow for an answer below {_MOST // 3:,}; got {within:g}")
    needed = fewest_ranks(alpha)
    for start in range(needed, most, _BLOCK):
        labels = np.arange(start, min(start + _BLOCK, most))
        failing = np.flatnonzero(_probability_within(labels, alpha, within) < confidence)
        if failing.size:
            needed = int(labels[failing[-1]]) + 1
    return needed


def _probability_within(labels: IntArray, alpha: float, within: float) -> FloatArray:
    """Return, for each number of labels, the probability that coverage is within a distance of 1 − alpha."""
    from scipy.special import betainc

    places = np.ceil((1.0 - alpha) * (1.0 + labels) * (1.0 - ROUNDING))
    low, high = max(0.0, 1.0 - alpha - within), min(1.0, 1.0 - alpha + within)
    law: FloatArray = betainc(places, labels + 1 - places, high) - betainc(places, labels + 1 - places, low)
    return law


def _inner_share(name: str, value: float) -> float:
    share = check_share(name, value)
    if not 0.0 < share < 1.0:
        raise InvalidInputError(f"`{name}` must lie strictly between 0 and 1; got {share:g}")
    return share
