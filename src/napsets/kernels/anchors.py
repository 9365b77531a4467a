"""Balls of at least this many nodes and random draws from them, as hashes of counters: the same on any thread.

The edges of a degree-corrected block model are drawn here too, with one hash per edge.

The radius of a node is the smallest at which its ball holds `least` nodes, `furthest` + 1 where none up to `furthest`
does. If j is the next node on a shortest way from i to a, the radius of j is at least that of i less one: the ball
around j with radius r_i − 2 lies in the ball around i with radius r_i − 1, which holds fewer than `least` nodes. So
a search from a that enters a node at distance d only if its radius is at least d meets all nodes whose ball contains a,
and never looks beyond them. In these functions `balls` is the rows of the graph, the radii and `furthest`.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.walk import walk
from napsets.kernels.weighed import ascending, write_answer


@jit
def hash64(word):
    """Return SplitMix64's output for a state: a bijection that scatters neighbouring words."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@jit
def to_unit(word):
    """Turn a word into a number in [0, 1) by its upper 53 bits."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def below(word, bound):
    """Turn a word into an integer in 0..bound−1, for bounds under 2³²; biased by less than bound / 2³²."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@part
def _find(running, guide, share, value):
    """Return the first position whose running sum exceeds `value`, starting where the guide table points."""
    last = running.shape[0] - 1
    position = np.int64(guide[min(np.int64(value * share), guide.shape[0] - 1)])
    while position > 0 and running[position - 1] > value:
        position -= 1
    while position < last and running[position] <= value:
        position += 1
    return position


@jit
def draw_edges(running, order, block_ends, same, seed, source, target):
    """Fill `source` and `target`, each edge from the hash of its number.

    Nodes stand block by block in `order`; `running` holds the running sum of their weights, `block_ends` that sum
    at the end of each block. Sources are stratified, so each node starts its expected number of edges up to one;
    the target lies in the source's block with probability `same`, and is drawn by weight there or outside.
    """
    nodes, edges = running.shape[0], source.shape[0]
    total = running[nodes - 1]
    guide = np.zeros(nodes, np.int64)
    share = nodes / total
    position = 0
    for cell in range(nodes):
        while position < nodes - 1 and running[position] <= cell / share:
            position += 1
        guide[cell] = position
    block = 0
    for e in range(edges):
        word = hash64(np.uint64(seed) ^ hash64(np.uint64(e)))
        at = min((e + to_unit(word)) * (total / edges), total * (1.0 - 1e-16))
        while block < block_ends.shape[0] - 1 and block_ends[block] <= at:
            block += 1
        low = 0.0 if block == 0 else block_ends[block - 1]
        width = block_ends[block] - low
        word = hash64(word)
        inside = to_unit(word) < same or width >= total
        draw = to_unit(hash64(word))
        if inside:
            goal = low + draw * width
        else:
            goal = draw * (total - width)
            if goal >= low:
                goal += width
        source[e] = order[_find(running, guide, share, at)]
        target[e] = order[_find(running, guide, share, goal)]


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
def ball_sizes(first, last, nodes, balls, stamps, queue, sizes):
    """Write how many nodes the ball of each node has: all of them where its radius is beyond the furthest."""
    indptr, indices, radii, furthest = balls
    for i in range(first, last):
        v = nodes[i]
        if radii[v] > furthest:
            sizes[i] = radii.shape[0]
        else:
            _, sizes[i] = walk(v, indptr, indices, radii[v], i, stamps, queue, None)


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
def _gather(anchor, balls, numbers, known, stamps, queue, listed):
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
def whose_ball_holds(anchor, balls, numbers, known, stamps, queue, listed):
    """Write the numbers of the reference nodes whose ball holds one anchor; `stamps` has no mark of that anchor."""
    return _gather(anchor, balls, numbers, known, stamps, queue, listed)


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
            size = _gather(anchor, balls, numbers, known, stamps, queue, listed)
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
