"""Nodes that are of a given class, with the false discovery rate controlled: selection by conformal p-values."""

from __future__ import annotations

import numpy as np

from napsets.checks.arguments import ArrayLike, FloatArray, IntArray, as_array, check_count, check_share
from napsets.errors import InvalidInputError
from napsets.quantile import ROUNDING

__all__ = ["select"]


def select(p_values: ArrayLike, label: int, fdr: float = 0.1) -> IntArray:
    """Return the rows whose node can be said to have a label, so that few of these statements are false.

    The hypothesis against a node is that it has another label; its p-value is the largest among the p-values of the
    other labels. The Benjamini–Hochberg procedure then selects rows such that the expected share of those that have
    another label is at most `fdr`.

    *Assumption.* Labelled nodes and the nodes in question are drawn independently from one population, and p-values
    come from split conformal prediction of scores that look at a node's own outputs: then they depend on each other
    positively, as the procedure needs (Bates et al., 2023; Jin and Candès, 2023). Of scores that look at neighbours'
    labels each p-value is valid by itself, but no proof covers their dependence; the rate has been simulated.

    Parameters
    ----------
    p_values : array of shape (nodes, labels)
        Those of every candidate, as ``sets.p_values`` or `Calibrated.p_values` give them; with ``by="class"`` each
        label is judged by its own kind, which selects more where the label is rare.
    label : int
        The label.
    fdr : float
        The expected share of false statements among all that are made.

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
    against = np.delete(p, chosen, axis=1).max(axis=1)
    order = np.argsort(against, kind="stable")
    allowed = rate * np.arange(1, order.size + 1) / max(order.size, 1)
    reached = np.flatnonzero(against[order] * (1.0 - ROUNDING) <= allowed)
    count = int(reached[-1]) + 1 if reached.size else 0
    return np.sort(order[:count])
