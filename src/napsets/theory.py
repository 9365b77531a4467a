"""What the paper proves: homophily, bounds on the coverage gap, and the block-model lemma."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napsets._check import ArrayLike, FloatArray, IntArray, as_array, check_count, check_integers
from napsets.errors import InvalidInputError
from napsets.graph import Graph

__all__ = [
    "BlockModelVerdict",
    "coverage_gap_bound",
    "expected_homophily",
    "node_homophily",
    "sbm_favours_naps",
    "weighted_gap_bound",
]


class BlockModelVerdict(NamedTuple):
    """Lemma 1 for one block model.

    Attributes
    ----------
    exact : float
        E[N_out / (N_out + N_in + 1)] with binomial neighbour counts.
    mean_field : float
        The same with each count replaced by its mean.
    favours_naps : bool
        Whether the exact value is below 1/2, so that NAPS has the smaller bound on its coverage gap.
    """

    exact: float
    mean_field: float
    favours_naps: bool


def node_homophily(graph: Graph, labels: ArrayLike) -> float:
    """Return the average share of a node's neighbours that have its label (Table 1's Ĥ).

    Isolated nodes count as 0. Nodes whose label is unknown (−1) are left out, as nodes and as neighbours.
    """
    from napsets.kernels.balls import same_label_shares

    y = _labels(labels)
    if y.size != graph.num_nodes:
        raise InvalidInputError(f"`labels` must have one entry a node, {graph.num_nodes}; got {y.size}")
    shares = np.empty(y.size)
    same_label_shares(graph.indptr, graph.indices, y, shares)
    known = y >= 0
    return float(shares[known].mean()) if known.any() else float("nan")


def expected_homophily(labels: ArrayLike) -> float:
    """Return the homophily that random labels with the same frequencies would have: Σ p_k² (Table 1's H_rand)."""
    y = _labels(labels)
    counts = np.bincount(y[y >= 0])
    return float(np.sum((counts / counts.sum()) ** 2)) if counts.sum() else float("nan")


def weighted_gap_bound(weights: ArrayLike, tv: ArrayLike) -> float:
    """Bound the coverage gap of any weighting (`eq:gapbound`): Σ w_i·tv_i / (1 + Σ w_i).

    Parameters
    ----------
    weights : array of shape (n,)
        Weights of the calibration points.
    tv : array of shape (n,)
        Total variation distance between the data as they are and with the test point and point i swapped.
    """
    w, d = _weights("weights", weights), _distances("tv", tv)
    if w.shape != d.shape:
        raise InvalidInputError(f"`tv` must have one entry a weight, shape {w.shape}; got {d.shape}")
    return float((w @ d) / (1.0 + w.sum()))


def coverage_gap_bound(hop_weights: ArrayLike, hop_counts: ArrayLike, hop_tv: ArrayLike) -> float | FloatArray:
    """Bound the coverage gap of NAPS (`eq:linearcg`; with all weights 1 it is `eq:graphgapbound`).

    Parameters
    ----------
    hop_weights : array of shape (hops,)
        w(k) of each hop.
    hop_counts : array of shape (..., hops)
        Calibration nodes at each hop, for one node or for many.
    hop_tv : array of shape (..., hops)
        Mean total variation distance of the calibration nodes at each hop.

    Returns
    -------
    float or numpy.ndarray
        One bound for each node.

    Examples
    --------
    >>> coverage_gap_bound([1.0, 0.5], [4, 10], [0.1, 0.3])
    0.19
    """
    w, d = _weights("hop_weights", hop_weights), _distances("hop_tv", hop_tv)
    counts = as_array("hop_counts", hop_counts).astype(np.float64)
    if w.ndim != 1 or counts.shape[-1:] != w.shape or d.shape[-1:] != w.shape:
        raise InvalidInputError(
            f"`hop_counts` and `hop_tv` must have one entry a hop, {w.size}; got shapes {counts.shape} and {d.shape}"
        )
    if counts.size and counts.min() < 0:
        raise InvalidInputError(f"`hop_counts` must be at least 0; got {counts.min():g}")
    mass = counts * w
    bound = np.sum(mass * d, axis=-1) / (1.0 + np.sum(mass, axis=-1))
    return float(bound) if bound.ndim == 0 else bound


def sbm_favours_naps(n: int, p_in: float, p_out: float) -> BlockModelVerdict:
    """Decide Lemma 1 for two blocks of `n` nodes each.

    NAPS with one hop has the smaller bound if E[N_out / (N_out + N_in + 1)] < 1/2, where N_in ~ Bin(n−1, p_in) and
    N_out ~ Bin(n, p_out). The expectation is summed over both distributions, each restricted to the counts that
    carry all but 10⁻¹⁸ of it.

    Parameters
    ----------
    n : int
        Nodes in each block.
    p_in, p_out : float
        Probability of an edge within a block, and between the blocks.

    Examples
    --------
    >>> sbm_favours_naps(1000, 0.05, 0.01).favours_naps
    True
    """
    n = check_count("n", n, minimum=1)
    for name, p in (("p_in", p_in), ("p_out", p_out)):
        if not 0.0 <= p <= 1.0:
            raise InvalidInputError(f"`{name}` must lie in [0, 1]; got {p!r}")
    inside, weight_in = _binomial(n - 1, p_in)
    outside, weight_out = _binomial(n, p_out)
    exact = 0.0
    for count, weight in zip(outside, weight_out, strict=True):
        exact += float(weight) * float(count) * float(np.sum(weight_in / (count + inside + 1.0)))
    mean_field = n * p_out / (n * p_out + (n - 1) * p_in + 1.0)
    return BlockModelVerdict(exact, mean_field, exact < 0.5)


def _binomial(n: int, p: float) -> tuple[FloatArray, FloatArray]:
    """Return the counts that matter, and their probabilities."""
    from scipy.stats import binom

    # Bernstein: P(|X − np| ≥ t) ≤ 2·exp(−t² / (2(σ² + t/3))). A quantile function cannot tell 1 − 10⁻¹⁸ from 1.
    log_tail = -np.log(0.5e-18)
    reach = log_tail / 3 + np.sqrt((log_tail / 3) ** 2 + 2 * n * p * (1 - p) * log_tail)
    low, high = max(0, int(np.floor(n * p - reach))), min(n, int(np.ceil(n * p + reach)))
    counts = np.arange(low, high + 1, dtype=np.float64)
    return counts, binom.pmf(counts, n, p)


def _labels(labels: ArrayLike) -> IntArray:
    y = check_integers("labels", labels)
    if y.size and y.min() < -1:
        raise InvalidInputError(f"`labels` must be at least 0, or −1 for unknown; got {y.min()}")
    return y.astype(np.int64, copy=False)


def _weights(name: str, value: ArrayLike) -> FloatArray:
    array = as_array(name, value).astype(np.float64)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise InvalidInputError(f"`{name}` must be finite and at least 0; got {array[bad][0]:g}")
    return array


def _distances(name: str, value: ArrayLike) -> FloatArray:
    array = as_array(name, value).astype(np.float64)
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise InvalidInputError(f"`{name}` must lie in [0, 1]; got values from {array.min():g} to {array.max():g}")
    return array
