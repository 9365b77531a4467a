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

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.candidates import (
    GROUP,
    GROWTH,
    KEPT,
    NEAR_SLOPE,
    NEIGHBOUR,
    NEXT,
    PLACE,
    REACH,
    SCORE,
    SLACK,
    SLOPE,
    STEADY,
    TOTAL,
    Cuts,
    Judges,
    Rule,
)
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import BoundInformed
from napsets.scores.rows import APS, THR, Sharpened

#: δ*: shares beyond it are not bounded.
_LARGEST = 0.25
#: What rounding, and probabilities too small to count, may change a score by, for each unit of the power.
_MARGIN = {"f": 1e-6, "d": 1e-9}


def judge_tables(
    informed: BoundInformed, places: IntArray, groups: IntArray, order: IntArray, scores: FloatArray | None = None
) -> tuple[Judges, Rule]:
    """Return what a kernel must know of the nodes at some places of the bag, and how their scores are made.

    `groups` says whose cuts are those of each node, `order` gives its number in the order of scores, and `scores` its
    score at its label, where that is known already.
    """
    bag, score, exponents = informed.required_bag, informed.inner.score, informed.exponents
    nodes, labels = bag.labelled.nodes[places], bag.labelled.labels[places]
    power = float(score.power) if isinstance(score, Sharpened) else 1.0
    score = score.base if isinstance(score, Sharpened) else score
    kind = informed.probabilities.dtype.char
    known = type(score) in (APS, THR) and power >= 1.0 and kind in _MARGIN
    ranked, randomised = type(score) is not THR, type(score) is APS and score.randomized
    margin = power * _MARGIN.get(kind, 1.0) * (1.0 + 0.01 * informed.num_labels)
    w = informed.weights[places]
    rows, facts = np.arange(places.size), np.empty((places.size, 10))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        weights = (w / w.max(axis=1, keepdims=True)) ** power
        near, far = (
            counts[places] + PRIOR[name] * informed.learned.shares
            for name, counts in (("near", bag.near), ("far", bag.far))
        )
        strength = abs(exponents.far) * power
        each = strength / far if strength <= 1 else ((1.0 + _LARGEST / far) ** strength - 1.0) / _LARGEST
        # Less than what a neighbour counts, whose label is not added far away alone.
        steady = np.full(places.size, NEIGHBOUR / 8.0 if strength <= 1 else _LARGEST)
        if ranked:
            gaps = np.abs(np.log(weights / weights[rows, labels][:, None]))
            gaps[rows, labels] = np.inf
            gaps[rows, labels] = gaps.min(axis=1)
            # Labels almost equal in weight to the node's own label might change places with it by rounding alone.
            limits = far * (gaps - 4.0 * margin) / (strength + 1e-300) * (1.0 - 1e-9)
            steady = np.minimum(steady, np.where(limits > 0, limits, -1.0).min(axis=1))
        with_near = weights * ((near + 1.0) / near) ** (exponents.near * power)
        growth = np.nan_to_num(weights * each), np.nan_to_num(with_near * each), with_near - weights
    for column, values in zip((SLOPE, NEAR_SLOPE, GROWTH), growth, strict=True):
        facts[:, column] = np.maximum(values.max(axis=1), 0.0) * (1.0 + 1e-9)  # all may shrink
    least, most = (1.0 - margin, 1.0 + margin) if ranked else (-1.0, -1.0)
    own = weights[rows, labels][:, None]
    counted, others = (np.where(which, weights, 0.0) for which in (weights >= least * own, weights <= most * own))
    counted[rows, labels] = others[rows, labels] = 0.0
    facts[:, KEPT] = 1.0 - informed.inner.u[nodes] if randomised else float(ranked)
    facts[:, SCORE] = informed.inner.at(nodes, labels) if scores is None else scores
    facts[:, STEADY] = steady
    facts[:, TOTAL], facts[:, NEXT] = weights.sum(axis=1), others.max(axis=1)
    facts[:, SLACK] = facts[:, SLOPE] / facts[:, TOTAL]
    facts[:, REACH] = counted.sum(axis=1) + facts[:, KEPT] * own[:, 0] + facts[:, NEXT]
    tables = np.stack([weights, with_near, near, far], axis=1)
    b, c = exponents.near * power, exponents.far * power
    rule = Rule(b, c, b >= 0.0 and 0.0 <= c <= 1.0, margin, least, most, known)
    return Judges(tables, facts, np.column_stack([labels, groups, order]), np.full(places.size, -1.0)), rule


def limited(judges: Judges, cuts: Cuts, margin: float) -> Judges:
    """Return the judges with the shares up to which each stays below all cuts of the one window, or above all."""
    facts, groups, places = judges.facts, judges.numbers[:, GROUP], judges.numbers[:, PLACE]
    below, above = places < cuts.starts[0, 0], places >= cuts.starts[0, -1]
    room = np.where(below, cuts.low[0, groups, 0] - facts[:, SCORE], facts[:, SCORE] - cuts.high[0, groups, -1])
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.minimum((room - 2.0 * margin) / facts[:, SLACK], facts[:, STEADY])
    # A share that is nothing moves nothing: what is less than the room for rounding is no limit.
    return judges._replace(limits=np.where((below | above) & (limits > 0), limits, -1.0))
