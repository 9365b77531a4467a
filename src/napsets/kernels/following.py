"""Neighbourhoods in a graph that changes: thresholds of some nodes, and the ranks of held-out labels kept up to date.

The arithmetic is that of the batch kernels: calibration nodes are counted by hop, in integers, and weighted in the
order of the hops, then of the pools. So the bits of the thresholds are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import jit, part, sort_in_place
from napsets.kernels.growing import count_pairs, pair_at, walk_hops
from napsets.kernels.selection import needed


class Known(NamedTuple):
    """The reference."""

    member: Any  #: bool of shape (slots,). Which slots belong to it.
    scores: Any  #: float64 of shape (slots,). Their scores.
    #: int64 of shape (slots,). The group of each slot, within which nodes count as alike; empty where groups do not
    #: matter.
    groups: Any
    #: Blocks. The pairs (0, score) of all, and (group, score).
    everyone: Any
    alike: Any
    size: int  #: How many there are.


class ThresholdQuery(NamedTuple):
    """Which thresholds are wanted."""

    weights: Any  #: float64 of shape (hops,). Weights by hop.
    #: What all weigh together, and those that look alike.
    pool: float
    alike: float
    #: float64 and int64 of shape (cuts,). Shares of the mass to be reached, and what reaching means.
    levels: Any
    rules: Any
    rounding: float  #: The part of the mass that the nominal rule forgives.


class HeldOut(NamedTuple):
    """The labels held out for the level, one entry each."""

    slots: Any  #: int64 of shape (labels,). The nodes.
    scores: Any  #: float64 of shape (labels,). Their scores.
    groups: Any  #: int64 of shape (labels,). The group of each node, within which nodes count as alike.
    #: int64 of shape (labels, hops). Reference nodes around each by hop: with a smaller score, and all.
    below: Any
    near: Any
    #: int64 of shape (labels,). Reference nodes with a smaller score: all, and those that look alike.
    all_below: Any
    same_below: Any
    stale: Any  #: bool of shape (labels,). Entries whose counts by hop must be renewed.


@jit
def find_thresholds(slots, rows, known, walk, question, values, near):
    """Write the thresholds of slots, shape (slots, cuts), and how many reference nodes are at each hop."""
    queue, ends, hops = walk.queue, walk.ends, question.weights.size
    member, scores = known.member, known.scores
    for v in range(slots.size):
        slot = slots[v]
        count = walk_hops(slot, hops, rows, walk, member, 1)
        local, at_hop = np.empty(count), np.empty(count, np.int64)
        met = 0
        for k in range(hops):
            before = met
            for i in range(ends[k], ends[k + 1]):
                if member[queue[i]]:
                    local[met], at_hop[met] = scores[queue[i]], k
                    met += 1
            near[v, k] = met - before
        order = np.argsort(local[:met])
        local = local[order]
        running = np.zeros((met + 1, hops), np.int64)
        for i in range(met):
            for k in range(hops):
                running[i + 1, k] = running[i, k]
            running[i + 1, at_hop[order[i]]] += 1
        _select(slot, local, running, known, question, values[v])


@part
def _select(slot, local, running, known, question, values):
    """Write the thresholds of one slot, from the sorted scores around it and the counts up to each by hop."""
    own = known.member[slot]
    score = known.scores[slot] if own else 0.0
    others = known.size - own
    group, same = -1, 0
    if question.alike > 0.0:
        group = known.groups[slot]
        same = _alike_up_to(np.inf, known, question, group) - own
    pooled = question.pool > 0.0 or question.alike > 0.0
    total = _mass(running[local.size], others, same, others, same, question)
    for c in range(question.levels.size):
        enough = needed(question.levels[c], question.rules[c], total, question.rounding)
        if total < enough:
            values[c] = np.inf
        elif enough <= 0.0:
            values[c] = -np.inf
        elif not pooled:
            low, high = 0, local.size - 1
            while low < high:
                middle = (low + high) // 2
                if _mass(running[middle + 1], 0, 0, 0, 0, question) >= enough:
                    high = middle
                else:
                    low = middle + 1
            values[c] = local[low]
        else:
            values[c] = _pooled(enough, local, running, known, question, group, own, score, others, same)


@part
def _pooled(enough, local, running, known, question, group, own, score, others, same):
    """Return the smallest reference score up to which there is enough mass, a node's own left out."""
    low, high, first, last = 0, local.size, 0, known.size - 1
    while low < high:  # the first score nearby that is enough
        middle = (low + high) // 2
        mine = int(own and score <= local[middle])
        up_to = count_pairs(known.everyone, 0.0, local[middle], True)
        near = np.searchsorted(local, local[middle], side="right")
        alike = _alike_up_to(local[middle], known, question, group) - mine
        if _mass(running[near], up_to - mine, alike, others, same, question) >= enough:
            high, last = middle, up_to - 1
        else:
            low, first = middle + 1, up_to
    # Between the one before and that one, what is nearby stays the same.
    near, alike = running[low], 0
    own_place = count_pairs(known.everyone, 0.0, score, False) if own else known.size
    while first < last:
        middle = (first + last) // 2
        mine = int(own_place <= middle)
        if question.alike > 0.0:
            alike = _alike_up_to(pair_at(known.everyone, middle)[1], known, question, group) - mine
        if _mass(near, middle + 1 - mine, alike, others, same, question) >= enough:
            last = middle
        else:
            first = middle + 1
    return pair_at(known.everyone, first)[1]


@part
def _alike_up_to(value, known, question, group):
    """Return how many of the reference that look alike have a score up to a value."""
    if question.alike == 0.0:
        return 0
    return count_pairs(known.alike, group, value, True) - count_pairs(known.alike, group, -np.inf, False)


