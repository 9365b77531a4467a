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
from typing import TYPE_CHECKING

import numpy as np

from napsets.checks.arguments import BoolArray, FloatArray, IntArray, Sealed
from napsets.groups import Grouping
from napsets.kernels.threads import Progress, stages
from napsets.levels import fewest_ranks
from napsets.localisers import LocalThresholds
from napsets.methods.thresholds import find_thresholds

if TYPE_CHECKING:
    from napsets.methods.calibrated import Calibrated

#: The calibrations of groups are cached as long as they have no more entries than this.
_KEPT_ENTRIES = 20_000_000
#: The number of the group of all that is left.
REST = -1


@dataclass(frozen=True, eq=False)
class Grouped(Sealed):
    """The groups of a calibrated method."""

    grouping: Grouping  #: which group each label or node is in
    everyone: Calibrated  #: the same method without groups
    #: The group of each reference node, and of each level node.
    members: IntArray
    level_members: IntArray
    ranks: FloatArray  #: the ranks of the level nodes
    _parts: dict[int, Calibrated] = field(default_factory=dict, repr=False)

    @property
    def _judges(self) -> IntArray:
        """The groups of the nodes whose labels set thresholds."""
        return self.level_members if self.everyone.is_exact else self.members

    def suffice(self, alpha: float) -> BoolArray:
        """Mark the groups with enough labels for their own threshold."""
        sizes = np.bincount(self._judges[self._judges >= 0], minlength=self.grouping.count)
        return sizes >= fewest_ranks(alpha)

    def _left(self, alpha: float) -> BoolArray | None:
        """Mark the groups that are combined, the last entry for nodes in none; None if all labelled nodes are used."""
        short = np.append(~self.suffice(alpha), True)
        enough = int(short[self._judges].sum()) >= fewest_ranks(alpha)
        return short if enough and not short.all() else None

    def rest(self, alpha: float) -> Calibrated:
        """Return the calibration of nodes without a group or in a small one: on their own labels if possible."""
        short = self._left(alpha)
        return self.everyone if short is None else self._make(short)

    def part(self, group: int) -> Calibrated:
        """Return the calibration of one group."""
        calibrated = self._parts.get(group)
        if calibrated is None:
            only = np.zeros(self.grouping.count + 1, dtype=bool)
            only[group] = True
            calibrated = self._make(only)
            if (len(self._parts) + 1) * self.everyone.num_nodes <= _KEPT_ENTRIES:
                self._parts[group] = calibrated
        return calibrated

    def _make(self, groups: BoolArray) -> Calibrated:
        """Return the calibration of several groups together; the last flag includes what is in no group."""
        whole = self.everyone
        method, scored = whole.method, whole.scored
        if whole.is_exact:
            inside = groups[self.level_members]
            level = method.level.fit(scored.reference, self.ranks[inside], scored.level_scores[inside])
            return replace(whole, level=level, judges=np.flatnonzero(inside))
        inside = groups[self.members]
        nodes, scores = scored.reference.nodes[inside], scored.reference.scores[inside]
        return method.on(replace(scored, reference=replace(scored.reference, nodes=nodes, scores=scores, labels=None)))

    def judge(self, node: int, alpha: float) -> Calibrated:
        """Return the calibration by which a node is judged; where labels are grouped, that of all."""
        if self.grouping.of == "node":
            group = int(self.grouping.groups[node])
            return self.part(group) if group >= 0 and self.suffice(alpha)[group] else self.rest(alpha)
        return self.everyone

    def thresholds(
        self, nodes: IntArray, alphas: Sequence[float], threads: int | None, progress: Progress | None = None
    ) -> LocalThresholds:
        """Return the thresholds of nodes, or of nodes and groups of labels."""
        by_label = self.grouping.of == "label"
        searches = self._searches(self.grouping.groups if by_label else self.grouping.groups[nodes], alphas)
        least, effective = np.full((2, len(alphas), nodes.size), np.inf)
        support = np.full(least.shape, np.iinfo(np.int64).max)
        by_column = np.empty((*least.shape, self.everyone.scored.bound.num_labels)) if by_label else None
        sizes = [sum(inside.size for _, inside, _ in search) for search in searches]
        for search, report in zip(searches, stages(progress, sizes, nodes.size), strict=True):
            rates = sorted({rate for _, _, group_rates in search for rate in group_rates})
            parts = find_thresholds(
                [self.rest(alphas[rates[0]]) if group == REST else self.part(group) for group, _, _ in search],
                nodes if by_label else nodes[search[0][1]],
                [alphas[a] for a in rates],
                threads=threads,
                progress=report,
            )
            for (_, inside, group_rates), part in zip(search, parts, strict=True):
                rows = slice(None) if by_label else inside
                for a in group_rates:
                    row = rates.index(a)
                    count, size = part.rests_on(row)
                    least[a, rows] = np.minimum(least[a, rows], part.values[row])
                    support[a, rows] = np.minimum(support[a, rows], count)
                    effective[a, rows] = np.minimum(effective[a, rows], size)
                    if by_column is not None:
                        by_column[a][:, inside] = part.values[row][:, None]
        if by_column is None:
            return LocalThresholds(least, support, effective)
        return LocalThresholds(least, support, effective, by_column, np.arange(by_column.shape[2]))

    def _searches(self, groups: IntArray, alphas: Sequence[float]) -> list[list[tuple[int, IntArray, list[int]]]]:
        """Return the groups that are searched together, each with its members and the error rates it has labels for."""
        enough = np.array([[*self.suffice(alpha), False] for alpha in alphas])  # the last is for those in no group
        order = np.argsort(groups, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if groups.size else []
        alone = [
            (int(groups[inside[0]]), inside, np.flatnonzero(enough[:, groups[inside[0]]]).tolist())
            for inside in members
        ]
        alone = [search for search in alone if search[2]]
        left = [(REST, np.flatnonzero(~enough[a, groups]), [a]) for a in range(len(alphas))]
        together = [alone] if self.grouping.of == "label" and alone else [[search] for search in alone]
        return together + [[search] for search in left if search[1].size]

    def caveat(self, nodes: IntArray, alphas: Sequence[float]) -> str | None:
        """Return a warning if groups of these nodes have too few labels for their own threshold."""
        least = min(alphas)
        present = np.unique(self.grouping.groups if self.grouping.of == "label" else self.grouping.groups[nodes])
        short = [group for group in present.tolist() if group >= 0 and not self.suffice(least)[group]]
        if not short and REST not in present:
            return None
        needed = f"{fewest_ranks(least)} labels" + (" held out" if self.everyone.is_exact else "")
        reasons = []
        if short:
            listed = ", ".join(map(self._name, short[:5])) + (", …" if len(short) > 5 else "")
            what = "classes" if self.grouping.of == "label" else "groups"
            reasons.append(f"{len(short)} of {self.grouping.count} {what} have fewer than {needed} ({listed})")
        if REST in present:
            reasons.append(f"some {'classes' if self.grouping.of == 'label' else 'nodes'} are in no group")
        if self._judges.size < fewest_ranks(least):
            result = "all labels together are too few for a threshold, and sets are full"
        elif self._left(least) is None and bool(self.suffice(least).any()):
            result = "together they have too few as well: all labelled nodes set their threshold, without a guarantee"
        else:
            result = "they share a threshold, and their coverage holds approximately, on average over them"
        return f"{' and '.join(reasons)}: {result}"

    def _name(self, group: int) -> str:
        """Return the name of a group."""
        if self.grouping.names is not None:
            return repr(self.grouping.names[group])
        names = self.everyone.scored.class_names
        if names is not None and self.grouping.of == "label":
            return ", ".join(repr(names[y]) for y in np.flatnonzero(self.grouping.groups == group)[:3])
        return str(group)
