"""How a candidate label changes the scores of labelled nodes that hear it, without computing most of them.

A *judge* is a labelled node whose score at its own label is compared with others. If a node v had the label y, the
weight of y would change for every judge within two hops of v: w(y) becomes w(y)·((n + a)/n)^b·((f + s)/f)^c, with n and
f its counts near and far, a and s what v adds to them. The kernels here list the judges that hear v, and find out
between which two of some *cuts* the new score of each lies. Scores are computed to within a margin that is far above
rounding, and mostly not even that: as long as no label changes places with the judge's own, a score moves by at most
`slack` × s. So the order of all scores is known, but for those few that lie as near to a cut, or to one another, as the
margin; those are listed, and the caller computes their bits.

Positions say where a score lies among n cuts that ascend: 2j below cut j and above the one before, 2j + 1 at cut j.
"""

from __future__ import annotations

import math

import numpy as np

from napsets.kernels._jit import borrowed, inlined, jit
from napsets.kernels.judges import (
    FAR,
    GROUP,
    KEPT,
    LABEL,
    LIMIT,
    NEAR,
    PLACE,
    SCORE,
    SLACK,
    STEADY,
    WEIGHT,
)

__all__ = ["compare", "select"]


@inlined
def _gather(v, own, heard, rule, added, touched):
    """List the judges that hear a node, with what it adds to their counts; return how many there are."""
    count = 0
    if rule.far != 0.0:
        for e in range(heard.indptr[v], heard.indptr[v + 1]):
            u = heard.indices[e]
            share = heard.shares[u]
            if share > 0.0:
                for f in range(heard.judge_indptr[u], heard.judge_indptr[u + 1]):
                    i = heard.judge_indices[f]
                    if added[i, 1] == 0.0:
                        touched[count, 0] = i
                        count += 1
                    added[i, 1] += share
    if rule.near != 0.0:
        for f in range(heard.judge_indptr[v], heard.judge_indptr[v + 1]):
            i = heard.judge_indices[f]
            if added[i, 1] == 0.0:
                touched[count, 0] = i
                count += 1
            added[i, 0] = 1.0
    if own >= 0:
        for t in range(count):
            if touched[t, 0] == own:
                count -= 1
                touched[t, 0] = touched[count, 0]
                added[own] = 0.0
                break
    return count


