"""Scores ranked by label, and order statistics of them with some scores left out and others in their place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, jit, part, sort_in_place
from napsets.kernels.growing import count_pairs, insert_pair, move_pair, pair_at, remove_pair


class Ranking(NamedTuple):
    """How scores are ranked among those of the reference; see `napsets.scores.by_label`."""

    #: Blocks. The pairs (0, score) of the reference, and (label, score); these stay empty where scores are not ranked.
    everyone: Any
    own: Any
    #: int64 of shape (labels,). How many reference nodes have each label, and how many have a smaller one.
    sizes: Any
    before: Any
    size: int  #: How many there are.
    #: The weight of the label's own ranks, and the two constants of the formula; a mix below 0 leaves scores alone.
    mix: float
    shrink: float
    slope: float


@part
def _is_full(blocks):
    return blocks.used[0] == blocks.sizes.size


@part
def _replace(blocks, label, old, new):
    """Replace a score, and return by how many there are more."""
    if np.isnan(old):
        if np.isnan(new):
            return 0
        insert_pair(blocks, label, new)
        return 1
    if np.isnan(new):
        remove_pair(blocks, label, old)
        return -1
    move_pair(blocks, label, old, new)
    return 0


@jit
def replace_scores(start, codes, old, new, ranking, held_out, held_out_sizes):
    """Replace scores in the lists, from one on, until a list has no block left; return how many are done.

    Codes are those of `SlotLabels`. NaN stands for a score that is in no list. Pairs that are held out are those of
    `count_ranked`, and their sizes are by label.
    """
    by_label = ranking.mix >= 0.0
    for i in range(start, codes.size):
        if _is_full(ranking.everyone) or _is_full(ranking.own) or _is_full(held_out):
            return i
        label = abs(codes[i]) - 1
        group = float(label) if by_label else 0.0
        if codes[i] < 0:
            held_out_sizes[label] += _replace(held_out, group, old[i], new[i])
            continue
        _replace(ranking.everyone, 0.0, old[i], new[i])
        if by_label:
            more = _replace(ranking.own, group, old[i], new[i])
            ranking.sizes[label] += more
            for other in range(label + 1, ranking.before.size):
                ranking.before[other] += more
    return codes.size


@part
def _lent(ranking):
    """Return a ranking whose lists belong to the caller: else each look at one would count references to its arrays."""
    return Ranking(
        borrowed(ranking.everyone), borrowed(ranking.own), ranking.sizes, ranking.before, ranking.size, ranking.mix,
        ranking.shrink, ranking.slope,
    )  # fmt: skip


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
    ranking = _lent(ranking)
    for i in range(scores.size):
        values[i] = _ranked(labels[i], scores[i], ranking)


@part
def _is_below(blocks, label, place, value, after, ranking):
    here = _ranked(label, pair_at(blocks, place)[1], ranking)
    return here < value or (after and here == value)


@part
def _first_from(blocks, label, start, size, value, after, ranking, guess):
    """Return how many scores of a label are ranked below a value; with `after`, up to and including it.

    The search starts near a guess.
    """
    low, high, guess = 0, size, min(guess, size)
    for reach in (2, 32):
        first, last = guess - reach, guess + reach
        if (first <= 0 or _is_below(blocks, label, start + first - 1, value, after, ranking)) and (
            last >= size or not _is_below(blocks, label, start + last, value, after, ranking)
        ):
            low, high = max(first, 0), min(last, size)
            break
    while low < high:
        middle = (low + high) // 2
        if _is_below(blocks, label, start + middle, value, after, ranking):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def count_ranked(values, blocks, sizes, ranking, below, up_to):
    """Write how many ranked scores, of pairs (label, score), are below each value, and up to and including it."""
    blocks, ranking = borrowed(blocks), _lent(ranking)
    for i in range(values.size):
        below[i] = 0
        up_to[i] = 0
        start = 0
        for label in range(sizes.size):
            size = sizes[label]
            if size:
                count = _first_from(blocks, label, start, size, values[i], False, ranking, size // 2)
                below[i] += count
                up_to[i] += _first_from(blocks, label, start, size, values[i], True, ranking, count)
            start += size


@jit
def unrank(values, ranking, bounds):
    """Write between which scores one of each label may be ranked at each value, shape (labels, 2, values).

    A score that is less than the first is ranked below the value, and one that is more than the second above it.
    """
    for label in range(bounds.shape[0]):
        for i in range(values.size):
            below = _first_from(ranking.everyone, label, 0, ranking.size, values[i], False, ranking, ranking.size // 2)
            above = _first_from(ranking.everyone, label, 0, ranking.size, values[i], True, ranking, below)
            bounds[label, 0, i] = pair_at(ranking.everyone, below - 1)[1] if below else -np.inf
            bounds[label, 1, i] = pair_at(ranking.everyone, above)[1] if above < ranking.size else np.inf


@jit
def scores_between(first, last, blocks, sizes, ranking, guess, guesses):
    """Return the ranked scores, ascending, that hold at least the places from one to another, and how many are below.

    All scores equal to one of them are included. If scores are ranked by label, the search starts near a guess of their
    values, and near guesses of the places of its ends for each label, which are renewed: shape (2, labels).
    """
    blocks, ranking, total = borrowed(blocks), _lent(ranking), sizes.sum()
    first, last = max(first, 0), min(last, total - 1)
    if ranking.mix < 0.0:
        low = count_pairs(blocks, 0.0, pair_at(blocks, first)[1], False)
        high = count_pairs(blocks, 0.0, pair_at(blocks, last)[1], True)
        values = np.empty(high - low)
        for i in range(low, high):
            values[i - low] = pair_at(blocks, i)[1]
        return values, low
    lows, highs = np.empty(sizes.size, np.int64), np.empty(sizes.size, np.int64)
    down = up = (0.75 * (last - first) + 8.0) / (total + 1.0)
    while True:
        low, high, start = 0, 0, 0
        for label in range(sizes.size):
            size = sizes[label]
            lows[label] = highs[label] = start
            if size:
                ends = guesses[:, label]
                ends[0] = _first_from(blocks, label, start, size, guess - down, False, ranking, ends[0])
                ends[1] = _first_from(blocks, label, start, size, guess + up, True, ranking, ends[1])
                lows[label] += ends[0]
                highs[label] += ends[1]
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
    sort_in_place(values)
    return values, low


@jit
def select_changed(values, below, total, places, starts, removed, changed, thresholds):
    """Write the order statistic of each row and candidate, with some scores left out and others in their place.

    `values` are the scores around the places that are wanted, from 0 and one per row, ascending; `below` are below
    them, of `total` in all. Row r leaves out ``removed[starts[r]:starts[r + 1]]`` for those of `changed`, which has one
    column per candidate; NaN stands for none.
    """
    low = -np.inf if below == 0 else values[0]
    high = np.inf if below + values.size == total else values[-1]
    for row in range(places.size):
        some = removed[starts[row] : starts[row + 1]].copy()
        sort_in_place(some)
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
            sort_in_place(new)
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
