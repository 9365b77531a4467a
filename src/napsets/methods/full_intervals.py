"""Full conformal prediction of numbers: the ends of the interval, solved for, with every target as evidence.

For node v and candidate y, the bag is Q ∪ {(v, y)}: the targets held out, and the candidate. y is in the set if
T_v(y) is at most the ⌈(|Q|+1)(1−α)⌉-th smallest of the scores T_i(y) of the nodes of Q, with the candidate among their
evidence; in other words, if at least |Q| + 1 − ⌈(|Q|+1)(1−α)⌉ of them are at least T_v(y). Where v is itself in Q, its
own score is left out and the candidate stands in for its target. The target of a reference node is evidence already
and is not replaced by a candidate.

Why the ends can be solved for. v's own target is no evidence for v, so that T_v(y) = max(low − y, y − high) / spread
with fixed ends low and high: to the right of their middle y = high + spread·t has the score t, to the left low −
spread·t has. The outputs of a node i with v among its evidence are linear in y, and so in t on either side; T_i(y) ≥ t
is "the smaller output less i's target is at least spread_i·t, or i's target less the larger output is", two conditions
that each hold on an interval of t. So the number of scores that are at least t is a step function of t, and the last
t at which it is large enough is found by sorting the steps. The interval reaches from one end to the other and
always contains the middle. It contains the set, which may have gaps, so that coverage is at least 1 − α. Ends are
rounded outward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.methods.full import BagLevel, EvidencePairs, FullLevel
from napsets.scores.evidence import passed_shares
from napsets.scores.informed import evidence_of
from napsets.scores.informed_intervals import RESIDUAL_PRIOR, BoundInformedIntervals

#: Pairs of a node and a judge that uses it as evidence which are processed at a time.
_PAIRS = 1 << 20
#: How far steps are rounded outward, relative to the numbers that they are made of.
_ROUNDING = 1e-13


def bag_level(calibrated: Any) -> BagLevel | None:
    """Return what computes the thresholds of candidates, or of ends; None if no bag is evidence, as at other levels."""
    numbers = isinstance(calibrated.score, BoundInformedIntervals)
    informed: Any = calibrated.score if numbers else evidence_of(calibrated.score)
    if informed is None or informed.bag is None:
        return None
    judges = np.arange(calibrated.scored.level_nodes.size) if calibrated.judges is None else calibrated.judges
    if numbers:
        near, far, shares = 1.0, informed.hops == 2, 1.0 / np.maximum(calibrated.graph.degrees, 1)
    else:
        near, far, shares = informed.exponents.near, informed.exponents.far, passed_shares(calibrated.graph)
    shares[informed.bag.crowded] = 0.0
    kind = FullIntervals if numbers else FullLevel
    return kind(calibrated.scored, informed, judges, bool(near), shares * bool(far))


@dataclass(frozen=True, eq=False)
class FullIntervals(BagLevel):
    """The scores of the targets held out, and how candidates change them."""

    informed: BoundInformedIntervals

    @cached_property
    def _columns(self) -> list[int]:
        """The outputs that residuals may shift: the lower and the upper one, or the prediction."""
        return sorted(self.informed.score.quantiles)

    def _pieces(self, nodes: IntArray) -> list[IntArray]:
        """Return rows that have about `_PAIRS` pairs of a node and a judge together."""
        judges = np.diff(self._direct.indptr)
        passing = ((self.shares > 0) * judges).astype(np.float64)
        pairs = 1.0 + judges + self.scored.reference.graph.reverse._neighbour_sums(passing[:, None])[:, 0]
        return np.split(np.arange(nodes.size), np.flatnonzero(np.diff(np.cumsum(pairs[nodes]) // _PAIRS)) + 1)

    def _lines(self, nodes: IntArray, pairs: EvidencePairs) -> tuple[FloatArray, FloatArray]:
        """Return intercepts and slopes of the outputs of judges as functions of a near node's target."""
        informed, bag = self.informed, self.informed.bag
        assert bag is not None
        node, member = nodes[pairs.row], self.judges[pairs.place]
        counts = np.column_stack([pairs.near, pairs.far])[:, : informed.hops]
        centre = informed.score.centre(informed.model[node])
        known = np.full(self._place_of.size, np.nan)
        known[bag.labelled.nodes] = bag.labelled.labels
        inside = ~np.isnan(known[node])  # whose target is evidence already, and is subtracted
        residuals = np.where(inside, known[node] - centre, 0.0)
        sums, sizes = np.moveaxis(bag.sums[member], 2, 0)
        total = sums - counts * residuals[:, None]
        count = np.where(inside[:, None], sizes, sizes + counts) + RESIDUAL_PRIOR
        before = sums / (sizes + RESIDUAL_PRIOR)
        now = (total - counts * centre[:, None]) / count
        outputs = informed.outputs[bag.labelled.nodes[member]][:, self._columns]
        weights = informed.coefficients[self._columns, 1 + informed.model.shape[1] :].T  # of mean residuals
        return outputs + (now - before) @ weights, (counts / count) @ weights

    def thresholds(  # noqa: D102  (one thread does it all)
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None, threads: int | None, report: Any
    ) -> tuple[FloatArray, FloatArray]:
        values = np.empty((len(alphas), nodes.size, 2))
        for piece in self._pieces(nodes):
            values[:, piece] = self._of_rows(nodes[piece], alphas)
            if report is not None and piece.size:
                report(int(piece[-1]) + 1, nodes.size)
        return values.max(axis=2), values

    def _of_rows(self, nodes: IntArray, alphas: Sequence[float]) -> FloatArray:
        pairs = self._pairs(nodes)
        lines = self._lines(nodes, pairs)
        score, outputs = self.informed.score, self.informed.outputs[nodes]
        low, high = (outputs[:, self._columns].min(axis=1), outputs[:, self._columns].max(axis=1))
        spread = score.spread(outputs)
        least = (low - high) / (2.0 * spread)  # the score of the middle
        own = self._place_of[nodes]
        leaving = np.flatnonzero(own >= 0)
        gone = self._scores[np.concatenate([pairs.place, own[leaving]])]
        gone_everywhere = np.concatenate([pairs.row, leaving]), np.full(gone.size, -np.inf), gone, -1.0
        count = self._scores.size - (own >= 0)
        values = np.empty((len(alphas), nodes.size, 2))
        for side, (end, sign) in enumerate(((low, -1.0), (high, 1.0))):
            moved = self._at_least(pairs, lines, end[pairs.row], (sign * spread)[pairs.row])
            steps = _Steps.of(least, [gone_everywhere, *moved])
            for a, alpha in enumerate(alphas):
                place = self._needed(nodes, alpha)
                last = steps.last(self._sorted[0], count - place + 1)
                values[a, :, side] = np.where(place > count, np.inf, np.maximum(last, least))
        return values

    def _at_least(
        self, pairs: EvidencePairs, lines: tuple[FloatArray, FloatArray], end: FloatArray, slope: FloatArray
    ) -> list[tuple[IntArray, FloatArray, FloatArray, float]]:
        """Return between which t each judge's score is at least t, where the candidate is end + slope·t.

        As three intervals with weights: two of which at least one must hold, less where both do.
        """
        judge = self._nodes[pairs.place]
        target = self._labels[pairs.place][:, None]
        spread = self.informed.score.spread(self.informed.outputs[judge])[:, None]
        intercepts, slopes = lines
        start, rise = intercepts + slopes * end[:, None], slopes * slope[:, None]
        size = np.abs(intercepts) + np.abs(slopes * end[:, None]) + np.abs(target)
        above = _between(start - target, rise - spread, size)
        below = _between(target - start, -rise - spread, size)
        both = np.maximum(above[0], below[0]), np.minimum(above[1], below[1])
        return [(pairs.row, *above, 1.0), (pairs.row, *below, 1.0), (pairs.row, *both, -1.0)]


