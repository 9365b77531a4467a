"""Labels as evidence in a graph that changes: who hears whom, what is counted, and order statistics of the scores.

What a node passes on are multiples of 2⁻³⁰, so that sums of them are exact: a label that comes or goes is added or
subtracted, and gives the bits that counting anew would give. Means over neighbours are summed in the order of the
neighbours, as in the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import jit, part
from napsets.kernels.ordered import count_pairs, pair_at

__all__ = ["Entries", "Ranking", "Scratch", "Speakers"]

_UNIT = 2.0**-30


class Speakers(NamedTuple):
    """Who has a label, by slot.

    Attributes
    ----------
    code : int32 of shape (slots,)
        0 without a label, y + 1 for label y in the reference, −(y + 1) for one that is held out.
    crowd : int32 of shape (slots,)
        How many neighbours are in the reference.
    entry_of : int64 of shape (slots,)
        The entry of each labelled node, −1 elsewhere.
    most : int
        Beyond so many reference neighbours, a node passes on no other labels than theirs.
    """

    code: Any
    crowd: Any
    entry_of: Any
    most: int


class Entries(NamedTuple):
    """What the labelled nodes have heard, one entry each.

    Attributes
    ----------
    near, far : float64 of shape (entries, classes)
        Labels counted among the neighbours, and among theirs.
    recount, rescore : bool of shape (entries,)
        Whose counts, or whose scores alone, must be made anew.
    """

    near: Any
    far: Any
    recount: Any
    rescore: Any


class Scratch(NamedTuple):
    """Room for a list of entries that hear a label; nothing in it need be cleared.

    Attributes
    ----------
    places : int64 of shape (entries,)
        Where an entry stands in the list, if it does.
    entries : int64 of shape (entries,)
        The list.
    near, far : float64 of shape (entries,)
        What each hears.
    """

    places: Any
    entries: Any
    near: Any
    far: Any


class Ranking(NamedTuple):
    """How scores are ranked among those of the reference; see `napsets.scores.by_label`.

    Attributes
    ----------
    everyone, own : Blocks
        The pairs (0, score) of the reference, and (label, score).
    sizes, before : int64 of shape (labels,)
        How many reference nodes have each label, and how many have a smaller one.
    size : int
        How many there are.
    mix, shrink, slope : float
        The weight of the label's own ranks, and the two constants of the formula; a mix below 0 leaves scores alone.
    """

    everyone: Any
    own: Any
    sizes: Any
    before: Any
    size: int
    mix: float
    shrink: float
    slope: float


@part
def _share(slot, rows):
    """Return the share of each label around it that a node passes on."""
    return np.floor(1.0 / (_UNIT * max(rows.sizes[slot], 1))) * _UNIT


@jit
def count_labels(slots, all_speak, rows, speakers, near, far):
    """Count the labels around some slots; only those of the reference for rows in which not all speak."""
    for i in range(slots.size):
        slot = slots[i]
        near[i] = 0.0
        far[i] = 0.0
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            between = rows.columns[j]
            code = speakers.code[between]
            if code > 0 or (code < 0 and all_speak[i]):
                near[i, abs(code) - 1] += 1.0
            share = _share(between, rows)
            held_out = all_speak[i] and speakers.crowd[between] <= speakers.most
            first = rows.starts[between]
            for k in range(first, first + rows.sizes[between]):
                other = rows.columns[k]
                code = speakers.code[other]
                if other != slot and (code > 0 or (code < 0 and held_out)):
                    far[i, abs(code) - 1] += share


@jit
def means_around(slots, rows, outputs, means, stale, around):
    """Write what the model says around some slots, on average: of the neighbours, and of their neighbours."""
    classes = outputs.shape[1]
    further = np.empty(classes)
    for i in range(slots.size):
        slot = slots[i]
        size = rows.sizes[slot]
        if size == 0:
            for c in range(classes):
                own = np.float64(outputs[slot, c])
                around[i, c] = 0.5 * (own + own)
            continue
        _renew(slot, rows, outputs, means, stale)
        further[:] = 0.0
        for j in range(rows.starts[slot], rows.starts[slot] + size):
            other = rows.columns[j]
            _renew(other, rows, outputs, means, stale)
            for c in range(classes):
                further[c] += means[other, c]
        for c in range(classes):
            around[i, c] = 0.5 * (means[slot, c] + further[c] / size)


@part
def _renew(slot, rows, outputs, means, stale):
    """Take the mean over the neighbours of a slot anew, where that is needed."""
    if stale[slot]:
        size = rows.sizes[slot]
        means[slot] = 0.0
        for j in range(rows.starts[slot], rows.starts[slot] + size):
            other = rows.columns[j]
            for c in range(outputs.shape[1]):
                means[slot, c] += outputs[other, c]
        for c in range(outputs.shape[1]):
            means[slot, c] /= size
        stale[slot] = False


# -- who hears whom ----------------------------------------------------------------------------------------------------


@part
def _meet(entry, near, far, count, scratch):
    """Note what one entry hears, and return how many were met: one that was met before hears more."""
    place = scratch.places[entry]
    if place >= count or scratch.entries[place] != entry:
        place = count
        scratch.places[entry] = place
        scratch.entries[place] = entry
        scratch.near[place] = 0.0
        scratch.far[place] = 0.0
        count += 1
    scratch.near[place] += near
    scratch.far[place] += far
    return count


@part
def _hearers(slot, reference, rows, speakers, scratch):
    """List the entries that hear the label of a slot: of the reference all labelled nodes, others those held out."""
    count = 0
    start = rows.starts[slot]
    for j in range(start, start + rows.sizes[slot]):
        between = rows.columns[j]
        code = speakers.code[between]
        if code < 0 or (reference and code > 0):
            count = _meet(speakers.entry_of[between], 1.0, 0.0, count, scratch)
        if not reference and speakers.crowd[between] > speakers.most:
            continue
        share = _share(between, rows)
        first = rows.starts[between]
        for k in range(first, first + rows.sizes[between]):
            other = rows.columns[k]
            code = speakers.code[other]
            if other != slot and (code < 0 or (reference and code > 0)):
                count = _meet(speakers.entry_of[other], 0.0, share, count, scratch)
    return count


@jit
def list_hearers(slots, rows, speakers, scratch, starts):
    """Return the entries held out that hear each of some slots, and what of, near and far; `starts` is written."""
    entries = np.empty(64, np.int64)
    near, far = np.empty(64), np.empty(64)
    total = 0
    for i in range(slots.size):
        starts[i] = total
        count = 0
        if speakers.code[slots[i]] <= 0:  # a label of the reference has taught: no candidate stands in for it
            count = _hearers(slots[i], False, rows, speakers, scratch)
        while total + count > entries.size:
            entries = np.concatenate((entries, np.empty_like(entries)))
            near = np.concatenate((near, np.empty_like(near)))
            far = np.concatenate((far, np.empty_like(far)))
        entries[total : total + count] = scratch.entries[:count]
        near[total : total + count] = scratch.near[:count]
        far[total : total + count] = scratch.far[:count]
        total += count
    starts[slots.size] = total
    return entries[:total], near[:total], far[:total]


@jit
def shift_label(slot, label, sign, reference, rows, speakers, entries, scratch):
    """Let a label speak, or be silent again, for every entry that hears it."""
    count = _hearers(slot, reference, rows, speakers, scratch)
    for i in range(count):
        entry = scratch.entries[i]
        entries.near[entry, label] += sign * scratch.near[i]
        entries.far[entry, label] += sign * scratch.far[i]
        entries.rescore[entry] = True
    if reference:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            other = rows.columns[j]
            before = speakers.crowd[other]
            speakers.crowd[other] = before + sign
            if (before > speakers.most) != (before + sign > speakers.most):
                _mark(other, 1, rows, speakers, entries.recount)


@part
def _mark(slot, hops, rows, speakers, recount):
    """Mark the entries up to two hops from a slot to be counted anew."""
    entry = speakers.entry_of[slot]
    if entry >= 0:
        recount[entry] = True
    start = rows.starts[slot]
    for j in range(start, start + rows.sizes[slot]):
        other = rows.columns[j]
        entry = speakers.entry_of[other]
        if entry >= 0:
            recount[entry] = True
        if hops == 2:
            first = rows.starts[other]
            for k in range(first, first + rows.sizes[other]):
                entry = speakers.entry_of[rows.columns[k]]
                if entry >= 0:
                    recount[entry] = True


@jit
def see_edges(slots, rows, speakers, recount, stale):
    """Note that edges at some slots have come, or gone: count their crowds anew, and mark who is around them."""
    for slot in slots:
        crowd = 0
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            crowd += speakers.code[rows.columns[j]] > 0
        speakers.crowd[slot] = crowd
        stale[slot] = True
        _mark(slot, 1, rows, speakers, recount)


@jit
def see_outputs(slots, rows, speakers, recount, stale):
    """Note that the model says something else of some slots."""
    for slot in slots:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            stale[rows.columns[j]] = True
        _mark(slot, 2, rows, speakers, recount)


@jit
def count_crowds(slots, rows, crowd):
    """Count, from nothing, the reference neighbours that each slot has: those of the reference are given."""
    for slot in slots:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            crowd[rows.columns[j]] += 1


# -- order statistics --------------------------------------------------------------------------------------------------


@part
def _ranked(label, score, ranking):
    """Return a score as it is ranked among those of the reference."""
    if ranking.mix < 0.0:
        return score
    share = count_pairs(ranking.everyone, 0.0, score, False) / (ranking.size + 1.0)
    own = ranking.sizes[label]
    mix = ranking.mix * own / (own + ranking.shrink)
    value = (1.0 - mix) * share
    if mix != 0.0:
        below = count_pairs(ranking.own, float(label), score, False) - ranking.before[label]
        value = value + mix * (below / (own + 1.0))
    return value + ranking.slope * score


@jit
def rank_scores(labels, scores, ranking, values):
    """Write scores as they are ranked."""
    for i in range(scores.size):
        values[i] = _ranked(labels[i], scores[i], ranking)


@part
def _first_from(blocks, label, start, size, value, after, ranking):
    """Return how many scores of a label are ranked below a value; with `after`, up to and including it."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        here = _ranked(label, pair_at(blocks, start + middle)[1], ranking)
        if here < value or (after and here == value):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def count_ranked(values, blocks, sizes, ranking, below, up_to):
    """Write how many ranked scores, of pairs (label, score), are below each value, and up to and including it."""
    for i in range(values.size):
        below[i] = 0
        up_to[i] = 0
        start = 0
        for label in range(sizes.size):
            size = sizes[label]
            if size:
                below[i] += _first_from(blocks, label, start, size, values[i], False, ranking)
                up_to[i] += _first_from(blocks, label, start, size, values[i], True, ranking)
            start += size


