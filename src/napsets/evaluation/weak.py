"""Classes and groups that are covered less than the target, by more than chance.

A method that covers 90 % of all nodes may cover 0 % of a class. For each group the tail of the law of its hits says how
often chance would cover this few: beta-binomial where other labels set the level, binomial where the same labels did
(their overall coverage is fixed, so the binomial tail is on the safe side). The tails are multiplied by the number of
groups (Bonferroni), so that among many classes none is named because of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from napsets.checks.arguments import IntArray
from napsets.evaluation.gaps import CoverageGap
from napsets.evaluation.promises import falls_short
from napsets.levels import fewest_ranks

#: How often chance alone names any group of a grouping.
ALARM = 0.01
#: A group is worth a word where it is missed this much more often than the target allows.
_WORTH = 1.5
#: Groups that are named in a sentence.
_NAMED = 5


@dataclass(frozen=True)
class WeakGroup:
    """A group that is covered less than the target, by more than chance.

    Attributes
    ----------
    what : str
        By what nodes are grouped: "class", "degree", or the user's own name.
    name : str
        What the group is called.
    nodes : int
        How many of its nodes were counted.
    coverage : float
        The share of them that are covered.
    p_value : float
        How often chance would cover this few of them, for all groups of the grouping together.
    labels : int
        How many labels of the group calibrated; −1 where that is not known.
    """

    what: str
    name: str
    nodes: int
    coverage: float
    p_value: float
    labels: int = -1

    def row(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.name} ({100 * self.coverage:.0f} % of {self.nodes:,} node{'s' * (self.nodes != 1)})"


def weak_groups(
    gap: CoverageGap, what: str, names: Sequence[str], *, level_labels: int | None, labels: IntArray | None = None
) -> list[WeakGroup]:
    """Return the groups that are covered less than the target by more than chance, the worst first.

    Parameters
    ----------
    gap : CoverageGap
        Coverage within the groups.
    what : str
        By what nodes are grouped.
    names : sequence of str
        What the groups are called, in the order of `gap`.
    level_labels : int or None
        How many other labels set the level; None where the counted labels did.
    labels : numpy.ndarray, optional
        How many labels of each group calibrated.
    """
    from scipy.special import bdtr

    alpha, weak = gap.alpha, []
    suspects = np.flatnonzero(1.0 - gap.coverage >= _WORTH * alpha)
    for g in suspects.tolist():
        nodes = int(gap.sizes[g])
        hits = round(float(gap.coverage[g]) * nodes)
        tail = float(bdtr(hits, nodes, 1.0 - alpha))
        if level_labels is not None and tail * gap.groups.size < ALARM:
            tail = falls_short(hits, nodes, level_labels, alpha)
        p_value = min(tail * gap.groups.size, 1.0)
        if p_value < ALARM:
            own = -1 if labels is None else int(labels[g])
            weak.append(WeakGroup(what, names[g], nodes, hits / nodes, p_value, own))
    return sorted(weak, key=lambda group: (group.coverage, group.p_value, group.name))


def describe_weak(weak: Sequence[WeakGroup], alpha: float, groups: int, *, by_group: bool = False) -> str:
    """Say which groups of one grouping are covered too little, and what would help.

    Parameters
    ----------
    weak : sequence of WeakGroup
        The groups, all of one grouping.
    alpha : float
        Error rate.
    groups : int
        How many groups there are in all.
    by_group : bool
        Whether the method has a threshold for each group already.
    """
    what = weak[0].what
    named = ", ".join(str(group) for group in weak[:_NAMED])
    more = f", and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    kind, kinds = {"class": ("class", "classes"), "group": ("group", "groups")}.get(
        what, (f"group by {what}", f"groups by {what}")
    )
    start = f"{len(weak)} of {groups} {kinds} {'is' if len(weak) == 1 else 'are'}"
    needed = fewest_ranks(alpha)
    own = what if what in ("class", "degree") else "FILE"
    poor = any(0 <= group.labels < needed for group in weak)
    few = f" (a {kind} needs at least {needed} labels for that)" if poor else ""
    where = f"this {kind}" if len(weak) == 1 else f"these {kinds}"
    helps = f"more labels in {where}" if by_group else f"`--by {own}`{few}, or more labels in {where}"
    return (
        f"{start} covered less often than the target of {100 * (1 - alpha):g} %, by more than chance: {named}{more}. "
        f"What helps: {helps}"
    )


def degree_names(count: int) -> list[str]:
    """Return what groups by degree are called, the fewest neighbours first.

    Examples
    --------
    >>> degree_names(3)
    ['nodes with the fewest neighbours', 'group 2 of 3 by degree', 'nodes with the most neighbours']
    """
    names = [f"group {k + 1} of {count} by degree" for k in range(count)]
    if count > 1:
        names[0], names[-1] = "nodes with the fewest neighbours", "nodes with the most neighbours"
    return names
