"""Grouped: a calibration for each group, where coverage is to hold in every one.

At a nominal level, a group's thresholds are made from its own labelled nodes alone. At an exact one, all reference
nodes are used for all groups, and the held-out labels in the group set its level. Either way a group's coverage
depends on its own labels. Groups that have too few of them for a finite threshold are combined, together with all
nodes in no group; if that group has too few as well, all labelled nodes are used. (If all labelled nodes were used
always, the large and easy groups would lower a threshold for small and hard ones, and coverage would be too low over
all.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray, Sealed
from napsets.groups import Grouping
from napsets.kernels.threads import stages
from napsets.levels import fewest_ranks
from napsets.localisers import LocalThresholds
from napsets.methods.calibrated import find_thresholds

#: The calibrations of groups are cached as long as they have no more entries than this.
_KEPT_ENTRIES = 20_000_000
#: The number of the group of all that is left.
REST = -1


@dataclass(frozen=True, eq=False)
class Grouped(Sealed):
    """The groups of a calibrated method."""

    grouping: Grouping  #: which group each label or node is in
    everyone: Any  #: the same method without groups
    #: The group of each reference node, and of each level node.
    members: IntArray
    level_members: IntArray
    ranks: FloatArray  #: the ranks of the level nodes
    _parts: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> IntArray:
        """How many labels the thresholds of each group are based on."""
        inside = self.level_members if self.everyone.is_exact else self.members
        return np.bincount(inside[inside >= 0], minlength=self.grouping.count)

    def suffice(self, alpha: float) -> Any:
        """Return which groups have enough labels for their own threshold."""
        return self.sizes >= fewest_ranks(alpha)

    def _left(self, alpha: float) -> Any:
        """Return which groups are combined, the last entry for nodes in none; None if all labelled nodes are used."""
        short = np.append(~self.suffice(alpha), True)
        inside = self.level_members if self.everyone.is_exact else self.members
        enough = int(short[inside].sum()) >= fewest_ranks(alpha)
        return short if enough and not short.all() else None

    def rest(self, alpha: float) -> Any:
        """Return the calibration of nodes without a group or in a small one: on their own labels if possible."""
        short = self._left(alpha)
        return self.everyone if short is None else self._make(short)

    def part(self, group: int) -> Any:
        """Return the calibration of one group."""
        calibrated = self._parts.get(group)
        if calibrated is None:
            only = np.zeros(self.grouping.count + 1, dtype=bool)
            only[group] = True
            calibrated = self._make(only)
            if (len(self._parts) + 1) * self.everyone.num_nodes <= _KEPT_ENTRIES:
                self._parts[group] = calibrated
        return calibrated

    def _make(self, groups: Any) -> Any:
        """Return the calibration of some groups together; the last entry stands for what is in none."""
        whole = self.everyone
        method, scored = whole.method, whole.scored
        if whole.is_exact:
            mine = groups[self.level_members]
            level = method.level.fit(scored.reference, self.ranks[mine], scored.level_scores[mine])
            return replace(whole, level=level, judges=np.flatnonzero(mine))
        mine = groups[self.members]
        nodes, scores = scored.reference.nodes[mine], scored.reference.scores[mine]
        return method.on(replace(scored, reference=replace(scored.reference, nodes=nodes, scores=scores, labels=None)))

    def judge(self, node: int, alpha: float) -> Any:
        """Return the calibration by which a node is judged; where labels are grouped, that of all."""
        if self.grouping.of == "node":
            group = int(self.grouping.groups[node])
            return self.part(group) if group >= 0 and self.suffice(alpha)[group] else self.rest(alpha)
        return self.everyone

    def thresholds(
        self, nodes: IntArray, alphas: Sequence[float], threads: int | None, progress: Any = None
    ) -> LocalThresholds:
        """Return the thresholds of nodes, or of nodes and groups of labels."""
        suffice = np.stack([self.suffice(alpha) for alpha in alphas])
        of = self._of_nodes if self.grouping.of == "node" else self._of_labels
        if self.grouping.of == "label" and self.everyone.full is not None:
            of = self._of_candidates
        return of(nodes, alphas, suffice, threads, progress)

    def _of_nodes(
        self, nodes: IntArray, alphas: Sequence[float], suffice: Any, threads: int | None, progress: Any
    ) -> LocalThresholds:
        groups = self.grouping.groups[nodes]
        shape = (len(alphas), nodes.size)
        values, support, effective = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape)
        # Candidates have thresholds of their own at a full level; of an interval, its two ends do.
        labels = self.everyone.scored.bound.num_labels or 2 if self.everyone.full is not None else 0
        by_label = np.empty((*shape, labels))
        enough = np.column_stack([suffice, np.zeros(len(alphas), dtype=bool)])  # the last is for those in none
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if nodes.size else []
        # Rows that are searched together, their group, and the error rates at which it has enough labels.
        searches = [(rows, int(groups[rows[0]]), np.flatnonzero(enough[:, groups[rows[0]]]).tolist()) for rows in parts]
        searches += [(np.flatnonzero(~enough[a, groups]), REST, [a]) for a in range(len(alphas))]
        searches = [(rows, group, rates) for rows, group, rates in searches if rows.size and rates]
        reports = stages(progress, [rows.size for rows, _, _ in searches], nodes.size)
        for (rows, group, rates), report in zip(searches, reports, strict=True):
            part = self.rest(alphas[rates[0]]) if group == REST else self.part(group)
            wanted = [alphas[a] for a in rates]
            own = find_thresholds([part], nodes[rows], wanted, threads=threads, progress=report)[0]
            for row, a in enumerate(rates):
                values[a, rows] = own.values[row]
                support[a, rows], effective[a, rows] = own.rests_on(row)
                if own.by_group is not None:
                    by_label[a, rows] = own.by_group[row]
        if not labels:
            return LocalThresholds(values, support, effective)
        return LocalThresholds(values, support, effective, by_label, np.arange(labels))

    def _of_labels(
        self, nodes: IntArray, alphas: Sequence[float], suffice: Any, threads: int | None, progress: Any
    ) -> LocalThresholds:
        alone = np.flatnonzero(suffice.any(axis=0))
        places = np.zeros(self.grouping.count + 1, dtype=np.int64)  # the last is for labels in no group
        places[alone] = np.arange(1, alone.size + 1)
        groups = places[self.grouping.groups]
        some_left = [not suffice[a, alone].all() or 0 in groups for a in range(len(alphas))]
        report, *reports = stages(progress, [alone.size, *map(int, some_left)], nodes.size)
        parts = [self.part(group) for group in alone.tolist()]
        thresholds = find_thresholds(parts, nodes, alphas, threads=threads, progress=report) if parts else []
        values = np.empty((len(alphas), nodes.size, alone.size + 1))
        support = np.full((len(alphas), nodes.size), np.iinfo(np.int64).max)
        effective = np.full((len(alphas), nodes.size), np.inf)
        for a, alpha in enumerate(alphas):
            left = (
                find_thresholds([self.rest(alpha)], nodes, [alpha], threads=threads, progress=reports[a])[0]
                if some_left[a]
                else None
            )
            for place in np.unique(groups).tolist():
                own = place > 0 and bool(suffice[a, alone[place - 1]])
                taken, row = (thresholds[place - 1], a) if own else (left, 0)
                values[a, :, place] = taken.values[row]  # type: ignore[union-attr]
                count, size = taken.rests_on(row)  # type: ignore[union-attr]
                support[a], effective[a] = np.minimum(support[a], count), np.minimum(effective[a], size)
            if 0 not in groups:  # no label uses column 0
                values[a, :, 0] = np.inf
        return LocalThresholds(values[:, :, np.unique(groups)].min(axis=2), support, effective, values, groups)

    def _of_candidates(
        self, nodes: IntArray, alphas: Sequence[float], suffice: Any, threads: int | None, progress: Any
    ) -> LocalThresholds:
        """Return thresholds of groups of labels where each candidate has its own."""
        groups = self.grouping.groups
        values = np.empty((len(alphas), nodes.size, groups.size))
        support = np.full((len(alphas), nodes.size), np.iinfo(np.int64).max)
        enough = np.column_stack([suffice, np.zeros(len(alphas), dtype=bool)])  # the last is for labels in none
        cells = [(a, group) for a in range(len(alphas)) for group in np.flatnonzero(suffice[a]).tolist()]
        cells += [(a, REST) for a in range(len(alphas))]
        for (a, group), report in zip(cells, stages(progress, [1] * len(cells), nodes.size), strict=True):
            labels = np.flatnonzero(~enough[a, groups] if group == REST else groups == group)
            if labels.size:
                part = self.rest(alphas[a]) if group == REST else self.part(group)
                own = find_thresholds([part], nodes, [alphas[a]], labels=labels, threads=threads, progress=report)[0]
                values[a][:, labels] = own.by_group[0]  # type: ignore[index]
                support[a] = np.minimum(support[a], own.support)
        return LocalThresholds(values.min(axis=2), support, support.astype(np.float64), values, np.arange(groups.size))

    def caveat(self, nodes: IntArray, alphas: Sequence[float]) -> str | None:
        """Say which of the groups that occur here have too few labels for their own threshold."""
        least = min(alphas)
        present = np.unique(self.grouping.groups if self.grouping.of == "label" else self.grouping.groups[nodes])
        short = [group for group in present.tolist() if group >= 0 and not self.suffice(least)[group]]
        if not short and REST not in present:
            return None
        needed = f"{fewest_ranks(least)} labels" + (" held out" if self.everyone.is_exact else "")
        reasons = []
        if short:
            some = ", ".join(map(self._name, short[:5])) + (", …" if len(short) > 5 else "")
            what = "classes" if self.grouping.of == "label" else "groups"
            reasons.append(f"{len(short)} of {self.grouping.count} {what} have fewer than {needed} ({some})")
        if REST in present:
            reasons.append(f"some {'classes' if self.grouping.of == 'label' else 'nodes'} are in no group")
        total = int(self.level_members.size if self.everyone.is_exact else self.members.size)
        if total < fewest_ranks(least):
            result = "all labels together are too few for a threshold, and sets are full"
        elif self._left(least) is None and bool(self.suffice(least).any()):
            result = "together they have too few as well: all labelled nodes set their threshold, without a guarantee"
        else:
            result = "they share a threshold, and their coverage holds approximately, on average over them"
        return f"{' and '.join(reasons)}: {result}"

    def _name(self, group: int) -> str:
        """Return what a group is called."""
        if self.grouping.names is not None:
            return repr(self.grouping.names[group])
        names = self.everyone.scored.class_names
        if names is not None and self.grouping.of == "label":
            return ", ".join(repr(names[y]) for y in np.flatnonzero(self.grouping.groups == group)[:3])
        return str(group)