@jit
def scores_between(first, last, blocks, sizes, ranking, guess):
    """Return the ranked scores, ascending, that hold at least the places from one to another, and how many are below.

    All scores that are equal to one of them are among them. Where scores are ranked by label, those near a guess are
    looked at first.
    """
    total = sizes.sum()
    first, last = max(first, 0), min(last, total - 1)
    if ranking.mix < 0.0:
        low = count_pairs(blocks, 0.0, pair_at(blocks, first)[1], False)
        high = count_pairs(blocks, 0.0, pair_at(blocks, last)[1], True)
        values = np.empty(high - low)
        for i in range(low, high):
            values[i - low] = pair_at(blocks, i)[1]
        return values, low
    lows, highs = np.empty(sizes.size, np.int64), np.empty(sizes.size, np.int64)
    down = up = 2.0 * (last - first + 8) / (total + 1.0)
    while True:
        low, high, start = 0, 0, 0
        for label in range(sizes.size):
            size = sizes[label]
            lows[label] = highs[label] = start
            if size:
                lows[label] += _first_from(blocks, label, start, size, guess - down, False, ranking)
                highs[label] += _first_from(blocks, label, start, size, guess + up, True, ranking)
            low += lows[label] - start
            high += highs[label] - start
            start += size
        if low <= first and high > last:
            break
        if low > first:
            down = 4.0 * down if down < 4.0 else np.inf
        if high <= last:
            up = 4.0 * up if up < 4.0 else np.inf
    values = np.empty(high - low)
    count = 0
    for label in range(sizes.size):
        for i in range(lows[label], highs[label]):
            values[count] = _ranked(label, pair_at(blocks, i)[1], ranking)
            count += 1
    values.sort()
    return values, low


