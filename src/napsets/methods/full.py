"""Full conformal prediction: one threshold for each node and candidate label, with every label speaking.

For node v and candidate y, the bag is Q ∪ {(v, y)}: the labels held out, and the candidate. The threshold of (v, y) is
the ⌈(|Q|+1)(1−α)⌉-th smallest score of the nodes of Q at their labels, with the candidate among their evidence. Where
v is itself in Q, its own score is left out and the candidate stands in for its label. A reference node's label has
spoken already, and no candidate is put in its place: nothing is promised for nodes that taught the score.

Why it is cheap. v's own label is no evidence for v, so that its scores do not depend on the candidate; and those of
nodes in Q do only within two hops of v. So the scores of Q are sorted once. For each v, the nodes of Q that hear it are
listed with what it adds to their counts, and of those that hear it from two hops away only the ones whose score could
come near the threshold are scored anew: a label adds at most `slack` × the share passed on to a score, as long as no
two labels of the node change places (`Steadiness`). Beyond that window nothing can change sides, so the order statistic
inside it is exact. Where it falls outside the window, a larger one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, check_progress
from napsets.levels import Full, rank_place
from napsets.localisers import LocalThresholds
from napsets.scores.evidence import passed_shares
from napsets.scores.informed import BoundInformed, Change, evidence_of
from napsets.scores.steadiness import Steadiness, steadiness

__all__ = ["FullLevel", "full_level"]

#: How many places on either side of the threshold the first window has, and how much larger the next is.
_WINDOW, _GROWTH = 16, 8
#: Entries whose scores are computed at a time, and pairs of nodes that are looked at at a time.
_ENTRIES, _PAIRS = 1 << 20, 1 << 22
#: What a neighbour counts in the sum of both counts: more than all shares together, and exact beside them.
_NEAR = 2.0**22
#: What stands for the label of a reference node.
_TAUGHT = -2


def full_level(calibrated: Any, judges: IntArray | None = None) -> FullLevel | None:
    """Return what makes thresholds of candidates; None for methods in which the labels held out do not speak."""
    informed = evidence_of(calibrated.score)
    if not isinstance(calibrated.method.level, Full) or informed is None or informed.bag is None:
        return None
    places = np.arange(calibrated.scored.level_nodes.size) if judges is None else judges
    return FullLevel(calibrated.scored, informed, places)


@dataclass(frozen=True, eq=False)
class FullLevel:
    """The scores of the labels held out, and how candidates change them.

    Attributes
    ----------
    scored : Scored
        The nodes and their scores.
    informed : BoundInformed
        The score that hears labels.
    judges : numpy.ndarray
        Which of the level nodes set the threshold; all of them speak.
    """

    scored: Any
    informed: BoundInformed
    judges: IntArray

    @cached_property
    def _nodes(self) -> IntArray:
        nodes: IntArray = self.informed.heard.labelled.nodes[self.judges]
        return nodes

    @cached_property
    def _labels(self) -> IntArray:
        labels: IntArray = self.informed.heard.labelled.labels[self.judges]
        return labels

    @cached_property
    def _sorted(self) -> tuple[FloatArray, IntArray]:
        """The judges' scores in ascending order, and each judge's place among them."""
        scores = self.scored.level_scores[self.judges]
        order = np.argsort(scores, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return scores[order], places

    @cached_property
    def _place_of(self) -> IntArray:
        places = np.full(self.scored.reference.num_nodes, -1, dtype=np.int64)
        places[self._nodes] = np.arange(self._nodes.size)
        return places

    @cached_property
    def _label_of(self) -> IntArray:
        """The label that a candidate stands in for: −1 for none, and a mark for those of the reference, which stay."""
        labels = np.full(self._place_of.size, -1, dtype=np.int64)
        labels[self.scored.reference.nodes] = _TAUGHT
        bag = self.informed.heard.labelled
        labels[bag.nodes] = bag.labels
        return labels

    @cached_property
    def _steadiness(self) -> Steadiness:
        return steadiness(self.informed, self.judges)

    @cached_property
    def _links(self) -> tuple[Any, Any]:
        """What nodes pass on to those that have them as neighbours, and which judges have each node as one."""
        import scipy.sparse

        graph, exponents = self.scored.reference.graph, self.informed.exponents
        heard_by = graph.reverse  # row v: the nodes that have v as a neighbour
        shares = passed_shares(graph) if exponents.far else np.zeros(graph.num_nodes)
        shares[self.informed.heard.crowded] = 0.0
        mask = self._place_of[heard_by.indices] >= 0
        indptr = np.append(0, np.cumsum(mask))[heard_by.indptr]
        direct = scipy.sparse.csr_array(
            (np.ones(indptr[-1]), self._place_of[heard_by.indices[mask]], indptr),
            shape=(graph.num_nodes, self.judges.size),
        )
        # A node between that has no share to pass on, or no judge to pass it on to, leads nowhere.
        passes = (shares > 0) & (np.diff(indptr) > 0)
        mask = passes[heard_by.indices]
        kept = heard_by.indices[mask]
        between = scipy.sparse.csr_array(
            (shares[kept], kept, np.append(0, np.cumsum(mask))[heard_by.indptr]),
            shape=(graph.num_nodes, graph.num_nodes),
        )
        return between, direct

    def _pieces(self, nodes: IntArray) -> Iterator[slice]:
        """Yield some rows at a time, with so many pairs of node and judge at the most."""
        between, direct = self._links
        around = np.diff(direct.indptr)
        pairs = (between != 0) @ around if between.nnz else np.zeros(around.size)
        reach = np.cumsum(pairs[nodes] + around[nodes] + 1)
        start = 0
        while start < nodes.size:
            before = reach[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(reach, before + _PAIRS, side="right")))
            yield slice(start, stop)
            start = stop

    def _changes(self, nodes: IntArray, window: tuple[float, float]) -> tuple[IntArray, Change]:
        """Return which judges hear which rows, and what of; only those whose scores may come into the window."""
        between, direct = self._links
        exponents = self.informed.exponents
        rows = direct[nodes] * (_NEAR if exponents.near else 0.0)
        if between.nnz:
            rows = rows + between[nodes] @ direct
        rows = rows.tocsr()
        row = np.repeat(np.arange(nodes.size), np.diff(rows.indptr))
        place, amount = rows.indices.astype(np.int64), rows.data
        near = (amount >= _NEAR).astype(np.float64)
        far = amount - _NEAR * near
        asked = nodes[row]
        before = self._label_of[asked]
        kept = (self._place_of[asked] != place) & (amount > 0) & (before != _TAUGHT)
        low, high = self._raw_window(window)
        kept &= (near > 0) | self._steadiness.may_enter(place, far, before, low[place], high[place])
        chosen = np.flatnonzero(kept)
        return row[chosen], Change(place[chosen], near[chosen], far[chosen], before[chosen])

    def _raw_window(self, window: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
        """Return, for each judge, between which innermost scores its own lies in the window."""
        labels = self._labels
        if self.scored.bound is self.informed:
            return np.full(labels.size, window[0]), np.full(labels.size, window[1])
        present, which = np.unique(labels, return_inverse=True)
        low, high = (self._inverse(present, value, up) for value, up in zip(window, (False, True), strict=True))
        return low[which], high[which]

    def _inverse(self, labels: IntArray, value: float, up: bool) -> FloatArray:
        """Return an innermost score for each label, as near as can be, whose ranked score is beyond the value."""
        if not np.isfinite(value):
            return np.full(labels.size, value)
        below, above = np.full(labels.size, -1e9), np.full(labels.size, 1e9)
        for _ in range(100):
            middle = 0.5 * (below + above)
            ranked = self.scored.bound.ranked(labels, middle)
            under = ranked <= value if up else ranked < value
            below, above = np.where(under, middle, below), np.where(under, above, middle)
        return above if up else below

    def thresholds(
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None = None, *, progress: Any = None
    ) -> FloatArray:
        """Return the threshold of each candidate, shape (alphas, nodes, labels).

        Parameters
        ----------
        nodes : numpy.ndarray
            The nodes.
        alphas : sequence of float
            Error rates.
        labels : numpy.ndarray, optional
            The candidates; by default all labels.
        progress : callable, optional
            Called with the nodes done, and their number.
        """
        candidates = np.arange(self.informed.num_labels) if labels is None else labels
        report = check_progress(progress)
        values = np.empty((len(alphas), nodes.size, candidates.size))
        for piece in self._pieces(nodes):
            for a, alpha in enumerate(alphas):
                values[a, piece] = self._of_rows(nodes[piece], alpha, candidates)
            if report is not None:
                report(piece.stop, nodes.size)
        return values

    def base(self, node: int, alpha: float) -> float:
        """Return the threshold that the judges alone give a node, with no candidate among their evidence."""
        scores, place = self._sorted
        mine = int(self._place_of[node])
        others = scores if mine < 0 else np.delete(scores, place[mine])
        needed = rank_place(others.size, alpha)
        return float(others[needed - 1]) if needed <= others.size else float("inf")

    def listeners(self, node: int) -> IntArray:
        """Return the judges that hear the label of a node."""
        _, change = self._changes(np.array([node]), (-np.inf, np.inf))
        return self._nodes[change.places]

    def local_thresholds(
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None = None, *, progress: Any = None
    ) -> LocalThresholds:
        """Return the same as the thresholds of groups of labels, one label each; they rest on the judges."""
        values = self.thresholds(nodes, alphas, labels, progress=progress)
        support = self.judges.size - (self._place_of[nodes] >= 0)
        least = values.min(axis=2) if values.shape[2] else np.full(values.shape[:2], np.inf)
        return LocalThresholds(least, support, support.astype(np.float64), values, np.arange(values.shape[2]))

    def compared(
        self, nodes: IntArray, scores: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how many judges are above and at each candidate, in the bag with it, and how many there are.

        Parameters
        ----------
        nodes, labels : numpy.ndarray
            The nodes, and their candidates.
        scores : numpy.ndarray
            The scores of these candidates, shape (nodes, labels).
        """
        known, place = self._sorted
        below, upto = (np.searchsorted(known, scores, side=side).astype(np.float64) for side in ("left", "right"))
        for piece in self._pieces(nodes):
            row, change = self._changes(nodes[piece], (-np.inf, np.inf))
            wanted = scores[piece][row]
            old = known[place[change.places]][:, None]
            new = self._changed(change, labels)
            for counts, before, after in ((below, old < wanted, new < wanted), (upto, old <= wanted, new <= wanted)):
                moved = after.astype(np.float64) - before
                for column in range(labels.size):
                    counts[piece, column] += np.bincount(row, moved[:, column], minlength=nodes[piece].size)
        mine = self._place_of[nodes]
        inside = np.flatnonzero(mine >= 0)
        own = known[place[mine[inside]]][:, None]
        below[inside] -= own < scores[inside]
        upto[inside] -= own <= scores[inside]
        count = (known.size - (mine >= 0.0))[:, None]
        return count - upto, upto - below, np.broadcast_to(count, scores.shape)

    def _of_rows(self, nodes: IntArray, alpha: float, candidates: IntArray) -> FloatArray:
        scores, _ = self._sorted
        values = np.full((nodes.size, candidates.size), np.inf)
        own = self._place_of[nodes] >= 0
        needed = np.array([rank_place(scores.size - mine, alpha) for mine in (0, 1)])[own.astype(np.int64)]
        rows = np.flatnonzero(needed <= scores.size - own)
        width = _WINDOW
        while rows.size:
            ranks = np.unique(needed[rows])
            first, last = int(ranks[0]) - 1 - width, int(ranks[-1]) - 1 + width
            window = (-np.inf if first < 0 else scores[first], np.inf if last >= scores.size else scores[last])
            row, change = self._changes(nodes[rows], window)
            values[rows] = self._select(nodes[rows], needed[rows], row, change, candidates)
            outside = ((values[rows] < window[0]) | (values[rows] > window[1])).any(axis=1)
            rows, width = rows[outside], width * _GROWTH
        return values

    def _select(
        self, nodes: IntArray, needed: IntArray, row: IntArray, change: Change, candidates: IntArray
    ) -> FloatArray:
        """Return the needed-th smallest score for each node and candidate, with the changed scores in their places."""
        scores, place = self._sorted
        changed = self._changed(change, candidates)
        mine = self._place_of[nodes]
        leaving = np.flatnonzero(mine >= 0)
        removed = _Removed(
            np.concatenate([row, leaving]), np.concatenate([place[change.places], place[mine[leaving]]]), nodes.size
        )
        return _order_statistics(scores, removed, needed, row, changed)

    def _changed(self, change: Change, candidates: IntArray) -> FloatArray:
        """Return the scores that candidates give the judges that hear them, shape (entries, candidates)."""
        row = change.places
        step = max(1, _ENTRIES // (candidates.size * self.informed.num_labels))
        changed = np.empty((row.size, candidates.size))
        for start in range(0, row.size, step):
            part = slice(start, start + step)
            some = change.part(part)
            raw = self.informed.scores_with(some._replace(places=self.judges[some.places]), candidates)
            own = np.repeat(self._labels[some.places], candidates.size)
            changed[part] = self.scored.bound.ranked(own, raw.reshape(-1)).reshape(raw.shape)
        return changed


class _Removed:
    """For each row, some places of a sorted array that are left out."""

    def __init__(self, rows: IntArray, places: IntArray, count: int) -> None:
        order = np.lexsort((places, rows))
        self.starts = np.searchsorted(rows[order], np.arange(count + 1))
        places, rows = places[order], rows[order]
        # Each row's numbers in a range of its own, so that one search serves all rows.
        self.span = int(places.max(initial=0)) + 2
        self.keys = rows * self.span + places
        self.shifts = rows * self.span + (places - (np.arange(places.size) - self.starts[rows]))

    def before(self, rows: IntArray, places: IntArray) -> IntArray:
        """Return how many of a row's places are below each of some places."""
        wanted = rows * self.span + np.minimum(places, self.span - 1)
        return np.searchsorted(self.keys, wanted, side="left") - self.starts[rows]

    def kept(self, rows: IntArray, numbers: IntArray) -> IntArray:
        """Return the place of the numbers-th entry, from 0, that is left in each row."""
        wanted = rows * self.span + np.minimum(numbers, self.span - 1)
        return numbers + np.searchsorted(self.shifts, wanted, side="right") - self.starts[rows]


def _order_statistics(
    scores: FloatArray, removed: _Removed, needed: IntArray, row: IntArray, changed: FloatArray
) -> FloatArray:
    """Return the needed-th smallest, from 1, of the scores without those removed and with those changed.

    Parameters
    ----------
    scores : numpy.ndarray
        Scores in ascending order.
    removed : _Removed
        Which of them do not count for which row.
    needed : numpy.ndarray
        One number per row.
    row, changed : numpy.ndarray
        For some rows, in ascending order, scores that count beside: shape (entries,) and (entries, columns).
    """
    every, columns = np.arange(needed.size), changed.shape[1]
    starts = np.searchsorted(row, np.append(every, needed.size))
    filled = np.flatnonzero(np.diff(starts))
    # No score's number moves further than this, so that most of them are surely below the wanted one, or above.
    left_out = np.diff(removed.starts)
    low, high = (needed - np.diff(starts) - left_out)[row], (needed + left_out)[row]
    values = np.full((needed.size, columns), -np.inf)
    for column in range(columns):
        score, at = changed[:, column], np.searchsorted(scores, changed[:, column], side="left")
        below = at < low
        among = np.bincount(row[below], minlength=needed.size)
        if filled.size:
            values[filled, column] = np.maximum.reduceat(np.where(below, score, -np.inf), starts[filled])
        open_ = np.flatnonzero(~below & (at < high))
        open_ = open_[np.lexsort((score[open_], row[open_]))]
        mine = row[open_]
        # The number of scores before each of these: those that did not change, and those that did.
        first = np.searchsorted(mine, every)
        before = at[open_] - removed.before(mine, at[open_]) + among[mine] + (np.arange(mine.size) - first[mine])
        counted = np.bincount(mine[before < needed[mine]], minlength=needed.size)
        some = np.flatnonzero(counted > 0)
        values[some, column] = score[open_[first[some] + counted[some] - 1]]
        unchanged = needed - among - counted
        some = np.flatnonzero(unchanged > 0)
        kept = scores[removed.kept(some, unchanged[some] - 1)]
        values[some, column] = np.maximum(values[some, column], kept)
    return values
