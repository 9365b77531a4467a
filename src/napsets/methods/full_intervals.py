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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.levels import rank_place
from napsets.methods.full import BagLevel, FullLevel
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
    return (FullIntervals if numbers else FullLevel)(calibrated.scored, informed, judges)


class _EvidencePairs(NamedTuple):
    """Pairs of a row and a judge that has its node as evidence, and how much its target counts near and far."""

    row: IntArray
    place: IntArray
    counts: FloatArray


@dataclass(frozen=True, eq=False)
class FullIntervals(BagLevel):
    """The scores of the targets held out, and how candidates change them."""

    informed: BoundInformedIntervals

    @property
    def _bag(self) -> Any:
        return self.informed.bag

    @cached_property
    def _scores(self) -> FloatArray:
        scores: FloatArray = self.scored.level_scores[self.judges]
        return scores

    @cached_property
    def _columns(self) -> list[int]:
        """The outputs that residuals may shift: the lower and the upper one, or the prediction."""
        return sorted(self.informed.score.quantiles)

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights of mean residuals in these outputs, shape (outputs, hops)."""
        return self.informed.coefficients[self._columns, 1 + self.informed.model.shape[1] :]

    @cached_property
    def _links(self) -> tuple[Any, Any]:
        """What nodes pass on to those that have them as neighbours, and which judges have each node as one."""
        import scipy.sparse

        graph = self.scored.reference.graph
        size, reverse = graph.num_nodes, graph.reverse  # row v: the nodes that have v as a neighbour
        shares = 1.0 / np.maximum(graph.degrees, 1)
        shares[self._bag.crowded] = 0.0
        every = scipy.sparse.csr_array((np.ones(reverse.indices.size), reverse.indices, reverse.indptr), (size, size))
        inside = scipy.sparse.csr_array(
            (np.ones(self._nodes.size), (self._nodes, np.arange(self._nodes.size))), (size, self._nodes.size)
        )
        direct = (every @ inside).tocsr()
        if self.informed.hops == 1:
            return None, direct
        between = (every @ scipy.sparse.dia_array((shares[None], [0]), (size, size))).tocsr()
        between.eliminate_zeros()
        return between, direct

    def _pieces(self, nodes: IntArray) -> Iterator[slice]:
        """Yield slices of rows that have at most `_PAIRS` pairs of a node and a judge."""
        between, direct = self._links
        pair_counts = np.diff(direct.indptr) + 1.0
        if between is not None:
            pair_counts += (between != 0) @ np.diff(direct.indptr)
        reach = np.cumsum(pair_counts[nodes])
        start = 0
        while start < nodes.size:
            before = reach[start - 1] if start else 0.0
            stop = max(start + 1, int(np.searchsorted(reach, before + _PAIRS, side="right")))
            yield slice(start, stop)
            start = stop

    def _evidence_pairs(self, nodes: IntArray) -> _EvidencePairs:
        """Return for which other judges the target of each node is evidence; reference nodes add nothing."""
        between, direct = self._links
        rows = direct[nodes].astype(np.complex128)
        if between is not None:
            rows = rows + 1j * (between[nodes] @ direct)
        rows = rows.tocsr()
        row = np.repeat(np.arange(nodes.size), np.diff(rows.indptr))
        place = rows.indices.astype(np.int64)
        counts = np.column_stack([rows.data.real, rows.data.imag])[:, : self.informed.hops]
        is_reference = np.zeros(self._place_of.size, dtype=bool)
        is_reference[self.scored.reference.nodes] = True
        kept = np.flatnonzero((self._nodes[place] != nodes[row]) & ~is_reference[nodes[row]] & (counts > 0).any(axis=1))
        return _EvidencePairs(row[kept], place[kept], counts[kept])

    def _lines(self, nodes: IntArray, pairs: _EvidencePairs) -> tuple[FloatArray, FloatArray]:
        """Return intercepts and slopes of the outputs of judges as functions of a near node's target."""
        informed, bag = self.informed, self._bag
        node, member = nodes[pairs.row], self.judges[pairs.place]
        centre = informed.score.centre(informed.model[node])
        sums = bag.sums[member]
        known = np.full(self._place_of.size, np.nan)
        known[bag.labelled.nodes] = bag.labelled.labels
        inside = ~np.isnan(known[node])  # whose target is evidence already, and is subtracted
        residuals = np.where(inside, known[node] - centre, 0.0)
        total = sums[:, :, 0] - pairs.counts * residuals[:, None]
        count = np.where(inside[:, None], sums[:, :, 1], sums[:, :, 1] + pairs.counts) + RESIDUAL_PRIOR
        judge = bag.labelled.nodes[member]
        before = sums[:, :, 0] / (sums[:, :, 1] + RESIDUAL_PRIOR)
        now = (total - pairs.counts * centre[:, None]) / count
        start = informed.outputs[judge][:, self._columns] + (now - before) @ self._weights.T
        return start, (pairs.counts / count) @ self._weights.T

    def thresholds(  # noqa: D102  (one thread does it all)
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None, threads: int | None, report: Any
    ) -> tuple[FloatArray, FloatArray]:
        values = np.empty((len(alphas), nodes.size, 2))
        for piece in self._pieces(nodes):
            values[:, piece] = self._of_rows(nodes[piece], alphas)
            if report is not None:
                report(piece.stop, nodes.size)
        return values.max(axis=2), values

    def affected_judges(self, node: int) -> IntArray:  # noqa: D102
        return self._nodes[self._evidence_pairs(np.array([node])).place]

    def _of_rows(self, nodes: IntArray, alphas: Sequence[float]) -> FloatArray:
        pairs = self._evidence_pairs(nodes)
        lines = self._lines(nodes, pairs)
        score, outputs = self.informed.score, self.informed.outputs[nodes]
        low, high = (outputs[:, self._columns].min(axis=1), outputs[:, self._columns].max(axis=1))
        spread = score.spread(outputs)
        least = (low - high) / (2.0 * spread)  # the score of the middle
        own = self._place_of[nodes]
        leaving = np.flatnonzero(own >= 0)
        gone_rows = np.concatenate([pairs.row, leaving])
        gone = self._scores[np.concatenate([pairs.place, own[leaving]])]
        count = self._scores.size - (own >= 0)
        values = np.empty((len(alphas), nodes.size, 2))
        for side, (end, sign) in enumerate(((low, -1.0), (high, 1.0))):
            steps = _Steps(nodes.size, least)
            steps.add(gone_rows, np.full(gone.size, -np.inf), gone, -1.0)
            for start, stop, weight in self._at_least(pairs, lines, end[pairs.row], (sign * spread)[pairs.row]):
                steps.add(pairs.row, start, stop, weight)
            steps.sort()
            for a, alpha in enumerate(alphas):
                needed = np.array([rank_place(int(size), alpha) for size in (self._scores.size, self._scores.size - 1)])
                place = needed[(own >= 0).astype(np.int64)]
                last = steps.last(self._sorted[0], count - place + 1)
                values[a, :, side] = np.where(place > count, np.inf, np.maximum(last, least))
        return values

    def _at_least(
        self, pairs: _EvidencePairs, lines: tuple[FloatArray, FloatArray], end: FloatArray, slope: FloatArray
    ) -> list[tuple[FloatArray, FloatArray, float]]:
        """Return between which t each judge's score is at least t, where the candidate is end + slope·t.

        As three intervals with weights: two of which at least one must hold, less where both do.
        """
        judge = self._nodes[pairs.place]
        target = self._bag.labelled.labels[self.judges[pairs.place]][:, None]
        spread = self.informed.score.spread(self.informed.outputs[judge])[:, None]
        intercepts, slopes = lines
        start, rise = intercepts + slopes * end[:, None], slopes * slope[:, None]
        size = np.abs(intercepts) + np.abs(slopes * end[:, None]) + np.abs(target)
        above = _between(start - target, rise - spread, size)
        below = _between(target - start, -rise - spread, size)
        both = np.maximum(above[0], below[0]), np.minimum(above[1], below[1])
        return [(*above, 1.0), (*below, 1.0), (*both, -1.0)]


