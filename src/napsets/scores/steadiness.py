"""How far the score of a node can move when one label more, or less, is passed on to it from two hops away.

If the weight of one label is multiplied by f, all probabilities together move by at most |f − 1|·p(y), and so does a
score that adds up probabilities of a fixed set of labels: THR at once, APS and its relatives as long as no label
changes places with the node's own. A label y that passes on a share δ changes log w by B·log(1 + δ/d), with
d = n_far(y) + κ π_y and B the exponent of far labels times the power of a sharpened score. So

    |f − 1| ≤ B·δ/d  where B ≤ 1,   ≤ (δ/δ*)·((1 + δ*/d)^B − 1)  where B > 1 and δ ≤ δ*,

which gives the `slack` of a node, and labels keep their places while B·δ/d stays below the gap between them on the
scale of log w. Labels that change places with the node's own move an APS score by their probabilities beside: `jumps`
adds up those that can, for shares up to some steps. Where the node that speaks has a label already, it is taken out at
the same time: four times as much covers both, if the share is at most half of what is counted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray
from napsets.scores.evidence import normalised
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import BoundInformed
from napsets.scores.rows import APS, RAPS, SAPS, THR, Sharpened

__all__ = ["Steadiness", "steadiness"]

#: Shares up to which moves are bounded; the last is δ*.
_STEPS = np.array([0.002, 0.01, 0.05, 0.25])
_LARGEST = 0.25
#: What rounding may add to a score, or to a gap, by the width of the probabilities.
_ROUNDING = {4: 1e-5, 8: 1e-9}


@dataclass(frozen=True, eq=False)
class Steadiness:
    """Bounds on how far scores of some nodes can move.

    Attributes
    ----------
    scores : numpy.ndarray
        The innermost score of each node at its label.
    slack : numpy.ndarray
        The most it moves for each unit of a share that is passed on.
    jumps : numpy.ndarray
        How much it moves beside if labels change places, for shares up to each step; infinite where that is not known.
    room : numpy.ndarray
        d of each node and label.
    rounding : float
        What rounding may add.
    twice : float
        How much larger moves are if a label is taken out too; huge where that is not bounded.
    """

    scores: FloatArray
    slack: FloatArray
    jumps: FloatArray
    room: FloatArray
    rounding: float
    twice: float

    def may_enter(
        self, places: IntArray, shares: FloatArray, labels: IntArray, low: FloatArray, high: FloatArray
    ) -> BoolArray:
        """Return whether scores may lie, before or after a change, between two numbers.

        Parameters
        ----------
        places : numpy.ndarray
            Which nodes.
        shares : numpy.ndarray
            The share of the label that is passed on to each.
        labels : numpy.ndarray
            The label that is taken out with the same share; −1 where none is.
        low, high : numpy.ndarray
            Between what.
        """
        known = labels >= 0
        times = np.where(known, self.twice, 1.0)
        larger = times * shares
        step = np.searchsorted(_STEPS, larger, side="left")
        bounded = (step < _STEPS.size) & (~known | (2.0 * shares <= self.room[places, labels]))
        jump = self.jumps[places, np.minimum(step, _STEPS.size - 1)]
        # Two moves where a label is taken out too, each with its jump.
        move = np.where(known, 2.0, 1.0) * (2.0 * larger * self.slack[places] + jump) + self.rounding
        score = self.scores[places]
        outside: BoolArray = bounded & ((score + move < low) | (score - move > high))
        return ~outside


def steadiness(informed: BoundInformed, places: IntArray) -> Steadiness:
    """Return the bounds for some nodes of the bag of an informed score."""
    bag, score = informed.heard, informed.inner.score
    nodes, labels = bag.labelled.nodes[places], bag.labelled.labels[places]
    scores = informed.inner.at(nodes, labels)
    room = bag.far[places] + PRIOR["far"] * informed.learned.shares
    p: Any = normalised(informed.weights[places])
    power = 1.0
    if isinstance(score, Sharpened):
        p, power, score = score.sharpen(p), float(score.power), score.base
    rounding = _ROUNDING.get(informed.probabilities.dtype.itemsize, 1.0)
    strength = abs(informed.exponents.far) * power
    jumps = np.zeros((places.size, _STEPS.size))
    if type(score) not in (APS, RAPS, SAPS, THR):
        jumps[:] = np.inf
    elif type(score) is not THR and strength:
        rows = np.arange(places.size)
        own = p[rows, labels][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.abs(np.log(p) - np.log(own)) - rounding / np.minimum(p, own)
        gap = np.where(gap > 0, gap, 0.0)  # of two that are 0, too
        first = np.minimum(room, room[rows, labels][:, None]) * gap / strength  # the share that may let them cross
        first[rows, labels] = np.inf
        for step, share in enumerate(_STEPS):
            crossing = np.where(first <= share, p if type(score) is APS else np.inf, 0.0)
            jumps[:, step] = crossing.sum(axis=1)
    each = strength / room if strength <= 1 else ((1.0 + _LARGEST / room) ** strength - 1.0) / _LARGEST
    slack = (p * each).max(axis=1) * (1.0 + 1e-9)
    return Steadiness(scores, slack, jumps, room, rounding, 4.0 if strength <= 2 else 1e300)
