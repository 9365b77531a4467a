"""Thresholds at a full level by way of the judges that a candidate moves: what the kernel lists, and what follows.

*How far the score of a judge can move* when one label more is passed on to it from two hops away. If the weight of
label y is multiplied by f ≥ 1, or divided by it, all probabilities together move by at most (f − 1)·p(y), and so does a
score that adds up the probabilities of a fixed set of labels: THR at once, APS as long as no label changes places with
the node's own. A label y that passes on a share δ changes log w by B·log(1 + δ/d), with d = n_far(y) + κ π_y and B the
exponent of far labels times the power of a sharpened score. So

    f − 1 ≤ |B|·δ/d  where |B| ≤ 1,   ≤ (δ/δ*)·((1 + δ*/d)^|B| − 1)  where |B| > 1 and δ ≤ δ*,

and labels keep their places while |B|·δ/d stays below the gap between them on the scale of log w.

*How a threshold follows.* The scores of the judges are sorted once, and some of them around the wanted one are *cuts*.
The kernel lists the judges that may have left their places among the cuts. Counting these gives the lowest and the
highest position that the wanted score can have. Mostly both are one cut. Where they are not, the few scores between
them are computed, and where the wanted one is beyond all cuts, more are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.candidates import (
    GROUP,
    GROWTH,
    KEPT,
    NEAR_SLOPE,
    NEIGHBOUR,
    NEXT,
    PLACE,
    REACH,
    SCORE,
    SLACK,
    SLOPE,
    STEADY,
    TOTAL,
    Cuts,
    EvidenceLinks,
    Judges,
    Rule,
    choose_listed,
    room_for,
)
from napsets.kernels.layout import read_only
from napsets.kernels.threads import Stop, available_threads, run
from napsets.scores.exponents import PRIOR
from napsets.scores.informed import AddedCounts, BoundInformed
from napsets.scores.rows import APS, THR, Sharpened

#: δ*: shares beyond it are not bounded.
_LARGEST = 0.25
#: What rounding, and probabilities too small to count, may change a score by, for each unit of the power.
_MARGIN = {"f": 1e-6, "d": 1e-9}


def judge_tables(
    informed: BoundInformed, places: IntArray, groups: IntArray, order: IntArray, scores: FloatArray | None = None
) -> tuple[Judges, Rule]:
    """Return what a kernel must know of the nodes at some places of the bag, and how their scores are made.

    `groups` says whose cuts are those of each node, `order` gives its number in the order of scores, and `scores` its
    score at its label, where that is known already.
    """
    bag, score, exponents = informed.required_bag, informed.inner.score, informed.exponents
    nodes, labels = bag.labelled.nodes[places], bag.labelled.labels[places]
    power = float(score.power) if isinstance(score, Sharpened) else 1.0
    score = score.base if isinstance(score, Sharpened) else score
    kind = informed.probabilities.dtype.char
    known = type(score) in (APS, THR) and power >= 1.0 and kind in _MARGIN
    ranked, randomised = type(score) is not THR, type(score) is APS and score.randomized
    margin = power * _MARGIN.get(kind, 1.0) * (1.0 + 0.01 * informed.num_labels)
    w = informed.weights[places]
    rows, facts = np.arange(places.size), np.empty((places.size, 10))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        weights = (w / w.max(axis=1, keepdims=True)) ** power
        near, far = (
            counts[places] + PRIOR[name] * informed.learned.shares
            for name, counts in (("near", bag.near), ("far", bag.far))
        )
        strength = abs(exponents.far) * power
        slope = strength / far if strength <= 1 else ((1.0 + _LARGEST / far) ** strength - 1.0) / _LARGEST
        # Less than what a neighbour counts, whose label is not added far away alone.
        steady = np.full(places.size, NEIGHBOUR / 8.0 if strength <= 1 else _LARGEST)
        if ranked:
            gaps = np.abs(np.log(weights / weights[rows, labels][:, None]))
            gaps[rows, labels] = np.inf
            gaps[rows, labels] = gaps.min(axis=1)
            # Labels almost equal in weight to the node's own label might change places with it by rounding alone.
            limits = far * (gaps - 4.0 * margin) / (strength + 1e-300) * (1.0 - 1e-9)
            steady = np.minimum(steady, np.where(limits > 0, limits, -1.0).min(axis=1))
        with_near = weights * ((near + 1.0) / near) ** (exponents.near * power)
        growth = np.nan_to_num(weights * slope), np.nan_to_num(with_near * slope), with_near - weights
    for column, values in zip((SLOPE, NEAR_SLOPE, GROWTH), growth, strict=True):
        facts[:, column] = np.maximum(values.max(axis=1), 0.0) * (1.0 + 1e-9)  # all may shrink
    least, most = (1.0 - margin, 1.0 + margin) if ranked else (-1.0, -1.0)
    own = weights[rows, labels][:, None]
    counted, others = (np.where(which, weights, 0.0) for which in (weights >= least * own, weights <= most * own))
    counted[rows, labels] = others[rows, labels] = 0.0
    facts[:, KEPT] = 1.0 - informed.inner.u[nodes] if randomised else float(ranked)
    facts[:, SCORE] = informed.inner.at(nodes, labels) if scores is None else scores
    facts[:, STEADY] = steady
    facts[:, TOTAL], facts[:, NEXT] = weights.sum(axis=1), others.max(axis=1)
    facts[:, SLACK] = facts[:, SLOPE] / facts[:, TOTAL]
    facts[:, REACH] = counted.sum(axis=1) + facts[:, KEPT] * own[:, 0] + facts[:, NEXT]
    tables = np.stack([weights, with_near, near, far], axis=1)
    b, c = exponents.near * power, exponents.far * power
    rule = Rule(b, c, b >= 0.0 and 0.0 <= c <= 1.0, margin, least, most, known)
    return Judges(tables, facts, np.column_stack([labels, groups, order]), np.full(places.size, -1.0)), rule


def limited(judges: Judges, cuts: Cuts, margin: float) -> Judges:
    """Return the judges with the shares up to which each stays below all cuts of the one window, or above all."""
    facts, groups, places = judges.facts, judges.numbers[:, GROUP], judges.numbers[:, PLACE]
    below, above = places < cuts.starts[0, 0], places >= cuts.starts[0, -1]
    room = np.where(below, cuts.low[0, groups, 0] - facts[:, SCORE], facts[:, SCORE] - cuts.high[0, groups, -1])
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.minimum((room - 2.0 * margin) / facts[:, SLACK], facts[:, STEADY])
    # A share that is nothing moves nothing: what is less than the room for rounding is no limit.
    return judges._replace(limits=np.where((below | above) & (limits > 0), limits, -1.0))


#: What stands for the label of a reference node, which no candidate replaces.
REFERENCE_LABEL = -2
#: How many places on either side of the threshold the first cuts have, and how many times more the next have.
_WINDOW, _GROWTH = 2, 8
#: Rows of a piece of work, at most, and entries of its tables.
_ROWS, _ENTRIES = 1 << 12, 1 << 20
#: Moves that the kernel lists, at the least, before they are looked at.
_LISTED = 1 << 14


class JudgedNodes(NamedTuple):
    """Nodes, the place of each among the judges (−1 for none) and the label that it has already (−1 for none)."""

    nodes: IntArray
    owns: IntArray
    befores: IntArray

    def part(self, which: Any) -> JudgedNodes:
        """Return some of the rows."""
        return JudgedNodes(*(column[which] for column in self))


class _Moves(NamedTuple):
    """What the kernel listed: judges that may have left their places."""

    group: IntArray  #: row × candidates + candidate
    #: Which judge, and between what positions it is now.
    judge: IntArray
    lowest: IntArray
    highest: IntArray
    #: What the row's node adds to its counts.
    near: FloatArray
    far: FloatArray
    rows: JudgedNodes
    candidates: IntArray

    def changes(self, which: IntArray) -> AddedCounts:
        """Return what changes for some of the judges."""
        row, column = np.divmod(self.group[which], self.candidates.size)
        near, far = self.near[which], self.far[which]
        return AddedCounts(self.judge[which], near, far, self.rows.befores[row], self.candidates[column])


@dataclass(frozen=True, eq=False)
class Search:
    """What is known before any candidate is considered."""

    #: The judges' scores in ascending order, and each judge's number in that order.
    scores: FloatArray
    order: IntArray
    #: Which nodes are evidence for which judges, what the kernel must know of the judges, and how scores are computed.
    links: EvidenceLinks
    judges: Judges
    rule: Rule
    #: For each group of judges, between what two numbers their scores are if they are ranked at some values.
    bounds: Callable[[FloatArray], FloatArray]
    compute: Callable[[AddedCounts], FloatArray]  #: returns the scores of judges that change

    def thresholds(self, rows: JudgedNodes, needed: IntArray, candidates: IntArray, threads: int | None) -> FloatArray:
        """Return the needed-th smallest score of the judges for each row and candidate."""
        # Where nothing changes: the order of scores, without the node's own.
        passed = (rows.owns >= 0) & (self.order[rows.owns] < needed)
        values = np.repeat(self.scores[needed - 1 + passed][:, None], candidates.size, axis=1)
        left, width = np.flatnonzero(rows.befores != REFERENCE_LABEL), _WINDOW
        while left.size:
            # Without a node's own score, the place of the wanted one may be one further.
            first, last = int(needed[left].min()) - 1 - width, int((needed + (rows.owns >= 0))[left].max()) + width
            cut = np.unique(self.scores[max(0, first) : last])
            ends = np.append(np.searchsorted(self.scores, cut, "left"), np.searchsorted(self.scores, cut[-1], "right"))
            cuts = self._cuts(cut, 1, ends[None])
            judges = limited(self.judges, cuts, self.rule.margin)
            beyond = np.zeros(rows.nodes.size, dtype=bool)

            def find(
                some: IntArray, cut: Any = cut, cuts: Any = cuts, judges: Any = judges, lost: Any = beyond
            ) -> None:
                for moves in self._moves(rows.part(some), candidates, judges, cuts):
                    groups, chosen = self._choose(moves, needed[some], cut, cuts.starts[0])
                    row, column = np.divmod(groups, candidates.size)
                    values[some[row], column] = chosen
                    lost[some[row[np.isnan(chosen)]]] = True

            _in_pieces(find, left, threads, candidates.size * (2 * cut.size + 1))
            left, width = np.flatnonzero(beyond), _GROWTH * (width + 1)
        return values

    def counts(self, rows: JudgedNodes, scores: FloatArray, candidates: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many judges are below each candidate of each row, and how many are at it."""
        below, equal = (np.empty(scores.shape, dtype=np.int64) for _ in range(2))

        def find(some: IntArray) -> None:
            mine, wanted = rows.part(some), scores[some].reshape(-1)
            start, stop = (np.searchsorted(self.scores, wanted, side) for side in ("left", "right"))
            owns = np.repeat(mine.owns, candidates.size)
            own = np.where(owns >= 0, self.order[owns], self.scores.size)
            under, at = start - (own < start), stop - start - ((own >= start) & (own < stop))

            def add(count: int, groups: IntArray, to: IntArray) -> None:
                to += count * np.bincount(groups, minlength=to.size)

            cuts = self._cuts(wanted, wanted.size, np.stack([start, stop], axis=1))
            for moves in self._moves(mine, candidates, self.judges, cuts):
                group, place = moves.group, self.order[moves.judge]
                add(-1, group[place < start[group]], under)
                add(-1, group[(place >= start[group]) & (place < stop[group])], at)
                add(1, group[moves.highest == 0], under)
                unknown = np.flatnonzero(moves.lowest != moves.highest)
                computed, compared, group = self.compute(moves.changes(unknown)), wanted[group[unknown]], group[unknown]
                add(1, group[computed < compared], under)
                add(1, group[computed == compared], at)
            below[some], equal[some] = under.reshape(-1, candidates.size), at.reshape(-1, candidates.size)

        _in_pieces(find, np.arange(rows.nodes.size), None, candidates.size**2)
        return below, equal

    def _cuts(self, values: FloatArray, windows: int, starts: IntArray) -> Cuts:
        """Return cuts at some values, which are as many in each window."""
        bounds = self.bounds(values)
        low, high = (bounds[:, side].reshape(len(bounds), windows, -1).swapaxes(0, 1) for side in (0, 1))
        return Cuts(*map(read_only, (low, high, starts)))

    def _moves(self, rows: JudgedNodes, candidates: IntArray, judges: Judges, cuts: Cuts) -> Iterator[_Moves]:
        """Run the kernel over rows; yield what it lists each time that its space is used up."""
        from napsets.kernels.candidates import list_moves

        judges = Judges(*map(read_only, judges))
        room, space = room_for(self.order.size, max(_LISTED, candidates.size * self.order.size))
        table, wanted, first = read_only(np.stack(rows, axis=1)), read_only(candidates), 0
        while first < rows.nodes.size:
            first, count = list_moves(first, table, wanted, self.links, judges, self.rule, cuts, room, space)
            if count:
                group, judge, lowest, highest = space.numbers[:count].T
                near, far = space.values[:count].T
                yield _Moves(group, judge, lowest, highest, near, far, rows, candidates)

    def _choose(
        self, moves: _Moves, needed: IntArray, cut: FloatArray, starts: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Return the groups that have moves, and the wanted score of each: NaN where it is beyond all cuts."""
        positions, size = 2 * cut.size + 1, self.scores.size
        # How many scores are at each position, and where each judge is, before anything changes.
        base = np.zeros(positions, dtype=np.int64)
        base[[0, -1]], base[1::2] = (starts[0], size - starts[-1]), np.diff(starts)
        home = np.clip(2 * np.searchsorted(starts, self.order, "right") - 1, 0, positions - 1)
        present = np.zeros(moves.rows.nodes.size * moves.candidates.size, dtype=bool)
        present[moves.group] = True
        groups, at = np.flatnonzero(present), (np.cumsum(present) - 1)[moves.group]

        def counted(which: IntArray) -> IntArray:
            counts = np.bincount(at * positions + which, minlength=groups.size * positions)
            return counts.reshape(groups.size, positions)

        row = groups // moves.candidates.size
        stay, own = base - counted(home[moves.judge]), moves.rows.owns[row]
        mine = np.flatnonzero(own >= 0)
        stay[mine, home[own[mine]]] -= 1
        least, most = (
            (np.cumsum(stay + counted(side), axis=1) < needed[row, None]).sum(axis=1)
            for side in (moves.lowest, moves.highest)
        )
        chosen = np.where((least == most) & (least % 2 == 1), cut[np.minimum(least // 2, cut.size - 1)], np.nan)
        beyond = ((least == 0) & (starts[0] > 0)) | ((most == positions - 1) & (starts[-1] < size))
        unknown = np.flatnonzero(np.isnan(chosen) & ~beyond)
        # The wanted score is one of those that are between the two positions, or may be.
        number = np.full(groups.size, -1)
        number[unknown] = np.arange(unknown.size)
        listed = np.flatnonzero((number[at] >= 0) & (moves.highest >= least[at]) & (moves.lowest <= most[at]))
        passed = np.bincount(at[moves.highest < least[at]], minlength=groups.size)[unknown]
        stay, order = stay[unknown], np.arange(positions)
        before = order < least[unknown, None]
        which, where = np.nonzero((stay > 0) & ~before & (order <= most[unknown, None]))
        chosen[unknown] = choose_listed(
            np.append(number[at[listed]], which),
            np.append(self.compute(moves.changes(listed)), cut[where // 2]),
            np.append(np.ones(listed.size, dtype=np.int64), stay[which, where]),
            needed[row[unknown]] - passed - (stay * before).sum(axis=1),
        )
        return groups, chosen


def _in_pieces(find: Callable[[IntArray], None], rows: IntArray, threads: int | None, entries: int) -> None:
    """Let threads find what belongs to some rows each, which have so many entries in tables."""
    count = available_threads(threads)
    step = max(1, min(_ROWS, _ENTRIES // entries, max(_ROWS // 2, -(-rows.size // (4 * count)))))

    def work(start: int, stop: Stop) -> None:
        find(rows[start : start + step])

    pieces = ((min(step, rows.size - start), partial(work, start)) for start in range(0, rows.size, step))
    run(pieces, threads=count, total=rows.size)
