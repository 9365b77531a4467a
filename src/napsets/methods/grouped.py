"""A calibration for each group: thresholds of groups of labels, or of groups of nodes.

At a nominal level, a group's thresholds are made from its own labelled nodes alone. At an exact one, all reference
nodes serve all groups, and the labels kept apart that are in the group set its level. Either way a group's coverage
rests on its own labels. Groups that have too few of them for a finite threshold are judged together, with all that is
in no group, as if they were one; where that one has too few as well, by all labelled nodes. (Were they judged by all at
once, the large and easy groups would lower a threshold that is for small and hard ones alone, and coverage would fall
short over all.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from napsets.checks.arguments import FloatArray, IntArray
from napsets.checks.frozen import Sealed
from napsets.groups import Grouping
from napsets.levels import fewest_ranks
from napsets.localisers import LocalThresholds

__all__ = ["Grouped"]

#: The calibrations of groups are kept for the next who asks, as long as they hold no more entries than this.
_KEPT_ENTRIES = 20_000_000
#: The number of the group of all that is left.
REST = -1

#: What finds the thresholds of several calibrations of the same nodes.
Find = Callable[[Sequence[Any], IntArray, Sequence[float]], list[LocalThresholds]]


@dataclass(frozen=True, eq=False)
class Grouped(Sealed):
    """The groups of a calibrated method.

    Attributes
    ----------
    grouping : Grouping
        Which group each label or node is in.
    everyone : Calibrated
        The same method without groups.
    members, apart : numpy.ndarray
        The group of each reference node, and of each node kept apart.
    shares : numpy.ndarray
        The ranks of the nodes kept apart.
    """

    grouping: Grouping
    everyone: Any
    members: IntArray
    apart: IntArray
    shares: FloatArray
    _parts: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> IntArray:
        """How many labels the thresholds of each group rest on."""
        inside = self.apart if self.everyone.is_exact else self.members
        return np.bincount(inside[inside >= 0], minlength=self.grouping.count)

    def suffice(self, alpha: float) -> Any:
        """Return which groups have labels enough for a threshold of their own."""
        return self.sizes >= fewest_ranks(alpha)

    def _left(self, alpha: float) -> Any:
        """Return which groups are judged together, the last entry for what is in none; None where all judge them."""
        short = np.append(~self.suffice(alpha), True)
        inside = self.apart if self.everyone.is_exact else self.members
        enough = int(short[inside].sum()) >= fewest_ranks(alpha)
        return short if enough and not short.all() else None

    def rest(self, alpha: float) -> Any:
        """Return the calibration of what has no group, or one with too few labels: by their own labels, if enough."""
        short = self._left(alpha)
        return self.everyone if short is None else self._make(short)

    def part(self, group: int) -> Any:
        """Return the calibration of one group."""
        found = self._parts.get(group)
        if found is None:
            only = np.zeros(self.grouping.count + 1, dtype=bool)
            only[group] = True
            found = self._make(only)
            if (len(self._parts) + 1) * self.everyone.num_nodes <= _KEPT_ENTRIES:
                self._parts[group] = found
        return found

    def _make(self, groups: Any) -> Any:
        """Return the calibration of some groups together; the last entry stands for what is in none."""
        whole = self.everyone
        method, scored = whole.method, whole.scored
        if whole.is_exact:
            mine = groups[self.apart]
            level = method.level.fit(scored.reference, self.shares[mine], scored.apart_scores[mine])
            return replace(whole, level=level)
        mine = groups[self.members]
        nodes, scores = scored.reference.nodes[mine], scored.reference.scores[mine]
        return method.on(replace(scored, reference=replace(scored.reference, nodes=nodes, scores=scores)))

    def judge(self, node: int, alpha: float) -> Any:
        """Return the calibration by which a node is judged; where labels are grouped, that of all."""
        if self.grouping.of == "node":
            group = int(self.grouping.groups[node])
            return self.part(group) if group >= 0 and self.suffice(alpha)[group] else self.rest(alpha)
        return self.everyone

    def thresholds(self, nodes: IntArray, alphas: Sequence[float], find: Find) -> LocalThresholds:
        """Return the thresholds of nodes, or of nodes and groups of labels."""
        suffice = np.stack([self.suffice(alpha) for alpha in alphas])
        of = self._of_nodes if self.grouping.of == "node" else self._of_labels
        return of(nodes, alphas, suffice, find)

    def _of_nodes(self, nodes: IntArray, alphas: Sequence[float], suffice: Any, find: Find) -> LocalThresholds:
        groups = self.grouping.groups[nodes]
        shape = (len(alphas), nodes.size)
        values, support, effective = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape)
        enough = np.column_stack([suffice, np.zeros(len(alphas), dtype=bool)])  # the last is for those in none
        order = np.argsort(groups, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if nodes.size else []:
            group = int(groups[rows[0]])
            own = find([self.part(group)], nodes[rows], alphas)[0] if enough[:, group].any() else None
            for a in np.flatnonzero(enough[:, group]).tolist():
                values[a, rows] = own.values[a]  # type: ignore[union-attr]
                support[a, rows], effective[a, rows] = own.rests_on(a)  # type: ignore[union-attr]
        for a, alpha in enumerate(alphas):
            rows = np.flatnonzero(~enough[a, groups])
            if rows.size:
                left = find([self.rest(alpha)], nodes[rows], [alpha])[0]
                values[a, rows] = left.values[0]
                support[a, rows], effective[a, rows] = left.rests_on(0)
        return LocalThresholds(values, support, effective)

    def _of_labels(self, nodes: IntArray, alphas: Sequence[float], suffice: Any, find: Find) -> LocalThresholds:
        alone = np.flatnonzero(suffice.any(axis=0))
        found = find([self.part(group) for group in alone.tolist()], nodes, alphas) if alone.size else []
        places = np.zeros(self.grouping.count + 1, dtype=np.int64)  # the last is for labels in no group
        places[alone] = np.arange(1, alone.size + 1)
        groups = places[self.grouping.groups]
        values = np.empty((len(alphas), nodes.size, alone.size + 1))
        support = np.full((len(alphas), nodes.size), np.iinfo(np.int64).max)
        effective = np.full((len(alphas), nodes.size), np.inf)
        for a, alpha in enumerate(alphas):
            left = find([self.rest(alpha)], nodes, [alpha])[0] if not suffice[a, alone].all() or 0 in groups else None
            for place in np.unique(groups).tolist():
                own = place > 0 and bool(suffice[a, alone[place - 1]])
                taken, row = (found[place - 1], a) if own else (left, 0)
                values[a, :, place] = taken.values[row]  # type: ignore[union-attr]
                count, size = taken.rests_on(row)  # type: ignore[union-attr]
                support[a], effective[a] = np.minimum(support[a], count), np.minimum(effective[a], size)
            if 0 not in groups:  # nobody asks for it
                values[a, :, 0] = np.inf
        return LocalThresholds(values[:, :, np.unique(groups)].min(axis=2), support, effective, values, groups)

    def caveat(self, nodes: IntArray, alphas: Sequence[float]) -> str | None:
        """Say which groups that matter here have too few labels to be judged by themselves."""
        least = min(alphas)
        asked = np.unique(self.grouping.groups if self.grouping.of == "label" else self.grouping.groups[nodes])
        short = [group for group in asked.tolist() if group >= 0 and not self.suffice(least)[group]]
        if not short and REST not in asked:
            return None
        needed = f"{fewest_ranks(least)} labels" + (" kept apart" if self.everyone.is_exact else "")
        told = []
        if short:
            some = ", ".join(map(self._name, short[:5])) + (", …" if len(short) > 5 else "")
            what = "classes" if self.grouping.of == "label" else "groups"
            told.append(f"{len(short)} of {self.grouping.count} {what} have fewer than {needed} ({some})")
        if REST in asked:
            told.append(f"some {'classes' if self.grouping.of == 'label' else 'nodes'} are in no group")
        total = int(self.apart.size if self.everyone.is_exact else self.members.size)
        if total < fewest_ranks(least):
            result = "all labels together are too few for a threshold, and sets are full"
        elif self._left(least) is None and bool(self.suffice(least).any()):
            result = "they are too few together, all labelled nodes judge them, and nothing is promised for them"
        else:
            result = "they are judged together, and their coverage holds on their average, nearly"
        return f"{' and '.join(told)}: {result}"

    def _name(self, group: int) -> str:
        """Return what a group is called."""
        if self.grouping.names is not None:
            return repr(self.grouping.names[group])
        names = self.everyone.scored.class_names
        if names is not None and self.grouping.of == "label":
            return ", ".join(repr(names[y]) for y in np.flatnonzero(self.grouping.groups == group)[:3])
        return str(group)
