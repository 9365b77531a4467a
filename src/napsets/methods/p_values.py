"""The p-value of every candidate: how many labelled nodes fit their labels no better than the candidate fits its node.

With T the order of comparison (the score, or the rank and the score at an exact level) and n labelled nodes to compare
with, p(v, y) = (1 + #{T_i ≥ T_v(y)}) / (n + 1), and y is in the set at alpha exactly if p > alpha. If v and those nodes
are exchangeable, P(p(v, Y) ≤ a) ≤ a for every a. Smoothed, p = (#{T_i > T_v} + U·(1 + #{T_i = T_v})) / (n + 1) with U
uniform, which is uniform itself; U is a function of seed and node id, and not the number that scores use.

`select` declares from them which nodes have a label, with the false discovery rate controlled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, as_array
from napsets.checks.values import check_count, check_share, choose
from napsets.errors import InvalidInputError
from napsets.levels import FittedExact, Nominal
from napsets.localisers import Everyone
from napsets.quantile import ROUNDING
from napsets.randomness import node_uniforms
from napsets.scores.base import of_labels

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

#: Separates the uniform numbers of smoothed p-values from those of scores with the same seed.
_SALT = 0x9E3779B97F4A7C15
_ENTRIES = 1 << 20


def p_values(calibrated: Calibrated, nodes: IntArray, *, smoothed: bool = False) -> FloatArray:
    """Return the p-value of every label of some nodes, shape (nodes, labels); smoothed, ties are broken at random.

    The method must compare exchangeable nodes: one threshold for all, or an exact level, with groups or without.
    """
    _check(calibrated)
    values = np.empty((nodes.size, calibrated.score.num_labels))
    step = max(1, _ENTRIES // max(1, values.shape[1]))
    for start in range(0, nodes.size, step):
        rows = nodes[start : start + step]
        above, equal, count = compared(calibrated, rows)
        u: FloatArray = np.ones(1)
        if smoothed:
            ids = rows if calibrated.scored.ids is None else calibrated.scored.ids[rows]
            u = node_uniforms(ids, (calibrated.method.seed + _SALT) % 2**64)[:, None]
        values[start : start + step] = (above + u * (1.0 + equal)) / (1.0 + count)
    return values


def _check(calibrated: Calibrated) -> None:
    method, name = calibrated.method, type(calibrated.method.localiser).__name__
    if not calibrated.score.num_labels:
        raise InvalidInputError("`p_values` must be left out for intervals, which have no list of candidates")
    if not calibrated.is_exact and not (isinstance(method.level, Nominal) and isinstance(method.localiser, Everyone)):
        raise InvalidInputError(
            f"`p_values` must be asked of a method that compares exchangeable nodes: one threshold for all, or an "
            f"exact level; {name} at a nominal level weighs nodes by where they are"
        )


def compared(calibrated: Calibrated, nodes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count the labelled nodes above and at each candidate, and all that it is compared with."""
    matrix = of_labels(calibrated.score).matrix(nodes)
    if calibrated.grouped is None:
        return _against(calibrated, nodes, matrix)
    grouped = calibrated.grouped
    above, equal, count = (np.empty(matrix.shape) for _ in range(3))
    groups = grouped.grouping.groups
    for group in np.unique(groups if grouped.grouping.of == "label" else groups[nodes]).tolist():
        part = grouped.everyone if group < 0 else grouped.part(group)
        rows, labels = np.arange(nodes.size), np.arange(matrix.shape[1])
        if grouped.grouping.of == "label":
            labels = np.flatnonzero(groups == group)
        else:
            rows = np.flatnonzero(groups[nodes] == group)
        block = np.ix_(rows, labels)
        above[block], equal[block], count[block] = _against(part, nodes[rows], matrix[block])
    return above, equal, count


