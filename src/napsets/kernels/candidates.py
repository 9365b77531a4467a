"""How a candidate label changes the scores of the judges it is evidence for, without computing most of them.

A *judge* is a held-out labelled node whose score at its own label helps set the threshold. If a node v had the label y,
the weight of y would change for every judge within two hops of v: w(y) becomes w(y)·((n + a)/n)^b·((f + s)/f)^c, with n
and f its counts near and far, a and s what v adds to them. The kernel here lists the judges that v affects and that
leave their places among some *cuts*. Scores are computed to within a margin that is far above rounding, from the sums
of a judge's weights, of which one changes. Mostly not even the power is computed: for 0 ≤ c ≤ 1,
1 ≤ (1 + x)^c ≤ 1 + c·x. So the order of all scores is known, except for the few that are closer than the margin to a
cut or to one another; the caller computes these exactly.

Positions say where a score lies among n cuts that ascend: 2j below cut j and above the one before, 2j + 1 at cut j.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from napsets.kernels._jit import borrowed, jit, part

#: Columns of `Judges.tables`: the weights of labels that a score sees, and those with the label added near; labels
#: counted near and far, with what is added to all counts.
WEIGHT, WITH_NEAR, NEAR, FAR = range(4)
#: Columns of `Judges.facts`: the share of its own label's weight that counts in a judge's score; what limits are made
#: of: the score, by how much it moves at most for each unit of a share, and up to which share that holds; the
#: sum of all weights, the largest weight of another label that does not count in the score, and the sum of this and of
#: those that do; and by how much a weight grows at most if its label is added near, and for each unit of a share,
#: without and with that.
KEPT, SCORE, SLACK, STEADY, TOTAL, NEXT, REACH, GROWTH, SLOPE, NEAR_SLOPE = range(10)
#: Columns of `Judges.numbers`: a judge's label, whose cuts are its own, and its number in the order of scores.
LABEL, GROUP, PLACE = range(3)
#: What a neighbour counts in the sum of both counts: more than all shares together, and exact beside them.
NEIGHBOUR = 2.0**22


class Judges(NamedTuple):
    """What is known of the judges."""

    tables: Any  #: float64 of shape (judges, 4, labels). As above.
    facts: Any  #: float64 of shape (judges, 10). As above.
    numbers: Any  #: int64 of shape (judges, 3). As above.
    #: float64 of shape (judges,). Up to which share of any label that is added far away alone a judge stays where it
    #: is, outside all cuts.
    limits: Any


class EvidenceLinks(NamedTuple):
    """For which judges a node is evidence, near and far, as compressed rows."""

    #: The nodes that have each node as a neighbour.
    indptr: Any
    indices: Any
    #: The judges that have each node as a neighbour.
    judge_indptr: Any
    judge_indices: Any
    shares: Any  #: float64. What each node passes on of a label.


class Cuts(NamedTuple):
    """The values that scores are compared with."""

    #: float64 of shape (windows, groups, cuts). A judge of a group is below a cut if its score is less than the first,
    #: and above it if it is more than the second.
    low: Any
    high: Any
    #: int64 of shape (windows, cuts + 1). The number of the first judge, in the order of scores, at each cut; the last
    #: is where they end.
    starts: Any


class Rule(NamedTuple):
    """How scores are made of weights."""

    #: Exponents of the counts.
    near: float
    far: float
    gentle: bool  #: Whether the first is 0 or more, and the second between 0 and 1.
    margin: float  #: What rounding may change a score by.
    #: A label counts in the score of another if its weight is more than `most` times the other's, does not if it is
    #: less than `least` times that, and may in between.
    least: float
    most: float
    known: bool  #: Whether all this describes the score.


class JudgeScratch(NamedTuple):
    """What a kernel writes on."""

    #: float64 of shape (judges,). What a node adds to the counts of each judge, both together; zero between two nodes.
    added: Any
    affected: Any  #: int64 of shape (judges + 1,). The judges that the node is evidence for.


class Moves(NamedTuple):
    """Judges that may have left their places."""

    #: int64 of shape (moves, 4). Row × candidates + candidate; which judge; its lowest and highest possible position.
    numbers: Any
    values: Any  #: float64 of shape (moves, 2). What is added to the judge's counts near and far.


def room_for(judges: int, moves: int) -> tuple[JudgeScratch, Moves]:
    """Return space for one thread and this many moves."""
    room = JudgeScratch(np.zeros(judges), np.empty(judges + 1, dtype=np.int64))
    return room, Moves(np.empty((moves, 4), dtype=np.int64), np.empty((moves, 2)))


def choose_listed(
    groups: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the ranks-th smallest score of each group, from 1, where scores may count several times.

    Each entry has a group, numbered from 0 without gaps, a score, and how often that counts.
    """
    order = np.lexsort((scores, groups))
    starts = np.searchsorted(groups[order], np.arange(ranks.size))
    reached = np.append(0, np.cumsum(counts[order]))
    wanted = np.searchsorted(reached, reached[starts] + ranks, side="left") - 1
    chosen: npt.NDArray[np.float64] = scores[order][wanted]
    return chosen