def _between(start: FloatArray, rise: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between which t all of start + rise·t are at least 0, for every column, rounded outward."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -start / rise
        slack = _ROUNDING * (size / np.abs(rise) + np.abs(crossing))
    flat = np.where(start >= 0, -np.inf, np.inf)
    first = np.where(rise > 0, crossing - slack, np.where(rise < 0, -np.inf, flat))
    last = np.where(rise < 0, crossing + slack, np.where(rise > 0, np.inf, -flat))
    return first.max(axis=1), last.min(axis=1)


class _Steps:
    """Step functions of t, one per row, from where each row starts."""

    def __init__(self, rows: int, least: FloatArray) -> None:
        self.least = least
        self.parts = [(np.arange(rows), least, np.zeros(rows))]

    def add(self, row: IntArray, start: FloatArray, stop: FloatArray, weight: float) -> None:
        """Add so much between two values of t, for each of some rows."""
        start = np.maximum(start, self.least[row])
        kept = stop > start
        self.parts.append((row[kept], start[kept], np.full(int(kept.sum()), weight)))
        kept &= np.isfinite(stop)
        self.parts.append((row[kept], stop[kept], np.full(int(kept.sum()), -weight)))

    def sort(self) -> None:
        """Put the steps in order: where pieces of each row start and end, and how high the function is there."""
        row, at, change = (np.concatenate([part[k] for part in self.parts]) for k in range(3))
        order = np.lexsort((at, row))
        self.row, self.start, height = row[order], at[order], np.cumsum(change[order])
        self.first = np.searchsorted(self.row, np.arange(self.least.size))
        height -= np.append(0.0, height)[self.first][self.row]  # what earlier rows left
        self.height = np.rint(height).astype(np.int64)
        self.end = np.append(self.start[1:], np.inf)
        self.end[np.append(self.first[1:], self.row.size) - 1] = np.inf

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
