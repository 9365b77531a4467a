"""Personalised PageRank by forward push: where a walk that stops at every step with some probability ends.

All mass starts at the source. A node that holds more than `tolerance` per neighbour keeps a share `restart` of what it
holds and hands the rest on; nodes are pushed first in, first out. What is left unpushed is at most `tolerance` per
neighbour everywhere, so that in an undirected graph no estimate is short by more than tolerance × degree; the work is
at most 1 / (restart × tolerance) edges, whatever the size of the graph (Andersen, Chung and Lang, 2006).
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.weighed import ascending, write_answer


@part
def _push(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched):
    """Push until no node holds more than allowed; return how many nodes were touched. What nodes keep is in `kept`.

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
def pagerank_of(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched):
    """Write into `kept` what every node gets of one source; `kept` stays as it is."""
    return _push(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched)


@jit
def pagerank_answers(
    first, last, nodes, indptr, indices, restart, tolerance, worth, numbers, by_number, question, answers, scratch,
    bits, sums,
):  # fmt: skip
    """Answer for nodes whose reference nodes weigh `worth` together, in proportion to what they get of the node."""
    kept, held, queued, queue, touched, listed = scratch
    known = question.scores.shape[0]
    each = question.each
    for i in range(first, last):
        source = nodes[i]
        own = numbers[source]
        met = _push(source, indptr, indices, restart, tolerance, kept, held, queued, queue, touched)
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
