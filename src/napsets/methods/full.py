"""Full conformal prediction: one threshold for each node and candidate label, with every label as evidence.

For node v and candidate y, the bag is Q ∪ {(v, y)}: the held-out labels, and the candidate. The threshold of (v, y) is
the ⌈(|Q|+1)(1−α)⌉-th smallest score of the nodes of Q at their labels, with the candidate among their evidence. Where
v is itself in Q, its own score is left out and the candidate stands in for its label. The label of a
reference node is evidence already and is not replaced by a candidate: nothing is guaranteed for these nodes.

Why it is cheap. v's own label is no evidence for v, so the scores of v do not depend on the candidate; and of the
scores of Q, only those of nodes within two hops of v do. So the scores of Q are computed and sorted once, and
`napsets.methods.moves` determines which of them a candidate moves past the wanted one. For small inputs, and for scores
of which too little is known, NumPy computes every score of every bag.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.kernels.candidates import EvidenceLinks
from napsets.kernels.layout import read_only
from napsets.kernels.threads import Kernels
from napsets.levels import rank_place
from napsets.localisers import LocalThresholds
from napsets.methods.moves import REFERENCE_LABEL, JudgedNodes, Search, judge_tables
from napsets.scores.informed import AddedCounts, BoundInformed

#: Entries whose scores are computed at a time, and scores of bags that NumPy holds at a time.
_ENTRIES, _DENSE = 1 << 20, 1 << 22
#: The kernels, and about what NumPy needs for one score of a bag, and for one that changes, in nanoseconds.
_KERNELS = Kernels(1.5, "candidates.list_moves")
_HELD, _CHANGED = 30.0, 800.0


class EvidencePairs(NamedTuple):
    """Pairs of a row and a judge for which its node is evidence, and what its label adds to the counts of the judge."""

    row: IntArray
    place: IntArray
    near: FloatArray
    far: FloatArray


@dataclass(frozen=True, eq=False)
class BagLevel(ABC):
    """The scores of the held-out labels, or targets, where these are evidence too."""

    scored: Any  #: the nodes and their scores
    informed: Any  #: the score that uses them as evidence
    judges: IntArray  #: which of the level nodes set the threshold; all of them are evidence
    near: bool  #: whether the labels of neighbours are evidence
    shares: FloatArray  #: the share of a held-out neighbour's label that each node passes on to its other neighbours

    @abstractmethod
    def thresholds(
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None, threads: int | None, report: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return a threshold per node, shape (alphas, nodes), and those of each candidate, or of the two ends."""

    def affected_judges(self, node: int) -> IntArray:
        """Return the judges that have the label, or the target, of a node among their evidence."""
        return self._nodes[self._pairs(np.array([node])).place]

    def local_thresholds(
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None, threads: int | None, report: Any
    ) -> LocalThresholds:
        """Return thresholds of groups, one for each candidate (by default all labels) or end; they rest on judges."""
        values, by_group = self.thresholds(nodes, alphas, labels, threads, report)
        support = self.judges.size - (self._place_of[nodes] >= 0)  # all judges but the node itself
        return LocalThresholds(values, support, support.astype(np.float64), by_group, np.arange(by_group.shape[2]))

    @cached_property
    def _nodes(self) -> IntArray:
        nodes: IntArray = self.informed.bag.labelled.nodes[self.judges]
        return nodes

    @cached_property
    def _labels(self) -> IntArray:
        labels: IntArray = self.informed.bag.labelled.labels[self.judges]
        return labels

    @cached_property
    def _scores(self) -> FloatArray:
        scores: FloatArray = self.scored.level_scores[self.judges]
        return scores

    @cached_property
    def _sorted(self) -> tuple[FloatArray, IntArray]:
        """The judges' scores in ascending order, and each judge's number in that order."""
        order = np.argsort(self._scores, kind="stable")
        numbers = np.empty_like(order)
        numbers[order] = np.arange(order.size)
        return self._scores[order], numbers

    @cached_property
    def _place_of(self) -> IntArray:
        places = np.full(self.scored.reference.num_nodes, -1, dtype=np.int64)
        places[self._nodes] = np.arange(self._nodes.size)
        return places

    @cached_property
    def _direct(self) -> Any:
        """Which judges have each node as a neighbour: a sparse matrix of ones, shape (nodes, judges)."""
        return self.scored.reference.graph.to_scipy()[self._nodes].T.tocsr().astype(np.float64)

    def _pairs(self, nodes: IntArray) -> EvidencePairs:
        """Return for which other judges each node is evidence; the labels of reference nodes are so already."""
        sums = self._direct[nodes] * complex(self.near)  # near and far as one number, so that each pair is there once
        if self.shares.any():
            passed = self.scored.reference.graph.reverse.to_scipy()[nodes].astype(np.float64)
            passed.data = self.shares[passed.indices]
            sums = sums + 1j * (passed @ self._direct)
        sums = sums.tocoo()
        row, place = sums.row.astype(np.int64), sums.col.astype(np.int64)
        other = (self._place_of[nodes][row] != place) & ~np.isin(nodes, self.scored.reference.nodes)[row]
        kept = np.flatnonzero(other & (sums.data != 0))
        return EvidencePairs(row[kept], place[kept], sums.data.real[kept], sums.data.imag[kept])

    def _needed(self, nodes: IntArray, alpha: float) -> IntArray:
        """Return the place, counted from 1, of the wanted score among those of the judges without each node itself."""
        sizes = self.judges.size, self.judges.size - 1
        return np.array([rank_place(size, alpha) for size in sizes])[(self._place_of[nodes] >= 0).astype(np.int64)]

    def threshold_without_candidate(self, node: int, alpha: float) -> float:
        """Return the threshold that the judges alone give a node, with no candidate among their evidence."""
        scores, numbers = self._sorted
        mine = int(self._place_of[node])
        others = scores if mine < 0 else np.delete(scores, numbers[mine])
        needed = rank_place(others.size, alpha)
        return float(others[needed - 1]) if needed <= others.size else float("inf")


