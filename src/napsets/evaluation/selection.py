"""Nodes that are of a given class, with the false discovery rate controlled: selection by conformal p-values."""

from __future__ import annotations

from typing import Literal

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, as_array
from napsets.checks.values import check_count, check_share, choose
from napsets.errors import InvalidInputError
from napsets.quantile import ROUNDING


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
    (2) With ``dependence="positive"``, the p-values are those of scores that use no label of the nodes that set the
    level: split conformal prediction, diffusion, and all methods at ``Exact()``, with groups of nodes or of classes
    or without. For these the rate is proven (see the page on guarantees; Bates et al., 2023; Jin and Candès, 2023). At
    ``Full()``, as in `informed` and `auto`, each p-value is valid by itself, but held-out labels are evidence for
    each other, and no proof covers the dependence of the p-values. ``dependence="any"`` divides `fdr` by
    1 + 1/2 + … + 1/rows (Benjamini and Yekutieli, 2001), which is proven for any dependence and selects fewer rows.

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
