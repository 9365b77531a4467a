"""Theory: homophily, bounds on the coverage gap, the block-model lemma, and the number of labels needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from napsets.checks.arguments import AnyArray, ArrayLike, FloatArray, IntArray, check_integers, check_numbers
from napsets.checks.values import check_alpha, check_count, check_number, check_share
from napsets.errors import InvalidInputError
from napsets.evaluation.metrics import mean
from napsets.graph import Graph, check_graph
from napsets.levels import fewest_ranks
from napsets.quantile import LARGEST_WEIGHT, ROUNDING

LARGEST_COUNT = 2.0**63  # of nodes at a hop
#: No answer is larger: the search holds one number per candidate.
_MOST = 10_000_000
#: Candidates whose laws are evaluated at a time.
_BLOCK = 1 << 18


class BlockModelVerdict(NamedTuple):
    """Lemma 1 for one block model."""

    exact: float  #: E[N_out / (N_out + N_in + 1)] with binomial neighbour counts.
    mean_field: float  #: The same with each count replaced by its mean.
    favours_naps: bool  #: Whether the exact value is below 1/2: NAPS has the smaller bound on its coverage gap.


@dataclass(frozen=True, eq=False)
class Homophily:
    """The homophily of a graph: the share of neighbours with the same label, compared with random labels.

    Attributes
    ----------
    labelled : int
        Nodes with a label.
    unmet : int
        Those among them without a labelled neighbour.
    mean : float
        Table 1's Ĥ, where those count as 0; see `node_homophily`.
    where_met : float
        The same among nodes with a labelled neighbour.
    expected : float
        Table 1's H_rand; see `expected_homophily`.
    class_counts : numpy.ndarray
        Nodes of each class.
    class_means : numpy.ndarray
        As `where_met`, among the nodes of each class; NaN where there is none.
    class_expected : numpy.ndarray
        The share of labelled nodes that are of each class: what random neighbours would give.
    """

    labelled: int
    unmet: int
    mean: float
    where_met: float
    expected: float
    class_counts: IntArray
    class_means: FloatArray
    class_expected: FloatArray


def measure_homophily(graph: Graph, labels: ArrayLike, *, num_classes: int | None = None) -> Homophily:
    """Measure homophily overall and per class.

    Parameters
    ----------
    graph : Graph
        The graph.
    labels : array of integers
        One label per node, −1 where unknown.
    num_classes : int, optional
        Number of classes; by default those that the labels show.

    Examples
    --------
    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], num_nodes=5)
    >>> homophily = measure_homophily(path, [0, 0, 0, 1, 1])
    >>> homophily.mean, homophily.where_met, homophily.unmet
    (0.5, 0.625, 1)
    """
    y, shares = _labels_and_shares(graph, labels)
    known = y >= 0
    # With one label for all, the share is 1 just where there is a labelled neighbour.
    met = known & (_labels_and_shares(graph, np.where(known, 0, -1))[1] > 0)
    most = int(y.max(initial=-1)) + 1
    classes = most if num_classes is None else check_count("num_classes", num_classes)
    if most > classes:
        raise InvalidInputError(f"`labels` must be below `num_classes`, {classes}; got {most - 1}")
    counts = np.bincount(y[known], minlength=classes)
    return Homophily(
        labelled=int(known.sum()),
        unmet=int((known & ~met).sum()),
        mean=mean(shares[known]),
        where_met=mean(shares[met]),
        expected=expected_homophily(y),
        class_counts=counts,
        class_means=np.array([mean(shares[met & (y == c)]) for c in range(classes)]),
        class_expected=counts / max(int(known.sum()), 1),
    )


def node_homophily(graph: Graph, labels: ArrayLike) -> float:
    """Return the average share of a node's neighbours that have its label (Table 1's Ĥ).

    Isolated nodes count as 0. Nodes whose label is unknown (−1) are left out, as nodes and as neighbours. NaN where no
    label is known.
    """
    y, shares = _labels_and_shares(graph, labels)
    return mean(shares[y >= 0])


def expected_homophily(labels: ArrayLike) -> float:
    """Return the homophily that random labels with the same frequencies would have: Σ p_k² (Table 1's H_rand).

    NaN where no label is known.
    """
    y = _labels(labels)
    _, counts = np.unique(y[y >= 0], return_counts=True)
    return float(np.sum((counts / counts.sum()) ** 2)) if counts.sum() else float("nan")


def coverage_gap_bound(
    hop_weights: ArrayLike,
    hop_counts: ArrayLike,
    hop_tv: ArrayLike,
    *,
    pool: float = 0.0,
    rest_count: ArrayLike = 0,
    rest_tv: ArrayLike = 1.0,
) -> float | FloatArray:
    """Bound the coverage gap of NAPS (`eq:linearcg`; with all weights 1 it is `eq:graphgapbound`).

    With a pool each of the n calibration nodes, near or not, weighs pool/n more: a node k hops away w(k) + pool/n, one
    that is only pooled pool/n. A neighbour may then weigh more than 1, the weight of the node itself, which the theorem
    does not allow. With m the largest weight, thresholds at 1−α are those of weights w_i/m at the level
    (1−α)(1+Σw)/(m+Σw), to which the theorem applies, so that for every α the gap is at most

        (m − 1 + Σ w_i·tv_i) / (m + Σ w_i).

    Where no weight exceeds 1, m is 1 and this is the bound of the paper.

    Parameters
    ----------
    hop_weights : array of shape (hops,)
        w(k) of each hop; at most 1 in the theorem.
    hop_counts : array of shape (..., hops)
        Calibration nodes at each hop, for one node or for many.
    hop_tv : array of shape (..., hops)
        Mean total variation distance of the calibration nodes at each hop.
    pool : float
        How many neighbours all calibration nodes together count for.
    rest_count : array of shape (...)
        Calibration nodes beyond the hops, which are only pooled.
    rest_tv : array of shape (...)
        Their mean total variation distance; by default the largest there is.

    Returns
    -------
    float or numpy.ndarray
        One bound for each node.

    Examples
    --------
    >>> coverage_gap_bound([1.0, 0.5], [4, 10], [0.1, 0.3])
    0.19
    >>> round(coverage_gap_bound([1.0, 0.5], [4, 10], [0.1, 0.3], pool=5, rest_count=986, rest_tv=0.6), 4)
    0.3252
    """
    w, d = (
        check_numbers("hop_weights", hop_weights, largest=LARGEST_WEIGHT),
        check_numbers("hop_tv", hop_tv, largest=1.0),
    )
    counts = check_numbers("hop_counts", hop_counts, largest=LARGEST_COUNT)
    if w.ndim != 1 or counts.shape[-1:] != w.shape or d.shape[-1:] != w.shape:
        raise InvalidInputError(
            f"`hop_counts` and `hop_tv` must have one entry per hop, {w.size}; got shapes {counts.shape} and {d.shape}"
        )
    pool = check_number("pool", pool, largest=LARGEST_WEIGHT)
    rest = check_numbers("rest_count", rest_count, largest=LARGEST_COUNT)
    rest_d = check_numbers("rest_tv", rest_tv, largest=1.0)
    try:
        np.broadcast_shapes(counts.shape[:-1], d.shape[:-1], rest.shape, rest_d.shape)
    except ValueError as error:
        raise InvalidInputError(
            f"`rest_count` and `rest_tv` must have one entry per node, as `hop_counts` and `hop_tv` have; got shapes "
            f"{rest.shape} and {rest_d.shape} beside {counts.shape} and {d.shape}"
        ) from error
    bound = _pooled_bound(w, counts, d, pool, rest, rest_d) if pool else gap_bound(w, counts, d)
    return float(bound) if bound.ndim == 0 else bound


def gap_bound(weights: FloatArray, counts: AnyArray, tv: FloatArray) -> FloatArray:
    """Return Σ w(k)·n_k·tv_k / (1 + Σ w(k)·n_k) of arrays that were checked; see `coverage_gap_bound`."""
    mass = counts * weights
    bound: FloatArray = np.asarray(np.sum(mass * tv, axis=-1) / (1.0 + np.sum(mass, axis=-1)))
    return bound


def _pooled_bound(
    w: FloatArray, counts: FloatArray, d: FloatArray, pool: float, rest: FloatArray, rest_d: FloatArray
) -> FloatArray:
    """Return (m − 1 + Σ w_i·tv_i) / (m + Σ w_i) with w_i = w(k) + pool/n, n the number of calibration nodes."""
    pooled = pool / np.maximum(np.sum(counts, axis=-1) + rest, 1.0)  # without any calibration node it counts for none
    weights = w + pooled[..., None]
    mass, rest_mass = counts * weights, rest * pooled
    largest = np.maximum(
        np.max(weights, axis=-1, where=np.broadcast_to(counts > 0, weights.shape), initial=1.0),
        np.where(rest > 0, pooled, 1.0),
    )
    bound: FloatArray = np.asarray(
        (largest - 1.0 + np.sum(mass * d, axis=-1) + rest_mass * rest_d) / (largest + np.sum(mass, axis=-1) + rest_mass)
    )
    return bound


def sbm_favours_naps(n: int, p_in: float, p_out: float) -> BlockModelVerdict:
    """Decide Lemma 1 for two blocks of `n` nodes each.

    NAPS with one hop has the smaller bound if E[N_out / (N_out + N_in + 1)] < 1/2, where N_in ~ Bin(n−1, p_in) and
    N_out ~ Bin(n, p_out). Because 1/(m+1) = ∫₀¹ tᵐ dt, the expectation is an integral over one variable, whatever `n`:
    n·p_out·∫ t·(1−p_out(1−t))ⁿ⁻¹·(1−p_in(1−t))ⁿ⁻¹ dt.

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
    n = check_count("n", n, minimum=1, maximum=2**53)
    p_in, p_out = check_share("p_in", p_in), check_share("p_out", p_out)
    s, step = _nodes_near_zero((n - 1) * (p_in + p_out))
    t, inside, outside = 1.0 - s, 1.0 - p_in * s, 1.0 - p_out * s
    both = np.exp((n - 1) * (np.log1p(-p_in * s) + np.log1p(-p_out * s)))
    exact = n * p_out * float(np.sum(step * t * both))
    # In the same way E[(N_in + 1 − N_out) / (N_out + N_in + 1)], whose sign decides, so written that nothing cancels.
    excess = 1.0 - t * p_in / inside + t * n * (p_in - p_out) / (inside * outside)
    mean_field = n * p_out / (n * p_out + (n - 1) * p_in + 1.0)
    return BlockModelVerdict(exact, mean_field, float(np.sum(step * both * outside * excess)) > 0.0)


#: Points and weights of a quadrature, computed once: a figure of Lemma 1 needs them a thousand times.
_gauss_legendre = lru_cache(maxsize=1)(np.polynomial.legendre.leggauss)


def _nodes_near_zero(rate: float) -> tuple[FloatArray, FloatArray]:
    """Return points in (0, 1) and weights that integrate what falls like exp(−rate·s) or faster, to rounding."""
    panels, points = 32, 24
    x, weights = _gauss_legendre(points)
    width = min(1.0, 90.0 / max(rate, 1.0)) / panels  # beyond it there is less than 10⁻³⁹
    starts = np.arange(panels)[:, None] * width
    return (starts + (x + 1.0) * (width / 2)).ravel(), np.tile(weights * (width / 2), panels)


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


def _labels_and_shares(graph: Graph, labels: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Return the labels, and the share of each labelled node's labelled neighbours that have its label."""
    from napsets.kernels.csr import row_ranges

    y = _labels(labels)
    if y.size != check_graph(graph).num_nodes:
        raise InvalidInputError(f"`labels` must have one entry per node, {graph.num_nodes}; got {y.size}")
    shares = np.zeros(y.size)
    for first, last in row_ranges(graph.indptr):
        row = np.repeat(np.arange(last - first), graph.degrees[first:last])
        label, other = y[first:last][row], y[graph.indices[graph.indptr[first] : graph.indptr[last]]]
        counted = (label >= 0) & (other >= 0)
        known = np.bincount(row[counted], minlength=last - first)
        same = np.bincount(row[counted & (label == other)], minlength=last - first)
        shares[first:last] = same / np.maximum(known, 1)
    return y, shares


def _labels(labels: ArrayLike) -> IntArray:
    y = check_integers("labels", labels)
    if y.size and y.min() < -1:
        raise InvalidInputError(f"`labels` must be at least 0, or −1 for unknown; got {y.min()}")
    return y.astype(np.int64, copy=False)
