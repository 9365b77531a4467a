"""The p-value of every candidate: how many labelled nodes fit their labels no better than the candidate fits its node.

With T the order of comparison (the score, or the rank and the score at an exact level) and n labelled nodes to compare
with, p(v, y) = (1 + #{T_i ≥ T_v(y)}) / (n + 1), and y is in the set at alpha exactly if p > alpha. If v and those nodes
are exchangeable, P(p(v, Y) ≤ a) ≤ a for every a. Smoothed, p = (#{T_i > T_v} + U·(1 + #{T_i = T_v})) / (n + 1) with U
uniform, which is uniform itself; U is a function of seed and node id, and not the number that scores use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.errors import InvalidInputError
from napsets.levels import FittedExact, Nominal
from napsets.localisers import Everyone
from napsets.randomness import node_uniforms

#: Separates the uniform numbers of smoothed p-values from those of scores with the same seed.
_SALT = 0x9E3779B97F4A7C15
_ENTRIES = 1 << 20


def p_values(calibrated: Any, nodes: IntArray, *, smoothed: bool = False) -> FloatArray:
    """Return the p-value of every label of some nodes, shape (nodes, labels); smoothed, ties are broken at random.

    The method must compare exchangeable nodes: one threshold for all, or an exact or full level, with groups or
    without.
    """
    _check(calibrated)
    values = np.empty((nodes.size, calibrated.score.num_labels))
    step = max(1, _ENTRIES // max(1, values.shape[1]))
    for start in range(0, nodes.size, step):
        rows = nodes[start : start + step]
        above, equal, count = compared(calibrated, rows)
        u = _uniforms(calibrated, rows)[:, None] if smoothed else 1.0
        values[start : start + step] = (above + u * (1.0 + equal)) / (1.0 + count)
    return values


def _check(calibrated: Any) -> None:
    method, name = calibrated.method, type(calibrated.method.localiser).__name__
    if not calibrated.score.num_labels:
        raise InvalidInputError("`p_values` must be left out for intervals, which have no list of candidates")
    if not calibrated.is_exact and not (isinstance(method.level, Nominal) and isinstance(method.localiser, Everyone)):
        raise InvalidInputError(
            f"`p_values` must be asked of a method that compares exchangeable nodes: one threshold for all, or an "
            f"exact or full level; {name} at a nominal level weighs nodes by where they are"
        )


def _uniforms(calibrated: Any, nodes: IntArray) -> FloatArray:
    ids = calibrated.scored.ids
    seed = (calibrated.method.seed + _SALT) % 2**64
    every = np.arange(calibrated.num_nodes) if ids is None else ids
    return node_uniforms(every[nodes], seed)


def compared(calibrated: Any, nodes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how many labelled nodes are above and at each candidate, and how many there are to compare with."""
    matrix = calibrated.score.matrix(nodes)
    if calibrated.grouped is None:
        return _against(calibrated, nodes, matrix, np.arange(matrix.shape[1]))
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
        above[block], equal[block], count[block] = _against(part, nodes[rows], matrix[block], labels)
    return above, equal, count


def _against(
    calibrated: Any, nodes: IntArray, scores: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same for the candidates that one calibration judges."""
    if calibrated.full is not None:
        return calibrated.full.compared(nodes, scores, labels)  # type: ignore[no-any-return]
    scored = calibrated.scored
    judges, known = scored.reference.nodes, scored.reference.scores
    ranks = np.zeros(scores.shape)
    if calibrated.is_exact:
        places = np.arange(scored.level_nodes.size) if calibrated.judges is None else calibrated.judges
        judges, known = scored.level_nodes[places], scored.level_scores[places]
        for column in range(scores.shape[1]):
            ranks[:, column] = calibrated.local.ranks(nodes, scores[:, column])
    level: FittedExact = calibrated.level if calibrated.is_exact else FittedExact(np.zeros(known.size), np.sort(known))
    below, upto = (place.reshape(scores.shape) for place in _ranks_of_pairs(level, ranks.ravel(), scores.ravel()))
    equal, above = (upto - below).astype(np.float64), (known.size - upto).astype(np.float64)
    place = np.full(calibrated.num_nodes, -1)
    place[judges] = np.arange(judges.size)
    mine = place[nodes]
    inside = np.flatnonzero(mine >= 0)
    if inside.size:  # a node is not compared with itself
        score = known[mine[inside]]
        rank = calibrated.local.ranks(nodes[inside], score) if calibrated.is_exact else np.zeros(inside.size)
        score, rank = score[:, None], rank[:, None]
        tied = rank == ranks[inside]
        above[inside] -= (rank > ranks[inside]) | (tied & (score > scores[inside]))
        equal[inside] -= tied & (score == scores[inside])
    count = np.broadcast_to((known.size - (mine >= 0.0))[:, None], scores.shape)
    return above, equal, count


def _ranks_of_pairs(level: FittedExact, shares: FloatArray, scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Return how many pairs of the level are below, and at most, each of some pairs."""
    steps = np.unique(level.shares)
    # On one line: the number of the share, then where the score stands among all scores.
    every = np.unique(np.concatenate([level.scores, scores]))
    width = every.size + 1

    def line(share: FloatArray, score: FloatArray) -> IntArray:
        at, right = np.searchsorted(steps, share, side="left"), np.searchsorted(steps, share, side="right")
        number: IntArray = (at + right) * width + np.searchsorted(every, score)
        return number

    known, wanted = line(level.shares, level.scores), line(shares, scores)
    return np.searchsorted(known, wanted, side="left"), np.searchsorted(known, wanted, side="right")