@inlined
def _among(cuts, value, upto):
    """Return how many of some numbers, which ascend, are below a value; or at most the value."""
    low, high = 0, cuts.shape[0]
    while low < high:
        middle = (low + high) // 2
        if cuts[middle] < value or (upto and cuts[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _weight(table, y, near, far, rule):
    """Return the weight of a label with something added to its counts."""
    weight = table[WEIGHT, y]
    if near != 0.0 and rule.near != 0.0:
        weight *= math.pow((table[NEAR, y] + near) / table[NEAR, y], rule.near)
    if far != 0.0 and rule.far != 0.0:
        weight *= math.pow((table[FAR, y] + far) / table[FAR, y], rule.far)
    return weight


@inlined
def _bounds(table, own, kept, y, near, far, before, rule):
    """Return between what two numbers the score of a judge lies that hears label y instead of `before`, or of none."""
    if not rule.known:
        return -np.inf, np.inf
    new, old = _weight(table, y, near, far, rule), 0.0
    if before >= 0:
        old = _weight(table, before, -near, -far, rule)
    mine = new if own == y else old if own == before else table[WEIGHT, own]
    total, above, close = 0.0, 0.0, 0.0
    for z in range(table.shape[1]):
        weight = new if z == y else old if z == before else table[WEIGHT, z]
        total += weight
        if rule.ranked and z != own:
            if abs(weight - mine) <= rule.margin * mine:
                close += weight
            elif weight > mine:
                above += weight
    if not rule.ranked:
        above = total - mine
    score = (above + kept * mine) / total
    return score - rule.margin, score + close / total + rule.margin


@inlined
def _place(table, own, kept, y, near, far, before, low, high, rule):
    """Return the lowest and the highest position that the score of a judge can have among some cuts."""
    state, share, slack, steady = 0 if near == 0.0 else 3, far, 0.0, -1.0
    if before < 0:
        slack, steady = table[SLACK + state, y], table[STEADY + state, y]
    elif near == 0.0 and 2.0 * far <= table[FAR, before]:
        # One label is taken out and another added: four times as much covers both.
        share, slack = 4.0 * far, max(table[SLACK, y], table[SLACK, before])
        steady = min(table[STEADY, y], table[STEADY, before]) if share * slack <= 1.0 else -1.0
    if share <= steady:
        move, score = slack * share + rule.margin, table[SCORE + state, y]
        least, most = _among(high, score - move, False), _among(low, score + move, True)
        if least == most:
            return 2 * least, 2 * most
    smallest, largest = _bounds(table, own, kept, y, near, far, before, rule)
    return 2 * _among(high, smallest, False), 2 * _among(low, largest, True)


@inlined
def _position(below, counts, added, needed):
    """Return the position of the needed-th smallest score: those below all cuts, those at them, and those added."""
    reached, position = below + added[0], 0
    while reached < needed and position < added.shape[0] - 1:
        position += 1
        reached += added[position]
        if position % 2 == 1:
            reached += counts[position // 2]
    return position


@jit
def select(
    first, rows, owns, befores, needed, candidates, scores, heard, judges, rule, cuts, room, values, ranks, listed
):
    """Find the needed-th smallest score of the judges for each row, from the first on, and each candidate.

    Parameters
    ----------
    first : int
        The first row.
    rows, owns, befores, needed : int64
        Nodes; the number of each among the judges, −1 for others; the label that is heard already, −1 for none and −2
        for one that no candidate replaces; which score is wanted, from 1.
    candidates : int64
        Labels.
    scores : float64
        The scores of the judges in ascending order.
    heard, judges, rule, cuts, room
        As above; the one window of the cuts must hold the wanted scores, or else the row is given up.
    values : float64 of shape (rows, candidates)
        Written: the scores; NaN in the first column for a row that is given up.
    ranks : int64 of shape (rows, candidates)
        Written: which of the scores that are listed for this group is the wanted one, from 1; 0 where it is known.
    listed : Listed
        Written.

    Returns
    -------
    tuple
        The first row that was not done for lack of space, and how many entries are listed.
    """
    heard, judges, cuts = borrowed(heard), borrowed(judges), borrowed(cuts)
    room, listed = borrowed(room), borrowed(listed)
    tables, limits, facts, numbers = judges.tables, judges.limits, judges.facts, judges.numbers
    added, touched, starts = room.added, room.touched, cuts.starts[0]
    size, width, count = cuts.values.shape[0], candidates.shape[0], 0
    counts, by_lowest, by_highest = room.counts[0], room.counts[1], room.counts[2]
    for r in range(first, rows.shape[0]):
        own, before, start = owns[r], befores[r], count
        # Where nothing changes: the order of scores, without the node's own.
        place = needed[r] - 1
        if own >= 0 and numbers[own, PLACE] <= place:
            place += 1
        for c in range(width):
            values[r, c] = scores[place]
            ranks[r, c] = 0
        if before == -2:
            continue
        # Where one label is taken out and another added, four times as much covers both.
        times = 4.0 if before >= 0 else 1.0
        heard_by = _gather(rows[r], own, heard, rule, added, touched)
        if count + width * (heard_by + size) > listed.numbers.shape[0]:
            for t in range(heard_by):
                added[touched[t, 0]] = 0.0
            return r, count
        active = 0
        for t in range(heard_by):
            i = touched[t, 0]
            far = added[i, 1]
            stays = added[i, 0] == 0.0 and times * far <= facts[i, LIMIT]
            if not (stays and (before < 0 or 2.0 * far <= tables[i, FAR, before])):
                touched[t, 0], touched[active, 0] = touched[active, 0], i
                active += 1
        for c in range(width):
            y = candidates[c]
            if y == before:
                continue
            moved = 0
            for t in range(active):
                i = touched[t, 0]
                near, far, place = added[i, 0], added[i, 1], numbers[i, PLACE]
                lowest, highest, limit = 0, 0, 0.0
                if before < 0:
                    limit = limits[i, 0 if near == 0.0 else 1, y]
                elif near == 0.0 and 2.0 * far <= tables[i, FAR, before]:
                    limit, other = limits[i, 0, y], limits[i, 0, before]
                    if abs(other) < abs(limit):
                        limit, other = other, limit
                    if limit * other < 0.0:
                        limit = 0.0
                if times * far < abs(limit):
                    if limit < 0.0:
                        lowest, highest = 2 * size, 2 * size
                else:
                    low, high = cuts.low[0, numbers[i, GROUP]], cuts.high[0, numbers[i, GROUP]]
                    own_label, kept = numbers[i, LABEL], facts[i, KEPT]
                    lowest, highest = _place(tables[i], own_label, kept, y, near, far, before, low, high, rule)
                under, over = highest == 0 and place < starts[0], lowest == 2 * size and place >= starts[size]
                if not (under or over):
                    touched[moved, 1], touched[moved, 2], touched[moved, 3] = i, lowest, highest
                    moved += 1
            if moved == 0:
                continue
            below = starts[0]
            for j in range(size):
                counts[j] = starts[j + 1] - starts[j]
            room.counts[1:] = 0
            for t in range(moved + (own >= 0)):
                place = numbers[touched[t, 1] if t < moved else own, PLACE]
                if place < starts[0]:
                    below -= 1
                elif place < starts[size]:
                    counts[_among(starts, place, True) - 1] -= 1
                if t < moved:
                    by_lowest[touched[t, 2]] += 1
                    by_highest[touched[t, 3]] += 1
            lowest = _position(below, counts, by_lowest, needed[r])
            highest = _position(below, counts, by_highest, needed[r])
            if (lowest == 0 and starts[0] > 0) or (highest == 2 * size and starts[size] < scores.shape[0]):
                values[r, 0] = np.nan
                count = start
                break
            if lowest == highest and lowest % 2 == 1:
                values[r, c] = cuts.values[lowest // 2]
                continue
            rank = needed[r] - below
            for j in range(size + moved):
                if j < size:
                    at_least, at_most = 2 * j + 1, 2 * j + 1
                    entry = np.int64(-1), counts[j], cuts.values[j], cuts.values[j]
                else:
                    i = touched[j - size, 1]
                    at_least, at_most = touched[j - size, 2], touched[j - size, 3]
                    entry = i, np.int64(1), added[i, 0], added[i, 1]
                if at_most < lowest:
                    rank -= entry[1]
                elif at_least <= highest and entry[1] > 0:
                    listed.numbers[count, 0] = r * width + c
                    listed.numbers[count, 1], listed.numbers[count, 2] = entry[0], entry[1]
                    listed.values[count, 0], listed.values[count, 1] = entry[2], entry[3]
                    count += 1
            ranks[r, c] = rank
        for t in range(heard_by):
            added[touched[t, 0]] = 0.0
    return rows.shape[0], count


@jit
def compare(first, rows, owns, befores, candidates, heard, judges, rule, cuts, room, below, equal, listed):
    """Count the judges below each candidate of each row, and at it, but for those that are listed.

    Parameters
    ----------
    first, rows, owns, befores, candidates, heard, judges, rule, room, listed
        As in `select`.
    cuts : Cuts
        One cut in each window, and one window for each row and candidate.
    below, equal : int64 of shape (rows, candidates)
        Written.

    Returns
    -------
    tuple
        As in `select`.
    """
    heard, judges, cuts = borrowed(heard), borrowed(judges), borrowed(cuts)
    room, listed = borrowed(room), borrowed(listed)
    tables, facts, numbers = judges.tables, judges.facts, judges.numbers
    added, touched, width, count = room.added, room.touched, candidates.shape[0], 0
    for r in range(first, rows.shape[0]):
        own, before = owns[r], befores[r]
        heard_by = 0 if before == -2 else _gather(rows[r], own, heard, rule, added, touched)
        full = count + width * heard_by > listed.numbers.shape[0]
        for c in range(0 if full else width):
            window, y = r * width + c, candidates[c]
            start, stop = cuts.starts[window, 0], cuts.starts[window, 1]
            under, at = start, stop - start
            for t in range(heard_by + (own >= 0)):
                i = touched[t, 0] if t < heard_by else own
                if t < heard_by and y == before:
                    continue
                place = numbers[i, PLACE]
                if place < start:
                    under -= 1
                elif place < stop:
                    at -= 1
                if t == heard_by:
                    continue
                low, high = cuts.low[window, numbers[i, GROUP]], cuts.high[window, numbers[i, GROUP]]
                lowest, highest = _place(
                    tables[i], numbers[i, LABEL], facts[i, KEPT], y, added[i, 0], added[i, 1], before, low, high, rule
                )
                if lowest != highest:
                    listed.numbers[count, 0], listed.numbers[count, 1] = window, i
                    listed.values[count, 0], listed.values[count, 1] = added[i, 0], added[i, 1]
                    count += 1
                elif lowest == 0:
                    under += 1
            below[r, c], equal[r, c] = under, at
        for t in range(heard_by):
            added[touched[t, 0]] = 0.0
        if full:
            return r, count
    return rows.shape[0], count
