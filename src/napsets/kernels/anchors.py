"""Balls of at least this many nodes, a node drawn from each, and whose balls a drawn node lies in.

The radius of a node is the smallest at which its ball holds `least` nodes, `furthest` + 1 where none up to `furthest`
does. If j is the next node on a shortest way from i to a, the radius of j is at least that of i less one: the ball
around j with radius r_i − 2 lies in the ball around i with radius r_i − 1, which holds fewer than `least` nodes. So
a search from a that enters a node at distance d only if its radius is at least d meets all nodes whose ball contains a,
and never looks beyond them.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.drawing import hash64, to_unit
from napsets.kernels.walk import walk
from napsets.kernels.weighed import ascending, write_answer


@jit
def ball_radii(first, last, indptr, indices, least, furthest, stamps, queue, radii):
    """Write the radius of each node; a search ends as soon as it has met enough nodes."""
    for v in range(first, last):
        radii[v] = _radius(v, indptr, indices, least, furthest, stamps, queue)


@part
def _radius(source, indptr, indices, least, furthest, stamps, queue):
    stamps[source] = source
    queue[0] = source
    done, met = np.int64(0), np.int64(1)
    if met >= least:
        return 0
    for ring in range(1, furthest + 1):
        end = met
        while done < end:
            u = queue[done]
            done += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if stamps[v] != source:
                    stamps[v] = source
                    queue[met] = v
                    met += 1
                    if met >= least:
                        return ring
        if met == end:
            break
    return furthest + 1


@jit
def ball_sizes(first, last, nodes, indptr, indices, radii, furthest, stamps, queue, sizes):
    """Write how many nodes the ball of each node has: all of them where its radius is beyond the furthest."""
    for i in range(first, last):
        v = nodes[i]
        if radii[v] > furthest:
            sizes[i] = radii.shape[0]
        else:
            _, sizes[i] = walk(v, indptr, indices, radii[v], i, stamps, queue, None)


@jit
def draw_anchors(first, last, nodes, indptr, indices, radii, furthest, hashes, by_hash, stamps, queue, sizes, anchors):
    """Draw a node from the ball of each node, and write its size too.

    What is drawn depends on the hashes of the node and of those in its ball and on nothing else, not on the order in
    which nodes are numbered: the one whose word, stirred with the node's own, is the smallest. Of all nodes, `by_hash`
    lists them in the order of their hashes, and a place in it is drawn.
    """
    for i in range(first, last):
        v = nodes[i]
        mine = hash64(hashes[v])
        if radii[v] > furthest:
            sizes[i] = radii.shape[0]
            place = np.int64(to_unit(hash64(mine)) * radii.shape[0])
            anchors[i] = by_hash[min(place, radii.shape[0] - 1)]
            continue
        _, size = walk(v, indptr, indices, radii[v], i, stamps, queue, None)
        sizes[i] = size
        smallest, drawn = hash64(mine + hashes[v]), np.int64(v)
        for k in range(1, size):
            u = queue[k]
            word = hash64(mine + hashes[u])
            if word < smallest:
                smallest, drawn = word, np.int64(u)
        anchors[i] = drawn


@part
def _gather(anchor, indptr, indices, radii, furthest, numbers, known, mark, stamps, queue, listed):
    """Write the numbers of the reference nodes whose ball has a radius and holds the anchor; return how many."""
    stamps[anchor] = mark
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
                if stamps[v] != mark:
                    stamps[v] = mark
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
def whose_ball_holds(anchor, indptr, indices, radii, furthest, numbers, known, stamps, queue, listed):
    """Write the numbers of the reference nodes whose ball holds one anchor; `stamps` has no mark of that anchor."""
    return _gather(anchor, indptr, indices, radii, furthest, numbers, known, anchor, stamps, queue, listed)


@jit
def anchor_answers(
    first, last, order, nodes, anchors, sizes, indptr, indices, radii, furthest, numbers, ball_weights, question,
    answers, scratch, bits, sums,
):  # fmt: skip
    """Answer for nodes in an order that brings those with one anchor together: they share its search.

    A reference node whose ball holds the anchor weighs ``ball_weights[number]``, one over the size of that ball, and
    the node to predict one over the size of its own. Nodes without a radius are the background.
    """
    stamps, queue, listed = scratch
    known = question.scores.shape[0]
    size, at = np.int64(0), np.int64(-1)
    for k in range(first, last):
        i = order[k]
        anchor, own = anchors[i], numbers[nodes[i]]
        if anchor != at:
            at = anchor
            size = _gather(anchor, indptr, indices, radii, furthest, numbers, known, anchor, stamps, queue, listed)
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
