"""A calibration for each group: thresholds of groups of labels, or of groups of nodes.

At a nominal level, a group's thresholds are made from its own labelled nodes alone. At an exact one, all reference
nodes serve all groups, and the labels kept apart that are in the group set its level. Either way a group's coverage
rests on its own labels; one that has too few of them for a finite threshold is judged by all, like those in no group.
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

#: The calibrations of so many groups are kept for the next who asks.
_KEPT = 64

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

    def part(self, group: int) -> Any:
        """Return the calibration of one group."""
        found = self._parts.get(group)
        if found is None:
            found = self._make(group)
            if len(self._parts) < _KEPT:
                self._parts[group] = found
        return found

    def _make(self, group: int) -> Any:
        whole = self.everyone
        method, scored = whole.method, whole.scored
        if whole.is_exact:
            mine = self.apart == group
            level = method.level.fit(scored.reference, self.shares[mine], scored.apart_scores[mine])
            return replace(whole, level=level)
        mine = self.members == group
        nodes, scores = scored.reference.nodes[mine], scored.reference.scores[mine]
        return method.on(replace(scored, reference=replace(scored.reference, nodes=nodes, scores=scores)))

    def judge(self, node: int, alpha: float) -> Any:
        """Return the calibration by which a node is judged; where labels are grouped, that of all."""
        if self.grouping.of == "node":
            group = int(self.grouping.groups[node])
            if group >= 0 and self.suffice(alpha)[group]:
                return self.part(group)
        return self.everyone

    def thresholds(self, nodes: IntArray, alphas: Sequence[float], find: Find) -> LocalThresholds:
        """Return the thresholds of nodes, or of nodes and groups of labels."""
        suffice = np.stack([self.suffice(alpha) for alpha in alphas])
        of = self._of_nodes if self.grouping.of == "node" else self._of_labels
        return of(nodes, alphas, suffice, find)

    def _of_nodes(self, nodes: IntArray, alphas: Sequence[float], suffice: Any, find: Find) -> LocalThresholds:
        groups = self.grouping.groups[nodes]
        values = np.empty((len(alphas), nodes.size))
        support = np.empty((len(alphas), nodes.size), dtype=np.int64)
        effective = np.empty((len(alphas), nodes.size))
        alone = np.where(groups >= 0, suffice.any(axis=0)[groups] if self.grouping.count else False, False)
        for group in (-1, *np.unique(groups[alone]).tolist()):
            rows = np.flatnonzero(groups == group if group >= 0 else ~alone)
            if not rows.size:
                continue
            own = find([self.everyone if group < 0 else self.part(group)], nodes[rows], alphas)[0]
            short = [a for a in range(len(alphas)) if group >= 0 and not suffice[a, group]]
            pooled = find([self.everyone], nodes[rows], alphas)[0] if short else own
            for a in range(len(alphas)):
                taken = pooled if a in short else own
                values[a, rows] = taken.values[a]
                support[a, rows], effective[a, rows] = taken.rests_on(a)
        return LocalThresholds(values, support, effective)

    def _of_labels(self, nodes: IntArray, alphas: Sequence[float], suffice: Any, find: Find) -> LocalThresholds:
        alone = np.flatnonzero(suffice.any(axis=0))
        found = find([self.everyone, *map(self.part, alone.tolist())], nodes, alphas)
        shape = (len(alphas), nodes.size, len(found))
        values, support, effective = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape)
        for place in range(len(found)):
            for a in range(len(alphas)):
                taken = found[place if place and suffice[a, alone[place - 1]] else 0]
                values[a, :, place] = taken.values[a]
                support[a, :, place], effective[a, :, place] = taken.rests_on(a)
        places = np.zeros(self.grouping.count + 1, dtype=np.int64)  # the last is for labels in no group
        places[alone] = np.arange(1, alone.size + 1)
        groups = places[self.grouping.groups]
        used = np.unique(groups)
        return LocalThresholds(
            values[:, :, used].min(axis=2),
            support[:, :, used].min(axis=2),
            effective[:, :, used].min(axis=2),
            values,
            groups,
        )

    def caveat(self, alphas: Sequence[float]) -> str | None:
        """Say which groups have too few labels to be judged by themselves."""
        least = min(alphas)
        short = np.flatnonzero(~self.suffice(least))
        loose = bool((self.grouping.groups < 0).any())
        if not short.size and not loose:
            return None
        what = "classes" if self.grouping.of == "label" else "groups"
        needed = f"{fewest_ranks(least)} labels" + (" kept apart" if self.everyone.is_exact else "")
        told = []
        if short.size:
            some = ", ".join(map(str, short[:5])) + (", …" if short.size > 5 else "")
            told.append(f"{short.size} of {self.grouping.count} groups have fewer than {needed} (group {some})")
        if loose:
            none = int((self.grouping.groups < 0).sum())
            told.append(f"{none} {'classes' if what == 'classes' else 'nodes'} are in no group")
        return (
            f"{' and '.join(told)}: all labelled nodes judge them together, and their coverage holds on the average "
            f"over all nodes only"
        )