@dataclass(frozen=True, eq=False)
class FullLevel(BagLevel):
    """The scores of the held-out labels, and how candidates change them."""

    informed: BoundInformed

    @cached_property
    def _label_of(self) -> IntArray:
        """The held-out label that a candidate replaces: −1 if there is none, `REFERENCE_LABEL` for reference nodes."""
        labels = np.full(self._place_of.size, -1, dtype=np.int64)
        labels[self.scored.reference.nodes] = REFERENCE_LABEL
        bag = self.informed.required_bag.labelled
        labels[bag.nodes] = bag.labels
        return labels

    def _rows(self, nodes: IntArray) -> JudgedNodes:
        return JudgedNodes(nodes, self._place_of[nodes], self._label_of[nodes])

    def thresholds(  # noqa: D102
        self, nodes: IntArray, alphas: Sequence[float], labels: IntArray | None, threads: int | None, report: Any
    ) -> tuple[FloatArray, FloatArray]:
        candidates = np.arange(self.informed.num_labels) if labels is None else labels
        values = np.full((len(alphas), nodes.size, candidates.size), np.inf)
        rows = self._rows(nodes)
        for a, alpha in enumerate(alphas):
            needed = self._needed(nodes, alpha)
            which = np.flatnonzero(needed <= self.judges.size - (rows.owns >= 0))
            if which.size and candidates.size:
                find = self._search.thresholds if self._pays(which.size, candidates.size) else self._by_bags
                values[a, which] = find(rows.part(which), needed[which], candidates, threads)
            if report is not None:
                report((a + 1) * nodes.size // len(alphas), nodes.size)
        least = values.min(axis=2) if candidates.size else np.full(values.shape[:2], np.inf)
        return least, values

    def compared(
        self, nodes: IntArray, scores: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how many judges score above and the same as each candidate, in the bag with it, and the total."""
        rows = self._rows(nodes)
        find = self._search.counts if self._pays(nodes.size, labels.size) else self._count_in_bags
        below, equal = find(rows, scores, labels)
        count: FloatArray = np.broadcast_to((self.judges.size - (rows.owns >= 0.0))[:, None], scores.shape)
        above: FloatArray = count - below - equal
        return above, equal.astype(np.float64), count

    def _pays(self, rows: int, candidates: int) -> bool:
        """Return whether kernels are to do the work, which NumPy could do too."""
        graph, judges = self.scored.reference.graph, self.judges.size
        around = self._direct.nnz / max(1, graph.num_nodes) * (1.0 + graph.num_edges / max(1, graph.num_nodes))
        changed = _CHANGED * min(float(judges), around)
        return _KERNELS.pay(rows * candidates * (_HELD * judges + changed)) and self._search.rule.known

    def _scores_with(self, change: AddedCounts) -> FloatArray:
        """Return the scores of judges, which change lists by their places among the judges."""
        scores = np.empty(change.places.size)
        step = max(1, _ENTRIES // self.informed.num_labels)
        for start in range(0, scores.size, step):
            some = change.part(slice(start, start + step))
            raw = self.informed.scores_with(some._replace(places=self.judges[some.places]))
            scores[start : start + step] = self.scored.bound.ranked(self._labels[some.places], raw)
        return scores

    # -- by NumPy: every score of every bag ----------------------------------------------------------------------------

    def _bags(self, rows: JudgedNodes, candidates: IntArray) -> FloatArray:
        """Return the scores of the judges in every bag, shape (rows, candidates, judges); a row's own is infinite."""
        bags = np.empty((rows.nodes.size, candidates.size, self._scores.size))
        bags[:] = self._scores
        pairs: Any = (np.repeat(column, candidates.size) for column in self._pairs(rows.nodes))
        row, place, near, far = pairs
        column = np.tile(np.arange(candidates.size), row.size // max(1, candidates.size))
        bags[row, column, place] = self._scores_with(
            AddedCounts(place, near, far, rows.befores[row], candidates[column])
        )
        own = np.flatnonzero(rows.owns >= 0)
        bags[own, :, rows.owns[own]] = np.inf
        return bags

    def _some_at_a_time(self, rows: int, candidates: int) -> list[slice]:
        step = max(1, _DENSE // max(1, candidates * self.judges.size))
        return [slice(start, start + step) for start in range(0, rows, step)]

    def _by_bags(self, rows: JudgedNodes, needed: IntArray, candidates: IntArray, threads: int | None) -> FloatArray:
        values = np.empty((rows.nodes.size, candidates.size))
        for some in self._some_at_a_time(*values.shape):
            bags = np.sort(self._bags(rows.part(some), candidates), axis=2)
            values[some] = np.take_along_axis(bags, needed[some, None, None] - 1, axis=2)[:, :, 0]
        return values

    def _count_in_bags(self, rows: JudgedNodes, scores: FloatArray, candidates: IntArray) -> tuple[IntArray, IntArray]:
        below, equal = (np.empty(scores.shape, dtype=np.int64) for _ in range(2))
        for some in self._some_at_a_time(*scores.shape):
            bags, wanted = self._bags(rows.part(some), candidates), scores[some][:, :, None]
            below[some], equal[some] = (bags < wanted).sum(axis=2), (bags == wanted).sum(axis=2)
        return below, equal

    # -- by kernels: where the changed scores lie ----------------------------------------------------------------------

    @cached_property
    def _search(self) -> Search:
        reverse, direct, (scores, order) = self.scored.reference.graph.reverse, self._direct, self._sorted
        judge_rows = direct.indptr.astype(np.int64), direct.indices.astype(np.int32)
        links = EvidenceLinks(*map(read_only, (reverse.indptr, reverse.indices, *judge_rows, self.shares)))
        ranked_by_label = self.scored.bound is not self.informed  # each label's scores are ranked in their own way
        groups = range(self.informed.num_labels if ranked_by_label else 1)

        def bounds(values: FloatArray) -> FloatArray:
            return np.stack([self.scored.bound.unranked(label, values) for label in groups])

        judges, rule = judge_tables(self.informed, self.judges, self._labels * ranked_by_label, order)
        return Search(scores, order, links, judges, rule, bounds, self._scores_with)