def _against(calibrated: Calibrated, nodes: IntArray, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same for the candidates that one calibration judges."""
    scored = calibrated.scored
    known = scored.reference.scores
    ranks = np.zeros(scores.shape)
    if calibrated.is_exact:  # one level is set for all nodes, those held out among them, by all held-out labels
        known = scored.level_scores if calibrated.judges is None else scored.level_scores[calibrated.judges]
        for column in range(scores.shape[1]):
            ranks[:, column] = calibrated.local.ranks(nodes, scores[:, column])
    level = calibrated.level if calibrated.is_exact else FittedExact(np.zeros(known.size), np.sort(known))
    assert isinstance(level, FittedExact)
    pairs, wanted = in_order(level.shares, level.scores), in_order(ranks, scores)
    below, upto = (np.searchsorted(pairs, wanted, side) for side in ("left", "right"))
    equal, above = (upto - below).astype(np.float64), (known.size - upto).astype(np.float64)
    count = np.full(nodes.size, known.size)
    if not calibrated.is_exact:  # a node's own score is not among those that its threshold is computed from
        place = np.full(calibrated.num_nodes, -1)
        place[scored.reference.nodes] = np.arange(known.size)
        inside = np.flatnonzero(place[nodes] >= 0)
        score = known[place[nodes[inside]]][:, None]
        above[inside] -= score > scores[inside]
        equal[inside] -= score == scores[inside]
        count[inside] -= 1
    return above, equal, np.broadcast_to(count[:, None], scores.shape)


def in_order(shares: FloatArray, scores: FloatArray) -> npt.NDArray[np.complex128]:
    """Return numbers that are ordered by share, and then by score."""
    pairs = np.empty(shares.shape, dtype=np.complex128)
    pairs.real, pairs.imag = shares, scores
    return pairs


def select(
    p_values: ArrayLike, label: int, fdr: float = 0.1, *, dependence: Literal["positive", "any"] = "positive"
) -> IntArray:
    """Return the rows whose node is declared to have a label, with the false discovery rate controlled.

    The p-value of a candidate tests "the node has this label", and is small where that is unlikely. To declare that a
    node *has* the label, the hypothesis "it has another one" must be rejected, and so each of the other labels: the
    p-value of that hypothesis is the largest p-value of the other labels. It is valid, because it is at least the
    p-value of the true label whenever that is another one. The Benjamini–Hochberg procedure on these p-values selects
    rows such that the expected share of selected nodes that have another label is at most `fdr`.

    *Assumptions.* (1) The labelled nodes are a random sample of all nodes in question, so that all of these are
    exchangeable, and the rows are all of the others, or a random part of them: not those that looked promising.
    (2) With ``dependence="positive"``, the p-values are those of `Calibrated.p_values`: of split conformal prediction,
    diffusion, and all methods at ``Exact()``, with groups of nodes or of classes or without. For these the rate is
    proven (see the page on guarantees; Bates et al., 2023; Jin and Candès, 2023). For p-values from elsewhere,
    ``dependence="any"`` divides `fdr` by 1 + 1/2 + … + 1/rows (Benjamini and Yekutieli, 2001), which is proven for any
    dependence and selects fewer rows.

    Parameters
    ----------
    p_values : array of shape (nodes, labels)
        Those of every candidate, not smoothed or smoothed, as ``sets.p_values`` or `Calibrated.p_values` give them.
        With ``by="class"`` each label is compared with nodes of that label, which selects more where the label is
        rare.
    label : int
        The label.
    fdr : float
        The expected share of false statements among all that are made.
    dependence : {"positive", "any"}
        What is known of the dependence between the p-values of different nodes.

    Examples
    --------
    >>> select([[0.01, 0.8], [0.6, 0.3], [0.02, 0.5]], label=1, fdr=0.1).tolist()
    [0, 2]
    """
    p: FloatArray = as_array("p_values", p_values)
    if p.ndim != 2 or p.shape[1] < 2 or p.dtype.kind != "f":
        raise InvalidInputError(
            f"`p_values` must have shape (nodes, labels), as predict(..., p_values=True).p_values has; got "
            f"{p.dtype} of shape {p.shape}"
        )
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise InvalidInputError("`p_values` must lie in [0, 1]")
    chosen = check_count("label", label, maximum=p.shape[1] - 1)
    rate = check_share("fdr", fdr)
    if choose("dependence", dependence, {"positive": False, "any": True}):
        rate /= float((1.0 / np.arange(1, max(p.shape[0], 1) + 1)).sum())
    against = np.delete(p, chosen, axis=1).max(axis=1)
    order = np.argsort(against, kind="stable")
    allowed = rate * np.arange(1, order.size + 1) / max(order.size, 1)
    reached = np.flatnonzero(against[order] * (1.0 - ROUNDING) <= allowed)
    count = int(reached[-1]) + 1 if reached.size else 0
    return np.sort(order[:count])