@jit
def select_changed(values, below, total, places, starts, removed, changed, thresholds):
    """Write the order statistic of each row and candidate, with some scores left out and others in their stead.

    Parameters
    ----------
    values, below : float64 array, int
        Scores around the places that are wanted, ascending, and how many are below them.
    total : int
        How many scores there are.
    places : int64 of shape (rows,)
        Which score is wanted of each row, from 0.
    starts : int64 of shape (rows + 1,)
        Where the changes of each row start.
    removed : float64 of shape (changes,)
        Scores that are left out.
    changed : float64 of shape (changes, candidates)
        Scores that stand in for them; NaN where none does.
    thresholds : float64 of shape (rows, candidates)
        Written.
    """
    low = -np.inf if below == 0 else values[0]
    high = np.inf if below + values.size == total else values[-1]
    for row in range(places.size):
        some = removed[starts[row] : starts[row + 1]].copy()
        some.sort()
        left_out = np.zeros(values.size, np.bool_)
        before = below
        place = 0
        for i in range(some.size):
            if some[i] < low:
                before -= 1
            elif some[i] <= high:
                first = np.searchsorted(values, some[i])
                place = first if i == 0 or some[i] != some[i - 1] else place + 1
                left_out[place] = True
        for column in range(changed.shape[1]):
            new = np.empty(some.size)
            count, smaller = 0, 0
            for i in range(starts[row], starts[row + 1]):
                score = changed[i, column]
                if score < low:
                    smaller += 1
                elif score <= high:
                    new[count] = score
                    count += 1
            new = new[:count]
            new.sort()
            thresholds[row, column] = _merged(places[row] - before - smaller, values, left_out, new)


@part
def _merged(place, values, left_out, new):
    """Return the score at a place among those that are not left out and some new ones; NaN where there is none."""
    i, j = 0, 0
    while True:
        while i < values.size and left_out[i]:
            i += 1
        if i == values.size and j == new.size:
            return np.nan
        if j < new.size and (i == values.size or new[j] <= values[i]):
            score = new[j]
            j += 1
        else:
            score = values[i]
            i += 1
        if place == 0:
            return score
        place -= 1