@part
def _sums(tables, i, label, before, old, least, most):
    """Add up the weights of the labels other than a judge's own: all, those above `most`, and those close to its own.

    The label `before` has the weight `old`.
    """
    total, above, close = 0.0, 0.0, 0.0
    for z in range(tables.shape[2]):
        if z != label:
            weight = old if z == before else tables[i, WEIGHT, z]
            total += weight
            if weight > most:
                above += weight
            elif weight >= least:
                close += weight
    return total, above, close


@part
def _gather(v, links, near, far, room):
    """Add up what a node adds to the counts of the judges that it affects; return how many these are."""
    links, room = borrowed(links), borrowed(room)
    indices, judge_indptr, judge_indices, shares = links.indices, links.judge_indptr, links.judge_indices, links.shares
    added, affected, count = room.added, room.affected, 0
    if far:
        for e in range(links.indptr[v], links.indptr[v + 1]):
            u = indices[e]
            share = shares[u]
            if share > 0.0:
                for f in range(judge_indptr[u], judge_indptr[u + 1]):
                    i = judge_indices[f]
                    affected[count] = i
                    count += added[i] == 0.0
                    added[i] += share
    if near:
        for f in range(judge_indptr[v], judge_indptr[v + 1]):
            i = judge_indices[f]
            affected[count] = i
            count += added[i] == 0.0
            added[i] += NEIGHBOUR
    return count


