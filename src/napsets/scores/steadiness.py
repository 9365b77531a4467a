"""How far the score of a node can move when one label more is passed on to it from two hops away.

If the weight of label y is multiplied by f ≥ 1, or divided by it, all probabilities together move by at most
(f − 1)·p(y), and so does a score that adds up the probabilities of a fixed set of labels: THR at once, APS as long as
no label changes places with the node's own. A label y that passes on a share δ changes log w by B·log(1 + δ/d), with
d = n_far(y) + κ π_y and B the exponent of far labels times the power of a sharpened score. So

    f − 1 ≤ |B|·δ/d  where |B| ≤ 1,   ≤ (δ/δ*)·((1 + δ*/d)^|B| − 1)  where |B| > 1 and δ ≤ δ*,

and labels keep their places while |B|·δ/d stays below the gap between them on the scale of log w.
"""

from __future__ import annotations

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.kernels.judges import (
    FAR,
    GROUP,
    LIMIT,
    NEAR,
    PLACE,
    SCORE,
    SLACK,
    STEADY,
    WEIGHT,
    Cuts,
    Judges,
    Rule,
)
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import BoundInformed
from napsets.scores.rows import APS, THR, Sharpened

__all__ = ["judge_tables", "limited"]

#: δ*: shares beyond it are not bounded.
_LARGEST = 0.25
#: Judges that limits are computed of at a time.
_PIECE = 1 << 15
#: What rounding, and probabilities too small to count, may change a score by, for each unit of the power.
_MARGIN = {"f": 1e-6, "d": 1e-9}


def judge_tables(informed: BoundInformed, places: IntArray, groups: IntArray, order: IntArray) -> tuple[Judges, Rule]:
    """Return what a kernel must know of some nodes of the bag, and how their scores are made.

    Parameters
    ----------
    informed : BoundInformed
        The score.
    places : numpy.ndarray
        Which nodes of the bag.
    groups : numpy.ndarray
        Whose cuts are those of each.
    order : numpy.ndarray
        The number of each in the order of scores.

    Returns
    -------
    tuple
        The `Judges` and the `Rule` of `napsets.kernels.judges`.
    """
    bag, score, exponents = informed.heard, informed.inner.score, informed.exponents
    nodes, labels = bag.labelled.nodes[places], bag.labelled.labels[places]
    power = float(score.power) if isinstance(score, Sharpened) else 1.0
    score = score.base if isinstance(score, Sharpened) else score
    kind = informed.probabilities.dtype.char
    known = type(score) in (APS, THR) and power >= 1.0 and kind in _MARGIN
    ranked, randomised = type(score) is not THR, type(score) is APS and score.randomized
    margin = power * _MARGIN.get(kind, 1.0) * (1.0 + 0.01 * informed.num_labels)
    w = informed.weights[places]
    rows, classes = np.arange(places.size), w.shape[1]
    tables = np.zeros((places.size, 9, classes))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        weights = (w / w.max(axis=1, keepdims=True)) ** power
        near, far = (
            counts[places] + PRIOR[name] * informed.learned.shares
            for name, counts in (("near", bag.near), ("far", bag.far))
        )
        strength = abs(exponents.far) * power
        each = strength / far if strength <= 1 else ((1.0 + _LARGEST / far) ** strength - 1.0) / _LARGEST
        mine, total = weights[rows, labels][:, None], weights.sum(axis=1, keepdims=True)
        # Labels that are all but level with the node's own might change places with it by rounding alone.
        equal, is_own = w == w[rows, labels][:, None], np.arange(classes) == labels[:, None]
        level = (np.abs(np.log(weights / mine)) <= 4.0 * margin) & ~equal
        unsteady = level.any(axis=1, keepdims=True) | (not known)
        kept = (1.0 - informed.inner.u[nodes])[:, None] if randomised else np.full((places.size, 1), float(ranked))
        above = np.where((weights > mine) | (equal & (np.arange(classes) < labels[:, None])), weights, 0.0)
        for state, new in ((0, weights), (3, weights * ((near + 1.0) / near) ** (exponents.near * power))):
            sums = total + (new - weights)
            gap = np.abs(np.log(new / mine))
            own = new[rows, labels][:, None]
            others = np.abs(np.log(weights / own))
            others[rows, labels] = np.inf
            gap[rows, labels] = others.min(axis=1)
            # The labels before the node's own: all but the one that is added, and that one where it is.
            first = above.sum(axis=1, keepdims=True) - above + np.where(new > mine, new, 0.0)
            first[rows, labels] = np.where((weights > own) & ~is_own, weights, 0.0).sum(axis=1)
            counted = np.where(is_own, own, mine)
            tables[:, SCORE + state] = (first + kept * counted if ranked else sums - counted) / sums
            tables[:, SLACK + state] = np.where(new > 0, new / sums * each * (1.0 + 1e-9), 0.0)
            limit = np.full(new.shape, _LARGEST)
            if ranked:
                limit = np.minimum(limit, far * (gap - 4.0 * margin) / (strength + 1e-300) * (1.0 - 1e-9))
            tables[:, STEADY + state] = np.where(unsteady | ~(limit > 0), -1.0, limit)
    tables[:, WEIGHT], tables[:, NEAR], tables[:, FAR] = weights, near, far
    tables[:, SCORE] = informed.inner.at(nodes, labels)[:, None]
    facts = np.column_stack([kept, np.full(places.size, -1.0)])
    limits = np.zeros((places.size, 2, classes))
    judges = Judges(tables, limits, facts, np.column_stack([labels, groups, order]))
    return judges, Rule(exponents.near * power, exponents.far * power, margin, ranked, known)


def limited(judges: Judges, cuts: Cuts, margin: float) -> Judges:
    """Return the judges with the shares up to which each stays below all cuts of the one window, or above all."""
    limits, facts = np.empty_like(judges.limits), judges.facts.copy()
    for start in range(0, len(limits), _PIECE):
        some = slice(start, start + _PIECE)
        tables, numbers = judges.tables[some], judges.numbers[some]
        groups, place = numbers[:, GROUP], numbers[:, PLACE]
        first, last = cuts.low[0, groups, 0][:, None], cuts.high[0, groups, -1][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            for state in (0, 1):
                score, slack, steady = (tables[:, column + 3 * state] for column in (SCORE, SLACK, STEADY))
                below, above = ((room - 2.0 * margin) / slack for room in (first - score, score - last))
                # A share that is nothing moves nothing: what is less than the room for rounding is no limit.
                below, above = (np.where(shares > 0, np.minimum(shares, steady), 0.0) for shares in (below, above))
                limits[some, state] = np.maximum(below, 0.0) - np.maximum(above, 0.0)
        alone = limits[some, 0]
        outside = np.where(place < cuts.starts[0, 0], alone.min(axis=1), -alone.max(axis=1))
        outside[(place >= cuts.starts[0, 0]) & (place < cuts.starts[0, -1])] = -1.0
        facts[some, LIMIT] = np.where(outside > 0, outside, -1.0)
    return judges._replace(limits=limits, facts=facts)
