"""Reference nodes that weigh one by one: weighted quantiles of scores, and weights by PageRank and by balls.

Reference nodes are numbered by score. For one node, some of them weigh what a list says, in ascending order of their
numbers and with running sums; on top, each weighs what a background says, also in running sums. The mass before a
number is one look at each, so that a threshold comes from halving and nothing of the background is copied.

*PageRank.* All mass starts at the source. A node that holds more than `tolerance` per neighbour keeps a share `restart`
of what it holds and hands the rest on; nodes are pushed first in, first out. What is left unpushed is at most
`tolerance` per neighbour everywhere, so that in an undirected graph no estimate is short by more than tolerance ×
degree; the work is at most 1 / (restart × tolerance) edges, whatever the size of the graph (Andersen, Chung and Lang,
2006).

*Balls.* The radius of a node is the smallest at which its ball holds `least` nodes, `furthest` + 1 where none up to
`furthest` does. If j is the next node on a shortest way from i to a, the radius of j is at least that of i less one:
the ball around j with radius r_i − 2 lies in the ball around i with radius r_i − 1, which holds fewer than `least`
nodes. So a search from a that enters a node at distance d only if its radius is at least d meets all nodes whose ball
contains a, and never looks beyond them. `balls` is the rows of the graph, the radii and `furthest`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napsets.kernels._jit import jit, lowest_bit, part, sort_in_place
from napsets.kernels.layout import AT_LEAST, NOMINAL, Array
from napsets.kernels.sampling import hash64, to_unit
from napsets.kernels.walk import walk as walk_rings


class WeighedQuery(NamedTuple):
    """What is wanted of every node."""

    scores: Array  #: Reference scores, ascending.
    behind: Array  #: Running sums of the background by number, one more than there are scores, from 0.
    each: float  #: What the background is multiplied with.
    #: Where thresholds are wanted.
    levels: Array
    rules: Array
    rounding: float  #: The part of the mass forgiven under the nominal rule.
    positions: Array  #: For each node, how many scores lie below a value whose rank is wanted; empty where none is.


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
        sort_in_place(numbers[:size])
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


@jit
def push(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched):
    """Push until no node holds more than allowed; return how many nodes were touched. What each gets is in `kept`.

    `kept`, `held` and `queued` are clear before, and `_clear` clears them after.
    """
    room = queue.shape[0]
    held[source] = 1.0
    touched[0] = source
    met = np.int64(1)
    queue[0] = source
    queued[source] = 2  # met, and in the queue
    first, waiting = np.int64(0), np.int64(1)
    while waiting > 0:
        u = queue[first]
        first = first + 1 if first + 1 < room else np.int64(0)
        waiting -= 1
        queued[u] = 1
        mass = held[u]
        held[u] = 0.0
        degree = indptr[u + 1] - indptr[u]
        if degree == 0:  # there is no way on: the walk stays
            kept[u] += mass
            continue
        kept[u] += restart * mass
        share = (1.0 - restart) * mass / degree
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if queued[v] == 0:
                queued[v] = 1
                touched[met] = v
                met += 1
            held[v] += share
            if queued[v] == 1 and held[v] > tolerance * (indptr[v + 1] - indptr[v]):
                queued[v] = 2
                last = first + waiting
                queue[last if last < room else last - room] = v
                waiting += 1
    return met


@part
def _clear(met, touched, kept, held, queued):
    for t in range(met):
        u = touched[t]
        kept[u] = 0.0
        held[u] = 0.0
        queued[u] = 0


@jit
def pagerank_answers(first, last, nodes, walk, worth, numbers, by_number, question, answers, scratch):
    """Answer for nodes whose reference nodes weigh `worth` together, in proportion to what they get of the node."""
    indptr, indices, restart, tolerance = walk
    kept, held, queued, queue, touched, listed, bits, sums = scratch
    known = question.scores.shape[0]
    each = question.each
    for i in range(first, last):
        source = nodes[i]
        own = numbers[source]
        met = push(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched)
        size = np.int64(0)
        for t in range(met):
            u = touched[t]
            if u != source and kept[u] > 0.0 and numbers[u] < known:
                listed[size] = numbers[u]
                size += 1
        ascending(listed, size, bits)
        total = 0.0
        for j in range(size):
            total += kept[by_number[listed[j]]]
        square = 0.0
        for j in range(size):
            weight = worth * (kept[by_number[listed[j]]] / total)
            sums[j + 1] = sums[j] + weight
            square += (weight + each) * (weight + each)
        _clear(met, touched, kept, held, queued)
        others = known - (own < known)
        answers.mass[i] = write_answer(i, 1.0, own, listed, sums, size, question, answers)
        answers.support[i] = others if each > 0.0 else size
        answers.square[i] = square + (others - size) * each * each


# -- balls -------------------------------------------------------------------------------------------------------------


@jit
def ball_radii(first, last, indptr, indices, least, furthest, stamps, queue, radii):
    """Write the radius of each node; a search ends as soon as it has met enough nodes."""
    for v in range(first, last):
        radius, met = walk_rings(v, indptr, indices, furthest, v, stamps, queue, None, max(least, 2))
        radii[v] = 0 if least <= 1 else radius if met >= least else furthest + 1


@jit
def ball_sizes(first, last, nodes, balls, stamps, queue, sizes):
    """Write how many nodes the ball of each node has: all of them where its radius is beyond the furthest."""
    indptr, indices, radii, furthest = balls
    for i in range(first, last):
        v = nodes[i]
        if radii[v] > furthest:
            sizes[i] = radii.shape[0]
        else:
            _, sizes[i] = walk_rings(v, indptr, indices, radii[v], i, stamps, queue, None)


@jit
def draw_anchors(first, last, nodes, balls, hashes, by_hash, stamps, queue, sizes, anchors):
    """Draw a node from the ball of each node, and write its size too.

    What is drawn depends on the hashes of the node and of those in its ball and on nothing else, not on the order in
    which nodes are numbered: the one whose word, stirred with the node's own, is the smallest. Of all nodes, `by_hash`
    lists them in the order of their hashes, and a place in it is drawn.
    """
    indptr, indices, radii, furthest = balls
    for i in range(first, last):
        v = nodes[i]
        mine = hash64(hashes[v])
        if radii[v] > furthest:
            sizes[i] = radii.shape[0]
            place = np.int64(to_unit(hash64(mine)) * radii.shape[0])
            anchors[i] = by_hash[min(place, radii.shape[0] - 1)]
            continue
        _, size = walk_rings(v, indptr, indices, radii[v], i, stamps, queue, None)
        sizes[i] = size
        smallest, drawn = hash64(mine + hashes[v]), np.int64(v)
        for k in range(1, size):
            u = queue[k]
            word = hash64(mine + hashes[u])
            if word < smallest:
                smallest, drawn = word, np.int64(u)
        anchors[i] = drawn


@jit
def whose_ball_holds(anchor, balls, numbers, known, stamps, queue, listed):
    """Write the numbers of the reference nodes whose ball has a radius and holds the anchor; return how many."""
    indptr, indices, radii, furthest = balls
    stamps[anchor] = anchor
    queue[0] = anchor
    done, met, size = np.int64(0), np.int64(1), np.int64(0)
    if radii[anchor] <= furthest and numbers[anchor] < known:
        listed[0] = numbers[anchor]
        size = 1
    for ring in range(1, furthest + 1):
        end = met
        while done < end:
            u = queue[done]
            done += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if stamps[v] != anchor:
                    stamps[v] = anchor
                    if radii[v] >= ring:
                        queue[met] = v
                        met += 1
                        if radii[v] <= furthest and numbers[v] < known:
                            listed[size] = numbers[v]
                            size += 1
        if met == end:
            break
    return size


@jit
def anchor_answers(first, last, drawn, balls, numbers, ball_weights, question, answers, scratch):
    """Answer for nodes in an order that brings those with one anchor together: they share its search.

    A reference node whose ball holds the anchor weighs ``ball_weights[number]``, one over the size of that ball, and
    the node to predict one over the size of its own. Nodes without a radius are the background.
    """
    order, nodes, anchors, sizes = drawn
    stamps, queue, listed, bits, sums = scratch
    known = question.scores.shape[0]
    size, at = np.int64(0), np.int64(-1)
    for k in range(first, last):
        i = order[k]
        anchor, own = anchors[i], numbers[nodes[i]]
        if anchor != at:
            at = anchor
            size = whose_ball_holds(anchor, balls, numbers, known, stamps, queue, listed)
            ascending(listed, size, bits)
        square, counted = 0.0, np.int64(0)
        for j in range(size):
            others = listed[j] != own
            weight = ball_weights[listed[j]] if others else 0.0
            sums[j + 1] = sums[j] + weight
            square += weight * weight
            counted += others
        everywhere = question.behind[known]
        if own < known:
            everywhere -= question.behind[own + 1] - question.behind[own]
        answers.mass[i] = write_answer(i, 1.0 / sizes[i], own, listed, sums, size, question, answers)
        answers.support[i] = counted + np.int64(everywhere)
        answers.square[i] = square + everywhere * question.each * question.each