@jit
def list_moves(first, rows, candidates, links, judges, rule, cuts, room, moves):
    """List the judges that may be elsewhere among the cuts, for each row, from the first on, and each candidate.

    `rows`, of shape (rows, 3), are nodes; the number of each among the judges, −1 for others; and the label that is
    evidence already, −1 for none and −2 for one that no candidate replaces. The cuts have one window for all, or one
    for each row and candidate. Returns the first row that was not done for lack of space, and how many are listed.
    """
    links, judges, cuts = borrowed(links), borrowed(judges), borrowed(cuts)
    room, moves = borrowed(room), borrowed(moves)
    tables, facts, numbers = judges.tables, judges.facts, judges.numbers
    added, affected, low, high, starts = room.added, room.affected, cuts.low, cuts.high, cuts.starts
    size, width, listed = low.shape[2], candidates.shape[0], 0
    for r in range(first, rows.shape[0]):
        v, own, before = rows[r, 0], rows[r, 1], rows[r, 2]
        if before == -2:
            continue
        count = _gather(v, links, rule.near != 0.0, rule.far != 0.0, room)
        # Where one label is taken out and another added, four times as much covers both, as long as no more than half
        # of what is counted is taken out.
        times = 1.0 if before < 0 else 4.0
        full = listed + width * count > moves.numbers.shape[0]
        for t in range(count):
            i = affected[t]
            far, near = added[i], 0.0
            added[i] = 0.0
            if full or i == own:
                continue
            if times * far <= judges.limits[i] and (before < 0 or 2.0 * far <= tables[i, FAR, before]):
                continue
            if far >= NEIGHBOUR:
                far, near = far - NEIGHBOUR, 1.0
            label, mine, old = numbers[i, LABEL], tables[i, WEIGHT, numbers[i, LABEL]], 0.0
            # A judge below all cuts stays there if no label can add enough weight to lift its score above one.
            ceiling = low[0, numbers[i, GROUP], 0] - rule.margin
            if not (rule.gentle and low.shape[0] == 1 and numbers[i, PLACE] < starts[0, 0]):
                ceiling = 0.0
            more = facts[i, GROWTH] * near + facts[i, SLOPE if near == 0.0 else NEAR_SLOPE] * far
            if label != before:
                lost = 0.0 if before < 0 else tables[i, WEIGHT, before]
                if facts[i, REACH] + more < ceiling * (facts[i, TOTAL] - lost + more):
                    continue
            if before >= 0:
                old = tables[i, WEIGHT, before] * math.pow(1.0 - near / tables[i, NEAR, before], rule.near)
                old *= math.pow(1.0 - far / tables[i, FAR, before], rule.far)
                if label == before:
                    mine = old
            total, above, close = _sums(tables, i, label, before, old, rule.least * mine, rule.most * mine)
            score, whole = above + facts[i, KEPT] * mine, total + mine + more
            if score + close + facts[i, NEXT] + more < ceiling * whole:
                continue
            # One above all cuts stays there, unless its own label is the one that weighs more.
            above_all = rule.gentle and low.shape[0] == 1 and numbers[i, PLACE] >= starts[0, size]
            above_all = above_all and score > (high[0, numbers[i, GROUP], size - 1] + rule.margin) * whole
            for c in range(width):
                y = candidates[c]
                if y == before or (above_all and y != label):
                    continue
                window = min(r * width + c, low.shape[0] - 1)
                new = tables[i, WITH_NEAR if near != 0.0 else WEIGHT, y]
                step = far / tables[i, FAR, y]
                lowest, highest = 0, size
                # The weight of the candidate lies between two numbers; then it is computed.
                for computed in range(2):
                    smaller, larger = new, new * (1.0 + rule.far * step)
                    if computed == 1 or y == label or not rule.gentle:
                        smaller = new * math.pow(1.0 + step, rule.far)
                        larger = smaller
                    least, most, rest = rule.least * mine, rule.most * mine, total + mine
                    first_of, between = score, close
                    if y == label:
                        least, most = rule.least * larger, rule.most * larger
                        rest, first_of, between = _sums(tables, i, label, before, old, least, most)
                        rest, first_of = rest + larger, first_of + facts[i, KEPT] * larger
                        smaller, larger = 0.0, 0.0
                    blur = rule.margin * (rest + larger)
                    if y != label:
                        now = tables[i, WEIGHT, y]
                        rest -= now
                        if now > most:
                            first_of -= now
                    if smaller > most:
                        bottom = (first_of + smaller - blur) / (rest + smaller)
                    else:
                        bottom = (first_of - blur) / (rest + larger)
                    if larger >= least:
                        top = (first_of + between + larger + blur) / (rest + larger)
                    else:
                        top = (first_of + between + blur) / (rest + smaller)
                    if bottom <= top:
                        lowest, highest = 0, 0
                        while lowest < size and high[window, numbers[i, GROUP], lowest] < bottom:
                            lowest += 1
                        highest = lowest
                        while highest < size and low[window, numbers[i, GROUP], highest] <= top:
                            highest += 1
                    if lowest == highest:
                        break
                place = numbers[i, PLACE]
                below = highest == 0 and place < starts[window, 0]
                if not (below or (lowest == size and place >= starts[window, size])):
                    moves.numbers[listed, 0], moves.numbers[listed, 1] = r * width + c, i
                    moves.numbers[listed, 2], moves.numbers[listed, 3] = 2 * lowest, 2 * highest
                    moves.values[listed, 0], moves.values[listed, 1] = near, far
                    listed += 1
        if full:
            return r, listed
    return rows.shape[0], listed
