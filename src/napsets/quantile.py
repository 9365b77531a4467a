"""The weighted conformal quantile, in its plain NumPy form.

This file is the specification. Every faster implementation must give identical results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from napsets.checks.arguments import ArrayLike, BoolArray, FloatArray, IntArray, as_array, check_scores
from napsets.checks.values import check_alpha
from napsets.errors import InvalidInputError

#: The part of the required mass that rounding may cost: what is reached exactly must count as reached.
ROUNDING = 1e-9

#: Heavier weights could overflow when the masses of many nodes are added; the test point weighs 1.
LARGEST_WEIGHT = 1e100


def required_mass(total: float, alpha: float) -> float:
    """Return the mass that a threshold must gather, (1−α)(1+Σw), less the part forgiven to rounding.

    The 1 is the weight of the test point, which sits at +∞ (the paper's `eq:wquant`).
    """
    return (1.0 - alpha) * (1.0 + total) * (1.0 - ROUNDING)


def hop_quantile(
    scores: FloatArray,
    hop: IntArray,
    weights: FloatArray,
    alpha: float,
    *,
    pool: float = 0.0,
    alike: float = 0.0,
    same: BoolArray | None = None,
) -> float:
    """Return the threshold that scores at the hops 1, 2, … give, where hop k weighs ``weights[k−1]``.

    The smallest score s with mass(s) ≥ (1−α)(1 + mass(∞)), +∞ where there is none, and

    mass(s) = Σ_k w(k)·c_k(s) + (pool/n)·c(s) + (alike/n_same)·c_same(s).

    Of the nodes with a score up to s, c_k counts those at hop k, c all of them and c_same those that `same` names;
    n and n_same are how many there are. So with a pool, `scores` are those of all calibration nodes but the node
    itself; where `hop` is none of 1, 2, …, they are far. Nodes are counted first, as integers, and weighted in this
    order, so that no order of visiting them can change a bit. A term without weight or without nodes is left out.
    """
    return _quantile(*cumulative_mass(scores, hop, weights, pool=pool, alike=alike, same=same), alpha)


def cumulative_mass(
    scores: FloatArray, hop: IntArray, weights: FloatArray, **pools: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the scores in ascending order and the mass up to each of them, as in `hop_quantile`."""
    ordered = np.argsort(scores, kind="stable")
    return scores[ordered], _with_pools(_mass_by_hop(hop[ordered], weights), ordered, **pools)


def local_rank(scores: FloatArray, hop: IntArray, weights: FloatArray, value: float, **pools: Any) -> float:
    """Return the share of the mass that lies strictly below a value: mass / (1 + total), as in `hop_quantile`."""
    return _rank(scores, cumulative_mass(scores, hop, weights, **pools)[1], value)


def hop_mass(weights: FloatArray, counts: Iterable[IntArray | FloatArray], size: int) -> FloatArray:
    """Return Σ_k w(k)·c_k for `size` nodes or scores, summed in the order of the hops; `counts` has one row per hop."""
    mass = np.zeros(size)
    for weight, count in zip(weights, counts, strict=True):
        mass += weight * count
    return mass


def pooled_mass(mass: FloatArray, weight: float, counts: IntArray, sizes: IntArray) -> FloatArray:
    """Add (weight/n)·c to a mass, with c the `counts` and n the `sizes`; nothing where n is 0."""
    return mass + np.divide(weight, sizes, out=np.zeros(sizes.shape), where=sizes > 0) * counts


def _mass_by_hop(hop: IntArray, weights: FloatArray) -> FloatArray:
    """Return Σ_k w(k)·c_k up to each node."""
    return hop_mass(weights, (np.cumsum(hop == k) for k in range(1, len(weights) + 1)), hop.shape[0])


def summed_quantile(scores: FloatArray, weights: FloatArray, alpha: float, **pools: Any) -> float:
    """Return the threshold that scores give whose weights are as many as there are distances, as along path lengths.

    As `hop_quantile`, with mass(s) = Σ_{s_i ≤ s} w_i + (pool/n)·c(s) + (alike/n_same)·c_same(s). Such weights cannot be
    counted first. They are added one by one in ascending order of their scores, the heaviest of equal scores first:
    the order in which nodes are numbered or met cannot change a bit. A node out of reach weighs 0.
    """
    ordered = np.lexsort((-weights, scores))
    # NumPy's running sum goes from left to right, one by one.
    mass = _with_pools(np.cumsum(weights[ordered]), ordered, **pools)
    return _quantile(scores[ordered], mass, alpha)


def summed_rank(scores: FloatArray, weights: FloatArray, value: float, **pools: Any) -> float:
    """Return the share of the mass that lies strictly below a value: mass / (1 + total), as in `summed_quantile`."""
    ordered = np.lexsort((-weights, scores))
    mass = _with_pools(np.cumsum(weights[ordered]), ordered, **pools)
    return _rank(scores, mass, value)


def _with_pools(
    mass: FloatArray, ordered: IntArray, pool: float = 0.0, alike: float = 0.0, same: BoolArray | None = None
) -> FloatArray:
    """Add (pool/n)·c and (alike/n_same)·c_same to the mass up to each node, in the order of the scores."""
    for extra, members in ((pool, np.ones(mass.shape, dtype=bool)), (alike, None if same is None else same[ordered])):
        if members is not None:
            mass = pooled_mass(mass, extra, np.cumsum(members), np.asarray(np.count_nonzero(members)))
    return mass


def _total(mass: FloatArray) -> float:
    return float(mass[-1]) if mass.size else 0.0


def _quantile(sorted_scores: FloatArray, mass: FloatArray, alpha: float) -> float:
    """Return the smallest score up to which there is as much mass as `alpha` requires, +∞ where there is none."""
    reached = mass >= required_mass(_total(mass), alpha)
    # Tied scores stand side by side and the first of them to reach the mass has their common value.
    return float(sorted_scores[reached.argmax()]) if reached.any() else float("inf")


def _rank(scores: FloatArray, mass: FloatArray, value: float) -> float:
    """Return the share of the mass that lies strictly below a value."""
    below = int(np.count_nonzero(scores < value))
    return (float(mass[below - 1]) if below else 0.0) / (1.0 + _total(mass))


def weighted_quantile(scores: ArrayLike, weights: ArrayLike, alpha: float = 0.1) -> float:
    """Return the smallest s with Σ_{s_i ≤ s} w_i ≥ (1−α)(1+Σ w_i), and +∞ where there is none.

    With all weights 1 this is the ⌈(n+1)(1−α)⌉-th smallest score. There is no interpolation and no clipping.

    Parameters
    ----------
    scores : array of shape (n,)
        Calibration scores.
    weights : array of shape (n,)
        Their weights, finite and not negative; the test point's own weight is 1.
    alpha : float
        Error rate, strictly between 0 and 1.

    Examples
    --------
    >>> weighted_quantile([0.1, 0.2, 0.3, 0.4], [1, 1, 1, 1], alpha=0.5)
    0.3
    >>> weighted_quantile([0.1, 0.2], [1, 1], alpha=0.1)
    inf
    """
    values = check_scores("scores", scores)
    masses = as_array("weights", weights)
    if masses.shape != values.shape:
        raise InvalidInputError(f"`weights` must have one entry per score, {values.size}; got shape {masses.shape}")
    if masses.dtype.kind not in "fiub":
        raise InvalidInputError(f"`weights` must hold numbers; got dtype {masses.dtype}")
    masses = masses.astype(np.float64, copy=False)
    bad = ~(masses <= LARGEST_WEIGHT) | (masses < 0)  # NaN is bad too
    if bad.any():
        i = int(bad.argmax())
        raise InvalidInputError(f"`weights` must be finite, from 0 to {LARGEST_WEIGHT:g}; entry {i} is {masses[i]:g}")
    # Equal weights are counted together, the heaviest first: the order of the arguments cannot matter.
    distinct, group = np.unique(-masses, return_inverse=True)
    return hop_quantile(values, group.reshape(-1) + 1, -distinct, check_alpha(alpha))
