"""How far the coverage of split conformal prediction may stray by chance, exactly.

Evaluation nodes are a uniform draw of m from the eligible nodes; the n others calibrate, the threshold is the k-th
smallest of their scores, k = ⌈(n+1)(1−alpha)⌉. At most x evaluation nodes are covered exactly if at least k of the
k + x smallest scores of all nodes belong to calibration, that is, if at most x of them were drawn: a hypergeometric
probability, whatever the scores (without ties). If all nodes are eligible this is the Beta-binomial law with
parameters m, k and n + 1 − k. Draws of different repetitions are independent, so that the median over them has an
exact law too.
"""

from __future__ import annotations

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, check_alpha, check_count
from napsets.quantile import required_mass

__all__ = ["coverage_law", "drawn_coverage_law", "median_band"]


def coverage_law(calibration: int, evaluated: int, alpha: float = 0.1) -> FloatArray:
    """Return P(at most x of the evaluated nodes are covered), x = 0..evaluated, for exchangeable nodes.

    Examples
    --------
    >>> low, high = median_band(coverage_law(11_000, 1000), repetitions=100)
    >>> low < 0.9 < high
    True
    """
    from scipy.stats import betabinom

    n, m = check_count("calibration", calibration, minimum=1), check_count("evaluated", evaluated, minimum=1)
    k = _place(n, alpha)
    if k > n:  # the threshold is +∞: everything is covered
        return np.append(np.zeros(m), 1.0)
    return np.asarray(betabinom.cdf(np.arange(m + 1), m, k, n + 1 - k))


def drawn_coverage_law(scores: FloatArray, eligible: BoolArray, evaluated: int, alpha: float = 0.1) -> FloatArray:
    """Return the same for given scores, of which only the eligible ones are drawn for evaluation."""
    from scipy.stats import hypergeom

    m = check_count("evaluated", evaluated, minimum=1)
    n = scores.size - m
    k = _place(n, alpha)
    if k > n:
        return np.append(np.zeros(m), 1.0)
    # Eligible nodes among the k + x smallest scores, x = 0..m.
    among = np.cumsum(eligible[np.argsort(scores, kind="stable")])[k - 1 : k + m]
    return np.asarray(hypergeom.cdf(np.arange(m + 1), int(eligible.sum()), among, m))


def median_band(law: FloatArray, repetitions: int, outside: float = 1e-3) -> tuple[float, float]:
    """Return where the median coverage of independent repetitions lies but for a probability of at most `outside`.

    With an even number of repetitions the median is the mean of the two middle values: it lies above the lower end
    of the lower one and below the upper end of the upper one.

    Parameters
    ----------
    law : array
        From `coverage_law` or `drawn_coverage_law`.
    repetitions : int
        1 gives the band of a single coverage.
    outside : float
        Half of it on either side.
    """
    from scipy.stats import binom

    repetitions = check_count("repetitions", repetitions, minimum=1)
    evaluated = law.size - 1
    # The j-th smallest of r values is at most x exactly if j of them are: a binomial count with chance F(x).
    lower = np.asarray(binom.sf((repetitions + 1) // 2 - 1, repetitions, law))
    upper = np.asarray(binom.sf(repetitions // 2, repetitions, law))
    low = int(np.searchsorted(lower, outside / 2, side="right"))
    high = int(np.searchsorted(upper, 1.0 - outside / 2, side="left"))
    return low / evaluated, min(high, evaluated) / evaluated


def _place(calibration: int, alpha: float) -> int:
    return int(np.ceil(required_mass(float(calibration), check_alpha(alpha))))