@part
def _mass(by_hop, all_up_to, same_up_to, others, same, question):
    """Return Σ_k w(k)·c_k + (pool/n)·c + (alike/n')·c', in this order."""
    mass = 0.0
    for k in range(by_hop.size):
        mass += question.weights[k] * by_hop[k]
    if question.pool > 0.0 and others > 0:
        mass += question.pool / others * all_up_to
    if question.alike > 0.0 and same > 0:
        mass += question.alike / same * same_up_to
    return mass


@jit
def order_statistics(slots, known, needed, values):
    """Write, for each slot, the smallest score of the others up to which there are as many as are needed.

    ``needed[c, own]`` is that number for cut c, without and with a node's own score among the reference.
    """
    for v in range(slots.size):
        own = int(known.member[slots[v]])
        place = count_pairs(known.everyone, 0.0, known.scores[slots[v]], False) if own else known.size
        for c in range(needed.shape[0]):
            wanted = needed[c, own] - 1
            if wanted >= known.size - own:
                values[v, c] = np.inf
            elif wanted < 0:
                values[v, c] = -np.inf
            else:
                values[v, c] = pair_at(known.everyone, wanted + (place <= wanted))[1]


# -- ranks of held-out labels ------------------------------------------------------------------------------------------


@jit
def count_around(entries, rows, known, walk, held_out):
    """Recount the reference nodes around some of the held-out labels."""
    hops = held_out.near.shape[1]
    for entry in entries:
        score = held_out.scores[entry]
        walk_hops(held_out.slots[entry], hops, rows, walk, known.member, 1)
        for k in range(hops):
            near, below = 0, 0
            for i in range(walk.ends[k], walk.ends[k + 1]):
                other = walk.queue[i]
                if known.member[other]:
                    near += 1
                    below += known.scores[other] < score
            held_out.near[entry, k], held_out.below[entry, k] = near, below
        held_out.stale[entry] = False


@jit
def count_all(first, known, held_out):
    """Count the reference nodes with a smaller score than each held-out label from one on: all, and those alike."""
    for entry in range(first, held_out.slots.size):
        score = held_out.scores[entry]
        held_out.all_below[entry] = count_pairs(known.everyone, 0.0, score, False)
        if known.groups.size:
            group = held_out.groups[entry]
            start = count_pairs(known.alike, group, -np.inf, False)
            held_out.same_below[entry] = count_pairs(known.alike, group, score, False) - start


@jit
def shift_counts(slot, score, group, sign, entry_of, rows, walk, held_out):
    """Count one reference node more, or less, for every held-out label that it counts for."""
    hops = held_out.near.shape[1]
    for entry in range(held_out.slots.size):
        below = sign * (score < held_out.scores[entry])
        held_out.all_below[entry] += below
        if held_out.groups[entry] == group:
            held_out.same_below[entry] += below
    walk_hops(slot, hops, rows, walk, entry_of, 0)
    for k in range(hops):
        for i in range(walk.ends[k], walk.ends[k + 1]):
            entry = entry_of[walk.queue[i]]
            if entry >= 0:
                held_out.near[entry, k] += sign
                held_out.below[entry, k] += sign * (score < held_out.scores[entry])


@jit
def mark_stale(slots, hops, entry_of, rows, walk, held_out):
    """Mark the held-out labels within some hops of some slots."""
    for slot in slots:
        for i in range(walk_hops(slot, hops, rows, walk, entry_of, 0)):
            entry = entry_of[walk.queue[i]]
            if entry >= 0:
                held_out.stale[entry] = True


@jit
def rank_all(held_out, size, same_sizes, question, everyone, shares):
    """Write t of every held-out label: the mass strictly below its score / (1 + the total mass)."""
    hops = held_out.near.shape[1]
    each = question.pool / size if size > 0 else 0.0
    for entry in range(shares.size):
        if everyone:
            shares[entry] = held_out.all_below[entry] / (1.0 + size)
            continue
        below, total = 0.0, 0.0
        for k in range(hops):
            below += question.weights[k] * held_out.below[entry, k]
            total += question.weights[k] * held_out.near[entry, k]
        if question.pool > 0.0:
            below += each * held_out.all_below[entry]
            total += each * size
        if question.alike > 0.0:
            same = same_sizes[held_out.groups[entry]]
            alike = question.alike / same if same > 0 else 0.0
            below += alike * held_out.same_below[entry]
            total += alike * same
        shares[entry] = below / (1.0 + total)


@jit
def pair_of_rank(shares, scores, place, guess, width):
    """Return the pair (share, score) at a place, from 0; the search starts near a guess of its share."""
    while True:
        low, high = guess - width, guess + width
        before, within = 0, 0
        for i in range(shares.size):
            before += shares[i] < low
            within += (shares[i] >= low) & (shares[i] <= high)
        if before <= place < before + within:
            break
        width = max(4.0 * width, 1e-6)
    near, tied = np.empty(within), np.empty(within)
    count = 0
    for i in range(shares.size):
        if low <= shares[i] <= high:
            near[count], tied[count] = shares[i], scores[i]
            count += 1
    ordered = near.copy()
    sort_in_place(ordered)
    share = ordered[place - before]
    first, equal = 0, 0
    for i in range(within):
        first += near[i] < share
        if near[i] == share:
            tied[equal] = tied[i]
            equal += 1
    sort_in_place(tied[:equal])
    return share, tied[place - before - first]


@jit
def count_ranks(shares, scores, share, score):
    """Return how many pairs are greater than (share, score), and how many equal it."""
    greater, equal = 0, 0
    for i in range(shares.size):
        if shares[i] == share:
            greater += scores[i] > score
            equal += scores[i] == score
        else:
            greater += shares[i] > share
    return greater, equal
