"""Quantiles of scores that weigh one by one: lists of numbers with weights, and a background that all nodes share.

Reference nodes are numbered by score. For one node, some of them weigh what a list says, in ascending order of their
numbers and with running sums; on top, each weighs what a background says, also in running sums. The mass before a
number is one look at each, so that a threshold comes from halving and nothing of the background is copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import jit, lowest_bit, part
from napsets.kernels.endings import AT_LEAST, NOMINAL

Array = npt.NDArray[Any]


class Question(NamedTuple):
    """What is wanted of every node.

    Attributes
    ----------
    scores : numpy.ndarray
        Reference scores, ascending.
    behind : numpy.ndarray
        Running sums of the background by number, one more than there are scores, from 0.
    each : float
        What the background is multiplied with.
    levels, rules : numpy.ndarray
        Where thresholds are wanted.
    rounding : float
        The part of the mass forgiven under the nominal rule.
    positions : numpy.ndarray
        For each node, how many scores lie below a value whose rank is wanted; empty where none is.
    """

    scores: Array
    behind: Array
    each: float
    levels: Array
    rules: Array
    rounding: float
    positions: Array


class Answer(NamedTuple):
    """Thresholds (nodes, cuts), ranks, reference nodes with weight, Σw and Σw², of each node."""

    values: Array
    ranks: Array
    support: Array
    mass: Array
    square: Array


def empty_answer(nodes: int, cuts: int) -> Answer:
    """Return room for the answers of this many nodes."""
    return Answer(
        np.empty((nodes, cuts)), np.empty(nodes), np.empty(nodes, dtype=np.int64), np.empty(nodes), np.empty(nodes)
    )


@part
def _mass_before(position, numbers, sums, size, question, own):
    """Return what the reference nodes with numbers below `position` weigh, except for the node's own."""
    low, high = np.int64(0), np.int64(size)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < position:
            low = middle + 1
        else:
            high = middle
    back = question.behind[position]
    if own < position:
        back -= question.behind[own + 1] - question.behind[own]
    return sums[low] + question.each * back


@part
def _reaches(mass, whole, level, rule, rounding):
    """Say whether a mass is enough; `whole` is the mass of all, the node itself included."""
    if rule == NOMINAL:
        return mass >= level * whole * (1.0 - rounding)
    if rule == AT_LEAST:
        return mass / whole >= level
    return mass / whole > level


@part
def write_answer(i, weight, own, numbers, sums, size, question, answers):
    """Write thresholds and rank of the i-th node, which itself weighs `weight`; return the mass of the others.

    `numbers` are those of the list, ascending and without the node's own, ``sums[k]`` the weight of the first k; `own`
    is the node's own number, no smaller than there are scores where it is not a reference node.
    """
    known = question.scores.shape[0]
    total = _mass_before(known, numbers, sums, size, question, own)
    whole = weight + total
    for c in range(question.levels.shape[0]):
        level, rule = question.levels[c], question.rules[c]
        if not _reaches(total, whole, level, rule, question.rounding):
            answers.values[i, c] = np.inf
            continue
        low, high = np.int64(-1), np.int64(known)  # the first does not reach, the second does
        while high - low > 1:
            middle = (low + high) >> 1
            mass = _mass_before(middle, numbers, sums, size, question, own)
            if _reaches(mass, whole, level, rule, question.rounding):
                high = middle
            else:
                low = middle
        answers.values[i, c] = question.scores[high - 1] if high > 0 else -np.inf
    if question.positions.shape[0] > 0:
        answers.ranks[i] = _mass_before(question.positions[i], numbers, sums, size, question, own) / whole
    return total


@part
def ascending(numbers, size, bits):
    """Sort the first numbers of a list, none of which occurs twice; `bits` is as wide as numbers are large, and 0."""
    words = bits.shape[0]
    if size * 8 < words:
        numbers[:size].sort()
        return
    for i in range(size):
        bits[numbers[i] >> 6] |= np.uint64(1) << np.uint64(numbers[i] & 63)
    at = 0
    for w in range(words):
        word = bits[w]
        bits[w] = np.uint64(0)
        while word:
            numbers[at] = (w << 6) + lowest_bit(word)
            at += 1
            word &= word - np.uint64(1)


@jit
def background_answers(first, last, owns, weights, squares, question, answers):
    """Answer for nodes that weigh `weights` themselves and whose reference nodes weigh only the background."""
    numbers = np.empty(0, np.int64)
    sums = np.zeros(1)
    known = question.scores.shape[0]
    for i in range(first, last):
        own = owns[i]
        answers.mass[i] = write_answer(i, weights[i], own, numbers, sums, 0, question, answers)
        answers.support[i] = known - (own < known)
        answers.square[i] = squares[known] - (squares[own + 1] - squares[own] if own < known else 0.0)