def _between(start: FloatArray, rise: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between which t all of start + rise·t are at least 0, for every column, rounded outward."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -start / rise
        slack = _ROUNDING * (size / np.abs(rise) + np.abs(crossing))
    flat = np.where(start >= 0, -np.inf, np.inf)
    first = np.where(rise > 0, crossing - slack, np.where(rise < 0, -np.inf, flat))
    last = np.where(rise < 0, crossing + slack, np.where(rise > 0, np.inf, -flat))
    return first.max(axis=1), last.min(axis=1)


class _Steps(NamedTuple):
    """Step functions of t, one per row: row, start, end and height of their pieces, and the first piece of each row."""

    row: IntArray
    start: FloatArray
    end: FloatArray
    height: IntArray
    first: IntArray

    @classmethod
    def of(cls, least: FloatArray, parts: Sequence[tuple[IntArray, FloatArray, FloatArray, float]]) -> _Steps:
        """Add up weights between two values of t, for some rows each; a row starts at its least t."""
        steps: Any = [(np.arange(least.size), least, np.zeros(least.size))]
        for row, start, stop, weight in parts:
            start = np.maximum(start, least[row])
            kept = stop > start
            ended = kept & np.isfinite(stop)
            steps.append((row[kept], start[kept], np.full(int(kept.sum()), weight)))
            steps.append((row[ended], stop[ended], np.full(int(ended.sum()), -weight)))
        row, at, change = map(np.concatenate, zip(*steps, strict=True))
        order = np.lexsort((at, row))
        row, start, height = row[order], at[order], np.cumsum(change[order])
        first = np.searchsorted(row, np.arange(least.size))
        height -= np.append(0.0, height)[first][row]  # what earlier rows left
        end = np.append(start[1:], np.inf)
        end[np.append(first[1:], row.size) - 1] = np.inf
        return cls(row, start, end, np.rint(height).astype(np.int64), first)

    def last(self, scores: FloatArray, needed: IntArray) -> FloatArray:
        """Return the last t of each row at which the function and the scores ≥ t are `needed` together; −∞ for none.

        Scores ascend.
        """
        missing = needed[self.row] - self.height  # so many of the scores must be at least t
        places = np.clip(scores.size - missing, 0, max(scores.size - 1, 0))
        limit = scores[places] if scores.size else np.full(places.size, -np.inf)
        limit = np.where(missing <= 0, np.inf, np.where(missing > scores.size, -np.inf, limit))
        inside = (self.end > self.start) & (limit > self.start)
        last: FloatArray = np.maximum.reduceat(np.where(inside, np.minimum(self.end, limit), -np.inf), self.first)
        return last
